//! When a start without the database is refused: a copy must not lack what an admin was promised, and must not be too old.

use std::{
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use weir_tests::{Admin, House, Modern, Postgres, place, until};

use super::{Node, house, make_node, status, submit};
use crate::sample;

const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];
const KEPT: Duration = Duration::from_secs(60);

fn mark(house: &House) -> PathBuf {
    house.path().join("state/copy.json")
}

fn read_mark(house: &House) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(mark(house)).ok()?).ok()
}

/// Waits until the copy of a node has the last change.
async fn wait_for_copy(node: &Node) {
    until("a copy is kept", async || {
        let (_, list) = node.admin.ask("GET", "/v1/nodes", "").await;
        let copy = read_mark(&node.house);
        copy.is_some_and(|copy| copy["number"] == list["generation"])
    })
    .await;
}

fn assert_waits(house: &House, why: &str) {
    let (code, _, err) = house.run(&SERVE);
    assert!(
        code == 1 && err.contains("the server cannot be reached"),
        "{why}: {code}: {err}"
    );
}

#[tokio::test]
async fn a_copy_is_not_started_from_that_may_lack_a_change_or_is_too_old() {
    let mut server = Postgres::start();
    let mut node = make_node(house(&server.url()));
    submit(&node, sample::CONTRACT).await;
    wait_for_copy(&node).await;
    let marked = std::fs::read(mark(&node.house)).expect("it is kept");

    // Asked to end while the database is reachable, it leaves the fleet, and no change waits for it from then on.
    node.gateway.signal("TERM");
    node.gateway.left();
    assert!(!mark(&node.house).exists());
    server.stop();
    assert_waits(&node.house, "it left");

    // As it was while the node ran.
    let written = |known_ms: u64| {
        let mut copy: Value = serde_json::from_slice(&marked).expect("JSON");
        copy["known_ms"] = json!(known_ms);
        std::fs::write(mark(&node.house), copy.to_string()).expect("written");
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = u64::try_from(now.expect("a clock").as_millis()).expect("in range");
    written(now - 301_000);
    assert_waits(&node.house, "it is too old");
    written(now + 60_000);
    assert_waits(&node.house, "it is of another clock");
    written(now - 1_000);
    let mut gateway = node.house.serve();
    let found = Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(found["structuredContent"]["country"], "NO", "{found}");
    // It could not announce its end to the others: they still count it as one that may serve.
    gateway.signal("TERM");
    gateway.left();
    assert!(mark(&node.house).exists());
    std::fs::write(mark(&node.house), "{").expect("written");
    assert_waits(&node.house, "it cannot be read");

    // A copy of a database with later changes, as from before a fail-over, is discarded by a start with the current database.
    let mut copy: Value = serde_json::from_slice(&marked).expect("JSON");
    copy["number"] = json!(1_000_000);
    std::fs::write(mark(&node.house), copy.to_string()).expect("written");
    server.run();
    let _gateway = node.house.serve();
    let copy = read_mark(&node.house);
    assert!(
        copy.as_ref().is_none_or(|copy| copy["number"] != 1_000_000),
        "{copy:?}"
    );
}

#[tokio::test]
async fn without_a_time_to_serve_from_memory_there_is_no_copy() {
    let server = Postgres::start();
    let url = server.url();
    let strict = House::new().config(&format!(
        "[state]\nurl = \"{url}\"\nstale_max_s = 0\n[admin]\nlisten = \"127.0.0.1:0\""
    ));
    let node = make_node(strict);
    let (code, made) = node
        .admin
        .ask("POST", "/v1/keys", json!({"agent": "ann"}).to_string())
        .await;
    assert_eq!(code, 201, "{made}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(read_mark(&node.house).is_none());
}

/// The limit on how long a node serves without the database counts from when the copy was known to lack nothing.
#[tokio::test]
async fn a_node_that_started_from_a_copy_refuses_agents_when_the_time_is_over() {
    let mut server = Postgres::start();
    let url = server.url();
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA)
        .config(&format!(
            "[state]\nurl = \"{url}\"\nstale_max_s = 30\n[admin]\nlisten = \"127.0.0.1:0\""
        ));
    let mut node = make_node(house);
    submit(&node, sample::CONTRACT).await;
    let body = json!({"agent": "ann"}).to_string();
    let (_, made) = node.admin.ask("POST", "/v1/keys", body).await;
    let key = made["key"].as_str().expect("a key").to_owned();
    wait_for_copy(&node).await;
    server.stop();
    let stopped = Instant::now();
    node.gateway.kill();
    let Node { house, .. } = node;
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let node = Node {
        house,
        gateway,
        admin,
    };
    assert_eq!(status(&node, &key).await, 200);
    while status(&node, &key).await != 503 {
        assert!(stopped.elapsed() < KEPT, "it serves on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.run();
    until("it serves again", async || status(&node, &key).await == 200).await;
}

/// A build that was put into the folder after the copy was made: it runs, and is kept for other nodes once the database is back.
#[tokio::test]
async fn a_build_that_the_copy_does_not_know_runs_and_is_kept_later() {
    let mut server = Postgres::start();
    let mut node = make_node(super::messages::house(&server));
    wait_for_copy(&node).await;
    server.stop();
    node.gateway.kill();
    let mut build = std::fs::read(place::guest("conformance")).expect("a guest can be read");
    // A section without a meaning makes another build of the same definitions.
    build.extend([0, 5, 4, b'n', b'o', b't', b'e']);
    let digest = Sha256::digest(&build);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let Node { house, .. } = node;
    house.write("plugins/conformance.wasm", &build);
    let (_gateway, client) = house.serve_client();
    client.succeed("test_simple_text", json!({})).await;
    server.run();
    let kept = format!("SELECT count(*) FROM kept_builds WHERE digest = '{digest}'");
    until("it is kept", async || server.sql(&kept) == "1").await;
}
