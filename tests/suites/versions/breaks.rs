//! Kept versions while their contract breaks again.

use serde_json::{Value, json};
use weir_tests::{House, Modern};

use super::{begin, code, house, publish};
use crate::sample;

/// The names of the elevation in each version: the argument and the column. None gives another away.
const FIRST: (&str, &str) = ("min_elevation_ft", "elevation_ft");
const SECOND: (&str, &str) = ("above", "height");
const THIRD: (&str, &str) = ("floor", "level");

fn named((argument, column): (&str, &str)) -> String {
    sample::CONTRACT
        .replace(FIRST.0, argument)
        .replace(FIRST.1, column)
}

/// Returns what converts calls of a version with these names to those of one with the others.
fn shim(from: (&str, &str), to: (&str, &str)) -> String {
    let column = |inside: &str| {
        let at = format!("{inside}/{}", from.1);
        json!([{ "rename": { "at": at, "to": to.1 } }])
    };
    let argument = json!([{ "rename": { "at": format!("/{}", from.0), "to": to.0 } }]);
    let tools = json!({
        "list_airports": { "input": argument, "output": column("/records/*") },
        "lookup_airport": { "output": column("") },
        "create_airport": { "input": column(""), "output": column("/record") },
    });
    json!({ "tools": tools }).to_string()
}

/// Gives the elevation other names, and keeps the version before by an operator's shim.
fn change(house: &House, from: (&str, &str), to: (&str, &str)) {
    change_to(house, named(to), from, to);
}

fn change_to(house: &House, text: String, from: (&str, &str), to: (&str, &str)) {
    house.write("changed.yaml", text);
    house.write("shim.json", shim(from, to));
    let data = sample::DATA.replace(FIRST.1, to.1);
    house.write("data/airports.csv", data);
    let (code, out, err) = publish(house, "changed.yaml", &["--keep", "--shim", "shim.json"]);
    assert_eq!(code, 0, "{out}{err}");
}

/// Returns the shims of the kept versions, by version.
fn shims(house: &House) -> Vec<(String, Value)> {
    let shown = house.json(&["contracts", "show", "airports"]);
    let kept = shown["kept"].as_array().expect("a list").iter();
    let mut shims: Vec<(String, Value)> = kept
        .map(|kept| {
            let version = kept["version"].as_str().expect("a version");
            (version.to_owned(), kept["shim"].clone())
        })
        .collect();
    shims.sort_by(|one, other| one.0.cmp(&other.0));
    shims
}

fn go_back(house: &House, to: &str) {
    let words = ["contracts", "rollback", "airports", "--to", to];
    let report = house.json(&words);
    let fingerprint = report["fingerprint"].as_str().expect("a report");
    house.succeed(&[&words[..], &["--fingerprint", fingerprint]].concat());
}

#[tokio::test]
async fn an_operators_shim_is_carried_on_through_the_next_break() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    change(&house, FIRST, SECOND);
    change(&house, SECOND, THIRD);
    let kept = shims(&house);
    assert_eq!(kept.len(), 2, "{kept:?}");
    for ((version, shim), wanted) in kept.iter().zip(["1.0.0", "2.0.0"]) {
        assert_eq!(version, wanted);
        assert!(shim.is_object(), "{version}: {shim}");
    }
    let first = Modern::with_key(gateway.url(), &ann);
    let second = Modern::with_key(gateway.contract_url("airports@2"), &ann);
    for (client, (argument, column), iata) in [(&first, FIRST, "AAA"), (&second, SECOND, "BBB")] {
        let all = client.call("list_airports", json!({ argument: 500 })).await;
        let records = &all["structuredContent"]["records"];
        assert_eq!(records[0]["iata"], "GOT", "{all}");
        assert_eq!(records[0][column], 506, "{all}");
        let new = json!({ "iata": iata, "name": "New", "country": "IS", column: 7 });
        let made = client.call("create_airport", new).await;
        assert_eq!(made["structuredContent"]["record"][column], 7, "{made}");
    }

    // Each live version has the shim that was made for it.
    let to = |shims: &[(String, Value)]| {
        let (_, first) = &shims[0];
        first["tools"]["list_airports"]["input"][0]["rename"]["to"].clone()
    };
    assert_eq!(to(&shims(&house)), THIRD.0);
    go_back(&house, "2.0.0");
    assert_eq!(to(&shims(&house)), SECOND.0);
    go_back(&house, "3.0.0");
    assert_eq!(to(&shims(&house)), THIRD.0);
}

#[tokio::test]
async fn a_draft_names_the_kept_versions_that_would_lose_their_shim() {
    let house = house();
    let (gateway, _, _) = begin(&house);
    change(&house, FIRST, SECOND);
    let demanding = named(SECOND).replace(
        "{ name: country, type: dropdown, choices: [NO, SE, IS] }",
        "{ name: country, type: dropdown, required: true, choices: [NO, SE, IS] }",
    );
    house.write("changed.yaml", demanding);
    let held = house.json(&["contracts", "submit", "changed.yaml"]);
    gateway.wait_for_log("if this draft is published as it is, no shim converts the calls");
    let draft = held["draft"].as_str().expect("it is held");
    let report = house.json(&["contracts", "show", draft]);
    let beside = &report["keeping"]["beside"];
    assert_eq!(beside[0]["version"], "1.0.0", "{beside}");
    assert!(beside[0]["shim"].is_null(), "{beside}");
    assert!(beside[0]["missing"].is_string(), "{beside}");
    let (_, shown, _) = house.run(&["contracts", "show", draft]);
    let line = "version 1.0.0, which is kept, would lose its shim";
    assert!(shown.contains(line), "{shown}");
}

/// The columns of a plan are those of the version that is called.
#[tokio::test]
async fn a_plan_of_a_kept_version_has_its_names() {
    let approved =
        |text: String| text.replace("verb: create", "verb: create\n    approval: required");
    let house = house().file("airports.yaml", approved(named(FIRST)));
    let (gateway, ann, _) = begin(&house);
    change_to(&house, approved(named(SECOND)), FIRST, SECOND);
    let ann = Modern::with_key(gateway.url(), &ann);
    let new = json!({ "iata": "AAA", "name": "New", "country": "IS", (FIRST.1): 7 });
    let has_old_names = |plan: &Value| {
        let changed = plan["changed"].as_array().expect("columns");
        changed.contains(&json!(FIRST.1)) && !changed.contains(&json!(SECOND.1))
    };

    let meta = json!({ "dev.weir/plan": true });
    let params = json!({ "name": "create_airport", "arguments": new, "_meta": meta });
    let answer = ann.ask("tools/call", params).await.result().clone();
    let plan = &answer["_meta"]["dev.weir/plan"];
    assert!(has_old_names(plan), "{answer}");
    assert_eq!(plan["after"][FIRST.1], 7, "{answer}");
    assert_eq!(&answer["structuredContent"]["plan"], plan, "{answer}");
    let text = answer["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("`elevation_ft`"), "{text}");

    let waiting = ann.call("create_airport", new).await;
    assert_eq!(code(&waiting), "approval_required", "{waiting}");
    let plan = &waiting["structuredContent"]["plan"];
    assert!(has_old_names(plan), "{waiting}");
    let text = waiting["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("`elevation_ft`"), "{text}");
}

/// What a source refuses has the column by the name that the caller sent.
#[tokio::test]
async fn a_refusal_of_a_kept_version_has_its_names() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    let key =
        |inside: &str| json!([{ "rename": { "at": format!("{inside}/iata"), "to": "code" } }]);
    let tools = json!({
        "list_airports": { "output": key("/records/*") },
        "lookup_airport": { "input": key(""), "output": key("") },
        "create_airport": { "input": key(""), "output": key("/record") },
    });
    house.write("shim.json", json!({ "tools": tools }).to_string());
    house.write("changed.yaml", sample::CONTRACT.replace("iata", "code"));
    house.write("data/airports.csv", sample::DATA.replace("iata", "code"));
    let (status, out, err) = publish(&house, "changed.yaml", &["--keep", "--shim", "shim.json"]);
    assert_eq!(status, 0, "{out}{err}");
    let new = |key: &str| json!({ (key): "GOT", "name": "New", "country": "IS" });
    for (endpoint, key) in [("airports@1", "iata"), ("airports@2", "code")] {
        let client = Modern::with_key(gateway.contract_url(endpoint), &ann);
        let refused = client.call("create_airport", new(key)).await;
        assert_eq!(code(&refused), "conflict", "{refused}");
        assert_eq!(refused["structuredContent"]["field"], key, "{refused}");
    }
}
