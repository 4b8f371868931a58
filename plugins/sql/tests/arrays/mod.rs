//! Arrays, composites and JSON of PostgreSQL: what goes in comes out, and what comes out is of the value table.

use proptest::{
    collection::vec,
    option::weighted,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use weir_plugin_sdk::{
    Adapter, Change, Comparison, Condition, Order, Query, Shape, Type, Verb,
    serde_json::{self, Value, json},
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe, object, outline, show};

const TYPES: &str = r#"
    CREATE SCHEMA app;
    CREATE TYPE app."Kind of" AS ENUM ('a', 'b c', 'd"e\f', 'ü,{}', 'NULL');
    CREATE DOMAIN app.amount AS numeric;
    CREATE DOMAIN app.price AS app.amount CHECK (value IS NULL OR value = value);
    CREATE DOMAIN app.moment AS timestamptz;
    CREATE DOMAIN app."Kind again" AS app."Kind of";
    CREATE TYPE app.point AS (x int8, y float8);
    CREATE TYPE app.home AS (street text, zip int, "Since" timestamp, seen timestamptz, day date, rent numeric, tags text[],
        more jsonb, place app.point, kind app."Kind of", open bool);"#;

/// Each type with the values that it holds, as the value table writes them.
fn kinds() -> Vec<(&'static str, &'static str, BoxedStrategy<Value>)> {
    vec![
        ("i2", "int2", any::<i16>().prop_map(Value::from).boxed()),
        ("i4", "int4", any::<i32>().prop_map(Value::from).boxed()),
        (
            "i8",
            "int8",
            any::<i64>()
                .prop_map(|number| number.to_string().into())
                .boxed(),
        ),
        (
            "n",
            "numeric",
            "-?[1-9][0-9]{0,20}(\\.[0-9]{0,5}[1-9])?"
                .prop_map(Value::from)
                .boxed(),
        ),
        (
            "f4",
            "float4",
            any::<i16>()
                .prop_map(|eighths| (f64::from(eighths) / 8.0).into())
                .boxed(),
        ),
        (
            "f8",
            "float8",
            proptest::num::f64::NORMAL.prop_map(Value::from).boxed(),
        ),
        ("b", "bool", any::<bool>().prop_map(Value::from).boxed()),
        ("d", "date", day(0..10_000).prop_map(Value::from).boxed()),
        ("ts", "timestamp", moment().prop_map(Value::from).boxed()),
        ("tz", "timestamptz", moment().prop_map(Value::from).boxed()),
        ("j", "json", any_json()),
        ("jb", "jsonb", any_json()),
        ("t", "text", any_text()),
        (
            "vc",
            "varchar(20)",
            "[a\"'\\\\{},() ü]{0,20}".prop_map(Value::from).boxed(),
        ),
        ("c", "char(3)", "[a-c]{1,3}".prop_map(Value::from).boxed()),
        ("c1", "\"char\"", "[a-z]".prop_map(Value::from).boxed()),
        (
            "u",
            "uuid",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
                .prop_map(Value::from)
                .boxed(),
        ),
        ("e", "app.\"Kind of\"", kind_of()),
        ("bits", "bit(3)", "[01]{3}".prop_map(Value::from).boxed()),
        (
            "dn",
            "app.price",
            "-?[1-9][0-9]{0,20}(\\.[0-9]{0,5}[1-9])?"
                .prop_map(Value::from)
                .boxed(),
        ),
        ("dz", "app.moment", moment().prop_map(Value::from).boxed()),
        ("de", "app.\"Kind again\"", kind_of()),
        (
            "tm",
            "time",
            "(0[0-9]|1[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
                .prop_map(Value::from)
                .boxed(),
        ),
        (
            "ip",
            "inet",
            "[1-9]\\.0\\.0\\.0/8".prop_map(Value::from).boxed(),
        ),
        (
            "bx",
            "box",
            select(vec!["(1,1),(0,0)", "(3,2),(-1,0.5)"])
                .prop_map(Value::from)
                .boxed(),
        ),
    ]
}

fn day(years: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    (years, 1..=12_u32, 1..=28_u32)
        .prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"))
}

/// A time that the zone of the test shows in a year of the value table.
fn moment() -> impl Strategy<Value = String> {
    let clock = (0..24_u32, 0..60_u32, 0..60_u32, 0..1_000_000_u32);
    (day(1..9999), clock).prop_map(|(day, (hour, minute, second, micros))| {
        let fraction = format!(".{micros:06}");
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        format!("{day}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
    })
}

fn any_text() -> BoxedStrategy<Value> {
    let odd = select(vec![
        "",
        "NULL",
        "null",
        "{}",
        "\"",
        "\\",
        " ",
        "a,b",
        "{\"a\":1}",
    ]);
    prop_oneof![
        odd.prop_map(Value::from),
        "[^\\x00]{0,12}".prop_map(Value::from)
    ]
    .boxed()
}

fn kind_of() -> BoxedStrategy<Value> {
    select(vec!["a", "b c", "d\"e\\f", "ü,{}", "NULL"])
        .prop_map(Value::from)
        .boxed()
}

fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        select(vec![
            "1",
            "true",
            "null",
            "{\"a\":1}",
            "[1]",
            "plain",
            "\"",
            "\\",
            ""
        ])
        .prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(json!(1.5)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(prop_oneof![inner.clone(), Just(Value::Null)], 0..3).prop_map(Value::from),
            vec(("[a-c]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

fn home() -> BoxedStrategy<Value> {
    let members: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("street", any_text()),
        ("zip", any::<i32>().prop_map(Value::from).boxed()),
        ("Since", moment().prop_map(Value::from).boxed()),
        ("seen", moment().prop_map(Value::from).boxed()),
        ("day", day(0..10_000).prop_map(Value::from).boxed()),
        (
            "rent",
            "-?[1-9][0-9]{0,20}(\\.[0-9]{0,5}[1-9])?"
                .prop_map(Value::from)
                .boxed(),
        ),
        (
            "tags",
            vec(or_null(any_text()), 0..3).prop_map(Value::from).boxed(),
        ),
        ("more", any_json()),
        (
            "place",
            any::<i64>()
                .prop_map(|x| json!({"x": x.to_string(), "y": 0.5}))
                .boxed(),
        ),
        ("kind", kind_of()),
        ("open", any::<bool>().prop_map(Value::from).boxed()),
    ];
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| (Just(name.to_owned()), or_null(value)))
        .collect();
    members
        .prop_map(|members| Value::Object(members.into_iter().collect()))
        .boxed()
}

fn or_null(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    weighted(0.8, value)
        .prop_map(|value| value.unwrap_or(Value::Null))
        .boxed()
}

/// A value of each type alone, in a list, and in a list of lists of one length.
fn records() -> impl Strategy<Value = Value> {
    let mut members = Vec::new();
    let mut add = |name: String, value: BoxedStrategy<Value>| {
        members.push((Just(name), value));
    };
    for (name, _, value) in kinds() {
        let grid = (1..3_usize, 1..3_usize, vec(or_null(value.clone()), 4)).prop_map(
            |(rows, columns, values)| {
                let rows = values.chunks(2).take(rows);
                rows.map(|row| Value::from(row[..columns].to_vec()))
                    .collect::<Vec<_>>()
            },
        );
        add(name.to_owned(), or_null(value.clone()));
        add(
            format!("{name}_list"),
            or_null(vec(or_null(value), 0..4).prop_map(Value::from).boxed()),
        );
        add(
            format!("{name}_grid"),
            or_null(grid.prop_map(Value::from).boxed()),
        );
    }
    add(
        "homes".into(),
        or_null(vec(or_null(home()), 0..3).prop_map(Value::from).boxed()),
    );
    members.prop_map(|members| Value::Object(members.into_iter().collect()))
}

#[test]
fn what_goes_into_a_column_of_any_type_comes_out() {
    let mut columns = vec!["id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY".to_owned()];
    for (name, native, _) in kinds() {
        columns.push(format!(
            "{name} {native}, {name}_list {native}[], {name}_grid {native}[][]"
        ));
    }
    columns.push("homes app.home[]".into());
    let both = Both::filled(
        "",
        &format!("{TYPES} CREATE TABLE app.every ({})", columns.join(", ")),
    );
    let settings = r#"{"connection":"db","table":"app.every"}"#;
    let shape = Shape {
        timezone: Some("+05:30".to_owned()),
        ..both
            .on(Which::Postgresql, || describe(settings))
            .expect("described")
    };
    for field in &shape.fields {
        let kind = match field.key.rsplit_once('_') {
            Some((_, "list")) => Type::List,
            Some((_, "grid")) => Type::Json,
            _ if field.key == "homes" => Type::List,
            _ => continue,
        };
        assert_eq!(field.kind, kind, "{}", field.key);
    }
    let config = Config {
        cases: 96,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&records(), |record| {
        let written = both.on(Which::Postgresql, || {
            let change = Change {
                record: object(record.clone()),
                ..Change::new(Verb::Create)
            };
            SqlAdapter::open(settings, &shape)?.write(&change)
        });
        let written = written.map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let written: Value = serde_json::from_str(&written).expect("JSON");
        for (key, value) in object(record) {
            prop_assert!(
                alike(&written[&key], &value),
                "{key}: {value} became {}",
                written[&key]
            );
        }
        // The record is read as it was answered.
        let read = both.on(Which::Postgresql, || {
            let query = Query {
                conditions: vec![Condition::new(
                    "id",
                    Comparison::Equals,
                    written["id"].clone(),
                )],
                limit: 1,
                ..Query::default()
            };
            SqlAdapter::open(settings, &shape)?.read(&query).map(show)
        });
        let read: Vec<Value> = serde_json::from_str(&read.expect("read").0).expect("JSON");
        prop_assert_eq!(read, vec![written]);
        Ok(())
    });
    outcome.expect("what goes in comes out");
}

/// Compares JSON with its numbers as doubles.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| alike(one, other)))
        }
        _ => one == other,
    }
}

/// A value outside the value table is null, wherever it is; a column has the type of its rows.
#[test]
fn odd_values_of_postgresql_do_not_end_a_list() {
    let both = Both::filled("", &format!("{TYPES}
        CREATE TABLE odd (id int PRIMARY KEY, n numeric, f float8, d date, ts timestamp, tz timestamptz, ns numeric[], fs float4[],
            ds date[], tss timestamp[], tzs timestamptz[], grid int8[][], flat int[], homes app.home[], kinds app.\"Kind of\"[]);
        INSERT INTO odd (id, n, f, d, ts, tz) VALUES
            (1, 'NaN', 'NaN', 'infinity', '-infinity', 'infinity'), (2, 'Infinity', '-Infinity', '0044-03-15 BC', '0044-03-15 BC', '0044-03-15 BC'),
            (3, 0, 0, '10000-01-01', '12345-01-01', '294276-12-31'), (4, 1, 1, '0001-02-29 BC', '0001-02-29 12:00 BC', '0001-02-29 12:00+00 BC'),
            (5, 2, 2, '9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59+00');
        INSERT INTO odd (id, ns, fs, ds, tss, tzs) VALUES (6, '{{1.50,NaN,-Infinity,NULL}}', '{{0.1,NaN,Infinity}}',
            '{{infinity,0044-03-15 BC,10000-01-01,0001-02-29 BC,2024-02-29}}', '{{-infinity,0001-02-29 12:00 BC,12345-01-01}}', '{{infinity,2024-02-29 12:00+02}}');
        INSERT INTO odd (id, grid, flat) VALUES (7, '{{{{1,2}},{{9007199254740993,NULL}}}}', '[5:6]={{1,2}}'), (8, '{{1}}', '{{}}');
        INSERT INTO odd (id, homes, kinds) VALUES (9, ARRAY[('Main St', 1, 'infinity', '0044-03-15 BC', '0001-02-29 BC', 'NaN', '{{a}}', '\"1\"', (9007199254740993, 'NaN'), 'b c', true)::app.home, NULL],
            '{{a,\"b c\",NULL,\"NULL\"}}');
        CREATE TABLE grids (id int PRIMARY KEY, ns numeric[][], fs float8[][], ds date[][], tss timestamp[][], tzs timestamptz[][], js jsonb[][]);
        INSERT INTO grids VALUES (1, '{{{{1.50,NaN}},{{Infinity,2}}}}', '{{{{0.5,NaN}},{{-Infinity,2}}}}', '{{{{0001-02-29 BC,infinity}},{{0044-03-15 BC,10000-01-01}}}}',
            '{{{{0001-02-29 12:00 BC,-infinity}},{{12345-01-01,NULL}}}}', '{{{{2024-02-29 12:00+02,infinity}},{{0044-03-15 BC,294276-12-31}}}}', '{{{{\"\\\"1\\\"\",NULL}},{{1,null}}}}');
        CREATE TABLE copied AS SELECT id, grid AS flat FROM odd;
        CREATE VIEW seen AS SELECT id, homes FROM odd;"));
    let read = |settings: &str, columns: &[&str], id: u32| {
        let query = Query {
            conditions: vec![Condition::new("id", Comparison::Equals, json!(id))],
            columns: columns.iter().map(|column| column.to_string()).collect(),
            limit: 1,
            ..Query::default()
        };
        let page = both.on(Which::Postgresql, || {
            SqlAdapter::open(settings, &describe(settings)?)?
                .read(&query)
                .map(show)
        });
        serde_json::from_str::<Value>(&page.expect(settings).0).expect("JSON")[0].take()
    };
    let odd = r#"{"connection":"db","table":"odd"}"#;
    let (n, scalars) = (Value::Null, ["n", "f", "d", "ts", "tz"]);
    for (id, expected) in [
        (1, json!([n, n, n, n, n])),
        (2, json!([n, n, n, n, n])),
        (3, json!(["0", 0, n, n, n])),
        (
            4,
            json!([
                "1",
                1,
                "0000-02-29",
                "0000-02-29T12:00:00Z",
                "0000-02-29T12:00:00Z"
            ]),
        ),
        (
            5,
            json!([
                "2",
                2,
                "9999-12-31",
                "9999-12-31T23:59:59Z",
                "9999-12-31T23:59:59Z"
            ]),
        ),
    ] {
        let record = read(odd, &scalars, id);
        assert_eq!(
            Value::from(scalars.map(|column| record[column].clone()).to_vec()),
            expected,
            "{id}"
        );
    }
    assert_eq!(
        read(odd, &["ns", "fs", "ds", "tss", "tzs"], 6),
        json!({"ns": ["1.5", n, n, n], "fs": [0.1, n, n], "ds": [n, n, n, "0000-02-29", "2024-02-29"],
            "tss": [n, "0000-02-29T12:00:00Z", n], "tzs": [n, "2024-02-29T10:00:00Z"]})
    );
    assert_eq!(
        read(odd, &["grid", "flat"], 7),
        json!({"grid": [["1", "2"], ["9007199254740993", n]], "flat": [1, 2]})
    );
    assert_eq!(
        read(odd, &["grid", "flat"], 8),
        json!({"grid": ["1"], "flat": []})
    );
    let homes = json!([{"street": "Main St", "zip": 1, "Since": n, "seen": n, "day": "0000-02-29", "rent": n, "tags": ["a"], "more": "1",
        "place": {"x": "9007199254740993", "y": n}, "kind": "b c", "open": true}, n]);
    assert_eq!(
        read(odd, &["homes", "kinds"], 9),
        json!({"homes": homes, "kinds": ["a", "b c", n, "NULL"]})
    );
    let grids = json!([["1.5", n], [n, "2"]]);
    assert_eq!(
        read(
            r#"{"connection":"db","table":"grids"}"#,
            &["ns", "fs", "ds", "tss", "tzs", "js"],
            1
        ),
        json!({"ns": grids, "fs": [[0.5, n], [n, 2]], "ds": [["0000-02-29", n], [n, n]],
            "tss": [["0000-02-29T12:00:00Z", n], [n, n]], "tzs": [["2024-02-29T10:00:00Z", n], [n, n]], "js": [["1", n], [1, n]]})
    );
    // Neither says how many dimensions there are.
    assert_eq!(
        read(r#"{"connection":"db","table":"copied"}"#, &["flat"], 7),
        json!({"flat": [["1", "2"], ["9007199254740993", n]]})
    );
    let query = r#"{"connection":"db","query":"SELECT id, grid, homes, kinds FROM odd"}"#;
    assert_eq!(
        read(query, &["grid"], 7),
        json!({"grid": [["1", "2"], ["9007199254740993", n]]})
    );
    assert_eq!(
        read(query, &["homes", "kinds"], 9),
        json!({"homes": homes, "kinds": ["a", "b c", n, "NULL"]})
    );
    let view = both.on(Which::Postgresql, || {
        describe(r#"{"connection":"db","table":"seen"}"#)
    });
    assert!(outline(&view.expect("described")).contains("homes:List"));
}

/// A domain is the type that it stands on, over whichever other domains, also as the element of an array and in a query.
#[test]
fn domains_are_the_types_that_they_stand_on() {
    let both = Both::filled("", &format!("{TYPES}
        CREATE DOMAIN app.grid AS int[][];
        CREATE TYPE app.stay AS (paid app.price, seen app.moment[]);
        CREATE TABLE stays (id int PRIMARY KEY, paid app.price, prices app.price[], seen app.moment[], grid app.grid, grids app.grid[],
            stays app.stay[]);
        INSERT INTO stays VALUES (1, 1.50, '{{1.50,NaN,NULL}}', '{{infinity,2024-02-29 12:00+02}}', '{{{{1,2}}}}', ARRAY['{{1,2}}'::app.grid],
            ARRAY[(2.50, '{{infinity}}')::app.stay])"));
    let columns = ["paid", "prices", "seen", "grid", "grids", "stays"];
    let query = Query {
        columns: columns.map(str::to_owned).to_vec(),
        limit: 9,
        ..Query::default()
    };
    let table = r#"{"connection":"db","table":"stays"}"#;
    let of_query = r#"{"connection":"db","query":"SELECT id, paid, prices, seen, grid, grids, stays FROM stays"}"#;
    for settings in [table, of_query] {
        let page = both.on(Which::Postgresql, || {
            SqlAdapter::open(settings, &describe(settings)?)?
                .read(&query)
                .map(show)
        });
        let records: Value = serde_json::from_str(&page.expect(settings).0).expect("JSON");
        let n = Value::Null;
        assert_eq!(
            records,
            json!([{"paid": "1.5", "prices": ["1.5", n, n], "seen": [n, "2024-02-29T10:00:00Z"], "grid": [[1, 2]],
                "grids": ["{1,2}"], "stays": [{"paid": "2.5", "seen": [n]}]}]),
            "{settings}"
        );
    }
    let record = json!({"paid": "3.25", "prices": ["7", null], "seen": ["2024-02-29T10:00:00Z"],
        "stays": [{"paid": "1.5", "seen": ["2024-02-29T10:00:00Z"]}]});
    let written = both.on(Which::Postgresql, || {
        let change = Change {
            key: object(json!({"id": 1})),
            record: object(record.clone()),
            ..Change::new(Verb::Update)
        };
        SqlAdapter::open(table, &describe(table)?)?.write(&change)
    });
    let written: Value = serde_json::from_str(&written.expect("written")).expect("JSON");
    for (name, value) in object(record) {
        assert_eq!(written[&name], value, "{name}");
    }
}

/// The catalogue counts these among the arrays, which they are not spelled as: a list with one ended.
#[test]
fn vectors_of_postgresql_are_texts() {
    let both = Both::filled(
        "",
        "CREATE TABLE vectors (id int PRIMARY KEY, twos int2vector, oids oidvector); INSERT INTO vectors VALUES (1, '1 2', '7'), (2, '', NULL);",
    );
    let query = Query {
        columns: ["id", "twos", "oids"].map(str::to_owned).to_vec(),
        order: vec![Order::parse("id")],
        limit: 9,
        ..Query::default()
    };
    for settings in [
        r#"{"connection":"db","table":"vectors"}"#,
        r#"{"connection":"db","query":"SELECT id, twos, oids FROM vectors"}"#,
    ] {
        let page = both.on(Which::Postgresql, || {
            SqlAdapter::open(settings, &describe(settings)?)?
                .read(&query)
                .map(show)
        });
        let records: Value = serde_json::from_str(&page.expect(settings).0).expect("JSON");
        assert_eq!(
            records,
            json!([{"id": 1, "twos": "1 2", "oids": "7"}, {"id": 2, "twos": "", "oids": null}])
        );
    }
}

/// A value that is shown as null is null in conditions and orders, in a zone of any kind.
#[test]
fn dates_beyond_the_value_table_are_among_the_nulls() {
    let days = [
        "infinity",
        "0044-03-15 BC",
        "2024-02-29",
        "10000-01-02",
        "0001-12-31 BC",
        "9999-12-30",
        "-infinity",
    ];
    let rows: Vec<_> = days
        .iter()
        .enumerate()
        .map(|(id, day)| format!("({id}, '{day}', '{day}', '{day}')"))
        .collect();
    let both = Both::filled(
        "",
        &format!(
            "CREATE TABLE days (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz); INSERT INTO days VALUES {}",
            rows.join(", ")
        ),
    );
    for zone in ["UTC", "+05:30", "America/New_York"] {
        for column in ["d", "ts", "tz"] {
            let ids = |query: Query| {
                let page = both.on(Which::Postgresql, || {
                    let settings = r#"{"connection":"db","table":"days"}"#;
                    let shape = Shape {
                        timezone: Some(zone.to_owned()),
                        ..describe(settings)?
                    };
                    SqlAdapter::open(settings, &shape)?.read(&query).map(show)
                });
                let (records, next) = page.expect(column);
                let records: Vec<Value> = serde_json::from_str(&records).expect("records");
                (
                    records
                        .iter()
                        .map(|record| record["id"].to_string())
                        .collect::<String>(),
                    next,
                )
            };
            let empty =
                |value: bool| vec![Condition::new(column, Comparison::IsEmpty, json!(value))];
            assert_eq!(
                ids(Query {
                    conditions: empty(true),
                    limit: 9,
                    ..Query::default()
                })
                .0,
                "0136",
                "{zone} {column}"
            );
            assert_eq!(
                ids(Query {
                    conditions: empty(false),
                    limit: 9,
                    ..Query::default()
                })
                .0,
                "245",
                "{zone} {column}"
            );
            for (by, expected) in [
                (column.to_owned(), "4250136"),
                (format!("-{column}"), "5240136"),
            ] {
                let mut query = Query {
                    order: vec![Order::parse(&by)],
                    limit: 2,
                    ..Query::default()
                };
                let mut walked = String::new();
                loop {
                    let (ids, next) = ids(query.clone());
                    walked += &ids;
                    query.cursor = next;
                    if query.cursor.is_none() {
                        break;
                    }
                }
                assert_eq!(walked, expected, "{zone} {by}");
            }
        }
    }
}

/// An array that no text of PostgreSQL is refused with its column, and nothing is sent.
#[test]
fn a_list_that_an_array_cannot_hold_is_refused() {
    let both = Both::filled(
        "",
        "CREATE TABLE lists (id int PRIMARY KEY, texts text[], grid int[][], times time[])",
    );
    for (column, value) in [
        ("texts", json!(["a\0b"])),
        ("texts", json!([["a"]])),
        ("grid", json!([[], []])),
        ("grid", json!([[1], [2, 3]])),
        ("grid", json!({"a": 1})),
        ("grid", json!(7)),
        ("times", json!(["soon"])),
    ] {
        let done = both.on(Which::Postgresql, || {
            let settings = r#"{"connection":"db","table":"lists"}"#;
            let change = Change {
                record: object(json!({"id": 1, column: value.clone()})),
                ..Change::new(Verb::Create)
            };
            SqlAdapter::open(settings, &describe(settings)?)?.write(&change)
        });
        assert_eq!(
            done.map_err(|error| error.code),
            Err("invalid".to_owned()),
            "{column} {value}"
        );
    }
}

/// The address of a host is shown without a mask, alone and in an array, and is found so.
#[test]
fn addresses_of_postgresql_are_spelled_as_the_database_shows_them() {
    let both = Both::filled(
        "",
        "CREATE TABLE logins (ip inet PRIMARY KEY, ips inet[]);
         INSERT INTO logins VALUES ('10.0.0.1', '{10.0.0.1,::1}'), ('10.0.0.1/8', NULL), ('::1', '{::1/64}');",
    );
    let settings = r#"{"connection":"db","table":"logins"}"#;
    let opened = both
        .on(Which::Postgresql, || {
            SqlAdapter::open(settings, &describe(settings)?)
        })
        .expect("described");
    let mut query = Query {
        limit: 1,
        ..Query::default()
    };
    let mut walked = Vec::new();
    for _ in 0..9 {
        let page = both.on(Which::Postgresql, || opened.read(&query));
        let page = page.expect("a page");
        walked.push(page.records);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let expected = [
        r#"[{"ip":"10.0.0.1","ips":["10.0.0.1","::1"]}]"#,
        r#"[{"ip":"10.0.0.1/8","ips":null}]"#,
        r#"[{"ip":"::1","ips":["::1/64"]}]"#,
    ];
    assert_eq!(walked, expected);
    for (at, ip) in ["10.0.0.1", "10.0.0.1/8", "::1"].into_iter().enumerate() {
        let query = Query {
            conditions: vec![Condition::new("ip", Comparison::Equals, json!(ip))],
            limit: 9,
            ..Query::default()
        };
        let page = both.on(Which::Postgresql, || opened.read(&query));
        assert_eq!(page.expect(ip).records, expected[at]);
    }
}
