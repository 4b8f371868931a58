//! Everything at once behind one URL: ten servers that nobody here wrote, three contracts of our own and a plugin, for every
//! official client.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{House, Modern, foreign, place, strangers::STRANGERS};

use crate::{sample, upstreams::trusted};

/// Ten servers start at once, on a machine that does something else as well.
const START: Duration = Duration::from_secs(120);

#[tokio::test]
async fn ten_servers_three_contracts_and_a_plugin_are_one_server_to_every_official_client() {
    let scratch = tempfile::tempdir().expect("a folder");
    fs::write(scratch.path().join("a.txt"), "a file").expect("written");
    let mut house = House::new().own_plugins(&["sheet"]).sheets().file("data/airports.csv", sample::DATA);
    for (name, prefix) in [("airports", ""), ("airports-two", "two"), ("airports-three", "three")] {
        let prefix = if prefix.is_empty() { String::new() } else { format!("\nprefix: {prefix}") };
        let contract = sample::CONTRACT.replace("contract: airports", &format!("contract: {name}{prefix}"));
        house = house.file(&format!("contracts/{name}.yaml"), &contract);
    }
    house.write("plugins/tools-rust.wasm", fs::read(place::guest("tools-rust")).expect("a guest can be read"));
    for stranger in &STRANGERS {
        house = house.config(&trusted(stranger.name, &stranger.command(scratch.path())));
    }
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    // The number of tools of each server as it was pinned here, those that no client can be asked for left out.
    let counts = [
        ("everything_", 13),
        ("filesystem_", 14),
        ("memory_", 9),
        ("sequential-thinking_", 1),
        ("github_", 26),
        ("playwright_", 25),
        ("time_", 2),
        ("git_", 12),
        ("fetch_", 1),
        ("sqlite_", 6),
    ];
    let started = Instant::now();
    let names = loop {
        let (tools, _) = client.list().await;
        let names: BTreeSet<String> =
            tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect();
        let of = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
        if counts.iter().all(|(prefix, count)| of(prefix) == *count) {
            break names;
        }
        let found: Vec<_> = counts.iter().map(|(prefix, count)| (*prefix, of(prefix), *count)).collect();
        assert!(started.elapsed() < START, "not in time: {found:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(names.contains("two_lookup_airport") && names.contains("three_lookup_airport") && names.contains("deploy"));
    let file = scratch.path().join("a.txt");
    let calls = json!([
        { "tool": "lookup_airport", "arguments": { "iata": "OSL" } },
        { "tool": "three_lookup_airport", "arguments": { "iata": "OSL" } },
        { "tool": "deploy", "arguments": { "environment": "prod", "service": "web" } },
        { "tool": "everything_echo", "arguments": { "message": "hello" } },
        { "tool": "filesystem_read_text_file", "arguments": { "path": file } },
        { "tool": "memory_read_graph", "arguments": {} },
        { "tool": "time_get_current_time", "arguments": { "timezone": "UTC" } },
        { "tool": "sqlite_list_tables", "arguments": {} },
    ]);
    for (command, mode) in [
        (foreign::node_script("typescript1.mjs"), "legacy"),
        (foreign::node_script("typescript2.mjs"), "auto"),
        (foreign::node_script("typescript2.mjs"), "modern"),
        (foreign::node_script("typescript2.mjs"), "legacy"),
        (foreign::python_script("python-mcp1", "mcp1.py"), "legacy"),
        (foreign::python_script("python-current", "mcp2.py"), "auto"),
        (foreign::python_script("python-current", "mcp2.py"), "legacy"),
    ] {
        let client = format!("{command:?} {mode}");
        let report = foreign::report(command, &json!({ "url": gateway.url(), "mode": mode, "calls": calls }));
        assert_eq!(report["tools"].as_array().map(Vec::len), Some(names.len()), "{client}");
        let outcomes = report["calls"].as_array().expect("a report has calls");
        for (call, outcome) in calls.as_array().expect("a list").iter().zip(outcomes) {
            assert_eq!(outcome["isError"], Value::Bool(false), "{client}: {call}: {outcome}");
        }
        let text = |at: usize| outcomes[at]["text"].as_str().unwrap_or_default().to_owned();
        assert!(text(3).contains("hello") && text(4).contains("a file"), "{client}: {outcomes:?}");
    }
}
