//! A fleet over one PostgreSQL and behind HAProxy, with the configuration of `deploy/`, each node on its own machine: calls go
//! to the nodes in turn, an admin's change at one node applies at all nodes, and a node or the database may be lost.

mod changes;
mod fleet;
mod load;
mod local_copy;
mod upgrade;
mod writes;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{
    Legacy, Modern,
    client::{LEGACY, send},
    cluster::NODES,
    foreign, place, within,
};

use self::{
    fleet::{Fleet, SPREAD},
    load::{CALLERS, Load},
};

/// Returns how often something is tried: `cargo xtask cluster` tries it often enough to trust the result.
pub(crate) fn rounds(usual: usize, many: usize) -> usize {
    match std::env::var_os("WEIR_MANY_ROUNDS") {
        Some(_) => many,
        None => usual,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_official_client_is_served_by_every_node_in_turn() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let calls: Vec<Value> = (0..12)
        .map(|_| json!({"tool": "lookup_airport", "arguments": {"iata": "OSL"}}))
        .collect();
    let call = |mode: &str| {
        let plan =
            json!({"url": fleet.cluster.url(), "mode": mode, "key": fleet.key, "calls": calls});
        let report = foreign::report(foreign::node_script("typescript2.mjs"), &plan);
        for answer in report["calls"].as_array().expect("a report has calls") {
            let name = &answer["structured"]["name"];
            assert_eq!(name, "Oslo Gardermoen Airport", "{mode}: {answer}");
        }
    };
    call("modern");
    let counts = fleet.calls().await;
    assert!(counts.iter().all(|count| *count >= 2.0), "{counts:?}");
    assert_eq!(counts.iter().sum::<f64>(), 12.0, "{counts:?}");
    call("legacy");
}

/// A client of the older protocol whose requests go to whichever node is next.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_no_node() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let guest = std::fs::read(place::guest("conformance")).expect("a guest can be read");
    let path = "/v1/plugins/conformance";
    let (status, uploaded) = fleet.admin(1).ask("PUT", path, guest).await;
    assert_eq!(
        (status, &uploaded["everywhere"]),
        (200, &json!(true)),
        "{uploaded}"
    );
    let client = Legacy::open_as(fleet.cluster.url(), LEGACY, Some(&fleet.key)).await;
    let mut each: Vec<f64> = Vec::new();
    for _ in 0..5 {
        fleet.cluster.wait_for_nodes(NODES.len()).await;
        let before = fleet.calls().await;
        for _ in 0..12 {
            let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
            let name = &found["structuredContent"]["name"];
            assert_eq!(name, "Oslo Gardermoen Airport", "{found}");
        }
        let after = fleet.calls().await;
        each = after.iter().zip(before).map(|(it, was)| it - was).collect();
        // A node that answers HAProxy's check too late, since the machine stopped, has no turn for a second.
        if each == [4.0, 4.0, 4.0] || !fleet.cluster.balancer_log().contains(" timeout") {
            break;
        }
    }
    assert_eq!(each, [4.0, 4.0, 4.0], "in turn");

    // So does the place in a list.
    let mut arguments = json!({"limit": 2});
    let mut found = Vec::new();
    for node in (0..NODES.len()).cycle().take(6) {
        let at_node = client.at(fleet.nodes[node].gateway.url());
        let page = at_node.call("list_airports", arguments).await;
        let content = &page["structuredContent"];
        let items = content["records"].as_array().expect("a page");
        found.extend(items.iter().map(|item| item["iata"].clone()));
        if content["next"].is_null() {
            break;
        }
        arguments = json!({"limit": 2, "cursor": content["next"]});
    }
    assert_eq!(found.len(), 6, "each once: {found:?}");

    let params = json!({"name": "slow_compute", "arguments": {"seconds": 50}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    for canceller in 0..NODES.len() {
        let request = client.in_session(call.to_string());
        let running = tokio::spawn(async move { request.send().await?.text().await });
        let runs = async |count| fleet.running().await.iter().sum::<f64>() == count;
        within(SPREAD, "the call runs", async || runs(1.0).await).await;
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let at_node = client.at(fleet.nodes[canceller].gateway.url());
        let answer = send(at_node.in_session(cancelled.to_string())).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        within(SPREAD, "it is cancelled", async || runs(0.0).await).await;
        let _ = running.await.expect("it ends"); // a cancelled call has no answer
    }

    let answer = send(client.delete()).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    for node in &fleet.nodes {
        let there = client.at(node.gateway.url());
        let gone = async || there.ask("ping", json!({})).await.status == 404;
        within(SPREAD, "the session is gone", gone).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_costs_nothing_but_what_it_was_doing() {
    let Some(mut fleet) = Fleet::start().await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    load.wait_for(300).await;
    fleet.nodes[1].gateway.kill();
    load.wait_for(600).await;
    fleet.restart(1);
    fleet.cluster.wait_for_nodes(NODES.len()).await;
    load.wait_for(300).await;
    let (answered, repeated, failed) = load.end().await;
    assert!(failed.is_empty(), "{failed:#?}");
    // HAProxy keeps connections to each node, a few for each caller, and finds each of them closed once.
    assert!(
        repeated <= 4 * CALLERS,
        "{repeated} of {answered} calls were repeated"
    );
    // The trails of all processes, including the killed one, form one trail.
    let urls: Vec<String> = (0..NODES.len()).map(|node| fleet.admin(node).url).collect();
    let mut words = vec!["audit", "collect", "--to", "all"];
    for url in &urls {
        words.extend(["--from", url.as_str()]);
    }
    fleet.command(&words);
    let report = fleet.command(&["audit", "verify", "--json", "--folder", "all"]);
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(
        (&report["chains"], &report["findings_count"]),
        (&json!(NODES.len() + 1), &json!(0)),
        "{report}"
    );
}

/// A node that is asked to stop announces it first: no request to it is lost, and no call is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_end_one_after_the_other_cost_no_call() {
    // Each waits this long before it ends.
    let Some(mut fleet) = Fleet::start_with(("drain_s = 5", "drain_s = 8")).await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    load.wait_for(100).await;
    for node in 0..NODES.len() {
        fleet.nodes[node].gateway.signal("TERM");
        let status = fleet.nodes[node].gateway.left();
        assert_eq!(status.code(), Some(0), "{status}");
        fleet.restart(node);
        fleet.cluster.wait_for_nodes(NODES.len()).await;
        load.wait_for(100).await;
    }
    let (answered, repeated, failed) = load.end().await;
    assert_eq!((failed, repeated), (vec![], 0), "of {answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_while_the_database_is_away() {
    let Some(mut fleet) = Fleet::start().await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    load.wait_for(100).await;
    fleet.database.signal("STOP");
    let body = json!({"agent": "bob"}).to_string();
    let began = Instant::now();
    let (status, answer) = fleet.admin(1).ask("POST", "/v1/keys", body.clone()).await;
    assert_eq!(status, 503, "after {:?}: {answer}", began.elapsed());
    let outage = Duration::from_secs(u64::try_from(rounds(0, 60)).expect("seconds"));
    let mut number = 0;
    while number < NODES.len() || began.elapsed() < outage {
        // Beyond the codes of the airports that are there.
        let iata = writes::iata_code(15_600 + number);
        let new = json!({"iata": iata, "name": "New", "country": "NO"});
        let client = fleet.client(number % NODES.len());
        let written = client.call("create_airport", new).await;
        assert_ne!(written["isError"], json!(true), "writes go on: {written}");
        number += 1;
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    load.wait_for(1000).await;
    fleet.database.signal("CONT");

    fleet.database.stop();
    load.wait_for(300).await;
    fleet.database.run();
    let mut key = String::new();
    let made = async || {
        let (status, made) = fleet.admin(1).ask("POST", "/v1/keys", body.clone()).await;
        (status == 201).then(|| made["key"].as_str().unwrap_or_default().to_owned())
    };
    let began = Instant::now();
    while key.is_empty() {
        key = made().await.unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(30), "no key is made");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for node in &fleet.nodes {
        let client = Modern::with_key(node.gateway.url(), &key);
        let known = async || client.ask("tools/list", json!({})).await.status == 200;
        within(SPREAD, "the new key is known", known).await;
    }
    let (_, repeated, failed) = load.end().await;
    assert_eq!((failed, repeated), (vec![], 0));
}

/// The notifications of a lost database are lost, but changes made meanwhile are not.
#[tokio::test(flavor = "multi_thread")]
async fn no_change_is_missed_when_the_database_restarts_again_and_again() {
    let Some(mut fleet) = Fleet::start().await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    for round in 0..rounds(2, 200) {
        fleet.database.stop();
        fleet.database.run();
        let body = json!({"agent": format!("bob-{round}")}).to_string();
        let node = round % NODES.len();
        let mut made = (0, Value::Null);
        let is_made = async || {
            fleet
                .admin(node)
                .ask("POST", "/v1/keys", body.clone())
                .await
        };
        let began = Instant::now();
        while made.0 != 201 {
            assert!(began.elapsed() < Duration::from_secs(30), "{made:?}");
            made = is_made().await;
        }
        let key = made.1["key"].as_str().expect("a key").to_owned();
        for node in &fleet.nodes {
            let client = Modern::with_key(node.gateway.url(), &key);
            let known = async || client.ask("tools/list", json!({})).await.status == 200;
            within(SPREAD, &format!("round {round}: the key is known"), known).await;
        }
    }
    let (_, repeated, failed) = load.end().await;
    assert_eq!((failed, repeated), (vec![], 0), "calls go on meanwhile");
}
