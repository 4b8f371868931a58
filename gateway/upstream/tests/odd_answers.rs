//! Servers whose answers are read although they are not written as the protocol has them, and what is reported of the others.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use weir_upstream::{
    Answering, EraPreference, RequestError, UpstreamCall, UpstreamCommand, UpstreamFailure,
    UpstreamFailureKind, UpstreamListener, UpstreamOperation, UpstreamProgress, UpstreamQuestion,
    UpstreamSession, UpstreamSettings, UpstreamTarget, UpstreamTransport, UpstreamUrl,
};

use crate::urls;

/// The bytes of an id of a session that is a signed token.
const LONG_SESSION: usize = 2_000;

fn answer(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

fn refusal(id: Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "unknown" } })
}

fn typed(kind: &'static str, body: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// Answers the question for the era as `how` says; else a legacy server.
async fn odd(
    extract::Path(how): extract::Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return listened(&how, &method);
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    if request["id"].is_null() {
        if how == "400-notified" {
            return StatusCode::BAD_REQUEST.into_response();
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let id = request["id"].clone();
    if request["method"] == "tools/call" && !is_known(&how, &headers) {
        return (StatusCode::BAD_REQUEST, "no such session").into_response();
    }
    let result = match request["method"].as_str().expect("a method") {
        "server/discover" => {
            let (code, body) = match how.as_str() {
                "500-refusal" => (500, refusal(id, -32601)),
                "500-internal" => (500, refusal(id, -32603)),
                "200-no-id" => (200, refusal(Value::Null, -32600)),
                "200-other-id" => (200, refusal("server-error".into(), -32600)),
                "500-text" => return (StatusCode::INTERNAL_SERVER_ERROR, "boom").into_response(),
                "501" => return StatusCode::NOT_IMPLEMENTED.into_response(),
                "502" => return (StatusCode::BAD_GATEWAY, "bad gateway").into_response(),
                "page" => return typed("text/html", "<html>"),
                "empty" => return typed("application/json", ""),
                "202" => return StatusCode::ACCEPTED.into_response(),
                "null-version" => {
                    let result =
                        json!({ "supportedVersions": ["2026-07-28", null], "capabilities": {} });
                    (200, answer(&request, result))
                }
                "null-supported" => {
                    let mut body = refusal(id, -32022);
                    body["error"]["data"] = json!({ "supported": [null, "2025-06-18"] });
                    (400, body)
                }
                "null-result" => (200, json!({ "jsonrpc": "2.0", "id": null, "result": {} })),
                _ => (404, refusal(id, -32601)),
            };
            return (StatusCode::from_u16(code).expect("a status"), Json(body)).into_response();
        }
        "initialize" => {
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "logging": {} }, "serverInfo": { "name": "odd" } })
        }
        "logging/setLevel" => std::future::pending().await,
        "tools/call" if how == "own-id" => json!({ "content": [], "id": request["id"] }),
        _ => json!({ "content": [] }),
    };
    let mut answer = answer(&request, result);
    match how.as_str() {
        "text-ids" => answer["id"] = answer["id"].to_string().into(),
        "fraction-ids" => answer["id"] = json!(answer["id"].as_f64()),
        "methods" => answer["method"] = request["method"].clone(),
        _ => {}
    }
    let (json, text) = ("application/json", answer.to_string());
    match how.as_str() {
        "long-session" => with_session("x".repeat(LONG_SESSION), typed(json, text)),
        "empty-session" => with_session(String::new(), typed(json, text)),
        "untyped" => Response::new(text.into()),
        "marked" => typed(json, format!("\u{feff}{text}")),
        "marked-stream" => typed("text/event-stream", format!("\u{feff}data: {text}\n\n")),
        "compressed" => {
            let body = typed(json, &b"\x1f\x8b\x08"[..]);
            ([(header::CONTENT_ENCODING, "gzip")], body).into_response()
        }
        "nan" if request["method"] == "tools/call" => {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"n":NaN}}}}"#,
                request["id"]
            );
            typed(json, text)
        }
        "limited" if request["method"] == "tools/call" => {
            let wait = [(header::RETRY_AFTER, "7")];
            (StatusCode::TOO_MANY_REQUESTS, wait, "slow down").into_response()
        }
        "busy" if request["method"] == "tools/call" => {
            let wait = [(header::RETRY_AFTER, "7")];
            (StatusCode::SERVICE_UNAVAILABLE, wait, "busy").into_response()
        }
        "words" if request["method"] == "tools/call" => {
            let body = json!({ "jsonrpc": "2.0", "id": request["id"], "error": "quota used up" });
            typed(json, body.to_string())
        }
        "failing" if request["method"] == "tools/call" => {
            let mut body = refusal(request["id"].clone(), -32603);
            body["error"]["data"] = json!({ "reason": "quota of project 7 used up" });
            (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
        }
        _ => typed(json, text),
    }
}

/// Answers a client that listens, or ends its session.
fn listened(how: &str, method: &Method) -> Response {
    if how != "comments" || method != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let change = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let comments = ": a comment\n\n".repeat(200_000);
    typed("text/event-stream", format!("{comments}data: {change}\n\n"))
}

fn with_session(id: String, response: Response) -> Response {
    ([("mcp-session-id", id)], response).into_response()
}

fn is_known(how: &str, headers: &HeaderMap) -> bool {
    match (how, headers.get("mcp-session-id")) {
        ("long-session", id) => id.is_some_and(|id| id.len() == LONG_SESSION),
        ("empty-session", id) => id.is_none(),
        _ => true,
    }
}

async fn serve() -> String {
    urls::serve(Router::new().route("/{how}", any(odd))).await
}

async fn open(url: String, era: EraPreference) -> Result<UpstreamSession, UpstreamFailure> {
    let target = UpstreamTarget::Url(UpstreamUrl {
        url,
        headers: Vec::new(),
        transport: UpstreamTransport::Either,
        auth: None,
    });
    let settings = UpstreamSettings {
        era,
        ..UpstreamSettings::default()
    };
    UpstreamSession::open(&target, settings).await
}

async fn call(session: &UpstreamSession, name: &str) -> Result<String, RequestError> {
    let asked = UpstreamOperation::Tool {
        name: name.into(),
        arguments: None,
        as_task: false,
    };
    let call = UpstreamCall {
        asked: &asked,
        resumed: None,
        listener: None,
        headers: &[],
        cancel: &CancellationToken::new(),
        timeout: Duration::from_secs(120),
        trace: None,
    };
    let result = session.call(call).await;
    result.map(|result| result.get().to_owned())
}

#[tokio::test]
async fn a_server_that_answers_oddly_for_its_era_is_asked_for_the_other() {
    let url = serve().await;
    for how in [
        "404",
        "500-refusal",
        "500-internal",
        "500-text",
        "501",
        "502",
        "200-no-id",
        "200-other-id",
        "page",
        "empty",
        "202",
        "null-result",
        "null-supported",
    ] {
        let session = open(format!("{url}/{how}"), EraPreference::Either).await;
        let session = session.unwrap_or_else(|failure| panic!("{how}: {failure}"));
        assert_eq!(session.version(), "2025-06-18", "{how}");
        call(&session, "t").await.expect(how);
    }
}

/// Some bridges send what a server answers one client to all of them: it answers no request of another caller.
#[tokio::test]
async fn no_two_sessions_send_the_same_id() {
    let url = format!("{}/own-id", serve().await);
    let mut answers = Vec::new();
    for _ in 0..3 {
        let session = open(url.clone(), EraPreference::Legacy).await;
        let session = session.expect("a session");
        answers.push(call(&session, "t").await.expect("an answer"));
    }
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 3, "{answers:?}");
}

/// A caller that asks for log messages.
struct LogReader;

impl UpstreamListener for LogReader {
    fn wants_progress(&self) -> bool {
        false
    }

    fn progress(&self, _progress: UpstreamProgress) {}

    fn log_level(&self) -> Option<&'static str> {
        Some("debug")
    }

    fn log(&self, _level: &str, _logger: &str, _data: &RawValue) {}

    fn ask(&self, _question: UpstreamQuestion) -> Answering {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn a_server_that_answers_to_no_log_level_is_called_all_the_same() {
    let url = format!("{}/404", serve().await);
    let session = open(url, EraPreference::Legacy).await.expect("a session");
    let asked = UpstreamOperation::Tool {
        name: "t".into(),
        arguments: None,
        as_task: false,
    };
    let mut times = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let call = UpstreamCall {
            asked: &asked,
            resumed: None,
            listener: Some(Arc::new(LogReader)),
            headers: &[],
            cancel: &CancellationToken::new(),
            timeout: Duration::from_secs(20),
            trace: None,
        };
        session.call(call).await.expect("an answer");
        times.push(began.elapsed());
    }
    let quickest = times.iter().min().expect("three calls");
    assert!(*quickest < Duration::from_secs(1), "{times:?}");
}

#[tokio::test]
async fn a_version_that_is_no_text_leaves_the_others() {
    let url = format!("{}/null-version", serve().await);
    let session = open(url, EraPreference::Either).await.expect("a session");
    assert!(session.is_modern());
    call(&session, "t").await.expect("an answer");
}

#[tokio::test]
async fn a_refused_notification_leaves_the_session() {
    let url = format!("{}/400-notified", serve().await);
    let session = open(url, EraPreference::Legacy).await.expect("a session");
    call(&session, "t").await.expect("an answer");
}

#[tokio::test]
async fn answers_are_read_however_servers_write_their_ids_and_begin() {
    let url = serve().await;
    for how in [
        "text-ids",
        "fraction-ids",
        "methods",
        "marked",
        "marked-stream",
    ] {
        let session = open(format!("{url}/{how}"), EraPreference::Either).await;
        let session = session.unwrap_or_else(|failure| panic!("{how}: {failure}"));
        call(&session, "t").await.expect(how);
    }
}

#[tokio::test]
async fn a_session_goes_on_whatever_its_id() {
    let url = serve().await;
    for how in ["long-session", "empty-session"] {
        let session = open(format!("{url}/{how}"), EraPreference::Legacy).await;
        let session = session.unwrap_or_else(|failure| panic!("{how}: {failure}"));
        call(&session, "t").await.expect(how);
    }
}

#[tokio::test]
async fn a_stream_without_end_that_was_not_asked_for_is_read_slowly() {
    let (url, began) = (serve().await, Instant::now());
    let session = open(format!("{url}/comments"), EraPreference::Legacy)
        .await
        .expect("a session");
    let mut changes = session.changes();
    let changed = changes.wait_for(|changes| *changes > 0);
    let changed = tokio::time::timeout(Duration::from_secs(20), changed).await;
    assert!(changed.expect("it is read").is_ok());
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn an_answer_that_is_compressed_is_named_as_that() {
    let url = serve().await;
    let failure = open(format!("{url}/compressed"), EraPreference::Legacy)
        .await
        .err()
        .expect("it is not read");
    assert!(
        failure.cause.contains("`Content-Encoding: gzip`"),
        "{failure}"
    );
    assert!(!failure.steps.is_empty(), "{failure}");
}

#[tokio::test]
async fn an_answer_without_a_type_is_named_as_that() {
    let url = format!("{}/untyped", serve().await);
    let failure = open(url, EraPreference::Legacy).await.err();
    let failure = failure.expect("it is not read");
    assert!(failure.cause.contains("no Content-Type"), "{failure}");
}

#[tokio::test]
async fn an_error_of_the_protocol_is_read_whatever_the_status_is() {
    let session = open(format!("{}/failing", serve().await), EraPreference::Legacy)
        .await
        .expect("a session");
    let Err(RequestError::Refused(refusal)) = call(&session, "t").await else {
        panic!("the server refused");
    };
    assert_eq!(refusal.code, -32603);
    assert_eq!(
        refusal.words(),
        r#"unknown: {"reason":"quota of project 7 used up"}"#
    );
}

#[tokio::test]
async fn a_server_that_takes_no_more_requests_says_for_how_long() {
    let session = open(format!("{}/limited", serve().await), EraPreference::Legacy)
        .await
        .expect("a session");
    let Err(RequestError::Failed(failure)) = call(&session, "t").await else {
        panic!("it takes none");
    };
    assert_eq!(failure.kind, UpstreamFailureKind::Limited, "{failure}");
    assert_eq!(failure.retry_after_s.map(|seconds| seconds.get()), Some(7));
    assert!(!failure.is_handed_over, "{failure}");
}

#[tokio::test]
async fn a_server_that_is_busy_says_for_how_long() {
    let session = open(format!("{}/busy", serve().await), EraPreference::Legacy)
        .await
        .expect("a session");
    let Err(RequestError::Failed(failure)) = call(&session, "t").await else {
        panic!("it is busy");
    };
    assert_eq!(failure.kind, UpstreamFailureKind::Unreachable, "{failure}");
    assert_eq!(failure.retry_after_s.map(|seconds| seconds.get()), Some(7));
}

#[tokio::test]
async fn an_error_of_words_alone_is_read() {
    let session = open(format!("{}/words", serve().await), EraPreference::Legacy)
        .await
        .expect("a session");
    let Err(RequestError::Refused(refusal)) = call(&session, "t").await else {
        panic!("the server refused");
    };
    assert_eq!(refusal.words(), "quota used up");
}

#[tokio::test]
async fn an_answer_that_is_no_json_ends_its_call_at_once() {
    let session = open(format!("{}/nan", serve().await), EraPreference::Legacy)
        .await
        .expect("a session");
    check_unreadable(call(&session, "t").await);
    let session = child("good").await;
    check_unreadable(call(&session, "nan").await);
    call(&session, "echo").await.expect("the session goes on");
    session.close().await;
}

fn check_unreadable(answer: Result<String, RequestError>) {
    let Err(RequestError::Failed(failure)) = answer else {
        panic!("it is no JSON: {answer:?}");
    };
    assert_eq!(failure.kind, UpstreamFailureKind::Protocol, "{failure}");
    assert!(failure.cause.contains("not valid JSON"), "{failure}");
}

#[tokio::test]
async fn a_child_that_writes_ids_as_texts_is_heard() {
    let session = child("text-ids").await;
    call(&session, "echo").await.expect("an answer");
    session.close().await;
}

#[tokio::test]
async fn messages_of_a_child_are_read_whatever_their_lines() {
    let session = child("pretty").await;
    call(&session, "echo").await.expect("one of many lines");
    session.close().await;
    let session = child("good").await;
    for way in ["row", "logged"] {
        let answer = call(&session, way).await.expect(way);
        assert!(answer.contains(way), "{answer}");
    }
    session.close().await;
}

#[tokio::test]
async fn an_answer_behind_other_text_ends_its_call_soon() {
    let session = child("good").await;
    let started = Instant::now();
    check_unreadable(call(&session, "behind").await);
    // Its own time would end it after two minutes.
    assert!(started.elapsed() < Duration::from_secs(60));
    call(&session, "echo").await.expect("the session goes on");
    session.close().await;
    let failure = start_child("prefixed").await.err().expect("no session");
    assert_eq!(failure.kind, UpstreamFailureKind::Protocol, "{failure}");
    assert!(
        failure.cause.contains("begins with other text"),
        "{failure}"
    );
}

async fn child(behaviour: &str) -> UpstreamSession {
    start_child(behaviour).await.expect("a session")
}

async fn start_child(behaviour: &str) -> Result<UpstreamSession, UpstreamFailure> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upstreams/hostile.py");
    let command = UpstreamCommand {
        program: "python3".into(),
        arguments: vec![script.into_os_string(), behaviour.into()],
        ..UpstreamCommand::default()
    };
    UpstreamSession::open(
        &UpstreamTarget::Command(command),
        UpstreamSettings::default(),
    )
    .await
}
