//! Tools that come from code: what a plugin's functions answer, what they may do, and which of its builds serves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{Events, Gateway, House, Legacy, Modern, client::send, place};

/// Makes a house with the guest that has tools, over a database that it may write.
fn house() -> House {
    let house = plain().config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/things.sqlite\"\nwrite = true\n\
         [plugins.tools-js]\ndev = true\nmemory_max_mb = 128\n[plugins.tools-js.grants]\ndb = \"write\"\n\
         [plugins.tools-js.settings]\ngreeting = \"hello\"",
    );
    let database = rusqlite::Connection::open(house.path().join("data/things.sqlite")).expect("a database");
    let rows =
        "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO things VALUES (1, 'one'), (2, 'two')";
    database.execute_batch(rows).expect("two things");
    house
}

fn plain() -> House {
    let house = House::new().own_plugins(&[]);
    put(&house, "tools-js");
    house
}

fn put(house: &House, build: &str) {
    house.write("plugins/tools-js.wasm", std::fs::read(place::guest(build)).expect("a guest can be read"));
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["code"].as_str().unwrap_or("none")
}

#[tokio::test]
async fn a_plugins_functions_are_listed_and_called_in_both_eras() {
    let house = house();
    let gateway = house.serve();
    let modern = Modern::new(gateway.contract_url("tools-js"));
    let legacy = Legacy::open(gateway.contract_url("tools-js"), "2025-11-25").await;
    let (tools, _) = modern.list().await;
    let deploy = tools.iter().find(|tool| tool["name"] == "deploy").expect("it is listed");
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
        tools.as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect()
    };
    let legacy_tools = legacy.ask("tools/list", json!({})).await.result()["tools"].clone();
    assert_eq!(names(&legacy_tools), names(&json!(tools)));
    for call in [true, false] {
        let ask = async |tool: &str, arguments: Value| match call {
            true => modern.call(tool, arguments).await,
            false => legacy.call(tool, arguments).await,
        };
        let deployed = ask("deploy", json!({"environment": "prod", "service": "web"})).await;
        let told = json!({"environment": "prod", "service": "web", "version": "latest"});
        assert_eq!((&deployed["structuredContent"], &deployed["isError"]), (&told, &json!(false)), "{deployed}");
        let text = deployed["content"][0]["text"].as_str().expect("a text block");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), told);
        let listed = ask("names", json!({})).await;
        assert_eq!(listed["structuredContent"], json!({"result": ["one", "two"]}), "what is no object is wrapped");
        assert_eq!(listed["content"][0]["text"], r#"["one","two"]"#, "its text is the value itself");
        let drawn = ask("draw", json!({})).await;
        assert!(drawn.get("structuredContent").is_none(), "{drawn}");
        let blocks = drawn["content"].as_array().expect("blocks");
        let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
        assert_eq!(kinds, ["text", "image", "resource_link", "resource"]);
        let who = ask("whoami", json!({})).await["structuredContent"].clone();
        assert_eq!((&who["greeting"], &who["contract"]), (&json!("hello"), &json!("tools-js@1.0.0")), "{who}");
    }
}

#[tokio::test]
async fn each_way_to_fail_has_its_own_code() {
    let house = house();
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    let refused = client.call("refuse", json!({"code": "too_early"})).await;
    let content = &refused["structuredContent"];
    assert_eq!((code(&refused), &content["reason"]), ("tool_error", &json!("too_early")), "{refused}");
    assert!(content["message"].as_str().is_some_and(|text| text.contains("after noon")), "{refused}");
    for (tool, arguments, wanted) in [
        ("refuse", json!({"code": "not_found"}), "not_found"),
        ("refuse", json!({"code": "conflict"}), "conflict"),
        ("wrong", json!({}), "output_mismatch"),
        ("crash", json!({}), "plugin_failed"),
        ("deploy", json!({"environment": "prod"}), "invalid_arguments"),
        ("deploy", json!({"environment": "prod", "service": "web", "colour": "red"}), "invalid_arguments"),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!((code(&result), &result["isError"]), (wanted, &json!(true)), "{tool} {arguments}: {result}");
    }
    let asks = client.ask("tools/call", json!({"name": "remove", "arguments": {"environment": "prod"}})).await;
    assert_eq!(asks.reply()["error"]["code"], -32021, "this client says of nothing that it can answer it: {asks:?}");
}

/// The annotation is not believed: what is published as read-only runs where nothing can be written.
#[tokio::test]
async fn a_read_only_tool_that_writes_is_forbidden_and_nothing_changes() {
    let house = house();
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    let looked = client.call("look", json!({})).await;
    assert_eq!(code(&looked), "forbidden", "{looked}");
    gateway.wait_for_log("published as read-only and tried to write");
    assert_eq!(client.call("names", json!({})).await["structuredContent"], json!({"result": ["one", "two"]}));
    let renamed = client.call("rename", json!({"name": "uno"})).await;
    assert_eq!(renamed["structuredContent"], json!({"changed": 1}), "{renamed}");
    assert_eq!(client.call("names", json!({})).await["structuredContent"], json!({"result": ["uno", "two"]}));
}

/// Calls as a client that can be asked.
async fn ask(client: &Modern, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = client.raw(body).header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    let name = params["name"].as_str().expect("a name").to_owned();
    send(request.header("mcp-name", name)).await.reply().clone()
}

#[tokio::test]
async fn a_question_is_answered_and_an_altered_or_borrowed_state_is_refused() {
    let house = house();
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    let call = json!({"name": "remove", "arguments": {"environment": "prod"}});
    let asked = ask(&client, call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["sure"]["method"], "elicitation/create");
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    let answer = |call: &Value, state: &str| {
        let mut answer = call.clone();
        answer["inputResponses"] = json!({"sure": {"action": "accept", "content": {"sure": true}}});
        answer["requestState"] = json!(state);
        answer
    };
    let done = ask(&client, answer(&call, &state)).await;
    assert_eq!(done["result"]["structuredContent"], json!({"removed": true}), "{done}");
    let mut altered = state.clone().into_bytes();
    altered[40] ^= 1;
    let altered = String::from_utf8(altered).expect("ASCII");
    let other = json!({"name": "remove", "arguments": {"environment": "test"}});
    let mut without = answer(&call, &state);
    without.as_object_mut().expect("an object").remove("requestState");
    for (what, refused) in [("altered", answer(&call, &altered)), ("another call", answer(&other, &state))] {
        let refused = ask(&client, refused).await;
        assert_eq!(refused["error"]["code"], -32602, "{what}: {refused}");
    }
    // Answers may come without a state; a tool that keeps one sees that it is not there.
    let unasked = ask(&client, without).await["result"].clone();
    assert_eq!((code(&unasked), &unasked["isError"]), ("invalid_arguments", &json!(true)), "{unasked}");
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
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["ops_deploy", "ops_refuse"]);
    let arguments = json!({"environment": "prod", "service": "web"});
    assert_eq!(client.call("ops_deploy", arguments.clone()).await["isError"], false);
    assert_eq!(client.call("ops_deploy", arguments.clone()).await["isError"], false);
    assert_eq!(code(&client.call("ops_deploy", arguments).await), "rate_limited");
}

/// Plays one caller: it uses the old arguments until they are refused, and the new ones from then on.
async fn keep_calling(url: String, stop: Arc<AtomicBool>, [old, new]: [Arc<AtomicUsize>; 2]) {
    let client = Modern::new(url);
    let mut renamed = false;
    while !stop.load(Ordering::Relaxed) {
        let parameter = if renamed { "application" } else { "service" };
        let result = client.call("deploy", json!({"environment": "prod", parameter: "web"})).await;
        if code(&result) == "invalid_arguments" && !renamed {
            // The contract that names it so is published: nothing else may refuse it.
            assert!(result.to_string().contains("application"), "{result}");
            renamed = true;
            continue;
        }
        let told = &result["structuredContent"];
        assert_eq!((&told["service"], &told["version"]), (&json!("web"), &json!("latest")), "a call failed: {result}");
        if renamed { &new } else { &old }.fetch_add(1, Ordering::Relaxed);
    }
}

async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn version(gateway: &Gateway) -> String {
    let answer = Modern::new(gateway.contract_url("tools-js")).ask("server/discover", json!({})).await;
    let info = &answer.reply()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    info["version"].as_str().unwrap_or("none").to_owned()
}

/// Counts the messages that say the list changed, until the stream is silent.
async fn changes(stream: &mut Events) -> usize {
    let mut count = 0;
    while let Some(message) = stream.next(Duration::from_millis(1_500)).await {
        count += usize::from(message["method"] == "notifications/tools/list_changed");
    }
    count
}

/// Two processes on one state and one folder, sixteen callers: the build that renames a parameter waits while the old one
/// answers, and goes live in both once its change is published. No call fails, and each client hears of it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_build_that_renames_a_parameter_is_held_and_then_swapped_under_load() {
    let house = plain();
    let gateways = [house.serve(), house.serve()];
    let (stop, counts) = (Arc::new(AtomicBool::new(false)), [Arc::<AtomicUsize>::default(), Arc::default()]);
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let url = gateways[caller % 2].url();
            tokio::spawn(keep_calling(url, stop.clone(), counts.clone()))
        })
        .collect();
    let mut streams = Vec::new();
    for gateway in &gateways {
        let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
        streams.push(Events::open(legacy.stream()).await);
    }
    // A pure fix goes live by itself, and no client hears of it.
    put(&house, "tools-js-fix");
    for gateway in &gateways {
        gateway.wait_for_log("\"version\":\"1.0.1\"");
    }
    put(&house, "tools-js");
    put(&house, "tools-js-renamed");
    for gateway in &gateways {
        gateway.wait_for_log("held: it defines other tools than are published");
    }
    let before = counts[0].load(Ordering::Relaxed);
    wait_until("the old build goes on", async || counts[0].load(Ordering::Relaxed) > before + 100).await;
    assert_eq!(counts[1].load(Ordering::Relaxed), 0);
    for (gateway, stream) in gateways.iter().zip(&mut streams) {
        assert_eq!(version(gateway).await, "1.0.0");
        assert_eq!(changes(stream).await, 0, "nothing has changed for a client");
    }
    let plugins = house.json(&["plugins", "list"]);
    assert!(plugins.to_string().contains("held"), "{plugins}");
    let contract = house.json(&["contracts", "show", "tools-js"]);
    let drafts = contract["drafts"].as_array().expect("drafts");
    let draft = drafts.iter().find(|draft| draft["status"] == "pending").expect("it waits");
    assert_eq!(draft["class"], "breaking");
    let (id, fingerprint) =
        (draft["id"].as_str().expect("an id"), draft["fingerprint"].as_str().expect("a fingerprint"));
    let (done, out, err) = house.run(&["contracts", "publish", id, "--fingerprint", fingerprint]);
    assert_eq!(done, 0, "{out} {err}");
    for gateway in &gateways {
        wait_until("the new version is served", async || version(gateway).await == "2.0.0").await;
    }
    let before = counts[1].load(Ordering::Relaxed);
    wait_until("the new build answers", async || counts[1].load(Ordering::Relaxed) > before + 100).await;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no call fails");
    }
    for stream in &mut streams {
        assert_eq!(changes(stream).await, 1, "exactly one list_changed");
    }
    let counts = counts.map(|count| count.load(Ordering::Relaxed));
    eprintln!("{} calls of the old build, {} of the new one, none failed", counts[0], counts[1]);
}

/// A published version goes on with the build it was made from, whatever lies in the folder.
#[tokio::test]
async fn a_restart_and_a_rollback_run_the_kept_build() {
    let house = plain();
    let old = json!({"environment": "prod", "service": "web"});
    let new = json!({"environment": "prod", "application": "web"});
    drop(house.serve());
    put(&house, "tools-js-renamed");
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    assert_eq!(client.call("deploy", old.clone()).await["isError"], false, "the kept build answers\n{}", gateway.log());
    assert!(agree(&house), "it waits");
    wait_until("the new build", async || client.call("deploy", new.clone()).await["isError"] == false).await;
    drop(gateway);
    let gateway = house.serve();
    let client = Modern::new(gateway.url());
    assert_eq!(client.call("deploy", new.clone()).await["isError"], false);
    let rollback = ["contracts", "rollback", "tools-js", "--to", "1.0.0"];
    let report = house.json(&rollback);
    let fingerprint = report["fingerprint"].as_str().expect("a fingerprint");
    let (done, out, err) = house.run(&[&rollback[..], &["--fingerprint", fingerprint]].concat());
    assert_eq!(done, 0, "{out} {err}");
    wait_until("the kept build", async || client.call("deploy", old.clone()).await["isError"] == false).await;
    drop(gateway);
    let gateway = house.serve();
    assert_eq!(Modern::new(gateway.url()).call("deploy", old).await["isError"], false, "also after a restart");
}

/// Publishes the draft that waits, by its fingerprint; returns `false` if none does.
fn agree(house: &House) -> bool {
    let contract = house.json(&["contracts", "show", "tools-js"]);
    let drafts = contract["drafts"].as_array().cloned().unwrap_or_default();
    let Some(draft) = drafts.iter().find(|draft| draft["status"] == "pending") else { return false };
    let (id, print) = (draft["id"].as_str().expect("an id"), draft["fingerprint"].as_str().expect("a fingerprint"));
    house.run(&["contracts", "publish", id, "--fingerprint", print]).0 == 0
}

/// The gateway is killed at any moment of a change of builds: the state opens, what is listed is what answers, and a
/// change that nobody has agreed to is not served.
#[tokio::test]
async fn a_crash_at_any_moment_lets_no_build_in() {
    let house = plain();
    let mut gateway = house.serve();
    let mut agreed = 0;
    for round in 0..50 {
        put(&house, if round % 2 == 0 { "tools-js-renamed" } else { "tools-js" });
        // Spread over what a swap takes, from the first look at the file to the published contract.
        tokio::time::sleep(Duration::from_millis(round * 137 % 1_100)).await;
        if round % 3 == 2 && agree(&house) {
            agreed += 1;
            tokio::time::sleep(Duration::from_millis(round * 53 % 500)).await;
        }
        gateway.kill();
        gateway = house.serve();
        let client = Modern::new(gateway.contract_url("tools-js"));
        let (tools, _) = client.list().await;
        let deploy = tools.iter().find(|tool| tool["name"] == "deploy").expect("it is listed");
        let renamed = !deploy["inputSchema"]["properties"]["application"].is_null();
        assert!(!renamed || agreed > 0, "round {round}: nobody has agreed");
        let parameter = if renamed { "application" } else { "service" };
        let result = client.call("deploy", json!({"environment": "prod", parameter: "web"})).await;
        assert_eq!(result["structuredContent"]["service"], "web", "round {round}: {result}\n{}", gateway.log());
    }
    assert!(agreed > 0, "some change was agreed to");
}
