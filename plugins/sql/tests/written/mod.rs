//! Statements of the operator's own that write: the same from all databases, and never more rows than they may.

use weir_plugin_sdk::{
    Adapter, Change, Error, Query, Type, Verb, serde_json::Value, serde_json::json,
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe, object, open, show};

const TABLES: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, total NUMERIC(10,2), paid BOOLEAN);
    CREATE TABLE log (what TEXT);
    INSERT INTO orders VALUES (1, 'Wien', 10.50, TRUE), (2, 'Graz', 99.99, FALSE), (3, 'Wien', 200, FALSE);";

fn both() -> Both {
    Both::filled(TABLES, TABLES)
}

fn settings(statement: &str, more: Value) -> String {
    let mut settings = object(json!({ "connection": "db", "statement": statement }));
    settings.extend(object(more));
    Value::Object(settings).to_string()
}

fn run(settings: &str, params: Value) -> Result<String, Error> {
    let shape = describe(settings)?;
    SqlAdapter::open(settings, &shape)?.write(&Change {
        options: object(json!({ "operation": "run", "params": params })),
        ..Change::new(Verb::Call)
    })
}

/// Returns the ids and cities that are left.
fn left(both: &Both) -> String {
    let query = Query {
        columns: vec!["id".to_owned(), "city".to_owned()],
        limit: 100,
        ..Query::default()
    };
    let read = || {
        open("orders")
            .and_then(|table| table.read(&query))
            .map(show)
    };
    both.same(read).expect("read").0
}

const BEFORE: &str = r#"[{"id":1,"city":"Wien"},{"id":2,"city":"Graz"},{"id":3,"city":"Wien"}]"#;

#[test]
fn one_record_is_changed_and_answered() {
    let both = both();
    let settings = settings(
        "-- moves an order\nUPDATE orders SET city = :city WHERE id = :id RETURNING id, city, total, paid;",
        json!({ "parameters": { "id": { "type": "integer", "required": true }, "city": "string" } }),
    );
    let described = both.same(|| {
        let shape = describe(&settings)?;
        let [operation] = &shape.capabilities.operations[..] else {
            panic!("one operation");
        };
        assert!(!shape.capabilities.read && shape.capabilities.write.is_empty());
        let params: Vec<_> = operation
            .params
            .iter()
            .map(|one| (one.name.clone(), one.kind, one.required))
            .collect();
        let returns: Vec<_> = operation
            .returns
            .iter()
            .map(|one| (one.key.clone(), one.kind, one.nullable))
            .collect();
        Ok((operation.name.clone(), operation.effect, params, returns))
    });
    let (name, effect, params, returns) = described.expect("described");
    assert_eq!(
        (name.as_str(), effect),
        ("run", weir_plugin_sdk::shape::Effect::Destructive)
    );
    assert_eq!(
        params,
        [
            ("city".to_owned(), Type::String, false),
            ("id".to_owned(), Type::Integer, true)
        ]
    );
    let kinds: Vec<_> = returns
        .iter()
        .map(|(_, kind, nullable)| (*kind, *nullable))
        .collect();
    assert_eq!(
        kinds,
        [
            (Type::Integer, true),
            (Type::String, true),
            (Type::Decimal, true),
            (Type::Boolean, true)
        ]
    );
    let done = both.same(|| {
        run(
            &settings,
            json!({ "id": 2, "city": "'; DELETE FROM orders; --" }),
        )
    });
    assert_eq!(
        done.expect("changed"),
        r#"{"id":2,"city":"'; DELETE FROM orders; --","total":"99.99","paid":false}"#
    );
    let none = both.same(|| run(&settings, json!({ "id": 99, "city": "x" })));
    assert_eq!(none.expect_err("no such order").code, "not_found");
    let emptied = both.same(|| run(&settings, json!({ "id": 1 })));
    assert_eq!(
        emptied.expect("null"),
        r#"{"id":1,"city":null,"total":"10.5","paid":true}"#
    );
}

#[test]
fn more_rows_than_it_may_change_are_rolled_back() {
    let both = both();
    for (statement, more) in [
        (
            "UPDATE orders SET city = 'x' WHERE total > :least RETURNING id",
            json!({}),
        ),
        (
            "UPDATE orders SET city = 'x' WHERE total > :least",
            json!({}),
        ),
        (
            "DELETE FROM orders WHERE total > :least",
            json!({ "rows_max": 2 }),
        ),
        (
            "DELETE FROM orders WHERE total > :least RETURNING id",
            json!({ "rows_max": 2 }),
        ),
        (
            "INSERT INTO orders (id, city) SELECT id + 10, 'x' FROM orders WHERE total > :least",
            json!({}),
        ),
        (
            "WITH picked AS (SELECT id FROM orders WHERE total > :least) DELETE FROM orders WHERE id IN (SELECT id FROM picked)",
            json!({}),
        ),
    ] {
        let mut more = more;
        more["parameters"] = json!({ "least": "decimal" });
        let settings = settings(statement, more);
        let error = both
            .same(|| run(&settings, json!({ "least": 1 })))
            .expect_err(statement);
        assert_eq!(error.code, "conflict", "{statement}: {error}");
        assert!(error.message.contains("would change 3 rows"), "{error}");
        assert_eq!(left(&both), BEFORE, "{statement}");
    }
    let counted = settings(
        "UPDATE orders SET city = 'Linz' WHERE city = :city",
        json!({ "parameters": { "city": "string" }, "rows_max": 2 }),
    );
    let done = both.same(|| run(&counted, json!({ "city": "Wien" })));
    assert_eq!(done.expect("changed"), r#"{"rows":2}"#);
    let done = both.same(|| run(&counted, json!({ "city": "Wien" })));
    assert_eq!(done.expect("nothing"), r#"{"rows":0}"#);
    let listed = settings(
        "DELETE FROM orders WHERE city IN (:cities) RETURNING id, total",
        json!({ "parameters": { "cities": { "type": "list", "of": "string" } }, "rows_max": 5 }),
    );
    // No database says in which order it answers what it has changed.
    let done = both.same(|| {
        let done = run(&listed, json!({ "cities": ["Linz", "Graz"] }))?;
        let mut done: Value = weir_plugin_sdk::serde_json::from_str(&done).expect("JSON");
        if let Some(records) = done["records"].as_array_mut() {
            records.sort_by_key(|record| record["id"].as_i64());
        }
        Ok(done)
    });
    let done = done.expect("gone");
    assert_eq!(done["rows"], 3);
    assert_eq!(done["records"].as_array().map(Vec::len), Some(3));
    assert_eq!(done["records"][0], json!({ "id": 1, "total": "10.5" }));
}

#[test]
fn what_is_no_single_counted_write_is_refused_when_it_is_described() {
    let both = both();
    for (statement, why) in [
        (
            "SELECT id FROM orders",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
        ("DROP TABLE orders", "no INSERT, UPDATE, DELETE or MERGE"),
        (
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
        (
            "WITH a AS (DELETE FROM orders RETURNING id) SELECT count(*) FROM a",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
        (
            "WITH a AS (DELETE FROM orders RETURNING id) INSERT INTO log SELECT 'x'",
            "the rows of a DELETE inside another",
        ),
        (
            "WITH a AS (WITH b AS (SELECT 1) UPDATE orders SET city = 'x' RETURNING id) INSERT INTO log SELECT 'x'",
            "the rows of a UPDATE inside another",
        ),
        (
            "DELETE FROM orders WHERE id = 1; DELETE FROM orders",
            "more than one statement",
        ),
        ("DELETE FROM orders WHERE id = 1; --", "cannot be prepared"),
        (
            "INSERT OR REPLACE INTO orders (id) VALUES (1)",
            "OR REPLACE deletes",
        ),
        (
            "REPLACE INTO orders (id) VALUES (1)",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
        (
            "UPDATE orders SET city = :city",
            "`:city`, which `parameters` does not declare",
        ),
        ("UPDATE orders SET nothing = 1", "cannot be prepared"),
        ("", "it is empty"),
        ("-- nothing", "it is empty"),
        ("BEGIN", "no INSERT, UPDATE, DELETE or MERGE"),
        (
            "COPY orders TO '/tmp/x'",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
    ] {
        let settings = settings(statement, json!({}));
        let described = both.same(|| describe(&settings).map(|_| ()));
        // A semicolon and a comment at the end are no second statement.
        if why == "cannot be prepared" && statement.ends_with("--") {
            described.expect(statement);
            continue;
        }
        let error = described.expect_err(statement);
        assert!(error.message.contains(why), "{statement}: {error}");
    }
    for (more, why) in [
        (
            json!({ "rows_max": 0 }),
            "`rows_max` is a number from 1 to 1,000",
        ),
        (json!({ "table": "orders" }), "`statement` excludes"),
    ] {
        let settings = settings("DELETE FROM orders WHERE id = 1", more);
        let error = both
            .same(|| describe(&settings).map(|_| ()))
            .expect_err(why);
        assert!(error.message.contains(why), "{error}");
    }
    assert_eq!(left(&both), BEFORE);
}

#[test]
fn words_that_are_names_or_locks_are_taken() {
    let both = both();
    both.on(Which::Postgresql, || {
        for statement in [
            "UPDATE orders SET city = 'x' WHERE id IN (SELECT id FROM orders WHERE id = 1 FOR UPDATE)",
            "INSERT INTO orders (id, city) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET city = excluded.city",
            "DELETE FROM orders WHERE id IN (SELECT a.id FROM orders AS a JOIN (SELECT 9 AS update) AS b ON b.update = a.id)",
        ] {
            let expected = if statement.contains("AS update") { Err(()) } else { Ok(()) };
            let described = describe(&settings(statement, json!({}))).map(|_| ()).map_err(|_| ());
            assert_eq!(described, expected, "{statement}");
        }
        Ok(())
    })
    .expect("described");
}

/// SQLite answers all that RETURNING names, also columns of bytes, which no record has.
#[test]
fn a_column_of_bytes_beside_others_is_left_out_of_the_answer() {
    let both = both();
    both.fill(
        "CREATE TABLE files (id INTEGER PRIMARY KEY, content BLOB, name TEXT); INSERT INTO files VALUES (1, x'00ff', 'a')",
        "CREATE TABLE files (id INTEGER PRIMARY KEY, content BYTEA, name TEXT); INSERT INTO files VALUES (1, '\\x00ff', 'a')",
    );
    for returning in ["id, content, name", "content, id, name", "*"] {
        let settings = settings(
            &format!("UPDATE files SET name = :name WHERE id = 1 RETURNING {returning}"),
            json!({ "parameters": { "name": "string" } }),
        );
        let done = both.same(|| run(&settings, json!({ "name": "b" })));
        assert_eq!(
            done.expect(returning),
            r#"{"id":1,"name":"b"}"#,
            "{returning}"
        );
    }
}

/// MariaDB counts what it changes, and answers the number: that alone is the same from all three.
#[test]
fn a_statement_without_returning_is_the_same_on_mariadb() {
    let both = both().with_mysql(TABLES);
    for statement in [
        "UPDATE orders SET city = 'x' WHERE total > :least",
        "DELETE FROM orders WHERE total > :least",
        "INSERT INTO orders (id, city) SELECT id + 10, 'x' FROM orders WHERE total > :least",
    ] {
        for (most, message) in [
            (1, "would change 3 rows and may change 1"),
            (2, "would change 3 rows and may change 2"),
        ] {
            let more = json!({ "parameters": { "least": "decimal" }, "rows_max": most });
            let settings = settings(statement, more);
            let error = both.same(|| run(&settings, json!({ "least": 1 })));
            let error = error.expect_err(statement);
            assert_eq!(error.code, "conflict", "{statement}: {error}");
            assert!(error.message.contains(message), "{error}");
            assert_eq!(left(&both), BEFORE, "{statement}");
        }
    }
    let moved = settings(
        "-- moves orders\nUPDATE orders SET city = :city WHERE city IN (:cities) AND total < :most;",
        json!({ "rows_max": 3, "parameters": {
            "city": "string", "most": "decimal", "cities": { "type": "list", "of": "string" },
        } }),
    );
    let operations = both.same(|| {
        let shape = describe(&moved)?;
        assert!(!shape.capabilities.read && shape.capabilities.write.is_empty());
        Ok(format!("{:?}", shape.capabilities.operations))
    });
    assert!(operations.expect("described").contains("Destructive"));
    for (params, expected) in [
        // A row that is found counts, also where it stays as it was.
        (
            json!({ "city": "Graz", "cities": ["Graz"], "most": "99.995" }),
            1,
        ),
        (
            json!({ "city": "Graz", "cities": ["Graz"], "most": "99.99" }),
            0,
        ),
        (json!({ "city": "x", "cities": [], "most": "1000" }), 0),
        (json!({ "city": "x", "most": "1000" }), 0),
        (
            json!({ "city": "'; DELETE FROM orders; -- \\", "cities": ["Wien", "Graz"], "most": "1000" }),
            3,
        ),
        (
            json!({ "city": "x", "cities": ["'; DELETE FROM orders; -- \\"], "most": "1000" }),
            3,
        ),
    ] {
        let done = both.same(|| run(&moved, params.clone()));
        assert_eq!(
            done.expect("changed"),
            format!(r#"{{"rows":{expected}}}"#),
            "{params}"
        );
    }
    let added = settings(
        "INSERT INTO orders (id, city, total, paid) VALUES (:id, :city, :total, :paid)",
        json!({ "parameters": { "id": "integer", "city": "string", "total": "decimal", "paid": "boolean" } }),
    );
    let order = json!({ "id": 9, "city": "Zürich 𐀀", "total": "12.30", "paid": true });
    let done = both.same(|| run(&added, order.clone()));
    assert_eq!(done.expect("added"), r#"{"rows":1}"#);
    // MariaDB does not say which column a primary key is of.
    let again = both.same(|| Ok(run(&added, order.clone()).map_err(|error| error.code)));
    assert_eq!(again.expect("asked"), Err("conflict".to_owned()));
    let query = Query {
        limit: 9,
        ..Query::default()
    };
    let all = both.same(|| {
        open("orders")
            .and_then(|table| table.read(&query))
            .map(show)
    });
    let all = all.expect("read").0;
    assert!(
        all.contains(r#"{"id":9,"city":"Zürich 𐀀","total":"12.3","paid":true}"#),
        "{all}"
    );
}

#[test]
fn what_mariadb_would_count_or_store_otherwise_is_refused() {
    let both = both().with_mysql(&format!(
        "{TABLES} CREATE TABLE loose (id int) ENGINE=MyISAM; CREATE VIEW seen AS SELECT * FROM orders; INSERT INTO loose VALUES (1)"
    ));
    let described = |statement: &str| {
        let settings = settings(statement, json!({}));
        both.on(Which::Mysql, || describe(&settings).map(drop))
    };
    for (statement, why) in [
        (
            "UPDATE orders SET city = 'x' WHERE id = 1 RETURNING id",
            "leave RETURNING out",
        ),
        (
            "DELETE FROM orders WHERE id = 1 RETURNING id",
            "leave RETURNING out",
        ),
        (
            "INSERT INTO orders (id) VALUES (1) ON DUPLICATE KEY UPDATE city = 'x'",
            "counted twice",
        ),
        (
            "UPDATE IGNORE orders SET total = 'x' WHERE id = 1",
            "IGNORE is not taken",
        ),
        (
            "INSERT IGNORE INTO orders (id) VALUES (1)",
            "IGNORE is not taken",
        ),
        (
            "DELETE QUICK FROM orders WHERE id = 1",
            "QUICK is not taken",
        ),
        (
            "REPLACE INTO orders (id) VALUES (1)",
            "no INSERT, UPDATE, DELETE or MERGE",
        ),
        (
            "MERGE INTO orders USING log ON 1 WHEN MATCHED THEN DELETE",
            "have no MERGE",
        ),
        (
            "UPDATE orders, log SET what = 'x' WHERE id = 1",
            "names one table",
        ),
        (
            "UPDATE orders JOIN log SET what = 'x' WHERE id = 1",
            "names one table",
        ),
        (
            "UPDATE (orders JOIN log) SET what = 'x' WHERE id = 1",
            "names one table",
        ),
        ("DELETE orders FROM orders JOIN log", "names one table"),
        (
            "DELETE FROM orders, log USING orders JOIN log",
            "names one table",
        ),
        (
            "DELETE FROM orders USING orders JOIN log",
            "names one table",
        ),
        ("DELETE FROM loose WHERE id = 1", "has no transactions"),
        ("UPDATE seen SET city = 'x' WHERE id = 1", "is a view"),
        (
            "UPDATE nowhere SET city = 'x'",
            "There is no table \"nowhere\"",
        ),
        (
            "UPDATE orders SET city = @@version WHERE id = 1",
            "more than this connection allows",
        ),
        (
            "INSERT INTO log SELECT LOAD_FILE('/etc/passwd')",
            "more than this connection allows",
        ),
        (
            "INSERT INTO log SELECT what FROM log INTO OUTFILE '/tmp/x'",
            "more than this connection allows",
        ),
        (
            "UPDATE orders SET city = 'x' /*! , total = 1 */ WHERE id = 1",
            "more than this connection allows",
        ),
        (
            "DELETE FROM orders WHERE id = 1; DELETE FROM orders",
            "more than one statement",
        ),
        (
            "UPDATE orders SET city = '\0' WHERE id = 1",
            "null character",
        ),
        ("UPDATE orders SET nothing = 1", "cannot be prepared"),
        ("TRUNCATE orders", "no INSERT, UPDATE, DELETE or MERGE"),
    ] {
        let error = described(statement).expect_err(statement);
        assert!(error.message.contains(why), "{statement}: {error}");
    }
    for statement in [
        "DELETE FROM orders ORDER BY total, id LIMIT 1",
        "UPDATE `orders` AS o SET city = 'a', total = 1 WHERE id = 1",
        "UPDATE orders SET city = (SELECT max(a.what) FROM log AS a, log AS b) WHERE id = 1",
        "INSERT INTO orders (id, city) VALUES (7, 'a'), (8, 'b')",
        "INSERT orders SET id = 7",
    ] {
        described(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    assert_eq!(left(&both), BEFORE);
}
