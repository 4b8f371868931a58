//! Tests for MySQL and MariaDB alone: types, dates of zeros, collations that take different texts for one.

use weir_plugin_sdk::{
    Adapter, Change, Comparison, Condition, Order, Query, Shape, SummaryQuery, Verb, serde_json,
    serde_json::{Value, json},
    summary::{DateStep, SummaryFunction, SummaryGroup, SummaryMeasure},
    testing,
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe, object, open, outline, read_all, show, walk, write};

const SETTINGS: &str = r#"{"connection":"db","table":"kinds"}"#;

fn read(both: &Both, table: &str, query: &Query) -> String {
    let page = both.on(Which::Mysql, || open(table)?.read(query).map(show));
    page.expect(table).0
}

fn where_is(column: &str, comparison: Comparison, value: impl Into<Value>) -> Query {
    Query {
        conditions: vec![Condition::new(column, comparison, value.into())],
        columns: vec!["id".into()],
        limit: 100,
        ..Query::default()
    }
}

#[test]
fn types_of_its_own_have_a_place() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE kinds (id int AUTO_INCREMENT PRIMARY KEY, u int unsigned, y year, t time, tf time(3), b bit(1), bits bit(4),
            e enum('small', 'LARGE'), s set('p', 'q'), j json, l varchar(9) CHARACTER SET latin1, f float, zone timestamp(3) NULL,
            odd boolean, flag boolean, uu uuid, big bigint unsigned, raw varbinary(3));
         INSERT INTO kinds VALUES (1, 4294967295, 2024, '07:08:09', '-10:00:00.5', 1, b'0101', 'LARGE', 'p,q', '{\"a\": [1.50]}', 'ü',
            0.1, '2024-05-06 07:08:09.5', 2, 1, '123e4567-e89b-12d3-a456-426655440000', 18446744073709551615, x'00');
         INSERT INTO kinds (id) VALUES (2);",
    );
    let shape = both
        .on(Which::Mysql, || describe(SETTINGS))
        .expect("described");
    assert_eq!(
        outline(&shape),
        "id:Integer! u:Integer y:Integer t:String tf:String b:Boolean bits:String e:String s:String j:Json l:String f:Number \
         zone:Datetime odd:Integer flag:Boolean uu:String big:Decimal key=id write=create,update,delete read_only=None"
    );
    assert_eq!(shape.left_out, ["raw"]);
    let whole = concat!(
        r#"{"id":1,"u":4294967295,"y":2024,"t":"07:08:09","tf":"-10:00:00.5","b":true,"bits":"0101","e":"LARGE","s":"p,q","#,
        r#""j":{"a":[1.50]},"l":"ü","f":0.1,"zone":"2024-05-06T07:08:09.5Z","odd":2,"flag":true,"#,
        r#""uu":"123e4567-e89b-12d3-a456-426655440000","big":"18446744073709551615"}"#
    );
    let one = Query {
        conditions: vec![Condition::new("id", Comparison::Equals, 1)],
        limit: 9,
        ..Query::default()
    };
    assert_eq!(read(&both, "kinds", &one), format!("[{whole}]"));
    let record: Value = serde_json::from_str(whole).expect("JSON");
    for (column, value) in object(record.clone()) {
        if column != "j" {
            let found = read(
                &both,
                "kinds",
                &where_is(&column, Comparison::Equals, value),
            );
            assert_eq!(found, r#"[{"id":1}]"#, "{column}");
        }
        // Each order is walked to its end, nulls last.
        if column != "j" {
            let query = Query {
                order: vec![Order::parse(&column)],
                columns: vec!["id".into()],
                limit: 1,
                ..Query::default()
            };
            assert_eq!(read(&both, "kinds", &query), r#"[{"id":1}]"#, "by {column}");
        }
    }
    for (column, value) in [("l", "日"), ("e", "large"), ("t", "7:08:09"), ("l", "ü ")] {
        let found = read(&both, "kinds", &where_is(column, Comparison::Equals, value));
        assert_eq!(found, "[]", "{column} = {value}");
    }
    let mut copy = object(record);
    copy.remove("id");
    let written = both.on(Which::Mysql, || {
        write(
            "kinds",
            Verb::Create,
            json!({}),
            Value::Object(copy.clone()),
        )
    });
    assert_eq!(
        written.expect("written"),
        whole
            .replace("\"id\":1,", "\"id\":3,")
            .replace("1.50", "1.5")
    );
    for (column, value) in [
        ("e", json!("huge")),
        ("bits", json!("0102")),
        ("bits", json!("%1")),
        // The servers take these for the places of members, and round this.
        ("e", json!("1")),
        ("e", json!(" 2")),
        ("s", json!("3")),
        ("big", json!("1.5")),
        ("l", json!("日")),
        ("y", json!(1)),
    ] {
        let refused = both.on(Which::Mysql, || {
            write(
                "kinds",
                Verb::Update,
                json!({"id": 3}),
                json!({column: value}),
            )
        });
        let refused = refused.expect_err(column);
        assert_eq!(
            (refused.code.as_str(), refused.field.as_deref()),
            ("invalid", Some(column))
        );
    }
}

#[test]
fn a_year_is_compared_with_all_its_digits() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE wines (id int PRIMARY KEY, y year); INSERT INTO wines VALUES (1, 2024), (2, 1901), (3, NULL);",
    );
    for (comparison, found) in [
        (Comparison::AtLeast, r#"[{"id":1},{"id":2}]"#),
        (Comparison::AtMost, "[]"),
        (Comparison::Equals, "[]"),
        (Comparison::NotEquals, r#"[{"id":1},{"id":2}]"#),
    ] {
        let query = where_is("y", comparison, 25);
        assert_eq!(read(&both, "wines", &query), found, "{comparison} 25");
    }
}

#[test]
fn records_are_written_whatever_their_key_is() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE made (id varchar(40) DEFAULT (uuid()) PRIMARY KEY, v text DEFAULT 'x');
         CREATE TABLE keyless (v text, n int DEFAULT 7);
         CREATE TABLE named (id int PRIMARY KEY, code int, UNIQUE KEY uq_code (code)); INSERT INTO named VALUES (1, 1);
         CREATE TABLE swallowed (id int PRIMARY KEY);
         CREATE TABLE padded (b bit(5), at datetime, PRIMARY KEY (b, at));
         CREATE TRIGGER moved BEFORE INSERT ON swallowed FOR EACH ROW SET NEW.id = NEW.id + 1;",
    );
    let create = |table: &str, record: Value| {
        both.on(Which::Mysql, || {
            write(table, Verb::Create, json!({}), record)
        })
    };
    let made = create("made", json!({})).expect("made");
    assert!(made.contains(r#","v":"x"}"#) && made.len() > 50, "{made}");
    let given = create("made", json!({"id": "a"})).expect("given");
    assert_eq!(given, r#"{"id":"a","v":"x"}"#);
    let keyless = create("keyless", json!({"v": "y"})).expect("keyless");
    assert_eq!(keyless, r#"{"v":"y","n":7}"#);
    let taken = create("named", json!({"id": 2, "code": 1})).expect_err("taken");
    assert_eq!(
        (taken.code.as_str(), taken.field.as_deref()),
        ("conflict", Some("code"))
    );
    assert_eq!(taken.message, "There is a record with this value already.");
    // A trigger and a column write another key than the given one.
    let moved = create("swallowed", json!({"id": 1}));
    assert_eq!(moved.expect("moved"), r#"{"id":2}"#);
    let padded = create(
        "padded",
        json!({"b": "101", "at": "2024-01-01T00:00:00.9Z"}),
    );
    assert_eq!(
        padded.expect("padded"),
        r#"{"b":"00101","at":"2024-01-01T00:00:00Z"}"#
    );
    let renamed = both.on(Which::Mysql, || {
        let table = open("made")?;
        table.write(&Change {
            key: object(json!({"id": "a"})),
            record: object(json!({"id": "b"})),
            ..Change::new(Verb::Update)
        })
    });
    assert_eq!(renamed.expect("renamed"), r#"{"id":"b","v":"x"}"#);
}

/// A trigger may write another key than the one it is given, which another record has.
#[test]
fn a_record_that_a_trigger_gives_another_key_is_not_mixed_up() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE named (code varchar(9) PRIMARY KEY, v text);
         INSERT INTO named VALUES ('a', 'another'), ('b', 'own');
         CREATE TRIGGER made BEFORE INSERT ON named FOR EACH ROW SET NEW.code = CONCAT(NEW.code, 'x');
         CREATE TRIGGER kept BEFORE UPDATE ON named FOR EACH ROW SET NEW.code = CONCAT(NEW.code, 'y');
         CREATE TABLE plain (code varchar(9) PRIMARY KEY, v text);
         INSERT INTO plain VALUES ('a', 'another');",
    );
    let written = |table: &str, verb: Verb, key: Value, record: Value| {
        both.on(Which::Mysql, || write(table, verb, key, record))
    };
    let created = written("named", Verb::Create, json!({}), json!({"code": "a"}));
    assert_eq!(created.expect("created"), r#"{"code":"ax","v":null}"#);
    let renamed = json!({"code": "a", "v": "own"});
    let renamed = written("named", Verb::Update, json!({"code": "b"}), renamed);
    assert!(renamed.expect_err("renamed").is("upstream_error"));
    let all = Query {
        limit: 9,
        ..Query::default()
    };
    assert_eq!(
        read(&both, "named", &all),
        r#"[{"code":"a","v":"another"},{"code":"ax","v":null},{"code":"b","v":"own"}]"#
    );
    let taken = written("plain", Verb::Create, json!({}), json!({"code": "a"}));
    assert!(taken.expect_err("taken").is("conflict"));
    let same = json!({"code": "a", "v": "same"});
    let same = written("plain", Verb::Update, json!({"code": "a"}), same);
    assert_eq!(same.expect("the same"), r#"{"code":"a","v":"same"}"#);
}

#[test]
fn dates_of_zeros_are_null() {
    let both = Both::filled(
        "CREATE TABLE zeros (id INTEGER PRIMARY KEY, day DATE, at DATETIME);
         INSERT INTO zeros VALUES (1, NULL, NULL), (2, '2024-02-29', '2024-02-29 01:02:03'), (3, NULL, NULL)",
        "CREATE TABLE zeros (id int PRIMARY KEY, day date, at timestamp);
         INSERT INTO zeros VALUES (1, NULL, NULL), (2, '2024-02-29', '2024-02-29 01:02:03'), (3, NULL, NULL)",
    )
    .with_mysql(
        "SET sql_mode = '';
         CREATE TABLE zeros (id int PRIMARY KEY, day date NOT NULL DEFAULT '0000-00-00', at datetime NOT NULL DEFAULT '0000-00-00 00:00:00');
         INSERT INTO zeros VALUES (1, '0000-00-00', '0000-00-00'), (2, '2024-02-29', '2024-02-29 01:02:03'), (3, '0000-00-00', '0000-00-00')",
    );
    let described = both
        .same(|| describe(r#"{"connection":"db","table":"zeros"}"#).map(|shape| outline(&shape)));
    assert!(
        described
            .expect("described")
            .starts_with("id:Integer! day:Date at:Datetime ")
    );
    for by in ["day", "-day", "at", "-at"] {
        let whole = walk(&both, "zeros", &[Order::parse(by)], 100);
        let ids: Vec<_> = whole.iter().map(|record| &record[..7]).collect();
        assert_eq!(ids, [2, 1, 3].map(|id| format!("{{\"id\":{id}")), "{by}");
        assert_eq!(walk(&both, "zeros", &[Order::parse(by)], 1), whole, "{by}");
    }
    for (comparison, value, found) in [
        (Comparison::IsEmpty, json!(true), "1,3"),
        (Comparison::AtMost, json!("2024-12-31"), "2"),
        (Comparison::AtLeast, json!("0000-02-29"), "2"),
        (Comparison::NotEquals, json!("2024-02-28"), "2"),
    ] {
        let query = where_is("day", comparison, value);
        let page = both
            .same(|| open("zeros")?.read(&query).map(show))
            .expect("a page");
        let ids = page.0.replace("{\"id\":", "").replace('}', "");
        assert_eq!(ids, format!("[{found}]"), "{comparison}");
    }
}

/// A value that is shown as null makes a column of PostgreSQL and MariaDB nullable, where it is there when the table is described.
#[test]
fn values_that_are_shown_as_null_make_their_column_nullable() {
    let both = Both::filled(
        "",
        "CREATE TABLE born (id int PRIMARY KEY, day date NOT NULL, at timestamp NOT NULL, seen timestamptz NOT NULL, sure date NOT NULL,
             n numeric NOT NULL, f float8 NOT NULL, g float4 NOT NULL);
         INSERT INTO born VALUES (1, '2024-01-01', '-infinity', '10000-01-01', '2024-01-01', 'NaN', 'infinity', 1),
             (2, 'infinity', '2024-01-01', '2024-01-01', '2024-01-01', 1, 1, 1);",
    )
    .with_mysql(
        "SET sql_mode = '';
         CREATE TABLE born (id int PRIMARY KEY, day date NOT NULL, at datetime NOT NULL,
             seen timestamp NOT NULL DEFAULT '2024-01-01 00:00:00', sure date NOT NULL);
         INSERT INTO born VALUES (1, '2024-01-01', '0000-00-00', '0000-00-00', '2024-01-01'),
             (2, '0000-00-00', '2024-01-01', '2024-01-01', '2024-01-01');",
    );
    for (which, expected) in [
        (
            Which::Postgresql,
            "id:Integer! day:Date at:Datetime seen:Datetime sure:Date! n:Decimal f:Number g:Number! key=id ",
        ),
        (
            Which::Mysql,
            "id:Integer! day:Date at:Datetime seen:Datetime sure:Date! key=id ",
        ),
    ] {
        let shape = both.on(which, || describe(r#"{"connection":"db","table":"born"}"#));
        let outline = outline(&shape.expect("described"));
        assert!(outline.starts_with(expected), "{outline}");
    }
}

/// A row that comes later with such a value is left out where the column is shown or ordered by. One in a key that is there when
/// the table is described tells no record apart.
#[test]
fn later_values_that_are_shown_as_null_end_no_list() {
    let both = Both::filled(
        "",
        "CREATE TABLE late (id int PRIMARY KEY, day date NOT NULL, n int); INSERT INTO late VALUES (1, '2024-01-01', 3);
         CREATE TABLE terms (id int, until timestamp, PRIMARY KEY (id, until));
         INSERT INTO terms VALUES (1, '2024-01-01'), (1, 'infinity');",
    )
    .with_mysql(
        "SET sql_mode = ''; CREATE TABLE late (id int PRIMARY KEY, day date NOT NULL, n int); INSERT INTO late VALUES (1, '2024-01-01', 3);
         CREATE TABLE terms (id int, until datetime, PRIMARY KEY (id, until));
         INSERT INTO terms VALUES (1, '2024-01-01'), (1, '0000-00-00');",
    );
    let tables = [Which::Postgresql, Which::Mysql].map(|which| {
        let table = both.on(which, || open("late")).expect("described");
        (which, table)
    });
    both.fill(
        "",
        "INSERT INTO late VALUES (2, 'infinity', 2), (3, '2024-01-03', 1)",
    );
    both.fill_mysql(
        "SET sql_mode = ''; INSERT INTO late VALUES (2, '0000-00-00', 2), (3, '2024-01-03', 1)",
    );
    for (which, table) in &tables {
        for (by, limit, columns, expected) in [
            ("id", 1, "id day", "1,3"),
            ("id", 9, "id day", "1,3"),
            ("-day", 1, "id day", "3,1"),
            ("n", 2, "id day", "3,1"),
            ("n", 2, "id", "3,2,1"),
        ] {
            let mut query = Query {
                columns: columns.split(' ').map(str::to_owned).collect(),
                order: vec![Order::parse(by)],
                limit,
                ..Query::default()
            };
            let (mut walked, mut left_out) = (Vec::new(), Value::Null);
            for _ in 0..9 {
                let page = both.on(*which, || table.read(&query)).expect("a page");
                let mut records: Value = serde_json::from_str(&page.records).expect("records");
                if records.is_object() {
                    left_out = records["left_out"].take();
                    records = records["records"].take();
                }
                let records = records.as_array().expect("records");
                walked.extend(records.iter().map(|record| record["id"].to_string()));
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(walked.join(","), expected, "by {by}, {limit} at once");
            let expected = match columns {
                "id" => Value::Null,
                _ => json!({"count": 1, "columns": ["day"], "more": false}),
            };
            assert_eq!(left_out, expected, "by {by}, {limit} at once");
        }
        let shape = both.on(*which, || {
            describe(r#"{"connection":"db","table":"terms"}"#)
        });
        assert_eq!(
            outline(&shape.expect("described")),
            "id:Integer! until:Datetime key= write=create read_only=None"
        );
    }
}

/// A server keeps the 15th of no month and the 31st of February, where its mode lets it.
#[test]
fn days_that_no_calendar_has_are_null() {
    let whole = "INSERT INTO bills VALUES (1, NULL, NULL), (2, '2024-02-29', '2024-02-29 01:02:03'), (3, NULL, NULL), (4, NULL, NULL),
         (5, '2023-12-31', '2023-12-31 23:59:59')";
    let both = Both::filled(
        &format!("CREATE TABLE bills (id INTEGER PRIMARY KEY, day DATE, at DATETIME); {whole}"),
        &format!("CREATE TABLE bills (id int PRIMARY KEY, day date, at timestamp); {whole}"),
    )
    .with_mysql(
        "SET sql_mode = 'ALLOW_INVALID_DATES'; CREATE TABLE bills (id int PRIMARY KEY, day date, at datetime, KEY (day), KEY (at));
         INSERT INTO bills VALUES (1, '2024-00-15', '2024-00-15 01:00:00'), (2, '2024-02-29', '2024-02-29 01:02:03'),
             (3, '2024-02-31', '2024-02-31 01:00:00'), (4, '2024-02-00', '2024-02-00 01:00:00'),
             (5, '2023-12-31', '2023-12-31 23:59:59')",
    );
    for by in ["day", "-day", "at", "-at"] {
        let whole = walk(&both, "bills", &[Order::parse(by)], 100);
        assert_eq!(whole.len(), 5, "{by}: {whole:?}");
        for limit in [1, 2, 3] {
            assert_eq!(
                walk(&both, "bills", &[Order::parse(by)], limit),
                whole,
                "{by}"
            );
        }
    }
    for column in ["day", "at"] {
        for (comparison, value, found) in [
            (Comparison::IsEmpty, json!(true), "1,3,4"),
            (Comparison::IsEmpty, json!(false), "2,5"),
        ] {
            let query = where_is(column, comparison, value);
            let page = both
                .same(|| open("bills")?.read(&query).map(show))
                .expect("a page");
            let ids = page.0.replace("{\"id\":", "").replace('}', "");
            assert_eq!(ids, format!("[{found}]"), "{column}: {comparison}");
        }
    }
    for (comparison, value, found) in [
        (Comparison::AtMost, json!("2024-12-31"), "2,5"),
        (Comparison::AtLeast, json!("2024-01-01"), "2"),
        (Comparison::NotEquals, json!("2024-02-29"), "5"),
    ] {
        let query = where_is("day", comparison, value);
        let page = both
            .same(|| open("bills")?.read(&query).map(show))
            .expect("a page");
        let ids = page.0.replace("{\"id\":", "").replace('}', "");
        assert_eq!(ids, format!("[{found}]"), "{comparison}");
    }
}

/// Texts that the column's collation takes for one are different texts to the value table.
#[test]
fn texts_are_compared_and_grouped_by_their_bytes() {
    let rows = "INSERT INTO words VALUES (1, 'a'), (2, 'A'), (3, 'a '), (4, 'á'), (5, NULL), (6, 'a'), (7, '');";
    let both = Both::filled(
        &format!("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT); {rows}"),
        &format!("CREATE TABLE words (id int PRIMARY KEY, word text); {rows}"),
    )
    .with_mysql(&format!(
        "CREATE TABLE words (id int PRIMARY KEY, word varchar(9), KEY (word)); {rows}"
    ));
    for by in ["word", "-word"] {
        let whole = walk(&both, "words", &[Order::parse(by)], 100);
        assert_eq!(walk(&both, "words", &[Order::parse(by)], 1), whole);
    }
    for (comparison, value, count) in [
        (Comparison::Equals, "a", 2),
        (Comparison::Equals, "a ", 1),
        (Comparison::NotEquals, "a", 4),
        (Comparison::Contains, " ", 1),
        (Comparison::ContainsCi, "A", 4),
        (Comparison::StartsWith, "a", 3),
        (Comparison::AtLeast, "b", 1),
    ] {
        let query = where_is("word", comparison, value);
        let page = both
            .same(|| open("words")?.read(&query).map(show))
            .expect("a page");
        assert_eq!(
            page.0.matches("id").count(),
            count,
            "{comparison} {value}: {}",
            page.0
        );
    }
    let summary = SummaryQuery {
        groups: vec![SummaryGroup {
            name: "word".to_owned(),
            column: "word".to_owned(),
            step: None,
        }],
        measures: vec![SummaryMeasure {
            name: "n".to_owned(),
            function: SummaryFunction::Count,
            column: None,
        }],
        limit: 100,
        ..SummaryQuery::default()
    };
    let groups = both.same(|| Ok(open("words")?.summarize(&summary)?.records));
    assert_eq!(groups.expect("groups").matches("word").count(), 6);
    // The index of the column's own collation serves it all the same.
    let text = both.on(Which::Mysql, || {
        open("words")?.read(&where_is("word", Comparison::Equals, "a"))?;
        Ok(testing::sql::statements().pop().expect("a statement").text)
    });
    assert!(text.expect("asked").contains("\"word\" = ? AND "));
}

/// The time at which a row's version ends is a part of its key to MariaDB.
#[test]
fn a_versioned_record_is_named_by_its_own_key() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE prices (id int PRIMARY KEY, v int, since timestamp(6) GENERATED ALWAYS AS ROW START,
            until timestamp(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (since, until)) WITH SYSTEM VERSIONING;
         INSERT INTO prices (id, v) VALUES (1, 10), (2, 20)",
    );
    let shape = both
        .on(Which::Mysql, || {
            describe(r#"{"connection":"db","table":"prices"}"#)
        })
        .expect("described");
    assert_eq!(shape.key, ["id"]);
    for (verb, record) in [(Verb::Update, json!({"v": 11})), (Verb::Delete, json!({}))] {
        let written = both.on(Which::Mysql, || {
            write("prices", verb, json!({"id": 1}), record)
        });
        assert!(written.expect("written").contains("\"v\":11"));
    }
    let left = Query {
        columns: vec!["id".into()],
        limit: 9,
        ..Query::default()
    };
    assert_eq!(read(&both, "prices", &left), r#"[{"id":2}]"#);
}

/// A write that is refused afterwards could not be undone.
#[test]
fn a_table_whose_engine_has_no_transactions_is_not_written() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE kept (id int PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE loose (id int PRIMARY KEY) ENGINE=MyISAM;
         CREATE TABLE crash_safe (id int PRIMARY KEY) ENGINE=Aria",
    );
    for (table, is_written) in [("kept", true), ("loose", false), ("crash_safe", false)] {
        let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
        let shape = both.on(Which::Mysql, || describe(&settings));
        let capabilities = shape.expect(table).capabilities;
        assert_eq!(!capabilities.write.is_empty(), is_written, "{table}");
        let why = capabilities.read_only.unwrap_or_default();
        assert_eq!(
            why.contains("no transactions"),
            !is_written,
            "{table}: {why}"
        );
    }
}

/// A server orders texts by their first 1024 bytes.
#[test]
fn no_record_is_lost_between_pages_of_long_texts() {
    let long = "x".repeat(1_100);
    let rows: Vec<_> = [(1, "c"), (2, "a"), (3, "d"), (4, "b"), (5, "a")]
        .iter()
        .map(|(id, end)| format!("({id}, '{long}{end}')"))
        .collect();
    let both = Both::filled("", "").with_mysql(&format!(
        "CREATE TABLE texts (id int PRIMARY KEY, body text); INSERT INTO texts VALUES {}, (6, 'y'), (7, 'a')",
        rows.join(", ")
    ));
    for by in ["body", "-body"] {
        for limit in [1, 2, 3] {
            let query = Query {
                columns: vec!["id".into()],
                order: vec![Order::parse(by)],
                limit,
                ..Query::default()
            };
            let walked = read_all(query, |query| {
                both.on(Which::Mysql, || open("texts")?.read(query))
            });
            let mut ids: Vec<_> = walked.iter().filter_map(|one| one["id"].as_i64()).collect();
            ids.sort_unstable();
            assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7], "{by}, {limit} at a time");
        }
    }
}

/// A time that the clocks of a zone show twice is its first reading.
#[test]
fn times_are_those_of_the_zone() {
    let times = [
        "2024-10-27 01:59:59",
        "2024-10-27 02:00:00",
        "2024-10-27 02:30:00",
        "2024-10-27 02:59:59.5",
        "2024-10-27 03:00:00",
        "2024-10-27 03:59:59",
        "2024-04-07 01:15:00",
        "2024-04-07 01:45:00",
        "2024-04-07 02:15:00",
        "2024-10-27 00:30:00",
        "2024-10-27 04:30:00",
        "9998-12-31 23:59:59",
        "0002-01-01 00:00:00",
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
    )
    .with_mysql(&format!(
        "CREATE TABLE times (id int PRIMARY KEY, at datetime(6)); {rows}"
    ));
    for zone in [
        "UTC",
        "+05:30",
        "Europe/Vienna",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
    ] {
        let read = |query: &Query| {
            both.same(|| {
                let settings = r#"{"connection":"db","table":"times"}"#;
                let shape = Shape {
                    timezone: Some(zone.to_owned()),
                    ..describe(settings)?
                };
                SqlAdapter::open(settings, &shape)?.read(query)
            })
        };
        for by in ["at", "-at"] {
            let query = Query {
                order: vec![Order::parse(by)],
                limit: 4,
                ..Query::default()
            };
            let count = read_all(query, read).len();
            assert_eq!(count, times.len(), "{zone} by {by}");
        }
        // The second reading of a time is no record's, and comes behind the first.
        for moment in [
            "2024-10-27T00:30:00Z",
            "2024-10-27T01:30:00Z",
            "2024-10-27T01:59:59.5Z",
            "2024-04-06T15:10:00Z",
            "2024-10-27T02:10:00.1234567Z",
        ] {
            for comparison in [
                Comparison::Equals,
                Comparison::NotEquals,
                Comparison::AtLeast,
                Comparison::AtMost,
            ] {
                read(&where_is("at", comparison, moment)).expect("a page");
            }
        }
    }
}

/// A time that the clocks skip is shown as a later one, by which no list can go on.
#[test]
fn a_list_goes_on_behind_times_that_clocks_skip() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE shifts (id int PRIMARY KEY, at datetime);
         INSERT INTO shifts VALUES (1, '2024-03-31 01:59:00'), (2, '2024-03-31 02:10:00'), (3, '2024-03-31 02:30:00'),
             (4, '2024-03-31 02:30:00'), (5, '2024-03-31 03:20:00'), (6, NULL);",
    );
    let settings = r#"{"connection":"db","table":"shifts"}"#;
    for (by, expected) in [("at", "1 2 3 4 5 6"), ("-at", "5 3 4 2 1 6")] {
        for limit in [1, 2, 9] {
            let query = Query {
                columns: vec!["id".to_owned()],
                order: vec![Order::parse(by)],
                limit,
                ..Query::default()
            };
            let walked = read_all(query, |query| {
                both.on(Which::Mysql, || {
                    let mut shape = describe(settings)?;
                    shape.timezone = Some("Europe/Vienna".to_owned());
                    SqlAdapter::open(settings, &shape)?.read(query)
                })
            });
            let ids: Vec<_> = walked.iter().map(|one| one["id"].to_string()).collect();
            assert_eq!(ids.join(" "), expected, "by {by}, {limit} at once");
        }
    }
}

#[test]
fn days_are_counted_in_the_zone_where_it_is_known() {
    let both = Both::filled("", "").with_mysql(
        "CREATE TABLE moments (id int PRIMARY KEY, local datetime(6), at timestamp(6));
         INSERT INTO moments VALUES (1, '2026-10-04 23:59:59.9999', '2026-10-04 22:00:00')",
    );
    let ask = |column: &str, zone: &str, step| {
        let group = SummaryGroup {
            name: "g".to_owned(),
            column: column.to_owned(),
            step: Some(step),
        };
        let query = SummaryQuery {
            groups: vec![group],
            limit: 9,
            ..SummaryQuery::default()
        };
        both.on(Which::Mysql, || {
            let settings = r#"{"connection":"db","table":"moments"}"#;
            let shape = Shape {
                timezone: Some(zone.to_owned()),
                ..describe(settings)?
            };
            Ok(SqlAdapter::open(settings, &shape)?
                .summarize(&query)?
                .records)
        })
    };
    for (column, zone, step, label) in [
        ("local", "UTC", DateStep::Day, "2026-10-04"),
        ("local", "Europe/Vienna", DateStep::Week, "2026-W40"),
        ("at", "UTC", DateStep::Day, "2026-10-04"),
        ("at", "+02:30", DateStep::Day, "2026-10-05"),
        ("at", "-01:00", DateStep::Quarter, "2026-Q4"),
        ("at", "UTC", DateStep::Month, "2026-10"),
        ("at", "UTC", DateStep::Year, "2026"),
    ] {
        let found = ask(column, zone, step).expect("an answer");
        assert_eq!(
            found,
            format!(r#"[{{"g":"{label}"}}]"#),
            "{column} in {zone}"
        );
    }
    let unknown = ask("at", "Europe/Vienna", DateStep::Day).expect_err("a zone");
    assert!(unknown.is("unsupported"), "{unknown:?}");
}

/// Whatever zone the server itself is in, a moment that is written is the one that is read: a `timestamp` has each, and a time
/// without a zone none that it would show as another.
#[test]
fn a_moment_comes_out_as_it_went_in_or_is_refused() {
    let both = Both::filled(
        "",
        "CREATE TABLE moments (id int PRIMARY KEY, local timestamp, at timestamptz)",
    )
    .with_mysql(
        "SET GLOBAL time_zone = '-07:00';
         CREATE TABLE moments (id int PRIMARY KEY, local datetime(6), at timestamp(6) NULL)",
    );
    // Vienna: on from 2:00 to 3:00, and back from 3:00 to 2:00, of which the second reading is from 1:00Z to 2:00Z.
    let days = ["2024-03-31", "2024-10-27"];
    let clocks = [
        "00:00:00",
        "00:30:00",
        "00:59:59.5",
        "01:00:00",
        "01:30:00",
        "02:00:00",
    ];
    let moments: Vec<String> = days
        .iter()
        .flat_map(|day| clocks.iter().map(move |clock| format!("{day}T{clock}Z")))
        .collect();
    for which in [Which::Mysql, Which::Postgresql] {
        let write = |id: usize, column: &str, moment: &str| {
            both.on(which, || {
                let settings = r#"{"connection":"db","table":"moments"}"#;
                let shape = Shape {
                    timezone: Some("Europe/Vienna".to_owned()),
                    ..describe(settings)?
                };
                let record = object(json!({ "id": id, column: moment }));
                SqlAdapter::open(settings, &shape)?.write(&Change {
                    record,
                    ..Change::new(Verb::Create)
                })
            })
        };
        let mut refused = Vec::new();
        for (at, moment) in moments.iter().enumerate() {
            for (column, id) in [("local", at), ("at", at + 100)] {
                let written = match write(id, column, moment) {
                    Ok(record) => serde_json::from_str::<Value>(&record).expect("a record"),
                    Err(error) => {
                        assert_eq!(error.field.as_deref(), Some("local"), "{error}");
                        assert!(error.message.contains("twice"), "{error}");
                        refused.push(moment.as_str());
                        continue;
                    }
                };
                assert_eq!(written[column], **moment, "{column}");
            }
        }
        assert_eq!(refused, ["2024-10-27T01:00:00Z", "2024-10-27T01:30:00Z"]);
    }
}
