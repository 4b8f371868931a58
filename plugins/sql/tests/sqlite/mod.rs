//! Tests for SQLite alone.

use weir_plugin_sdk::{
    Adapter, Order, Query, Verb,
    serde_json::{self, Value, json},
};

use crate::both::{Both, Which, describe, open, outline, write};

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
        shape("notes"),
        "title:String body:String key= write= read_only=Some(\"A virtual table is read-only.\")"
    );
    let list = |table: &str, by: &[Order], limit: u32| {
        let mut query = Query {
            order: by.to_vec(),
            limit,
            ..Query::default()
        };
        let mut walked = Vec::new();
        loop {
            let page = both.on(Which::Sqlite, || open(table)?.read(&query));
            let page = page.expect(table);
            walked.extend(serde_json::from_str::<Vec<Value>>(&page.records).expect("records"));
            query.cursor = page.next;
            if query.cursor.is_none() || walked.len() > 20 {
                return Value::from(walked).to_string();
            }
        }
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
