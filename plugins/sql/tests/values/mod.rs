//! Values at their edges: what is shown is compared, in both databases.

use weir_plugin_sdk::{
    Adapter, Comparison, Condition, Field, Order, Query, Shape, Type, Value as CsvValue, Zone,
    serde_json, serde_json::Value, sql, testing,
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe, open, outline, show, walk};

/// Checks the limits of each type, read and found by the values that a CSV of the same cells has.
#[test]
fn the_limits_of_each_type_are_shown_and_found() {
    let columns = [
        (
            "id",
            Type::Integer,
            "INTEGER PRIMARY KEY",
            "int PRIMARY KEY",
            "int PRIMARY KEY",
        ),
        (
            "name",
            Type::String,
            "TEXT NOT NULL",
            "text COLLATE \"en-x-icu\" NOT NULL",
            "varchar(100) NOT NULL",
        ),
        ("amount", Type::Decimal, "TEXT", "numeric", "decimal(30,5)"),
        ("big", Type::Decimal, "TEXT", "numeric", "decimal(30,0)"),
        ("count", Type::Integer, "INTEGER", "bigint", "bigint"),
        ("ratio", Type::Number, "REAL", "double precision", "double"),
        ("day", Type::Date, "DATE", "date", "date"),
        (
            "at",
            Type::Datetime,
            "DATETIME",
            "timestamptz",
            "datetime(6)",
        ),
        ("flag", Type::Boolean, "INTEGER", "boolean", "boolean"),
    ];
    #[rustfmt::skip]
    let rows = [
        ["1", "largest", "99999999999999999999.99", "18446744073709551615", "9007199254740991", "1.5e300", "9999-12-31", "9999-12-31T23:59:59Z", "true"],
        ["2", "smallest", "-99999999999999999999.99", "-9223372036854775808", "-9007199254740991", "5e-324", "0001-01-01", "0001-01-01T00:00:00Z", "false"],
        ["3", "null", "", "", "", "", "", "", ""],
        ["4", "", "-0.001", "-9007199254740993", "0", "-2.5", "1970-01-01", "1970-01-01T00:00:00Z", "false"],
        ["5", "two\nlines\u{feff} %_\\'\"", "0.07", "1", "7", "1e21", "2024-02-29", "2024-03-02T12:00:00.5Z", "true"],
    ];
    let native = columns.map(|(name, _, sqlite, postgresql, mysql)| {
        [sqlite, postgresql, mysql].map(|native| format!("{name} {native}"))
    });
    let [sqlite, postgresql, mysql] = [0, 1, 2].map(|which| {
        native
            .each_ref()
            .map(|both| both[which].as_str())
            .join(", ")
    });
    let mut script = String::new();
    let both = Both::filled(
        &format!("CREATE TABLE edges ({sqlite})"),
        &format!("CREATE TABLE edges ({postgresql});"),
    )
    .with_mysql(&format!("CREATE TABLE edges ({mysql});"));
    let database = both.sqlite_file();
    let insert = format!(
        "INSERT INTO edges VALUES ({})",
        vec!["?"; columns.len()].join(", ")
    );
    for row in rows {
        let cells = || {
            columns
                .iter()
                .zip(row)
                .map(|((name, kind, ..), cell)| (*kind, cell, cell.is_empty() && *name != "name"))
        };
        let values = cells().map(|(kind, cell, null)| match kind {
            _ if null => rusqlite::types::Value::Null,
            Type::Boolean => i64::from(cell == "true").into(),
            // SQLite itself is off by a digit where it reads 1.5e300.
            Type::Number => cell.parse::<f64>().expect("a number").into(),
            _ => cell.to_owned().into(),
        });
        database
            .execute(&insert, rusqlite::params_from_iter(values))
            .expect("inserted");
        let values = cells().map(|(kind, cell, null)| match null {
            true => "NULL".to_owned(),
            _ if kind == Type::Boolean => cell.to_owned(),
            _ if kind == Type::Datetime => format!("'{}'", cell.trim_end_matches('Z')),
            false => format!("'{}'", cell.replace('\'', "''")),
        });
        script += &format!(
            "INSERT INTO edges VALUES ({});",
            values.collect::<Vec<_>>().join(", ")
        );
    }
    both.fill("", &format!("SET TimeZone = 'UTC'; {script}"));
    both.fill_mysql(&script);
    // The contract says the types, the database its own names for them.
    let open = || {
        let settings = r#"{"connection":"db","table":"edges"}"#;
        let mut shape = describe(settings)?;
        for (field, (_, kind, ..)) in shape.fields.iter_mut().zip(&columns) {
            field.kind = *kind;
        }
        SqlAdapter::open(settings, &shape)
    };
    let csv = |at: usize, cell: &str| {
        let (name, kind, ..) = columns[at];
        CsvValue::from_text(
            cell,
            &Field::new(name, kind).nullable(name != "name"),
            &Zone::utc(),
        )
        .to_json()
    };
    let expected: Vec<String> = rows
        .iter()
        .map(|row| {
            let members = row
                .iter()
                .enumerate()
                .map(|(at, cell)| format!("\"{}\":{}", columns[at].0, csv(at, cell)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .collect();
    let read = |query: Query| {
        let page = both
            .same(|| open().and_then(|table| table.read(&query)).map(show))
            .expect("a page");
        let records: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(&page.0).expect("records");
        records
            .into_iter()
            .map(|record| record.get().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read(Query {
            limit: 100,
            ..Query::default()
        }),
        expected
    );
    for (row, record) in rows.iter().zip(&expected) {
        for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let value = serde_json::from_str::<Value>(&csv(at, cell)).expect("JSON");
            let condition = Condition::new(columns[at].0, Comparison::Equals, value);
            let found = read(Query {
                conditions: vec![condition],
                limit: 100,
                ..Query::default()
            });
            assert!(
                found.contains(record),
                "{} = {cell}: {found:?}",
                columns[at].0
            );
        }
    }
    for (column, descending, first) in [
        ("at", true, 0),
        ("at", false, 1),
        ("amount", true, 0),
        ("ratio", true, 0),
    ] {
        let order = vec![Order {
            column: column.to_owned(),
            descending,
        }];
        assert_eq!(
            read(Query {
                order,
                limit: 1,
                ..Query::default()
            }),
            [expected[first].clone()],
            "{column}"
        );
    }
}

/// A decimal of SQLite is a double, which has more digits than SQLite writes, or none.
#[test]
fn what_is_shown_of_a_number_is_compared() {
    let rows = "INSERT INTO prices VALUES (1, 0.1 + 0.2), (2, 0.1 + 0.2), (3, 0.1 + 0.2), (4, 1), (5, NULL);";
    let sqlite = format!(
        "CREATE TABLE prices (id INTEGER PRIMARY KEY, price DECIMAL(10,2)); {rows} INSERT INTO prices VALUES (6, 9e999), (7, -9e999);"
    );
    let postgresql = format!(
        "CREATE TABLE prices (id int PRIMARY KEY, price numeric); {rows} INSERT INTO prices VALUES (6, 'Infinity'), (7, '-Infinity');"
    );
    let both = Both::filled(&sqlite, &postgresql);
    for by in ["price", "-price"] {
        let order = [Order::parse(by)];
        let whole = walk(&both, "prices", &order, 100);
        assert_eq!(whole.len(), 7, "{by}");
        assert_eq!(whole[5], r#"{"id":6,"price":null}"#);
        for limit in [1, 2] {
            assert_eq!(
                walk(&both, "prices", &order, limit),
                whole,
                "{by} by {limit}"
            );
        }
    }
    let conditions = vec![Condition::new("price", Comparison::Equals, "0.3")];
    let query = Query {
        conditions,
        columns: vec!["id".into()],
        limit: 10,
        ..Query::default()
    };
    let found = both
        .same(|| open("prices")?.read(&query).map(show))
        .expect("a page");
    assert_eq!(found.0, r#"[{"id":1},{"id":2},{"id":3}]"#);
}

/// A time or a number of PostgreSQL that is not finite is null, in what is shown and in what is compared.
#[test]
fn infinities_are_null() {
    let columns = "day, at, zoned, price, score";
    let finite = "'2024-02-29', '2024-05-06 07:08:09', '2024-05-06 07:08:09', 1.5, 2.5";
    let infinite = |sign: &str| {
        ["date", "timestamp", "timestamptz", "numeric", "float8"]
            .map(|_| format!("'{sign}infinity'"))
            .join(", ")
    };
    let rows = |least: &str, most: &str| {
        format!(
            "INSERT INTO ends (id, {columns}) VALUES (1, {most}), (2, {finite}), (3, {least}), (4, {finite}), (5, {most});"
        )
    };
    let nulls = "NULL, NULL, NULL, NULL, NULL";
    let both = Both::filled(
        &format!(
            "CREATE TABLE ends (id INTEGER PRIMARY KEY, day DATE, at DATETIME, zoned DATETIME, price DECIMAL(9,2), score REAL); {}",
            rows(nulls, nulls)
        ),
        &format!(
            "CREATE TABLE ends (id int PRIMARY KEY, day date NOT NULL DEFAULT 'infinity', at timestamp NOT NULL DEFAULT '-infinity',
                zoned timestamptz NOT NULL DEFAULT 'infinity', price numeric, score float8); {}",
            rows(&infinite("-"), &infinite(""))
        ),
    );
    let described = both
        .same(|| describe(r#"{"connection":"db","table":"ends"}"#).map(|shape| outline(&shape)));
    assert!(
        described.expect("described").starts_with(
            "id:Integer! day:Date at:Datetime zoned:Datetime price:Decimal score:Number"
        )
    );
    for column in columns.split(", ") {
        for by in [column.to_owned(), format!("-{column}")] {
            let order = [Order::parse(&by)];
            let whole = walk(&both, "ends", &order, 100);
            let ids: Vec<_> = whole.iter().map(|record| &record[..7]).collect();
            assert_eq!(
                ids,
                [2, 4, 1, 3, 5].map(|id| format!("{{\"id\":{id}")),
                "{by}"
            );
            assert!(
                whole[2]
                    .ends_with(r#""day":null,"at":null,"zoned":null,"price":null,"score":null}"#),
                "{}",
                whole[2]
            );
            for limit in [1, 2] {
                assert_eq!(walk(&both, "ends", &order, limit), whole, "{by} by {limit}");
            }
        }
        let value = match column {
            "day" => Value::from("2024-02-29"),
            "price" => "1.5".into(),
            "score" => 2.5.into(),
            _ => "2024-05-06T07:08:09Z".into(),
        };
        for (comparison, value, ids) in [
            (Comparison::Equals, value.clone(), "2,4"),
            (Comparison::AtLeast, value.clone(), "2,4"),
            (Comparison::AtMost, value.clone(), "2,4"),
            (Comparison::NotEquals, value, ""),
            (Comparison::IsEmpty, true.into(), "1,3,5"),
        ] {
            let conditions = vec![Condition::new(column, comparison, value)];
            let query = Query {
                conditions,
                columns: vec!["id".into()],
                limit: 10,
                ..Query::default()
            };
            let found = both
                .same(|| open("ends")?.read(&query).map(show))
                .expect("a page");
            let found = found.0.replace("{\"id\":", "").replace('}', "");
            assert_eq!(found, format!("[{ids}]"), "{column} {comparison}");
        }
    }
}

/// A value that is not of its column's type has no place in the order. SQLite's are null; in PostgreSQL the column was altered.
#[test]
fn a_list_does_not_end_at_a_value_that_does_not_fit() {
    let both = Both::filled(
        "CREATE TABLE days (id INTEGER PRIMARY KEY, day DATE); INSERT INTO days VALUES (1, '2024-01-01'), (2, '12024-01-03')",
        "CREATE TABLE days (id int PRIMARY KEY, day numeric); INSERT INTO days VALUES (1, 1), (2, 2.5)",
    );
    // To SQLite it is a text, to PostgreSQL a number of another kind.
    let second_page = |which: Which, by: &str, kind: Type| {
        let first = Query {
            order: vec![Order::parse(by)],
            limit: 1,
            ..Query::default()
        };
        both.on(which, || {
            let settings = r#"{"connection":"db","table":"days"}"#;
            let mut shape = describe(settings)?;
            // The shape was recorded before.
            shape.fields[1].kind = kind;
            let table = SqlAdapter::open(settings, &shape)?;
            let page = table.read(&first)?;
            table.read(&Query {
                cursor: page.next,
                ..first.clone()
            })
        })
        .map(show)
    };
    let last = (r#"[{"id":2,"day":null}]"#.to_owned(), None);
    assert_eq!(second_page(Which::Sqlite, "day", Type::Date), Ok(last));
    let error = second_page(Which::Postgresql, "-day", Type::Integer);
    let error = error.expect_err("nothing is behind it");
    assert_eq!(
        (error.code.as_str(), error.field.as_deref()),
        ("source_changed", Some("day"))
    );
}

/// To a collation that is not deterministic two spellings are equal, to the value table they are two texts.
#[test]
fn texts_are_equal_letter_for_letter_under_any_collation() {
    let rows = "INSERT INTO words VALUES ('a', 'x'), ('A', 'X'), ('á', 'x'), ('b', 'X');";
    let both = Both::filled(
        &format!("CREATE TABLE words (word TEXT PRIMARY KEY, code CHAR(1)); {rows}"),
        &format!(
            "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
             CREATE TABLE words (word text COLLATE loose, code char(1) COLLATE loose); {rows}
             CREATE INDEX ON words (word);"
        ),
    );
    let open = || {
        let settings = r#"{"connection":"db","table":"words"}"#;
        let mut shape = describe(settings)?;
        // The collation would refuse a key of these.
        shape.key = vec!["word".into()];
        shape
            .fields
            .iter_mut()
            .for_each(|field| field.nullable = false);
        SqlAdapter::open(settings, &shape)
    };
    let read = |query: &Query| both.same(|| open()?.read(query).map(show)).expect("a page");
    for (column, value, found) in [
        ("word", "a", 1),
        ("word", "A", 1),
        ("code", "x", 2),
        ("word", "ä", 0),
    ] {
        let conditions = vec![Condition::new(column, Comparison::Equals, value)];
        let records = read(&Query {
            conditions,
            limit: 10,
            ..Query::default()
        })
        .0;
        assert_eq!(
            records.matches("word").count(),
            found,
            "{column} = {value}: {records}"
        );
    }
    for order in ["word", "-code"] {
        let mut query = Query {
            order: vec![Order::parse(order)],
            limit: 1,
            ..Query::default()
        };
        let mut walked = Vec::new();
        for _ in 0..4 {
            let (records, next) = read(&query);
            walked.push(records);
            query.cursor = next;
        }
        assert_eq!(query.cursor, None, "{walked:?}");
        walked.dedup();
        assert_eq!(walked.len(), 4, "{walked:?}");
    }
}

#[test]
fn one_of_takes_many_values() {
    let moments: Vec<_> = (0..500)
        .map(|at| format!("2024-05-06 {:02}:{:02}:00", at / 60, at % 60))
        .collect();
    let rows: Vec<_> = moments
        .iter()
        .enumerate()
        .map(|(id, at)| format!("({id}, '{at}')"))
        .collect();
    let rows = format!(
        "INSERT INTO many VALUES {}, (500, '2025-01-01 00:00:00')",
        rows.join(", ")
    );
    let both = Both::filled(
        &format!("CREATE TABLE many (id INTEGER PRIMARY KEY, at DATETIME); {rows}"),
        &format!("CREATE TABLE many (id int PRIMARY KEY, at timestamp); {rows}"),
    )
    .with_mysql(&format!(
        "CREATE TABLE many (id int PRIMARY KEY, at timestamp); {rows}"
    ));
    let moments: Vec<Value> = moments
        .iter()
        .map(|at| format!("{}Z", at.replace(' ', "T")).into())
        .collect();
    for (column, values) in [
        ("id", Value::from((0..500).collect::<Vec<_>>())),
        ("at", moments.into()),
    ] {
        let conditions = vec![Condition::new(column, Comparison::OneOf, values)];
        let query = Query {
            conditions,
            columns: vec!["id".into()],
            limit: 1000,
            ..Query::default()
        };
        let found = both
            .same(|| open("many")?.read(&query).map(show))
            .expect(column);
        assert_eq!(found.0.matches("id").count(), 500, "{column}");
    }
}

/// Comparisons that PostgreSQL may look up in an index of the column itself.
#[test]
fn plain_comparisons_are_served_by_an_index() {
    let columns = [
        ("n", "numeric", Value::from("1.5")),
        ("f", "float8", 1.5.into()),
        ("t", "text", "x".into()),
        ("d", "date", "2024-01-01".into()),
        ("z", "timestamptz", "2024-01-01T00:00:00Z".into()),
    ];
    let native = columns
        .each_ref()
        .map(|(name, native, _)| format!("{name} {native} UNIQUE"))
        .join(", ");
    let both = Both::filled("", &format!("CREATE TABLE found ({native}); {PLAN}"));
    let settings = r#"{"connection":"db","table":"found"}"#;
    for (name, native, value) in columns {
        for comparison in [Comparison::Equals, Comparison::AtLeast] {
            if (comparison, native) == (Comparison::AtLeast, "text") {
                continue; // only an index under "C" has the order of code points
            }
            let plan = both.on(Which::Postgresql, || {
                let conditions = vec![Condition::new(name, comparison, value.clone())];
                let query = Query {
                    conditions,
                    columns: vec![name.to_owned()],
                    limit: 1,
                    ..Query::default()
                };
                // The order is another matter.
                let mut shape = describe(settings)?;
                shape.fields.retain(|field| field.key == name);
                SqlAdapter::open(settings, &shape)?.read(&query)?;
                planned(&testing::sql::statements().pop().expect("a statement"))
            });
            let plan = plan.expect(name);
            assert!(plan.contains("Index Cond"), "{name} {comparison}: {plan}");
        }
    }
}

/// In what order PostgreSQL may read an index of the column itself, from its beginning and from a page's end.
#[test]
fn plain_orders_are_served_by_an_index() {
    let both = Both::filled(
        "",
        &format!(
            "CREATE TABLE ordered (id bigserial PRIMARY KEY, z timestamptz NOT NULL UNIQUE, d date UNIQUE, f float8 UNIQUE,
                 n numeric(9,1) UNIQUE, i int NOT NULL UNIQUE);
             INSERT INTO ordered (z, d, f, n, i)
                 SELECT '2024-01-01Z'::timestamptz + at * interval '1 day', '2024-01-01'::date + at, at + 0.5, at + 0.5, at
                 FROM generate_series(1, 500) AS at;
             ANALYZE ordered; {PLAN}"
        ),
    );
    let settings = r#"{"connection":"db","table":"ordered"}"#;
    for (by, is_cut_by) in ["z", "d", "f", "n", "i"].into_iter().flat_map(|name| {
        [
            (name.to_owned(), format!("({name} >= ")),
            (format!("-{name}"), format!("({name} <= ")),
        ]
    }) {
        let plans = both.on(Which::Postgresql, || {
            let table = SqlAdapter::open(settings, &describe(settings)?)?;
            let mut query = Query {
                order: vec![Order::parse(&by)],
                limit: 1,
                ..Query::default()
            };
            let mut plans = Vec::new();
            for _ in 0..2 {
                query.cursor = table.read(&query)?.next;
                plans.push(planned(
                    &testing::sql::statements().pop().expect("a statement"),
                )?);
            }
            Ok(plans)
        });
        let plans = plans.expect(&by);
        for plan in &plans {
            assert!(plan.contains("Presorted Key"), "{by}: {plan}");
        }
        let has_bound = plans[1].contains("Index Cond") && plans[1].contains(&is_cut_by);
        assert!(
            has_bound || by.ends_with('i'),
            "behind a page {by}: {}",
            plans[1]
        );
    }
    for by in ["id", "-id"] {
        let plan = both.on(Which::Postgresql, || {
            let table = SqlAdapter::open(settings, &describe(settings)?)?;
            table.read(&Query {
                order: vec![Order::parse(by)],
                limit: 1,
                ..Query::default()
            })?;
            planned(&testing::sql::statements().pop().expect("a statement"))
        });
        let plan = plan.expect(by);
        assert!(
            plan.contains("Index Scan") && !plan.contains("Sort"),
            "{by}: {plan}"
        );
    }
}

/// Both parts of an order with values that are not finite are read by an index of the column, when they are read at once.
#[test]
fn both_parts_of_an_order_are_served_by_an_index() {
    let both = Both::filled(
        "",
        &format!(
            "CREATE TABLE ordered (id bigserial PRIMARY KEY, z timestamptz, d date, f float8, n numeric(9,1));
             INSERT INTO ordered (z, d, f, n)
                 SELECT '2024-01-01Z'::timestamptz + at * interval '1 day', '2024-01-01'::date + at, at + 0.5, at + 0.5
                 FROM generate_series(1, 500) AS at;
             INSERT INTO ordered (z, d, f, n) SELECT NULL, NULL, NULL, NULL FROM generate_series(1, 500);
             CREATE INDEX ON ordered (z); CREATE INDEX ON ordered (d); CREATE INDEX ON ordered (f); CREATE INDEX ON ordered (n);
             ANALYZE ordered; {PLAN}"
        ),
    );
    let settings = r#"{"connection":"db","table":"ordered"}"#;
    for by in ["z", "-z", "d", "-d", "f", "-f", "n", "-n"] {
        let plan = both.on(Which::Postgresql, || {
            let table = SqlAdapter::open(settings, &describe(settings)?)?;
            let order = vec![Order::parse(by)];
            let first = table.read(&Query {
                order: order.clone(),
                limit: 490,
                ..Query::default()
            })?;
            table.read(&Query {
                order,
                limit: 20,
                cursor: first.next,
                ..Query::default()
            })?;
            let statement = testing::sql::statements().pop().expect("a statement");
            assert!(statement.text.contains("UNION ALL"), "{}", statement.text);
            planned(&statement)
        });
        let plan = plan.expect(by);
        assert!(
            plan.contains("Append") && plan.contains("Presorted Key"),
            "{by}: {plan}"
        );
        assert!(
            plan.contains("Index Cond") && !plan.contains("Seq Scan"),
            "{by}: {plan}"
        );
    }
}

/// A value that becomes finite, or null, while the first page is read.
#[test]
fn a_record_that_changes_while_a_page_is_read_is_read_once() {
    let both = Both::filled("", "");
    let dates = "(1, '2024-01-01'), (2, '2024-01-02'), (3, '2024-01-03')";
    for (rows, change, limit, pages) in [
        (
            "(1, '2024-01-01'), (2, NULL)",
            "SET day = '2023-01-01' WHERE id = 2",
            10,
            "2,1",
        ),
        (
            "(1, '2024-01-01'), (2, NULL)",
            "SET day = '2023-01-01' WHERE id = 2",
            1,
            "2;1",
        ),
        (
            "(1, '2024-01-01'), (2, 'infinity')",
            "SET day = '2025-01-01' WHERE id = 2",
            10,
            "1,2",
        ),
        (
            "(1, '2024-01-01'), (2, '2024-01-02')",
            "SET day = NULL WHERE id = 1",
            10,
            "2,1",
        ),
        // More finite values, and fewer, than the first statement has found.
        (
            "(1, NULL), (2, NULL), (3, '2024-01-03')",
            "SET day = '2024-01-01'",
            2,
            "1,2;3",
        ),
        // The others are only asked for as far as there was room, so that there may be more.
        (dates, "SET day = NULL", 5, "1,2,3;"),
        (dates, "SET day = NULL", 3, "1;2,3"),
    ] {
        let script = format!(
            "DROP TABLE IF EXISTS days; CREATE TABLE days (id int PRIMARY KEY, day date); INSERT INTO days VALUES {rows}"
        );
        both.fill("", &script);
        let walked = both.on(Which::Postgresql, || {
            let table = open("days")?;
            both.fill_behind_next_statement(&format!("UPDATE days {change}"));
            let order = vec![Order::parse("day")];
            let mut query = Query {
                order,
                columns: vec!["id".into()],
                limit,
                ..Query::default()
            };
            let mut walked = Vec::new();
            loop {
                let page = table.read(&query)?;
                let found: Vec<Value> = serde_json::from_str(&page.records).expect("records");
                walked.push(
                    found
                        .iter()
                        .map(|record| record["id"].to_string())
                        .collect::<Vec<_>>()
                        .join(","),
                );
                query.cursor = page.next;
                if query.cursor.is_none() {
                    return Ok(walked.join(";"));
                }
            }
        });
        assert_eq!(walked.expect(change), pages, "{rows} {change} by {limit}");
    }
}

/// A function that plans a statement as if its table were a large one.
const PLAN: &str = "
    CREATE FUNCTION plan(statement text, given text[]) RETURNS text LANGUAGE plpgsql
        SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off AS $$
    DECLARE line text; whole text := '';
    BEGIN
        FOR line IN EXECUTE 'EXPLAIN ' || statement USING given[1], given[2], given[3], given[4], given[5] LOOP
            whole := whole || line || '; ';
        END LOOP;
        RETURN whole;
    END $$;";

fn planned(asked: &sql::Statement) -> Result<String, weir_plugin_sdk::Error> {
    let given: Vec<_> = asked
        .parameters
        .iter()
        .map(|value| value.as_str().expect("a text"))
        .collect();
    let parameters = vec![
        asked.text.clone().into(),
        format!("{{{}}}", given.join(",")).into(),
    ];
    let text = "SELECT plan($1::text, $2::text::text[]) AS plan".to_owned();
    let asked = sql::Statement {
        connection: "db".into(),
        text,
        parameters,
        limit: 1,
        options: None,
    };
    Ok(sql::query(&asked)?.records)
}

/// A time that the clocks of a zone show twice is its first reading, in what is shown and in what is compared.
#[test]
fn a_time_shown_twice_is_its_first_reading() {
    let times = [
        // Vienna: back from 3:00 to 2:00, and on from 2:00 to 3:00.
        "2024-10-27 01:59:59",
        "2024-10-27 02:00:00",
        "2024-10-27 02:30:00",
        "2024-10-27 02:59:59.5",
        "2024-10-27 03:00:00",
        "2024-10-27 03:59:59",
        "2024-03-31 01:59:59",
        "2024-03-31 02:00:00",
        "2024-03-31 02:30:00",
        "2024-03-31 03:00:00",
        "2024-03-31 03:30:00",
        // Lord Howe Island: back from 2:00 to 1:30.
        "2024-04-07 01:15:00",
        "2024-04-07 01:30:00",
        "2024-04-07 01:45:00",
        "2024-04-07 02:00:00",
        "2024-04-07 02:15:00",
        "2024-04-07 02:45:00",
        // Troll: back from 3:00 to 1:00.
        "2024-10-27 00:30:00",
        "2024-10-27 01:00:00",
        "2024-10-27 01:30:00",
        "2024-10-27 04:30:00",
    ];
    let rows: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(id, time)| format!("({id}, '{time}')"))
        .collect();
    let rows = format!("INSERT INTO times VALUES {}", rows.join(", "));
    let both = Both::filled(
        &format!("CREATE TABLE times (id INTEGER PRIMARY KEY, at DATETIME); {rows}"),
        &format!("CREATE TABLE times (id int PRIMARY KEY, at timestamp); {rows}"),
    );
    for zone in [
        "UTC",
        "+05:30",
        "Europe/Vienna",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
    ] {
        let read = |query: &Query| {
            let page = both.same(|| {
                let settings = r#"{"connection":"db","table":"times"}"#;
                let shape = Shape {
                    timezone: Some(zone.to_owned()),
                    ..describe(settings)?
                };
                SqlAdapter::open(settings, &shape)?.read(query).map(show)
            });
            let (records, next) = page.expect("a page");
            (
                serde_json::from_str::<Vec<Value>>(&records).expect("records"),
                next,
            )
        };
        for by in ["at", "-at"] {
            let order = vec![Order::parse(by)];
            let (whole, _) = read(&Query {
                order: order.clone(),
                limit: 100,
                ..Query::default()
            });
            assert_eq!(whole.len(), times.len());
            let mut query = Query {
                order,
                limit: 1,
                ..Query::default()
            };
            for record in &whole {
                let (page, next) = read(&query);
                assert_eq!(page, std::slice::from_ref(record), "{zone} by {by}");
                query.cursor = next;
            }
            assert_eq!(query.cursor, None);
            for record in &whole {
                let conditions = vec![Condition::new(
                    "at",
                    Comparison::Equals,
                    record["at"].clone(),
                )];
                let (found, _) = read(&Query {
                    conditions,
                    limit: 100,
                    ..Query::default()
                });
                assert!(found.contains(record), "{zone}: {record}");
            }
        }
    }
}
