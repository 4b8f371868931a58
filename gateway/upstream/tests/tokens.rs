//! The tokens that requests bear: the gateway's own, and those that callers' tokens are exchanged for.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use weir_oauth::SecretText;
use weir_upstream::{
    AuthConfig, CallFailure, CallOwner, UpstreamCall, UpstreamConfig, UpstreamFailureKind,
    UpstreamOperation, UpstreamServer,
};

use crate::{owners::upstream, urls::serve};

/// A server of the modern era and its issuer at one address. A token is the caller's own one with a number behind it.
#[derive(Default)]
struct Server {
    base: Mutex<String>,
    given: AtomicUsize,
    /// The authorization of each call.
    calls: Mutex<Vec<String>>,
    forms: Mutex<Vec<BTreeMap<String, String>>>,
    /// Tokens up to this number are refused.
    refused: AtomicUsize,
    is_away: AtomicBool,
}

async fn give(State(server): State<Arc<Server>>, body: Bytes) -> Response {
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    if server.is_away.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let number = server.given.fetch_add(1, Ordering::SeqCst) + 1;
    let subject = form.get("subject_token").or(form.get("assertion"));
    let subject = subject.map_or("machine", |subject| subject.as_str());
    let is_assertion = form
        .get("requested_token_type")
        .is_some_and(|kind| kind.ends_with("id-jag"));
    let token = format!("{subject}/{number}");
    let answer = match is_assertion {
        true => json!({ "access_token": format!("assertion-of-{subject}"), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag" }),
        false => json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600 }),
    };
    server.forms.lock().push(form);
    // All that wait get the same.
    tokio::time::sleep(Duration::from_millis(50)).await;
    Json(answer).into_response()
}

async fn answer(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let bearer = headers.get(header::AUTHORIZATION);
    let bearer = bearer.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let number = bearer.and_then(|bearer| bearer.rsplit('/').next()?.parse().ok());
    let refused = server.refused.load(Ordering::SeqCst);
    if number.is_none_or(|number: usize| number <= refused) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let bearer = bearer.expect("a token").to_owned();
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
        }
        "tools/list" => json!({ "tools": [] }),
        _ => {
            server.calls.lock().push(bearer.clone());
            json!({ "content": [{ "type": "text", "text": bearer }] })
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).into_response()
}

async fn start(auth: &str) -> (Arc<Server>, Arc<UpstreamServer>) {
    let server = Arc::new(Server::default());
    let resource = async |State(server): State<Arc<Server>>| {
        let base = server.base.lock().clone();
        Json(
            json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["s"] }),
        )
    };
    let metadata = async |State(server): State<Arc<Server>>| {
        let base = server.base.lock().clone();
        Json(json!({ "issuer": base, "token_endpoint": format!("{base}/token") }))
    };
    let router = Router::new()
        .route("/mcp", post(answer))
        .route("/token", post(give))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .with_state(server.clone());
    let base = serve(router).await;
    server.base.lock().clone_from(&base);
    let auth: AuthConfig = serde_json::from_str(&auth.replace("BASE", &base)).expect("auth");
    let config = UpstreamConfig {
        url: Some(format!("{base}/mcp")),
        auth: Some(auth),
        ..UpstreamConfig::default()
    };
    assert_eq!(config.check("it"), []);
    (server, upstream(config))
}

async fn call(
    upstream: &UpstreamServer,
    agent: &str,
    token: Option<&str>,
) -> Result<Box<RawValue>, CallFailure> {
    let owner = CallOwner {
        tenant: "acme".into(),
        agent: agent.into(),
        session: None,
        token: token.map(SecretText::new),
    };
    let asked = UpstreamOperation::Tool {
        name: "t".into(),
        arguments: None,
        as_task: false,
    };
    let call = UpstreamCall {
        asked: &asked,
        resumed: None,
        listener: None,
        headers: &[],
        cancel: &CancellationToken::new(),
        timeout: Duration::from_secs(20),
        trace: None,
    };
    upstream.call(&owner, &call).await
}

#[tokio::test]
async fn the_gateways_own_token_is_asked_for_once_and_again_where_it_is_refused() {
    let auth = r#"{"kind":"client_credentials","client_id":"c","client_secret":"the-secret-of-c"}"#;
    let (server, upstream) = start(auth).await;
    let calls = (0..8).map(|_| {
        let upstream = upstream.clone();
        tokio::spawn(async move { call(&upstream, "ann", None).await })
    });
    for running in calls.collect::<Vec<_>>() {
        let result = running.await.expect("it ends").expect("an answer");
        assert!(
            !result.get().contains("machine/1"),
            "it is masked: {result}"
        );
    }
    assert_eq!(server.given.load(Ordering::SeqCst), 1);
    let form = server.forms.lock()[0].clone();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(
        (&*form["scope"], form["resource"].ends_with("/mcp")),
        ("s", true)
    );

    // A refused token is replaced by one request, and the call is made then.
    server.refused.store(1, Ordering::SeqCst);
    server.calls.lock().clear();
    call(&upstream, "ann", None).await.expect("an answer");
    assert_eq!(*server.calls.lock(), ["machine/2"]);
    // One that is refused anew ends the call.
    server.refused.store(9, Ordering::SeqCst);
    let failed = call(&upstream, "ann", None).await;
    let Err(CallFailure::Failed(failure)) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(failure.kind, UpstreamFailureKind::Access);
    server.is_away.store(true, Ordering::SeqCst);
    let failed = call(&upstream, "ann", None).await;
    let text = format!("{failed:?}");
    assert!(
        failed.is_err() && !text.contains("the-secret-of-c"),
        "{text}"
    );
    assert!(!text.contains("machine/"), "{text}");
}

#[tokio::test]
async fn a_callers_token_is_exchanged_and_never_sent_itself() {
    let auth = r#"{"kind":"exchange","client_id":"c","client_secret":"the-secret-of-c","token_url":"BASE/token"}"#;
    let (server, upstream) = start(auth).await;
    for (agent, token) in [
        ("ann", "ann-1"),
        ("bob", "bob-1"),
        ("ann", "ann-1"),
        ("ann", "ann-2"),
    ] {
        call(&upstream, agent, Some(token))
            .await
            .expect("an answer");
    }
    assert_eq!(
        *server.calls.lock(),
        ["ann-1/1", "bob-1/2", "ann-1/1", "ann-2/3"]
    );
    let none = call(&upstream, "key", None).await;
    assert!(
        matches!(&none, Err(CallFailure::Failed(failure)) if failure.kind == UpstreamFailureKind::Access)
    );
    upstream
        .lists()
        .await
        .expect("lists, by the gateway's own token");
}

#[tokio::test]
async fn an_identity_assertion_is_redeemed_at_the_servers_issuer() {
    let auth = r#"{"kind":"exchange","client_id":"c","token_url":"BASE/token",
        "assertion":{"client_id":"d","client_secret":"the-secret-of-d"}}"#;
    let (server, upstream) = start(auth).await;
    call(&upstream, "ann", Some("ann-1"))
        .await
        .expect("an answer");
    assert_eq!(*server.calls.lock(), ["assertion-of-ann-1/2"]);
    let forms = server.forms.lock();
    let base = server.base.lock().clone();
    assert_eq!(
        (&*forms[0]["audience"], &*forms[0]["client_id"]),
        (&*base, "c")
    );
    assert!(forms[1]["grant_type"].ends_with("jwt-bearer"));
}
