//! Everything at once behind one URL: ten foreign servers, three contracts of our own and a plugin, for every official
//! client.

mod ten;

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Map, Value, json};
use weir_tests::{
    House, Legacy, Modern,
    client::{self, choose_tls},
    foreign, place,
};

use self::ten::Ten;
use crate::sample;

/// Ten servers start at once, on a machine that does something else as well.
const START: Duration = Duration::from_secs(120);

/// Waits until every tool of the ten is listed, and returns all names.
async fn all_listed(client: &Modern) -> BTreeSet<String> {
    let started = Instant::now();
    loop {
        let names = names(&client.list().await.0);
        let found = |server: &str| {
            names
                .iter()
                .filter(|name| name.starts_with(&format!("{server}_")))
                .count()
        };
        let missing: Vec<_> = Ten::servers()
            .filter(|server| found(server) != Ten::count(server))
            .collect();
        if missing.is_empty() {
            return names;
        }
        assert!(
            started.elapsed() < START,
            "not in time: {missing:?} in {names:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn names(tools: &[Value]) -> BTreeSet<String> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// Questions of the servers while a client runs are answered on the second thread.
#[tokio::test(flavor = "multi_thread")]
async fn ten_servers_three_contracts_and_a_plugin_are_one_server_to_every_official_client() {
    let ten = Ten::new().await;
    let mut house = House::new()
        .own_plugins(&["sheet"])
        .sheets()
        .file("data/airports.csv", sample::DATA);
    for (name, prefix) in [
        ("airports", ""),
        ("airports-two", "two"),
        ("airports-three", "three"),
    ] {
        let prefix = if prefix.is_empty() {
            String::new()
        } else {
            format!("\nprefix: {prefix}")
        };
        let contract =
            sample::CONTRACT.replace("contract: airports", &format!("contract: {name}{prefix}"));
        house = house.file(&format!("contracts/{name}.yaml"), &contract);
    }
    house.write(
        "plugins/tools-rust.wasm",
        fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    let house = ten.behind(house);
    let gateway = house.serve();
    let listed = all_listed(&Modern::new(gateway.url())).await;
    assert!(
        listed.contains("two_lookup_airport") && listed.contains("three_lookup_airport"),
        "{listed:?}"
    );
    // Each call with a part of its answer, and whether that is an error of the tool.
    let mut expected = vec![
        (
            json!({ "tool": "lookup_airport", "arguments": { "iata": "OSL" } }),
            "Oslo",
            false,
        ),
        (
            json!({ "tool": "three_lookup_airport", "arguments": { "iata": "OSL" } }),
            "Oslo",
            false,
        ),
        (
            json!({ "tool": "deploy", "arguments": { "environment": "prod", "service": "web" } }),
            "web",
            false,
        ),
    ];
    let foreign = ten.calls();
    expected.extend(foreign.iter().map(|case| {
        (
            json!({ "tool": case.published(), "arguments": case.arguments }),
            case.says,
            case.is_error,
        )
    }));
    let calls: Vec<&Value> = expected.iter().map(|(call, ..)| call).collect();
    let check = |client: &str, tools: &[Value], outcomes: &[Value]| {
        assert_eq!(names(tools), listed, "{client}");
        assert_eq!(outcomes.len(), expected.len(), "{client}");
        for ((call, says, is_error), outcome) in expected.iter().zip(outcomes) {
            assert_eq!(outcome["isError"], *is_error, "{client}: {call}: {outcome}");
            assert!(
                outcome["text"]
                    .as_str()
                    .is_some_and(|text| text.contains(says)),
                "{client}: {call}: {outcome}"
            );
        }
    };
    for (command, mode) in [
        (foreign::node_script("typescript1.mjs"), "legacy"),
        (foreign::node_script("typescript2.mjs"), "auto"),
        (foreign::node_script("typescript2.mjs"), "modern"),
        (foreign::node_script("typescript2.mjs"), "legacy"),
        (foreign::python_script("python-mcp1", "mcp1.py"), "legacy"),
        (foreign::python_script("python-current", "mcp2.py"), "auto"),
        (
            foreign::python_script("python-current", "mcp2.py"),
            "legacy",
        ),
    ] {
        let client = format!("{command:?} {mode}");
        let report = foreign::report(
            command,
            &json!({ "url": gateway.url(), "mode": mode, "calls": calls }),
        );
        let part = |key: &str| {
            report[key]
                .as_array()
                .expect("a report has tools and calls")
                .clone()
        };
        check(&client, &part("tools"), &part("calls"));
    }
    let (tools, outcomes) = by_rmcp(gateway.url(), &calls).await;
    check("rmcp", &tools, &outcomes);
}

/// Returns the tools that the official client in Rust lists, and the results of its calls.
async fn by_rmcp(url: String, calls: &[&Value]) -> (Vec<Value>, Vec<Value>) {
    choose_tls();
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = ClientConfig::default()
        .serve(transport)
        .await
        .expect("rmcp connects");
    let plain = |value| serde_json::to_value(value).expect("plain JSON");
    let tools = client
        .list_all_tools()
        .await
        .expect("rmcp lists")
        .iter()
        .map(plain)
        .collect();
    let mut outcomes = Vec::new();
    for call in calls {
        let tool = call["tool"]
            .as_str()
            .expect("a call names its tool")
            .to_owned();
        let mut request = CallToolRequestParams::new(tool);
        request.arguments = call["arguments"].as_object().cloned();
        let result = serde_json::to_value(client.call_tool(request).await.expect("rmcp calls"))
            .expect("plain JSON");
        outcomes
            .push(json!({ "isError": result["isError"], "text": result["content"][0]["text"] }));
    }
    client.cancel().await.expect("rmcp closes");
    (tools, outcomes)
}

#[tokio::test]
async fn complaint_16_direct_and_through_us_a_server_is_the_same_but_for_its_names() {
    let ten = Ten::new().await;
    let house = ten.behind(House::new());
    let (gateway, modern) = house.serve_client();
    all_listed(&modern).await;
    let legacy = Legacy::open(gateway.url(), client::LEGACY).await;
    for server in Ten::servers() {
        let mut direct = ten.direct(server).await;
        let mut own = direct.lists().await["tools"]
            .as_array()
            .expect("tools")
            .clone();
        own.sort_by_key(|tool| tool["name"].to_string());
        let in_legacy = legacy.ask("tools/list", json!({})).await.result()["tools"].clone();
        for through in [
            modern.list().await.0,
            in_legacy.as_array().expect("tools").clone(),
        ] {
            let of_server = |tool: &&Value| {
                tool["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with(&format!("{server}_")))
            };
            let mut through: Vec<Value> = through.iter().filter(of_server).cloned().collect();
            through.sort_by_key(|tool| tool["name"].to_string());
            for (through, own) in through.iter_mut().zip(&own) {
                let mut own = own.clone();
                as_published(server, &mut own);
                assert_eq!(*without_ours(through), own, "{server}");
            }
            assert_eq!(through.len(), own.len(), "{server}");
        }
        for case in ten.calls().iter().filter(|case| case.server == server) {
            let call = json!({"name": case.tool, "arguments": case.arguments});
            // Some servers count their calls: each is asked as often directly as through us.
            let first = direct.ask("tools/call", call.clone()).await["result"].clone();
            let second = direct.ask("tools/call", call).await["result"].clone();
            let mut through = modern.call(&case.published(), case.arguments.clone()).await;
            assert_eq!(*without_ours(&mut through), as_answered(first), "{server}");
            let mut through = legacy.call(&case.published(), case.arguments.clone()).await;
            assert_eq!(*without_ours(&mut through), as_answered(second), "{server}");
        }
        direct.close().await;
    }
    let wrong = modern
        .call("everything_echo", json!({"massage": "hi"}))
        .await;
    assert_eq!(
        wrong["structuredContent"]["code"], "invalid_arguments",
        "{wrong}"
    );
}

/// Writes a tool as it is published, with only the changes that docs/overlays.md describes.
fn as_published(server: &str, tool: &mut Value) {
    let entry = tool.as_object_mut().expect("a tool is an object");
    let own = entry["name"].as_str().expect("a name");
    let name = format!("{server}_{own}");
    entry.insert("name".to_owned(), name.into());
    // Annotations are always there.
    let message = entry
        .entry("annotations")
        .or_insert_with(|| json!({}))
        .get("title")
        .cloned();
    // A missing title is taken from the annotations, or made from the first sentence.
    if !entry.contains_key("title") {
        let description = entry["description"].as_str().expect("a description");
        let line = description.trim().lines().next().expect("a line");
        let sentence = line
            .split(". ")
            .next()
            .expect("a sentence")
            .trim_end_matches(['.', ':']);
        let title = message.unwrap_or_else(|| format!("{server}: {sentence}").into());
        entry.insert("title".to_owned(), title);
    }
    // Clients that do not support tasks see none.
    entry.remove("execution");
    for side in ["inputSchema", "outputSchema"] {
        let Some(schema) = entry.get_mut(side) else {
            continue;
        };
        // Another dialect is published as 2020-12, which MCP assumes where a schema names none.
        if let Some(schema) = schema.as_object_mut() {
            schema.shift_remove("$schema");
        }
        if side == "inputSchema" {
            with_alternatives(schema);
        }
    }
}

/// In inputs a list of types is written as `anyOf`.
fn with_alternatives(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(with_alternatives);
            if let Some(Value::Array(types)) = members.get("type").cloned() {
                members.remove("type");
                members.insert(
                    "anyOf".to_owned(),
                    types.iter().map(|one| json!({ "type": one })).collect(),
                );
            }
        }
        Value::Array(all) => all.iter_mut().for_each(with_alternatives),
        _ => {}
    }
}

/// `isError` is always there.
fn as_answered(mut result: Value) -> Value {
    let members: &mut Map<String, Value> = result.as_object_mut().expect("a result is an object");
    members.entry("isError").or_insert(Value::Bool(false));
    result
}

/// Takes out what the later protocol adds to a result, and what Weir adds about itself in `_meta`.
fn without_ours(answer: &mut Value) -> &Value {
    let members = answer
        .as_object_mut()
        .expect("tools and results are objects");
    members.remove("resultType");
    if let Some(Value::Object(meta)) = members.get_mut("_meta") {
        meta.retain(|name, _| {
            !name.starts_with("dev.weir/") && name != "io.modelcontextprotocol/serverInfo"
        });
        if meta.is_empty() {
            members.remove("_meta");
        }
    }
    answer
}
