//! What an agent reads where a database refuses its record: the column at fault, whatever the database itself names.

use weir_plugin_sdk::{
    Error, Verb,
    serde_json::{self, Value, json},
};

use crate::both::{Both, Which, write};

const SQLITE: &str = "
    CREATE TABLE parents (id INTEGER PRIMARY KEY); INSERT INTO parents VALUES (1);
    CREATE TABLE stock (id INTEGER PRIMARY KEY, shelf TEXT, place INT, code TEXT, amount INT, most INT,
        CONSTRAINT positive CHECK (amount > 0), CHECK (amount <= most), UNIQUE (shelf, place));
    CREATE UNIQUE INDEX by_code ON stock (code);
    INSERT INTO stock VALUES (1, 'a', 1, 'x', 1, 9);
    CREATE TABLE visits (day DATE, page INTEGER, PRIMARY KEY (day, page)); INSERT INTO visits VALUES ('2024-02-29', 1);";
const POSTGRESQL: &str = "
    CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1);
    CREATE TABLE stock (id int PRIMARY KEY, shelf text, place int, code text, amount int, most int,
        CONSTRAINT positive CHECK (amount > 0), CHECK (amount <= most), UNIQUE (shelf, place));
    CREATE UNIQUE INDEX by_code ON stock (code);
    INSERT INTO stock VALUES (1, 'a', 1, 'x', 1, 9);
    CREATE TABLE visits (day date, page int, PRIMARY KEY (day, page)); INSERT INTO visits VALUES ('2024-02-29', 1);";
const MYSQL: &str = "
    CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1);
    CREATE TABLE stock (id int PRIMARY KEY, shelf varchar(9), place int, code varchar(9), amount int, most int,
        CONSTRAINT positive CHECK (amount > 0), CHECK (amount <= most), UNIQUE KEY amount (shelf, place));
    CREATE UNIQUE INDEX by_code ON stock (code);
    INSERT INTO stock VALUES (1, 'a', 1, 'x', 1, 9);
    CREATE TABLE visits (day date, page int, PRIMARY KEY (day, page)); INSERT INTO visits VALUES ('2024-02-29', 1);";

fn refused(both: &Both, which: Which, table: &str, record: Value) -> Error {
    let message = record.to_string();
    both.on(which, || write(table, Verb::Create, json!({}), record))
        .expect_err(&message)
}

#[test]
fn every_database_names_the_columns_of_what_it_refuses() {
    let both = Both::filled(SQLITE, POSTGRESQL).with_mysql(MYSQL);
    let key = "There is a record with this key already.";
    let value = "There is a record with this value already.";
    for (table, record, code, field, message) in [
        ("stock", json!({"id": 1}), "conflict", "id", key),
        (
            "stock",
            json!({"id": 2, "code": "x", "shelf": "b"}),
            "conflict",
            "code",
            value,
        ),
        (
            "stock",
            json!({"id": 2, "shelf": "a", "place": 1, "code": "y"}),
            "conflict",
            "shelf",
            "There is a record with these values of \"shelf\" and \"place\" already.",
        ),
        (
            "visits",
            json!({"day": "2024-02-29", "page": 1}),
            "conflict",
            "day",
            key,
        ),
        (
            "stock",
            json!({"id": 2, "amount": 5, "most": 4}),
            "invalid",
            "amount",
            "A rule of the table refuses what the record has in \"amount\" and \"most\".",
        ),
    ] {
        let refused = both.same(|| write(table, Verb::Create, json!({}), record.clone()));
        let refused = refused.expect_err(message);
        assert_eq!(
            (refused.code.as_str(), refused.field.as_deref()),
            (code, Some(field)),
            "{record}"
        );
        assert_eq!(refused.message, message, "{record}");
    }
    // SQLite gives the name of a rule that has one, and not the rule.
    for which in [Which::Postgresql, Which::Mysql] {
        let rule = refused(
            &both,
            which,
            "stock",
            json!({"id": 2, "amount": -1, "place": 7}),
        );
        assert_eq!(rule.field.as_deref(), Some("amount"), "{rule:?}");
    }
}

/// PostgreSQL does not say which value does not fit.
#[test]
fn the_value_that_does_not_fit_is_found() {
    let both = Both::filled(
        "",
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN grade AS int CHECK (VALUE BETWEEN 1 AND 6);
         CREATE TABLE parents (id int PRIMARY KEY);
         CREATE TABLE notes (id int PRIMARY KEY, mood mood, short varchar(3), flags bit(3), small smallint, money numeric(6,2),
             grade grade, place inet, parent int REFERENCES parents, data jsonb, free text);
         CREATE UNIQUE INDEX by_letters ON notes (lower(free));
         CREATE TABLE spans (id int PRIMARY KEY, span int4range, EXCLUDE USING gist (span WITH &&));
         INSERT INTO notes (id, free) VALUES (1, 'Foo'); INSERT INTO spans VALUES (1, '[1,5)');",
    );
    let fitting = json!({"mood": "ok", "short": "abc", "flags": "101", "small": 1, "money": "1.5", "grade": 1, "place": "::1",
        "data": {}, "free": "x"});
    for (column, value) in [
        ("mood", json!("glad")),
        ("short", json!("abcd")),
        ("flags", json!("10")),
        ("small", json!(70000)),
        ("money", json!("12345")),
        ("grade", json!(7)),
        ("place", json!("here")),
        ("parent", json!(7)),
        ("data", json!({"a": "\u{0}"})),
        ("free", json!("fOO")),
    ] {
        let mut record = fitting.clone();
        record["id"] = json!(2);
        record[column] = value;
        let refused = refused(&both, Which::Postgresql, "notes", record);
        assert_eq!(refused.field.as_deref(), Some(column), "{refused:?}");
        assert!(!refused.message.contains("key"), "{refused:?}");
    }
    let span = refused(
        &both,
        Which::Postgresql,
        "spans",
        json!({"id": 2, "span": "[2,3)"}),
    );
    assert_eq!(
        (span.code.as_str(), span.field.as_deref()),
        ("conflict", Some("span"))
    );
    assert_eq!(span.message, "There is a record with this value already.");
}

/// A name in quotes may have any characters.
#[test]
fn a_type_of_any_name_is_written() {
    let both = Both::filled(
        "",
        "CREATE TYPE \"ticket-state\" AS ENUM ('to do', 'done'); CREATE TYPE \"50% (a;b) \"\"c\"\" 'd'\" AS ENUM ('x', 'y');
         CREATE TABLE tickets (id int PRIMARY KEY, state \"ticket-state\", odd \"50% (a;b) \"\"c\"\" 'd'\", states \"ticket-state\"[]);",
    );
    let record = json!({"id": 1, "state": "to do", "odd": "y", "states": ["done", "to do"]});
    let written = both.on(Which::Postgresql, || {
        write("tickets", Verb::Create, json!({}), record.clone())
    });
    let written: Value = serde_json::from_str(&written.expect("written")).expect("JSON");
    assert_eq!(written, record);
}

/// PostgreSQL cuts a value for two of its own types, whatever is done with it.
#[test]
fn no_value_is_cut() {
    let both = Both::filled(
        "",
        "CREATE TABLE labels (id int PRIMARY KEY, sign \"char\", label name, signs \"char\"[])",
    );
    let longest = "n".repeat(63);
    let record = json!({"id": 1, "sign": "a", "label": longest, "signs": ["b", ""]});
    let written = both.on(Which::Postgresql, || {
        write("labels", Verb::Create, json!({}), record.clone())
    });
    let written: Value = serde_json::from_str(&written.expect("written")).expect("JSON");
    assert_eq!(written, record);
    for (column, value) in [
        ("sign", json!("ab")),
        ("sign", json!("é")),
        ("label", json!(format!("{longest}n"))),
        ("signs", json!(["ab"])),
    ] {
        let refused = refused(
            &both,
            Which::Postgresql,
            "labels",
            json!({"id": 2, column: value}),
        );
        assert_eq!(refused.field.as_deref(), Some(column), "{refused:?}");
    }
}

/// A trigger that leaves a record out is no missing key.
#[test]
fn a_record_that_a_trigger_leaves_out_is_refused() {
    let both = Both::filled(
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, v TEXT);
         CREATE TRIGGER choosy BEFORE INSERT ON kept WHEN new.v = 'no' BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER fixed BEFORE UPDATE ON kept BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER lasting BEFORE DELETE ON kept BEGIN SELECT RAISE(IGNORE); END;",
        "CREATE TABLE kept (id int PRIMARY KEY, v text);
         CREATE FUNCTION choose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF new.v = ''no'' THEN RETURN NULL; END IF; RETURN new; END';
         CREATE TRIGGER choosy BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION choose();
         CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER fixed BEFORE UPDATE OR DELETE ON kept FOR EACH ROW EXECUTE FUNCTION keep();",
    );
    let left_out =
        both.same(|| write("kept", Verb::Create, json!({}), json!({"id": 1, "v": "no"})));
    let left_out = left_out.expect_err("left out");
    assert_eq!(left_out.code, "invalid");
    assert!(left_out.message.contains("trigger"), "{left_out:?}");
    let kept = both.same(|| {
        write(
            "kept",
            Verb::Create,
            json!({}),
            json!({"id": 1, "v": "yes"}),
        )
    });
    assert_eq!(kept.expect("kept"), r#"{"id":1,"v":"yes"}"#);
    for (verb, record) in [
        (Verb::Update, json!({"v": "other"})),
        (Verb::Delete, json!({})),
    ] {
        let kept = both.same(|| write("kept", verb, json!({"id": 1}), record.clone()));
        let kept = kept.expect_err("kept");
        assert_eq!(kept.code, "invalid");
        let why = "a trigger, a rule or a policy of its table suppresses the change";
        assert!(kept.message.contains(why), "{kept:?}");
        let gone = both.same(|| write("kept", verb, json!({"id": 2}), record.clone()));
        assert_eq!(gone.expect_err("gone").code, "not_found");
    }
}
