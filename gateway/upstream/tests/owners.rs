//! Tests which callers share a session with a server: also when the server is another one than before, and when a call ends
//! it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
    routing::any,
};
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use weir_upstream::{
    CallFailure, CallOwner, ClientCapability, EraPreference, KeptFiles, UpstreamCall,
    UpstreamConfig, UpstreamFailureKind, UpstreamIsolation, UpstreamListener, UpstreamOperation,
    UpstreamRegistry, UpstreamServer,
};

use crate::{children::Agreeable, urls::serve_mcp};

/// A server that can be another one from a moment on: of the modern era, or of the legacy one without what it knew.
#[derive(Default)]
struct Server {
    is_modern: AtomicBool,
    opened: AtomicUsize,
    sessions: Mutex<BTreeSet<String>>,
    /// The session of each call.
    calls: Mutex<Vec<Option<String>>>,
}

impl Server {
    fn becomes(&self, is_modern: bool) {
        self.is_modern.store(is_modern, Ordering::SeqCst);
        self.sessions.lock().clear();
    }

    fn calls(&self) -> Vec<Option<String>> {
        std::mem::take(&mut *self.calls.lock())
    }
}

async fn answer(
    State(server): State<Arc<Server>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let answered =
        |result: Value| Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    let refused = |status: StatusCode, id: &Value, code: i32| {
        let error = json!({ "code": code, "message": "Bad Request", "data": { "supported": ["2026-07-28"] } });
        (
            status,
            Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })),
        )
            .into_response()
    };
    let session = headers
        .get("mcp-session-id")
        .map(|session| session.to_str().expect("ASCII").to_owned());
    let is_modern = server.is_modern.load(Ordering::SeqCst);
    let is_known = session
        .as_ref()
        .is_some_and(|session| server.sessions.lock().contains(session));
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" if is_modern => answered(
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
        )
        .into_response(),
        "initialize" if !is_modern => {
            let session = format!(
                "session-{}",
                server.opened.fetch_add(1, Ordering::SeqCst) + 1
            );
            server.sessions.lock().insert(session.clone());
            let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s" } });
            ([("mcp-session-id", session)], answered(about)).into_response()
        }
        // A modern server knows no sessions.
        _ if is_modern && session.is_some() => StatusCode::NOT_FOUND.into_response(),
        "initialize" => refused(StatusCode::BAD_REQUEST, &request["id"], -32022),
        // As the servers of the TypeScript SDK do it.
        _ if !is_modern && !is_known => refused(StatusCode::BAD_REQUEST, &Value::Null, -32000),
        "tools/call" => {
            server.calls.lock().push(session);
            answered(json!({ "content": [] })).into_response()
        }
        "tools/list" => answered(json!({ "tools": [] })).into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Starts a server of one era, and returns it as an upstream.
async fn start(is_modern: bool) -> (Arc<Server>, Arc<UpstreamServer>) {
    let server = Arc::new(Server::default());
    server.becomes(is_modern);
    let url = serve_mcp(any(answer), server.clone()).await;
    (
        server,
        upstream(UpstreamConfig {
            url: Some(url),
            ..UpstreamConfig::default()
        }),
    )
}

pub(crate) fn upstream(config: UpstreamConfig) -> Arc<UpstreamServer> {
    let upstreams = UpstreamRegistry::new(Vec::new());
    let configs = BTreeMap::from([("it".to_owned(), config)]);
    let (resolved, wrong) = upstreams.resolve(&configs, Path::new("."), &KeptFiles::default());
    assert_eq!(wrong, []);
    upstreams.take(resolved);
    upstreams.get("it").expect("it is there")
}

async fn call(
    upstream: &UpstreamServer,
    agent: &str,
    tool: &str,
) -> Result<Box<RawValue>, CallFailure> {
    call_as(upstream, agent, tool, None, &CancellationToken::new()).await
}

async fn call_as(
    upstream: &UpstreamServer,
    agent: &str,
    tool: &str,
    listener: Option<Arc<dyn UpstreamListener>>,
    cancel: &CancellationToken,
) -> Result<Box<RawValue>, CallFailure> {
    let owner = CallOwner {
        tenant: "acme".into(),
        agent: agent.into(),
        session: None,
        token: None,
    };
    let call = UpstreamCall {
        asked: &UpstreamOperation::Tool {
            name: tool.into(),
            arguments: None,
            as_task: false,
        },
        resumed: None,
        listener,
        headers: &[],
        cancel,
        timeout: Duration::from_secs(20),
        trace: None,
    };
    upstream.call(&owner, &call).await
}

/// The modern era keeps nothing between requests, so that all agents share a session. The legacy one does.
#[tokio::test]
async fn agents_share_no_session_with_a_server_that_went_back_to_the_legacy_era() {
    let (server, upstream) = start(true).await;
    upstream.lists().await.expect("lists");
    server.becomes(false);
    for agent in ["ann", "bob", "ann"] {
        call(&upstream, agent, "t").await.expect("an answer");
    }
    let sessions = server.calls();
    assert!(sessions.iter().all(Option::is_some), "{sessions:?}");
    assert!(
        sessions[0] != sessions[1] && sessions[0] == sessions[2],
        "one for each agent: {sessions:?}"
    );
}

/// Many servers answer a session that they do not know with 400. What they did with the call is not known, so that it fails.
#[tokio::test]
async fn a_session_that_the_server_no_longer_knows_is_opened_anew_for_the_next_call() {
    for was_modern in [false, true] {
        let (server, upstream) = start(was_modern).await;
        upstream.lists().await.expect("lists");
        call(&upstream, "ann", "t").await.expect("an answer");
        server.becomes(false);
        let refused = call(&upstream, "ann", "t").await;
        assert!(
            matches!(refused, Err(CallFailure::Refused(_))),
            "{refused:?}"
        );
        call(&upstream, "ann", "t").await.expect("an answer");
        assert_eq!(server.calls().len(), 2);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_is_opened_in_the_era_that_the_server_speaks_now() {
    let (server, upstream) = start(false).await;
    call(&upstream, "ann", "t").await.expect("an answer");
    server.becomes(true);
    call(&upstream, "ann", "t").await.expect("an answer");
    assert_eq!(server.calls(), [Some("session-1".to_owned()), None]);
}

#[tokio::test]
async fn a_call_that_ends_a_fresh_process_keeps_other_agents_from_nothing() {
    let upstream = upstream(UpstreamConfig {
        command: good(),
        ..UpstreamConfig::default()
    });
    match call(&upstream, "ann", "die").await {
        Err(CallFailure::Failed(failure)) => {
            assert_eq!(failure.kind, UpstreamFailureKind::Closed, "{failure}")
        }
        other => panic!("{other:?}"),
    }
    let ann = call(&upstream, "ann", "echo").await;
    assert!(
        matches!(ann, Err(CallFailure::NotThere { .. })),
        "its own next start waits: {ann:?}"
    );
    call(&upstream, "bob", "echo").await.expect("an answer");
}

/// Returns the command of a server that is a child.
fn good() -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upstreams/hostile.py");
    vec![
        "python3".to_owned(),
        script.display().to_string(),
        "good".to_owned(),
    ]
}

/// Over a pipe nothing says whose call a question is about. The server may go on with one that was given up, so that another
/// agent is not asked in its session any more, but in the next one.
#[tokio::test]
async fn a_question_that_may_be_of_a_call_given_up_reaches_no_other_agent() {
    let upstream = upstream(UpstreamConfig {
        command: good(),
        era: EraPreference::Legacy,
        isolation: UpstreamIsolation::Tenant,
        ask: vec![ClientCapability::Elicitation],
        ..UpstreamConfig::default()
    });
    let (ann, cancel) = (
        Arc::new(Agreeable {
            is_undecided: true,
            ..Agreeable::default()
        }),
        CancellationToken::new(),
    );
    let leaving = tokio::spawn({
        let (upstream, ann, cancel) = (upstream.clone(), ann.clone(), cancel.clone());
        async move { call_as(&upstream, "ann", "inquire", Some(ann), &cancel).await }
    });
    while ann.asked.load(Ordering::SeqCst) == 0 {
        assert!(!leaving.is_finished(), "it asks first");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cancel.cancel();
    let left = leaving.await.expect("it does not panic");
    assert!(left.is_err(), "{left:?}");
    let bob = Arc::new(Agreeable::default());
    let mut heard = Vec::new();
    for _ in 0..2 {
        let token = CancellationToken::new();
        let answer = call_as(&upstream, "bob", "inquire", Some(bob.clone()), &token).await;
        let answer: Value = serde_json::from_str(answer.expect("an answer").get()).expect("JSON");
        let action = answer["structuredContent"]["action"].clone();
        heard.push((action, bob.asked.load(Ordering::SeqCst)));
    }
    assert_eq!(heard, [(json!("none"), 0), (json!("accept"), 1)]);
}
