//! The protocol's own conformance suite against the production binary, with `tests/guests/conformance` in its plugins
//! folder: the tools, prompts and resources that the suite looks for. A scenario that cannot pass would be listed in
//! `suites/conformance/REVISION.yml`, with what it needs; a scenario that starts to pass fails as stale.

use std::time::Duration;

use weir_tests::{Gateway, House, foreign, place};

use crate::sample;

/// Scenarios that must pass, whatever the file of expected failures contains.
const MODERN: &[&str] = &[
    "server-stateless",
    "caching",
    "dns-rebinding-protection",
    "tools-list",
    "server-sse-multiple-streams",
    "http-header-validation",
];
const SESSION: &[&str] = &[
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-session-lifecycle",
];

#[test]
fn revision_2026_07_28() {
    check("2026-07-28", MODERN);
}

#[test]
fn revision_2025_11_25() {
    check("2025-11-25", SESSION);
}

/// The scenarios of the extension for tasks, which belong to no revision. The suite itself skips one scenario.
const TASKS: [&str; 9] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

#[test]
fn tasks() {
    // A guest has no way to wait but to work.
    let house = fixture().config("[plugins.weir-guest-conformance]\ncpu_max_ms = 30000");
    let gateway = house.serve();
    for scenario in TASKS {
        let (passed, text) = run(&gateway, &["--scenario", scenario]);
        assert!(passed, "{scenario}: {text}");
    }
}

fn fixture() -> House {
    let house = sample::house().own_plugins(&["sheet", "sql", "rest"]);
    house.write(
        "plugins/conformance.wasm",
        std::fs::read(place::guest("conformance")).expect("a guest can be read"),
    );
    house
}

/// Runs the suite, and returns whether everything passed, and its output.
fn run(gateway: &Gateway, words: &[&str]) -> (bool, String) {
    let results = tempfile::tempdir().expect("a temporary folder");
    let mut command = foreign::node();
    command.arg(foreign::node_module(
        "@modelcontextprotocol/conformance/dist/index.js",
    ));
    // The suite's own check of rebinding requires a localhost URL.
    command.args([
        "server",
        "--url",
        &gateway.url().replace("127.0.0.1", "localhost"),
        "--timeout",
        "20000",
    ]);
    command.args(words).arg("-o").arg(results.path());
    let output = foreign::run(command, Duration::from_secs(600));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.success(), text)
}

fn check(revision: &str, must_pass: &[&str]) {
    let expected = place::repository().join(format!("tests/suites/conformance/{revision}.yml"));
    let text = std::fs::read_to_string(&expected).expect("a file of this repository");
    for scenario in must_pass {
        // Single checks may be excused (`scenario:check-id`): those that need tools no contract can declare.
        let excused = text
            .lines()
            .any(|line| line.trim().split([' ', '#']).nth(1) == Some(scenario));
        assert!(
            !excused,
            "{scenario} must pass, yet {} excuses it",
            expected.display()
        );
    }
    let house = fixture();
    let gateway = house.serve();
    let file = expected.to_str().expect("a plain path");
    let (passed, text) = run(
        &gateway,
        &[
            "--suite",
            "all",
            "--spec-version",
            revision,
            "--expected-failures",
            file,
        ],
    );
    assert!(passed, "{text}");
    for scenario in must_pass {
        assert!(text.contains(scenario), "{scenario} was not run:\n{text}");
    }
}
