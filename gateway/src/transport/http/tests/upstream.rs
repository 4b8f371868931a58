//! Calls of another server's tools, where the server does what the protocol allows and clients suffer from.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use tokio::net::TcpSocket;
use weir_upstream::{Ask, UpstreamConfig};

use super::*;

/// Starts a server, and a gateway with its tools. Modern, it has `talk`, which logs without end, and `again`, which wants to be
/// called again; legacy, it has `sign_in`, which wants a URL opened before its second call.
async fn server(is_modern: bool) -> Running {
    let calls = Arc::new(AtomicUsize::new(0));
    let answer = move |body: Bytes| {
        let answer = answer(is_modern, &calls, &body);
        async { answer }
    };
    let routes = Router::new().route("/mcp", any(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let ask = if is_modern { Vec::new() } else { vec![Ask::Elicitation] };
    let config = UpstreamConfig { url: Some(url), timeout_ms: 1_000, ask, ..UpstreamConfig::default() };
    let server = Running::start().await;
    let upstreams = server.gateway.upstreams();
    let (resolved, wrong) = upstreams.resolve(&[("up".to_owned(), config)].into(), Path::new("."));
    assert_eq!(wrong, []);
    upstreams.take(resolved);
    let names: &[&str] = if is_modern { &["again", "talk"] } else { &["sign_in"] };
    // A call that writes, or may ask, is in a task of its own in any case.
    let annotations = json!({ "readOnlyHint": is_modern });
    let tool = |name: &&str| json!({ "name": name, "inputSchema": {}, "annotations": annotations });
    let lists = json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() });
    testing::publish_offer(&server.gateway, &lists, Resources::Pinned);
    server
}

fn answer(is_modern: bool, calls: &AtomicUsize, body: &[u8]) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return reply::not_allowed("POST") };
    let answered = |result: Value| {
        reply::json(200, json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string().into_bytes())
    };
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" if is_modern => {
            answered(json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {}, "logging": {} } }))
        }
        "initialize" => answered(
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s" } }),
        ),
        "tools/call" if is_modern && request["params"]["name"] == "talk" => talk(),
        "tools/call" if is_modern => match request["params"]["requestState"].as_str() {
            None => answered(json!({ "resultType": "input_required", "requestState": "so far" })),
            Some(state) => {
                answered(json!({ "resultType": "complete", "content": [{ "type": "text", "text": state }] }))
            }
        },
        "tools/call" if calls.fetch_add(1, Ordering::SeqCst) == 0 => {
            let url =
                json!({ "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "7" });
            let error = json!({ "code": -32042, "message": "Sign in first", "data": { "elicitations": [url] } });
            let refused = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
            reply::json(200, refused.to_string().into_bytes())
        }
        "tools/call" if request["params"].get("inputResponses").is_none() => answered(json!({ "content": [] })),
        "notifications/initialized" | "notifications/cancelled" => reply::accepted(),
        _ => reply::json(404, Vec::new()),
    }
}

fn talk() -> Response {
    let params = json!({ "level": "info", "data": "x".repeat(60_000) });
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    let event = Bytes::from(format!("data: {message}\n\n"));
    let endless = stream::repeat(event).then(async |event| {
        tokio::task::yield_now().await;
        Ok::<_, std::convert::Infallible>(event)
    });
    let mut response = Response::new(Body::from_stream(endless));
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response
}

#[tokio::test]
async fn a_call_ends_in_its_time_though_its_client_does_not_read() {
    let server = server(true).await;
    let (headers, body) = modern("1", "tools/call", r#""name":"up_talk","arguments":{}"#);
    let body = body.replace("{}}}}", r#"{},"io.modelcontextprotocol/logLevel":"debug"}}}"#);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // As small as the system makes it: what is on its way to the client must not hold all that the call says.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1).unwrap();
    let socket = socket.connect(server.address).await.unwrap();
    let _unread = Running::send_on(socket, &post_head("/mcp", &headers), body.as_bytes()).await;
    let becomes = async |running: usize| {
        while server.gateway.in_flight().len() != running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), becomes(1)).await.expect("it begins");
    tokio::time::timeout(Duration::from_secs(10), becomes(0)).await.expect("it ends");
}

#[tokio::test]
async fn a_url_that_a_legacy_server_wants_opened_is_asked_of_a_modern_client() {
    let server = server(false).await;
    let ask = async |capabilities: &str, more: &str| {
        let (headers, body) = modern("1", "tools/call", &format!(r#""name":"up_sign_in","arguments":{{}}{more}"#));
        let body = body.replace(r#"clientCapabilities":{}"#, &format!(r#"clientCapabilities":{capabilities}"#));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        server.post("/mcp", &headers, &body).await
    };
    let asked = ask(r#"{"elicitation":{"url":{}}}"#, "").await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["url-0"]["params"]["url"], "https://example.com");
    let state = &asked["result"]["requestState"];
    let more = format!(r#","inputResponses":{{"url-0":{{"action":"accept"}}}},"requestState":{state}"#);
    let called = ask(r#"{"elicitation":{"url":{}}}"#, &more).await.json();
    assert_eq!(
        (&called["result"]["resultType"], &called["result"]["isError"]),
        (&json!("complete"), &json!(false)),
        "{called}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_cannot_open_urls_is_told_what_it_lacks() {
    let server = server(false).await;
    let refused = server.modern("/mcp", "1", "tools/call", r#""name":"up_sign_in","arguments":{}"#).await;
    refused.refused(400, -32021, json!(1));
    assert_eq!(refused.json()["error"]["data"]["requiredCapabilities"], json!({ "elicitation": { "url": {} } }));
    server.stop().await;
}

#[tokio::test]
async fn a_server_may_want_to_be_called_again_with_its_state_alone() {
    let server = server(true).await;
    let asked = server.modern("/mcp", "1", "tools/call", r#""name":"up_again","arguments":{}"#).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert!(asked["result"].get("inputRequests").is_none(), "{asked}");
    let more = format!(r#""name":"up_again","arguments":{{}},"requestState":{}"#, asked["result"]["requestState"]);
    let called = server.modern("/mcp", "1", "tools/call", &more).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "so far", "{called}");
    // A client that knows no such states is told so.
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up_again","arguments":{}}}"#;
    let told = server.post("/mcp", &[("MCP-Protocol-Version", "2025-11-25")], legacy).await.json();
    assert_eq!(told["result"]["structuredContent"]["reason"], "client_cannot_be_asked", "{told}");
    server.stop().await;
}
