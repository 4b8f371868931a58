//! Fields bound to the caller: the same rows for every adapter, on every verb, whatever the agent sends.

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern};

const TOOLS: &str = r#"
    columns: [id, subject, state]
    key: [id]
    write: true
tools:
  - tool: find_ticket
    description: Finds one ticket by its number.
    verb: lookup
    collection: tickets
    fields:
      - { name: id, type: number, required: true }
      - { name: owner, from: tenant }
  - tool: list_tickets
    description: Lists tickets by their number.
    verb: list
    collection: tickets
    fields:
      - { name: owner, from: tenant }
  - tool: create_ticket
    description: Opens a ticket and returns it.
    verb: create
    collection: tickets
    fields:
      - { name: id, type: number, required: true }
      - { name: subject, type: text, required: true }
      - { name: state, value: open }
      - { name: owner, from: tenant }
      - { name: author, from: agent }
  - tool: update_ticket
    description: Changes the subject of an open ticket.
    verb: update
    collection: tickets
    fields:
      - { name: id, type: number, required: true }
      - { name: subject, type: text }
      - { name: state, value: open }
      - { name: owner, from: tenant }
  - tool: delete_ticket
    description: Deletes a ticket by its number.
    verb: delete
    collection: tickets
    fields:
      - { name: id, type: number, required: true }
      - { name: owner, from: tenant }
"#;

/// The rows of several tenants. On loopback everyone is agent `local` of tenant `local`.
const ROWS: [(u32, &str, &str, &str); 4] = [
    (1, "mine", "open", "local"),
    (2, "another's", "open", "acme"),
    (3, "mine too", "closed", "local"),
    (4, "nearly mine", "open", "Local"),
];

struct Desk {
    client: Modern,
    gateway: Gateway,
    house: House,
    /// Every row of the source, owners and authors included.
    rows: fn(&House) -> Vec<String>,
}

#[tokio::test]
async fn a_caller_reaches_its_own_rows_alone() {
    for desk in [csv(), sqlite()] {
        reads(&desk.client).await;
        writes(&desk).await;
        assert!(
            !desk.gateway.log().contains("panicked"),
            "{}",
            desk.gateway.log()
        );
    }
}

/// A file that loses its scope is held: no caller sees a row of another before an operator has agreed, also after a restart.
#[tokio::test]
async fn a_scope_dropped_from_the_file_shows_no_foreign_row() {
    let desk = csv();
    let scoped = std::fs::read_to_string(desk.house.path().join("contracts/desk.yaml"))
        .expect("the contract");
    let own = |listed: &Value| {
        let ids: Vec<u64> = listed["structuredContent"]["records"]
            .as_array()
            .expect("records")
            .iter()
            .filter_map(|record| record["id"].as_u64())
            .collect();
        assert_eq!(ids, [1, 3], "{listed}");
    };
    own(&desk.client.call("list_tickets", json!({})).await);
    let open = scoped.replace("      - { name: owner, from: tenant }\n", "");
    let open = open.replace("    fields:\n  - tool", "    fields: []\n  - tool");
    assert_ne!(open, scoped);
    desk.house.write("contracts/desk.yaml", &open);
    let asking = async {
        for _ in 0..200 {
            own(&desk.client.call("list_tickets", json!({})).await);
            assert_eq!(
                refused(&desk.client, "find_ticket", json!({"id": 2})).await,
                "not_found"
            );
        }
    };
    asking.await;
    desk.gateway.wait_for_log("held: desk");
    own(&desk.client.call("list_tickets", json!({})).await);
    drop(desk.gateway);
    let again = desk.house.serve();
    let client = Modern::new(again.url());
    own(&client.call("list_tickets", json!({})).await);
    assert_eq!(
        refused(&client, "delete_ticket", json!({"id": 2})).await,
        "not_found"
    );
    let shown = desk.house.json(&["contracts", "show", "desk"]);
    let draft = shown["drafts"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|draft| draft["status"] == "pending");
    assert_eq!(draft.expect("a draft")["needs"], "operator", "{shown}");
}

async fn reads(client: &Modern) {
    let (tools, _) = client.list().await;
    let answer = json!(tools).to_string();
    assert!(
        !answer.contains("owner") && !answer.contains("tenant") && !answer.contains("author"),
        "{answer}"
    );

    let first = client.call("list_tickets", json!({"limit": 1})).await["structuredContent"].clone();
    let second = client
        .call("list_tickets", json!({"limit": 1, "cursor": first["next"]}))
        .await;
    let second = &second["structuredContent"];
    assert_eq!(
        first["records"],
        json!([{"id": 1, "subject": "mine", "state": "open"}]),
        "{first}"
    );
    assert_eq!(
        second["records"],
        json!([{"id": 3, "subject": "mine too", "state": "closed"}]),
        "{second}"
    );
    assert_eq!(second["next"], Value::Null, "{second}");

    assert_eq!(
        client.call("find_ticket", json!({"id": 1})).await["structuredContent"]["subject"],
        "mine"
    );
    for id in [2, 4, 9] {
        assert_eq!(
            refused(client, "find_ticket", json!({"id": id})).await,
            "not_found",
            "{id}"
        );
    }
    for tool in ["find_ticket", "list_tickets", "delete_ticket"] {
        let error =
            client.call(tool, json!({"id": 2, "owner": "acme"})).await["structuredContent"].clone();
        let unknown = error["errors"]
            .as_array()
            .expect("all errors")
            .iter()
            .any(|error| error["field"] == "owner" && error["reason"] == "unknown_argument");
        assert!(unknown, "{tool}: {error}");
    }
}

async fn writes(desk: &Desk) {
    let client = &desk.client;
    let before = (desk.rows)(&desk.house);
    for id in [2, 4, 9] {
        let update = refused(
            client,
            "update_ticket",
            json!({"id": id, "subject": "taken"}),
        )
        .await;
        assert_eq!(update, "not_found", "{id}");
        assert_eq!(
            refused(client, "delete_ticket", json!({"id": id})).await,
            "not_found",
            "{id}"
        );
    }
    // The ticket is the caller's own, but not open.
    assert_eq!(
        refused(client, "update_ticket", json!({"id": 3, "subject": "x"})).await,
        "not_found"
    );
    assert_eq!(
        (desk.rows)(&desk.house),
        before,
        "a refused write changed something"
    );

    let updated = client
        .call("update_ticket", json!({"id": 1, "subject": "changed"}))
        .await;
    assert_eq!(
        updated["structuredContent"]["record"]["subject"], "changed",
        "{updated}"
    );
    let deleted = client.call("delete_ticket", json!({"id": 3})).await;
    assert_eq!(
        deleted["structuredContent"]["record"]["subject"], "mine too",
        "{deleted}"
    );
    let created = client
        .call("create_ticket", json!({"id": 5, "subject": "new"}))
        .await;
    let expected = json!({"id": 5, "subject": "new", "state": "open"});
    assert_eq!(
        created["structuredContent"]["record"], expected,
        "{created}"
    );
    assert_eq!(
        (desk.rows)(&desk.house),
        [
            "1,changed,open,local,",
            "2,another's,open,acme,",
            "4,nearly mine,open,Local,",
            "5,new,open,local,local",
        ]
    );
}

async fn refused(client: &Modern, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn csv() -> Desk {
    let mut text = "id,subject,state,owner,author\n".to_owned();
    for (id, subject, state, owner) in ROWS {
        text.push_str(&format!("{id},{subject},{state},{owner},\n"));
    }
    let house = House::new().sheets().file("data/tickets.csv", text);
    let rows = |house: &House| {
        let text =
            std::fs::read_to_string(house.path().join("data/tickets.csv")).expect("the sheet");
        text.lines().skip(1).map(str::to_owned).collect()
    };
    serve(
        house,
        "sheet",
        "{ connection: data, path: tickets.csv }",
        rows,
    )
}

fn sqlite() -> Desk {
    let house = House::new().config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/desk.sqlite\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\"",
    );
    let database = database(&house);
    database
        .execute_batch(
            "CREATE TABLE tickets (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, state TEXT NOT NULL, \
             owner TEXT NOT NULL, author TEXT)",
        )
        .expect("a table");
    for (id, subject, state, owner) in ROWS {
        let insert = "INSERT INTO tickets VALUES (?, ?, ?, ?, NULL)";
        database
            .execute(insert, (id, subject, state, owner))
            .expect("a row");
    }
    let rows = |house: &House| {
        let database = self::database(house);
        let mut rows = database
            .prepare("SELECT id || ',' || subject || ',' || state || ',' || owner || ',' || ifnull(author, '') FROM tickets ORDER BY id")
            .expect("a statement");
        let texts = rows.query_map([], |row| row.get(0)).expect("rows");
        texts.collect::<Result<_, _>>().expect("texts")
    };
    serve(house, "sql", "{ connection: db, table: tickets }", rows)
}

fn database(house: &House) -> rusqlite::Connection {
    rusqlite::Connection::open(house.path().join("data/desk.sqlite"))
        .expect("a file in the temporary folder")
}

fn serve(house: House, adapter: &str, settings: &str, rows: fn(&House) -> Vec<String>) -> Desk {
    let head = format!(
        "contract: desk\ncollections:\n  tickets:\n    adapter: {adapter}\n    settings: {settings}"
    );
    let house = house.file("contracts/desk.yaml", head + TOOLS);
    let gateway = house.serve();
    Desk {
        client: Modern::new(gateway.url()),
        gateway,
        house,
        rows,
    }
}
