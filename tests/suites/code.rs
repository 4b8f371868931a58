//! Tools from code: what a plugin's functions answer, what they may do, and which build of it serves.

mod builds;

use serde_json::{Value, json};
use weir_tests::{House, Legacy, Modern, client::send, place, web::Web};

use crate::{audit, sample};

/// Makes a house with the guest that has tools, over a database that it may write.
fn house() -> House {
    let house = plain().config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/things.sqlite\"\nwrite = true\n\
         [plugins.tools-js]\ndev = true\nmemory_max_mb = 128\n[plugins.tools-js.grants]\ndb = \"write\"\n\
         [plugins.tools-js.settings]\ngreeting = \"hello\"",
    );
    let database =
        rusqlite::Connection::open(house.path().join("data/things.sqlite")).expect("a database");
    let rows = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO things VALUES (1, 'one'), (2, 'two')";
    database.execute_batch(rows).expect("two things");
    house
}

fn plain() -> House {
    let house = House::new().own_plugins(&[]);
    put(&house, "tools-js");
    house
}

fn put(house: &House, build: &str) {
    house.write(
        "plugins/tools-js.wasm",
        std::fs::read(place::guest(build)).expect("a guest can be read"),
    );
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["code"]
        .as_str()
        .unwrap_or("none")
}

#[tokio::test]
async fn a_plugins_functions_are_listed_and_called_in_both_eras() {
    let house = house();
    let gateway = house.serve();
    let modern = Modern::new(gateway.contract_url("tools-js"));
    let legacy = Legacy::open(gateway.contract_url("tools-js"), "2025-11-25").await;
    let (tools, _) = modern.list().await;
    let deploy = tools
        .iter()
        .find(|tool| tool["name"] == "deploy")
        .expect("it is listed");
    assert_eq!(
        deploy["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "environment": { "type": "string", "minLength": 1, "description": "Target environment" },
                "service": { "type": "string", "minLength": 1, "description": "Service name." },
                "version": { "type": "string", "default": "latest", "description": "Version or image tag." },
            },
            "required": ["environment", "service"],
            "additionalProperties": false,
        })
    );
    let names = |tools: &Value| -> Vec<Value> {
        tools
            .as_array()
            .expect("tools")
            .iter()
            .map(|tool| tool["name"].clone())
            .collect()
    };
    let legacy_tools = legacy.ask("tools/list", json!({})).await.result()["tools"].clone();
    assert_eq!(names(&legacy_tools), names(&json!(tools)));
    for call in [true, false] {
        let ask = async |tool: &str, arguments: Value| match call {
            true => modern.call(tool, arguments).await,
            false => legacy.call(tool, arguments).await,
        };
        let deployed = ask("deploy", json!({"environment": "prod", "service": "web"})).await;
        let answer = json!({"environment": "prod", "service": "web", "version": "latest"});
        assert_eq!(
            (&deployed["structuredContent"], &deployed["isError"]),
            (&answer, &json!(false)),
            "{deployed}"
        );
        let text = deployed["content"][0]["text"]
            .as_str()
            .expect("a text block");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), answer);
        let listed = ask("names", json!({})).await;
        assert_eq!(
            listed["structuredContent"],
            json!({"result": ["one", "two"]}),
            "what is no object is wrapped"
        );
        assert_eq!(
            listed["content"][0]["text"], r#"["one","two"]"#,
            "its text is the value itself"
        );
        let drawn = ask("draw", json!({})).await;
        assert!(drawn.get("structuredContent").is_none(), "{drawn}");
        let blocks = drawn["content"].as_array().expect("blocks");
        let kinds: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["type"].as_str())
            .collect();
        assert_eq!(kinds, ["text", "image", "resource_link", "resource"]);
        let who = ask("whoami", json!({})).await["structuredContent"].clone();
        assert_eq!(
            (&who["greeting"], &who["contract"]),
            (&json!("hello"), &json!("tools-js@1.0.0")),
            "{who}"
        );
    }
}

#[tokio::test]
async fn each_way_to_fail_has_its_own_code() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    let refused = client.call("refuse", json!({"code": "too_early"})).await;
    let content = &refused["structuredContent"];
    assert_eq!(
        (code(&refused), &content["reason"]),
        ("tool_error", &json!("too_early")),
        "{refused}"
    );
    assert!(
        content["message"]
            .as_str()
            .is_some_and(|text| text.contains("after noon")),
        "{refused}"
    );
    for (tool, arguments, wanted) in [
        ("refuse", json!({"code": "not_found"}), "not_found"),
        ("refuse", json!({"code": "conflict"}), "conflict"),
        ("wrong", json!({}), "output_mismatch"),
        ("crash", json!({}), "plugin_failed"),
        (
            "deploy",
            json!({"environment": "prod"}),
            "invalid_arguments",
        ),
        (
            "deploy",
            json!({"environment": "prod", "service": "web", "colour": "red"}),
            "invalid_arguments",
        ),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(
            (code(&result), &result["isError"]),
            (wanted, &json!(true)),
            "{tool} {arguments}: {result}"
        );
    }
    let asks = client
        .ask(
            "tools/call",
            json!({"name": "remove", "arguments": {"environment": "prod"}}),
        )
        .await;
    assert_eq!(
        asks.reply()["error"]["code"],
        -32021,
        "this client says of nothing that it can answer it: {asks:?}"
    );
    // A model reads only the sentence.
    let message = asks.reply()["error"]["message"].as_str();
    let lacks = "this client does not declare the capability `elicitation` that this needs";
    assert!(
        message.is_some_and(|message| message.contains(lacks)),
        "{asks:?}"
    );
}

/// The annotation is not believed: what is published as read-only runs where nothing can be written.
#[tokio::test]
async fn a_read_only_tool_that_writes_is_forbidden_and_nothing_changes() {
    let house = house();
    let (gateway, client) = house.serve_client();
    let looked = client.call("look", json!({})).await;
    assert_eq!(code(&looked), "forbidden", "{looked}");
    gateway.wait_for_log("published as read-only and tried to write");
    assert_eq!(
        client.call("names", json!({})).await["structuredContent"],
        json!({"result": ["one", "two"]})
    );
    let renamed = client.call("rename", json!({"name": "uno"})).await;
    assert_eq!(
        renamed["structuredContent"],
        json!({"changed": 1}),
        "{renamed}"
    );
    assert_eq!(
        client.call("names", json!({})).await["structuredContent"],
        json!({"result": ["uno", "two"]})
    );
}

/// The same for what goes over the network, and into a file.
#[tokio::test]
async fn a_read_only_tool_neither_posts_nor_replaces_a_file() {
    let web = Web::start().await;
    let house = House::new()
        .own_plugins(&[])
        .sheets()
        .file("data/kept.txt", "as it was")
        .config(&format!(
            "[connections.web]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true\n\
         [plugins.weir-guest-tools.grants]\nweb = \"write\"\ndata = \"write\"",
            web.base
        ));
    house.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    let (gateway, client) = house.serve_client();
    for tool in ["post", "overwrite"] {
        let result = client.call(tool, json!({})).await;
        assert_eq!(code(&result), "forbidden", "{tool}: {result}");
        gateway.wait_for_log(&format!(
            "published as read-only and tried to write: nothing was written\",\"plugin\":\"weir-guest-tools\",\"tool\":\"{tool}\""
        ));
    }
    assert_eq!(web.requests(), 0, "nothing was posted");
    assert_eq!(
        std::fs::read_to_string(house.path().join("data/kept.txt")).expect("a file"),
        "as it was"
    );
}

/// A tool that harms itself is `plugin_failed` only for its own call.
#[tokio::test]
async fn a_tool_that_panics_spins_or_allocates_fails_alone() {
    let house = sample::house()
        .own_plugins(&["sheet"])
        .config("[plugins.weir-guest-tools]\ncpu_max_ms = 300");
    house.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    let (gateway, client) = house.serve_client();
    let ended = |why: &str, setting: &str| {
        format!(
            "The tool was ended: {why}; an operator can raise `{setting}` of the plugin. Ask for less in one call."
        )
    };
    for (tool, why, message) in [
        ("crash", "panicked", "The tool failed.".to_owned()),
        (
            "spin",
            "processor time",
            ended("it used more than 300 ms of processor time", "cpu_max_ms"),
        ),
        (
            "allocate",
            "memory",
            ended("it ran out of memory (at most 64 MB)", "memory_max_mb"),
        ),
    ] {
        let neighbour = client.call("lookup_airport", json!({"iata": "OSL"}));
        let (result, beside) = tokio::join!(client.call(tool, json!({})), neighbour);
        assert_eq!(
            (code(&result), &result["isError"]),
            ("plugin_failed", &json!(true)),
            "{tool}: {result}"
        );
        assert_eq!(
            (
                &result["structuredContent"]["message"],
                &result["content"][0]["text"]
            ),
            (&json!(message), &json!(message)),
            "{tool}"
        );
        assert_eq!(
            beside["structuredContent"]["country"], "NO",
            "beside {tool}: {beside}"
        );
        let id = result["structuredContent"]["call_id"]
            .as_str()
            .expect("an id");
        gateway.wait_for_log(id);
        let log = gateway.log();
        assert!(
            log.lines()
                .any(|line| line.contains(id) && line.contains(why)),
            "{tool}: {why}: {log}"
        );
        let again = client
            .call("deploy", json!({"environment": "prod", "service": "web"}))
            .await;
        assert_eq!(again["isError"], false, "after {tool}: {again}");
    }
}

/// Calls as a client that can be asked.
async fn ask(client: &Modern, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = client
        .raw(body)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call");
    let name = params["name"].as_str().expect("a name").to_owned();
    send(request.header("mcp-name", name)).await.reply().clone()
}

#[tokio::test]
async fn a_question_is_answered_and_an_altered_or_borrowed_state_is_refused() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    let call = json!({"name": "remove", "arguments": {"environment": "prod"}});
    let asked = ask(&client, call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(
        asked["inputRequests"]["sure"]["method"],
        "elicitation/create"
    );
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    let answer = |call: &Value, state: &str| {
        let mut answer = call.clone();
        answer["inputResponses"] = json!({"sure": {"action": "accept", "content": {"sure": true}}});
        answer["requestState"] = json!(state);
        answer
    };
    let done = ask(&client, answer(&call, &state)).await;
    assert_eq!(
        done["result"]["structuredContent"],
        json!({"removed": true}),
        "{done}"
    );
    let mut altered = state.clone().into_bytes();
    altered[40] ^= 1;
    let altered = String::from_utf8(altered).expect("ASCII");
    let other = json!({"name": "remove", "arguments": {"environment": "test"}});
    let mut without = answer(&call, &state);
    without
        .as_object_mut()
        .expect("an object")
        .remove("requestState");
    for (what, refused) in [
        ("altered", answer(&call, &altered)),
        ("another call", answer(&other, &state)),
    ] {
        let refused = ask(&client, refused).await;
        assert_eq!(refused["error"]["code"], -32602, "{what}: {refused}");
    }
    // Answers may come without a state; a tool that keeps a state notices that it is missing.
    let unasked = ask(&client, without).await["result"].clone();
    assert_eq!(
        (code(&unasked), &unasked["isError"]),
        ("invalid_arguments", &json!(true)),
        "{unasked}"
    );
}

#[tokio::test]
async fn the_operator_names_chooses_and_bounds_the_tools() {
    let house = plain().config(
        "[plugins.tools-js]\ncontract = \"ops\"\nprefix = \"ops_\"\ntools = [\"deploy\", \"refuse\"]\n\
         limits = { rate = \"2/hour\" }\naudit = { clear = [\"environment\"] }",
    );
    let gateway = house.serve();
    let client = Modern::new(gateway.contract_url("ops"));
    let (tools, _) = client.list().await;
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["ops_deploy", "ops_refuse"]);
    let arguments = json!({"environment": "prod", "service": "web"});
    client.succeed("ops_deploy", arguments.clone()).await;
    client.succeed("ops_deploy", arguments.clone()).await;
    assert_eq!(
        code(&client.call("ops_deploy", arguments).await),
        "rate_limited"
    );

    let calls = audit::records(&house, &["--kind", "call"]);
    let answer: Vec<_> = calls
        .iter()
        .map(|call| (&call["tool"], &call["outcome"], &call["clear"]))
        .collect();
    let (tool, ok, clear) = (
        &json!("ops_deploy"),
        &json!("ok"),
        &json!({"environment": "prod"}),
    );
    assert_eq!(
        answer,
        [
            (tool, ok, clear),
            (tool, ok, clear),
            (tool, &json!("refused"), &Value::Null)
        ]
    );
    assert_eq!(
        (&calls[0]["contract"], &calls[2]["code"]),
        (&json!("ops@1.0.0"), &json!("rate_limited"))
    );
    assert!(
        calls[0]["arguments_digest"].is_string() && calls[0]["plugin"].is_string(),
        "{}",
        calls[0]
    );
    assert!(
        !json!(calls).to_string().contains("web"),
        "what is not named is not in the clear: {calls:?}"
    );
    let scraped = gateway.metrics().await;
    for (outcome, count) in [("ok", 2), ("rate_limited", 1)] {
        let line = format!(
            "weir_calls_total{{contract=\"ops\",outcome=\"{outcome}\",tool=\"ops_deploy\",version=\"1.0.0\"}} {count}\n"
        );
        assert!(scraped.contains(&line), "{line}{scraped}");
    }
}

/// A caller who listens to the log receives what a tool logs, but not the text of a panic, which may hold a secret.
#[tokio::test]
async fn the_text_of_a_panic_reaches_the_log_and_no_caller() {
    let inside = House::new().own_plugins(&[]);
    inside.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    let native = House::new()
        .own_plugins(&[])
        .native("weir-guest-tools", "tools-rust");
    for house in [inside, native] {
        let (gateway, client) = house.serve_client();
        let deployed = client
            .call_listening("deploy", json!({"environment": "prod", "service": "web"}))
            .await;
        let heard = |message: &Value| message["params"]["data"] == "deploying web";
        assert!(deployed.messages.iter().any(heard), "{deployed:?}");
        let crashed = client.call_listening("crash", json!({})).await;
        assert_eq!(
            (code(crashed.result()), crashed.messages.len()),
            ("plugin_failed", 1),
            "{crashed:?}"
        );
        gateway.wait_for_log("as asked");
    }
}
