//! A session with a URL: bodies and streams, sessions that end, the older transport, and addresses that are traps.

use std::{
    convert::Infallible,
    sync::{
        Arc,
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
    routing::{MethodRouter, any, get, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use weir_upstream::{
    Answering, ClientCapability, RequestError, UpstreamBounds, UpstreamCall, UpstreamFailure,
    UpstreamFailureKind, UpstreamListener, UpstreamOperation, UpstreamProgress, UpstreamQuestion,
    UpstreamSession, UpstreamSettings, UpstreamTarget, UpstreamTransport, UpstreamUrl,
};

pub(crate) async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("its number");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Serves a handler with its state, and returns its URL.
pub(crate) async fn serve_mcp<S>(handler: MethodRouter<S>, state: S) -> String
where
    S: Clone + Send + Sync + 'static,
{
    let router = Router::new().route("/mcp", handler).with_state(state);
    format!("{}/mcp", serve(router).await)
}

async fn open(url: String) -> Result<UpstreamSession, UpstreamFailure> {
    open_by(url, UpstreamTransport::Either).await
}

async fn open_by(
    url: String,
    transport: UpstreamTransport,
) -> Result<UpstreamSession, UpstreamFailure> {
    let headers = vec![("authorization".to_owned(), "Bearer ours".to_owned())];
    let (quiet, request, ask) = (
        Duration::from_millis(50),
        Duration::from_secs(5),
        vec![ClientCapability::Elicitation],
    );
    let settings = UpstreamSettings {
        quiet,
        request,
        ask,
        ..UpstreamSettings::default()
    };
    UpstreamSession::open(
        &UpstreamTarget::Url(UpstreamUrl {
            url,
            headers,
            transport,
            auth: None,
        }),
        settings,
    )
    .await
}

pub(crate) async fn count_tools(session: &UpstreamSession) -> Option<usize> {
    let lists = session.lists().await.expect("lists");
    lists.tools.map(|tools| tools.len())
}

async fn call(session: &UpstreamSession, name: &str) -> Result<String, RequestError> {
    call_with(session, name, &[]).await
}

async fn call_with(
    session: &UpstreamSession,
    name: &str,
    headers: &[(String, String)],
) -> Result<String, RequestError> {
    call_within(session, name, headers, None, Duration::from_secs(30)).await
}

async fn call_within(
    session: &UpstreamSession,
    name: &str,
    headers: &[(String, String)],
    listener: Option<Arc<dyn UpstreamListener>>,
    timeout: Duration,
) -> Result<String, RequestError> {
    let cancel = CancellationToken::new();
    let call = UpstreamCall {
        asked: &UpstreamOperation::Tool {
            name: name.into(),
            arguments: None,
            as_task: false,
        },
        listener,
        headers,
        cancel: &cancel,
        timeout,
        trace: None,
        resumed: None,
    };
    session
        .call(call)
        .await
        .map(|result| result.get().to_owned())
}

/// Waits for what should be so soon.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let soon = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), soon)
        .await
        .expect(what);
}

type Stream = mpsc::Receiver<Result<Bytes, Infallible>>;

/// Returns a stream of events that stays open as long as its sender.
fn stream(events: Stream) -> Response {
    let stream = tokio_stream::wrappers::ReceiverStream::new(events);
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(stream),
    )
        .into_response()
}

fn event(message: &Value) -> Result<Bytes, Infallible> {
    Ok(format!("event: message\ndata: {message}\n\n").into())
}

/// Refuses what has no session, as servers of the legacy era do.
fn no_session() -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no session" } });
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
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
    let body: String = messages
        .iter()
        .map(|message| format!("event: message\ndata: {message}\n\n"))
        .collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Plays a legacy server with sessions. Each one is over after it listed once.
async fn legacy(
    State(seen): State<Arc<Seen>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    seen.requests
        .lock()
        .push((headers.clone(), request.clone()));
    let current = format!("session-{}", seen.sessions.load(Ordering::SeqCst));
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => no_session(),
        "initialize" => {
            let session = format!(
                "session-{}",
                seen.sessions.fetch_add(1, Ordering::SeqCst) + 1
            );
            let about = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "l" } });
            ([("mcp-session-id", session)], Json(result(&request, about))).into_response()
        }
        _ if headers
            .get("mcp-session-id")
            .is_none_or(|session| session != current.as_str()) =>
        {
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
    let url = serve_mcp(any(legacy), seen.clone()).await;
    let session = open(url).await.expect("a session");
    assert_eq!(session.version(), "2025-06-18");
    assert_eq!(count_tools(&session).await, Some(1));
    call(&session, "t").await.expect("an answer");
    assert_eq!(seen.calls.load(Ordering::SeqCst), 1);
    let requests = seen.requests.lock();
    let initialized = requests
        .iter()
        .filter(|(_, request)| request["method"] == "initialize")
        .count();
    assert_eq!(initialized, 2, "one new session");
    for (headers, request) in requests.iter() {
        assert_eq!(
            headers["authorization"], "Bearer ours",
            "the same for list and call"
        );
        if request["method"] == "tools/list" {
            assert_eq!(headers["mcp-protocol-version"], "2025-06-18");
        }
    }
}

type Complaint = fn(&Value) -> Response;

/// Plays a legacy server that opens a session only when it may, and forgets it on request.
struct Forgetful {
    may_open: Semaphore,
    opening: AtomicUsize,
    known: Mutex<Option<String>>,
    refused: AtomicUsize,
    calls: AtomicUsize,
    /// The complaint about a forgotten session, made for a request; `None`: 404, as the protocol has it.
    complaint: Option<Complaint>,
}

async fn forgetful(
    State(server): State<Arc<Forgetful>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let session = headers
        .get("mcp-session-id")
        .map(|session| session.to_str().expect("ASCII").to_owned());
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => no_session(),
        "initialize" => {
            let session = format!(
                "session-{}",
                server.opening.fetch_add(1, Ordering::SeqCst) + 1
            );
            server
                .may_open
                .acquire()
                .await
                .expect("it is open")
                .forget();
            *server.known.lock() = Some(session.clone());
            let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "f" } });
            ([("mcp-session-id", session)], Json(result(&request, about))).into_response()
        }
        _ if session.is_none() || session != *server.known.lock() => {
            server.refused.fetch_add(1, Ordering::SeqCst);
            match server.complaint {
                Some(complain) if session.is_some() => complain(&request),
                None if session.is_some() => StatusCode::NOT_FOUND.into_response(),
                _ => no_session(),
            }
        }
        "tools/call" => {
            server.calls.fetch_add(1, Ordering::SeqCst);
            Json(result(&request, json!({ "content": [] }))).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Returns a session that the server has forgotten since.
async fn forgotten() -> (Arc<Forgetful>, UpstreamSession) {
    forgotten_with(None).await
}

async fn forgotten_with(complaint: Option<Complaint>) -> (Arc<Forgetful>, UpstreamSession) {
    let server = Arc::new(Forgetful {
        may_open: Semaphore::new(1),
        opening: AtomicUsize::new(0),
        known: Mutex::default(),
        refused: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
        complaint,
    });
    let url = serve_mcp(any(forgetful), server.clone()).await;
    let session = open(url).await.expect("a session");
    *server.known.lock() = None;
    (server, session)
}

/// Programs in Python redirect to the same path with a slash, or without one.
#[tokio::test]
async fn a_redirect_is_reported_with_the_place_that_it_leads_to() {
    let elsewhere = any(|| async {
        let place = [(header::LOCATION, "/mcp/")];
        (StatusCode::TEMPORARY_REDIRECT, place)
    });
    let url = serve(Router::new().route("/mcp", elsewhere)).await;
    let opened = open(format!("{url}/mcp")).await;
    let failure = opened.err().expect("no redirect is followed");
    assert!(failure.to_string().contains("`/mcp/`"), "{failure}");
}

/// Returns an error of the protocol with a status. `id`: that of the request, or null.
fn complain(status: StatusCode, id: &Value, code: i64, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    let refusal = json!({ "jsonrpc": "2.0", "error": error, "id": id });
    (status, Json(refusal)).into_response()
}

fn complain_badly(message: &str) -> Response {
    complain(StatusCode::BAD_REQUEST, &Value::Null, -32000, message)
}

/// Returns how servers complain of a session of before their restart that do not answer 404: the official one in TypeScript,
/// whose two ways to keep sessions have two messages, earlier ones in Rust, anubis (Elixir), AWS and tower-mcp.
fn complaints() -> [(&'static str, Complaint); 5] {
    [
        ("no session", |_| {
            complain_badly("Bad Request: No valid session ID provided")
        }),
        ("not initialized", |_| {
            complain_badly("Bad Request: Server not initialized")
        }),
        ("rust", |_| {
            let text = "Unauthorized: Session not found";
            (StatusCode::UNAUTHORIZED, text).into_response()
        }),
        ("elixir", |request| {
            complain(
                StatusCode::OK,
                &request["id"],
                -32002,
                "Server not initialized",
            )
        }),
        ("aws", |request| {
            let message = "The provided SessionId was not found or has expired, please re-initialize your connection.";
            complain(StatusCode::OK, &request["id"], -30001, message)
        }),
    ]
}

#[tokio::test]
async fn a_session_that_a_restarted_server_complains_of_is_opened_anew() {
    for (what, complaint) in complaints() {
        let (server, session) = forgotten_with(Some(complaint)).await;
        server.may_open.add_permits(1);
        call(&session, "t").await.expect(what);
        assert_eq!(server.calls.load(Ordering::SeqCst), 1, "{what}");
    }
    // What is not about the session is not asked again.
    let other: [Complaint; 3] = [
        |_| complain_badly("Bad Request: no such day"),
        |request| {
            let message = "Resource not found: session://7";
            complain(StatusCode::OK, &request["id"], -32002, message)
        },
        |request| {
            let message = "Session not found in the browser";
            complain(StatusCode::OK, &request["id"], -32000, message)
        },
    ];
    for complaint in other {
        let (server, session) = forgotten_with(Some(complaint)).await;
        server.may_open.add_permits(1);
        let refused = call(&session, "t").await;
        assert!(
            matches!(refused, Err(RequestError::Refused(_))),
            "{refused:?}"
        );
        let refusals = server.refused.load(Ordering::SeqCst);
        assert_eq!((refusals, server.opening.load(Ordering::SeqCst)), (1, 1));
    }
}

#[tokio::test]
async fn a_call_during_a_renewal_waits_for_it() {
    let (server, session) = forgotten().await;
    let second = async {
        until("the session is renewed", || {
            server.opening.load(Ordering::SeqCst) == 2
        })
        .await;
        tokio::join!(call(&session, "t"), async {
            until("the second call is refused", || {
                server.refused.load(Ordering::SeqCst) == 2
            })
            .await;
            server.may_open.add_permits(1);
        })
    };
    let (first, (second, ())) = tokio::join!(call(&session, "t"), second);
    first.expect("an answer");
    second.expect("an answer");
    let (opened, calls) = (
        server.opening.load(Ordering::SeqCst),
        server.calls.load(Ordering::SeqCst),
    );
    assert_eq!((opened, calls), (2, 2));
}

#[tokio::test]
async fn a_renewal_that_hangs_ends_with_the_call_and_the_session_with_it() {
    let (server, session) = forgotten().await;
    let late = call_within(&session, "t", &[], None, Duration::from_millis(500));
    let late = tokio::time::timeout(Duration::from_secs(20), late)
        .await
        .expect("it ends when the call may wait no more");
    match late {
        Err(RequestError::Failed(failure)) => {
            assert!(
                failure.kind == UpstreamFailureKind::Timeout && !failure.is_handed_over,
                "{failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    match call(&session, "t").await {
        Err(RequestError::Failed(failure)) => {
            assert!(
                failure.kind == UpstreamFailureKind::Closed && !failure.is_handed_over,
                "another session is opened: {failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.calls.load(Ordering::SeqCst), 0);
}

/// Plays a legacy server that asks something on the stream of a call, and never takes the answer.
async fn deaf(State(answered): State<Arc<Notify>>, method: Method, body: Bytes) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    match request["method"].as_str() {
        Some("server/discover") => no_session(),
        Some("initialize") => {
            let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "d" } });
            Json(result(&request, about)).into_response()
        }
        Some("tools/call") => {
            let (events, stays_open) = mpsc::channel(2);
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {} });
            events.try_send(event(&question)).expect("room");
            tokio::spawn(async move {
                answered.notified().await;
                if request["params"]["name"] == "answers" {
                    let _ = events
                        .send(event(&result(&request, json!({ "content": [] }))))
                        .await;
                }
                events.closed().await;
            });
            stream(stays_open)
        }
        Some(_) => StatusCode::ACCEPTED.into_response(),
        None => {
            answered.notify_one();
            std::future::pending().await
        }
    }
}

struct Agreeable;

impl UpstreamListener for Agreeable {
    fn wants_progress(&self) -> bool {
        false
    }

    fn progress(&self, _progress: UpstreamProgress) {}

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _level: &str, _logger: &str, _data: &RawValue) {}

    fn ask(&self, _question: UpstreamQuestion) -> Answering {
        Box::pin(async {
            serde_json::value::to_raw_value(&json!({ "action": "accept", "content": {} })).ok()
        })
    }
}

/// Neither its result nor the end of a call's time waits until the server takes what it asked for.
#[tokio::test]
async fn a_server_that_does_not_take_the_answer_to_its_question_does_not_hold_the_call() {
    let url = serve_mcp(any(deaf), Arc::new(Notify::new())).await;
    let session = open(url).await.expect("a session");
    let soon = async |name, timeout| {
        let called = call_within(&session, name, &[], Some(Arc::new(Agreeable)), timeout);
        tokio::time::timeout(Duration::from_secs(20), called)
            .await
            .expect("it ends")
    };
    soon("answers", Duration::from_secs(60))
        .await
        .expect("an answer");
    match soon("waits", Duration::from_secs(1)).await {
        Err(RequestError::Failed(failure)) => {
            assert_eq!(failure.kind, UpstreamFailureKind::Timeout, "{failure}")
        }
        other => panic!("{other:?}"),
    }
}

/// Plays a legacy server that has its client poll: each stream ends behind an event that is no answer, ten times.
#[derive(Default)]
struct Polled {
    request: Mutex<Value>,
    polls: AtomicUsize,
}

async fn polled(
    State(server): State<Arc<Polled>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let ends = |text: String| ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response();
    if method == Method::GET {
        let Some(last) = headers.get("last-event-id") else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        let last: u32 = last
            .to_str()
            .expect("ASCII")
            .parse()
            .expect("the id of an event");
        return match server.polls.fetch_add(1, Ordering::SeqCst) {
            3 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ if last < 10 => ends(format!("id: {}\ndata:\n\n", last + 1)),
            _ => events(&[result(&server.request.lock(), json!({ "content": [] }))]),
        };
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => no_session(),
        "initialize" => {
            let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "p" } });
            Json(result(&request, about)).into_response()
        }
        "tools/call" => {
            *server.request.lock() = request;
            ends("id: 0\nretry: 1\ndata:\n\n".to_owned())
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_server_may_let_the_stream_of_a_call_end_as_often_as_it_wants() {
    let server = Arc::new(Polled::default());
    let url = serve_mcp(any(polled), server.clone()).await;
    let session = open(url).await.expect("a session");
    call_within(&session, "t", &[], None, Duration::from_secs(60))
        .await
        .expect("an answer");
    assert_eq!(
        server.polls.load(Ordering::SeqCst),
        12,
        "ten events, the answer, and once it was away"
    );
}

/// Plays a legacy server whose call ends behind the events that its tool's name writes, and that records how it is resumed.
async fn marked(
    State(resumed): State<Arc<Mutex<Vec<Bytes>>>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method == Method::GET {
        if let Some(last) = headers.get("last-event-id") {
            resumed.lock().push(Bytes::copy_from_slice(last.as_bytes()));
        }
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => no_session(),
        "initialize" => {
            let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "m" } });
            Json(result(&request, about)).into_response()
        }
        "tools/call" => {
            let ids = request["params"]["name"].as_str().expect("a name");
            let text: String = ids
                .split(',')
                .map(|id| format!("id: {id}\nretry: 1\ndata:\n\n"))
                .collect();
            ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_stream_is_resumed_behind_the_last_event_that_has_an_id() {
    let resumed = Arc::<Mutex<Vec<Bytes>>>::default();
    let url = serve_mcp(any(marked), resumed.clone()).await;
    let session = open(url).await.expect("a session");
    let cases: [(&str, &[&str]); 5] = [
        ("7", &["7"]),
        ("", &[]),
        ("7,", &[]),
        (",8", &["8"]),
        ("é1", &["é1"]),
    ];
    for (ids, expected) in cases {
        let Err(RequestError::Failed(failure)) = call(&session, ids).await else {
            panic!("{ids:?}: it does not answer");
        };
        assert_eq!(failure.kind, UpstreamFailureKind::Closed, "{ids:?}");
        let found = std::mem::take(&mut *resumed.lock());
        assert_eq!(found, expected, "{ids:?}");
    }
}

/// Plays a modern server: streams, and calls that are cancelled by hanging up.
async fn modern(
    State(seen): State<Arc<Seen>>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    seen.requests.lock().push((headers, request.clone()));
    match (
        request["method"].as_str().unwrap_or_default(),
        request["params"]["name"].as_str(),
    ) {
        ("server/discover", _) => {
            let about =
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
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
                while sender
                    .send(Ok(Bytes::from_static(b": still here\n\n")))
                    .await
                    .is_ok()
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
            (
                [(header::CONTENT_TYPE, "text/event-stream")],
                Body::from_stream(stream),
            )
                .into_response()
        }
        ("tools/call", Some("huge")) => {
            let text = format!("data: {}", "x".repeat(3 << 20));
            ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
        }
        ("tools/call", Some("page")) => {
            ([(header::CONTENT_TYPE, "text/html")], "<p>").into_response()
        }
        ("tools/call", Some("other")) => {
            Json(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })).into_response()
        }
        ("tools/call", Some("broken")) => events(&[]),
        ("tools/call", Some("busy")) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        ("tools/call", Some("away")) => (
            StatusCode::FOUND,
            [(header::LOCATION, "http://169.254.169.254/")],
        )
            .into_response(),
        ("tools/call", Some("closed")) => StatusCode::UNAUTHORIZED.into_response(),
        _ => events(&[result(&request, json!({ "content": [] }))]),
    }
}

#[tokio::test]
async fn answers_that_are_none_end_the_call_and_not_the_session() {
    let seen = Arc::new(Seen::default());
    let url = serve_mcp(post(modern), seen.clone()).await;
    let target = UpstreamTarget::Url(UpstreamUrl {
        url,
        headers: Vec::new(),
        transport: UpstreamTransport::Either,
        auth: None,
    });
    let bounds = UpstreamBounds {
        message_max_bytes: 1 << 20,
        ..UpstreamBounds::default()
    };
    let session = UpstreamSession::open(
        &target,
        UpstreamSettings {
            bounds,
            ..UpstreamSettings::default()
        },
    )
    .await
    .expect("a session");
    assert!(session.is_modern());
    for (name, kind) in [
        ("huge", UpstreamFailureKind::TooLarge),
        ("page", UpstreamFailureKind::Protocol),
        ("other", UpstreamFailureKind::Protocol),
        ("broken", UpstreamFailureKind::Closed),
        ("busy", UpstreamFailureKind::Unreachable),
        ("away", UpstreamFailureKind::Unreachable),
        ("closed", UpstreamFailureKind::Access),
    ] {
        match call(&session, name).await {
            Err(RequestError::Failed(failure)) => {
                assert_eq!(failure.kind, kind, "{name}: {failure}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let repeated = [("Region", "eu"), ("Owner", "Ünal")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    call_with(&session, "ünï", &repeated)
        .await
        .expect("an answer");
    let requests = seen.requests.lock();
    let (headers, request) = requests.last().expect("a request");
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "=?base64?w7xuw68=?=");
    assert_eq!(headers["mcp-param-region"], "eu");
    assert_eq!(headers["mcp-param-owner"], "=?base64?w5xuYWw=?=");
    assert_eq!(
        request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

#[tokio::test]
async fn a_modern_call_is_cancelled_by_hanging_up() {
    let seen = Arc::new(Seen::default());
    let url = serve_mcp(post(modern), seen.clone()).await;
    let session = open(url).await.expect("a session");
    let cancel = CancellationToken::new();
    let hang = UpstreamCall {
        asked: &UpstreamOperation::Tool {
            name: "hang".into(),
            arguments: None,
            as_task: false,
        },
        listener: None,
        headers: &[],
        cancel: &cancel,
        timeout: Duration::from_secs(20),
        trace: None,
        resumed: None,
    };
    let (ended, ()) = tokio::join!(session.call(hang), async {
        let is_hang = |(_, request): &(HeaderMap, Value)| request["params"]["name"] == "hang";
        until("the call arrives", || {
            seen.requests.lock().iter().any(is_hang)
        })
        .await;
        cancel.cancel();
    });
    let failure = ended.expect_err("cancelled");
    assert!(
        matches!(failure, RequestError::Failed(failure) if failure.kind == UpstreamFailureKind::Cancelled)
    );
    until("the server sees it", || {
        seen.hung_up.load(Ordering::SeqCst) == 1
    })
    .await;
}

/// Plays a server of HTTP+SSE: answers come on the one stream.
fn old(endpoint: &'static str) -> Router {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(16);
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let opened = move || async move {
        let receiver = receiver.lock().take().expect("opened once");
        let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
        (
            [(header::CONTENT_TYPE, "text/event-stream")],
            Body::from_stream(stream),
        )
    };
    let first = sender.clone();
    let opened = move || {
        first
            .try_send(Ok(format!("event: endpoint\ndata: {endpoint}\n\n").into()))
            .expect("room");
        opened()
    };
    let messages = move |Json(request): Json<Value>| async move {
        let about = json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} }, "serverInfo": { "name": "o" } });
        let answer = match request["method"].as_str().unwrap_or_default() {
            "initialize" => about,
            "tools/list" => json!({ "tools": [{ "name": "t" }] }),
            _ => return StatusCode::ACCEPTED,
        };
        let _ = sender
            .send(Ok(format!(
                "event: message\ndata: {}\n\n",
                result(&request, answer)
            )
            .into()))
            .await;
        StatusCode::ACCEPTED
    };
    Router::new()
        .route("/sse", get(opened))
        .route("/messages", post(messages))
}

#[tokio::test]
async fn the_transport_of_2024_is_found_by_itself() {
    let url = serve(old("/messages?session=1")).await;
    let session = open(format!("{url}/sse")).await.expect("a session");
    assert_eq!(session.version(), "2024-11-05");
    assert_eq!(count_tools(&session).await, Some(1));
    session.close().await;
}

/// Plays a server of HTTP+SSE that asks 500 times at once, and counts the answers that it is sent at the same time.
struct Asking {
    events: mpsc::Sender<Result<Bytes, Infallible>>,
    stream: Mutex<Option<Stream>>,
    now: AtomicUsize,
    most: AtomicUsize,
    taken: AtomicUsize,
}

async fn asking(State(server): State<Arc<Asking>>, method: Method, body: Bytes) -> Response {
    if method == Method::GET {
        return stream(server.stream.lock().take().expect("opened once"));
    }
    let message: Value = serde_json::from_slice(&body).expect("JSON");
    match message["method"].as_str() {
        Some("initialize") => {
            let about = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "a" } });
            let pings = (0..500)
                .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
                .collect();
            for sent in [result(&message, about), Value::Array(pings)] {
                let _ = server.events.send(event(&sent)).await;
            }
        }
        Some(_) => {}
        None => {
            server.most.fetch_max(
                server.now.fetch_add(1, Ordering::SeqCst) + 1,
                Ordering::SeqCst,
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
            server.now.fetch_sub(1, Ordering::SeqCst);
            server.taken.fetch_add(1, Ordering::SeqCst);
        }
    }
    StatusCode::ACCEPTED.into_response()
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_answered_once_at_a_time() {
    let (events, opened) = mpsc::channel(16);
    events
        .try_send(Ok("event: endpoint\ndata: /sse\n\n".into()))
        .expect("room");
    let (now, most, taken) = Default::default();
    let server = Arc::new(Asking {
        events,
        stream: Mutex::new(Some(opened)),
        now,
        most,
        taken,
    });
    let url = serve(
        Router::new()
            .route("/sse", any(asking))
            .with_state(server.clone()),
    )
    .await;
    let session = open_by(format!("{url}/sse"), UpstreamTransport::Sse)
        .await
        .expect("a session");
    until("some answers have come", || {
        server.taken.load(Ordering::SeqCst) >= 20
    })
    .await;
    assert_eq!(server.most.load(Ordering::SeqCst), 1);
    session.close().await;
}

#[tokio::test]
async fn a_stream_that_is_refused_is_hung_up() {
    let (events, opened) = mpsc::channel(16);
    events
        .try_send(Ok(
            "event: endpoint\ndata: http://169.254.169.254/latest\n\n".into(),
        ))
        .expect("room");
    let opened = Arc::new(Mutex::new(Some(opened)));
    let opened = move || async move { stream(opened.lock().take().expect("opened once")) };
    let router = Router::new().route("/sse", get(opened));
    let url = serve(router).await;
    assert!(
        open_by(format!("{url}/sse"), UpstreamTransport::Sse)
            .await
            .is_err()
    );
    let hung_up = async {
        while events
            .send(Ok(Bytes::from_static(b": still here\n\n")))
            .await
            .is_ok()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), hung_up)
        .await
        .expect("no one reads it");
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
    for (path, kind) in [
        ("page", UpstreamFailureKind::Protocol),
        ("down", UpstreamFailureKind::Unreachable),
        ("none", UpstreamFailureKind::NotHere),
    ] {
        let failure = open(format!("{url}/{path}?key=hunter2"))
            .await
            .err()
            .expect("no server");
        assert_eq!(failure.kind, kind, "{path}: {failure}");
        assert!(!failure.to_string().contains("hunter2"), "{failure}");
        assert!(!failure.steps.is_empty(), "{failure}");
    }
    let failure = open("http://127.0.0.1:1/mcp".to_owned())
        .await
        .err()
        .expect("nothing is there");
    assert!(
        failure.kind == UpstreamFailureKind::Unreachable && !failure.is_handed_over,
        "{failure}"
    );
}
