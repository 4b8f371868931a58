//! Tests the ways to connect clients and servers: the console's address, snippets, keys in use, a look at a server.

use std::{net::TcpListener, process::Command};

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, answer_to, http, place, read_output, upstream};

use crate::sample;

#[tokio::test]
async fn a_key_shows_its_use_over_restarts() {
    let house = sample::house();
    let mut gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    house.key(&["--agent", "bob"]);
    let ann = Modern::with_key(gateway.url(), &key);
    for iata in ["OSL", "wrong"] {
        ann.call("lookup_airport", json!({"iata": iata})).await;
    }
    let used = async |admin: &Admin| {
        let keys = admin.succeed("GET", "/v1/keys", "").await;
        let of = |agent: &str| {
            let keys = keys.as_array().expect("keys").iter();
            let key = keys
                .clone()
                .find(|key| key["agent"] == agent)
                .expect("a key");
            (key["calls_24h"].clone(), key["last_used_ms"].clone())
        };
        (of("ann"), of("bob"))
    };
    let ((calls, last), bob) = used(&Admin::of(&house)).await;
    assert_eq!((calls, bob), (json!(2), (json!(0), Value::Null)));
    assert!(
        last.as_i64().is_some_and(|last| last > 1_600_000_000_000),
        "{last}"
    );
    // A trial in its name does not count as a use of its key.
    let admin = Admin::of(&house);
    let trial = json!({"tool": "lookup_airport", "arguments": {"iata": "OSL"}, "agent": "ann"});
    admin.succeed("POST", "/v1/calls", trial.to_string()).await;
    assert_eq!(used(&admin).await.0, (json!(2), last.clone()));

    gateway.signal("TERM");
    assert!(gateway.left().success());
    let gateway = house.serve();
    assert_eq!(
        used(&Admin::of(&house)).await.0,
        (json!(2), last),
        "it is kept"
    );
    Modern::with_key(gateway.url(), &key)
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(used(&Admin::of(&house)).await.0.0, 3);

    // The last calls before an end are counted too.
    let mut gateway = gateway;
    Modern::with_key(gateway.url(), &key)
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    gateway.signal("TERM");
    assert!(gateway.left().success());
    let _gateway = house.serve();
    assert_eq!(used(&Admin::of(&house)).await.0.0, 4);
}

#[tokio::test]
async fn a_trial_says_which_call_it_was_and_what_a_client_sees() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let trial = json!({"tool": "lookup_airport", "arguments": {"iata": "OSL"}});
    let (status, tried) = admin.ask("POST", "/v1/calls", trial.to_string()).await;
    assert_eq!(
        (status, &tried["contract"]),
        (200, &json!("airports@1.0.0")),
        "{tried}"
    );
    let id = tried["call_id"].as_str().expect("an id");
    let (status, shown) = admin.ask("GET", &format!("/v1/audit/{id}"), "").await;
    assert_eq!(
        (status, &shown["records"][0]["receipt"]),
        (200, &tried["receipt"]),
        "{shown}"
    );
    let client = Modern::new(gateway.url());
    let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    for part in ["content", "structuredContent", "isError"] {
        assert_eq!(tried["wire"][part], result[part], "{part}: {tried}");
    }
    let dry = json!({"tool": "lookup_airport", "arguments": {"iata": "x"}, "dry_run": true});
    let (_, tried) = admin.ask("POST", "/v1/calls", dry.to_string()).await;
    assert_eq!(
        (&tried["call_id"], &tried["wire"]["isError"]),
        (&Value::Null, &json!(true)),
        "{tried}"
    );
}

#[tokio::test]
async fn snippets_are_what_connect_writes() {
    let house = sample::house().config("[http]\npublic_url = \"https://weir.example\"");
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    house.key(&["--agent", "ann"]);
    let (status, snippets) = admin.ask("GET", "/v1/snippets?agent=ann", "").await;
    assert_eq!(status, 200, "{snippets}");
    let snippets = snippets.as_array().expect("a list");
    assert_eq!(snippets.len(), 11);
    for snippet in snippets {
        let client = snippet["client"].as_str().expect("a client");
        if ["chatgpt", "claude"].contains(&client) {
            let note = snippet["note"].as_str().expect("a note");
            assert!(note.contains("[[identity.issuers]]"), "{snippet}");
            continue;
        }
        let url = "https://weir.example/mcp";
        let key = match client {
            "cline" | "zed" => ["--header", "Authorization: Bearer KEY"],
            _ => ["--key-env", "WEIR_KEY"],
        };
        let words = ["connect", client, "--url", url, "--print", key[0], key[1]];
        let mut command = Command::new(place::binary("weir"));
        command
            .args(words)
            .env("HOME", house.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CODEX_HOME")
            .current_dir(house.path());
        let output = command.output().expect("it starts");
        let printed = String::from_utf8(output.stdout).expect("text");
        match snippet["text"].as_str() {
            Some(text) if client == "codex" => {
                let read = |text: &str| text.parse::<toml::Table>().expect("TOML");
                assert_eq!(read(text), read(&printed));
            }
            Some(text) => {
                let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
                assert_eq!(read(text), read(&printed), "{client}");
            }
            None => {
                assert!(!output.status.success(), "{client}: {printed}");
                assert!(snippet["note"].is_string(), "{snippet}");
            }
        }
    }
    let (_, one) = admin.ask("GET", "/v1/snippets?client=cursor", "").await;
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    for unknown in ["client=emacs", "agent=none"] {
        let path = format!("/v1/snippets?{unknown}");
        assert_eq!(admin.ask("GET", &path, "").await.0, 404, "{unknown}");
    }
}

/// Clients that their vendors host take a URL and a sign-in: `weir connect` and the admin API agree on what is entered there,
/// and on what is missing beforehand.
#[tokio::test]
async fn hosted_clients_are_given_what_they_want() {
    let issuer = "https://login.example/";
    let trusted = format!(
        "[http]\npublic_url = \"https://weir.example\"\n[[identity.issuers]]\nissuer = \"{issuer}\"\n\
         grants = [{{ claim = \"scope\", has = \"tools\", contracts = [\"*\"] }}]"
    );
    let house = sample::house().config(&trusted);
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let wanted = [
        ("claude", "https://claude.ai/api/mcp/auth_callback"),
        ("chatgpt", "https://chatgpt.com/connector/oauth/"),
    ];
    for (client, redirect) in wanted {
        let out = house.succeed(&["connect", client]);
        for part in ["https://weir.example/mcp", redirect, "tools:write", issuer] {
            assert!(out.contains(part), "{client} {part}: {out}");
        }
        let (_, snippets) = admin
            .ask("GET", &format!("/v1/snippets?client={client}"), "")
            .await;
        assert_eq!(snippets[0]["text"], "https://weir.example/mcp");
        let note = snippets[0]["note"].as_str().expect("a note");
        for step in note.split(". ") {
            assert!(out.contains(step.trim_end_matches('.')), "{step}: {out}");
        }
        let (code, out, _) = house.run(&["connect", client, "--view", "shop"]);
        let view = "https://weir.example/mcp/view/shop";
        assert!(code == 0 && out.contains(view), "{out}");
        // The endpoint itself names its issuers, and an address of this machine is reached by neither.
        let mut by_url = Command::new(place::binary("weir"));
        by_url.args(["connect", client, "--url", &gateway.url()]);
        let (code, _, err) = read_output(by_url.output().expect("weir starts"));
        assert!(code == 1 && err.contains("public_url"), "{err}");
        let (code, _, err) = house.run(&["connect", client, "--project"]);
        assert!(code == 1 && err.contains("hosts it"), "{err}");
        let plain = sample::house();
        let (code, _, err) = plain.run(&["connect", client]);
        assert!(code == 1 && err.contains("public_url"), "{err}");
        let keys = sample::house().config("[http]\npublic_url = \"https://weir.example\"");
        let (code, _, err) = keys.run(&["connect", client]);
        assert!(code == 1 && err.contains("identity.issuers"), "{err}");
    }
}

#[tokio::test]
async fn a_server_is_looked_at_and_not_added() {
    let other = sample::house();
    let served = other.serve();
    let house = House::new().config("[http]\npublic_url = \"https://weir.example\"");
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let look = async |body: Value| {
        admin
            .ask("POST", "/v1/upstreams/look", body.to_string())
            .await
    };
    let (status, offer) = look(json!({"name": "other", "url": served.url()})).await;
    assert_eq!(status, 200, "{offer}");
    let names: Vec<&str> = offer["document"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        names,
        [
            "other_create_airport",
            "other_list_airports",
            "other_lookup_airport"
        ]
    );
    assert!(
        offer["tokens"].as_u64() > Some(50) && offer["fingerprint"].is_string(),
        "{offer}"
    );
    let costs = offer["tools"].as_array().expect("tools");
    assert!(
        costs.len() == 3 && costs.iter().all(|tool| tool["tokens"].as_u64() > Some(10)),
        "{offer}"
    );
    let overlay = "contract: other\nupstream: other\nleave: [create_airport, lookup_airport]\ntools:\n  - { from: list_airports, tool: airports }\n";
    let chosen = json!({"name": "other", "url": served.url(), "overlay": overlay});
    let (status, fewer) = look(chosen.clone()).await;
    assert_eq!(status, 200, "{fewer}");
    assert_eq!(fewer["tools"][0]["from"], "list_airports", "{fewer}");
    assert_eq!(fewer["tools"][0]["name"], "other_airports", "{fewer}");
    assert_eq!(fewer["tools"].as_array().map(Vec::len), Some(1), "{fewer}");
    assert!(fewer["tokens"].as_u64() < offer["tokens"].as_u64());
    assert_ne!(fewer["fingerprint"], offer["fingerprint"]);
    let mut wrong = chosen;
    wrong["overlay"] = json!("contract: other\nupstream: other\nleaves: []\n");
    let (status, refused) = look(wrong).await;
    assert_eq!(status, 422, "{refused}");
    assert_eq!(refused["problems"][0]["place"], "/leaves", "{refused}");
    let (_, listed) = admin.ask("GET", "/v1/upstreams", "").await;
    assert_eq!(listed["upstreams"], json!([]));
    assert_eq!(
        admin.ask("GET", "/v1/upstreams/look", "").await.0,
        404,
        "no upstream has that name"
    );
    let (_, records) = admin.ask("GET", "/v1/audit?kind=admin&limit=1", "").await;
    assert_eq!(records[0]["act"], "upstream_look", "{records}");

    let closed = format!("http://127.0.0.1:{}/mcp", upstream::free_port());
    assert_eq!(look(json!({"name": "other", "url": closed})).await.0, 503);
    for (name, url) in [
        ("Other", "http://127.0.0.1:9/mcp"),
        ("other", "ftp://127.0.0.1/"),
        ("other", "http://127.0.0.1:9/${env:HOME}"),
    ] {
        assert_eq!(
            look(json!({"name": name, "url": url})).await.0,
            422,
            "{url}"
        );
    }
    let stealing = json!({"name": "other", "url": served.url(), "headers": {"x": "env:HOME"}});
    assert_eq!(look(stealing).await.0, 422);
}

/// Bookmarks lead to one port; if something else uses it, the gateway serves all the same.
#[tokio::test]
async fn the_console_listens_elsewhere_where_its_port_is_taken() {
    let _taken = TcpListener::bind("127.0.0.1:8485"); // or another test has it
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    assert_ne!(admin.url, "http://127.0.0.1:8485");
    assert_eq!(admin.ask("GET", "/v1/session", "").await.0, 200);
    // An address that is configured is taken as it is, or the start fails.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let third = sample::house().config(&format!("[admin]\nlisten = \"127.0.0.1:{port}\""));
    let (code, _, err) = third.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("[admin] listen"), "{err}");
}

#[tokio::test]
async fn a_file_that_is_served_has_the_console_too() {
    let house = House::new()
        .without_config()
        .file("prices.csv", "sku,price\nA,1\nB,2\n");
    let plugins = place::plugins().display().to_string();
    let gateway = Gateway::start(house.weir(&[
        "serve",
        "prices.csv",
        "--listen",
        "127.0.0.1:0",
        "--state",
        "state",
        "--plugins",
        &plugins,
    ]));
    let admin = Admin::of(&house);
    let page = answer_to(http().get(&admin.url)).await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let tools = admin.succeed("GET", "/v1/tools", "").await;
    assert!(
        tools["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty()),
        "{tools}"
    );
    let name = tools["tools"][0]["name"].as_str().expect("a name");
    let trial = json!({"tool": name, "arguments": {}, "dry_run": true});
    admin.succeed("POST", "/v1/calls", trial.to_string()).await;
    // It is open to this machine: a key would close it, and every other file with this state.
    let (status, refused) = admin
        .ask("POST", "/v1/keys", json!({"agent": "a"}).to_string())
        .await;
    assert_eq!(status, 409, "{refused}");
    // That file is still the one served.
    let body = json!({"source": sample::CONTRACT}).to_string();
    let (status, refused) = admin.ask("POST", "/v1/contracts", body).await;
    assert!([409, 422].contains(&status), "{refused}");
    let (_, after) = admin.ask("GET", "/v1/tools", "").await;
    assert_eq!(after, tools);
    drop(gateway);
}
