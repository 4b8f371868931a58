//! The client against a server with scripted answers, on loopback.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use tokio::sync::Mutex;
use url::Url;
use weir_oauth::{
    AssertionRequest, ClientMetadata, NetworkReach, OauthFault, RegisteredClient, SecretText,
    SignInRequest, TokenEndpoint, TokenExchange, begin_sign_in, exchange_token, find_issuer,
    find_resource, redeem_assertion, redeem_code, register_client, renew_token,
    request_client_token,
};

/// The answer of each path, and the requests that came.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<BTreeMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl Script {
    async fn serve() -> (Self, String) {
        let script = Self::default();
        let router = Router::new().fallback(answer).with_state(script.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (script, base)
    }

    async fn set(&self, path: &str, status: u16, text: impl Into<String>) {
        let mut answers = self.answers.lock().await;
        answers.insert(path.to_owned(), (status, text.into()));
    }

    async fn last(&self) -> (String, String, String) {
        self.asked.lock().await.last().cloned().expect("a request")
    }
}

async fn answer(
    State(script): State<Script>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let basic = headers.get(header::AUTHORIZATION);
    let basic = basic.map_or("", |value| value.to_str().expect("a text"));
    let body = String::from_utf8_lossy(&body).into_owned();
    let asked = (uri.path().to_owned(), basic.to_owned(), body);
    script.asked.lock().await.push(asked);
    let answers = script.answers.lock().await;
    match answers.get(uri.path()) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some((status, text)) => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let headers = [(header::LOCATION, "/elsewhere")];
            (status, headers, text.clone()).into_response()
        }
    }
}

fn metadata(base: &str) -> String {
    format!(
        r#"{{"issuer":"{base}","authorization_endpoint":"{base}/auth","token_endpoint":"{base}/token",
            "registration_endpoint":"{base}/reg","code_challenge_methods_supported":["S256"]}}"#
    )
}

const SERVER: &str = "/.well-known/oauth-authorization-server";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";

#[tokio::test]
async fn a_sign_in_goes_from_the_server_to_a_token_that_is_renewed() {
    let (script, base) = Script::serve().await;
    let server = Url::parse(&format!("{base}/mcp")).expect("a URL");
    let reach = NetworkReach::named_by(&server).await;
    // A page for people in the place of the metadata is none.
    script.set(&format!("{RESOURCE}/mcp"), 200, "<html>").await;
    let resource = format!(r#"{{"resource":"{base}/mcp","authorization_servers":["{base}"]}}"#);
    script.set(RESOURCE, 200, resource).await;
    script.set(SERVER, 200, metadata(&base)).await;
    let found = find_resource(&server, None, reach).await.expect("found");
    assert_eq!(found.issuers, std::slice::from_ref(&base));
    let issuer = find_issuer(&base, reach).await.expect("metadata");

    script.set("/reg", 201, r#"{"client_id":"one"}"#).await;
    let redirect = "https://w.example/back";
    let description = ClientMetadata::new(None, "Weir", redirect);
    let client = register_client(&issuer, &description, reach).await;
    let client = client.expect("registered");
    assert!(
        script
            .last()
            .await
            .2
            .contains(r#""redirect_uris":["https://w.example/back"]"#)
    );

    let request = SignInRequest {
        client: &client,
        redirect_uri: redirect,
        resource: Some(&found.resource),
        scopes: &found.scopes,
        nonce: None,
    };
    let begun = begin_sign_in(&issuer, request).expect("begun");
    let endpoint = TokenEndpoint::new(&issuer, client, reach);
    let tokens =
        r#"{"access_token":"first","token_type":"bearer","expires_in":60,"refresh_token":"r1"}"#;
    script.set("/token", 200, tokens).await;
    let code = SecretText::new("the-code");
    let resource = Some(&*found.resource);
    let tokens = redeem_code(&endpoint, &code, &begun.verifier, redirect, resource).await;
    let tokens = tokens.expect("tokens");
    assert_eq!(tokens.access.reveal(), "first");
    let shown = format!("{tokens:?}");
    assert!(!shown.contains("first") && !shown.contains("r1"), "{shown}");
    let (_, _, form) = script.last().await;
    for part in [
        "grant_type=authorization_code",
        "code=the-code",
        "client_id=one",
        "resource=http",
    ] {
        assert!(form.contains(part), "{form}");
    }
    let refresh = tokens.refresh.expect("a token to renew with");
    renew_token(&endpoint, &refresh, None)
        .await
        .expect("renewed");
    assert!(
        script
            .last()
            .await
            .2
            .contains("grant_type=refresh_token&refresh_token=r1")
    );
}

#[tokio::test]
async fn tokens_of_machines_and_of_callers_are_asked_for_by_their_grants() {
    let (script, base) = Script::serve().await;
    let client = RegisteredClient {
        id: "a b".to_owned(),
        secret: Some(SecretText::new("p:%")),
    };
    let endpoint = TokenEndpoint::at(&format!("{base}/token"), client);
    script
        .set(
            "/token",
            200,
            r#"{"access_token":"t","token_type":"Bearer"}"#,
        )
        .await;
    let scopes = ["x".to_owned(), "y".to_owned()];
    request_client_token(&endpoint, Some("urn:r"), &scopes)
        .await
        .expect("a token");
    let (_, basic, form) = script.last().await;
    assert_eq!(basic, "Basic YStiOnAlM0ElMjU=", "both are encoded first");
    assert_eq!(
        form,
        "grant_type=client_credentials&resource=urn%3Ar&scope=x+y"
    );
    let subject = SecretText::new("callers");
    let mut exchange = TokenExchange {
        subject: &subject,
        audience: Some("https://as.example"),
        resource: None,
        scopes: &[],
        is_assertion: false,
    };
    exchange_token(&endpoint, exchange).await.expect("a token");
    assert!(script.last().await.2.contains("subject_token=callers"));
    exchange.is_assertion = true;
    let other = exchange_token(&endpoint, exchange).await;
    assert!(matches!(other, Err(OauthFault::Unusable(_))), "{other:?}");
    let assertion = r#"{"access_token":"idjag","token_type":"N_A",
        "issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#;
    script.set("/token", 200, assertion).await;
    let assertion = exchange_token(&endpoint, exchange)
        .await
        .expect("an assertion");
    // What is no access token is not taken for one.
    assert!(request_client_token(&endpoint, None, &[]).await.is_err());
    script
        .set(
            "/token",
            200,
            r#"{"access_token":"t","token_type":"Bearer"}"#,
        )
        .await;
    let request = AssertionRequest {
        assertion: &assertion.access,
        resource: None,
        scopes: &[],
    };
    redeem_assertion(&endpoint, request).await.expect("a token");
    assert!(script.last().await.2.contains("jwt-bearer&assertion=idjag"));
}

#[tokio::test]
async fn what_a_server_may_not_do_is_refused_and_said_without_secrets() {
    let (script, base) = Script::serve().await;
    let reach = NetworkReach::Anywhere;
    let failed = async |what: &str| {
        let fault = find_issuer(&base, reach).await.expect_err(what);
        fault.to_string()
    };
    script.set(SERVER, 302, "").await;
    assert!(
        failed("a redirect")
            .await
            .contains("redirects are not followed")
    );
    script
        .set(SERVER, 200, metadata("http://127.0.0.1:1"))
        .await;
    assert!(failed("another issuer").await.contains("another issuer"));
    let outside = metadata(&base).replace(&format!("{base}/token"), "http://intranet.example/");
    script.set(SERVER, 200, outside).await;
    assert!(
        failed("no https")
            .await
            .contains("neither https nor on this machine")
    );
    script.set(SERVER, 200, " ".repeat(300 << 10)).await;
    assert!(failed("too large").await.contains("more than 262144 bytes"));
    let private = find_issuer(&base, NetworkReach::Public).await;
    assert!(
        private.is_err(),
        "a server of the internet names no address here"
    );

    let server = Url::parse(&format!("{base}/mcp")).expect("a URL");
    let elsewhere = r#"Bearer resource_metadata="https://evil.example/m""#;
    let refused = find_resource(&server, Some(elsewhere), reach).await;
    assert!(
        matches!(refused, Err(OauthFault::Unusable(_))),
        "{refused:?}"
    );
    let other = r#"{"resource":"https://other.example/mcp","authorization_servers":["x"]}"#;
    script.set(RESOURCE, 200, other).await;
    let refused = find_resource(&server, None, reach).await;
    assert!(
        matches!(refused, Err(OauthFault::Unusable(_))),
        "{refused:?}"
    );

    let endpoint = TokenEndpoint::at(
        &format!("{base}/token"),
        RegisteredClient {
            id: "one".to_owned(),
            secret: Some(SecretText::new("secret-of-the-client")),
        },
    );
    let refresh = SecretText::new("refresh-token-of-ann");
    let echo = r#"{"error":"invalid_grant","error_description":"secret-of-the-client refresh-token-of-ann"}"#;
    script.set("/token", 400, echo).await;
    let fault = renew_token(&endpoint, &refresh, None).await;
    let fault = fault.expect_err("refused");
    assert!(fault.is_grant_over());
    let text = format!("{fault} {fault:?}");
    assert!(
        !text.contains("of-ann") && !text.contains("of-the-client"),
        "{text}"
    );
    for (status, text) in [
        (500, echo),
        (429, echo),
        (200, "refresh-token-of-ann"),
        (302, ""),
    ] {
        script.set("/token", status, text).await;
        let fault = renew_token(&endpoint, &refresh, None).await;
        let fault = fault.expect_err("no token");
        assert!(!fault.is_grant_over(), "{status}");
        assert!(!format!("{fault:?}").contains("of-ann"));
    }
}
