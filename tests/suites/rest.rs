//! The `rest` adapter on foreign services: every way to page gives the same list, and TLS is TLS.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{
        HeaderMap, StatusCode, Uri,
        header::{CONTENT_TYPE, LINK},
    },
    response::IntoResponse,
    routing::get,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use weir_tests::{
    Gateway, House, Modern,
    upstream::{Certificate, Datasette, JsonServer},
    web,
};

const ITEMS: usize = 23;

fn items() -> Vec<Value> {
    let kinds = ["fruit", "root"];
    (1..=ITEMS)
        .map(|id| json!({ "id": id, "name": format!("item {id}"), "kind": kinds[id % 2] }))
        .collect()
}

/// Puts the same items in a database, `items.db`.
fn database(house: &House) -> std::path::PathBuf {
    let path = house.path().join("data/items.db");
    let database = rusqlite::Connection::open(&path).expect("a database");
    database
        .execute_batch("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, kind TEXT)")
        .expect("a table");
    for item in items() {
        let values = rusqlite::params![
            item["id"].as_i64(),
            item["name"].as_str(),
            item["kind"].as_str()
        ];
        database
            .execute("INSERT INTO items VALUES (?, ?, ?)", values)
            .expect("a row");
    }
    path
}

fn connection(base: &str, more: &str) -> String {
    format!(
        "[connections.api]\nkind = \"http\"\nbase_url = \"{base}\"\n{more}\n[plugins.rest.grants]\napi = \"read\""
    )
}

fn contract(list: &str) -> String {
    format!(
        "contract: items
collections:
  items:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: {{ id: integer, name: string, kind: string }}
      list: {list}
tools:
  - tool: list_items
    description: All of them.
    verb: list
    collection: items
    fields: [{{ name: kind, type: text }}]
"
    )
}

const DATASETTE: &str = "{ path: /items/items.json, records: /rows, query: { _shape: objects }, \
    pagination: { style: cursor, cursor: _next, next: /next, size: _size, per_page: 5 } }";

async fn walk(client: &Modern, mut arguments: Value) -> Vec<Value> {
    let mut records = Vec::new();
    loop {
        let page = client.succeed("list_items", arguments.clone()).await;
        let page = &page["structuredContent"];
        records.extend(
            page["records"]
                .as_array()
                .expect("a page has records")
                .iter()
                .cloned(),
        );
        match &page["next"] {
            Value::Null => return records,
            next => arguments["cursor"] = next.clone(),
        }
    }
}

/// The service answers five records at once, an agent asks for seven or for a hundred.
#[tokio::test]
async fn every_way_to_page_gives_the_whole_list_once() {
    let server = JsonServer::start(&json!({ "items": items() }), "id");
    let style = |query: &str, pagination: &str| {
        format!(
            "{{ path: /items, query: {{ {query} }}, sorted_by: [id], pagination: {{ {pagination}, per_page: 5 }} }}"
        )
    };
    let lists = [
        style("", "style: offset, offset: _start, limit: _limit"),
        style("", "style: page, page: _page, size: _limit"),
        style("_page: \"1\"", "style: link, size: _limit"),
    ];
    for list in lists {
        let house = House::new()
            .config(&connection(&server.base, ""))
            .file("contracts/items.yaml", contract(&list));
        whole(&house.serve(), &list).await;
    }
    let house = House::new();
    let server = Datasette::start(&database(&house), None);
    let house = house
        .config(&connection(&server.base, ""))
        .file("contracts/items.yaml", contract(DATASETTE));
    whole(&house.serve(), DATASETTE).await;
}

async fn whole(gateway: &Gateway, list: &str) {
    let client = Modern::new(gateway.url());
    for limit in [1, 7, 100] {
        let walked = walk(&client, json!({ "limit": limit })).await;
        assert_eq!(
            walked,
            items(),
            "{list} at limit {limit}\n{}",
            gateway.log()
        );
    }
    let fruit: Vec<Value> = items()
        .into_iter()
        .filter(|item| item["kind"] == "fruit")
        .collect();
    assert_eq!(
        walk(&client, json!({ "kind": "fruit", "limit": 4 })).await,
        fruit,
        "{list}"
    );
}

#[tokio::test]
async fn a_service_is_reached_over_tls_by_a_certificate_that_is_accepted_and_by_no_other() {
    let certificate = Certificate::of("127.0.0.1");
    let (stranger, misnamed) = (
        Certificate::of("127.0.0.1"),
        Certificate::of("elsewhere.example"),
    );
    let data = House::new();
    let server = Datasette::start(&database(&data), Some(&certificate));
    let other = Datasette::start(&data.path().join("data/items.db"), Some(&misnamed));
    let serve = |base: &str, ca: Option<&Certificate>| {
        let named = if ca.is_some() {
            "ca = \"file:ca.pem\""
        } else {
            ""
        };
        let house = House::new()
            .config(&connection(base, named))
            .file("contracts/items.yaml", contract(DATASETTE));
        if let Some(ca) = ca {
            house.write(
                "ca.pem",
                std::fs::read(ca.authority()).expect("a certificate"),
            );
        }
        let gateway = house.serve();
        (house, gateway)
    };
    let (_house, gateway) = serve(&server.base, Some(&certificate));
    whole(&gateway, "over TLS").await;
    for (what, base, ca) in [
        (
            "an authority that the system does not know",
            &server.base,
            None,
        ),
        (
            "another authority than the one that is named",
            &server.base,
            Some(&stranger),
        ),
        (
            "a certificate for another name",
            &other.base,
            Some(&misnamed),
        ),
    ] {
        let (_house, gateway) = serve(base, ca);
        let refused = Modern::new(gateway.url())
            .call("list_items", json!({}))
            .await["structuredContent"]
            .clone();
        assert_eq!(
            refused["code"],
            "unavailable",
            "{what}: {refused}\n{}",
            gateway.log()
        );
        gateway.wait_for_log("invalid peer certificate");
        gateway.wait_for_log("`ca` of the connection");
    }
}

#[test]
fn an_authority_that_is_none_is_refused_at_the_start() {
    for (content, message) in [
        (Some("not PEM"), "`ca` holds no certificate"),
        (None, "ca.pem cannot be read"),
    ] {
        let house = House::new().config(&connection("https://127.0.0.1:1", "ca = \"file:ca.pem\""));
        content
            .into_iter()
            .for_each(|content| house.write("ca.pem", content));
        let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(
            code == 1 && err.contains("/connections/api") && err.contains(message),
            "{err}"
        );
    }
}

/// The only record of a service.
type Held = Arc<Mutex<String>>;

/// Serves a record that a PUT replaces at `/items/1`, and lines that have no key, in pages of three, at `/lines`.
async fn service(record: &str) -> (String, Held) {
    async fn read(State(held): State<Held>) -> impl IntoResponse {
        ([(CONTENT_TYPE, "application/json")], held.lock().clone())
    }
    async fn replace(State(held): State<Held>, body: String) -> StatusCode {
        *held.lock() = body;
        StatusCode::NO_CONTENT
    }
    async fn lines(uri: Uri) -> impl IntoResponse {
        let page = uri
            .query()
            .and_then(|query| query.rsplit_once('=')?.1.parse().ok())
            .unwrap_or(0_usize);
        let lines: Vec<_> = LINES
            .iter()
            .skip(page * 3)
            .take(3)
            .map(|line| json!({ "text": line }))
            .collect();
        let rel = if (page + 1) * 3 < LINES.len() {
            "next"
        } else {
            "last"
        };
        let link = format!("</lines?fields=text,id&page={}>; rel=\"{rel}\"", page + 1);
        (
            [(CONTENT_TYPE, "application/json".to_owned()), (LINK, link)],
            json!(lines).to_string(),
        )
    }
    let held = Held::new(Mutex::new(record.to_owned()));
    let app = Router::new()
        .route("/items/1", get(read).put(replace))
        .route("/lines", get(lines));
    let base = web::serve(app.with_state(held.clone())).await;
    (base, held)
}

const LINES: [&str; 8] = [
    "to be", "or", "not", "to be", "to be", "that is", "the", "question",
];

const THINGS: &str = r#"
contract: things
collections:
  items:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: integer, author: { type: string, nullable: true, at: /author/name } }
      get: { path: "/items/{id}" }
      update: { path: "/items/{id}", method: PUT }
    write: true
  lines:
    adapter: rest
    settings: { connection: api, fields: { text: string }, list: { path: /lines, pagination: { style: link } } }
tools:
  - tool: change_item
    description: Changes the author of an item.
    verb: update
    collection: items
    fields: [{ name: id, type: number, required: true }, { name: author, type: text, required: true }]
  - tool: list_items
    description: Lists all lines.
    verb: list
    collection: lines
    fields: [{ name: text, type: text }]
"#;

#[tokio::test]
async fn a_replacement_leaves_everything_beside_its_fields_as_it_was() {
    let (base, held) =
        service(r#"{"total":12345678901234567.89,"author":{"email":"e","name":"A"},"id":1}"#).await;
    let house = House::new()
        .config(&writable(&base))
        .file("contracts/things.yaml", THINGS);
    let gateway = house.serve();
    let changed = Modern::new(gateway.url())
        .call("change_item", json!({ "id": 1, "author": "B" }))
        .await;
    assert_eq!(
        changed["structuredContent"]["record"],
        json!({ "id": 1, "author": "B" }),
        "{changed}"
    );
    let now = held.lock().clone();
    assert_eq!(
        now,
        r#"{"total":12345678901234567.89,"author":{"email":"e","name":"B"},"id":1}"#
    );
}

/// Links may have commas in them, and no key tells two records of the same text apart.
#[tokio::test]
async fn a_list_without_a_key_is_walked_to_its_end() {
    let (base, _held) = service("{}").await;
    let house = House::new()
        .config(&writable(&base))
        .file("contracts/things.yaml", THINGS);
    let (_gateway, client) = house.serve_client();
    for limit in [1, 2, 5, 100] {
        let walked = walk(&client, json!({ "limit": limit })).await;
        let texts: Vec<_> = walked
            .iter()
            .map(|line| line["text"].as_str().expect("a text"))
            .collect();
        assert_eq!(texts, LINES, "{limit}");
        assert_eq!(
            walk(&client, json!({ "limit": limit, "text": "to be" }))
                .await
                .len(),
            3,
            "{limit}"
        );
    }
}

/// A service that refuses everything, in the words of its path.
async fn refusing_service() -> String {
    async fn refuse(uri: Uri, headers: HeaderMap) -> impl IntoResponse {
        let token = headers.get("x-api-key").and_then(|key| key.to_str().ok());
        let token = token.unwrap_or_default();
        let (status, body) = match uri.path() {
            "/problem" => (
                422,
                json!({ "title": "No", "detail": "The price is over 100." }),
            ),
            "/fastapi" => (
                422,
                json!({ "detail": [{ "loc": ["body", "price"], "msg": "must be less than 100" }] }),
            ),
            "/message" => (
                400,
                json!({ "message": format!("The key {token} has no role.\n\u{1b}[31mTry again.") }),
            ),
            "/long" => (409, json!({ "error": "x".repeat(2_000) })),
            "/key" => (
                401,
                json!({ "message": "The key of the shop has expired." }),
            ),
            _ => (500, json!({ "message": "line 17 of shop.py" })),
        };
        let status = StatusCode::from_u16(status).expect("a status");
        (
            status,
            [(CONTENT_TYPE, "application/problem+json")],
            body.to_string(),
        )
    }
    web::serve(Router::new().fallback(refuse)).await
}

/// The words in which a service refuses a request reach the agent, on one short line and without secrets; or not at all.
#[tokio::test]
async fn a_refusal_is_read_in_the_words_of_the_service() {
    const KEY: &str = "kingfisher-7-lantern";
    const PATHS: [&str; 6] = ["problem", "fastapi", "message", "long", "key", "failure"];
    let base = refusing_service().await;
    let config = writable(&base).replace(
        "write = true",
        &format!("write = true\nheaders = {{ X-Api-Key = \"{KEY}\" }}"),
    );
    let contract = |name: &str, more: &str| {
        let (mut operations, mut tools) = (String::new(), String::new());
        for path in PATHS {
            let _ = writeln!(
                operations,
                "        {path}: {{ path: /{path}, params: {{ price: {{ type: integer }} }} }}"
            );
            let _ = writeln!(
                tools,
                "  - {{ tool: {name}_{path}, description: Sets a price., verb: call, operation: {path}, collection: shop, fields: [{{ name: price, type: number }}] }}"
            );
        }
        format!(
            "contract: {name}\ncollections:\n  shop:\n    adapter: rest\n    write: true\n    settings:\n      connection: api\n{more}      operations:\n{operations}tools:\n{tools}"
        )
    };
    let house = House::new()
        .config(&config)
        .file("contracts/open.yaml", contract("open", ""))
        .file(
            "contracts/quiet.yaml",
            contract("quiet", "      errors: hidden\n"),
        );
    let (_gateway, client) = house.serve_client();
    let message = async |tool: String| {
        let refused = client.call(&tool, json!({ "price": 200 })).await;
        assert_eq!(refused["isError"], true, "{refused}");
        let text = refused.to_string();
        assert!(!text.contains(KEY), "{text}");
        refused["structuredContent"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{refused}"))
            .to_owned()
    };
    let refuses = "The web service refuses the values.";
    let conflict = "The web service refuses the change: it is in conflict with what is there.";
    let credentials = "The web service refuses the connection's credentials.";
    let fails = "The web service answers with an error.";
    for (path, meaning, words) in [
        (
            "problem",
            refuses,
            Some("The price is over 100.".to_owned()),
        ),
        (
            "fastapi",
            refuses,
            Some("price: must be less than 100".to_owned()),
        ),
        (
            "message",
            refuses,
            Some("The key *** has no role. [31mTry again.".to_owned()),
        ),
        ("long", conflict, Some(format!("{}…", "x".repeat(300)))),
        ("key", credentials, None),
        ("failure", fails, None),
    ] {
        let expected = match words {
            Some(words) => format!("{meaning} It says: \"{words}\""),
            None => meaning.to_owned(),
        };
        assert_eq!(message(format!("open_{path}")).await, expected);
        assert_eq!(message(format!("quiet_{path}")).await, meaning);
    }
    house.write("wrong.yaml", contract("wrong", "      errors: secret\n"));
    let (code, _, err) = house.run(&["compile", "wrong.yaml"]);
    assert_ne!(code, 0, "{err}");
    assert!(err.contains("hidden"), "{err}");
}

fn writable(base: &str) -> String {
    format!(
        "[connections.api]\nkind = \"http\"\nbase_url = \"{base}\"\nwrite = true\n[plugins.rest.grants]\napi = \"write\""
    )
}
