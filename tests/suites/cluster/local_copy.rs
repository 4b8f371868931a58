//! Nodes that start while the database is away.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Modern, cluster::NODES, within};

use super::{
    fleet::{Fleet, FleetNode, SPREAD},
    load::Load,
};

const KEPT: Duration = Duration::from_secs(60);

/// Returns the number of the last change that the copy of a node has.
fn copied(node: &FleetNode) -> Option<i64> {
    let text = std::fs::read(node.house.path().join("state/copy.json")).ok()?;
    serde_json::from_slice::<Value>(&text).ok()?["number"].as_i64()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_while_the_database_is_away_starts_from_its_copy() {
    let Some(mut fleet) = Fleet::start().await else {
        return;
    };
    let body = json!({"agent": "bob"}).to_string();
    let (_, made) = fleet.admin(0).ask("POST", "/v1/keys", body.clone()).await;
    let revoked = made["key"].as_str().expect("a key").to_owned();
    let path = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
    let (_, answer) = fleet.admin(2).ask("DELETE", &path, "").await;
    assert_eq!(answer["everywhere"], json!(true), "{answer}");
    let (_, list) = fleet.admin(0).ask("GET", "/v1/nodes", "").await;
    let generation = list["generation"].as_i64();
    let is_kept = async || fleet.nodes.iter().all(|node| copied(node) >= generation);
    within(KEPT, "each node has a copy", is_kept).await;

    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    load.wait_for(100).await;
    fleet.database.stop();
    fleet.nodes[1].gateway.kill();
    fleet.restart(1);
    let known = fleet.client(1);
    let listed = known.ask("tools/list", json!({})).await;
    assert!(listed.text.contains("lookup_airport"), "{}", listed.text);
    let found = known.call("lookup_airport", json!({"iata": "OSL"})).await;
    let name = &found["structuredContent"]["name"];
    assert_eq!(name, "Oslo Gardermoen Airport", "{found}");
    let refused = Modern::with_key(fleet.nodes[1].gateway.url(), &revoked);
    let refused = refused.ask("tools/list", json!({})).await;
    assert_eq!(refused.status, 401, "it was revoked before");
    let (status, answer) = fleet.admin(1).ask("POST", "/v1/keys", body.clone()).await;
    assert_eq!(status, 503, "nothing is changed meanwhile: {answer}");
    fleet.cluster.wait_for_nodes(NODES.len()).await;
    load.wait_for(300).await;

    fleet.database.run();
    let is_node = async || {
        let (_, list) = fleet.admin(0).ask("GET", "/v1/nodes", "").await;
        let nodes = list["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().filter(|node| node["live"] == true).count() == NODES.len()
    };
    within(Duration::from_secs(30), "it is a node again", is_node).await;
    let (status, made) = fleet.admin(0).ask("POST", "/v1/keys", body).await;
    // The killed process may be named as one that could still serve, as long as a start from its copy is possible.
    assert_eq!(status, 201, "{made}");
    let key = made["key"].as_str().expect("a key");
    let client = Modern::with_key(fleet.nodes[1].gateway.url(), key);
    let is_known = async || client.ask("tools/list", json!({})).await.status == 200;
    within(SPREAD, "it takes changes over", is_known).await;
    let (_, _, failed) = load.end().await;
    assert!(failed.is_empty(), "{failed:#?}");
}
