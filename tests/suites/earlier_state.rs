//! A state that an earlier version wrote: what it holds keeps working under this version, and what it kept in files
//! is imported.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;
use weir_tests::{House, Modern, answer_to, http, place};

/// A key that the gateway of `tests/fixtures/state-of-d05fb9de` gave out.
const KEY: &str =
    "weir_dcfde5a8e370_e26db1297c008fc5fd2b23cce688382ae38a9459d3803f8a6cc961c4014e8f97";
const CURSOR: &str = "3-DRo_5T0mXzqaM4InKNh9uSG_fvURSZndPW4IQF7D0INQtaoU13eqnQzIiTCEbu-Q";
const DRAFT: &str = "d_c62a16aa471337b2";
/// The digest of the arguments of its last call, `{"iata":"OSL"}`.
const DIGEST: &str = "eb843cb6680546abcf7d3055e87835558d7aa1590ac26a442360c7916ee59b92";

/// Returns a house with this state, its contract, its data and its plugins.
fn house() -> House {
    let house = House::new()
        .sheets()
        .own_plugins(&[])
        .config("[plugins.tiny-c.grants]\ndata = \"write\"");
    let packed = place::repository().join("tests/fixtures/state-of-d05fb9de/house.tar.gz");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(packed)
        .arg("-C")
        .arg(house.path())
        .status();
    assert!(unpacked.expect("tar runs").success());
    house.write("plugins/tiny-c.wasm", tiny_c(Some(2)));
    house.write("plugins/lookup.wasm", lookup(house.path()));
    house
}

/// Returns the plugin `tiny-c`, as it is or with a section that makes it another build.
fn tiny_c(build: Option<u8>) -> Vec<u8> {
    let file = place::repository().join("tests/guests/0.1.0/tiny-c.wasm");
    let mut bytes = std::fs::read(file).expect("the guest of 0.1.0");
    if let Some(number) = build {
        bytes.extend(b"\x00\x07\x05build");
        bytes.push(b'0' + number);
    }
    bytes
}

/// Returns the build of the tool `lookup_ticket` that the state keeps.
fn lookup(house: &Path) -> Vec<u8> {
    let kept = std::fs::read_dir(house.join("state/builds/weir-bench-function"))
        .expect("the kept builds")
        .next()
        .expect("one build");
    std::fs::read(kept.expect("one build").path()).expect("it is read")
}

#[tokio::test]
async fn contracts_keys_cursors_and_the_trail_of_an_earlier_state_go_on() {
    let house = house();
    let gateway = house.serve();
    let client = Modern::with_key(gateway.url(), KEY);
    let page = client
        .call("list_airports", json!({"limit": 2, "cursor": CURSOR}))
        .await;
    let records = &page["structuredContent"]["records"];
    assert_eq!(
        (&records[0]["iata"], &records[1]["iata"]),
        (&json!("GOT"), &json!("KEF")),
        "the page behind the one that the cursor ended: {page}"
    );
    let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(found["structuredContent"]["country"], "NO", "{found}");
    let unknown = answer_to(http().post(gateway.url()).body("{}")).await;
    assert_eq!(unknown.status(), 401, "keys stay required");

    let contract = house.json(&["contracts", "show", "airports"]);
    let draft = &contract["drafts"][0];
    assert_eq!(
        (&contract["version"], &draft["id"], &draft["status"]),
        (&json!("1.0.0"), &json!(DRAFT), &json!("pending")),
        "{contract}"
    );

    house.succeed(&["audit", "verify"]);
    let (_, out, err) = house.run(&["audit", "digest", r#"{"iata":"OSL"}"#]);
    assert!(out.contains(DIGEST), "{out} {err}");
    let (_, out, _) = house.run(&["audit", "query", "--text", DIGEST]);
    assert_eq!(
        out.lines().count(),
        2,
        "the call before and the call now: {out}"
    );

    for gone in [
        "cursor.key",
        "audit.key",
        "shapes",
        "plugins-accepted.json",
        "builds/weir-bench-function",
    ] {
        let path = house.path().join("state").join(gone);
        assert!(!path.exists(), "{gone} is in the state now");
    }
    let database = house.path().join("state/weir.db");
    let database = rusqlite::Connection::open(database).expect("the state opens");
    let shapes = "SELECT count(*) FROM shapes WHERE contract = 'airports'";
    let shapes: i64 = database
        .query_row(shapes, [], |row| row.get(0))
        .expect("a number");
    assert_eq!(shapes, 1);
}

#[tokio::test]
async fn builds_that_were_accepted_or_kept_stay_so() {
    let house = house();
    // Another pattern of its argument makes it another tool.
    let mut other = lookup(house.path());
    let pattern = b"[0-9]{1,9}";
    let at = other
        .windows(pattern.len())
        .position(|bytes| bytes == pattern)
        .expect("the pattern is in the file");
    other[at..at + pattern.len()].copy_from_slice(b"[0-9]{2,9}");
    house.write("plugins/lookup.wasm", other);
    let gateway = house.serve();
    let client = Modern::with_key(gateway.url(), KEY);
    let ticket = client
        .call("lookup_ticket", json!({"ticket_id": "T-1"}))
        .await;
    assert_eq!(
        ticket["structuredContent"]["status"],
        "open",
        "the kept build answers: {ticket}\n{}",
        gateway.log()
    );

    // The previous build was accepted once; a third one never was.
    for (build, is_accepted) in [(None, true), (Some(3), false)] {
        house.write("plugins/tiny-c.wasm", tiny_c(build));
        let digest = weir_tests::gateway::digest(&house.path().join("plugins/tiny-c.wasm"));
        let serves = || {
            let plugins = house.json(&["plugin", "list"]);
            let held = plugins["refused"].to_string().contains(&digest);
            let serving = plugins["plugins"].to_string().contains(&digest);
            (held || serving).then_some(serving)
        };
        let started = Instant::now();
        let serving = loop {
            if let Some(serving) = serves() {
                break serving;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{digest}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(serving, is_accepted, "{build:?}");
    }
}
