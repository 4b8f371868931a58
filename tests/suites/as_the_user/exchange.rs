//! A server behind Weir that gets tokens which the callers' own were exchanged for (RFC 8693), at another project's authorization
//! server.

use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{
    Gateway, House, Modern,
    client::{http, send},
    foreign,
    upstream::{Running, free_port, wait_for_port},
};

use crate::{audit::records, sample};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const MACHINE: &str = "client_credentials";

/// The authorization server `authgent-server`, killed when dropped.
struct Exchanger {
    _running: Running,
    _folder: tempfile::TempDir,
    url: String,
}

/// A client that is registered there.
struct Client {
    id: String,
    secret: String,
}

impl Exchanger {
    fn start() -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
        let url = format!("http://127.0.0.1:{port}");
        let mut command = foreign::python("python-exchange");
        command
            .args([
                "-m",
                "uvicorn",
                "authgent_server.app:create_app",
                "--factory",
            ])
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .current_dir(folder.path())
            .env("AUTHGENT_SERVER_URL", &url)
            .env("AUTHGENT_SECRET_KEY", "0".repeat(64));
        let running = Running::silent(&mut command, "authgent-server");
        wait_for_port(port, "authgent-server");
        Self {
            _running: running,
            _folder: folder,
            url,
        }
    }

    async fn register(&self, grants: &[&str]) -> Client {
        let metadata = json!({
            "client_name": "weir", "grant_types": grants, "scope": "tools tools:write",
        });
        let request = http().post(format!("{}/register", self.url));
        let request = request.header("content-type", "application/json");
        let answer = send(request.body(metadata.to_string())).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let made: Value = serde_json::from_str(&answer.text).expect("JSON");
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        Client {
            id: text("client_id"),
            secret: text("client_secret"),
        }
    }

    /// Returns a token of a client itself.
    async fn token(&self, client: &Client, resource: &str) -> String {
        let form = [
            ("grant_type", MACHINE),
            ("client_id", &*client.id),
            ("client_secret", &*client.secret),
            ("resource", resource),
            ("scope", "tools"),
        ];
        let form = form.map(|(name, value)| {
            format!("{name}={}", value.replace(':', "%3A").replace('/', "%2F"))
        });
        let request = http()
            .post(format!("{}/token", self.url))
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = send(request.body(form.join("&"))).await;
        let answer: Value = serde_json::from_str(&answer.text).expect("JSON");
        let token = answer["access_token"].as_str();
        token
            .unwrap_or_else(|| panic!("no token: {answer}"))
            .to_owned()
    }

    /// The section that trusts it.
    fn trusted(&self) -> String {
        format!(
            "[[identity.issuers]]\nissuer = \"{}\"\n\
             grants = [{{ claim = \"scope\", has = \"tools\", contracts = [\"*\"] }}]",
            self.url
        )
    }
}

/// Waits until the tools of the server behind are there.
async fn listed(front: &Gateway, token: &str) -> String {
    for _ in 0..600 {
        let (tools, _) = Modern::with_key(front.url(), token).list().await;
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        if let Some(name) = names
            .into_iter()
            .find(|name| name.ends_with("lookup_airport"))
        {
            return name.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("nothing is listed:\n{}", front.log());
}

/// Starts the gateway whose server is `behind`, with this client for the exchange.
fn serve(exchanger: &Exchanger, behind: &Gateway, client: &Client, more: &str) -> (House, Gateway) {
    let house = House::new()
        .own_plugins(&[])
        .config(&exchanger.trusted())
        .config(&format!(
            "[upstreams.other]\nurl = \"{url}\"\nfirst = \"publish\"\n\
         [upstreams.other.auth]\nkind = \"exchange\"\nclient_id = \"{}\"\nclient_secret = \"{}\"\n\
         token_url = \"{}/token\"\nresource = \"{url}\"\nscopes = [\"tools\"]\n{more}",
            client.id,
            client.secret,
            exchanger.url,
            url = behind.url(),
        ));
    let gateway = house.serve();
    (house, gateway)
}

/// Two callers and a server that accepts only tokens issued for it: each call carries a token of its caller, obtained in
/// exchange for the caller's own.
#[tokio::test]
async fn a_callers_token_is_exchanged_for_one_of_the_server() {
    let exchanger = Exchanger::start();
    let behind_house = sample::house().config(&exchanger.trusted());
    let behind = behind_house.serve();
    let own = exchanger.register(&[MACHINE, EXCHANGE]).await;
    let (ann, bob) = (
        exchanger.register(&[MACHINE]).await,
        exchanger.register(&[MACHINE]).await,
    );
    let (house, front) = serve(&exchanger, &behind, &own, "");
    let url = front.url();
    let tokens = [
        exchanger.token(&ann, &url).await,
        exchanger.token(&bob, &url).await,
    ];
    let tool = listed(&front, &tokens[0]).await;
    for (caller, token) in [&ann, &bob, &ann]
        .into_iter()
        .zip([&tokens[0], &tokens[1], &tokens[0]])
    {
        let call = json!({ "iata": "OSL" });
        let answer = Modern::with_key(&url, token).call(&tool, call).await;
        assert_eq!(answer["structuredContent"]["country"], "NO", "{answer}");
        let calls = records(&behind_house, &["--tool", "lookup_airport"]);
        let mut calls = calls.iter().filter(|record| record["kind"] == "call");
        let subject = format!("client:{}", caller.id);
        let is_of_caller = |record: &Value| {
            let holder = &record["holder"];
            holder["subject"] == *subject && holder["client"] == *own.id
        };
        assert!(
            calls.any(is_of_caller),
            "{subject}: {:?}",
            calls.collect::<Vec<_>>()
        );
    }
    // The caller's own opens nothing there, and a key is exchanged for nothing.
    let direct = Modern::with_key(behind.url(), &tokens[0]);
    let direct = direct.ask("tools/list", json!({})).await;
    assert_eq!(direct.status, StatusCode::UNAUTHORIZED);
    let key = house.key(&["--agent", "keyed"]);
    let refused = Modern::with_key(&url, &key)
        .call(&tool, json!({ "iata": "OSL" }))
        .await;
    assert_eq!(refused["isError"], true, "{refused}");
    for token in &tokens {
        assert!(!behind.log().contains(&**token) && !front.log().contains(&**token));
        assert_eq!(super::holders(house.path(), token), Vec::<String>::new());
    }
}

/// This server does not support identity assertions (ID-JAG), and issues an access token where one is requested: that
/// token is not taken for an assertion.
#[tokio::test]
async fn another_token_than_the_one_that_was_asked_for_is_not_used() {
    let exchanger = Exchanger::start();
    let behind_house = sample::house().config(&exchanger.trusted());
    let behind = behind_house.serve();
    let own = exchanger.register(&[MACHINE, EXCHANGE]).await;
    let caller = exchanger.register(&[MACHINE]).await;
    let more = format!(
        "assertion = {{ client_id = \"{}\", client_secret = \"{}\" }}",
        own.id, own.secret
    );
    let (_house, front) = serve(&exchanger, &behind, &own, &more);
    let token = exchanger.token(&caller, &front.url()).await;
    let tool = listed(&front, &token).await;
    let answer = Modern::with_key(front.url(), &token)
        .call(&tool, json!({ "iata": "OSL" }))
        .await;
    assert_eq!(answer["isError"], true, "{answer}");
    let calls = records(&behind_house, &["--tool", "lookup_airport"]);
    assert!(
        calls.iter().all(|record| record["kind"] != "call"),
        "{calls:?}"
    );
}
