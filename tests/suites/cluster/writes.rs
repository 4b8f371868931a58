//! Writes of a node that is killed: their outcomes, and that none is made twice.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{Modern, cluster::NODES};

use super::{
    fleet::Fleet,
    load::{CALLERS, Load},
    rounds,
    upgrade::count_written,
};
use crate::sample;

/// The time after which the lease of a killed node's write has ended: a minute more than the call may take.
const LEASE: Duration = Duration::from_secs(150);

/// Returns one of the codes that no airport of the sample has, each number another.
pub(super) fn iata_code(number: usize) -> String {
    let code = |number: usize| -> String {
        let letter = |place: u32| {
            let digit = number / 26_usize.pow(place) % 26;
            char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit])
        };
        [2, 1, 0].map(letter).iter().collect()
    };
    // The sample is in the order of its codes.
    let taken = sample::DATA.lines().skip(1).map(|line| &line[..3]);
    let free = taken.fold(number, |free, taken| {
        free + usize::from(*code(free) >= *taken)
    });
    code(free)
}

/// Asks for a write with its own key. `None`: no answer came.
async fn write(client: &Modern, iata: &str) -> Option<Value> {
    let meta = json!({ "dev.weir/idempotency-key": iata });
    let new = json!({"iata": iata, "name": "New", "country": "NO"});
    let params = json!({"name": "create_airport", "arguments": new, "_meta": meta});
    let answer = client.request("tools/call", params).send().await.ok()?;
    let text = answer.text().await.ok()?;
    let answer: Value = serde_json::from_str(&text).ok()?;
    answer.get("result").cloned()
}

/// Writes at one node until it is gone. Returns the codes that were written, and those whose outcome is unknown.
async fn write_until_gone(client: Modern, first: usize) -> (Vec<String>, Option<String>) {
    let mut written = Vec::new();
    loop {
        let iata = iata_code(first + written.len() * CALLERS);
        match write(&client, &iata).await {
            Some(result) => {
                assert_eq!(result["isError"], json!(false), "{result}");
                written.push(iata);
            }
            None => return (written, Some(iata)),
        }
    }
}

/// Repeats a write at another node until it is known what became of it.
async fn ask_again(client: &Modern, iata: &str) -> Value {
    let began = Instant::now();
    loop {
        let result = write(client, iata).await.expect("an answer");
        if result["structuredContent"]["reason"] != "in_progress" {
            return result;
        }
        assert!(began.elapsed() < LEASE, "{result}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns how many writes the trail of a node names that began and have no end there.
fn open_intents(fleet: &Fleet, node: usize) -> usize {
    let house = &fleet.nodes[node].house;
    let ids = |kind: &str| -> BTreeSet<String> {
        let words = ["audit", "query", "--json", "--kind", kind];
        let words = [&words[..], &["--tool", "create_airport"]].concat();
        let out = fleet.cluster.run(NODES[node], house, &words);
        let id = |line: &str| {
            let record: Value = serde_json::from_str(line).expect("a record");
            record["call_id"].to_string()
        };
        out.lines().map(id).collect()
    };
    ids("intent").difference(&ids("call")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_node_was_writing_is_unknown_and_never_written_again() {
    let Some(mut fleet) = Fleet::start().await else {
        return;
    };
    let load = Load::start(&fleet.cluster.url(), &fleet.key);
    let (mut next, mut all, mut lost_answers, mut unknown) = (0, 0, 0, 0);
    // Sooner or later a kill hits a write between its start and its end.
    for round in 0..30 {
        if unknown > 0 && round >= rounds(1, 30) {
            break;
        }
        let first = next;
        let writing: Vec<_> = (0..CALLERS)
            .map(|caller| tokio::spawn(write_until_gone(fleet.client(1), first + caller)))
            .collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        load.note_kill();
        fleet.nodes[1].gateway.kill();
        let mut open = Vec::new();
        for writer in writing {
            let (written, lost) = writer.await.expect("no write fails before the kill");
            all += written.len();
            next = next.max(first + (written.len() + 1) * CALLERS);
            open.extend(lost);
        }
        assert_eq!(open.len(), CALLERS, "each caller was writing");
        lost_answers += open.len();
        if unknown > 0 || rounds(1, 0) == 1 {
            // As if that time had passed. Of many rounds, the first ones wait for it.
            let end = "UPDATE call_replies SET lease_ms = 1 WHERE status = 'running'";
            fleet.database.sql(end);
        }
        for iata in open {
            let result = ask_again(&fleet.client(0), &iata).await;
            let content = &result["structuredContent"];
            let is_unknown = content["outcome"] == "unknown";
            assert!(
                is_unknown && content["reason"] == "outcome_unknown" || result["isError"] == false,
                "{result}"
            );
            unknown += usize::from(is_unknown);
        }
        fleet.restart(1);
        fleet.cluster.wait_for_nodes(NODES.len()).await;
        fleet
            .cluster
            .run(NODES[1], &fleet.nodes[1].house, &["audit", "verify"]);
    }
    assert!(unknown > 0, "no kill hit a write: {all} were made");
    // A write whose end is not in the trail was not answered, and was requested again above.
    let open = open_intents(&fleet, 1);
    assert!(open <= lost_answers, "{open} of {lost_answers}");
    let counts = count_written(&fleet);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert!(counts.len() >= all, "{} of {all} are there", counts.len());
    let (_, _, failed) = load.end().await;
    assert!(failed.is_empty(), "{failed:#?}");
}
