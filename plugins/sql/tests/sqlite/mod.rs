//! Tests for SQLite alone.

use weir_plugin_sdk::{
    Adapter, Comparison, Condition, Order, Query, Shape, Verb,
    serde_json::{Value, json},
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe, open, outline, read_all, write};

/// SQLite numbers a key that is the number of the row. For another one that it is not given it would keep a null.
#[test]
fn only_a_key_that_is_the_number_of_the_row_is_numbered() {
    let both = Both::filled(
        "CREATE TABLE plain (id INTEGER PRIMARY KEY, v TEXT);
         CREATE TABLE downwards (id INTEGER PRIMARY KEY DESC, v TEXT);
         CREATE TABLE apart (id INTEGER PRIMARY KEY, v TEXT) WITHOUT ROWID;",
        "",
    );
    for (table, is_numbered) in [("plain", true), ("downwards", false), ("apart", false)] {
        let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
        let shape = both.on(Which::Sqlite, || describe(&settings)).expect(table);
        assert_eq!(shape.key, ["id"], "{table}");
        assert_eq!(shape.fields[0].generated, is_numbered, "{table}");
        let given = both.on(Which::Sqlite, || {
            write(table, Verb::Create, json!({}), json!({"id": 7, "v": "a"}))
        });
        assert_eq!(given.expect(table), r#"{"id":7,"v":"a"}"#);
    }
}

/// SQLite sets the time of a change by a trigger behind it, which its RETURNING does not show.
#[test]
fn a_written_record_is_as_its_triggers_left_it() {
    let both = Both::filled(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, v TEXT, changed TEXT);
         CREATE TRIGGER made AFTER INSERT ON tasks BEGIN
             INSERT INTO log VALUES (new.id + 70); UPDATE tasks SET changed = 'made' WHERE id = new.id; END;
         CREATE TRIGGER kept AFTER UPDATE OF id, v ON tasks BEGIN UPDATE tasks SET changed = 'kept' WHERE id = new.id; END;
         CREATE TABLE log (id INTEGER PRIMARY KEY);
         CREATE TABLE pairs (a TEXT, b INT, changed TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
         CREATE TRIGGER paired AFTER INSERT ON pairs BEGIN UPDATE pairs SET changed = 'made' WHERE a = new.a AND b = new.b; END;",
        "",
    );
    let written = |table: &str, verb: Verb, key: Value, record: Value| {
        both.on(Which::Sqlite, || write(table, verb, key, record))
            .expect(table)
    };
    assert_eq!(
        written("tasks", Verb::Create, json!({}), json!({"v": "a"})),
        r#"{"id":1,"v":"a","changed":"made"}"#
    );
    assert_eq!(
        written("tasks", Verb::Create, json!({}), json!({"id": 9, "v": "b"})),
        r#"{"id":9,"v":"b","changed":"made"}"#
    );
    assert_eq!(
        written("tasks", Verb::Update, json!({"id": 9}), json!({"v": "c"})),
        r#"{"id":9,"v":"c","changed":"kept"}"#
    );
    assert_eq!(
        written("tasks", Verb::Update, json!({"id": 9}), json!({"id": 8})),
        r#"{"id":8,"v":"c","changed":"kept"}"#
    );
    assert_eq!(
        written("tasks", Verb::Delete, json!({"id": 8}), json!({})),
        r#"{"id":8,"v":"c","changed":"kept"}"#
    );
    assert_eq!(
        written("pairs", Verb::Create, json!({}), json!({"a": "x", "b": 1})),
        r#"{"a":"x","b":1,"changed":"made"}"#
    );
}

/// The least integer has no absolute value, which SQLite refuses to compute.
#[test]
fn the_least_integer_is_described_and_read() {
    let both = Both::filled(
        "CREATE TABLE least (id INTEGER PRIMARY KEY, big BIGINT, amount NUMERIC, free, ratio REAL, note TEXT);
         INSERT INTO least VALUES (1, -9223372036854775808, -9223372036854775808, -9223372036854775808, -9223372036854775808, 'a');",
        "",
    );
    let settings = r#"{"connection":"db","table":"least"}"#;
    let shape = both
        .on(Which::Sqlite, || describe(settings))
        .expect("a shape");
    assert_eq!(
        outline(&shape),
        "id:Integer! big:Decimal amount:Decimal free:Decimal ratio:Number note:String key=id \
         write=create,update,delete read_only=None"
    );
    let query = Query {
        order: ["amount", "free", "ratio", "big"]
            .map(Order::parse)
            .to_vec(),
        columns: ["big", "amount", "free"].map(str::to_owned).to_vec(),
        limit: 5,
        ..Query::default()
    };
    let page = both.on(Which::Sqlite, || open("least")?.read(&query));
    assert_eq!(
        page.expect("a page").records,
        r#"[{"big":"-9223372036854775808","amount":"-9223372036854775808","free":"-9223372036854775808"}]"#
    );
}

/// A column that keeps numbers beside texts shows what it is compared and ordered by.
#[test]
fn numbers_among_texts_are_shown_as_they_are_compared() {
    let both = Both::filled(
        "CREATE TABLE mixed (id INTEGER PRIMARY KEY, v VARIANT);
         INSERT INTO mixed VALUES (1, 'a'), (2, 1e22), (3, 1e300), (4, 0.5), (5, 9e999), (6, 7);",
        "",
    );
    let mut query = Query {
        columns: vec!["v".to_owned()],
        order: vec![Order::parse("v")],
        limit: 1,
        ..Query::default()
    };
    let mut shown = Vec::new();
    for _ in 0..10 {
        let page = both.on(Which::Sqlite, || open("mixed")?.read(&query));
        let page = page.expect("a page");
        shown.push(page.records);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let values = [
        "\"0.5\"",
        "\"1.0e+22\"",
        "\"1.0e+300\"",
        "\"7\"",
        "\"a\"",
        "null",
    ];
    assert_eq!(shown, values.map(|value| format!(r#"[{{"v":{value}}}]"#)));
    let equal = Query {
        columns: vec!["id".to_owned()],
        conditions: vec![Condition::new("v", Comparison::Equals, "1.0e+22")],
        limit: 5,
        ..Query::default()
    };
    let page = both.on(Which::Sqlite, || open("mixed")?.read(&equal));
    assert_eq!(page.expect("a page").records, r#"[{"id":2}]"#);
}

/// SQLite takes nulls in a key, texts that are none, and tables of other modules: none of it ends a list.
#[test]
fn rows_that_only_sqlite_takes_are_read() {
    let both = Both::filled(
        "CREATE TABLE ap (author TEXT, paper TEXT, pos INT, PRIMARY KEY (author, paper));
         INSERT INTO ap VALUES ('a', 'p', 1), ('a', NULL, 2), ('b', 'q', 3);
         CREATE TABLE ip (id INT PRIMARY KEY, v TEXT); INSERT INTO ip VALUES (1, 'a'), (NULL, 'b');
         CREATE TABLE whole (id INT PRIMARY KEY, v TEXT); INSERT INTO whole VALUES (1, 'a');
         CREATE TABLE latin (id TEXT PRIMARY KEY, note TEXT);
         INSERT INTO latin VALUES ('a', CAST(x'ff41' AS TEXT)), ('b', 'ok'), (CAST(x'ff' AS TEXT), 'c'),
             (CAST(x'fe' AS TEXT), 'd'), ('\u{fffd}', 'e'), ('z', NULL);
         CREATE TABLE replaced (id INTEGER PRIMARY KEY, q TEXT UNIQUE ON\n conflict replace);
         CREATE VIRTUAL TABLE notes USING fts5(title, body); INSERT INTO notes VALUES ('t', 'b');
         CREATE VIRTUAL TABLE places USING rtree(id, x0, x1); INSERT INTO places VALUES (1, 0, 2);",
        "",
    );
    let shape = |table: &str| {
        let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
        outline(&both.on(Which::Sqlite, || describe(&settings)).expect(table))
    };
    assert_eq!(
        shape("ap"),
        "author:String paper:String pos:Integer key= write=create read_only=None"
    );
    assert_eq!(
        shape("ip"),
        "id:Integer v:String key= write=create read_only=None"
    );
    assert_eq!(
        shape("whole"),
        "id:Integer! v:String key=id write=create,update,delete read_only=None"
    );
    assert_eq!(
        shape("replaced"),
        "id:Integer! q:String key=id write= read_only=Some(\"A table with ON CONFLICT REPLACE is read-only.\")"
    );
    assert_eq!(
        shape("notes"),
        "title:String body:String key= write= read_only=Some(\"A virtual table is read-only.\")"
    );
    let list = |table: &str, by: &[Order], limit: u32| {
        let query = Query {
            order: by.to_vec(),
            limit,
            ..Query::default()
        };
        let read = |query: &Query| both.on(Which::Sqlite, || open(table)?.read(query));
        Value::from(read_all(query, read)).to_string()
    };
    for limit in [1, 2, 9] {
        let expected = r#"[{"author":"a","paper":"p","pos":1},{"author":"a","paper":null,"pos":2},{"author":"b","paper":"q","pos":3}]"#;
        assert_eq!(list("ap", &[], limit), expected);
        assert_eq!(
            list("ip", &[], limit),
            r#"[{"id":1,"v":"a"},{"id":null,"v":"b"}]"#
        );
        assert_eq!(list("notes", &[], limit), r#"[{"title":"t","body":"b"}]"#);
        assert_eq!(list("places", &[], limit), r#"[{"id":1,"x0":0,"x1":2}]"#);
        // Keys that look alike: a list goes on behind each.
        let whole = list("latin", &[], 9);
        assert_eq!(whole.matches("\"id\":\"\u{fffd}\"").count(), 3, "{whole}");
        assert!(
            whole.contains("{\"id\":\"a\",\"note\":\"\u{fffd}A\"}"),
            "{whole}"
        );
        assert_eq!(list("latin", &[], limit), whole);
        let by_note = [Order::parse("-note")];
        assert_eq!(list("latin", &by_note, limit), list("latin", &by_note, 9));
    }
}

/// A value that comes later in a column which may not be null, and is not of its type, takes its own row from a list alone.
#[test]
fn rows_that_do_not_fit_are_left_out() {
    let both = Both::filled(
        "CREATE TABLE full (id INTEGER PRIMARY KEY, n INT NOT NULL, d DATE NOT NULL, x DECIMAL(9,2) NOT NULL, f REAL NOT NULL,
             at DATETIME NOT NULL, b BOOLEAN NOT NULL, j JSON NOT NULL, m INT);
         INSERT INTO full VALUES (1, 1, '2024-01-01', 1.5, 0.5, '2024-01-01T00:00:00Z', 1, '{}', 1);
         CREATE TABLE bare (n INT NOT NULL, v TEXT);
         INSERT INTO bare VALUES (1, 'a');
         CREATE TABLE endless (id INTEGER PRIMARY KEY, f REAL NOT NULL);
         INSERT INTO endless VALUES (1, 9e999), (2, 1);",
        "",
    );
    let shape = |table: &str| {
        let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
        both.on(Which::Sqlite, || describe(&settings)).expect(table)
    };
    let (full, bare) = (shape("full"), shape("bare"));
    assert_eq!(
        outline(&shape("endless")),
        "id:Integer! f:Number key=id write=create,update,delete read_only=None"
    );
    let later = both.sqlite_file().execute_batch(
        "INSERT INTO full VALUES (2, 'word', '2024-01-01', 1, 1, '2024-01-01T00:00:00Z', 1, '{}', 1),
             (3, 1, 'soon', 1, 1, '2024-01-01T00:00:00Z', 1, '{}', 1), (4, 1, '2024-01-01', 'much', 1, '2024-01-01T00:00:00Z', 1, '{}', 1),
             (5, 1, '2024-01-01', 1, 9e999, '2024-01-01T00:00:00Z', 1, '{}', 1), (6, 1, '2024-01-01', 1, 1, 'noon', 1, '{}', 1),
             (7, 1, '2024-01-01', 1, 1, '2024-01-01T00:00:00Z', 7, '{}', 1), (8, 9007199254740992, '2024-01-01', 1, 1, '2024-01-01T00:00:00Z', 1, '{}', 1),
             (9, 1, '2024-01-01', 1, 1, '2024-01-01T00:00:00Z', 1, '{', 9007199254740992),
             (9007199254740992, 1, '2024-01-01', 1, 1, '2024-01-01T00:00:00Z', 1, '{}', 1);
         INSERT INTO bare VALUES ('word', 'b'), (2, 'c'), (3, 'd'), ('words', 'e');",
    );
    later.expect("rows");
    let list = |shape: &Shape, table: &str, by: &[Order], limit: u32, columns: &[&str]| {
        let query = Query {
            columns: columns.iter().map(|column| column.to_string()).collect(),
            order: by.to_vec(),
            limit,
            ..Query::default()
        };
        let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
        read_all(query, |query| {
            both.on(Which::Sqlite, || {
                SqlAdapter::open(&settings, shape)?.read(query)
            })
        })
    };
    for limit in [1, 2, 9] {
        for (by, ids) in [
            ("id", [1, 9]),
            ("-id", [9, 1]),
            ("m", [1, 9]),
            ("-n", [1, 9]),
        ] {
            let by = [Order::parse(by)];
            let ids: Vec<Value> = ids.iter().map(|id| json!({"id": id, "n": 1})).collect();
            let all = list(&full, "full", &by, limit, &[]);
            let shown: Vec<Value> = all
                .iter()
                .map(|one| json!({"id": one["id"], "n": one["n"]}))
                .collect();
            assert_eq!(shown, ids, "{by:?} by {limit}");
            let last = all.iter().find(|one| one["id"] == 9).expect("the last");
            assert_eq!((&last["m"], &last["j"]), (&Value::Null, &json!("{")));
        }
        let words = [(1, "a"), (2, "c"), (3, "d")].map(|(n, v)| json!({"n": n, "v": v}));
        assert_eq!(list(&bare, "bare", &[], limit, &[]), words);
        let by_word = [Order::parse("v")];
        assert_eq!(list(&bare, "bare", &by_word, limit, &["n", "v"]), words);
    }
}

/// Returns the values of a column on all pages of a list.
fn walk_column(both: &Both, table: &str, column: &str, order: &[&str], limit: u32) -> Vec<i64> {
    let mut query = Query {
        columns: vec![column.to_owned()],
        order: order.iter().map(|by| Order::parse(by)).collect(),
        limit,
        ..Query::default()
    };
    let mut walked = Vec::new();
    loop {
        let page = both.on(Which::Sqlite, || open(table)?.read(&query));
        let page = page.expect("a page");
        let records: Vec<Value> = serde_json::from_str(&page.records).expect("records");
        walked.extend(records.iter().filter_map(|record| record[column].as_i64()));
        query.cursor = page.next;
        if query.cursor.is_none() || walked.len() > 20 {
            return walked;
        }
    }
}

/// SQLite tells doubles apart that are shown with the same 15 digits, a number and its text, and two spellings of one moment.
#[test]
fn records_whose_keys_are_shown_alike_are_on_some_page() {
    let both = Both::filled(
        "CREATE TABLE share (id DECIMAL(20,18) PRIMARY KEY, n INT, m INT);
         INSERT INTO share VALUES (0.1, 1, 1), (0.3, 2, 1), (0.1 + 0.2, 3, 1), (0.3 + 1e-16, 4, 1), (7, 5, 1), (0.5, 6, 1);
         CREATE TABLE loose (id PRIMARY KEY, n INT, m INT);
         INSERT INTO loose VALUES (5, 1, 1), ('5', 2, 1), (5.5, 3, 1), ('5.5', 4, 1), ('a', 5, 1), (6, 6, 1);
         CREATE TABLE moment (at DATETIME, part DATETIME, n INT, m INT, PRIMARY KEY (at, part));
         INSERT INTO moment VALUES ('2024-01-01T00:00:00Z', '2024-01-01', 1, 1), ('2024-01-01 00:00:00', '2024-01-01', 2, 1),
             ('2024-01-01T01:00:00+01:00', '2024-01-01', 3, 1), ('2024-01-01', '2024-01-01', 4, 1),
             ('2024-01-02', '2024-01-01T00:00:00Z', 5, 1), ('2024-01-02', '2024-01-01', 6, 1);",
        "",
    );
    let orders: [&[&str]; 4] = [&[], &["m"], &["-m"], &["-n"]];
    for table in ["share", "loose", "moment"] {
        for order in orders {
            for limit in [1, 2, 3, 4, 9] {
                let mut walked = walk_column(&both, table, "n", order, limit);
                walked.sort_unstable();
                assert_eq!(walked, [1, 2, 3, 4, 5, 6], "{table} {order:?} by {limit}");
            }
        }
    }
}
