//! Rows and tables that a database takes and few programs expect: nulls in keys, texts of another encoding, virtual tables, and
//! arrays of PostgreSQL.

use rusqlite::Connection;
use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, Postgres};

/// Makes a house whose connection `db` is a file of SQLite with these tables.
fn sqlite(tables: &str) -> House {
    let house = House::new().config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/odd.db\"\n[plugins.sql.grants]\ndb = \"read\"",
    );
    let database = Connection::open(house.path().join("data/odd.db")).expect("a database");
    database.execute_batch(tables).expect("tables");
    house
}

/// Drafts a contract for each table, and serves them.
fn serve_drafts(house: &House, tables: &[&str]) -> Gateway {
    for table in tables {
        let words = ["draft", "--connection", "db", "--table", table];
        let contract = house.succeed(&words);
        house.write(&format!("contracts/{table}.yaml"), contract);
    }
    house.serve()
}

/// Returns the records of a list.
async fn records(client: &Modern, tool: &str) -> Value {
    let listed = client.succeed(tool, json!({})).await;
    listed["structuredContent"]["records"].clone()
}

#[tokio::test]
async fn a_table_of_sqlite_with_a_null_in_its_key_is_listed() {
    let house = sqlite(
        "CREATE TABLE ap (author TEXT, paper TEXT, pos INT, PRIMARY KEY (author, paper));
         INSERT INTO ap VALUES ('a', 'p', 1), ('a', NULL, 2), ('b', 'q', 3);
         CREATE TABLE ip (id INT PRIMARY KEY, v TEXT);
         INSERT INTO ip VALUES (1, 'a'), (NULL, 'b');",
    );
    let gateway = serve_drafts(&house, &["ap", "ip"]);
    let client = Modern::new(gateway.url());
    let papers = json!([
        { "author": "a", "paper": "p", "pos": 1 },
        { "author": "a", "paper": null, "pos": 2 },
        { "author": "b", "paper": "q", "pos": 3 },
    ]);
    assert_eq!(records(&client, "list_aps").await, papers);
    let numbers = json!([{ "id": 1, "v": "a" }, { "id": null, "v": "b" }]);
    assert_eq!(records(&client, "list_ips").await, numbers);
}

/// Returns the records of all pages of a list.
async fn pages(client: &Modern, tool: &str, order_by: Option<&str>, limit: u64) -> Value {
    let mut arguments = json!({ "limit": limit });
    if let Some(order_by) = order_by {
        arguments["order_by"] = json!([order_by]);
    }
    let mut walked = Vec::new();
    loop {
        let listed = client.succeed(tool, arguments.clone()).await;
        let page = &listed["structuredContent"];
        walked.extend(page["records"].as_array().expect("records").clone());
        if page["next"].is_null() || walked.len() > 20 {
            return walked.into();
        }
        arguments["cursor"] = page["next"].clone();
    }
}

/// A later row with a null or a text in its key is not a record, and a value that fits no column is null. Neither ends a list.
#[tokio::test]
async fn a_table_of_sqlite_that_changes_behind_its_description_is_listed() {
    let house = sqlite(
        "CREATE TABLE word (id TEXT PRIMARY KEY, n INT, d DATE, x DECIMAL(9,2), at DATETIME);
         INSERT INTO word VALUES ('a', 1, '2024-01-01', 1.5, '2024-01-01T00:00:00Z'), ('c', 3, '2024-01-03', 2, NULL);
         CREATE TABLE number (id INT PRIMARY KEY, v TEXT);
         INSERT INTO number VALUES (1, 'a'), (2, 'b');
         CREATE TABLE pair (a TEXT, b INT, PRIMARY KEY (a, b));
         INSERT INTO pair VALUES ('p', 1), ('q', 2);",
    );
    let gateway = serve_drafts(&house, &["word", "number", "pair"]);
    let client = Modern::new(gateway.url());
    let later = Connection::open(house.path().join("data/odd.db")).expect("a database");
    later
        .execute_batch(
            "INSERT INTO word VALUES (NULL, 9, NULL, NULL, NULL), ('b', 'word', 'soon', 'much', 'noon'), ('d', 1.5, 7, 3, 5),
                 ('e', 2, '2024-01-02', 1, NULL);
             INSERT INTO number VALUES (NULL, 'c'), ('x', 'd'), (3, 'e');
             INSERT INTO pair VALUES (NULL, 3), ('p', NULL), ('p', 2);",
        )
        .expect("rows");
    let word = |id: &str| match id {
        "a" => {
            json!({ "id": "a", "n": 1, "d": "2024-01-01", "x": "1.5", "at": "2024-01-01T00:00:00Z" })
        }
        "b" => json!({ "id": "b", "n": null, "d": null, "x": null, "at": null }),
        "c" => json!({ "id": "c", "n": 3, "d": "2024-01-03", "x": "2", "at": null }),
        "d" => json!({ "id": "d", "n": null, "d": null, "x": "3", "at": null }),
        _ => json!({ "id": "e", "n": 2, "d": "2024-01-02", "x": "1", "at": null }),
    };
    for limit in [1, 2, 9] {
        for (order_by, ids) in [
            (None, ["a", "b", "c", "d", "e"]),
            (Some("-id"), ["e", "d", "c", "b", "a"]),
            (Some("n"), ["a", "e", "c", "b", "d"]),
            (Some("-n"), ["c", "e", "a", "b", "d"]),
            (Some("d"), ["a", "e", "c", "b", "d"]),
            (Some("x"), ["e", "a", "c", "d", "b"]),
        ] {
            let expected: Vec<_> = ids.into_iter().map(word).collect();
            let walked = pages(&client, "list_words", order_by, limit).await;
            assert_eq!(walked, json!(expected), "{order_by:?} by {limit}");
        }
        let numbers = json!([{ "id": 1, "v": "a" }, { "id": 2, "v": "b" }, { "id": 3, "v": "e" }]);
        assert_eq!(pages(&client, "list_numbers", None, limit).await, numbers);
        let pairs = json!([{ "a": "p", "b": 1 }, { "a": "p", "b": 2 }, { "a": "q", "b": 2 }]);
        assert_eq!(pages(&client, "list_pairs", None, limit).await, pairs);
    }
    // A condition does not match a value that does not fit its column.
    let least = client.call("list_words", json!({ "min_n": 2 })).await;
    let expected = json!([word("c"), word("e")]);
    assert_eq!(least["structuredContent"]["records"], expected, "{least}");
}

/// A later row with a value of another type in a column that may not be null is not a record, and does not end a list.
#[tokio::test]
async fn a_row_of_sqlite_that_fits_no_record_is_left_out() {
    let house = sqlite(
        "CREATE TABLE part (id INTEGER PRIMARY KEY, n INT NOT NULL, m INT);
         INSERT INTO part VALUES (1, 10, 1);",
    )
    .file(
        "contracts/all.yaml",
        "contract: all
collections:
  all: { adapter: sql, settings: { connection: db, table: part } }
tools:
  - { tool: all_parts, description: Lists all., verb: list, collection: all, text: json, fields: [] }
",
    );
    let gateway = serve_drafts(&house, &["part"]);
    let client = Modern::new(gateway.url());
    let later = Connection::open(house.path().join("data/odd.db")).expect("a database");
    later
        .execute_batch(
            "INSERT INTO part VALUES (2, 'word', 1), (3, 30, 9007199254740993), (4, 9007199254740993, 1),
                 (9007199254740993, 50, 1), (5, 50, 2);",
        )
        .expect("rows");
    let part = |id: i64, m: Option<i64>| json!({ "id": id, "n": id * 10, "m": m });
    for limit in [1, 2, 9] {
        for (order_by, ids) in [
            (None, [1, 3, 5]),
            (Some("-n"), [5, 3, 1]),
            (Some("m"), [1, 5, 3]),
        ] {
            let shown = |id: i64| match id {
                1 => part(id, Some(1)),
                5 => part(id, Some(2)),
                _ => part(id, None),
            };
            let expected: Vec<_> = ids.into_iter().map(shown).collect();
            let walked = pages(&client, "list_parts", order_by, limit).await;
            assert_eq!(walked, json!(expected), "{order_by:?} by {limit}");
        }
    }
    let one = client.call("get_part", json!({ "id": 2 })).await;
    assert_eq!(one["structuredContent"]["code"], "not_found", "{one}");
    let text = one["content"][0]["text"].as_str().expect("a text");
    let why = "1 record is left out, since a value in `n` fits no answer; ask an operator.";
    assert!(text.contains(why), "{text}");
    // The schema of a list has no member for it, so that it is in the text.
    let why = "3 records are left out, since a value in `id`, `n` fits no answer; ask an operator.";
    let listed = client.call("list_parts", json!({})).await;
    let text = listed["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with(&format!("3 records. {why}\n")), "{text}");
    assert_eq!(listed["_meta"]["dev.weir/left-out"], 3, "{listed}");
    let listed = client.call("all_parts", json!({})).await;
    let text = listed["content"][0]["text"].as_str().expect("a text");
    let parsed: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(parsed, listed["structuredContent"], "{listed}");
    assert_eq!(listed["content"][1]["text"], why, "{listed}");
}

/// Values without an end that are there when a table is described are null, in columns that may not be null too.
#[tokio::test]
async fn values_of_postgresql_without_an_end_are_listed() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE price (id int PRIMARY KEY, until timestamptz NOT NULL, share float8 NOT NULL);
         INSERT INTO price VALUES (1, '2024-01-01Z', 0.5), (2, 'infinity', 'NaN')",
    );
    let (_house, gateway) = postgresql(
        &server,
        "contract: prices
description: Prices.
collections:
  prices: { adapter: sql, settings: { connection: pg, table: price }, key: [id] }
tools:
  - { tool: list_prices, description: Lists all., verb: list, collection: prices, fields: [] }
",
    );
    let client = Modern::new(gateway.url());
    let expected = json!([
        { "id": 1, "until": "2024-01-01T00:00:00Z", "share": 0.5 },
        { "id": 2, "until": null, "share": null },
    ]);
    assert_eq!(records(&client, "list_prices").await, expected);
}

/// The key of a table of PostgreSQL does not hold for the tables that inherit from it, whose rows a list has too.
#[tokio::test]
async fn a_table_of_postgresql_that_others_inherit_from_is_listed_whole() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE city (id int PRIMARY KEY, name text);
         CREATE TABLE capital (state text) INHERITS (city);
         INSERT INTO city VALUES (1, 'Bonn'), (2, 'Ulm');
         INSERT INTO capital VALUES (1, 'Berlin', 'BE'), (2, 'Kiel', 'SH')",
    );
    let (house, gateway) = postgresql(
        &server,
        "contract: cities
description: Cities.
collections:
  cities: { adapter: sql, settings: { connection: pg, table: city } }
tools:
  - { tool: list_cities, description: Lists all., verb: list, collection: cities, fields: [] }
",
    );
    let client = Modern::new(gateway.url());
    let city = |id: i64, name: &str| json!({ "id": id, "name": name });
    let cities = json!([
        city(1, "Berlin"),
        city(1, "Bonn"),
        city(2, "Kiel"),
        city(2, "Ulm")
    ]);
    for limit in [1, 2, 3, 9] {
        let walked = pages(&client, "list_cities", None, limit).await;
        assert_eq!(walked, cities, "by {limit}");
    }
    let words = ["draft", "--connection", "pg", "--table", "city"];
    let (code, _, notes) = house.run(&words);
    assert_eq!(code, 0, "{notes}");
    assert!(notes.contains("The key (id) does not hold"), "{notes}");
}

/// The note of such a table says to give a key: without the verbs it could not be changed by that key.
#[tokio::test]
async fn a_table_that_others_inherit_from_is_changed_by_a_given_key() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE city (id int PRIMARY KEY, name text);
         CREATE TABLE capital (state text) INHERITS (city);
         INSERT INTO city VALUES (1, 'Bonn'), (2, 'Ulm');
         INSERT INTO capital VALUES (2, 'Kiel', 'SH'), (3, 'Berlin', 'BE')",
    );
    let (_house, gateway) = postgresql(
        &server,
        "contract: cities
description: Cities.
collections:
  cities: { adapter: sql, settings: { connection: pg, table: city }, key: [id], write: true }
tools:
  - tool: update_city
    description: Changes a name.
    verb: update
    collection: cities
    fields:
      - { name: id, type: number, required: true }
      - { name: name, type: text }
",
    );
    let client = Modern::new(gateway.url());
    for id in [1, 3] {
        let change = json!({ "id": id, "name": "new" });
        let updated = client.succeed("update_city", change.clone()).await;
        assert_eq!(updated["structuredContent"]["record"], change, "{updated}");
    }
    // Two rows have this key after all: neither is changed.
    let change = json!({ "id": 2, "name": "new" });
    let refused = client.call("update_city", change).await;
    assert_eq!(refused["structuredContent"]["code"], "conflict");
    assert_eq!(
        server.sql("SELECT string_agg(name, ' ' ORDER BY name) FROM city WHERE id = 2"),
        "Kiel Ulm"
    );
}

/// A hypertable of TimescaleDB has its rows in tables that inherit from it, and its key holds for all of them.
#[tokio::test]
async fn a_hypertable_has_its_key() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE metric (at timestamptz, device int, v float8, PRIMARY KEY (at, device));
         CREATE SCHEMA _timescaledb_internal;
         CREATE TABLE _timescaledb_internal._hyper_1_1_chunk (CHECK (at < '2025-01-01')) INHERITS (metric);
         INSERT INTO _timescaledb_internal._hyper_1_1_chunk VALUES ('2024-01-01', 1, 1.5)",
    );
    let (house, gateway) = postgresql(
        &server,
        "contract: metrics
description: Metrics.
collections:
  metrics: { adapter: sql, settings: { connection: pg, table: metric }, write: true }
tools:
  - tool: update_metric
    description: Changes a value.
    verb: update
    collection: metrics
    fields:
      - { name: at, type: datetime, required: true }
      - { name: device, type: number, required: true }
      - { name: v, type: number }
",
    );
    let client = Modern::new(gateway.url());
    let change = json!({ "at": "2024-01-01T00:00:00Z", "device": 1, "v": 2.5 });
    let updated = client.succeed("update_metric", change).await;
    let record = &updated["structuredContent"]["record"];
    assert_eq!(record["v"], json!(2.5), "{updated}");
    let words = ["draft", "--connection", "pg", "--table", "metric"];
    let (code, draft, notes) = house.run(&words);
    assert_eq!(code, 0, "{notes}");
    assert!(draft.contains("tool: get_metric"), "{draft}");
    assert!(!notes.contains("does not hold"), "{notes}");
}

/// JSON that databases accept and that is more than an answer may hold, each with what is shown of it.
fn odd_json() -> Vec<(String, Value)> {
    let nested = |levels: usize, inside: &str| {
        format!("{}{inside}{}", "[".repeat(levels), "]".repeat(levels))
    };
    let deepest = serde_json::from_str(&nested(62, "null")).expect("JSON");
    vec![
        (r#"{"k":1,"k":2}"#.to_owned(), json!({ "k": 1 })),
        ("[1e400,1]".to_owned(), json!([null, 1])),
        (r#"{"a":"\ud800b"}"#.to_owned(), json!({ "a": "\u{fffd}b" })),
        (nested(63, "1"), deepest),
        (r#"{"k":[1,2]}"#.to_owned(), json!({ "k": [1, 2] })),
    ]
}

#[tokio::test]
async fn json_of_sqlite_that_no_answer_may_hold_is_listed() {
    let house = sqlite("CREATE TABLE doc (id INTEGER PRIMARY KEY, j JSON);");
    let database = Connection::open(house.path().join("data/odd.db")).expect("a database");
    let mut expected = Vec::new();
    for (at, (kept, shown)) in odd_json().into_iter().enumerate() {
        let row = format!("INSERT INTO doc VALUES ({at}, '{kept}')");
        database.execute_batch(&row).expect("a row");
        expected.push(json!({ "id": at, "j": shown }));
    }
    let gateway = serve_drafts(&house, &["doc"]);
    let client = Modern::new(gateway.url());
    assert_eq!(records(&client, "list_docs").await, json!(expected));
}

#[tokio::test]
async fn json_of_postgresql_that_no_answer_may_hold_is_listed() {
    let server = Postgres::start();
    server.sql("CREATE TABLE doc (id int PRIMARY KEY, j json, js json[])");
    let mut expected = Vec::new();
    for (at, (kept, shown)) in odd_json().into_iter().enumerate() {
        server.sql(&format!(
            "INSERT INTO doc VALUES ({at}, '{kept}', ARRAY['{{\"k\":1,\"k\":2}}'::json])"
        ));
        expected.push(json!({ "id": at, "j": shown, "js": [{ "k": 1 }] }));
    }
    let (_house, gateway) = postgresql(
        &server,
        "contract: docs
description: Documents.
collections:
  docs: { adapter: sql, settings: { connection: pg, table: doc }, key: [id] }
tools:
  - { tool: list_docs, description: Lists all., verb: list, collection: docs, fields: [] }
",
    );
    let client = Modern::new(gateway.url());
    assert_eq!(records(&client, "list_docs").await, json!(expected));
}

#[tokio::test]
async fn a_text_of_sqlite_that_is_not_utf_8_is_listed() {
    let house = sqlite(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT);
         INSERT INTO t VALUES (1, CAST(x'ff41' AS TEXT)), (2, 'ok');",
    );
    let gateway = serve_drafts(&house, &["t"]);
    let client = Modern::new(gateway.url());
    let notes = json!([{ "id": 1, "note": "\u{fffd}A" }, { "id": 2, "note": "ok" }]);
    assert_eq!(records(&client, "list_ts").await, notes);
}

/// Tables of FTS5 and R*Tree are drafted and listed as others are, and one is named in a query too.
#[tokio::test]
async fn virtual_tables_of_sqlite_are_listed() {
    let house = sqlite(
        "CREATE VIRTUAL TABLE notes USING fts5(title, body);
         INSERT INTO notes VALUES ('t', 'b');
         CREATE VIRTUAL TABLE places USING rtree(id, x0, x1);
         INSERT INTO places VALUES (1, 0, 2);",
    )
    .file(
        "contracts/titles.yaml",
        "contract: titles
collections:
  titles: { adapter: sql, settings: { connection: db, query: \"SELECT rowid AS id, title FROM notes\" }, key: [id] }
tools:
  - { tool: list_titles, description: Lists the titles., verb: list, collection: titles, fields: [] }
",
    );
    let gateway = serve_drafts(&house, &["notes", "places"]);
    let client = Modern::new(gateway.url());
    for (tool, expected) in [
        ("list_notes", json!([{ "title": "t", "body": "b" }])),
        ("list_places", json!([{ "id": 1, "x0": 0, "x1": 2 }])),
        ("list_titles", json!([{ "id": 1, "title": "t" }])),
    ] {
        assert_eq!(records(&client, tool).await, expected, "{tool}");
    }
}

/// Serves a cluster's tables by one contract that may write.
fn postgresql(server: &Postgres, contract: &str) -> (House, Gateway) {
    let house = House::new()
        .config(&format!(
            "[connections.pg]\nkind = \"postgresql\"\nurl = \"{}\"\nwrite = true\n[plugins.sql.grants]\npg = \"write\"",
            server.url()
        ))
        .file("contracts/odd.yaml", contract);
    let gateway = house.serve();
    (house, gateway)
}

/// The type of the elements is written with its schema. What the database refuses has not been done.
#[tokio::test]
async fn an_array_of_a_type_of_another_schema_is_written() {
    let server = Postgres::start();
    server.sql(
        "CREATE SCHEMA app;
         CREATE TYPE app.kind AS ENUM ('a', 'b');
         CREATE TABLE app.item (id int PRIMARY KEY, k app.kind, ks app.kind[])",
    );
    let (_house, gateway) = postgresql(
        &server,
        "contract: items
description: Items.
collections:
  items: { adapter: sql, settings: { connection: pg, table: app.item }, key: [id], write: true }
tools:
  - tool: add
    description: Adds one.
    verb: create
    collection: items
    fields:
      - { name: id, type: number, required: true }
      - { name: k, type: text }
      - { name: ks, type: list, of: { type: text } }
",
    );
    let client = Modern::new(gateway.url());
    let item = json!({ "id": 1, "k": "b", "ks": ["a"] });
    server.sql("ALTER TYPE app.kind RENAME TO sort");
    let refused = client.call("add", item.clone()).await;
    let error = &refused["structuredContent"];
    assert_eq!(
        (&error["code"], &error["outcome"]),
        (&json!("upstream_error"), &json!("none")),
        "{refused}"
    );
    server.sql("ALTER TYPE app.sort RENAME TO kind");
    let created = client.call("add", item.clone()).await;
    let expected = json!({ "status": "created", "record": item });
    for (member, value) in expected.as_object().expect("an object") {
        assert_eq!(&created["structuredContent"][member], value, "{created}");
    }
    assert_eq!(server.sql("SELECT k, ks FROM app.item"), "b|{a}");
}

/// Arrays of more dimensions than their type says, of composites, and of values that are not finite.
#[tokio::test]
async fn arrays_of_postgresql_are_read() {
    let server = Postgres::start();
    server.sql(
        "CREATE TYPE addr AS (street text, zip int);
         CREATE TABLE arrs (id int PRIMARY KEY, grid int[][], homes addr[], prices numeric[], seen timestamptz[]);
         INSERT INTO arrs (id, grid) VALUES (1, '{{1,2},{3,4}}');
         INSERT INTO arrs (id, homes) VALUES (2, ARRAY[('Main St', 1)::addr]);
         INSERT INTO arrs (id, prices) VALUES (3, '{1.5,NaN}');
         INSERT INTO arrs (id, seen) VALUES (4, '{infinity}')",
    );
    let (_house, gateway) = postgresql(
        &server,
        "contract: arrays
description: Arrays.
collections:
  arrays: { adapter: sql, settings: { connection: pg, table: arrs }, key: [id] }
tools:
  - tool: one
    description: Returns one.
    verb: lookup
    collection: arrays
    fields: [{ name: id, type: number, required: true }]
  - { tool: all, description: Lists all., verb: list, collection: arrays, fields: [] }
",
    );
    let client = Modern::new(gateway.url());
    let mut expected = Vec::new();
    for (id, column, value) in [
        (1, "grid", json!([[1, 2], [3, 4]])),
        (2, "homes", json!([{ "street": "Main St", "zip": 1 }])),
        (3, "prices", json!(["1.5", null])),
        (4, "seen", json!([null])),
    ] {
        let mut record =
            json!({ "id": id, "grid": null, "homes": null, "prices": null, "seen": null });
        record[column] = value;
        let one = client.call("one", json!({ "id": id })).await;
        assert_eq!(one["structuredContent"], record, "{column}: {one}");
        expected.push(record);
    }
    assert_eq!(records(&client, "all").await, json!(expected));
}

/// What a role or a database sets for its sessions changes neither what is read nor what is written.
#[tokio::test]
async fn settings_of_a_database_of_postgresql_change_no_value() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE odd (id int PRIMARY KEY, span interval, grid text[][], at timestamp, day date, n float8);
         INSERT INTO odd VALUES (1, '1 year 2 days 03:04:05', NULL, '2024-03-01 12:00', '2024-03-01', 1e0 / 3);
         ALTER DATABASE postgres SET intervalstyle = 'sql_standard';
         ALTER DATABASE postgres SET standard_conforming_strings = off;
         ALTER DATABASE postgres SET array_nulls = off;
         ALTER DATABASE postgres SET datestyle = 'German, DMY';
         ALTER DATABASE postgres SET timezone = 'Asia/Tokyo';
         ALTER DATABASE postgres SET extra_float_digits = -5",
    );
    let (_house, gateway) = postgresql(
        &server,
        "contract: odd
description: Odd.
collections:
  odd: { adapter: sql, settings: { connection: pg, table: odd }, key: [id], write: true }
tools:
  - { tool: list_odd, description: Lists all., verb: list, collection: odd, fields: [] }
  - { tool: sum_odd, description: Says the first., verb: summarize, collection: odd, measures: [min(at)], fields: [] }
  - tool: add_odd
    description: Adds one.
    verb: create
    collection: odd
    fields:
      - { name: id, type: number, required: true }
      - { name: grid, type: json, schema: {} }
      - { name: span, type: text }
",
    );
    let client = Modern::new(gateway.url());
    let first = json!([{ "min(at)": "2024-03-01T12:00:00Z" }]);
    assert_eq!(records(&client, "sum_odd").await, first);
    // The session of a write is used again.
    for id in [2, 3] {
        let odd = json!({ "id": id, "grid": [["a", null]], "span": "-1 days +02:03:00" });
        client.succeed("add_odd", odd).await;
    }
    let row = |id: i32| json!({ "id": id, "span": "-1 days +02:03:00", "grid": [["a", null]], "at": null, "day": null, "n": null });
    let expected = json!([
        {
            "id": 1, "span": "1 year 2 days 03:04:05", "grid": null, "at": "2024-03-01T12:00:00Z", "day": "2024-03-01",
            "n": 1.0 / 3.0
        },
        row(2),
        row(3),
    ]);
    assert_eq!(records(&client, "list_odd").await, expected);
    let nulls = "SELECT count(*) FROM odd WHERE grid[1][2] IS NULL AND grid IS NOT NULL";
    assert_eq!(server.sql(nulls), "2");
}
