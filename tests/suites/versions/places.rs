//! The places where a kept version is found: its own endpoints, views, and under policies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{Legacy, Modern, answer_to, http};

use super::{begin, code, house, publish, rename, version};

/// Policies are written for the live version, and apply to those who call another one.
#[tokio::test]
async fn policies_hold_in_a_kept_version() {
    const POLICY: &str = r#"
        forbid(principal, action == Weir::Action::"list_airports", resource)
        when { context.args has min_elevation_ft && context.args.min_elevation_ft > 500 };
    "#;
    for (file, has_shim) in [("renamed.yaml", true), ("narrower.yaml", false)] {
        let house = house();
        let (gateway, ann, _) = begin(&house);
        if has_shim {
            rename(&house, &["--keep"]);
        } else {
            let (code, _, err) = publish(&house, file, &["--keep"]);
            assert_eq!(code, 0, "{err}");
        }
        let ann = Modern::with_key(gateway.url(), &ann);
        let call = |least: i64| ann.call("list_airports", json!({"min_elevation_ft": least}));
        assert_eq!(code(&call(600).await), "none");
        house.write("policies/low.cedar", POLICY);
        let started = Instant::now();
        while code(&call(600).await) != "forbidden" {
            assert!(started.elapsed() < Duration::from_secs(30), "{file}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Arguments that policies cannot read are let through by none.
        let wanted = if has_shim { "none" } else { "forbidden" };
        assert_eq!(code(&call(100).await), wanted, "{file}");
        let free = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(code(&free), "none", "{free}");
    }
}

#[tokio::test]
async fn views_and_their_search_have_the_pinned_version() {
    let house = house().config("[views.reading]\nread_only = true\n[views.find]\nsearch = true");
    let (gateway, ann, bob) = begin(&house);
    rename(&house, &["--keep"]);
    for (key, wanted, column) in [
        (&ann, "airports@1.0.0", "elevation_ft"),
        (&bob, "airports@2.0.0", "elevation_feet"),
    ] {
        let view = Modern::with_key(gateway.view_url("reading"), key);
        assert_eq!(view.list().await.0.len(), 2);
        assert_eq!(version(&view).await, wanted);
        let find = Modern::with_key(gateway.view_url("find"), key);
        let found = find
            .call("find_tools", json!({"query": "add an airport"}))
            .await;
        let found = found["structuredContent"].to_string();
        assert!(found.contains(&format!("\"{column}\"")), "{found}");
        let arguments = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
        let result = find.call("call_tool", arguments).await;
        assert_eq!(result["structuredContent"][column], 681, "{result}");
    }
}

#[tokio::test]
async fn a_version_has_an_endpoint_of_its_own() {
    let house = house();
    let (gateway, _, bob) = begin(&house);
    let narrow = house.key(&["--agent", "eve", "--contract", "other"]);
    rename(&house, &["--keep"]);
    let at = |name: &str| gateway.contract_url(name);
    for (name, wanted) in [
        ("airports@1", "airports@1.0.0"),
        ("airports@2", "airports@2.0.0"),
        ("airports", "airports@2.0.0"),
    ] {
        let client = Modern::with_key(at(name), &bob);
        assert_eq!(version(&client).await, wanted);
        let session = Legacy::open_as(at(name), "2025-11-25", Some(&bob)).await;
        let result = session.call("lookup_airport", json!({"iata": "OSL"})).await;
        let column = match wanted {
            "airports@1.0.0" => "elevation_ft",
            _ => "elevation_feet",
        };
        assert_eq!(result["structuredContent"][column], 681, "{result}");
    }
    // What does not exist and what is hidden look the same.
    let mut answers = Vec::new();
    for (name, key) in [
        ("airports@3", &bob),
        ("nothing@1", &bob),
        ("airports@1", &narrow),
        ("airports@3", &narrow),
    ] {
        let answer = Modern::with_key(at(name), key)
            .ask("tools/list", json!({}))
            .await;
        let message = answer.reply()["error"]["message"].as_str();
        let message = message.unwrap_or_default().replace(name, "X");
        answers.push((answer.status, message));
    }
    assert_eq!(answers[0].0, 404);
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let base = gateway.url().replace("/mcp", "");
    for (path, wanted) in [
        ("/rest/airports@1/openapi.json", "1.0.0"),
        ("/rest/airports@2/openapi.json", "2.0.0"),
    ] {
        let document = http().get(format!("{base}{path}")).bearer_auth(&bob);
        let document = answer_to(document).await;
        let document: Value = document.json().await.expect("a document");
        assert_eq!(document["info"]["version"], wanted, "{document}");
    }
    let called = http()
        .post(format!("{base}/rest/airports@1/lookup_airport"))
        .bearer_auth(&bob)
        .json(&json!({"iata": "OSL"}));
    let called = answer_to(called).await;
    let called: Value = called.json().await.expect("JSON");
    assert_eq!(called["elevation_ft"], 681, "{called}");
}
