//! Calls at the boundary: what is refused before a source is asked, progress, and callers that go away.

use std::{fmt::Write as _, process::Command, sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use weir_tests::{
    House, Legacy, Modern,
    client::{self, Events},
    place, until,
    web::Web,
};

use crate::{sample, upstreams::listed};

pub(crate) const ITEMS: &str = r#"
contract: items
collections:
  items:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: string, name: string, count: integer }
      list: { path: /items }
      get: { path: "/items/{id}" }
  # Without a way to read one, a create is one request: nothing is looked up first.
  made:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: string, name: string, count: integer }
      list: { path: /items }
      create: { path: /items }
    write: true
tools:
  - tool: get_item
    description: One item.
    verb: lookup
    collection: items
    fields:
      - { name: id, type: text, required: true, min_length: 1, max_length: 20, pattern: "^[a-z0-9-]+$" }
  - tool: create_item
    description: Adds an item.
    verb: create
    collection: made
    limits: { timeout_ms: 20000 }
    fields:
      - { name: id, type: text, required: true, max_length: 20 }
      - { name: name, type: text, required: true, min_length: 2 }
      - { name: count, type: number, required: true, min: 1, max: 5 }
"#;

/// Makes a REST collection over a service at `base`.
pub(crate) fn house(base: &str) -> House {
    House::new()
        .config(&format!(
            "[connections.api]\nkind = \"http\"\nbase_url = \"{base}\"\nwrite = true\n[plugins.rest.grants]\napi = \"write\""
        ))
        .file("contracts/items.yaml", ITEMS)
}

/// Every kind of violation is refused with its reason, and no request reaches the service.
#[tokio::test]
async fn bad_arguments_never_reach_a_source() {
    let web = Web::start().await;
    let house = house(&web.base);
    let (_gateway, client) = house.serve_client();
    client.succeed("get_item", json!({"id": "1"})).await;
    let before = web.requests();
    let good = json!({"id": "7", "name": "Seven", "count": 2});
    #[rustfmt::skip]
    let bad: &[(&str, Value, &str)] = &[
        ("name", Value::Null, "wrong_type"),
        ("name", json!(5), "wrong_type"),
        ("name", json!(["Seven"]), "wrong_type"),
        ("name", json!("S"), "too_short"),
        ("id", json!("x".repeat(21)), "too_long"),
        ("count", json!("2"), "wrong_type"),
        ("count", json!(2.5), "wrong_type"),
        ("count", json!(true), "wrong_type"),
        ("count", json!(0), "out_of_range"),
        ("count", json!(6), "out_of_range"),
        ("cuont", json!(2), "unknown_argument"),
    ];
    for (field, value, reason) in bad {
        let mut arguments = good.clone();
        arguments[field] = value.clone();
        let result = client.call("create_item", arguments.clone()).await;
        let error = &result["structuredContent"];
        assert_eq!(error["code"], "invalid_arguments", "{arguments}: {result}");
        assert_eq!(
            (&error["field"], &error["reason"]),
            (&json!(field), &json!(reason)),
            "{arguments}: {result}"
        );
    }
    for field in ["id", "name", "count"] {
        let mut arguments = good.clone();
        arguments.as_object_mut().expect("an object").remove(field);
        let error = client.call("create_item", arguments).await["structuredContent"].clone();
        assert_eq!(
            (&error["field"], &error["reason"]),
            (&json!(field), &json!("missing_required")),
            "{error}"
        );
    }
    let error = client.call("get_item", json!({"id": "Not/OK"})).await["structuredContent"].clone();
    assert_eq!(error["reason"], "pattern_mismatch", "{error}");
    for raw in [
        r#"{"id": "7", "id": "8", "name": "Seven", "count": 2}"#.to_owned(),
        format!(
            r#"{{"id": {}1{}, "name": "Seven", "count": 2}}"#,
            "[".repeat(100),
            "]".repeat(100)
        ),
        r#"{"id": "\ud800", "name": "Seven", "count": 2}"#.to_owned(),
        r#"{"id": "7", "name": "Seven", "count": 1e999}"#.to_owned(),
        r#"[1]"#.to_owned(),
    ] {
        let request = client.request(
            "tools/call",
            json!({"name": "create_item", "arguments": "RAW"}),
        );
        let body = request
            .try_clone()
            .and_then(|request| request.build().ok())
            .expect("a whole body");
        let body = body
            .body()
            .and_then(|body| body.as_bytes())
            .expect("a whole body");
        let body = String::from_utf8_lossy(body).replace("\"RAW\"", &raw);
        let answer = client::send(request.body(body)).await;
        let refused =
            answer.reply()["error"].is_object() || answer.reply()["result"]["isError"] == true;
        assert!(refused, "{raw}: {}", answer.text);
    }
    assert_eq!(web.requests(), before, "a refused call reached the source");
    client.succeed("create_item", good).await;
    assert_eq!(web.requests(), before + 1);
}

/// A client that sees only the error corrects its call in one retry.
#[tokio::test]
async fn an_error_is_enough_to_repair_the_call() {
    let house = sample::house();
    let (_gateway, client) = house.serve_client();
    let broken = [
        json!({"iata": "osl", "name": "Oslo", "country": "NO"}),
        json!({"iata": "BOO", "name": "Bodo", "country": "Norway"}),
        json!({"iata": "BOO", "name": "Bodo", "country": "DK"}),
        json!({"iata": "EVE", "country": "NO"}),
        json!({"iata": "TOS", "name": 5, "country": "NO"}),
        json!({"iata": "ALF", "name": "Alta", "country": "NO", "elevation_ft": "9"}),
        json!({"iata": "HAU", "name": "x".repeat(90), "country": "NO"}),
        json!({"iata": "KRS", "nmae": "Kjevik", "country": "NO"}),
        json!({}),
    ];
    for arguments in broken {
        let refused = client.call("create_airport", arguments.clone()).await;
        assert_eq!(
            refused["structuredContent"]["code"], "invalid_arguments",
            "{arguments}: {refused}"
        );
        let mut repaired = arguments.clone();
        for error in refused["structuredContent"]["errors"]
            .as_array()
            .expect("every problem is reported")
        {
            repair(&mut repaired, error);
        }
        let again = client.call("create_airport", repaired.clone()).await;
        let code = again["structuredContent"]["code"]
            .as_str()
            .unwrap_or("created");
        assert!(
            ["created", "conflict"].contains(&code),
            "{arguments} became {repaired}: {again}\n{refused}"
        );
    }
}

/// Repairs mechanically: takes a suggested name, otherwise the example, otherwise drops what is unknown.
fn repair(arguments: &mut Value, error: &Value) {
    let field = error["field"].as_str().expect("an error names its field");
    let map = arguments.as_object_mut().expect("arguments are an object");
    if error["reason"] == "unknown_argument" {
        let value = map.remove(field).expect("it was sent");
        if let Some(name) = error["suggestion"].as_str() {
            map.insert(name.to_owned(), value);
        }
    } else if let Some(example) = error.get("example") {
        if error["reason"] != "missing_required" || !map.contains_key(field) {
            map.insert(field.to_owned(), example.clone());
        }
    } else {
        panic!("nothing to repair it with: {error}");
    }
}

/// Progress on a long list, and the same result with and without it.
#[tokio::test]
async fn a_long_list_reports_progress_when_asked() {
    let mut text = String::from("id,name,even\n");
    for number in 0..400_000 {
        writeln!(text, "{number},Row number {number},{}", number % 2 == 0).expect("a string grows");
    }
    let contract = r#"
contract: rows
collections:
  rows: { adapter: sheet, settings: { connection: data, path: rows.csv }, key: [id] }
tools:
  - tool: list_rows
    description: Rows.
    verb: list
    collection: rows
    limits: { timeout_ms: 60000 }
    fields: [{ name: name, type: text, match: contains }]
"#;
    let house = House::new()
        .sheets()
        .file("contracts/rows.yaml", contract)
        .file("data/rows.csv", text);
    let (gateway, client) = house.serve_client();
    // A busy machine may be too slow to describe this many rows in time; then it is tried again.
    listed(&client, "list_rows").await;
    let call = |name: &str| json!({"name": "list_rows", "arguments": {"name": name, "limit": 5}});
    let mut asked = call("number 39999");
    asked["_meta"] = json!({"progressToken": "p1"});
    let with = client.ask("tools/call", asked).await;
    let steps: Vec<f64> = with
        .messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| {
            assert_eq!(message["params"]["progressToken"], "p1");
            message["params"]["progress"]
                .as_f64()
                .expect("progress is a number")
        })
        .collect();
    assert!(
        steps.len() >= 3,
        "only {} notifications: {}\n{}",
        steps.len(),
        with.text,
        gateway.log()
    );
    assert!(
        steps.windows(2).all(|pair| pair[0] < pair[1]),
        "not strictly increasing: {steps:?}"
    );
    let without = client.ask("tools/call", call("number 39999")).await;
    assert_eq!(
        without.messages.len(),
        1,
        "progress that was not asked for: {}",
        without.text
    );
    let opaque = |result: &Value| result["structuredContent"]["records"].clone();
    assert_eq!(opaque(with.result()), opaque(without.result()));
    assert_eq!(opaque(with.result()).as_array().map(Vec::len), Some(5));
}

/// In the modern era the response owns the call, so its end is the call's end.
#[tokio::test]
async fn a_modern_caller_who_leaves_cancels_a_read() {
    let web = Web::start().await;
    let house = house(&web.base);
    let (gateway, client) = house.serve_client();
    let request = client.request(
        "tools/call",
        json!({"name": "get_item", "arguments": {"id": "slow-30000"}}),
    );
    leave(request, &web).await;
    until("the source is let go", async || {
        web.seen.dropped.load(Ordering::SeqCst) == 1
    })
    .await;
    until("the call is recorded as cancelled", async || {
        gateway.log().contains("\"outcome\":\"cancelled\"")
    })
    .await;
}

/// Some clients close their side behind the request and read the answer, such as `nc -N` and `socat`. One that has gone looks
/// the same, so that only answers that come at once are sent.
#[tokio::test]
async fn a_caller_who_has_nothing_more_to_send_gets_the_answer() {
    let web = Web::start().await;
    let house = house(&web.base);
    let gateway = house.serve();
    let address = gateway.base.strip_prefix("http://").expect("an address");
    let arguments = json!({"id": "slow-100"});
    let params = json!({"name": "get_item", "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    for (path, body) in [("/mcp", call), ("/rest/items/get_item", arguments)] {
        let body = body.to_string();
        for version in ["1.1", "1.0"] {
            let request = format!(
                "POST {path} HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            until("the answer comes", async || {
                let mut stream = TcpStream::connect(address).await.expect("connected");
                stream.write_all(request.as_bytes()).await.expect("sent");
                stream.shutdown().await.expect("half closed");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("an end");
                answer.contains(" 200 OK\r\n")
            })
            .await;
        }
    }
}

/// In the legacy era the session owns the call; a broken connection is only a broken connection.
#[tokio::test]
async fn a_legacy_caller_who_leaves_cancels_nothing() {
    let web = Web::start().await;
    let house = house(&web.base);
    let gateway = house.serve();
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "get_item", "arguments": {"id": "slow-1500"}}});
    leave(session.in_session(body.to_string()), &web).await;
    until("the read runs to its end", async || {
        web.seen.finished.load(Ordering::SeqCst) >= 1
    })
    .await;
    assert_eq!(web.seen.dropped.load(Ordering::SeqCst), 0);
    until("its outcome is recorded", async || {
        gateway.log().contains("\"outcome\":\"ok\"")
    })
    .await;
}

/// A write that has reached a source is never dropped when its caller leaves.
#[tokio::test]
async fn a_write_runs_to_its_end_whoever_leaves() {
    let web = Web::start().await;
    let house = house(&web.base);
    let gateway = house.serve();
    let arguments = json!({"id": "slow-1500", "name": "Late", "count": 1});
    let modern = Modern::new(gateway.url());
    leave(
        modern.request(
            "tools/call",
            json!({"name": "create_item", "arguments": arguments}),
        ),
        &web,
    )
    .await;
    until("the write runs to its end", async || {
        web.seen.finished.load(Ordering::SeqCst) == 1
    })
    .await;
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "create_item", "arguments": arguments}});
    leave(session.in_session(body.to_string()), &web).await;
    until("the write runs to its end", async || {
        web.seen.finished.load(Ordering::SeqCst) == 2
    })
    .await;
    assert_eq!(web.seen.dropped.load(Ordering::SeqCst), 0);
    until("both outcomes are recorded", async || {
        gateway.log().matches("\"outcome\":\"ok\"").count() == 2
    })
    .await;
}

/// The service has made the change, whatever its answer is.
#[tokio::test]
async fn a_write_with_too_large_an_answer_may_have_been_done() {
    let web = Web::start().await;
    let house = house(&web.base);
    let (gateway, client) = house.serve_client();
    let result = client
        .call(
            "create_item",
            json!({"id": "huge", "name": "Huge", "count": 1}),
        )
        .await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(
        result["structuredContent"]["outcome"], "unknown",
        "{result}"
    );
    assert_eq!(web.requests(), 1);
    until("it is recorded", async || {
        gateway.log().contains("\"outcome\":\"unknown\"")
    })
    .await;
}

/// Sends the request and hangs up once the service has seen it.
pub(crate) async fn leave(request: reqwest::RequestBuilder, web: &Web) {
    let before = web.requests();
    let sent = tokio::spawn(request.send());
    until("the call reaches the service", async || {
        web.requests() > before
    })
    .await;
    sent.abort();
    let _ = sent.await;
}

/// A changed contract file is announced to listeners, in both eras.
#[tokio::test]
async fn a_changed_contract_is_announced() {
    let house = sample::house();
    let (gateway, modern) = house.serve_client();
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    let mut legacy_events = Events::open(session.stream()).await;
    let listen = modern.request(
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let mut modern_events = Events::open(listen).await;
    let wait = Duration::from_secs(20);
    let acknowledged = modern_events
        .next(wait)
        .await
        .expect("a listen stream is acknowledged");
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("by country and elevation", "by country and height"),
    );
    for events in [&mut modern_events, &mut legacy_events] {
        let changed = events.next(wait).await.expect("the change is announced");
        assert_eq!(
            changed["method"], "notifications/tools/list_changed",
            "{changed}"
        );
    }
    let (tools, _) = modern.list().await;
    let described = |tool: &Value| {
        tool["description"]
            .as_str()
            .is_some_and(|text| text.contains("height"))
    };
    assert!(tools.iter().any(described), "{tools:?}");
}

/// A caller that names no tool gets the list of tools and the next step.
#[test]
fn without_a_tool_the_tools_are_listed() {
    let house = sample::house().file("data/h.csv", "id,help\n1,x\n");
    for words in [&["call"][..], &["call", "--file", "data/airports.csv"]] {
        let (code, out, err) = house.run(words);
        let line = out.lines().find(|line| line.starts_with("list_airports "));
        assert!(
            code == 0 && line.is_some_and(|line| line.contains("airports")),
            "{words:?}: {out} {err}"
        );
        assert!(err.contains("--help"), "{err}");
    }
    // So does the bare command in the folder of a configuration.
    let bare = Command::new(place::binary("weir"))
        .arg("call")
        .current_dir(house.path())
        .output()
        .expect("weir starts");
    assert!(
        bare.status.success() && String::from_utf8_lossy(&bare.stdout).contains("list_airports "),
        "{bare:?}"
    );
    let names: Vec<Value> = house
        .json(&["call"])
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["create_airport", "list_airports", "lookup_airport"]);
    // A column may be called as a flag that every command has.
    let mut command = house.weir(&["call", "--file", "data/h.csv", "--state", "state"]);
    let output = command
        .args(["list_hs", "--help", "x"])
        .output()
        .expect("weir starts");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains("\"help\":\"x\""),
        "{out} {err}"
    );
}
