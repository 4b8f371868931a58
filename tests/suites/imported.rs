//! Operations of an imported document, at a service that reports what it was sent and gives answers that its document
//! does not describe.

use axum::{
    Json, Router,
    extract::Path,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};
use weir_tests::{House, Modern, answer_to, http, schema::tool, strangers::hostile, web};

use crate::upstreams::{serve_listed, trusted};

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Echo, version: "1" }
servers: [ { url: "http://127.0.0.1:1" } ]
paths:
  /pets/{id}:
    get:
      operationId: get_pet
      summary: Returns a pet.
      parameters: [ { name: id, in: path, required: true, schema: { type: integer, format: int64 } } ]
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
    patch:
      operationId: change_pet
      summary: Changes a pet.
      parameters: [ { name: id, in: path, required: true, schema: { type: integer, format: int64 } } ]
      requestBody: { content: { application/json: { schema: { type: object, properties: {
        note: { type: [string, "null"] }, owner: { type: integer, format: int64 }, name: { type: string } } } } } }
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
  /odd:
    post:
      operationId: add_odd
      summary: Answers other values than it says.
      responses: { "201": { description: ok, content: { application/json: { schema: { type: object, required: [id, name, count], properties: {
        id: { type: integer, format: int64 }, name: { type: string }, count: { type: integer }, deep: { type: object } } } } } } }
  /select/{days}:
    put:
      operationId: select_days
      summary: Selects days.
      parameters:
        - { name: days, in: path, required: true, schema: { type: array, items: { type: string } } }
        - { name: ids, in: query, explode: false, schema: { type: array, items: { type: string } } }
        - { name: from, in: query, schema: { type: string } }
        - { name: X-Trace, in: header, schema: { type: string } }
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
  "/sp ace/ü":
    get: { operationId: odd_path, summary: Has an odd path., responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } } }
  /ws:
    parameters: [ { name: X-Trace, in: header, schema: { type: string } } ]
    post:
      operationId: add_ws
      summary: Adds a workspace.
      parameters: [ { name: x-trace, in: header, required: true, schema: { type: string } } ]
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
  /k:
    get:
      operationId: list_k
      summary: Lists things of a kind.
      parameters:
        - { name: kind, in: query, schema: { type: string, enum: [a, b, a] } }
        - { name: at, in: query, schema: { type: string, format: time } }
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
  /refuse:
    post:
      operationId: refuse
      summary: Sends a size that the service refuses.
      requestBody: { content: { application/json: { schema: { type: object, properties: { size: { type: integer } } } } } }
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
  /labels:
    post:
      operationId: print_label
      summary: Prints a label.
      responses: { "200": { description: ok, content: { text/plain: { schema: { type: string } } } } }
  /bom:
    get: { operationId: with_mark, summary: Begins with a mark., responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } } }
"#;

async fn echo(
    Path(path): Path<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let json = [("content-type", "application/json")];
    if path == "odd" {
        let odd = r#"{"id": 1234567890123456789, "name": null, "count": "many", "deep": {"a": [{"id": 18446744073709551615}], "b": 1, "b": 2}}"#;
        return (StatusCode::CREATED, json, odd).into_response();
    }
    if path == "refuse" {
        let refused = r#"{"detail": [{"loc": ["body", "size"], "msg": "must be one of 10, 20"}]}"#;
        return (StatusCode::UNPROCESSABLE_ENTITY, json, refused).into_response();
    }
    if path == "bom" {
        return (json, "\u{feff}{\"n\": 1}").into_response();
    }
    if path == "labels" {
        return match headers.get("accept").map(|accept| accept.as_bytes()) {
            Some(b"text/plain") => "printed".into_response(),
            _ => StatusCode::NOT_ACCEPTABLE.into_response(),
        };
    }
    let traces: Vec<_> = headers
        .get_all("x-trace")
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    Json(json!({ "method": method.as_str(), "path": uri.to_string(), "body": body, "traces": traces })).into_response()
}

async fn gateway() -> (House, weir_tests::Gateway) {
    let base = web::serve(Router::new().route("/{*path}", any(echo))).await;
    let house = House::new().file("api.yaml", DOCUMENT);
    let (_, contract, _) = crate::import::weir(
        &house,
        &["draft", "--openapi", "api.yaml", "--name", "echo"],
    );
    let house = house.file("contracts/echo.yaml", contract).config(&format!(
        "[connections.echo]\nkind = \"http\"\nbase_url = \"{base}\"\nwrite = true\n[plugins.rest.grants]\necho = \"write\""
    ));
    let gateway = house.serve();
    (house, gateway)
}

/// Returns what the service reports that it was sent.
async fn sent(client: &Modern, tool: &str, arguments: Value) -> Value {
    let result = client.succeed(tool, arguments).await;
    result["structuredContent"]["record"]["result"].clone()
}

#[tokio::test]
async fn a_service_is_sent_what_its_document_asks_for() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    for id in [
        json!(1_234_567_890_123_456_789_i64),
        json!("1234567890123456789"),
    ] {
        let arguments = json!({ "id": id, "note": null, "owner": id, "name": null });
        let sent = sent(&client, "change_pet", arguments).await;
        assert_eq!(sent["path"], "/pets/1234567890123456789", "{id}");
        // Null is a value where the document allows it; elsewhere, many clients send it for what is not set.
        assert_eq!(
            sent["body"], r#"{"note":null,"owner":1234567890123456789}"#,
            "{id}"
        );
    }
    let refused = client.call("change_pet", json!({ "id": "many" })).await;
    assert_eq!(
        refused["structuredContent"]["code"], "invalid_arguments",
        "{refused}"
    );
    let days = json!({ "days": ["a,b", "c"], "ids": ["x,y", "z"] });
    let sent_days = sent(&client, "select_days", days).await;
    assert_eq!(sent_days["path"], "/select/a%2Cb,c?ids=x%2Cy,z");
    // Clients in Python can call no argument `from` or `X-Trace`; the service accepts no other names.
    let named = json!({ "days": ["mon"], "from_value": "may", "X_Trace": "t1" });
    let sent_names = sent(&client, "select_days", named).await;
    assert_eq!(
        (&sent_names["path"], &sent_names["traces"]),
        (&json!("/select/mon?from=may"), &json!(["t1"]))
    );
    assert_eq!(
        sent(&client, "odd_path", json!({})).await["path"],
        "/sp%20ace/%C3%BC"
    );
    assert_eq!(
        sent(&client, "with_mark", json!({})).await,
        json!({ "n": 1 })
    );
}

/// An integer of 64 bits is one value, though its schema has two forms.
#[tokio::test]
async fn an_argument_of_two_forms_is_in_a_query() {
    let (_house, gateway) = gateway().await;
    let rest = gateway.url().replace("/mcp", "/rest/echo");
    let asked = http().get(format!("{rest}/get_pet?id=1234567890123456789"));
    let pet = answer_to(asked).await;
    let pet = pet.text().await.expect("a body");
    let pet: Value = serde_json::from_str(&pet).expect("JSON");
    let path = &pet["record"]["result"]["path"];
    assert_eq!(path, "/pets/1234567890123456789", "{pet}");
}

/// Names of headers are case-insensitive, and the operation's own parameter replaces that of its path.
#[tokio::test]
async fn a_header_in_two_spellings_is_one_argument() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    let (tools, _) = client.list().await;
    let input = &tool(&tools, "add_ws")["inputSchema"];
    let names = input["properties"].as_object().expect("arguments").keys();
    let traces: Vec<&str> = names
        .map(String::as_str)
        .filter(|name| name.to_lowercase().ends_with("trace"))
        .collect();
    assert_eq!(
        (&traces[..], &input["required"]),
        (&["x_trace"][..], &json!(["x_trace"])),
        "{input}"
    );
    let sent = sent(&client, "add_ws", json!({ "x_trace": "B" })).await;
    assert_eq!(sent["traces"], json!(["B"]));
    let refused = client.call("add_ws", json!({})).await;
    assert_eq!(
        refused["structuredContent"]["code"], "invalid_arguments",
        "{refused}"
    );
}

/// Clients refuse a tool whose `enum` has a value twice.
#[tokio::test]
async fn a_value_that_a_document_lists_twice_is_one_choice() {
    let (house, gateway) = gateway().await;
    let contract = std::fs::read_to_string(house.path().join("contracts/echo.yaml"));
    let contract = contract.expect("it was drafted");
    assert!(contract.contains("type: dropdown"), "{contract}");
    let client = Modern::new(gateway.url());
    let (tools, _) = client.list().await;
    let kind = &tool(&tools, "list_k")["inputSchema"]["properties"]["kind"];
    assert_eq!(kind["enum"], json!(["a", "b"]), "{kind}");
    let sent = sent(&client, "list_k", json!({ "kind": "b" })).await;
    assert_eq!(sent["path"], "/k?kind=b");
}

/// Most services omit the offset of a time of day, and what they answer must also be valid as an argument.
#[tokio::test]
async fn a_time_of_day_needs_no_offset() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    for (at, path) in [
        ("10:11", "/k?at=10%3A11"),
        ("10:11:12", "/k?at=10%3A11%3A12"),
        ("08:00:00.0000000", "/k?at=08%3A00%3A00.0000000"),
        ("10:11:12Z", "/k?at=10%3A11%3A12Z"),
        ("10:11:12-05:00", "/k?at=10%3A11%3A12-05%3A00"),
    ] {
        let sent = sent(&client, "list_k", json!({ "at": at })).await;
        assert_eq!(sent["path"], path);
    }
    let refused = client.call("list_k", json!({ "at": "noon" })).await;
    let code = &refused["structuredContent"]["code"];
    assert_eq!(code, "invalid_arguments", "{refused}");
}

/// An agent corrects its arguments by the service's message about them.
#[tokio::test]
async fn the_words_of_a_refusal_reach_the_caller() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    let refused = client.call("refuse", json!({ "size": 3 })).await;
    let text = refused["content"][0]["text"].as_str().expect("a text");
    assert_eq!(
        refused["structuredContent"]["code"], "invalid_arguments",
        "{refused}"
    );
    assert!(text.contains("size: must be one of 10, 20"), "{text}");
}

/// A service may enforce `Accept`, and refuse a client that asks for JSON where it has none.
#[tokio::test]
async fn a_write_asks_for_the_type_that_its_document_names() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    client.succeed("print_label", json!({})).await;
}

/// The POST was done: the parts of its answer that fit must come through.
#[tokio::test]
async fn an_odd_member_does_not_cost_an_answer() {
    let (_house, gateway) = gateway().await;
    let client = Modern::new(gateway.url());
    let result = client.succeed("add_odd", json!({})).await;
    let record = json!({
        "id": "1234567890123456789", "name": null, "count": null, "deep": { "a": [{ "id": u64::MAX }], "b": 1 },
    });
    assert_eq!(result["structuredContent"]["record"], record);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.contains("`count`") && text.contains("`deep`"),
        "{text}"
    );
}

#[tokio::test]
async fn digits_go_to_a_server_and_come_back_as_they_are() {
    let house = House::new().config(&trusted("bad", &hostile(&["odd"])));
    let (_gateway, client) = serve_listed(&house, "bad_odd").await;
    let echoed = client
        .call("bad_echo", json!({ "id": 1_234_567_890_123_456_789_i64 }))
        .await;
    assert!(
        echoed["content"][0]["text"]
            .to_string()
            .contains("1234567890123456789"),
        "{echoed}"
    );
    let odd = client.call("bad_odd", json!({})).await;
    let structured = json!({ "id": 1_234_567_890_123_456_789_i64, "twice": 2, "large": null, "half": "\u{fffd}" });
    assert_eq!(odd["structuredContent"], structured, "{odd}");
    let blocks = odd["content"].as_array().expect("blocks");
    let note = blocks.last().expect("a note")["text"].to_string();
    assert!(note.contains("/structuredContent/twice"), "{odd}");
}
