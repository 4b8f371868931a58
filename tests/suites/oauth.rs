//! Tokens of a real issuer: how clients find it, what its tokens open at each door, and what they do not.

mod access;
mod corpus;
mod policies;
mod sign_in;

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use weir_tests::{
    Admin, Answer, Gateway, House, Legacy, Modern, answer_to,
    client::{http, send},
    foreign,
    upstream::{Running, free_port, wait_for_port},
};

use crate::{as_the_user::Browser, sample, views::FIELDS};

const MACHINE: [(&str, &str); 2] = [
    ("grant_type", "client_credentials"),
    ("client_secret", "machine-secret-of-the-tests"),
];
const DISCOVERY: &str = "/.well-known/oauth-protected-resource";

/// An identity provider, killed when dropped.
pub(crate) struct Issuer {
    _running: Running,
    pub(crate) url: String,
}

impl Issuer {
    fn start(algorithm: &str) -> Self {
        Self::start_with(&[algorithm])
    }

    /// Starts one that signs people in to the console at this address.
    pub(crate) fn of_console(address: &str) -> Self {
        Self::start_with(&["RS256", address])
    }

    fn start_with(words: &[&str]) -> Self {
        let port = free_port();
        let mut command = foreign::node_script_in("identity", "identity-provider.mjs");
        command.arg(port.to_string()).args(words);
        let running = Running::silent(&mut command, "oidc-provider");
        wait_for_port(port, "oidc-provider");
        Self {
            _running: running,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Returns a token of the machine for a resource.
    async fn token(&self, resource: &str, scope: &str) -> String {
        self.token_of("machine", resource, scope).await
    }

    /// Returns a token of another program.
    async fn token_of(&self, client: &str, resource: &str, scope: &str) -> String {
        let asked = [
            ("client_id", client),
            ("resource", resource),
            ("scope", scope),
        ];
        let form = [&MACHINE[..], &asked].concat();
        let body = form.iter().map(|(name, value)| {
            let value = value.replace(':', "%3A").replace('/', "%2F");
            format!("{name}={}", value.replace(' ', "+"))
        });
        let request = http()
            .post(format!("{}/token", self.url))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.collect::<Vec<_>>().join("&"));
        let answer = answer_to(request).await;
        let text = answer.text().await.expect("a text");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let token = answer["access_token"].as_str();
        token
            .unwrap_or_else(|| panic!("no token: {text}"))
            .to_owned()
    }
}

fn house(issuer: &Issuer) -> House {
    open_contracts(&issuer.url, &["airports"])
}

/// Returns a house that opens these contracts to tokens of the issuer.
fn open_contracts(issuer: &str, contracts: &[&str]) -> House {
    sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config("[http]\nforms = true\nopenai_apps_challenge = \"proof\"\n[views.searched]\nsearch = true")
        .config(&format!(
            "[[identity.issuers]]\nissuer = \"{issuer}\"\n\
             grants = [{{ claim = \"groups\", has = \"airports\", contracts = {contracts:?} }}]"
        ))
}

fn challenge(answer: &Answer) -> &str {
    let challenge = answer.headers.get("www-authenticate");
    challenge
        .and_then(|value| value.to_str().ok())
        .unwrap_or_else(|| panic!("no challenge: {answer:?}"))
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    send(http().get(format!("{}{path}", gateway.base))).await
}

async fn lookup(url: &str, token: &str) -> Answer {
    let call = json!({ "name": "lookup_airport", "arguments": { "iata": "OSL" } });
    Modern::with_key(url, token).ask("tools/call", call).await
}

#[tokio::test]
async fn a_client_finds_the_issuer_from_any_refusal() {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let base = &gateway.base;
    for (path, resource) in [
        ("", "/mcp"),
        ("/mcp", "/mcp"),
        ("/mcp/airports", "/mcp/airports"),
        ("/mcp/airports/", "/mcp/airports"),
        ("/mcp/nothing-there", "/mcp/nothing-there"),
        ("/mcp/view/nothing", "/mcp/view/nothing"),
    ] {
        let answer = get(&gateway, &format!("{DISCOVERY}{path}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        let metadata: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!(metadata["resource"], format!("{base}{resource}"), "{path}");
        assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
    }
    let from_elsewhere = http().get(format!("{base}{DISCOVERY}/mcp"));
    let from_elsewhere = send(from_elsewhere.header("origin", "https://app.example")).await;
    assert_eq!(from_elsewhere.status, StatusCode::OK);
    let rebound = http().get(format!("{base}{DISCOVERY}/mcp"));
    let rebound = send(rebound.header("host", "evil.example")).await;
    assert_eq!(rebound.status, StatusCode::FORBIDDEN);
    let proof = get(&gateway, "/.well-known/openai-apps-challenge").await;
    assert_eq!((proof.status, &*proof.text), (StatusCode::OK, "proof"));
    let unknown = get(&gateway, "/.well-known/oauth-authorization-server").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);

    for (path, endpoint) in [
        ("/mcp", "/mcp"),
        ("/mcp/airports", "/mcp/airports"),
        ("/mcp/nothing-there", "/mcp/nothing-there"),
        ("/rest/airports/lookup_airport", "/mcp/airports"),
        ("/rest/airports/openapi.json", "/mcp/airports"),
        ("/forms/airports/", "/mcp/airports"),
        ("/llms.txt", "/mcp"),
        ("/mcp/airports/llms.txt", "/mcp/airports"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let request = || http().request(method.clone(), format!("{base}{path}"));
            let missing = send(request()).await;
            assert_eq!(missing.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            let asked = format!(
                "Bearer resource_metadata=\"{base}{DISCOVERY}{endpoint}\", scope=\"tools\""
            );
            assert_eq!(challenge(&missing), asked, "{method} {path}");
            for token in ["a.b.c", "weir_x", "weiradm_x", "weirses_x"] {
                let wrong = send(request().bearer_auth(token)).await;
                assert_eq!(wrong.status, StatusCode::UNAUTHORIZED, "{method} {path}");
                let challenge = challenge(&wrong);
                assert!(challenge.starts_with(&asked), "{challenge}");
                assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
            }
        }
    }
    gateway.wait_for_log("token malformed");
}

#[tokio::test]
async fn a_token_opens_its_endpoint_at_every_door_and_writes_with_its_scope_alone() {
    let issuer = Issuer::start("PS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let (all, one) = (gateway.url(), gateway.contract_url("airports"));
    let token = issuer.token(&one, "tools").await;
    let found = lookup(&one, &token).await;
    assert_eq!(found.result()["structuredContent"]["country"], "NO");
    assert_eq!(lookup(&all, &token).await.status, StatusCode::UNAUTHORIZED);
    let fields = gateway.contract_url("fields");
    assert_eq!(
        lookup(&fields, &token).await.status,
        StatusCode::UNAUTHORIZED
    );
    gateway.wait_for_log("token for another audience");
    let query = Modern::new(format!("{one}?access_token={token}"));
    let query = query.ask("tools/list", json!({})).await;
    assert_eq!(query.status, StatusCode::UNAUTHORIZED);

    // What no grant opens is not there, also for a token that is for all endpoints.
    let everywhere = issuer.token(&all, "tools tools:write").await;
    let (tools, _) = Modern::with_key(&all, &everywhere).list().await;
    assert!(tools.iter().all(|tool| {
        tool["name"]
            .as_str()
            .is_some_and(|name| name.contains("airport"))
    }));
    let hidden = lookup(&fields, &everywhere).await;
    let unknown = lookup(&gateway.contract_url("nothing-there"), &everywhere).await;
    assert_eq!(hidden.error_code(), unknown.error_code());
    assert_eq!(hidden.reply()["error"], unknown.reply()["error"]);

    let plain = |path: &str| -> RequestBuilder {
        let url = format!("{}/rest/airports/{path}", gateway.base);
        http()
            .post(url)
            .bearer_auth(&token)
            .header("content-type", "application/json")
    };
    let rest = send(plain("lookup_airport").body(r#"{"iata":"OSL"}"#)).await;
    assert_eq!(rest.status, StatusCode::OK, "{}", rest.text);
    let form = http().get(format!("{}/forms/airports/lookup_airport", gateway.base));
    let form = send(form.bearer_auth(&token)).await;
    assert_eq!(form.status, StatusCode::OK);

    let new = json!({ "iata": "BOO", "name": "Bodo", "country": "NO" });
    let write = json!({ "name": "create_airport", "arguments": new });
    let modern = Modern::with_key(&one, &token)
        .ask("tools/call", write.clone())
        .await;
    let refused = send(plain("create_airport").body(new.to_string())).await;
    for answer in [modern, refused] {
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
        let challenge = challenge(&answer);
        assert!(
            challenge.contains("error=\"insufficient_scope\", scope=\"tools tools:write\""),
            "{challenge}"
        );
    }
    let legacy = Legacy::open_as(&one, "2025-03-26", Some(&token)).await;
    let answer = legacy.ask("tools/call", write.clone()).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": write });
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let batch = send(legacy.in_session(json!([call, ping]).to_string())).await;
    assert_eq!(
        batch.status,
        StatusCode::OK,
        "one element is refused: {}",
        batch.text
    );
    assert!(batch.text.contains("tools:write"), "{}", batch.text);

    // A search finds its way to the tool, and not past the scope.
    let searched = gateway.view_url("searched");
    let reader = issuer.token(&searched, "tools").await;
    let found = Modern::with_key(&searched, &reader)
        .call("call_tool", write.clone())
        .await;
    assert_eq!(found["structuredContent"]["code"], "forbidden", "{found}");

    // Another token of the same holder is the same caller; a key is another one.
    let again = issuer.token(&one, "tools").await;
    assert_ne!(again, token);
    let ping = async |token: &str| legacy.in_hands_of(Some(token)).ask("ping", json!({})).await;
    assert_eq!(ping(&again).await.status, StatusCode::OK);
    let key = house.key(&["--agent", "machine"]);
    assert_eq!(ping(&key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        lookup(&one, &key).await.status,
        StatusCode::OK,
        "keys open what they did"
    );

    let writer = issuer.token(&one, "tools tools:write").await;
    let written = Modern::with_key(&one, &writer)
        .ask("tools/call", write)
        .await;
    assert_ne!(written.result()["isError"], true, "{}", written.text);
    let trail = house.run(&["audit", "export", "--format", "jsonl"]).1;
    assert!(
        trail.contains("\"reason\":\"token for another audience\""),
        "{trail}"
    );
    let has_holder = trail.contains("\"subject\":\"machine\"") && trail.contains(&issuer.url);
    assert!(has_holder && !trail.contains(&writer), "{trail}");
    assert!(!gateway.log().contains(&writer));
}

/// Returns a token with another header and other claims, and the signature of before.
fn changed(token: &str, change: impl FnOnce(&mut Value, &mut Value)) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let read = |part: &str| -> Value {
        let bytes = URL_SAFE_NO_PAD.decode(part).expect("base64");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let (mut header, mut claims) = (read(parts[0]), read(parts[1]));
    change(&mut header, &mut claims);
    let written = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", written(&header), written(&claims), parts[2])
}

#[tokio::test]
async fn a_changed_token_is_refused_at_every_door() {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    let token = issuer.token(&url, "tools").await;
    assert_eq!(lookup(&url, &token).await.status, StatusCode::OK);
    let unsigned = changed(&token, |header, _| header["alg"] = "none".into());
    let unsigned = unsigned
        .rsplit_once('.')
        .map(|(message, _)| format!("{message}."));
    let mut bad = vec![
        unsigned.expect("three parts"),
        format!("\u{feff}{token}"),
        format!("{token}."),
    ];
    let changes: [fn(&mut Value, &mut Value); 8] = [
        |header, _| header["alg"] = "HS256".into(),
        |header, _| header["alg"] = "PS256".into(),
        |header, _| header["kid"] = "PS256".into(),
        |header, _| header["kid"] = "another".into(),
        |header, _| header["crit"] = json!(["exp"]),
        |_, claims| claims["scope"] = "tools tools:write".into(),
        |_, claims| claims["iss"] = "https://evil.example".into(),
        |_, claims| claims["exp"] = 1.into(),
    ];
    bad.extend(changes.map(|change| changed(&token, change)));
    for token in &bad {
        let token = token.as_str();
        assert_eq!(
            lookup(&url, token).await.status,
            StatusCode::UNAUTHORIZED,
            "{token}"
        );
        let legacy = Legacy::bare(&url, "2025-06-18", Some(token))
            .ask("ping", json!({}))
            .await;
        assert_eq!(legacy.status, StatusCode::UNAUTHORIZED, "{token}");
        for path in [
            "/rest/airports/lookup_airport?iata=OSL",
            "/forms/airports/",
            "/mcp/airports/llms.txt",
        ] {
            let request = http().get(format!("{}{path}", gateway.base));
            let answer = send(request.header("authorization", format!("Bearer {token}"))).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path} {token}");
        }
    }
    gateway.wait_for_log("token with a wrong signature");
}

/// A provider that has gone changes nothing for tokens that it gave out, of any algorithm.
#[tokio::test]
async fn valid_tokens_outlive_their_provider() {
    for algorithm in ["ES256", "EdDSA"] {
        let issuer = Issuer::start(algorithm);
        let house = house(&issuer);
        let gateway = house.serve();
        let url = gateway.contract_url("airports");
        let (used, unused) = (
            issuer.token(&url, "tools").await,
            issuer.token(&url, "tools").await,
        );
        assert_eq!(
            lookup(&url, &used).await.status,
            StatusCode::OK,
            "{algorithm}"
        );
        drop(issuer);
        for token in [&used, &unused] {
            assert_eq!(
                lookup(&url, token).await.status,
                StatusCode::OK,
                "{algorithm}"
            );
        }
    }
}

/// If the keys were never fetched, another token would not help: the answer asks for none.
#[tokio::test]
async fn an_issuer_that_is_away_is_no_reason_to_sign_in_again() {
    let issuer = Issuer::start("ES256");
    let house = house(&issuer);
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    let token = issuer.token(&url, "tools").await;
    drop(issuer);
    let answer = lookup(&url, &token).await;
    assert_eq!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        answer.text
    );
    assert!(answer.headers.contains_key("retry-after"));
    assert!(!answer.headers.contains_key("www-authenticate"));
    gateway.wait_for_log("the keys of an issuer cannot be fetched");
    let key = house.key(&["--agent", "ann"]);
    assert_eq!(
        lookup(&url, &key).await.status,
        StatusCode::OK,
        "keys are the way in"
    );
}

/// Signs ann in to the console as its page does. Returns the session, or why there is none.
pub(crate) async fn sign_in_to_console(admin: &Admin) -> Result<String, (u16, Value)> {
    let tab = "0".repeat(32);
    let begun = admin
        .request("POST", "/v1/session/oidc")
        .header("origin", &admin.url)
        .body(json!({ "tab": tab }).to_string());
    let begun = answer_to(begun).await.text().await;
    let begun: Value = serde_json::from_str(&begun.expect("a text")).expect("JSON");
    let url = begun["url"].as_str().unwrap_or_else(|| panic!("{begun}"));
    let (_, _, back) = Browser::of_user("ann").open("GET", url, &admin.url).await;
    let (_, query) = back.split_once('?').expect("the answer of the issuer");
    let body = json!({ "query": query, "tab": tab }).to_string();
    let (status, link) = admin.ask("POST", "/v1/session/oidc/answer", body).await;
    if status != 201 {
        return Err((status, link));
    }
    let newcomer = Admin {
        url: admin.url.clone(),
        key: link["link"].as_str().expect("a link").to_owned(),
    };
    let (status, session) = newcomer.ask("POST", "/v1/session", "").await;
    assert_eq!(status, 201, "{session}");
    Ok(session["token"].as_str().expect("a session").to_owned())
}

/// The role is that of the claim at each sign-in: with a different role, or none, earlier sessions end.
#[tokio::test]
async fn a_person_who_lost_a_role_loses_the_sessions_of_it() {
    let port = free_port();
    let issuer = Issuer::of_console(&format!("http://127.0.0.1:{port}/"));
    let house = sample::house().file("client.secret", "console-secret-of-the-tests\n");
    let sections = |roles: &str| {
        format!(
            "[admin]\nlisten = \"127.0.0.1:{port}\"\n[admin.oidc]\nissuer = \"{}\"\nclient_id = \"console\"\n\
             client_secret = \"file:client.secret\"\nscopes = [\"openid\"]\nrole_claim = \"groups\"\nroles = {{ {roles} }}",
            issuer.url
        )
    };
    let house = house.config(&sections("airports = \"editor\""));
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let status_of = async |session: &str| {
        let person = Admin {
            url: admin.url.clone(),
            key: session.to_owned(),
        };
        person.ask("GET", "/v1/session", "").await.0
    };
    let editor = sign_in_to_console(&admin).await.expect("a session");
    let again = sign_in_to_console(&admin).await.expect("another one");
    assert_eq!(
        (status_of(&editor).await, status_of(&again).await),
        (200, 200)
    );
    let file = house.path().join("weir.toml");
    let config = std::fs::read_to_string(&file).expect("a configuration");
    for (roles, is_let_in) in [
        ("airports = \"viewer\"", true),
        ("pilots = \"editor\"", false),
    ] {
        let changed = config.replace("airports = \"editor\"", roles);
        std::fs::write(&file, changed).expect("it can be written");
        let reloaded = house.weir_as_it_is(&["reload"]).output();
        let reloaded = reloaded.expect("weir starts");
        assert!(reloaded.status.success(), "{reloaded:?}");
        match sign_in_to_console(&admin).await {
            Ok(session) => {
                assert!(is_let_in, "{roles}");
                assert_eq!(status_of(&session).await, 200);
            }
            Err((status, refused)) => {
                assert!(!is_let_in && status == 403, "{refused}");
                assert!(
                    refused["detail"]
                        .as_str()
                        .is_some_and(|it| it.contains("no role")),
                    "{refused}"
                );
            }
        }
        assert_eq!(
            (status_of(&editor).await, status_of(&again).await),
            (401, 401)
        );
    }
    let (_, rows) = admin.ask("GET", "/v1/admins", "").await;
    let text = rows.to_string();
    assert_eq!(text.matches("oidc:ann").count(), 2, "{text}");
}

/// Clients show only that they were refused: the gateway keeps the reasons, and a flood of strangers does not push them out.
#[tokio::test]
async fn the_reason_of_each_refusal_is_kept_without_the_token() {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let (all, one) = (gateway.url(), gateway.contract_url("airports"));
    let token = issuer.token(&one, "tools").await;
    for _ in 0..3 {
        assert_eq!(lookup(&all, &token).await.status, StatusCode::UNAUTHORIZED);
    }
    let key = house.key(&["--agent", "ann"]);
    let keys = house.json(&["keys", "list"]);
    let id = keys[0]["id"].as_str().expect("an id");
    assert_eq!(house.run(&["keys", "revoke", id]).0, 0);
    while lookup(&one, &key).await.status == StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let forged = changed(&token, |_, claims| claims["sub"] = "root".into());
    for number in 0..150 {
        let url = gateway.contract_url(&format!("none-{number}"));
        assert_eq!(lookup(&url, &forged).await.status, StatusCode::UNAUTHORIZED);
    }
    let failures = house.json(&["identity", "failures"]);
    let failures = failures.as_array().expect("a list");
    let find = |reason: &str, genuine: bool| {
        let is = |failure: &&Value| failure["reason"] == reason && failure["genuine"] == genuine;
        let found: Vec<_> = failures.iter().filter(is).collect();
        assert!(!found.is_empty(), "{reason}: {failures:?}");
        found
    };
    let audience = find("token for another audience", true);
    assert_eq!(audience.len(), 1, "repeats are one row: {audience:?}");
    assert_eq!(audience[0]["count"], 3);
    assert_eq!(audience[0]["endpoint"], "/mcp");
    assert_eq!(audience[0]["issuer"], json!(issuer.url));
    assert_eq!(audience[0]["subject"], "machine");
    assert_eq!(audience[0]["client"], "machine");
    assert_eq!(find("the key is revoked", true)[0]["key_id"], json!(id));
    let forgeries = find("token with a wrong signature", false);
    assert!(forgeries.len() <= 100, "{}", forgeries.len());
    assert_eq!(forgeries[0]["subject"], "root", "as the token says");

    let (code, table, err) = house.run(&["identity", "failures"]);
    assert!(code == 0, "{err}");
    assert!(table.contains("token for another audience"), "{table}");
    assert!(table.contains("(subject root"), "{table}");
    let shown = format!("{table}{failures:?}");
    for secret in [&token, &forged, &key] {
        assert!(!shown.contains(&**secret), "no credential is kept");
        let last = secret.rsplit(['.', '_']).next().expect("a part");
        assert!(!shown.contains(last), "nor its secret part");
    }
}

/// Returns a token that is bound to a key of a client, another one that is not, and proofs as planned.
async fn bound(issuer: &Issuer, resource: &str, algorithm: &str, proofs: Value) -> Value {
    let plan = json!({
        "issuer": issuer.url, "resource": resource, "algorithm": algorithm, "proofs": proofs,
    });
    let mut script = foreign::node_script_in("identity", "dpop.mjs");
    script.arg(plan.to_string());
    let output = foreign::run(script, Duration::from_secs(180));
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{algorithm}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// A token that a real issuer bound to a key is accepted at every door with proofs of that key, each once, and with
/// nothing else.
#[tokio::test]
async fn a_bound_token_is_good_with_proofs_of_its_key_alone() {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let rest = format!("{}/rest/airports/lookup_airport", gateway.base);
    let post = |url: &str| json!({ "htm": "POST", "htu": url });
    for algorithm in ["ES256", "EdDSA", "RS256", "PS256"] {
        let late = json!({ "htm": "POST", "htu": one, "later": -120 });
        let foreign_key = json!({ "claims": post(&one), "with_key": "other" });
        let another = json!({ "htm": "POST", "htu": one, "ath": "another" });
        let plan = json!([
            { "claims": post(&one) }, { "claims": post(&rest) }, { "claims": { "htm": "GET", "htu": one } },
            { "claims": post(&gateway.url()) }, { "claims": late }, foreign_key, { "claims": another },
            { "claims": post(&one), "header": { "typ": "JWT" } }, { "claims": post(&one) },
        ]);
        let made = bound(&issuer, &one, algorithm, plan).await;
        assert_eq!(made["type"], "DPoP", "the issuer bound it");
        let (token, proofs) = (text(&made["bound"]), &made["proofs"]);
        let ask = async |url: &str, scheme: &str, token: &str, proofs: &[&Value]| {
            let request = http().post(url).body(match url == rest {
                true => r#"{"iata":"OSL"}"#.to_owned(),
                false => json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string(),
            });
            let mut request = request
                .header("authorization", format!("{scheme} {token}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2025-06-18");
            for proof in proofs {
                request = request.header("dpop", text(proof));
            }
            send(request).await
        };
        let good = ask(&one, "DPoP", token, &[&proofs[0]]).await;
        assert_eq!(good.status, StatusCode::OK, "{algorithm}: {}", good.text);
        let good = ask(&rest, "dpop", token, &[&proofs[1]]).await;
        assert_eq!(good.status, StatusCode::OK, "{algorithm}: {}", good.text);
        let refused: [(&str, &[&Value], &str); 9] = [
            ("used before", &[&proofs[0]], "invalid_dpop_proof"),
            ("no DPoP proof", &[], "invalid_dpop_proof"),
            (
                "more than one",
                &[&proofs[8], &proofs[8]],
                "invalid_dpop_proof",
            ),
            ("another method", &[&proofs[2]], "invalid_dpop_proof"),
            ("another URL", &[&proofs[3]], "invalid_dpop_proof"),
            ("another time", &[&proofs[4]], "invalid_dpop_proof"),
            ("another key", &[&proofs[5]], "invalid_dpop_proof"),
            ("another token", &[&proofs[6]], "invalid_dpop_proof"),
            ("another type", &[&proofs[7]], "invalid_dpop_proof"),
        ];
        for (reason, proofs, error) in refused {
            let answer = ask(&one, "DPoP", token, proofs).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{reason}");
            let challenge = challenge(&answer);
            let is_named = challenge.contains(reason) && challenge.contains(error);
            assert!(is_named, "{algorithm} {reason}: {challenge}");
            let asks = "DPoP algs=\"ES256 EdDSA RS256 PS256\", resource_metadata=";
            assert!(challenge.starts_with(asks), "{challenge}");
        }
        let unbound = text(&made["unbound"]);
        for (scheme, token, reason) in [
            ("Bearer", token, "sent without the scheme DPoP"),
            (
                "DPoP",
                unbound,
                "bound to no key, sent with the scheme DPoP",
            ),
        ] {
            let answer = ask(&one, scheme, token, &[&proofs[8]]).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{reason}");
            let challenge = challenge(&answer);
            assert!(challenge.contains(reason), "{challenge}");
            assert!(challenge.contains("invalid_token"), "{challenge}");
        }
        let answer = ask(&one, "Bearer", unbound, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let key = ask(&one, "DPoP", "weir_a_b", &[&proofs[8]]).await;
        assert_eq!(key.status, StatusCode::UNAUTHORIZED);
    }
    let failures = house.json(&["identity", "failures"]).to_string();
    assert!(failures.contains("DPoP proof used before"), "{failures}");
}

/// If tokens have to be bound, the metadata and each refusal state it, and a bearer token opens nothing. Keys still do.
#[tokio::test]
async fn an_operator_may_ask_for_bound_tokens() {
    let issuer = Issuer::start("ES256");
    let house = house(&issuer).config("[identity]\ndpop_bound_access_tokens_required = true");
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let metadata = get(&gateway, &format!("{DISCOVERY}/mcp/airports")).await;
    let metadata: Value = serde_json::from_str(&metadata.text).expect("JSON");
    assert_eq!(metadata["dpop_bound_access_tokens_required"], true);
    let algorithms = json!(["ES256", "EdDSA", "RS256", "PS256"]);
    assert_eq!(metadata["dpop_signing_alg_values_supported"], algorithms);
    let missing = get(&gateway, "/mcp/airports").await;
    assert!(challenge(&missing).starts_with("DPoP algs="), "{missing:?}");
    let token = issuer.token(&one, "tools").await;
    let answer = lookup(&one, &token).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let challenge = challenge(&answer);
    assert!(challenge.contains("which is needed here"), "{challenge}");
    let key = house.key(&["--agent", "ann"]);
    assert_eq!(lookup(&one, &key).await.status, StatusCode::OK);
}
