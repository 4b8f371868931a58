//! Tests which changes all nodes have when the answer to an admin returns, and the answer of a node that was cut off.

use std::{
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use weir_tests::{Events, Modern, answer_to, cluster::NODES};

use super::{fleet::Fleet, load::Load, rounds};
use crate::sample;

const LEASE: Duration = Duration::from_secs(5);
const STALE_MAX: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_listed_by_all_nodes_when_its_publication_is_answered() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    for round in 0..rounds(30, 1_000) {
        let described = format!("Returns the airport of round {round}.");
        let contract =
            sample::CONTRACT.replace("Returns the airport with an IATA code.", &described);
        let answer = fleet.publish(round % NODES.len(), &contract).await;
        assert_eq!(answer["everywhere"], json!(true), "{answer}");
        for (node, name) in NODES.iter().enumerate() {
            let (tools, _) = fleet.client(node).list().await;
            let is_new = |tool: &Value| tool["description"] == described.as_str();
            assert!(tools.iter().any(is_new), "{round} at {name}");
        }
    }
    let (_, repeated, failed) = load.end().await;
    assert_eq!((failed, repeated), (vec![], 0), "calls go on meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_by_all_nodes_from_the_answer_on_and_its_streams_end() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let mut streams = Vec::new();
    for node in 0..NODES.len() {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let listen = fleet.client(node).request("subscriptions/listen", wanted);
        let mut stream = Events::open(listen).await;
        let first = stream.next(Duration::from_secs(60)).await;
        assert!(first.is_some(), "the stream is acknowledged");
        streams.push(stream);
    }
    let (status, answer) = revoke(&fleet, 0).await;
    assert_eq!(
        (status, &answer["everywhere"]),
        (200, &json!(true)),
        "{answer}"
    );
    let asking = (0..NODES.len()).map(|node| {
        let client = fleet.client(node);
        async move {
            for _ in 0..rounds(200, 3_400) {
                let answer = client.ask("tools/list", json!({})).await;
                assert_eq!(answer.status, 401, "at {}: {}", NODES[node], answer.text);
            }
        }
    });
    futures::future::join_all(asking).await;
    let client = Modern::with_key(fleet.cluster.url(), &fleet.key);
    for _ in 0..60 {
        let answer = client.ask("tools/list", json!({})).await;
        assert_eq!(answer.status, 401, "at the load balancer: {}", answer.text);
    }
    for mut stream in streams {
        let began = Instant::now();
        // A last message may announce the end of the subscription.
        while stream.next(Duration::from_secs(60)).await.is_some() {}
        assert!(began.elapsed() < Duration::from_secs(59), "the stream ends");
    }
}

/// Revokes the fleet's key at a node.
async fn revoke(fleet: &Fleet, node: usize) -> (u16, Value) {
    let id = fleet.key.split('_').nth(1).expect("a key names its id");
    let path = format!("/v1/keys/{id}");
    fleet.admin(node).ask("DELETE", &path, "").await
}

/// Returns the time of this machine, whose clock all nodes have, in milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.expect("a clock").as_millis()).expect("in range")
}

/// Asks a node on its own machine, and returns the status.
fn ask_there(fleet: &Fleet, node: usize) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}"])
        .args(["-H", "content-type: application/json"])
        .args(["-H", "accept: application/json, text/event-stream"])
        .args(["-H", &format!("authorization: Bearer {}", fleet.key)])
        .args(["-H", "mcp-protocol-version: 2025-06-18"])
        .args(["-d", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#])
        .arg(fleet.nodes[node].gateway.url());
    let mut curl = fleet.cluster.network.on(NODES[node], &curl);
    let output = curl.output().expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_is_named_and_refuses_a_revoked_key_in_its_time() {
    let stale = format!("[state]\nstale_max_s = {}", STALE_MAX.as_secs());
    let Some(fleet) = Fleet::start_with(("[state]", &stale)).await else {
        return;
    };
    let known = ask_there(&fleet, 2);
    assert!(!["000", "401", "503"].contains(&known.as_str()), "{known}");
    let (_, list) = fleet.admin(2).ask("GET", "/v1/nodes", "").await;
    let nodes = list["nodes"].as_array().expect("a list");
    let own = nodes.iter().find(|node| node["own"] == true);
    let id = own.expect("it lists itself")["id"].clone();
    fleet.cluster.network.cut(NODES[2]);
    let cut_ms = now_ms();
    let (status, answer) = revoke(&fleet, 0).await;
    assert_eq!(
        (status, &answer["everywhere"]),
        (200, &json!(false)),
        "{answer}"
    );
    let missing = answer["missing"].as_array().expect("a list");
    assert!(missing.len() == 1 && missing[0]["id"] == id, "{answer}");
    let stops_ms = missing[0]["stops_ms"].as_u64().expect("a time");
    // A renewal may have been on its way.
    let most = LEASE + STALE_MAX + Duration::from_millis(500);
    let most = u64::try_from(most.as_millis()).expect("a time");
    assert!(stops_ms <= cut_ms + most, "{cut_ms}: {answer}");
    loop {
        let asked_ms = now_ms();
        match ask_there(&fleet, 2).as_str() {
            "503" => break,
            served => assert!(asked_ms < stops_ms, "{served} after {answer}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for node in 0..2 {
        let answer = fleet.client(node).ask("tools/list", json!({})).await;
        assert_eq!(answer.status, 401);
    }
    fleet.cluster.network.join(NODES[2]);
    let began = Instant::now();
    loop {
        match ask_there(&fleet, 2).as_str() {
            "401" => break,
            status => assert_eq!(status, "503", "it never served the key again"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it is back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_repeated_at_another_node_is_done_once() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    for round in 0..rounds(10, 20) {
        let words = format!("A few airports, round {round}.");
        let contract = sample::CONTRACT.replace("A few airports.", &words);
        let body = json!({"source": contract, "hold": true}).to_string();
        let submit = async |node: usize| {
            let request = fleet.admin(node).request("POST", "/v1/contracts");
            let request = request.header("idempotency-key", format!("k{round}"));
            let answer = answer_to(request.body(body.clone())).await;
            let status = answer.status().as_u16();
            (status, answer.json::<Value>().await.unwrap_or_default())
        };
        let (one, other) = tokio::join!(submit(0), submit(1));
        // The second one may have come while the first one was under way.
        assert!(one.0 == 202 || other.0 == 202, "{one:?} {other:?}");
        let (again, there) = (submit(0).await, submit(2).await);
        assert_eq!((again.0, &again), (202, &there));
    }
    let (_, drafts) = fleet.admin(0).ask("GET", "/v1/drafts", "").await;
    let drafts = drafts.as_array().expect("a list").len();
    assert_eq!(drafts, rounds(10, 20), "one of each round");
}
