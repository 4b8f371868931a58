//! Every case of access again for tokens: what is hidden is unknown, and what a token opened ends with the trust in its issuer,
//! for each version and at every door.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use weir_tests::{
    Admin, Answer, House, Legacy, Modern,
    client::{Events, http, send},
};

use super::{Issuer, house, lookup};

const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
/// A tool that the token may not use, and one that does not exist.
const HIDDEN: (&str, &str) = ("fields", "lookup_field");
const UNKNOWN: (&str, &str) = ("nothing", "lookup_nothing");

/// Returns the part of an answer that can be compared with an answer about another name.
fn nameless(answer: &Answer, (contract, tool): (&str, &str)) -> (StatusCode, String, String) {
    let text = answer
        .text
        .replace(tool, "TOOL")
        .replace(contract, "CONTRACT");
    // Each request has its own id, and each call a receipt.
    let mut parsed: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if let Some(message) = parsed.as_object_mut() {
        message.remove("id");
    }
    if let Some(result) = parsed.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("_meta");
    }
    let text = match parsed {
        Value::Null => text,
        parsed => parsed.to_string(),
    };
    let challenge = answer.headers.get("www-authenticate");
    let challenge = challenge.map(|value| value.to_str().expect("text").to_owned());
    (answer.status, text, challenge.unwrap_or_default())
}

/// Returns each door of plain HTTP that leads to a tool or describes one.
fn doors(base: &str, (contract, tool): (&str, &str)) -> Vec<(Method, String)> {
    let plain = format!("{base}/rest/{contract}/{tool}");
    let all = [
        (Method::POST, plain.clone()),
        (Method::GET, format!("{plain}?iata=OSL")),
        (Method::GET, format!("{base}/rest/{contract}/openapi.json")),
        (Method::GET, format!("{base}/forms/{contract}/")),
        (Method::GET, format!("{base}/forms/{contract}/{tool}")),
        (Method::GET, format!("{base}/mcp/{contract}/llms.txt")),
    ];
    all.to_vec()
}

fn request(method: &Method, url: &str, token: &str) -> RequestBuilder {
    let request = http().request(method.clone(), url).bearer_auth(token);
    match *method {
        Method::POST => request
            .header("content-type", "application/json")
            .body(r#"{"iata":"OSL"}"#),
        _ => request,
    }
}

#[tokio::test]
async fn what_no_grant_opens_is_unknown_to_a_token_in_every_version_at_every_door() {
    let issuer = Issuer::start("ES256");
    let house = house(&issuer);
    let gateway = house.serve();
    let token = issuer.token(&gateway.url(), "tools tools:write").await;
    let call = |(_, tool): (&str, &str)| json!({ "name": tool, "arguments": { "iata": "OSL" } });
    for endpoint in [gateway.url(), gateway.contract_url("airports")] {
        for version in VERSIONS {
            let session = Legacy::open_as(&endpoint, version, Some(&token)).await;
            let hidden = session.ask("tools/call", call(HIDDEN)).await;
            let unknown = session.ask("tools/call", call(UNKNOWN)).await;
            let (hidden, unknown) = (nameless(&hidden, HIDDEN), nameless(&unknown, UNKNOWN));
            assert_eq!(hidden, unknown, "{version} at {endpoint}");
            let (tools, _) = Modern::with_key(&endpoint, &token).list().await;
            let is_shown = |tool: &Value| tool["name"] == HIDDEN.1;
            assert!(
                !tools.is_empty() && !tools.iter().any(is_shown),
                "{tools:?}"
            );
        }
        let client = Modern::with_key(&endpoint, &token);
        let hidden = client.ask("tools/call", call(HIDDEN)).await;
        let unknown = client.ask("tools/call", call(UNKNOWN)).await;
        assert_eq!(nameless(&hidden, HIDDEN), nameless(&unknown, UNKNOWN));
    }
    for version in VERSIONS {
        let at = async |(contract, _): (&str, &str)| {
            let client = Legacy::bare(gateway.contract_url(contract), version, Some(&token));
            let named = json!({ "name": "test", "version": "1" });
            let opens =
                json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": named });
            client.ask("initialize", opens).await
        };
        let (hidden, unknown) = (at(HIDDEN).await, at(UNKNOWN).await);
        assert_eq!(nameless(&hidden, HIDDEN), nameless(&unknown, UNKNOWN));
        assert_eq!(hidden.status, StatusCode::NOT_FOUND, "{version}");
    }
    let (hidden, unknown) = (doors(&gateway.base, HIDDEN), doors(&gateway.base, UNKNOWN));
    for ((method, hidden), (_, unknown)) in hidden.into_iter().zip(unknown) {
        let refused = send(request(&method, &hidden, &token)).await;
        let absent = send(request(&method, &unknown, &token)).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{method} {hidden}");
        let (refused, absent) = (nameless(&refused, HIDDEN), nameless(&absent, UNKNOWN));
        assert_eq!(refused, absent, "{method} {hidden}");
    }
}

/// A session is of the issuer, subject and client that opened it. To others it is not there, in every version.
#[tokio::test]
async fn a_session_is_its_holders_alone() {
    let issuer = Issuer::start("EdDSA");
    let house = house(&issuer);
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let own = issuer.token(&one, "tools").await;
    let foreign = issuer.token_of("robot", &one, "tools").await;
    assert_eq!(lookup(&one, &foreign).await.status, StatusCode::OK);
    for version in VERSIONS {
        let session = Legacy::open_as(&one, version, Some(&own)).await;
        let stolen = session.in_hands_of(Some(&foreign));
        for method in ["tools/list", "ping"] {
            let answer = stolen.ask(method, json!({})).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{version} {method}");
        }
        let stream = send(stolen.stream()).await;
        assert_eq!(stream.status, StatusCode::NOT_FOUND, "{version}");
        let ended = send(stolen.delete()).await;
        assert_eq!(ended.status, StatusCode::NOT_FOUND, "{version}");
        let still = session.ask("ping", json!({})).await;
        assert_eq!(still.status, StatusCode::OK, "{version}");
    }
}

/// Takes the issuer out of the configuration while the gateway serves.
async fn distrust(house: &House) {
    let text = std::fs::read_to_string(house.path().join("weir.toml")).expect("a file");
    let at = text.find("[[identity.issuers]]").expect("an issuer");
    let rest = text[at + 2..].find("\n[").map(|next| at + 3 + next);
    let rest = rest.map_or("", |next| &text[next..]);
    house.write(
        "weir.toml",
        format!("{}[identity]\nrequired = true\n{rest}", &text[..at]),
    );
    let reloaded = Admin::of(house).ask("POST", "/v1/config/reload", "").await;
    assert_eq!(reloaded.0, 200, "{}", reloaded.1);
}

#[tokio::test]
async fn what_a_token_opened_ends_with_the_trust_in_its_issuer() {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    let one = gateway.contract_url("airports");
    let token = issuer.token(&one, "tools").await;
    let mut sessions = Vec::new();
    for version in VERSIONS {
        let session = Legacy::open_as(&one, version, Some(&token)).await;
        let stream = Events::open(session.stream()).await;
        sessions.push((version, session, stream));
    }
    let client = Modern::with_key(&one, &token);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = Events::open(client.request("subscriptions/listen", wanted)).await;
    let within = Duration::from_secs(20);
    assert!(listening.next(within).await.is_some(), "it is acknowledged");
    let known = ("airports", "lookup_airport");
    for (method, url) in doors(&gateway.base, known) {
        let answer = send(request(&method, &url, &token)).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "{method} {url}: {}",
            answer.text
        );
    }
    distrust(&house).await;
    for (version, session, mut stream) in sessions {
        assert_eq!(
            stream.next(within).await,
            None,
            "{version}: the stream ends"
        );
        let answer = session.ask("ping", json!({})).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{version}");
    }
    let last = listening
        .next(within)
        .await
        .expect("it ends with its result");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert_eq!(lookup(&one, &token).await.status, StatusCode::UNAUTHORIZED);
    for (method, url) in doors(&gateway.base, known) {
        let answer = send(request(&method, &url, &token)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {url}");
    }
}
