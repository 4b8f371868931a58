//! Versions side by side: an agent that is pinned to one keeps it while another is live.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Gateway, House, Modern, place,
    schema::{check, tool},
    until,
};

use crate::sample;

mod breaks;
mod names;
mod places;

/// The contract after its source gave a column another name.
fn renamed() -> String {
    sample::CONTRACT
        .replace("elevation_ft", "elevation_feet")
        .replace("min_elevation_feet", "min_elevation_ft")
}

/// A change that no shim can make up for: an optional argument is demanded.
fn narrower() -> String {
    sample::CONTRACT.replace(
        "{ name: country, type: dropdown, choices: [NO, SE, IS] }",
        "{ name: country, type: dropdown, required: true, choices: [NO, SE, IS] }",
    )
}

fn house() -> House {
    House::new()
        .sheets()
        .file("airports.yaml", sample::CONTRACT)
        .file("renamed.yaml", renamed())
        .file("narrower.yaml", narrower())
        .file("data/airports.csv", sample::DATA)
}

/// Serves the first version, with keys for two agents, the first of which is pinned to it.
fn begin(house: &House) -> (Gateway, String, String) {
    let gateway = house.serve();
    house.succeed(&["contracts", "submit", "airports.yaml"]);
    let keys = ["ann", "bob"].map(|agent| house.key(&["--agent", agent]));
    house.succeed(&["keys", "pin", "ann", "airports@1"]);
    let [ann, bob] = keys;
    (gateway, ann, bob)
}

/// Submits a breaking change and publishes it with these words.
fn publish(house: &House, file: &str, more: &[&str]) -> (i32, String, String) {
    let held = house.json(&["contracts", "submit", file]);
    let [draft, fingerprint] = ["draft", "fingerprint"].map(|key| {
        let value = held[key].as_str();
        value.unwrap_or_else(|| panic!("nothing is held: {held}"))
    });
    let words = ["contracts", "publish", draft, "--fingerprint", fingerprint];
    house.run(&[&words, more].concat())
}

/// Renames the column in the source, and publishes the resulting contract.
fn rename(house: &House, more: &[&str]) {
    let data = sample::DATA.replace("elevation_ft", "elevation_feet");
    house.write("data/airports.csv", data);
    let (code, out, err) = publish(house, "renamed.yaml", more);
    assert_eq!(code, 0, "{out}{err}");
}

async fn version(client: &Modern) -> String {
    let (tools, _) = client.list().await;
    let versions: std::collections::BTreeSet<&str> = tools
        .iter()
        .filter_map(|tool| tool["_meta"]["dev.weir/contract"].as_str())
        .collect();
    versions.into_iter().collect::<Vec<_>>().join(" ")
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["code"]
        .as_str()
        .unwrap_or("none")
}

#[tokio::test]
async fn a_pinned_agent_goes_on_through_a_rename() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    let (ann, bob) = (
        Modern::with_key(gateway.url(), &ann),
        Modern::with_key(gateway.url(), &bob),
    );
    let before = ann.list().await.0;
    rename(&house, &["--keep", "--sunset", "2099-12-31"]);
    assert_eq!(version(&ann).await, "airports@1.0.0");
    assert_eq!(version(&bob).await, "airports@2.0.0");

    let (tools, _) = ann.list().await;
    for (was, is) in before.iter().zip(&tools) {
        for member in ["name", "inputSchema", "outputSchema", "description"] {
            assert_eq!(was[member], is[member]);
        }
        assert_eq!(is["_meta"]["dev.weir/sunset"], "2100-01-01T00:00:00Z");
    }
    for (client, column, tools) in [
        (&ann, "elevation_ft", &tools),
        (&bob, "elevation_feet", &bob.list().await.0),
    ] {
        let arguments = json!({"country": "SE", "min_elevation_ft": 200});
        let result = client.call("list_airports", arguments).await;
        check(tool(tools, "list_airports"), &result);
        let records = &result["structuredContent"]["records"];
        assert_eq!(records[0][column], 506, "{result}");
        assert_eq!(records[0].as_object().map(|it| it.len()), Some(5));
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.ends_with(&result["structuredContent"].to_string()));

        let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        check(tool(tools, "lookup_airport"), &result);
        assert_eq!(result["structuredContent"][column], 681, "{result}");
        let iata = if column == "elevation_ft" {
            "AAA"
        } else {
            "BBB"
        };
        let arguments = json!({"iata": iata, "name": "New", "country": "IS", column: 7});
        let result = client.call("create_airport", arguments).await;
        check(tool(tools, "create_airport"), &result);
        assert_eq!(result["structuredContent"]["record"][column], 7, "{result}");
        let refused = client
            .call("lookup_airport", json!({"iata": "nowhere"}))
            .await;
        assert_eq!(code(&refused), "invalid_arguments");
    }
    let other = json!({"iata": "CCC", "name": "N", "country": "IS", "elevation_feet": 7});
    let refused = ann.call("create_airport", other).await;
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
    let csv = std::fs::read_to_string(house.path().join("data/airports.csv")).expect("read");
    assert!(
        csv.contains("AAA,New,IS,7") && csv.contains("BBB,New,IS,7"),
        "{csv}"
    );

    let shown = house.json(&["contracts", "show", "airports"]);
    assert_eq!(shown["kept"][0]["version"], "1.0.0");
    assert!(shown["kept"][0]["shim"].is_object(), "{shown}");
    let metrics = gateway.metrics().await;
    for line in [
        r#"weir_kept_version_calls_total{contract="airports",version="1.0.0"} 5"#,
        r#"weir_kept_version_sunset_timestamp_seconds{contract="airports",version="1.0.0"} 4102444800"#,
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let (_, trail, _) = house.run(&["audit", "export", "--format", "jsonl"]);
    let of_ann = |line: &&str| line.contains("\"ann\"") && line.contains("airports@1.0.0");
    assert!(trail.lines().any(|line| of_ann(&line)), "{trail}");
    house.succeed(&["keys", "unpin", "ann", "airports"]);
    assert_eq!(version(&ann).await, "airports@2.0.0");
}

#[tokio::test]
async fn a_page_of_a_list_leads_to_the_next_one_in_a_kept_version() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    rename(&house, &["--keep"]);
    let ann = Modern::with_key(gateway.url(), &ann);
    let page = ann.call("list_airports", json!({"limit": 4})).await;
    let next = &page["structuredContent"]["next"];
    assert!(next.is_string(), "{page}");
    let arguments = json!({"limit": 4, "cursor": next});
    let rest = ann.call("list_airports", arguments.clone()).await;
    let records = rest["structuredContent"]["records"].as_array();
    assert_eq!(records.map(Vec::len), Some(2), "{rest}");
    assert!(records.expect("records")[0]["elevation_ft"].is_i64());
    let bob = Modern::with_key(gateway.url(), &bob);
    let refused = bob.call("list_airports", arguments).await;
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
}

#[tokio::test]
async fn a_version_ends_on_its_last_day() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    let soon = time_in(Duration::from_secs(12));
    rename(&house, &["--keep", "--sunset", &soon]);
    let client = Modern::with_key(gateway.url(), &ann);
    assert_eq!(version(&client).await, "airports@1.0.0");
    drop(gateway);
    let gateway = house.serve();
    let client = Modern::with_key(gateway.url(), &ann);
    until("it is no longer served", async || {
        client.list().await.0.is_empty()
    })
    .await;
    let gone = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(code(&gone), "version_gone", "{gone}");
    let text = gone["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.contains("Version 1.0.0 of the contract `airports` ended on"),
        "{text}"
    );
    assert!(text.contains("weir keys pin"), "{text}");
    let answer = client
        .ask(
            "tools/call",
            json!({"name": "no_such_tool", "arguments": {}}),
        )
        .await;
    assert_eq!(answer.error_code(), -32602, "an unknown tool stays one");
    let bob = Modern::with_key(gateway.url(), &bob);
    assert_eq!(version(&bob).await, "airports@2.0.0");
    // The pin moves, and the agent has the live version.
    let (code, _, err) = house.run(&["keys", "pin", "ann", "airports@1"]);
    assert!(
        code != 0 && err.contains("version 1 of `airports` is not served: there is 2.0.0"),
        "{err}"
    );
    house.succeed(&["keys", "pin", "ann", "airports@2"]);
    assert_eq!(version(&client).await, "airports@2.0.0");
}

#[tokio::test]
async fn an_operator_moves_the_last_day() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    rename(&house, &["--keep"]);
    let ann = Modern::with_key(gateway.url(), &ann);
    let words = ["contracts", "sunset", "airports@1"];
    for (more, sunset) in [
        (&["--at", "2099-12-31"][..], json!("2100-01-01T00:00:00Z")),
        (&["--never"][..], Value::Null),
    ] {
        house.succeed(&[&words[..], more].concat());
        let (tools, _) = ann.list().await;
        assert_eq!(tools.len(), 3);
        assert_eq!(tools[0]["_meta"]["dev.weir/sunset"], sunset);
    }
    for past in ["now", "2020-01-01"] {
        house.succeed(&[&words[..], &["--at", past]].concat());
        let gone = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(code(&gone), "version_gone", "{past}: {gone}");
        assert_eq!(version(&ann).await, "");
        house.succeed(&[&words[..], &["--never"]].concat());
        assert_eq!(version(&ann).await, "airports@1.0.0");
    }
    let (code, _, err) = house.run(&["contracts", "sunset", "airports@5", "--never"]);
    assert!(
        code != 0 && err.contains("there is no kept version `airports@5`"),
        "{err}"
    );
}

#[tokio::test]
async fn a_version_that_is_not_kept_is_gone_for_those_pinned_to_it() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    rename(&house, &[]);
    let ann = Modern::with_key(gateway.url(), &ann);
    assert_eq!(version(&ann).await, "");
    let gone = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(code(&gone), "version_gone", "{gone}");
    let bob = Modern::with_key(gateway.url(), &bob);
    assert_eq!(version(&bob).await, "airports@2.0.0");
}

#[tokio::test]
async fn without_a_shim_a_version_goes_on_with_its_own_binding() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    let (code_of, out, err) = publish(&house, "narrower.yaml", &["--keep"]);
    assert_eq!(code_of, 0, "{err}");
    assert!(out.contains("its own binding"), "{out}");
    let (ann, bob) = (
        Modern::with_key(gateway.url(), &ann),
        Modern::with_key(gateway.url(), &bob),
    );
    let all = ann.call("list_airports", json!({})).await;
    let records = all["structuredContent"]["records"].as_array();
    assert_eq!(records.map(Vec::len), Some(6), "{all}");
    let refused = bob.call("list_airports", json!({})).await;
    assert_eq!(code(&refused), "invalid_arguments");
    // Its source no longer carries it.
    let data = sample::DATA.replace("elevation_ft", "height");
    house.write("data/airports.csv", data);
    let gone = ann.call("list_airports", json!({})).await;
    assert_eq!(code(&gone), "source_changed", "{gone}");
}

/// The shim of the guide, for names that cannot be derived and an argument that is required.
#[tokio::test]
async fn an_operator_says_what_the_difference_does_not_show() {
    let house = house();
    let (gateway, ann, _) = begin(&house);
    let guide = std::fs::read_to_string(place::repository().join("docs/versions.md"));
    let guide = guide.expect("the guide");
    let (_, shim) = guide.split_once("```json\n").expect("an example");
    let (shim, _) = shim.split_once("```").expect("its end");
    house.write("shim.json", shim);
    let changed = narrower()
        .replace(
            "name: min_elevation_ft, type: number, min: 0, max: 9000, column: elevation_ft",
            "name: above_ft, type: number, min: 0, max: 9000, column: height",
        )
        .replace("elevation_ft", "height");
    house.write("changed.yaml", changed);
    let data = sample::DATA.replace("elevation_ft", "height");
    house.write("data/airports.csv", data);
    let (code, out, err) = publish(&house, "changed.yaml", &["--keep", "--shim", "shim.json"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("a shim"), "{out}");
    let ann = Modern::with_key(gateway.url(), &ann);
    let arguments = json!({"min_elevation_ft": 100});
    let all = ann.call("list_airports", arguments).await;
    let records = &all["structuredContent"]["records"];
    assert_eq!(records[0]["iata"], "KEF", "{all}");
    assert_eq!(records[0]["elevation_ft"], 171, "{all}");
    assert_eq!(records.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_the_reason() {
    let house = house();
    let (_gateway, _, _) = begin(&house);
    house.write("shim.json", r#"{ "tools": { "list_airports": {} } }"#);
    for (more, message) in [
        (
            &["--keep", "--shim", "shim.json"][..],
            "the shim does not convert every call: 'list_airports'",
        ),
        (
            &["--keep", "--sunset", "2020-01-01"][..],
            "its last day has passed already",
        ),
        (
            &["--keep", "--sunset", "tomorrow"][..],
            "`sunset` must be a day such as 2027-03-31",
        ),
    ] {
        let (code, _, err) = publish(&house, "narrower.yaml", more);
        assert!(code != 0 && err.contains(message), "{err}");
    }
    let held = house.json(&["contracts", "submit", "airports.yaml", "--hold"]);
    assert_eq!(held["verdict"], "unchanged", "{held}");
    let wider = sample::CONTRACT.replace("max: 9000", "max: 12000");
    house.write("wider.yaml", wider);
    let held = house.json(&["contracts", "submit", "wider.yaml", "--hold"]);
    let draft = held["draft"].as_str().expect("held");
    let fingerprint = held["fingerprint"].as_str().expect("held");
    let words = [
        "contracts",
        "publish",
        draft,
        "--fingerprint",
        fingerprint,
        "--keep",
    ];
    let (code, _, err) = house.run(&words);
    assert!(
        code != 0 && err.contains("the change breaks nothing"),
        "{err}"
    );
    let (code, _, err) = house.run(&["keys", "pin", "ann", "airports@7"]);
    assert!(
        code != 0 && err.contains("version 7 of `airports` is not served"),
        "{err}"
    );
}

/// A kept version remains when the live one goes back, returns, or changes once more.
#[tokio::test]
async fn a_rollback_and_further_changes_leave_pinned_agents_alone() {
    let house = house();
    let (gateway, ann, bob) = begin(&house);
    let (ann, bob) = (
        Modern::with_key(gateway.url(), &ann),
        Modern::with_key(gateway.url(), &bob),
    );
    let (code_of, _, err) = publish(&house, "narrower.yaml", &["--keep"]);
    assert_eq!(code_of, 0, "{err}");
    assert_eq!(version(&bob).await, "airports@2.0.0");
    let report = house.json(&["contracts", "rollback", "airports", "--to", "1.0.0"]);
    let fingerprint = report["fingerprint"].as_str().expect("a report");
    let back = ["contracts", "rollback", "airports", "--to", "1.0.0"];
    house.succeed(&[&back[..], &["--fingerprint", fingerprint]].concat());
    for client in [&ann, &bob] {
        assert_eq!(version(client).await, "airports@1.0.0");
    }
    let report = house.json(&["contracts", "rollback", "airports", "--to", "2.0.0"]);
    let fingerprint = report["fingerprint"].as_str().expect("a report");
    let forth = ["contracts", "rollback", "airports", "--to", "2.0.0"];
    house.succeed(&[&forth[..], &["--fingerprint", fingerprint]].concat());
    assert_eq!(version(&ann).await, "airports@1.0.0");
    assert_eq!(version(&bob).await, "airports@2.0.0");
    let wider = narrower().replace("max: 9000", "max: 12000");
    house.write("wider.yaml", wider);
    house.succeed(&["contracts", "submit", "wider.yaml"]);
    assert_eq!(version(&ann).await, "airports@1.0.0");
    assert_eq!(version(&bob).await, "airports@2.1.0");
    house.succeed(&["contracts", "lock", "wider.yaml"]);
    let lock = std::fs::read_to_string(house.path().join("airports.lock.json")).expect("a lock");
    let lock: Value = serde_json::from_str(&lock).expect("JSON");
    assert_eq!(lock["contract"]["version"], "2.1.0", "the live version");
}

/// Returns the time after a while, in RFC 3339.
fn time_in(after: Duration) -> String {
    let at = std::time::SystemTime::now() + after;
    let seconds = at
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let date = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .expect("date runs");
    String::from_utf8(date.stdout)
        .expect("ascii")
        .trim()
        .to_owned()
}
