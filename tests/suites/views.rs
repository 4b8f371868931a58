//! Views: parts of the catalogue with an endpoint of their own, under the rules of every other endpoint.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Events, Gateway, House, Legacy, Modern, Stdio, http};

use crate::sample;

const FIELDS: &str = r#"
contract: fields
collections:
  fields: { adapter: sheet, settings: { connection: data, path: airports.csv }, key: [iata] }
tools:
  - tool: lookup_field
    description: Returns the air field with an IATA code.
    verb: lookup
    collection: fields
    fields: [{ name: iata, type: text, required: true, help: "IATA code." }]
"#;

const VIEWS: &str = r#"
[views.lists]
tools = ["list_*", "lookup_fiel?"]
[views.reading]
contracts = ["airports"]
read_only = true
[views.empty]
contracts = ["later"]
"#;

fn house() -> House {
    sample::house().file("contracts/fields.yaml", FIELDS).config(VIEWS)
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

async fn listed(client: &Modern) -> Vec<String> {
    names(&client.list().await.0).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_view_lists_and_calls_its_tools_alone_in_both_eras_and_over_stdio() {
    let house = house();
    let gateway = house.serve();
    let view = Modern::new(gateway.view_url("lists"));
    assert_eq!(listed(&view).await, ["list_airports", "lookup_field"]);
    assert_eq!(listed(&Modern::new(gateway.view_url("reading"))).await, ["list_airports", "lookup_airport"]);
    assert_eq!(listed(&Modern::new(gateway.view_url("empty"))).await, [""; 0]);

    let (all, _) = Modern::new(gateway.url()).list().await;
    let (seen, _) = view.list().await;
    assert_eq!(seen[0], *all.iter().find(|tool| tool["name"] == "list_airports").expect("it is there"));
    let found = view.call("lookup_field", json!({"iata": "OSL"})).await;
    assert_eq!(found["structuredContent"]["country"], "NO", "{found}");
    let outside = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    assert_eq!(view.ask("tools/call", outside.clone()).await.error_code(), -32602);
    let discovered = view.ask("server/discover", json!({})).await;
    let server = &discovered.result()["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "lists", "{server}");

    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Legacy::open(gateway.view_url("lists"), version).await;
        let list = session.ask("tools/list", json!({})).await;
        let tools = list.result()["tools"].as_array().expect("tools").clone();
        assert_eq!(names(&tools), ["list_airports", "lookup_field"], "{version}");
        assert_eq!(session.call("lookup_field", json!({"iata": "OSL"})).await["isError"], false, "{version}");
        assert_eq!(session.ask("tools/call", outside.clone()).await.error_code(), -32602, "{version}");
        // A session is of the endpoint that it was opened at.
        let mut elsewhere = session.clone();
        elsewhere.url = gateway.url();
        assert_eq!(elsewhere.ask("tools/list", json!({})).await.status, 404, "{version}");
    }

    let page = http().get(format!("{}/llms.txt", gateway.view_url("lists"))).send().await.expect("an answer");
    let page = page.text().await.expect("text");
    assert!(page.contains("### lookup_field") && !page.contains("lookup_airport"), "{page}");
    let (code, printed, err) = house.run(&["llms", "--view", "lists"]);
    assert_eq!((code, printed.as_str()), (0, page.trim_end()), "{err}");

    let mut stdio = Stdio::start_with(&house, "", &["--view", "lists"]);
    let tools = stdio.ask_modern("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    assert_eq!(names(&tools), ["list_airports", "lookup_field"]);
    let refused = stdio.ask_modern("tools/call", outside).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let (code, _, err) = house.run(&["stdio", "--view", "list"]);
    assert!(code == 1 && err.contains("there is no view `list`; there are empty, lists, reading"), "{err}");
}

#[tokio::test]
async fn what_is_no_view_is_not_there_and_a_contract_may_be_called_view() {
    let house = house().file(
        "contracts/view.yaml",
        FIELDS.replace("contract: fields", "contract: view").replace("lookup_field", "look"),
    );
    let gateway = house.serve();
    for name in ["other", "airports", "llms.txt", "Lists", "..", "%00"] {
        let answer = Modern::new(gateway.view_url(name)).ask("tools/list", json!({})).await;
        assert!([404, 405].contains(&answer.status.as_u16()), "{name}: {}", answer.text);
    }
    let refused = Modern::new(gateway.view_url("other")).ask("tools/list", json!({})).await;
    assert_eq!(refused.reply()["error"]["message"], "no view `other` is served here");
    assert_eq!(listed(&Modern::new(gateway.contract_url("view"))).await, ["look"]);
    let page = http().get(format!("{}/llms.txt", gateway.contract_url("view"))).send().await.expect("an answer");
    assert!(page.text().await.expect("text").contains("### look"));
}

/// Hidden is unknown, on a view as everywhere; a page of a narrow key holds what it sees; revoked at once.
#[tokio::test]
async fn a_key_sees_of_a_view_what_it_may_use() {
    let house = house().config("[http]\npage_size = 1");
    let gateway = house.serve();
    let url = gateway.view_url("lists");
    let everything = house.key(&["--agent", "ann"]);
    let some = house.key(&["--agent", "bob", "--contract", "airports", "--rate", "9/min"]);
    let none = house.key(&["--agent", "eve", "--tool", "create_airport"]);
    assert_eq!(Modern::new(&url).ask("tools/list", json!({})).await.status, 401);
    assert_eq!(Modern::with_key(&url, &everything).list().await.1, 2, "two pages of one tool each");
    let bob = Modern::with_key(&url, &some);
    assert_eq!(listed(&bob).await, ["list_airports"]);
    for tool in ["lookup_field", "lookup_airport", "nothing"] {
        let refused = bob.ask("tools/call", json!({"name": tool, "arguments": {}})).await;
        assert_eq!(refused.reply()["error"]["message"], format!("unknown tool `{tool}`"), "{}", refused.text);
    }
    let unknown = Modern::with_key(gateway.view_url("other"), &none).ask("tools/list", json!({})).await;
    let hidden = Modern::with_key(&url, &none).ask("tools/list", json!({})).await;
    assert_eq!(hidden.status, 404);
    let text = |answer: &weir_tests::Answer| answer.reply()["error"]["message"].to_string().replace("other", "lists");
    assert_eq!(text(&hidden), text(&unknown));

    // One bucket over all endpoints: four were asked above.
    let elsewhere = Modern::with_key(gateway.url(), &some);
    for _ in 4..9 {
        assert_eq!(elsewhere.ask("tools/list", json!({})).await.status, 200);
    }
    assert_eq!(bob.ask("tools/list", json!({})).await.status, 429, "limits are shared");

    let id = everything.split('_').nth(1).expect("an id").to_owned();
    assert_eq!(house.run(&["keys", "revoke", &id]).0, 0);
    assert_eq!(Modern::with_key(&url, &everything).ask("tools/list", json!({})).await.status, 401);
}

#[tokio::test]
async fn a_key_is_shown_its_view_where_it_asks_for_everything() {
    let house = house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--view", "reading"]);
    let ann = Modern::with_key(gateway.url(), &key);
    assert_eq!(listed(&ann).await, ["list_airports", "lookup_airport"]);
    let outside = ann.ask("tools/call", json!({"name": "lookup_field", "arguments": {"iata": "OSL"}})).await;
    assert_eq!(outside.error_code(), -32602);
    let other = Modern::with_key(gateway.contract_url("fields"), &key);
    assert_eq!(listed(&other).await, ["lookup_field"], "a view is what is shown, not what may be used");
    let page = http().get(format!("{}/llms.txt", gateway.base)).bearer_auth(&key).send().await.expect("an answer");
    assert!(!page.text().await.expect("text").contains("lookup_field"));
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&key)).await;
    assert_eq!(session.call("lookup_airport", json!({"iata": "OSL"})).await["isError"], false);
    let mut stdio = Stdio::start_as(&house, &key);
    let tools = stdio.ask_modern("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(2), "{tools}");

    let keys = house.json(&["keys", "list"]);
    assert_eq!(keys[0]["view"], "reading", "{keys}");
    let (code, _, warned) = house.run(&["keys", "create", "--agent", "bob", "--view", "raeding"]);
    assert!(code == 0 && warned.contains("there is no view `raeding` now; did you mean `reading`?"), "{warned}");
    let (code, _, refused) = house.run(&["keys", "create", "--agent", "bob", "--view", "No/view"]);
    assert!(code == 1 && refused.contains("`view` must be a lowercase letter"), "{refused}");
    // Without its view the key is shown nothing, rather than everything.
    let absent = house.key(&["--agent", "eve", "--view", "gone"]);
    assert_eq!(Modern::with_key(gateway.url(), &absent).ask("tools/list", json!({})).await.status, 404);
    drop(gateway);
    let gateway = house.serve();
    assert_eq!(listed(&Modern::with_key(gateway.url(), &key)).await, ["list_airports", "lookup_airport"]);
}

fn reload(gateway: &Gateway) {
    let sent = std::process::Command::new("kill").args(["-HUP", &gateway.process_id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Whoever watches a view hears of its changes, and of no others.
#[tokio::test]
async fn a_view_that_is_edited_is_taken_over_while_serving() {
    let house = house();
    let gateway = house.serve();
    let listen = |url: String| async move {
        let request =
            Modern::new(url).request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
        let mut events = Events::open(request).await;
        let first = events.next(Duration::from_secs(10)).await.expect("acknowledged");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        events
    };
    let mut lists = listen(gateway.view_url("lists")).await;
    let mut reading = listen(gateway.view_url("reading")).await;
    let session = Legacy::open(gateway.view_url("lists"), "2025-11-25").await;
    let mut legacy = Events::open(session.stream()).await;
    let config = std::fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
    house.write("weir.toml", format!("{}\n[views.more]\n", config.replace("\"lookup_fiel?\"", "\"create_*\"")));
    reload(&gateway);
    for events in [&mut lists, &mut legacy] {
        let told = events.next(Duration::from_secs(10)).await.expect("list_changed");
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    assert_eq!(listed(&Modern::new(gateway.view_url("lists"))).await, ["create_airport", "list_airports"]);
    assert_eq!(listed(&Modern::new(gateway.view_url("more"))).await.len(), 4);
    assert!(reading.next(Duration::from_millis(600)).await.is_none(), "this view is as it was");

    let refused = format!("{config}\n[views.No]\ntools = [\"\"]\ncolour = 1\n[views.x]\ncontracts = [\"A B\"]\n");
    house.write("weir.toml", refused);
    let output = house.weir_as_it_is(&["llms"]).output().expect("weir runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for place in ["/views/No/colour: unknown key `colour`", "/views/x/contracts/0: the contract name"] {
        assert!(told.contains(place), "{place}: {told}");
    }
    house.write("weir.toml", format!("{config}\n[views.No]\ntools = [\"\"]\n"));
    let output = house.weir_as_it_is(&["llms"]).output().expect("weir runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for place in ["/views/No: is no name of a view", "/views/No/tools/0: a pattern has 1 to 200 characters"] {
        assert!(told.contains(place), "{place}: {told}");
    }
}
