//! Nodes of an earlier program and of this one side by side, on this program's tables.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Value, json};
use weir_tests::{Modern, cluster::NODES};

use super::{fleet::Fleet, load::Load, writes::iata_code};
use crate::sample;

/// The program that `cargo xtask cluster` builds from an earlier commit.
fn earlier_program() -> Option<PathBuf> {
    std::env::var_os("WEIR_EARLIER_PROGRAM").map(PathBuf::from)
}

/// Replaces a node under load, and changes something at it: every node takes that over, of whichever program it is.
async fn replace(fleet: &mut Fleet, load: &Load, node: usize, program: Option<&PathBuf>) {
    fleet.nodes[node].gateway.signal("TERM");
    let status = fleet.nodes[node].gateway.left();
    assert_eq!(status.code(), Some(0), "{status}");
    fleet.restart_by(node, program.map(PathBuf::as_path));
    fleet.cluster.wait_for_nodes(NODES.len()).await;
    let words = format!("A few airports, as node {node} has them ({program:?}).");
    let contract = sample::CONTRACT.replace("A few airports.", &words);
    let published = fleet.publish(node, &contract).await;
    assert_eq!(published["everywhere"], json!(true), "{published}");
    load.wait_for(100).await;
}

/// Writes through the load balancer until it is stopped. Returns the codes of what was written.
fn write_all_the_time(
    fleet: &Fleet,
    mut ending: tokio::sync::oneshot::Receiver<()>,
) -> tokio::task::JoinHandle<Vec<String>> {
    let client = Modern::with_key(fleet.cluster.url(), &fleet.key);
    tokio::spawn(async move {
        let mut written = Vec::new();
        while ending.try_recv().is_err() {
            let iata = iata_code(written.len());
            let new = json!({"iata": iata, "name": "New", "country": "NO"});
            let result = client.call("create_airport", new).await;
            assert_eq!(result["isError"], json!(false), "{result}");
            written.push(iata);
        }
        written
    })
}

/// Returns how often each airport was written, over the files of all nodes.
pub(super) fn count_written(fleet: &Fleet) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in &fleet.nodes {
        let file = node.house.path().join("data/airports.csv");
        let text = std::fs::read_to_string(file).expect("the data is there");
        for line in text.lines().filter(|line| line.contains(",New,")) {
            let iata = line.split(',').next().unwrap_or_default().to_owned();
            *counts.entry(iata).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_go_from_an_earlier_program_to_this_one_and_back_without_a_failed_call() {
    let Some(earlier) = earlier_program() else {
        return; // `cargo xtask cluster` builds it
    };
    let Some(mut fleet) = Fleet::start_by(Some(&earlier), ("", "")).await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    let (end, ending) = tokio::sync::oneshot::channel();
    let writing = write_all_the_time(&fleet, ending);
    load.wait_for(100).await;
    for program in [None, Some(&earlier)] {
        for node in 0..NODES.len() {
            replace(&mut fleet, &load, node, program).await;
        }
        let (_, list) = fleet.admin(0).ask("GET", "/v1/nodes", "").await;
        let live = |node: &&Value| node["live"] == true && node["seen"] == list["generation"];
        let nodes = list["nodes"].as_array().expect("a list");
        assert_eq!(nodes.iter().filter(live).count(), NODES.len(), "{list}");
    }
    end.send(()).expect("it writes still");
    let written = writing.await.expect("no write fails");
    let (answered, repeated, failed) = load.end().await;
    assert_eq!((failed, repeated), (vec![], 0), "of {answered}");
    let counts = count_written(&fleet);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(counts.len(), written.len(), "each write is there");
}
