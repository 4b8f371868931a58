//! Calls of another server's tools, where the server does things that the protocol allows but that hurt clients.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::body::{Body, Bytes};
use futures::{Stream, StreamExt as _, stream};
use tokio::{net::TcpSocket, sync::Notify};
use weir_upstream::{ClientCapability, KeptFiles, UpstreamConfig};

use super::*;

/// The messages that another server received, and its waits.
#[derive(Default)]
struct Heard {
    calls: AtomicUsize,
    /// Its question was answered.
    answer: Notify,
    cancelled: Notify,
    /// Allows the call that has asked to end.
    may_end: Notify,
}

/// Starts a server, and a gateway with its tools. A modern server has `talk`, which logs without end, and `again`, which must be
/// called again; a legacy one has `sign_in`, which requires a URL to be opened before its second call, and `confirm`, which asks
/// in the middle of its call.
async fn server(is_modern: bool) -> Running {
    started(is_modern).await.0
}

/// Starts a server and a gateway, and returns the gateway, what the server receives, and its configuration.
async fn started(is_modern: bool) -> (Running, Arc<Heard>, UpstreamConfig) {
    started_within(is_modern, 60_000).await
}

/// Starts them with a time limit for calls.
async fn started_within(is_modern: bool, timeout_ms: u64) -> (Running, Arc<Heard>, UpstreamConfig) {
    let heard = Arc::new(Heard::default());
    let hears = heard.clone();
    let answer = move |body: Bytes| {
        let answer = answer(is_modern, &hears, &body);
        async { answer }
    };
    let routes = Router::new().route("/mcp", any(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let ask = if is_modern {
        Vec::new()
    } else {
        vec![ClientCapability::Elicitation]
    };
    let config = UpstreamConfig {
        url: Some(url),
        timeout_ms,
        ask,
        ..UpstreamConfig::default()
    };
    let server = Running::start().await;
    take(&server, &config);
    let names: &[&str] = if is_modern {
        &["again", "talk"]
    } else {
        &["sign_in", "confirm"]
    };
    // A call that writes, or may ask, always runs in a separate task.
    let annotations = json!({ "readOnlyHint": is_modern });
    let tool = |name: &&str| json!({ "name": name, "inputSchema": {}, "annotations": annotations });
    let lists = json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() });
    testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
    (server, heard, config)
}

/// Serves the server as configured, like a reload.
fn take(server: &Running, config: &UpstreamConfig) {
    let upstreams = server.gateway.upstreams();
    let configs = [("up".to_owned(), config.clone())].into();
    let (resolved, wrong) = upstreams.resolve(&configs, Path::new("."), &KeptFiles::default());
    assert_eq!(wrong, []);
    upstreams.take(resolved);
}

fn answer(is_modern: bool, heard: &Arc<Heard>, body: &[u8]) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return reply::not_allowed("POST");
    };
    let answered = |result: Value| {
        reply::json(
            200,
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
                .to_string()
                .into_bytes(),
        )
    };
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" if is_modern => answered(
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {}, "logging": {} } }),
        ),
        "initialize" => answered(
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s" } }),
        ),
        "tools/call" if is_modern && request["params"]["name"] == "talk" => {
            heard.calls.fetch_add(1, Ordering::SeqCst);
            talk()
        }
        "tools/call" if is_modern => match request["params"]["requestState"].as_str() {
            None => {
                let bytes = request["params"]["arguments"]["bytes"]
                    .as_u64()
                    .unwrap_or(2);
                let state = "x".repeat(usize::try_from(bytes).unwrap());
                answered(json!({ "resultType": "input_required", "requestState": state }))
            }
            Some(state) => answered(
                json!({ "resultType": "complete", "content": [{ "type": "text", "text": state }] }),
            ),
        },
        "tools/call" if heard.calls.fetch_add(1, Ordering::SeqCst) == 0 => {
            if request["params"]["name"] == "confirm" {
                return confirm(heard.clone(), &request["id"]);
            }
            let url = json!({ "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "7" });
            let error = json!({ "code": -32042, "message": "Sign in first", "data": { "elicitations": [url] } });
            let refused = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
            reply::json(200, refused.to_string().into_bytes())
        }
        "tools/call" if request["params"].get("inputResponses").is_none() => {
            answered(json!({ "content": [] }))
        }
        "notifications/cancelled" => {
            heard.cancelled.notify_one();
            reply::accepted()
        }
        "notifications/initialized" => reply::accepted(),
        "" if request["id"] == "question" => {
            heard.answer.notify_one();
            reply::accepted()
        }
        _ => reply::json(404, Vec::new()),
    }
}

fn talk() -> Response {
    let params = json!({ "level": "info", "data": "x".repeat(60_000) });
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    events(stream::repeat(message).then(async |message| {
        tokio::task::yield_now().await;
        message
    }))
}

/// Asks, and ends when the test permits it.
fn confirm(heard: Arc<Heard>, id: &Value) -> Response {
    let params =
        json!({ "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } });
    let question = json!({ "jsonrpc": "2.0", "id": "question", "method": "elicitation/create", "params": params });
    let result = json!({ "content": [{ "type": "text", "text": "done" }] });
    let result = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let end = async move {
        heard.may_end.notified().await;
        result
    };
    events(stream::iter([question]).chain(stream::once(end)))
}

fn events(messages: impl Stream<Item = Value> + Send + 'static) -> Response {
    let events =
        messages.map(|message| Ok::<_, std::convert::Infallible>(format!("data: {message}\n\n")));
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(
        "content-type",
        axum::http::HeaderValue::from_static("text/event-stream"),
    );
    response
}

/// The headers and the body of a modern call of a client that can be asked, with further members of its params.
fn askable(tool: &str, more: &str, meta: &str) -> (Vec<(&'static str, String)>, String) {
    let (headers, body) = modern(
        "1",
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{{}}{more}"#),
    );
    let able = format!(r#"clientCapabilities":{{"elicitation":{{"url":{{}},"form":{{}}}}}}{meta}"#);
    (headers, body.replace(r#"clientCapabilities":{}"#, &able))
}

async fn ask(server: &Running, tool: &str, more: &str) -> Value {
    let (headers, body) = askable(tool, more, "");
    let headers = borrowed(&headers);
    server.post("/mcp", &headers, &body).await.json()
}

/// Calls `confirm`, and returns the params of the answer to its question.
async fn confirmed(server: &Running) -> String {
    let asked = ask(server, "up_confirm", "").await;
    assert_eq!(
        asked["result"]["inputRequests"]["question"]["params"]["message"],
        "The server `up` asks: Sure?",
        "{asked}"
    );
    let state = &asked["result"]["requestState"];
    format!(
        r#","inputResponses":{{"question":{{"action":"accept","content":{{}}}}}},"requestState":{state}"#
    )
}

#[tokio::test]
async fn an_answer_goes_to_the_call_that_asked_whatever_may_be_asked_by_then() {
    for is_reloaded in [true, false] {
        let (server, heard, config) = started(false).await;
        let answer = confirmed(&server).await;
        if is_reloaded {
            take(
                &server,
                &UpstreamConfig {
                    ask: Vec::new(),
                    ..config
                },
            );
        }
        let done = async {
            if is_reloaded {
                return ask(&server, "up_confirm", &answer).await;
            }
            // A legacy client without a session cannot be asked anything.
            let params = format!(r#"{{"name":"up_confirm","arguments":{{}}{answer}}}"#);
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            server
                .post("/mcp", &[("MCP-Protocol-Version", "2025-11-25")], &body)
                .await
                .json()
        };
        let ends = async {
            heard.answer.notified().await;
            heard.may_end.notify_one();
        };
        let (done, ()) = tokio::time::timeout(SOON, async { tokio::join!(done, ends) })
            .await
            .expect("it is answered");
        assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
        assert_eq!(heard.calls.load(Ordering::SeqCst), 1, "it is sent once");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_its_answer_cancels_the_call_that_asked() {
    let (server, heard, _) = started(false).await;
    let answer = confirmed(&server).await;
    let (headers, body) = askable("up_confirm", &answer, r#","progressToken":7"#);
    let headers = borrowed(&headers);
    let left = server
        .send(&post_head("/mcp", &headers), body.as_bytes())
        .await;
    tokio::time::timeout(SOON, heard.answer.notified())
        .await
        .expect("the server hears the answer");
    drop(left);
    tokio::time::timeout(SOON, heard.cancelled.notified())
        .await
        .expect("the server hears that its caller left");
    heard.may_end.notify_one();
    let ended = async {
        while !server.gateway.in_flight().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, ended).await.expect("it ends");
    server.stop().await;
}

#[tokio::test]
async fn a_call_ends_in_its_time_though_its_client_does_not_read() {
    let (server, heard, _) = started_within(true, 1_000).await;
    let (headers, body) = modern("1", "tools/call", r#""name":"up_talk","arguments":{}"#);
    let body = body.replace(
        "{}}}}",
        r#"{},"io.modelcontextprotocol/logLevel":"debug"}}}"#,
    );
    let headers = borrowed(&headers);
    // As small as the system makes it: the buffers on the way to the client must not hold all messages of the call.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1).unwrap();
    let socket = socket.connect(server.address).await.unwrap();
    let _unread = Running::send_on(socket, &post_head("/mcp", &headers), body.as_bytes()).await;
    let begins = async {
        while heard.calls.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, begins).await.expect("it begins");
    let ends = async {
        while !server.gateway.in_flight().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, ends).await.expect("it ends");
}

#[tokio::test]
async fn a_url_that_a_legacy_server_wants_opened_is_asked_of_a_modern_client() {
    let server = server(false).await;
    let asked = ask(&server, "up_sign_in", "").await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(
        asked["result"]["inputRequests"]["url-0"]["params"]["url"],
        "https://example.com"
    );
    let state = &asked["result"]["requestState"];
    let more =
        format!(r#","inputResponses":{{"url-0":{{"action":"accept"}}}},"requestState":{state}"#);
    let called = ask(&server, "up_sign_in", &more).await;
    assert_eq!(
        (
            &called["result"]["resultType"],
            &called["result"]["isError"]
        ),
        (&json!("complete"), &json!(false)),
        "{called}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_cannot_open_urls_is_told_what_it_lacks() {
    let server = server(false).await;
    let refused = server
        .modern(
            "/mcp",
            "1",
            "tools/call",
            r#""name":"up_sign_in","arguments":{}"#,
        )
        .await;
    refused.refused(400, -32021, json!(1));
    assert_eq!(
        refused.json()["error"]["data"]["requiredCapabilities"],
        json!({ "elicitation": { "url": {} } })
    );
    let message = refused.json()["error"]["message"].to_string();
    assert!(
        message.contains("does not declare the capability `elicitation` with `url`"),
        "{message}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_may_want_to_be_called_again_with_its_state_alone() {
    let server = server(true).await;
    let asked = server
        .modern(
            "/mcp",
            "1",
            "tools/call",
            r#""name":"up_again","arguments":{}"#,
        )
        .await
        .json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert!(asked["result"].get("inputRequests").is_none(), "{asked}");
    let more = format!(
        r#""name":"up_again","arguments":{{}},"requestState":{}"#,
        asked["result"]["requestState"]
    );
    let called = server.modern("/mcp", "1", "tools/call", &more).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "xx", "{called}");
    // A client that does not support such states gets an error to that effect.
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up_again","arguments":{}}}"#;
    let answer = server
        .post("/mcp", &[("MCP-Protocol-Version", "2025-11-25")], legacy)
        .await
        .json();
    assert_eq!(
        answer["result"]["structuredContent"]["reason"], "client_cannot_be_asked",
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_state_that_would_not_be_taken_back_is_the_fault_of_its_server() {
    let server = server(true).await;
    let again = async |bytes: usize, more: &str| {
        let params = format!(r#""name":"up_again","arguments":{{"bytes":{bytes}}}{more}"#);
        server
            .modern("/mcp", "1", "tools/call", &params)
            .await
            .json()
    };
    let asked = again(30_000, "").await;
    let called = again(
        30_000,
        &format!(r#","requestState":{}"#, asked["result"]["requestState"]),
    )
    .await;
    assert_eq!(
        called["result"]["content"][0]["text"]
            .as_str()
            .map(str::len),
        Some(30_000),
        "{called}"
    );
    let refused = again(40_000, "").await;
    let error = &refused["result"]["structuredContent"];
    assert_eq!(error["code"], "too_large", "{refused}");
    let message =
        "The state of the tool's question takes more than 32 KB, the most that is passed on.";
    assert_eq!(error["message"], message);
    server.stop().await;
}
