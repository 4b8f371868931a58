//! A service or a server that repeats the credentials it is sent: they reach no agent, no log, no trail and no trace.

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    Json, Router,
    body::Bytes,
    extract::Path,
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
    routing::any,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, SERVE, client::send, strangers::hostile, web};

use crate::{
    traces::{self, TraceCollector},
    upstreams::{listed, trusted},
};

/// It is written with escapes in JSON and in URLs.
const SECRET: &str = "s3/cr+et=\"token\"";

fn hexadecimal(secret: &str) -> String {
    secret.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers with the request's `Authorization` header, in the way that the path names.
async fn repeat(Path(way): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers[AUTHORIZATION].to_str().expect("a text").to_owned();
    let secret = given.trim_start_matches("Bearer ").to_owned();
    let encoded: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let inner = json!({ "authorization": given }).to_string();
    let html = secret.replace('"', "&quot;").replace('/', "&#x2F;");
    let all = json!({
        "html": html, "hex": hexadecimal(&secret), "plain": given, "url": encoded, "base64": BASE64_STANDARD.encode(format!("me:{secret}")), "inner": inner,
        "echo": String::from_utf8_lossy(&body),
    });
    // Of a refusal only the beginning is kept, which ends within the secret.
    let long = format!("{}{secret}", " ".repeat(490));
    match way.as_str() {
        "found" => Json(all).into_response(),
        "refused" => (StatusCode::UNPROCESSABLE_ENTITY, Json(all)).into_response(),
        "failed" => (StatusCode::INTERNAL_SERVER_ERROR, long).into_response(),
        _ => (StatusCode::OK, format!("no JSON, but {given}")).into_response(),
    }
}

const CONTRACT: &str = "contract: repeats
collections:
  repeats:
    adapter: rest
    write: true
    settings:
      connection: api
      operations:
        found: { method: POST, path: /found, returns: { all: { type: json, nullable: true, at: '' } } }
        refused: { method: POST, path: /refused, returns: { all: { type: json, nullable: true, at: '' } } }
        failed: { method: POST, path: /failed, returns: { all: { type: json, nullable: true, at: '' } } }
        odd: { method: POST, path: /odd, returns: { all: { type: json, nullable: true, at: '' } } }
tools:
";

async fn service() -> String {
    web::serve(Router::new().route("/{way}", any(repeat))).await
}

fn serve(house: &House) -> Gateway {
    let mut command = house.weir(&SERVE);
    // Files of variables leave the end of a line behind a value.
    command
        .env("API_SECRET", format!("{SECRET}\r\n"))
        .env("COLLECTOR_TOKEN", traces::SECRET);
    Gateway::start(command)
}

/// Asserts that no form of the secret is in a text.
fn is_clean(text: &str, place: &str) {
    let forms = [
        SECRET.to_owned(),
        "cr+et".to_owned(),
        "cr%2bet".to_owned(),
        "cr%2Bet".to_owned(),
        hexadecimal(SECRET),
        BASE64_STANDARD.encode(SECRET)[..12].to_owned(),
        BASE64_STANDARD.encode(format!("me:{SECRET}"))[4..16].to_owned(),
    ];
    for form in forms {
        assert!(!text.contains(&form), "{place} holds {form}: {text}");
    }
}

/// Asserts that no form of the secret is in the spans of the given number of calls, and that each failed call's span
/// has its error.
async fn is_traced_cleanly(collector: &TraceCollector, calls: usize) {
    let spans = collector.calls(calls).await;
    let types: BTreeSet<&str> = spans
        .iter()
        .filter_map(|span| span["attributes"]["error.type"].as_str())
        .collect();
    assert!(!types.is_empty(), "errors are traced: {spans:?}");
    is_clean(&Value::from(spans).to_string(), "a span");
    is_clean(&collector.received(), "what a collector is sent");
}

/// Returns what the trail and the metrics of a gateway hold.
async fn records(house: &House, gateway: &Gateway) -> String {
    let mut all = gateway.metrics().await;
    let mut folders = vec![house.path().join("state")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.push_str(&String::from_utf8_lossy(
                    &std::fs::read(path).unwrap_or_default(),
                )),
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_repeats_its_credential_tells_it_to_no_agent_and_no_log() {
    let base = service().await;
    let tools: String = ["found", "refused", "failed", "odd"]
        .map(|tool| {
            format!("  - tool: {tool}\n    description: It is {tool}.\n    verb: call\n    operation: {tool}\n    collection: repeats\n    fields: []\n")
        })
        .concat();
    let house = House::new()
        .config(&format!(
            "[connections.api]\nkind = \"http\"\nbase_url = \"{base}\"\nwrite = true\nheaders = {{ Authorization = \"Bearer ${{env:API_SECRET}}\" }}\n[plugins.rest.grants]\napi = \"write\"\n[log]\nfilter = \"debug\""
        ))
        .file("contracts/repeats.yaml", format!("{CONTRACT}{tools}"));
    let collector = TraceCollector::start().await;
    let house = traces::traced(house, &collector, "");
    let gateway = serve(&house);
    let client = Modern::new(gateway.url());
    let mut codes = BTreeMap::new();
    for tool in ["found", "refused", "failed", "odd"] {
        let result = client.call(tool, json!({})).await;
        is_clean(&result.to_string(), tool);
        codes.insert(tool, result["structuredContent"]["code"].clone());
        if tool == "found" {
            let all = &result["structuredContent"]["record"]["all"];
            assert_eq!(all["plain"], "Bearer ***", "{result}");
            assert_eq!(all["url"], "***", "{result}");
            assert_eq!(
                all["inner"],
                json!({ "authorization": "Bearer ***" }).to_string()
            );
        }
    }
    assert_eq!(codes["refused"], "invalid_arguments", "{codes:?}");
    gateway.wait_for_log("\"tool\":\"odd\"");
    let log = gateway.log();
    is_clean(&log, "the log");
    assert!(
        log.contains("***"),
        "the log has what the service answered: {log}"
    );
    is_clean(&records(&house, &gateway).await, "the trail or the metrics");
    is_traced_cleanly(&collector, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_repeats_its_environment_tells_it_to_no_agent_and_no_log() {
    let entry = trusted("bad", &hostile(&["leaks"]));
    let house = House::new().config(&entry).config(
        "[upstreams.bad.env]\nTRACKER_TOKEN = \"env:API_SECRET\"\n[log]\nfilter = \"debug\"",
    );
    let collector = TraceCollector::start().await;
    let house = traces::traced(house, &collector, "");
    let gateway = serve(&house);
    let client = Modern::new(gateway.url());
    listed(&client, "bad_leak_end").await;
    for way in ["result", "error", "log", "progress", "end"] {
        let meta = json!({"io.modelcontextprotocol/logLevel": "debug", "progressToken": 1});
        let name = format!("bad_leak_{way}");
        let call = json!({"name": name, "arguments": {}, "_meta": meta});
        let heard = send(client.request("tools/call", call)).await;
        let heard = Value::from(heard.messages).to_string();
        is_clean(&heard, way);
        if way != "end" {
            assert!(heard.contains("***"), "{way}: {heard}");
        }
    }
    gateway.wait_for_log("the server's process has ended");
    let log = gateway.log();
    is_clean(&log, "the log");
    assert!(log.contains("***"), "the log has its last words: {log}");
    let (_, out, err) = house.run(&["upstream", "show", "bad"]);
    is_clean(&format!("{out}{err}"), "the command");
    is_clean(&records(&house, &gateway).await, "the trail or the metrics");
    is_traced_cleanly(&collector, 5).await;
}
