//! The protocol's own conformance suite against the production binary, with `tests/guests/conformance` in its plugins
//! folder: the tools, prompts and resources that the suite looks for. What cannot pass would stand in
//! `suites/conformance/REVISION.yml`, each with what it needs; a scenario that starts to pass fails as stale.

use std::time::Duration;

use weir_tests::{foreign, place};

use crate::sample;

/// Scenarios that must pass, whatever the file of expected failures says.
const MODERN: &[&str] = &[
    "server-stateless",
    "caching",
    "dns-rebinding-protection",
    "tools-list",
    "server-sse-multiple-streams",
    "http-header-validation",
];
const SESSION: &[&str] =
    &["server-initialize", "ping", "tools-list", "dns-rebinding-protection", "server-session-lifecycle"];

#[test]
fn revision_2026_07_28() {
    check("2026-07-28", MODERN);
}

#[test]
fn revision_2025_11_25() {
    check("2025-11-25", SESSION);
}

fn check(revision: &str, must_pass: &[&str]) {
    let expected = place::repository().join(format!("tests/suites/conformance/{revision}.yml"));
    let text = std::fs::read_to_string(&expected).expect("a file of this repository");
    for scenario in must_pass {
        // Single checks may be excused (`scenario:check-id`): those that need tools no contract can declare.
        let excused = text.lines().any(|line| line.trim().split([' ', '#']).nth(1) == Some(scenario));
        assert!(!excused, "{scenario} must pass, yet {} excuses it", expected.display());
    }
    let house = sample::house().own_plugins(&["sheet", "sql", "rest"]);
    house.write("plugins/conformance.wasm", std::fs::read(place::guest("conformance")).expect("a guest can be read"));
    let gateway = house.serve();
    let results = tempfile::tempdir().expect("a temporary folder");
    let mut command = foreign::node();
    command.arg(foreign::node_module("@modelcontextprotocol/conformance/dist/index.js"));
    // The suite's own check of rebinding wants a localhost URL.
    command.args(["server", "--url", &gateway.url().replace("127.0.0.1", "localhost")]);
    command.args(["--suite", "all", "--spec-version", revision, "--timeout", "20000"]);
    command.arg("--expected-failures").arg(&expected).arg("-o").arg(results.path());
    let output = foreign::run(command, Duration::from_secs(600));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    for scenario in must_pass {
        assert!(text.contains(scenario), "{scenario} was not run:\n{text}");
    }
}
