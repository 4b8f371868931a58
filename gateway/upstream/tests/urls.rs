//! A session with a URL: bodies and streams, sessions that end, the older transport, and addresses that are traps.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use weir_upstream::{Asked, Bounds, Call, Failure, Kind, RequestError, Session, Settings, Target, Transport, Url};

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its number");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn open(url: String) -> Result<Session, Failure> {
    let headers = vec![("authorization".to_owned(), "Bearer ours".to_owned())];
    let settings =
        Settings { quiet: Duration::from_millis(50), request: Duration::from_secs(5), ..Settings::default() };
    Session::open(&Target::Url(Url { url, headers, transport: Transport::Either }), settings).await
}

async fn call(session: &Session, name: &str) -> Result<String, RequestError> {
    call_with(session, name, &[]).await
}

async fn call_with(session: &Session, name: &str, headers: &[(String, String)]) -> Result<String, RequestError> {
    let cancel = CancellationToken::new();
    let call = Call {
        asked: &Asked::Tool { name: name.into(), arguments: None, as_task: false },
        listener: None,
        headers,
        cancel: &cancel,
        timeout: Duration::from_secs(5),
        traceparent: None,
        resumed: None,
    };
    session.call(call).await.map(|result| result.get().to_owned())
}

/// The requests that a server of the tests saw, and the session it gave.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(HeaderMap, Value)>>,
    sessions: AtomicUsize,
    calls: AtomicUsize,
    hung_up: AtomicUsize,
}

fn result(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

fn events(messages: &[Value]) -> Response {
    let body: String = messages.iter().map(|message| format!("event: message\ndata: {message}\n\n")).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Plays a legacy server with sessions. Each one is over after it listed once.
async fn legacy(State(seen): State<Arc<Seen>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    seen.requests.lock().expect("whole").push((headers.clone(), request.clone()));
    let current = format!("session-{}", seen.sessions.load(Ordering::SeqCst));
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no session" } });
            (StatusCode::BAD_REQUEST, Json(error)).into_response()
        }
        "initialize" => {
            let session = format!("session-{}", seen.sessions.fetch_add(1, Ordering::SeqCst) + 1);
            let about = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "l" } });
            ([("mcp-session-id", session)], Json(result(&request, about))).into_response()
        }
        _ if headers.get("mcp-session-id").is_none_or(|session| session != current.as_str()) => {
            StatusCode::NOT_FOUND.into_response()
        }
        "tools/list" => {
            seen.sessions.fetch_add(1, Ordering::SeqCst); // the session just used is over
            events(&[
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } }),
                result(&request, json!({ "tools": [{ "name": "t" }] })),
            ])
        }
        "tools/call" => {
            seen.calls.fetch_add(1, Ordering::SeqCst);
            Json(result(&request, json!({ "content": [] }))).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_session_that_is_over_is_opened_anew_and_the_call_runs_once() {
    let seen = Arc::new(Seen::default());
    let url = serve(Router::new().route("/mcp", any(legacy)).with_state(seen.clone())).await;
    let session = open(format!("{url}/mcp")).await.expect("a session");
    assert_eq!(session.version(), "2025-06-18");
    assert_eq!(session.lists().await.expect("lists").tools.map(|tools| tools.len()), Some(1));
    call(&session, "t").await.expect("an answer");
    assert_eq!(seen.calls.load(Ordering::SeqCst), 1);
    let requests = seen.requests.lock().expect("whole");
    let initialized = requests.iter().filter(|(_, request)| request["method"] == "initialize").count();
    assert_eq!(initialized, 2, "one new session");
    for (headers, request) in requests.iter() {
        assert_eq!(headers["authorization"], "Bearer ours", "the same for list and call");
        if request["method"] == "tools/list" {
            assert_eq!(headers["mcp-protocol-version"], "2025-06-18");
        }
    }
}

/// Plays a modern server: streams, and calls that are cancelled by hanging up.
async fn modern(State(seen): State<Arc<Seen>>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    seen.requests.lock().expect("whole").push((headers, request.clone()));
    match (request["method"].as_str().unwrap_or_default(), request["params"]["name"].as_str()) {
        ("server/discover", _) => {
            let about = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
            Json(result(&request, about)).into_response()
        }
        ("tools/call", Some("hang")) => {
            struct Dropped(Arc<Seen>);
            impl Drop for Dropped {
                fn drop(&mut self) {
                    self.0.hung_up.fetch_add(1, Ordering::SeqCst);
                }
            }
            let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(1);
            tokio::spawn(async move {
                let _dropped = Dropped(seen);
                while sender.send(Ok(Bytes::from_static(b": still here\n\n"))).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
        }
        ("tools/call", Some("huge")) => {
            let text = format!("data: {}", "x".repeat(3 << 20));
            ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
        }
        ("tools/call", Some("page")) => ([(header::CONTENT_TYPE, "text/html")], "<p>").into_response(),
        ("tools/call", Some("other")) => Json(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })).into_response(),
        ("tools/call", Some("broken")) => events(&[]),
        ("tools/call", Some("busy")) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        ("tools/call", Some("away")) => {
            (StatusCode::FOUND, [(header::LOCATION, "http://169.254.169.254/")]).into_response()
        }
        ("tools/call", Some("closed")) => StatusCode::UNAUTHORIZED.into_response(),
        _ => events(&[result(&request, json!({ "content": [] }))]),
    }
}

#[tokio::test]
async fn answers_that_are_none_end_the_call_and_not_the_session() {
    let seen = Arc::new(Seen::default());
    let url = serve(Router::new().route("/mcp", post(modern)).with_state(seen.clone())).await;
    let target = Target::Url(Url { url: format!("{url}/mcp"), headers: Vec::new(), transport: Transport::Either });
    let bounds = Bounds { message_max_bytes: 1 << 20, ..Bounds::default() };
    let session = Session::open(&target, Settings { bounds, ..Settings::default() }).await.expect("a session");
    assert!(session.is_modern());
    for (name, kind) in [
        ("huge", Kind::TooLarge),
        ("page", Kind::Protocol),
        ("other", Kind::Protocol),
        ("broken", Kind::Closed),
        ("busy", Kind::Unreachable),
        ("away", Kind::Unreachable),
        ("closed", Kind::Access),
    ] {
        match call(&session, name).await {
            Err(RequestError::Failed(failure)) => assert_eq!(failure.kind, kind, "{name}: {failure}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let repeated = [("Region", "eu"), ("Owner", "Ünal")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    call_with(&session, "ünï", &repeated).await.expect("an answer");
    let requests = seen.requests.lock().expect("whole");
    let (headers, request) = requests.last().expect("a request");
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "=?base64?w7xuw68=?=");
    assert_eq!(headers["mcp-param-region"], "eu");
    assert_eq!(headers["mcp-param-owner"], "=?base64?w5xuYWw=?=");
    assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[tokio::test]
async fn a_modern_call_is_cancelled_by_hanging_up() {
    let seen = Arc::new(Seen::default());
    let url = serve(Router::new().route("/mcp", post(modern)).with_state(seen.clone())).await;
    let session = open(format!("{url}/mcp")).await.expect("a session");
    let cancel = CancellationToken::new();
    let soon = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        soon.cancel();
    });
    let hang = Call {
        asked: &Asked::Tool { name: "hang".into(), arguments: None, as_task: false },
        listener: None,
        headers: &[],
        cancel: &cancel,
        timeout: Duration::from_secs(20),
        traceparent: None,
        resumed: None,
    };
    let failure = session.call(hang).await.expect_err("cancelled");
    assert!(matches!(failure, RequestError::Failed(failure) if failure.kind == Kind::Cancelled));
    tokio::time::timeout(Duration::from_secs(1), async {
        while seen.hung_up.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the server sees it within a second");
}

/// Plays a server of HTTP+SSE: answers come on the one stream.
fn old(endpoint: &'static str) -> Router {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(16);
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let opened = move || async move {
        let receiver = receiver.lock().expect("whole").take().expect("opened once");
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream))
    };
    let first = sender.clone();
    let opened = move || {
        first.try_send(Ok(format!("event: endpoint\ndata: {endpoint}\n\n").into())).expect("room");
        opened()
    };
    let messages = move |Json(request): Json<Value>| async move {
        let about =
            json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} }, "serverInfo": { "name": "o" } });
        let answer = match request["method"].as_str().unwrap_or_default() {
            "initialize" => about,
            "tools/list" => json!({ "tools": [{ "name": "t" }] }),
            _ => return StatusCode::ACCEPTED,
        };
        let _ = sender.send(Ok(format!("event: message\ndata: {}\n\n", result(&request, answer)).into())).await;
        StatusCode::ACCEPTED
    };
    Router::new().route("/sse", get(opened)).route("/messages", post(messages))
}

#[tokio::test]
async fn the_transport_of_2024_is_found_by_itself() {
    let url = serve(old("/messages?session=1")).await;
    let session = open(format!("{url}/sse")).await.expect("a session");
    assert_eq!(session.version(), "2024-11-05");
    assert_eq!(session.lists().await.expect("lists").tools.map(|tools| tools.len()), Some(1));
    session.close().await;
}

/// Our credentials would go to that host.
#[tokio::test]
async fn a_stream_cannot_send_us_to_another_host() {
    let url = serve(old("http://169.254.169.254/latest")).await;
    let failure = open(format!("{url}/sse")).await.err().expect("refused");
    assert!(failure.to_string().contains("another host"), "{failure}");
}

#[tokio::test]
async fn addresses_that_are_no_servers_say_what_they_are() {
    let router = Router::new()
        .route("/page", any(|| async { "hello" }))
        .route("/down", any(|| async { StatusCode::BAD_GATEWAY }));
    let url = serve(router).await;
    for (path, kind) in [("page", Kind::Protocol), ("down", Kind::Unreachable), ("none", Kind::NotHere)] {
        let failure = open(format!("{url}/{path}?key=hunter2")).await.err().expect("no server");
        assert_eq!(failure.kind, kind, "{path}: {failure}");
        assert!(!failure.to_string().contains("hunter2"), "{failure}");
        assert!(!failure.steps.is_empty(), "{failure}");
    }
    let failure = open("http://127.0.0.1:1/mcp".to_owned()).await.err().expect("nothing is there");
    assert!(failure.kind == Kind::Unreachable && !failure.is_handed_over, "{failure}");
}
