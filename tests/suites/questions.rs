//! Tools that ask their caller: the official clients answer through their own handlers, in both eras and over both transports.

use std::{fs, process::Command};

use serde_json::json;
use weir_tests::{House, foreign, place};

/// The guest in JavaScript, and the same one in Rust.
fn house() -> House {
    let house = House::new().own_plugins(&[]).config(
        "[plugins.tools-js]\nmemory_max_mb = 128\n[plugins.weir-guest-tools]\nprefix = \"rust_\"",
    );
    for guest in ["tools-js", "tools-rust"] {
        let component = fs::read(place::guest(guest)).expect("a guest can be read");
        house.write(&format!("plugins/{guest}.wasm"), component);
    }
    house
}

fn check(command: impl Fn() -> Command) {
    let house = house();
    let gateway = house.serve();
    for (tool, mode, over) in [
        ("remove", "auto", json!({"url": gateway.url()})),
        ("rust_remove", "modern", json!({"url": gateway.url()})),
        (
            "rust_remove",
            "auto",
            json!({"command": house.stdio_command()}),
        ),
        ("remove", "legacy", json!({"url": gateway.url()})),
        (
            "rust_remove",
            "legacy",
            json!({"command": house.stdio_command()}),
        ),
    ] {
        let mut plan = json!({
            "mode": mode, "tool": tool, "arguments": {"environment": "prod"}, "other": {"environment": "test"},
            "answers": [
                {"action": "accept", "content": {"sure": true}},
                {"action": "accept", "content": {"sure": false}},
                {"action": "decline"},
                {"action": "cancel"},
            ],
        });
        plan.as_object_mut()
            .expect("an object")
            .extend(over.as_object().expect("an object").clone());
        let report = foreign::report(command(), &plan);
        let why = format!("{tool} {mode}: {report:#}");
        // A caller that cannot be asked gets an error that states it, in the form of its era.
        let unasked = &report["unasked"];
        match mode {
            "legacy" => assert_eq!(
                unasked["structured"]["reason"], "client_cannot_be_asked",
                "{why}"
            ),
            _ => assert_eq!(unasked["code"], -32021, "{why}"),
        }
        let answered = report["answered"].as_array().expect("a report has answers");
        assert_eq!(answered.len(), 4, "{why}");
        let protocol = if mode == "legacy" {
            "2025-11-25"
        } else {
            "2026-07-28"
        };
        assert_eq!(report["protocol"], protocol, "{why}");
        let asked = report["asked"].as_array().expect("a report has questions");
        assert_eq!(asked.len(), 4, "each call asks once: {why}");
        for question in asked {
            assert_eq!(question["message"], "Remove prod?", "{why}");
            assert_eq!(
                question["schema"]["properties"]["sure"]["type"], "boolean",
                "{why}"
            );
            assert_eq!(question["schema"]["required"], json!(["sure"]), "{why}");
        }
        for (outcome, removed) in answered.iter().zip([true, false, false, false]) {
            assert_eq!(
                outcome,
                &json!({"isError": false, "structured": {"removed": removed}}),
                "{why}"
            );
        }
        // A client of the earlier era is asked over the stream of its call, and holds no state.
        if mode == "legacy" {
            continue;
        }
        let manual = &report["manual"];
        for borrowed in ["altered", "others"] {
            assert_eq!(manual[borrowed]["code"], -32602, "{borrowed}: {why}");
            let refused = manual[borrowed]["refused"].as_str().expect("it is refused");
            assert!(
                refused.contains("`params.requestState` belongs to no question of this call"),
                "{why}"
            );
        }
        assert_eq!(
            manual["kept"],
            json!({"isError": false, "structured": {"removed": true}}),
            "{why}"
        );
    }
}

#[test]
fn typescript_2_answers_through_its_handler() {
    check(|| foreign::node_script("questions2.mjs"));
}

#[test]
fn python_2_answers_through_its_callback() {
    check(|| foreign::python_script("python-current", "questions2.py"));
}
