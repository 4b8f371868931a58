//! A fleet behind HAProxy with the configuration of `deploy/`, each node on a machine of its own: calls go to the nodes in turn,
//! and one of them may be lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use weir_tests::{Cluster, Gateway, House, Modern, cluster::NODES, foreign, http};

use crate::sample;

const SCRAPE: &str = "scrape-2c81d0e5";
/// Clients that call at once.
const CALLERS: usize = 8;

/// The time after which a caller repeats a call. HAProxy knows by then that connections to a lost node are closed.
const PAUSE: Duration = Duration::from_millis(50);

/// A fleet with one contract and a key, and what it serves from.
struct Fleet {
    cluster: Cluster,
    nodes: Vec<Gateway>,
    _house: House,
    key: String,
}

impl Fleet {
    async fn start() -> Self {
        let cluster = Cluster::new();
        let house = sample::house().config(&format!(
            "[http]\nhosts = [\"{}\"]\n[identity]\nrequired = true\n[metrics]\ntoken = \"{SCRAPE}\"\n[limits]\nagent_rate = \"off\"",
            cluster.host()
        ));
        let nodes: Vec<_> = NODES.map(|node| cluster.serve(node, &house)).into();
        cluster.wait_for_nodes(NODES.len()).await;
        let key = cluster.run(NODES[0], &house, &["keys", "create", "--agent", "ann"]);
        Self {
            cluster,
            nodes,
            _house: house,
            key,
        }
    }

    /// Returns how many calls each node has answered.
    async fn calls(&self) -> Vec<f64> {
        let mut counts = Vec::new();
        for node in &self.nodes {
            let url = format!("{}/metrics", node.base);
            let answer = http().get(url).bearer_auth(SCRAPE).send().await;
            let text = answer.expect("an answer").text().await.expect("text");
            let series = text
                .lines()
                .filter(|line| line.starts_with("weir_calls_total{"));
            counts.push(
                series
                    .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                    .sum(),
            );
        }
        counts
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_official_client_is_served_by_every_node_in_turn() {
    let fleet = Fleet::start().await;
    let calls: Vec<Value> = (0..12)
        .map(|_| json!({"tool": "lookup_airport", "arguments": {"iata": "OSL"}}))
        .collect();
    let plan = json!({
        "url": fleet.cluster.url(),
        "mode": "modern",
        "key": fleet.key,
        "calls": calls,
    });
    let report = foreign::report(foreign::node_script("typescript2.mjs"), &plan);
    let answers = report["calls"].as_array().expect("a report has calls");
    for answer in answers {
        let name = &answer["structured"]["name"];
        assert_eq!(name, "Oslo Gardermoen Airport", "{answer}");
    }
    let counts = fleet.calls().await;
    assert!(counts.iter().all(|count| *count >= 2.0), "{counts:?}");
    assert_eq!(counts.iter().sum::<f64>(), 12.0, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_costs_nothing_but_what_it_was_doing() {
    let mut fleet = Fleet::start().await;
    let load = Load::start(&fleet);
    load.wait_for(300).await;
    fleet.nodes[1].kill();
    load.wait_for(600).await;
    let (answered, repeated, failed) = load.end().await;
    assert!(failed.is_empty(), "{failed:#?}");
    // HAProxy keeps connections to each node, a few for each caller, and finds each of them closed once.
    assert!(
        repeated <= 4 * CALLERS,
        "{repeated} of {answered} calls were repeated"
    );
}

/// Clients that look airports up, and repeat a call whose answer was lost.
struct Load {
    callers: Vec<tokio::task::JoinHandle<Vec<String>>>,
    ending: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    repeated: Arc<AtomicUsize>,
}

impl Load {
    fn start(fleet: &Fleet) -> Self {
        let (ending, answered, repeated) = (Arc::default(), Arc::default(), Arc::default());
        let mut load = Self {
            callers: Vec::new(),
            ending,
            answered,
            repeated,
        };
        for _ in 0..CALLERS {
            let client = Modern::with_key(fleet.cluster.url(), &fleet.key);
            let (ending, answered, repeated) = (
                load.ending.clone(),
                load.answered.clone(),
                load.repeated.clone(),
            );
            load.callers.push(tokio::spawn(async move {
                let mut failed = Vec::new();
                while !ending.load(Ordering::Relaxed) {
                    let mut result = look_up(&client).await;
                    if result.is_err() {
                        repeated.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(PAUSE).await;
                        result = look_up(&client).await;
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                    failed.extend(result.err());
                }
                failed
            }));
        }
        load
    }

    /// Waits until so many more calls are answered.
    async fn wait_for(&self, more: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        let reached = async {
            while self.answered.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, reached)
            .await
            .expect("calls are answered");
    }

    /// Returns how many calls were answered and repeated, and what failed twice.
    async fn end(self) -> (usize, usize, Vec<String>) {
        self.ending.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        for caller in self.callers {
            failed.extend(caller.await.expect("a caller ends"));
        }
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.answered), count(&self.repeated), failed)
    }
}

/// Looks an airport up; the error says what came instead.
async fn look_up(client: &Modern) -> Result<(), String> {
    let arguments = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    let answer = client.request("tools/call", arguments).send().await;
    let answer = answer.map_err(|error| format!("{error:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
    match text.contains("Oslo Gardermoen Airport") {
        true => Ok(()),
        false => Err(format!("{status}: {text}")),
    }
}
