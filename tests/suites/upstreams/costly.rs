//! Schemas and patterns of a server that make checks expensive: they are left out, or cost no other caller anything.

use std::{collections::BTreeSet, fs, time::Duration};

use futures::future::join_all;
use serde_json::{Map, Value, json};
use weir_tests::{Gateway, House, Modern, strangers::hostile, within};

use super::{code, house, names, serve_listed, show, text, trusted};

/// Returns a schema with the given number of definitions, each made by `refer` from a reference to the next one.
fn levels(length: usize, refer: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for number in 0..length {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), refer(next));
    }
    definitions.insert(format!("d{length}"), json!({ "type": "string" }));
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

/// Returns a schema that applies its last definition 2^30 times to one value.
pub(crate) fn chain() -> Value {
    levels(30, |next| json!({ "allOf": [next, next] }))
}

/// Returns a schema that is cheap to check, and has 2^30 members where each reference is replaced by what it names.
fn wide() -> Value {
    levels(
        30,
        |next| json!({ "type": "object", "properties": { "a": next, "b": next } }),
    )
}

/// Returns a schema that passes through a thousand others for each list in a list, more than the stack of a thread holds.
fn long() -> Value {
    let mut schema = levels(1_000, |next| json!({ "not": next }));
    schema["$defs"]["d1000"] = json!({ "items": { "$ref": "#/$defs/d0" } });
    schema
}

fn recursive(arms: usize) -> Value {
    let arm = |number: usize| json!({ "type": "object", "required": [format!("r{number}")], "properties": { "n": { "$ref": "#/$defs/node" } } });
    let arms: Vec<Value> = (0..arms).map(arm).collect();
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/node" } }, "$defs": { "node": { "oneOf": arms } } })
}

/// Returns a house whose server has these tools.
fn with_tools(tools: &Value) -> House {
    let house = house(&[]);
    let file = house.path().join("tools.json");
    fs::write(&file, tools.to_string()).expect("the tools");
    let lists = hostile(&["lists", &file.display().to_string()]);
    house.config(&trusted("up", &lists))
}

/// Searches find only the tools that are served, their calls are bounded as others are, and a list for clients that follow no
/// references does not grow without bound.
async fn check_views(gateway: &Gateway, nested: &Value) {
    let find = Modern::new(gateway.view_url("find"));
    let asked = json!({ "query": "deep good looks wide chain twenty output", "limit": 20 });
    let answer = find.call("find_tools", asked).await;
    let tools = answer["structuredContent"]["tools"]
        .as_array()
        .expect("tools");
    let found: BTreeSet<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let served = ["up_deep", "up_good", "up_looks", "up_wide"];
    assert_eq!(found, BTreeSet::from(served), "{answer}");
    let deep = json!({ "name": "up_deep", "arguments": { "a": nested } });
    let refused = find.call("call_tool", deep).await;
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
    let gemini = Modern::new(gateway.view_url("gemini"));
    let listed = gemini.ask("tools/list", json!({})).await;
    let bytes = listed.text.len();
    assert!(
        listed.text.contains("up_wide") && bytes < 16 << 20,
        "{bytes} bytes"
    );
}

#[tokio::test]
async fn schemas_that_explode_are_left_out_and_costly_calls_do_not_hold_up_others() {
    let tool = |name: &str, input: Value| json!({ "name": name, "description": "Does it.", "inputSchema": input });
    let looking = json!({ "type": "object", "properties": { "p": { "type": "string", "pattern": "^(?:(?=a)a|aa)+$" } } });
    let output = json!({ "name": "output", "description": "Does it.", "inputSchema": { "type": "object" }, "outputSchema": chain() });
    let tools = json!({ "tools": [
        tool("chain", chain()), tool("twenty", recursive(20)), output, tool("long", long()),
        tool("deep", recursive(3)), tool("wide", wide()), tool("looks", looking), tool("good", json!({ "type": "object" })),
    ] });
    let house = house(&[]);
    let file = house.path().join("tools.json");
    fs::write(&file, tools.to_string()).expect("the tools");
    let house = house
        .config("[views.find]\nsearch = true\n[views.gemini]\nprofile = \"gemini\"")
        .config(&trusted(
            "up",
            &hostile(&["lists", &file.display().to_string()]),
        ));
    let (gateway, client) = serve_listed(&house, "up_good").await;
    let served = names(&client).await;
    for name in ["up_chain", "up_twenty", "up_output", "up_long"] {
        assert!(!served.contains(name), "{served:?}");
    }
    let left_out = show(&house, "up")["left_out"].to_string();
    assert_eq!(
        left_out.matches("at most 200000 are accepted").count(),
        3,
        "{left_out}"
    );
    assert!(
        left_out.contains("at most 2048 may apply within each other"),
        "{left_out}"
    );

    // Each of these would take the validator 3^50 steps.
    let mut nested = json!({});
    for _ in 0..50 {
        nested = json!({ "n": nested });
    }
    check_views(&gateway, &nested).await;
    let costly = (0..6).map(|_| client.call("up_deep", json!({ "a": nested })));
    // As many as a server is asked at once.
    let others = (0..16).map(|_| client.call("up_good", json!({})));
    let (costly, others) = futures::join!(join_all(costly), join_all(others));
    for refused in costly {
        assert_eq!(code(&refused), "invalid_arguments", "{refused}");
    }
    for answer in others {
        assert!(text(&answer).starts_with(r#"{"name": "good""#), "{answer}");
    }

    // The server itself validates what takes too long here.
    let answer = client.call("up_looks", json!({ "p": "aab" })).await;
    assert_eq!(code(&answer), "invalid_arguments", "{answer}");
    let long = format!("{}b", "a".repeat(20_000));
    let answer = client.call("up_looks", json!({ "p": long })).await;
    assert!(text(&answer).starts_with(r#"{"name": "looks""#), "{answer}");
}

#[tokio::test]
async fn the_memory_of_large_answers_that_are_refused_is_given_back() {
    let all = json!({ "type": "array", "uniqueItems": true });
    let output = json!({ "type": "object", "properties": { "all": all } });
    let tools = json!({ "tools": [{
        "name": "objects", "description": "Does it.", "inputSchema": { "type": "object" }, "outputSchema": output,
    }] });
    let house = with_tools(&tools);
    let (gateway, client) = serve_listed(&house, "up_objects").await;
    let before = gateway.own_memory_kb();

    let calls = (0..8).map(|_| client.call("up_objects", json!({ "count": 500_000 })));
    for refused in join_all(calls).await {
        let reason = text(&refused);
        assert!(
            reason.contains("something other than it declares"),
            "{reason}"
        );
    }
    let limit = Duration::from_secs(30);
    within(limit, "memory given back", async || {
        gateway.own_memory_kb() < before + (150 << 10)
    })
    .await;
}

/// The validator gives each fault a copy of its place, and the caller chooses the names in it.
#[tokio::test]
async fn a_long_name_before_many_faults_takes_little_memory() {
    let arm = |names: [&str; 4]| json!({ "type": "object", "required": names });
    let (one, other) = (arm(["a", "b", "c", "d"]), arm(["e", "f", "g", "h"]));
    let items = json!({ "anyOf": [one, other, { "type": "string" }] });
    let labels =
        json!({ "type": "object", "additionalProperties": { "type": "array", "items": items } });
    let input = json!({ "type": "object", "properties": { "labels": labels } });
    let tool = json!({ "name": "tag", "description": "Does it.", "inputSchema": input });
    let house = with_tools(&json!({ "tools": [tool] }));
    let (gateway, client) = serve_listed(&house, "up_tag").await;

    let labels = json!({ ("n".repeat(100_000)): vec![json!({}); 2_000] });
    let refused = client.call("up_tag", json!({ "labels": labels })).await;
    assert_eq!(code(&refused), "invalid_arguments");
    let bytes = refused.to_string().len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
    gateway.stayed_within_a_gigabyte();
}
