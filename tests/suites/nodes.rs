//! Two gateways over one state in PostgreSQL.

mod builds;
mod fail_over;
mod heads;
mod local_copy;
mod messages;
mod parked;
mod rights;
mod versions;

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, Postgres, answer_to, read_output, until};

use crate::sample;

/// A gateway on its own machine.
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

/// Starts the first gateway, which makes the admin key.
fn make_node(house: House) -> Node {
    let gateway = house.serve();
    let admin = Admin::of(&house);
    Node {
        house,
        gateway,
        admin,
    }
}

/// Starts the first gateway and another one.
fn nodes(server: &Postgres) -> (Node, Node) {
    let first = make_node(house(&server.url()));
    let second = join(server, &first.admin);
    (first, second)
}

fn join(server: &Postgres, first: &Admin) -> Node {
    join_at(&server.url(), first)
}

fn join_at(url: &str, first: &Admin) -> Node {
    let house = house(url);
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
    answer_to(client.request("tools/list", json!({})))
        .await
        .status()
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
    let printed = one.house.run(&["nodes"]).1;
    assert!(
        printed.lines().count() == 3 && printed.contains("live"),
        "{printed}"
    );
}

#[tokio::test]
async fn of_two_admins_who_publish_at_once_on_two_gateways_one_wins() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    let rounds = crate::cluster::rounds(8, 500);
    for round in 0..rounds {
        let words = format!("Adds an airport ({round}).");
        let text = sample::CONTRACT.replace("Adds an airport.", &words);
        let draft = json!({"source": text, "hold": true});
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
            codes[0] == 200 && matches!(codes[1], 409 | 412),
            "{left:?} {right:?}"
        );
    }
    let (_, shown) = two.admin.ask("GET", "/v1/contracts/airports", "").await;
    let versions = shown["versions"].as_array().map(Vec::len);
    assert_eq!(versions, Some(rounds + 1), "one of each round");
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
    let other = sample::CONTRACT.replace("A few airports.", "Some airports.");
    until("changes are taken again", async || {
        submit(&two, &other).await.0 == 200
    })
    .await;
    let (_, shown) = one.admin.ask("GET", "/v1/contracts/airports", "").await;
    assert_eq!(
        shown["versions"].as_array().map(Vec::len),
        Some(2),
        "{shown}"
    );
    // The feed of changes continues too: the other node serves what was changed elsewhere.
    let more = format!(
        "{other}  - tool: count_airports\n    description: Lists all.\n    verb: list\n    collection: airports\n    fields: []\n"
    );
    let (code, published) = submit(&two, &more).await;
    assert_eq!(code, 200, "{published}");
    until("the other node serves the change", async || {
        names(&one).await.contains(&"count_airports".to_owned())
    })
    .await;
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
    assert!(asked.elapsed() < Duration::from_secs(40));
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

/// Returns the lines of a copy that hold a table's row count and its rows.
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
    let other = sample::CONTRACT.replace("contract: airports", "contract: held\nprefix: held");
    let held = json!({"source": other, "hold": true}).to_string();
    let admin = Admin::of(&before);
    let (code, held) = admin.ask("POST", "/v1/contracts", held).await;
    assert_eq!(code, 202, "{held}");
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
    let rows = copied(&there, &tables);
    assert_eq!(rows, copied(&back, &tables));
    assert_eq!(rows.len(), tables.len(), "{there}");
    assert!(!rows.iter().any(|row| row.contains(" 0 ")), "{rows:?}");

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
    let (code, printed, err) = read_output(output.expect("weir starts"));
    assert!(
        code == 0 && printed.contains("airports: published 1.0.1"),
        "{code}: {printed}{err}"
    );
    let (code, _, err) = node.house.run(&["serve", "--contracts", "files"]);
    assert!(
        code != 0 && err.contains("weir contracts apply DIR"),
        "{code}: {err}"
    );
}

/// Returns what is found in a folder of collected chains.
fn verify(house: &House, folder: &str) -> (i32, Value) {
    let (code, out, err) = house.run(&["audit", "verify", "--json", "--folder", folder]);
    let report = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    (code, report)
}

fn collect(house: &House, admin: &Admin, from: &[&str]) -> (i32, String) {
    let mut command = house.weir(&["audit", "collect", "--to", "all"]);
    for url in from {
        command.args(["--from", url]);
    }
    command.env("WEIR_ADMIN_KEY", &admin.key);
    let (code, _, err) = read_output(command.output().expect("weir starts"));
    (code, err)
}

#[tokio::test]
async fn the_trails_of_all_gateways_verify_together_and_a_lost_disk_is_named() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    let made = json!({"iata": "XYZ", "name": "New", "country": "NO"});
    for node in [&one, &two] {
        country(node, None).await;
    }
    Modern::new(two.gateway.url())
        .call("create_airport", made)
        .await;
    // Of a killed gateway, the others know the state of up to a second ago.
    let (_, report) = two.admin.ask("GET", "/v1/audit/verify", "").await;
    let head = report["heads"][0].as_str().expect("one chain").to_owned();
    let mut parts = head.split(':');
    let (chain, seq) = (
        parts.next().expect("a chain"),
        parts.next().expect("a number"),
    );
    let number: u64 = seq.parse().expect("a number");
    let known = async || {
        let heads = one.admin.succeed("GET", "/v1/audit/heads", "").await;
        let heads = heads["heads"].as_array().expect("heads").clone();
        heads
            .iter()
            .any(|head| head["chain"] == chain && head["seq"] == number)
    };
    until("the head is known", known).await;

    let (code, printed) = collect(&one.house, &one.admin, &[&one.admin.url, &two.admin.url]);
    assert_eq!(code, 0, "{printed}");
    let (code, report) = verify(&one.house, "all");
    assert_eq!(
        (code, &report["chains"], &report["findings_count"]),
        (0, &json!(2), &json!(0)),
        "{report}"
    );

    drop(two);
    let gone = one.house.path().join("all").join(chain);
    std::fs::remove_dir_all(gone).expect("it was collected");
    let (code, printed) = collect(
        &one.house,
        &one.admin,
        &[&one.admin.url, "http://127.0.0.1:9"],
    );
    assert!(
        code == 1 && printed.contains("127.0.0.1:9"),
        "{code}: {printed}"
    );
    let (code, report) = verify(&one.house, "all");
    let finding = &report["findings"][0];
    assert_eq!(
        (code, &finding["what"], &finding["chain"]),
        (1, &json!("missing"), &json!(chain)),
        "{report}"
    );
    let detail = finding["detail"].as_str().expect("a sentence");
    assert!(
        detail.contains(&format!("the records 1 to {seq}")),
        "{detail}"
    );

    // A gateway that joins names the lost chain in its first record.
    let three = join(&server, &one.admin);
    let (code, out, err) = three
        .house
        .run(&["audit", "query", "--kind", "chain", "--json"]);
    assert!(
        code == 0 && out.contains(chain) && out.contains("\"elsewhere\":true"),
        "{out}{err}"
    );
    three.house.succeed(&["audit", "verify"]);
}

#[tokio::test]
async fn a_write_waits_until_the_database_knows_its_record() {
    let mut server = Postgres::start();
    let node = make_node(house(&server.url()).config("[audit]\nreplicate = \"writes\""));
    submit(&node, sample::CONTRACT).await;
    let client = Modern::new(node.gateway.url());
    let made = |iata: &str| json!({"iata": iata, "name": "New", "country": "NO"});
    client.succeed("create_airport", made("XYZ")).await;
    let (_, heads) = node.admin.ask("GET", "/v1/audit/heads", "").await;
    let records = node.admin.ask("GET", "/v1/audit?kind=intent", "").await.1;
    let known = heads["heads"][0]["seq"].as_u64().expect("a number");
    assert!(
        known >= records[0]["seq"].as_u64().expect("a number"),
        "{heads} {records}"
    );
    server.stop();
    assert_eq!(country(&node, None).await, "NO", "a read needs no database");
    let refused = client.call("create_airport", made("XYA")).await;
    assert_eq!(refused["isError"], true, "{refused}");
    server.run();
    let data = std::fs::read_to_string(node.house.path().join("data/airports.csv"));
    assert!(!data.expect("the data").contains("XYA"), "nothing ran");
}
