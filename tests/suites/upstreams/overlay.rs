//! An overlay file in use: what agents are shown of a server, and what the server is sent of their calls.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Legacy, Modern, client, strangers::hostile, until};

use super::{code, entry, listed, names, show, text};

const OVERLAY: &str = "\
contract: desk
upstream: tracker
title: Issues of acme
instructions: Look before you write.
prefix: gh
take: ['*_issue', lie, stall]
leave: ['delete_*']
tools:
  - from: create_issue
    tool: open_issue
    title: Open an issue
    description: Opens an issue of acme and returns what was sent.
    set: { owner: acme }
    limits: { rate: 4/min }
  - from: stall
    limits: { timeout_ms: 300 }
  - from: lie
    output: drop
";

async fn served() -> (House, Gateway) {
    let more = "first = \"publish\"\noverlay = \"tracker.yaml\"";
    let house = House::new().file("tracker.yaml", OVERLAY).config(&entry(
        "tracker",
        &hostile(&["tracker"]),
        more,
    ));
    let gateway = house.serve();
    listed(&Modern::new(gateway.url()), "gh_open_issue").await;
    (house, gateway)
}

/// Returns every name of a property in a schema, nested ones too.
fn keys(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    match schema {
        Value::Object(members) => {
            found.extend(
                members
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|all| all.keys().cloned()),
            );
            members
                .values()
                .for_each(|member| found.extend(keys(member)));
        }
        Value::Array(members) => members.iter().for_each(|member| found.extend(keys(member))),
        _ => {}
    }
    found
}

#[tokio::test]
async fn an_overlay_chooses_renames_and_describes_and_its_contract_has_an_endpoint() {
    let (house, gateway) = served().await;
    let client = Modern::new(gateway.url());
    let expected = ["gh_lie", "gh_open_issue", "gh_read_issue", "gh_stall"].map(str::to_owned);
    assert_eq!(names(&client).await, BTreeSet::from(expected.clone()));
    assert_eq!(
        names(&Modern::new(gateway.contract_url("desk"))).await,
        BTreeSet::from(expected)
    );
    let about = Modern::new(gateway.contract_url("desk"))
        .ask("server/discover", json!({}))
        .await;
    assert!(
        about.result()["instructions"]
            .as_str()
            .is_some_and(|text| text.contains("Look before you write."))
    );

    let (tools, _) = client.list().await;
    let tool = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .expect("it is listed")
    };
    let issue = tool("gh_open_issue");
    assert_eq!(issue["title"], "Open an issue");
    assert_eq!(
        issue["description"],
        "Opens an issue of acme and returns what was sent."
    );
    assert_eq!(
        tool("gh_read_issue")["description"],
        "The tool read_issue.",
        "the server's own words"
    );
    assert!(
        tool("gh_lie").get("outputSchema").is_none(),
        "{}",
        tool("gh_lie")
    );
    // A set argument is not listed, and no key is one that a model's interface refuses.
    let schema = &issue["inputSchema"];
    assert_eq!(
        schema["required"],
        json!(["title", "filter_name"]),
        "{schema}"
    );
    let expected = [
        "title",
        "filter_name",
        "options",
        "grosse",
        "labels",
        "label_color",
    ]
    .map(str::to_owned);
    assert_eq!(keys(schema), BTreeSet::from(expected));
    assert!(!issue.to_string().contains("owner"), "{issue}");
    let notes = show(&house, "tracker")["notes"].to_string();
    for (own, published) in [
        ("filter[name]", "filter_name"),
        ("größe", "grosse"),
        ("label color", "label_color"),
    ] {
        assert!(
            notes.contains(&format!(
                "the argument '{own}' is published as '{published}'"
            )),
            "{notes}"
        );
    }
}

#[tokio::test]
async fn a_server_is_sent_its_own_keys_and_what_the_overlay_sets() {
    let (_house, gateway) = served().await;
    let modern = Modern::new(gateway.url());
    let legacy = Legacy::open(gateway.url(), client::LEGACY).await;
    let given = json!({
        "title": "It rains in", "filter_name": "roof", "options": {"grosse": 3},
        "labels": [{"label_color": "red"}, {"label_color": "blue"}],
    });
    let sent = json!({"name": "create_issue", "arguments": {
        "title": "It rains in", "filter[name]": "roof", "options": {"größe": 3},
        "labels": [{"label color": "red"}, {"label color": "blue"}], "owner": "acme",
    }});
    let mut hijack = given.clone();
    hijack["owner"] = json!("someone else");
    let opened = |result: &Value| {
        let sent: Value = serde_json::from_str(text(result)).expect("what the server was sent");
        json!({"name": sent["name"], "arguments": sent["arguments"]})
    };
    assert_eq!(
        opened(&modern.call("gh_open_issue", given.clone()).await),
        sent
    );
    assert_eq!(
        opened(&legacy.call("gh_open_issue", given.clone()).await),
        sent
    );
    // The server's schema is open, and what is set has the last word.
    assert_eq!(opened(&modern.call("gh_open_issue", hijack).await), sent);
    // Arguments are checked against the published schema, by the published names.
    let wrong = json!({"title": "t", "filter_name": "f", "options": {"größe": 3}});
    let refused = modern.call("gh_open_issue", wrong).await;
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
    let limited = modern.call("gh_open_issue", given).await;
    assert_eq!(code(&limited), "rate_limited", "four a minute: {limited}");

    let late = modern.call("gh_stall", json!({})).await;
    assert_eq!(code(&late), "timeout", "{late}");
    // Its output schema is dropped, so its answer is not checked.
    let lie = modern.call("gh_lie", json!({})).await;
    assert_eq!(
        (&lie["isError"], &lie["structuredContent"]),
        (&json!(false), &json!({"n": "one"})),
        "{lie}"
    );
}

/// Another overlay is another contract, and waits like any other change.
#[tokio::test]
async fn an_overlay_that_was_edited_is_served_once_someone_agrees() {
    let (house, gateway) = served().await;
    let client = Modern::new(gateway.url());
    house.write(
        "tracker.yaml",
        OVERLAY.replace("returns what was sent", "returns its number"),
    );
    let is_listed = async |wanted: &str| {
        client
            .list()
            .await
            .0
            .iter()
            .any(|tool| tool.to_string().contains(wanted))
    };
    assert!(is_listed("returns what was sent").await);
    super::publish(&house, "desk").await;
    until("the new words are listed", async || {
        is_listed("returns its number").await
    })
    .await;
}

/// Discarding a draft refuses only that change: the same lists of the server under another overlay are submitted again, with
/// the approval of calls that it asks for.
#[tokio::test]
async fn a_discarded_overlay_keeps_no_later_one_from_being_asked_for() {
    let (house, gateway) = served().await;
    let client = Modern::new(gateway.url());
    let worded = OVERLAY.replace("returns what was sent", "returns its number");
    house.write("tracker.yaml", &worded);
    let first = super::draft(&house, "desk").await;
    let id = first["id"].as_str().expect("an id").to_owned();
    let (exit, _, err) = house.run(&["contracts", "discard", &id]);
    assert_eq!(exit, 0, "{err}");

    let held = OVERLAY.replace(
        "    set: { owner: acme }\n",
        "    set: { owner: acme }\n    approval: required\n",
    );
    house.write("tracker.yaml", held);
    let second = super::draft(&house, "desk").await;
    assert_ne!(second["id"], first["id"], "{second}");
    house.agree(&second);
    let given = json!({"title": "It rains in", "filter_name": "roof", "options": {"grosse": 3}, "labels": []});
    until("calls wait for a person", async || {
        let (tools, _) = client.list().await;
        let mut metas = tools.iter().map(|tool| &tool["_meta"]);
        metas.any(|meta| meta["dev.weir/approval"] == "required")
    })
    .await;
    let waits = client.call("gh_open_issue", given).await;
    assert_eq!(code(&waits), "approval_required", "{waits}");
    let (tools, _) = client.list().await;
    let tools = Value::from(tools).to_string();
    assert!(
        tools.contains("returns what was sent") && !tools.contains("returns its number"),
        "{tools}"
    );
}
