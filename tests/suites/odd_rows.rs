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
        let (code, contract, notes) = house.run(&words);
        assert_eq!(code, 0, "{table}: {notes}");
        house.write(&format!("contracts/{table}.yaml"), contract);
    }
    house.serve()
}

/// Returns the records of a list.
async fn records(client: &Modern, tool: &str) -> Value {
    let listed = client.call(tool, json!({})).await;
    assert_eq!(listed["isError"], false, "{tool}: {listed}");
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

/// Serves a cluster's tables by one contract, which may write.
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
