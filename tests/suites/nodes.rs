//! Two gateways over one state in PostgreSQL.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, Postgres, read_output};

use crate::sample;

/// A gateway of a machine of its own.
struct Node {
    house: House,
    gateway: Gateway,
    admin: Admin,
}

fn house(url: &str) -> House {
    House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA)
        .config(&format!(
            "[state]\nurl = \"{url}\"\n[admin]\nlisten = \"127.0.0.1:0\""
        ))
}

/// Starts the first gateway, which makes the admin key, and another one.
fn nodes(server: &Postgres) -> (Node, Node) {
    let one = house(&server.url());
    let gateway = one.serve();
    let admin = Admin::of(&one);
    let first = Node {
        house: one,
        gateway,
        admin,
    };
    let second = join(server, &first.admin);
    (first, second)
}

fn join(server: &Postgres, first: &Admin) -> Node {
    let house = house(&server.url());
    let gateway = house.serve();
    let address = std::fs::read_to_string(house.path().join("state/admin.url")).expect("written");
    assert!(
        !house.path().join("state/admin.token").exists(),
        "the first admin key is made once"
    );
    let admin = Admin {
        url: address,
        key: first.key.clone(),
    };
    Node {
        house,
        gateway,
        admin,
    }
}

async fn submit(node: &Node, source: &str) -> (u16, Value) {
    let body = json!({ "source": source }).to_string();
    node.admin.ask("POST", "/v1/contracts", body).await
}

async fn names(node: &Node) -> Vec<String> {
    let (tools, _) = Modern::new(node.gateway.url()).list().await;
    let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    tools.iter().map(name).collect()
}

/// Asks as the holder of a key, and returns the status.
async fn status(node: &Node, key: &str) -> StatusCode {
    let client = Modern::with_key(node.gateway.url(), key);
    let asked = client.request("tools/list", json!({})).send().await;
    asked.expect("an answer").status()
}

async fn country(node: &Node, key: Option<&str>) -> Value {
    let client = match key {
        Some(key) => Modern::with_key(node.gateway.url(), key),
        None => Modern::new(node.gateway.url()),
    };
    let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    result["structuredContent"]["country"].clone()
}

#[tokio::test]
async fn what_one_gateway_publishes_and_revokes_holds_on_the_other_when_the_answer_comes() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    let (status_code, published) = submit(&one, sample::CONTRACT).await;
    assert_eq!(
        (status_code, &published["everywhere"]),
        (200, &json!(true)),
        "{published}"
    );
    assert!(names(&two).await.contains(&"lookup_airport".to_owned()));
    assert_eq!(country(&two, None).await, "NO");

    let body = json!({"agent": "ann"}).to_string();
    let (status_code, made) = one.admin.ask("POST", "/v1/keys", body).await;
    assert_eq!(
        (status_code, &made["everywhere"]),
        (201, &json!(true)),
        "{made}"
    );
    let key = made["key"].as_str().expect("a key");
    for node in [&one, &two] {
        assert_eq!(status(node, key).await, StatusCode::OK);
    }
    let path = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
    let (status_code, revoked) = two.admin.ask("DELETE", &path, "").await;
    assert_eq!(
        (status_code, revoked),
        (200, json!({"everywhere": true})),
        "the other admin API revokes it"
    );
    for node in [&one, &two] {
        assert_eq!(status(node, key).await, StatusCode::UNAUTHORIZED);
    }

    let (_, list) = two.admin.ask("GET", "/v1/nodes", "").await;
    let listed = list["nodes"].as_array().expect("a list");
    let own = listed.iter().filter(|node| node["own"] == true).count();
    let caught_up = |node: &&Value| node["live"] == true && node["seen"] == list["generation"];
    assert_eq!(
        (listed.len(), own, listed.iter().filter(caught_up).count()),
        (2, 1, 2),
        "{list}"
    );
    let said = one.house.run(&["nodes"]).1;
    assert!(said.lines().count() == 3 && said.contains("live"), "{said}");
}

#[tokio::test]
async fn of_two_admins_who_publish_at_once_on_two_gateways_one_wins() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    for round in 0..8 {
        let text = |who: &str| {
            let words = format!("Adds an airport ({who}, {round}).");
            sample::CONTRACT.replace("Adds an airport.", &words)
        };
        let (live, draft) = (text("held"), json!({"source": text("held"), "hold": true}));
        let (_, held) = one
            .admin
            .ask("POST", "/v1/contracts", draft.to_string())
            .await;
        let path = format!(
            "/v1/drafts/{}/publish",
            held["draft"].as_str().unwrap_or_else(|| panic!("{held}"))
        );
        let body = json!({"fingerprint": held["fingerprint"]}).to_string();
        let (left, right) = tokio::join!(
            one.admin.ask("POST", &path, body.clone()),
            two.admin.ask("POST", &path, body)
        );
        let mut codes = [left.0, right.0];
        codes.sort_unstable();
        assert!(
            codes[0] == 200 && (409..=412).contains(&codes[1]),
            "{left:?} {right:?} {live}"
        );
    }
}

#[tokio::test]
async fn calls_go_on_without_the_database_and_changes_flow_again_with_it() {
    let mut server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    server.stop();
    for node in [&one, &two] {
        assert_eq!(country(node, None).await, "NO", "from the snapshot");
    }
    let (status_code, refused) = two.admin.ask("GET", "/v1/keys", "").await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        status_code == 503 && detail.contains("cannot be reached"),
        "{status_code}: {refused}"
    );
    let (code, _, err) = house(&server.url()).run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("the server cannot be reached"),
        "{code}: {err}"
    );
    server.run();
    let started = Instant::now();
    let other = sample::CONTRACT.replace("A few airports.", "Some airports.");
    while submit(&two, &other).await.0 != 200 {
        assert!(started.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (_, shown) = one.admin.ask("GET", "/v1/contracts/airports", "").await;
    assert_eq!(
        shown["versions"].as_array().map(Vec::len),
        Some(2),
        "{shown}"
    );
}

#[tokio::test]
async fn a_gateway_that_hangs_is_named_with_the_time_by_which_it_stops() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    two.gateway.signal("STOP");
    let body = json!({"agent": "ann"}).to_string();
    let asked = Instant::now();
    let (_, made) = one.admin.ask("POST", "/v1/keys", body).await;
    two.gateway.signal("CONT");
    assert!(asked.elapsed() < Duration::from_secs(15));
    assert_eq!(made["everywhere"], json!(false), "{made}");
    let missing = &made["missing"][0];
    let (_, list) = one.admin.ask("GET", "/v1/nodes", "").await;
    let other = list["nodes"].as_array().into_iter().flatten();
    let other = other.into_iter().find(|node| node["own"] == false);
    assert_eq!(
        missing["id"],
        other.expect("the other one")["id"],
        "{made} {list}"
    );
    assert!(missing["stops_ms"].as_i64() > made["created_ms"].as_i64());
}

/// Returns the lines of a copy that say how many rows a table has, and what they are.
fn copied(output: &str, tables: &[&str]) -> Vec<String> {
    let of_tables = output.lines().filter(|line| {
        tables
            .iter()
            .any(|table| line.starts_with(&format!("{table} ")))
    });
    of_tables.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_state_is_moved_to_a_database_and_back() {
    let server = Postgres::start();
    let before = sample::house();
    let mut gateway = before.serve();
    let key = before.key(&["--agent", "ann"]);
    let url = server.url();
    let to_database = ["state", "migrate", "--to", url.as_str()];
    let (code, _, err) = before.run(&to_database);
    assert!(
        code == 1 && err.contains("stop the gateway first"),
        "{code}: {err}"
    );
    gateway.signal("TERM");
    gateway.left();
    let (code, there, err) = before.run(&to_database);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = before.run(&to_database);
    assert!(code == 1 && err.contains("not empty"), "{code}: {err}");

    let after = house(&url);
    let mut gateway = after.serve();
    let client = Modern::with_key(gateway.url(), &key);
    let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(found["structuredContent"]["country"], "NO");
    let (code, _, err) = after.run(&["state", "migrate", "--to", "back"]);
    assert!(code == 1 && err.contains("stop it first"), "{code}: {err}");
    gateway.signal("TERM");
    gateway.left();
    let folder = after.path().join("moved");
    let (code, back, err) = after.run(&["state", "migrate", "--to", &folder.display().to_string()]);
    assert_eq!(code, 0, "{err}");
    let tables = [
        "contracts",
        "versions",
        "drafts",
        "keys",
        "admins",
        "secrets",
        "shapes",
    ];
    assert_eq!(copied(&there, &tables), copied(&back, &tables));
    assert_eq!(copied(&there, &tables).len(), tables.len(), "{there}");

    // What came from a file may be changed by the admin API now, and by a folder of files that are submitted.
    let node = {
        let gateway = after.serve();
        let token = std::fs::read_to_string(before.path().join("state/admin.token"));
        let address = std::fs::read_to_string(after.path().join("state/admin.url"));
        Node {
            gateway,
            admin: Admin {
                url: address.expect("written"),
                key: token.expect("written"),
            },
            house: after,
        }
    };
    let other = sample::CONTRACT.replace("A few airports.", "Some airports.");
    node.house.write("files/airports.yaml", other);
    let mut apply = node.house.weir(&["contracts", "apply", "files"]);
    let output = apply.env("WEIR_ADMIN_KEY", &node.admin.key).output();
    let (code, said, err) = read_output(output.expect("weir starts"));
    assert!(
        code == 0 && said.contains("airports: published 1.0.1"),
        "{code}: {said}{err}"
    );
    let (code, _, err) = node.house.run(&["serve", "--contracts", "files"]);
    assert!(
        code != 0 && err.contains("weir contracts apply DIR"),
        "{code}: {err}"
    );
}
