//! Writes of plugins' tools and of other servers' tools that wait for a person: a person approves the arguments.

use serde_json::{Value, json};
use weir_tests::{Admin, House, Modern, place, read_output, strangers::hostile};

use super::ADMIN;
use crate::{
    sample,
    upstreams::{entry, serve_listed},
};

/// Returns the error that a tool answers with, wherever its results have one.
fn error(result: &Value) -> &Value {
    match result["structuredContent"]["code"].is_string() {
        true => &result["structuredContent"],
        false => &result["_meta"]["dev.weir/error"],
    }
}

/// Returns the plan that a call waits as.
pub(crate) fn plan(result: &Value) -> String {
    let error = error(result);
    assert_eq!(error["code"], "approval_required", "{result}");
    error["plan"]["id"].as_str().expect("a plan").to_owned()
}

/// Approves a plan, and returns it as the person sees it.
pub(crate) async fn approve(admin: &Admin, id: &str) -> Value {
    let path = format!("/v1/approvals/{id}");
    let (_, shown) = admin.ask("GET", &path, "").await;
    let body = json!({ "fingerprint": shown["fingerprint"] }).to_string();
    admin
        .succeed("POST", &format!("{path}/approve"), body)
        .await;
    shown
}

#[tokio::test]
async fn a_write_of_a_plugin_runs_after_a_person_approved_it_and_once() {
    let config = "[plugins.weir-guest-tools]\napproval = [\"deploy\", \"remove\"]\n";
    let house = House::new().own_plugins(&[]).config(config).config(ADMIN);
    let guest = std::fs::read(place::guest("tools-rust")).expect("a guest can be read");
    house.write("plugins/tools-rust.wasm", guest);
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::able(gateway.url(), json!({ "elicitation": {} }));
    let (tools, _) = client.list().await;
    let deploy = tools.iter().find(|tool| tool["name"] == "deploy");
    let meta = &deploy.expect("it is listed")["_meta"];
    assert_eq!(meta["dev.weir/approval"], "required", "{meta}");

    let wanted = json!({ "environment": "prod", "service": "shop" });
    let call = async |arguments: &Value| client.call("deploy", arguments.clone()).await;
    let id = plan(&call(&wanted).await);
    assert_eq!(plan(&call(&wanted).await), id, "the same call waits once");
    let shown = approve(&admin, &id).await;
    let arguments = &shown["write"]["options"]["arguments"];
    assert_eq!(arguments["service"], "shop", "{shown}");
    let other = json!({ "environment": "prod", "service": "mail" });
    assert_ne!(plan(&call(&other).await), id, "that is another call");
    let done = call(&wanted).await;
    assert_eq!(done["structuredContent"]["service"], "shop", "{done}");
    assert_ne!(plan(&call(&wanted).await), id, "an approval is used once");
    let steps = client.call("steps", json!({ "pause_ms": 0 })).await;
    assert_eq!(steps["isError"], false, "others wait for no one: {steps}");

    // What asks its caller first has done nothing yet: the call with the answer uses the same approval up.
    let remove = async |more: Value| {
        let mut params = json!({ "name": "remove", "arguments": { "environment": "prod" } });
        let members = params.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        client.ask("tools/call", params).await.result().clone()
    };
    let id = plan(&remove(json!({})).await);
    approve(&admin, &id).await;
    let asked = remove(json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let sure = json!({ "sure": { "action": "accept", "content": { "sure": true } } });
    let answer = json!({ "inputResponses": sure, "requestState": asked["requestState"] });
    let done = remove(answer.clone()).await;
    assert_eq!(done["structuredContent"]["removed"], true, "{done}");
    assert_ne!(plan(&remove(answer).await), id, "it is used up");
}

/// An adapter defines no tools, so that no approval of one could ever be requested: a configuration that asks for it is
/// refused, whether the adapter comes with the gateway or not.
#[tokio::test]
async fn approval_of_the_tools_of_an_adapter_is_refused() {
    let house = sample::house().config("[plugins.sheet]\napproval = [\"create_airport\"]");
    let started = house.weir(&["serve", "--listen", "127.0.0.1:0"]).output();
    let (code, _, err) = read_output(started.expect("weir starts"));
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("/plugins/sheet/approval") && err.contains("write `approval: required`"),
        "{err}"
    );
    let house = sample::house()
        .own_plugins(&["sheet"])
        .config("[plugins.tiny-c]\napproval = [\"create_airport\"]");
    let guest = std::fs::read(place::guest("tiny-c")).expect("a guest can be read");
    house.write("plugins/tiny-c.wasm", guest);
    let gateway = house.serve();
    gateway.wait_for_log("defines no tools, so that `approval` names none");
    let client = Modern::new(gateway.url());
    let found = client
        .call("lookup_airport", json!({ "iata": "OSL" }))
        .await;
    assert_eq!(found["isError"], false, "the others are served: {found}");
}

#[tokio::test]
async fn a_write_of_another_server_runs_after_a_person_approved_it_and_once() {
    let overlay = "contract: desk\nupstream: tracker\ntake: [create_issue]\n\
                   tools:\n  - { from: create_issue, set: { owner: acme }, approval: required }\n";
    let more = "first = \"publish\"\noverlay = \"tracker.yaml\"";
    let house = House::new()
        .file("tracker.yaml", overlay)
        .config(&entry("tracker", &hostile(&["tracker"]), more))
        .config(ADMIN);
    let (_gateway, client) = serve_listed(&house, "tracker_create_issue").await;
    let admin = Admin::of(&house);
    let wanted = json!({
        "title": "It rains in", "filter_name": "roof", "options": {"grosse": 3}, "labels": [],
    });
    let call = async |arguments: &Value| {
        let name = "tracker_create_issue";
        client.call(name, arguments.clone()).await
    };
    let waits = call(&wanted).await;
    let shown = approve(&admin, &plan(&waits)).await;
    let arguments = &shown["write"]["options"]["arguments"];
    assert_eq!(
        (&arguments["title"], &arguments["owner"]),
        (&json!("It rains in"), &json!("acme")),
        "what the server is sent: {shown}"
    );
    let mut other = wanted.clone();
    other["title"] = json!("It snows in");
    assert_ne!(plan(&call(&other).await), plan(&waits));
    let done = call(&wanted).await;
    assert_eq!(done["isError"], false, "{done}");
    assert_ne!(plan(&call(&wanted).await), plan(&waits), "used once");
}
