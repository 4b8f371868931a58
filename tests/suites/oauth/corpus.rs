//! The tokens of attackers, with signatures that are right where the attacker can have one, at every door, by every verb and in every
//! version.

use std::{fs, time::Instant};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use weir_tests::{
    Admin, Gateway, Legacy, Modern,
    client::{http, send},
    foreign, place,
    upstream::{Running, free_port, wait_for_port},
};

use super::{challenge, lookup, open_contracts};
use crate::sample;

const VERSIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The contracts that the tokens of an issuer open.
const DOORS: &[&str] = &["airports", "fields"];
const VERBS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// An issuer that signs everything, killed when dropped.
struct Forger {
    _running: Running,
    url: String,
}

impl Forger {
    fn start(words: &[&str]) -> Self {
        let port = free_port();
        let mut command = foreign::node();
        command
            .arg(place::repository().join("tests/clients/forger.mjs"))
            .arg(port.to_string())
            .args(words);
        let running = Running::silent(&mut command, "the forger");
        wait_for_port(port, "the forger");
        Self {
            _running: running,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    async fn sign(&self, header: &Value, claims: &Value, by: &str) -> String {
        let wanted = json!({ "header": header, "claims": claims, "by": by });
        let request = http().post(format!("{}/sign", self.url));
        send(request.body(wanted.to_string())).await.text
    }

    async fn counts(&self) -> Value {
        let answer = send(http().get(format!("{}/counts", self.url))).await;
        serde_json::from_str(&answer.text).expect("JSON")
    }
}

fn claims(issuer: &str, audience: &str) -> Value {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    json!({
        "iss": issuer, "sub": "eve", "client_id": "tool", "aud": audience, "groups": ["airports"],
        "scope": "tools tools:write", "exp": now.expect("a time").as_secs() + 600,
    })
}

fn header() -> Value {
    json!({ "alg": "ES256", "typ": "at+jwt", "kid": "own" })
}

/// The members of a token that are in its header.
const HEADER: [&str; 4] = ["alg", "typ", "kid", "crit"];

/// What is wrong with each token, whose signature it has, and the value of the changed member: JSON, or a text. `BASE` is the
/// gateway, and `ISSUER` the issuer.
const CORPUS: [(&str, &str, &str); 22] = [
    ("alg none", "none", "alg=none"),
    ("alg None", "none", "alg=NoNe"),
    ("no signature", "none", ""),
    ("HS256 with the public key", "public", "alg=HS256"),
    ("HS256 under ES256", "public", ""),
    ("another key", "unpublished", ""),
    ("another kid", "own", "kid=another"),
    ("a path as kid", "own", "kid=../../own"),
    ("crit", "own", "crit=[\"exp\"]"),
    ("no typ", "own", "typ=null"),
    ("typ of a logout", "own", "typ=logout+jwt"),
    ("typ of a proof", "own", "typ=dpop+jwt"),
    ("another issuer", "own", "iss=https://evil.example"),
    ("an issuer with a slash", "own", "iss=ISSUER/"),
    ("an ID token", "own", "nonce=n"),
    ("expired", "own", "exp=1700000000"),
    ("without an end", "own", "exp=null"),
    ("not yet", "own", "nbf=4000000000"),
    ("without an audience", "own", "aud=null"),
    ("another server", "own", "aud=https://mcp.example/mcp"),
    ("another contract", "own", "aud=BASE/mcp/fields"),
    ("a path below", "own", "aud=BASE/mcp/airports/sse"),
];

/// Returns a request by each verb at each door that leads to the contract, or to all contracts.
fn requests(base: &str, query: &str) -> Vec<(String, RequestBuilder)> {
    let paths = [
        "/mcp",
        "/mcp/airports",
        "/mcp/airports/",
        "/mcp/view/searched",
        "/rest/airports/lookup_airport?iata=OSL",
        "/rest/airports/create_airport",
        "/rest/airports/openapi.json",
        "/forms/airports/",
        "/forms/airports/create_airport",
        "/llms.txt",
        "/mcp/airports/llms.txt",
    ];
    let each = paths.iter().flat_map(|path| VERBS.map(|verb| (path, verb)));
    let body = json!({ "iata": "EVE", "name": "Evil", "country": "NO" }).to_string();
    each.map(|(path, verb)| {
        let method = Method::from_bytes(verb.as_bytes()).expect("a method");
        let joint = if path.contains('?') { '&' } else { '?' };
        let request = http().request(method, format!("{base}{path}{joint}{query}"));
        let request = match verb {
            "GET" => request,
            _ => request
                .header("content-type", "application/json")
                .body(body.clone()),
        };
        (format!("{verb} {path}"), request)
    })
    .collect()
}

/// Checks that a credential opens nothing anywhere.
async fn check_refused(gateway: &Gateway, what: &str, authorization: &str) {
    for (place, request) in requests(&gateway.base, "a=b") {
        // A text that is owned may have other bytes than ASCII.
        let request = request.header("authorization", authorization.to_owned());
        let answer = send(request).await;
        assert_eq!(
            answer.status,
            StatusCode::UNAUTHORIZED,
            "{what}: {place}: {}",
            answer.text
        );
        let challenge = challenge(&answer);
        assert!(
            challenge.contains("error=\"invalid_token\""),
            "{what}: {place}: {challenge}"
        );
        let metadata = format!("resource_metadata=\"{}/.well-known/", gateway.base);
        assert!(
            challenge.contains(&metadata),
            "{what}: {place}: {challenge}"
        );
    }
    let Some(token) = authorization.strip_prefix("Bearer ") else {
        return;
    };
    let call = json!({ "name": "lookup_airport", "arguments": { "iata": "OSL" } });
    let named = json!({ "name": "test", "version": "1" });
    for url in [gateway.url(), gateway.contract_url("airports")] {
        for version in VERSIONS {
            let opens =
                json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": named });
            for (method, params) in [
                ("initialize", &opens),
                ("tools/list", &json!({})),
                ("tools/call", &call),
            ] {
                let client = Legacy::bare(&url, version, Some(token));
                let answer = client.ask(method, params.clone()).await;
                assert_eq!(
                    answer.status,
                    StatusCode::UNAUTHORIZED,
                    "{what}: {version} {method}"
                );
            }
        }
        for method in [
            "server/discover",
            "tools/list",
            "tools/call",
            "subscriptions/listen",
        ] {
            let answer = Modern::with_key(&url, token)
                .ask(method, call.clone())
                .await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}: {method}");
        }
    }
}

#[tokio::test]
async fn no_token_of_an_attacker_opens_any_door() {
    let (issuer, evil) = (Forger::start(&[]), Forger::start(&[]));
    let house = open_contracts(&issuer.url, DOORS);
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let good = issuer
        .sign(&header(), &claims(&issuer.url, &one), "own")
        .await;
    let opens = async || lookup(&one, &good).await.status;
    assert_eq!(opens().await, StatusCode::OK, "the issuer is one");
    let (began, file) = (Instant::now(), house.path().join("data/airports.csv"));
    let before = fs::read(&file).expect("the sheet");
    for (what, by, change) in CORPUS {
        let (mut header, mut claims) = (header(), claims(&issuer.url, &one));
        if let Some((member, value)) = change.split_once('=') {
            let value = value.replace("BASE", &gateway.base);
            let value = value.replace("ISSUER", &issuer.url);
            let changed = match HEADER.contains(&member) {
                true => &mut header,
                false => &mut claims,
            };
            let members = changed.as_object_mut().expect("an object");
            match serde_json::from_str(&value) {
                Ok(Value::Null) => members.remove(member),
                Ok(value) => members.insert(member.to_owned(), value),
                Err(_) => members.insert(member.to_owned(), value.into()),
            };
        }
        let token = issuer.sign(&header, &claims, by).await;
        check_refused(&gateway, what, &format!("Bearer {token}")).await;
    }
    // What the token itself says about keys and issuers is not followed.
    let keys = format!("{}/jwks", evil.url);
    let foreign = [
        (header(), &evil.url),
        (
            json!({ "alg": "ES256", "typ": "at+jwt", "kid": "own", "jku": keys }),
            &issuer.url,
        ),
        (
            json!({ "alg": "ES256", "typ": "at+jwt", "kid": "new", "jku": keys, "x5u": keys }),
            &issuer.url,
        ),
    ];
    for (header, declared) in foreign {
        let token = evil.sign(&header, &claims(declared, &one), "own").await;
        check_refused(&gateway, &header.to_string(), &format!("Bearer {token}")).await;
    }
    assert_eq!(evil.counts().await, json!({ "metadata": 0, "jwks": 0 }));

    let written = [
        format!("Bearer \u{feff}{good}"),
        format!("Bearer {good}."),
        format!("Bearer {good}=="),
        format!("Bearer x {good}"),
        format!("Basic {good}"),
        format!("Token {good}"),
        good.clone(),
        "Bearer ".to_owned(),
    ];
    for authorization in written {
        check_refused(&gateway, &authorization, &authorization).await;
    }
    // A query is not read, and a path below an endpoint is not an endpoint.
    for (place, request) in requests(&gateway.base, &format!("access_token={good}")) {
        let answer = send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{place}");
    }
    for verb in VERBS {
        let method = Method::from_bytes(verb.as_bytes()).expect("a method");
        for below in ["sse", "message", "mcp"] {
            let request = http().request(method.clone(), format!("{one}/{below}"));
            let answer = send(request.bearer_auth(&good)).await;
            assert!(
                answer.status.is_client_error(),
                "{verb} {below}: {answer:?}"
            );
        }
    }
    assert_eq!(
        fs::read(&file).expect("the sheet"),
        before,
        "nothing was written"
    );

    let flood = (0..200).map(async |number| {
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": format!("k{number}") });
        let token = issuer
            .sign(&header, &claims(&issuer.url, &one), "own")
            .await;
        lookup(&one, &token).await.status
    });
    for status in futures::future::join_all(flood).await {
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let fetched = issuer.counts().await["jwks"].as_u64().expect("a number");
    let allowed = 1 + began.elapsed().as_secs() / 30;
    assert!(fetched <= allowed, "{fetched} of {allowed}");
    assert_eq!(opens().await, StatusCode::OK, "and still");
    drop(issuer);
    assert_eq!(opens().await, StatusCode::OK, "without its issuer too");
}

/// Metadata that lead to another issuer, by a redirect or by a name, are refused: its keys are not fetched, and its tokens open nothing.
#[tokio::test]
async fn metadata_lead_to_no_other_issuer() {
    let other = Forger::start(&[]);
    for mode in ["redirects", "names"] {
        let issuer = Forger::start(&[mode, &other.url]);
        let house = open_contracts(&issuer.url, DOORS);
        let gateway = house.serve();
        let one = gateway.contract_url("airports");
        for (signer, declared) in [(&issuer, &issuer), (&other, &issuer), (&other, &other)] {
            let claims = claims(&declared.url, &one);
            let token = signer.sign(&header(), &claims, "own").await;
            let status = lookup(&one, &token).await.status;
            let expected = match declared.url == issuer.url {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(status, expected, "{mode}");
        }
        assert_eq!(
            other.counts().await,
            json!({ "metadata": 0, "jwks": 0 }),
            "{mode}"
        );
        assert_eq!(issuer.counts().await["jwks"], 0, "{mode}");
        gateway.wait_for_log("the keys of an issuer cannot be fetched");
    }
}

/// What begins as a credential of the admin API is never read as a token, whatever follows, and opens nothing for agents.
#[tokio::test]
async fn credentials_of_admins_are_no_tokens() {
    let issuer = Forger::start(&[]);
    let house = open_contracts(&issuer.url, DOORS);
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let good = issuer
        .sign(&header(), &claims(&issuer.url, &one), "own")
        .await;
    let admin = Admin::of(&house);
    let link = async || {
        let (_, made) = admin.ask("POST", "/v1/session/link", "").await;
        made["link"].as_str().expect("a link").to_owned()
    };
    let newcomer = Admin {
        url: admin.url.clone(),
        key: link().await,
    };
    let (_, session) = newcomer.ask("POST", "/v1/session", "").await;
    let session = session["token"].as_str().expect("a session");
    let mut sent = vec![admin.key.clone(), session.to_owned(), link().await];
    let prefixes = ["weiradm_", "weirses_", "weirlink_", "weir_"];
    sent.extend(prefixes.map(|prefix| format!("{prefix}{good}")));
    sent.extend(prefixes.map(|prefix| format!("{prefix}a.b.c")));
    for credential in &sent {
        check_refused(&gateway, credential, &format!("Bearer {credential}")).await;
        let bound = format!("DPoP {credential}");
        let request = http().post(&one).header("authorization", bound);
        assert_eq!(
            send(request).await.status,
            StatusCode::UNAUTHORIZED,
            "{credential}"
        );
    }
    let counts = issuer.counts().await;
    assert_eq!(
        counts,
        json!({ "metadata": 0, "jwks": 0 }),
        "none was read as a token"
    );
    let failures = house.json(&["identity", "failures"]).to_string();
    assert!(!failures.contains("\"reason\":\"token"), "{failures}");
    assert!(!failures.contains("eve"), "{failures}");

    // Also where no key was ever made and no issuer is trusted.
    let open = sample::house();
    let gateway = open.serve();
    assert_eq!(
        send(http().get(format!("{}/llms.txt", gateway.base)))
            .await
            .status,
        StatusCode::OK
    );
    for credential in ["weiradm_a.b.c", "weirses_a.b.c", "weirlink_a.b.c"] {
        for path in ["/mcp", "/mcp/airports"] {
            let request = http().post(format!("{}{path}", gateway.base));
            let answer = send(request.bearer_auth(credential)).await;
            assert_eq!(
                answer.status,
                StatusCode::UNAUTHORIZED,
                "{credential}: {path}"
            );
        }
        let request = http().get(format!("{}/llms.txt", gateway.base));
        let answer = send(request.bearer_auth(credential)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{credential}");
    }
}
