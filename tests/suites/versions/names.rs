//! Tests the rest of a kept version besides its calls: names, rates, rights, records, and their number.

use serde_json::{Value, json};
use weir_tests::{House, Modern, until};

use super::{begin, code, house, publish, rename, version};
use crate::sample;

/// The contract with another name for its first tool.
fn renamed_tool() -> String {
    sample::CONTRACT.replace("lookup_airport", "find_airport")
}

/// Another contract that has a tool of the old name.
fn other() -> String {
    let (head, tools) = sample::CONTRACT.split_once("tools:\n").expect("tools");
    let (lookup, _) = tools.split_once("  - tool: list_airports").expect("two");
    format!("{head}tools:\n{lookup}").replace("contract: airports", "contract: places")
}

/// The contract with an update in addition to its other tools.
fn with_update() -> String {
    const UPDATE: &str = r#"
  - tool: correct_airport
    description: Corrects the elevation of an airport.
    verb: update
    collection: airports
    fields:
      - { name: iata, type: text, required: true, pattern: "^[A-Z]{3}$" }
      - { name: elevation_ft, type: number, nullable: true }
"#;
    [sample::CONTRACT, UPDATE].concat()
}

fn keep(house: &House, file: &str, text: String) {
    house.write(file, text);
    let (code, out, err) = publish(house, file, &["--keep"]);
    assert_eq!(code, 0, "{out}{err}");
}

#[tokio::test]
async fn the_names_of_a_kept_version_are_taken_until_it_ends() {
    const TAKEN: &str = "the tool `lookup_airport` is defined by the contract `airports` already";
    let house = house();
    let (gateway, ann, _) = begin(&house);
    keep(&house, "renamed.yaml", renamed_tool());
    house.write("other.yaml", other());
    let ann = Modern::with_key(gateway.url(), &ann);
    let lookup = || ann.call("lookup_airport", json!({"iata": "OSL"}));
    assert_eq!(code(&lookup().await), "none");
    let (code_of, out, err) = house.run(&["contracts", "submit", "other.yaml"]);
    assert!(
        code_of != 0 && format!("{out}{err}").contains(TAKEN),
        "{out}{err}"
    );

    let sunset = ["contracts", "sunset", "airports@1"];
    house.succeed(&[&sunset[..], &["--at", "2020-01-01"]].concat());
    assert_eq!(code(&lookup().await), "version_gone");
    house.succeed(&["contracts", "submit", "other.yaml"]);
    // The tool of the other contract answers those too who are pinned to the version that has ended.
    assert_eq!(code(&lookup().await), "none");
    assert_eq!(version(&ann).await, "places@1.0.0");
    // The version cannot be restored, since another contract has its name by now.
    let taken = "the tool `lookup_airport` is defined by the contract `places` already";
    let (code_of, _, err) = house.run(&[&sunset[..], &["--never"]].concat());
    assert!(code_of != 0 && err.contains(taken), "{err}");
    assert_eq!(version(&ann).await, "places@1.0.0");
}

/// An update requires a member besides its key, and may name those that it empties.
#[tokio::test]
async fn an_update_goes_on_when_its_column_has_another_name() {
    let house = house().file("airports.yaml", with_update());
    let (gateway, ann, _) = begin(&house);
    let renamed = with_update()
        .replace("elevation_ft", "elevation_feet")
        .replace("min_elevation_feet", "min_elevation_ft");
    house.write("renamed.yaml", renamed);
    rename(&house, &["--keep"]);
    let ann = Modern::with_key(gateway.url(), &ann);
    assert_eq!(version(&ann).await, "airports@1.0.0");
    for (change, elevation) in [
        (json!({"iata": "OSL", "elevation_ft": 7}), json!(7)),
        (
            json!({"iata": "OSL", "clear": ["elevation_ft"]}),
            json!(null),
        ),
    ] {
        let result = ann.call("correct_airport", change).await;
        let record = &result["structuredContent"]["record"];
        assert_eq!(record["elevation_ft"], elevation, "{result}");
        assert_eq!(record["iata"], "OSL", "{result}");
    }
    let refused = ann.call("correct_airport", json!({"iata": "OSL"})).await;
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
}

/// A write is one write in all versions, and its result has the form of one version.
#[tokio::test]
async fn a_kept_result_is_no_answer_where_results_have_another_form() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    rename(&house, &["--keep"]);
    let create = async |endpoint: String, column: &str| {
        let client = Modern::with_key(endpoint, &ann);
        let params = json!({
            "name": "create_airport",
            "arguments": {"iata": "AAA", "name": "New", "country": "IS", column: 7},
            "_meta": {"dev.weir/idempotency-key": "k1"},
        });
        client.ask("tools/call", params).await.result().clone()
    };
    let old = || gateway.url();
    let first = create(old(), "elevation_ft").await;
    assert_eq!(first["isError"], false, "{first}");
    let again = create(old(), "elevation_ft").await;
    assert_eq!(again["_meta"]["dev.weir/replayed"], true, "{again}");
    let endpoint = gateway.contract_url("airports@2");
    let other = create(endpoint, "elevation_feet").await;
    assert_eq!(
        other["structuredContent"]["reason"], "done_before",
        "{other}"
    );
    let csv = std::fs::read_to_string(house.path().join("data/airports.csv")).expect("read");
    assert_eq!(csv.matches("AAA,").count(), 1, "{csv}");
}

#[tokio::test]
async fn a_tool_under_its_old_name_takes_from_the_same_rate_and_is_recorded_as_hidden() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    let narrow = ["--agent", "eve", "--tool", "list_airports"];
    let eve = house.key(&narrow);
    house.succeed(&["keys", "pin", "eve", "airports@1"]);
    let limited = renamed_tool().replacen(
        "verb: lookup",
        "verb: lookup\n    limits: { rate: 2/min }",
        1,
    );
    keep(&house, "renamed.yaml", limited);
    let iata = json!({"iata": "OSL"});
    let [ann, bob, eve] = [&ann, &bob, &eve].map(|key| Modern::with_key(gateway.url(), key));
    for wanted in ["none", "none", "rate_limited"] {
        let result = ann.call("lookup_airport", iata.clone()).await;
        assert_eq!(code(&result), wanted, "{result}");
    }
    house.succeed(&["keys", "unpin", "ann", "airports"]);
    let result = ann.call("find_airport", iata.clone()).await;
    assert_eq!(
        code(&result),
        "rate_limited",
        "one rate has both names: {result}"
    );
    // For those who are not pinned the old name is not a tool; from eve, who is, it is hidden.
    for (client, agent, hidden) in [(&bob, "bob", false), (&eve, "eve", true)] {
        let body = json!({"name": "lookup_airport", "arguments": iata});
        assert_eq!(client.ask("tools/call", body).await.error_code(), -32602);
        let (_, trail, _) = house.run(&["audit", "export", "--format", "jsonl"]);
        let record = trail.lines().rev().find(|line| {
            line.contains(&format!("\"{agent}\"")) && line.contains("\"lookup_airport\"")
        });
        let record = record.unwrap_or_else(|| panic!("no record of {agent}: {trail}"));
        let is_hidden = record.contains("\"hidden\":true");
        assert_eq!(is_hidden, hidden, "{record}");
    }
}

#[tokio::test]
async fn policies_hide_what_the_live_version_does_not_have() {
    let house = house();
    let (gateway, _, bob) = begin(&house);
    let (fewer, _) = sample::CONTRACT
        .split_once("  - tool: create_airport")
        .expect("it");
    keep(&house, "fewer.yaml", fewer.to_owned());
    let client = Modern::with_key(gateway.contract_url("airports@1"), &bob);
    assert_eq!(client.list().await.0.len(), 3);
    house.write(
        "policies/all.cedar",
        "forbid(principal == Weir::Agent::\"stranger\", action, resource);",
    );
    until("the tool is hidden", async || {
        client.list().await.0.len() == 2
    })
    .await;
}

#[tokio::test]
async fn a_retired_contract_takes_its_versions_with_it() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    keep(&house, "renamed.yaml", renamed_tool());
    let report = house.json(&["contracts", "retire", "airports"]);
    let draft = report["draft"].as_str().expect("a draft");
    let fingerprint = report["fingerprint"].as_str().expect("a draft");
    house.succeed(&["contracts", "publish", draft, "--fingerprint", fingerprint]);
    let held = house.json(&["contracts", "submit", "renamed.yaml"]);
    assert_ne!(held["verdict"], "refused", "{held}");
    let shown = house.json(&["contracts", "show", "airports"]);
    assert_eq!(shown["kept"], json!([]), "{shown}");
    let ann = Modern::with_key(gateway.url(), &ann);
    assert_eq!(version(&ann).await, "", "ann is pinned to what is gone");
}

#[tokio::test]
async fn four_versions_are_kept_and_one_that_ended_makes_room() {
    let house = house();
    let (_gateway, _, _) = begin(&house);
    let lower = |max: u32| sample::CONTRACT.replace("max: 9000", &format!("max: {max}"));
    for max in [8000, 7000, 6000, 5000] {
        keep(&house, "lower.yaml", lower(max));
    }
    let majors = || {
        let shown = house.json(&["contracts", "show", "airports"]);
        let kept = shown["kept"].as_array().expect("a list").clone();
        let version = |kept: &Value| kept["version"].as_str().expect("one").to_owned();
        let mut kept: Vec<_> = kept.iter().map(version).collect();
        kept.sort();
        kept
    };
    assert_eq!(majors(), ["1.0.0", "2.0.0", "3.0.0", "4.0.0"]);
    house.write("lower.yaml", lower(4000));
    let (code, _, err) = publish(&house, "lower.yaml", &["--keep"]);
    assert!(
        code != 0 && err.contains("4 versions of it are kept already: end one of them first"),
        "{err}"
    );
    house.succeed(&["contracts", "sunset", "airports@2", "--at", "2020-01-01"]);
    keep(&house, "lower.yaml", lower(4000));
    assert_eq!(majors(), ["1.0.0", "3.0.0", "4.0.0", "5.0.0"]);
}
