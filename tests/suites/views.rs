//! Views: parts of the catalogue with their own endpoints, under the rules of every other endpoint.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Events, Gateway, House, Legacy, Modern, Stdio, answer_to, client::LEGACY, http};

use crate::sample;

/// A second contract over the data of the sample.
pub(crate) const FIELDS: &str = r#"
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
    sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config(VIEWS)
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

async fn listed(client: &Modern) -> Vec<String> {
    names(&client.list().await.0)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_view_lists_and_calls_its_tools_alone_in_both_eras_and_over_stdio() {
    let house = house();
    let gateway = house.serve();
    let view = Modern::new(gateway.view_url("lists"));
    assert_eq!(listed(&view).await, ["list_airports", "lookup_field"]);
    assert_eq!(
        listed(&Modern::new(gateway.view_url("reading"))).await,
        ["list_airports", "lookup_airport"]
    );
    assert_eq!(
        listed(&Modern::new(gateway.view_url("empty"))).await,
        [""; 0]
    );

    let (all, _) = Modern::new(gateway.url()).list().await;
    let (seen, _) = view.list().await;
    assert_eq!(
        seen[0],
        *all.iter()
            .find(|tool| tool["name"] == "list_airports")
            .expect("it is there")
    );
    let found = view.call("lookup_field", json!({"iata": "OSL"})).await;
    assert_eq!(found["structuredContent"]["country"], "NO", "{found}");
    let outside = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    assert_eq!(
        view.ask("tools/call", outside.clone()).await.error_code(),
        -32602
    );
    let discovered = view.ask("server/discover", json!({})).await;
    let server = &discovered.result()["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "lists", "{server}");

    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Legacy::open(gateway.view_url("lists"), version).await;
        let list = session.ask("tools/list", json!({})).await;
        let tools = list.result()["tools"].as_array().expect("tools").clone();
        assert_eq!(
            names(&tools),
            ["list_airports", "lookup_field"],
            "{version}"
        );
        assert_eq!(
            session.call("lookup_field", json!({"iata": "OSL"})).await["isError"],
            false,
            "{version}"
        );
        assert_eq!(
            session
                .ask("tools/call", outside.clone())
                .await
                .error_code(),
            -32602,
            "{version}"
        );
        // A session is of the endpoint that it was opened at.
        let mut elsewhere = session.clone();
        elsewhere.url = gateway.url();
        assert_eq!(
            elsewhere.ask("tools/list", json!({})).await.status,
            404,
            "{version}"
        );
    }

    let page = answer_to(http().get(format!("{}/llms.txt", gateway.view_url("lists")))).await;
    let page = page.text().await.expect("text");
    assert!(
        page.contains("### lookup_field") && !page.contains("lookup_airport"),
        "{page}"
    );
    let (code, printed, err) = house.run(&["tools", "llms", "--view", "lists"]);
    assert_eq!((code, printed.as_str()), (0, page.trim_end()), "{err}");

    let mut stdio = Stdio::start_with(&house, "", &["--view", "lists"]);
    let tools = stdio.ask_modern("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    assert_eq!(names(&tools), ["list_airports", "lookup_field"]);
    let refused = stdio.ask_modern("tools/call", outside).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let (code, _, err) = house.run(&["stdio", "--view", "list"]);
    assert!(
        code == 1 && err.contains("there is no view `list`; there are empty, lists, reading"),
        "{err}"
    );
}

#[tokio::test]
async fn what_is_no_view_is_not_there_and_a_contract_may_be_called_view() {
    let house = house().file(
        "contracts/view.yaml",
        FIELDS
            .replace("contract: fields", "contract: view")
            .replace("lookup_field", "look"),
    );
    let gateway = house.serve();
    for name in ["other", "airports", "llms.txt", "Lists", "%00"] {
        let answer = Modern::new(gateway.view_url(name))
            .ask("tools/list", json!({}))
            .await;
        assert!(
            [404, 405].contains(&answer.status.as_u16()),
            "{name}: {}",
            answer.text
        );
    }
    let refused = Modern::new(gateway.view_url("other"))
        .ask("tools/list", json!({}))
        .await;
    assert_eq!(
        refused.reply()["error"]["message"],
        "no view `other` is served here"
    );
    assert_eq!(
        listed(&Modern::new(gateway.contract_url("view"))).await,
        ["look"]
    );
    let page = answer_to(http().get(format!("{}/llms.txt", gateway.contract_url("view")))).await;
    assert!(page.text().await.expect("text").contains("### look"));
}

/// Hidden is unknown, on a view as everywhere; a page of a narrow key holds what the key sees; a revoked key no
/// longer works.
#[tokio::test]
async fn a_key_sees_of_a_view_what_it_may_use() {
    let house = house().config("[http]\npage_size = 1");
    let gateway = house.serve();
    let url = gateway.view_url("lists");
    let everything = house.key(&["--agent", "ann"]);
    let some = house.key(&[
        "--agent",
        "bob",
        "--contract",
        "airports",
        "--rate",
        "9/min",
    ]);
    let none = house.key(&["--agent", "eve", "--tool", "create_airport"]);
    assert_eq!(
        Modern::new(&url).ask("tools/list", json!({})).await.status,
        401
    );
    assert_eq!(
        Modern::with_key(&url, &everything).list().await.1,
        2,
        "two pages of one tool each"
    );
    let bob = Modern::with_key(&url, &some);
    assert_eq!(listed(&bob).await, ["list_airports"]);
    for tool in ["lookup_field", "lookup_airport", "nothing"] {
        let refused = bob
            .ask("tools/call", json!({"name": tool, "arguments": {}}))
            .await;
        assert_eq!(
            refused.reply()["error"]["message"],
            format!("unknown tool `{tool}`"),
            "{}",
            refused.text
        );
    }
    let unknown = Modern::with_key(gateway.view_url("other"), &none)
        .ask("tools/list", json!({}))
        .await;
    let hidden = Modern::with_key(&url, &none)
        .ask("tools/list", json!({}))
        .await;
    assert_eq!(hidden.status, 404);
    let text = |answer: &weir_tests::Answer| {
        answer.reply()["error"]["message"]
            .to_string()
            .replace("other", "lists")
    };
    assert_eq!(text(&hidden), text(&unknown));

    // There is one bucket over all endpoints: four were asked above.
    let elsewhere = Modern::with_key(gateway.url(), &some);
    for _ in 4..9 {
        assert_eq!(elsewhere.ask("tools/list", json!({})).await.status, 200);
    }
    assert_eq!(
        bob.ask("tools/list", json!({})).await.status,
        429,
        "limits are shared"
    );

    let id = everything.split('_').nth(1).expect("an id").to_owned();
    assert_eq!(house.run(&["keys", "revoke", &id]).0, 0);
    assert_eq!(
        Modern::with_key(&url, &everything)
            .ask("tools/list", json!({}))
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn a_key_is_shown_its_view_where_it_asks_for_everything() {
    let house = house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--view", "reading"]);
    let ann = Modern::with_key(gateway.url(), &key);
    assert_eq!(listed(&ann).await, ["list_airports", "lookup_airport"]);
    let outside = ann
        .ask(
            "tools/call",
            json!({"name": "lookup_field", "arguments": {"iata": "OSL"}}),
        )
        .await;
    assert_eq!(outside.error_code(), -32602);
    let other = Modern::with_key(gateway.contract_url("fields"), &key);
    assert_eq!(
        listed(&other).await,
        ["lookup_field"],
        "a view is what is shown, not what may be used"
    );
    let page = answer_to(
        http()
            .get(format!("{}/llms.txt", gateway.base))
            .bearer_auth(&key),
    )
    .await;
    assert!(!page.text().await.expect("text").contains("lookup_field"));
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&key)).await;
    assert_eq!(
        session.call("lookup_airport", json!({"iata": "OSL"})).await["isError"],
        false
    );
    let mut stdio = Stdio::start_as(&house, &key);
    let tools = stdio.ask_modern("tools/list", json!({})).await;
    assert_eq!(
        tools["result"]["tools"].as_array().map(Vec::len),
        Some(2),
        "{tools}"
    );

    let keys = house.json(&["keys", "list"]);
    assert_eq!(keys[0]["view"], "reading", "{keys}");
    let (code, _, warned) = house.run(&["keys", "create", "--agent", "bob", "--view", "raeding"]);
    assert!(
        code == 0 && warned.contains("there is no view `raeding` yet; did you mean `reading`?"),
        "{warned}"
    );
    let (code, _, refused) = house.run(&["keys", "create", "--agent", "bob", "--view", "No/view"]);
    assert!(
        code == 1 && refused.contains("`view` must be a lowercase letter"),
        "{refused}"
    );
    // Without its view the key is shown nothing, rather than everything.
    let absent = house.key(&["--agent", "eve", "--view", "gone"]);
    assert_eq!(
        Modern::with_key(gateway.url(), &absent)
            .ask("tools/list", json!({}))
            .await
            .status,
        404
    );
    drop(gateway);
    let gateway = house.serve();
    assert_eq!(
        listed(&Modern::with_key(gateway.url(), &key)).await,
        ["list_airports", "lookup_airport"]
    );
}

fn reload(gateway: &Gateway) {
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &gateway.process_id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

/// A listener of a view is notified of its changes, and of no others.
#[tokio::test]
async fn a_view_that_is_edited_is_taken_over_while_serving() {
    let house = house();
    let gateway = house.serve();
    let listen = |url: String| async move {
        let request = Modern::new(url).request(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        );
        let mut events = Events::open(request).await;
        let first = events
            .next(Duration::from_secs(60))
            .await
            .expect("acknowledged");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        events
    };
    let mut lists = listen(gateway.view_url("lists")).await;
    let mut reading = listen(gateway.view_url("reading")).await;
    let session = Legacy::open(gateway.view_url("lists"), "2025-11-25").await;
    let mut legacy = Events::open(session.stream()).await;
    let config =
        std::fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
    house.write(
        "weir.toml",
        format!(
            "{}\n[views.more]\n",
            config.replace("\"lookup_fiel?\"", "\"create_*\"")
        ),
    );
    reload(&gateway);
    for events in [&mut lists, &mut legacy] {
        let answer = events
            .next(Duration::from_secs(60))
            .await
            .expect("list_changed");
        assert_eq!(answer["method"], "notifications/tools/list_changed");
    }
    assert_eq!(
        listed(&Modern::new(gateway.view_url("lists"))).await,
        ["create_airport", "list_airports"]
    );
    assert_eq!(
        listed(&Modern::new(gateway.view_url("more"))).await.len(),
        4
    );
    assert!(
        reading.next(Duration::from_millis(600)).await.is_none(),
        "this view is as it was"
    );

    let refused = format!(
        "{config}\n[views.No]\ntools = [\"\"]\ncolour = 1\n[views.x]\ncontracts = [\"A B\"]\n"
    );
    house.write("weir.toml", refused);
    let (_, _, answer) = house.run_as_it_is(&["tools", "llms"]);
    for place in [
        "/views/No/colour: unknown key `colour`",
        "/views/x/contracts/0: the contract name",
    ] {
        assert!(answer.contains(place), "{place}: {answer}");
    }
    house.write(
        "weir.toml",
        format!("{config}\n[views.No]\ntools = [\"\"]\n"),
    );
    let (_, _, answer) = house.run_as_it_is(&["tools", "llms"]);
    for place in [
        "/views/No: is not the name of a view",
        "/views/No/tools/0: a pattern has 1 to 200 characters",
    ] {
        assert!(answer.contains(place), "{place}: {answer}");
    }
}

const SEARCH: &str = r#"
[views.find]
search = true
[views.reading]
read_only = true
search = true
"#;

fn found(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["isError"], false, "{answer}");
    names(
        answer["structuredContent"]["tools"]
            .as_array()
            .expect("tools"),
    )
}

#[tokio::test]
async fn a_view_with_search_lists_two_tools_and_runs_the_real_ones() {
    let house = sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config(SEARCH);
    let gateway = house.serve();
    let view = Modern::new(gateway.view_url("find"));
    let (tools, _) = view.list().await;
    assert_eq!(names(&tools), ["find_tools", "call_tool"]);
    let reply = tools[0]["description"].as_str().expect("a description");
    assert!(
        reply.contains("There are 4 tools, of airports, fields."),
        "{reply}"
    );
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], false);
    let (reading, _) = Modern::new(gateway.view_url("reading")).list().await;
    assert_eq!(reading[1]["annotations"]["readOnlyHint"], true);

    let answer = view
        .call("find_tools", json!({"query": "add a new airport"}))
        .await;
    assert_eq!(found(&answer)[0], "create_airport", "{answer}");
    assert_eq!(
        answer["content"][0]["text"]
            .as_str()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .as_ref(),
        Some(&answer["structuredContent"])
    );
    let listed = Modern::new(gateway.url()).tool("create_airport").await;
    let brief = &answer["structuredContent"]["tools"][0];
    assert_eq!(
        (&brief["inputSchema"], &brief["description"]),
        (&listed["inputSchema"], &listed["description"])
    );
    assert_eq!(brief["outputSchema"], listed["outputSchema"], "{brief}");
    assert!(brief.get("weak").is_none(), "{brief}");
    let one = view
        .call("find_tools", json!({"query": "airports", "limit": 1}))
        .await;
    assert_eq!(found(&one).len(), 1);

    // The real tool, with its own answer and its own errors.
    let called = view
        .call(
            "call_tool",
            json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}}),
        )
        .await;
    let direct = Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(
        (&called["structuredContent"], &called["content"]),
        (&direct["structuredContent"], &direct["content"])
    );
    let bare = view
        .call("call_tool", json!({"name": "list_airports"}))
        .await;
    assert_eq!(bare["isError"], false, "arguments may be left out: {bare}");
    let invalid = view
        .call(
            "call_tool",
            json!({"name": "lookup_airport", "arguments": {"iata": "osl"}}),
        )
        .await;
    assert_eq!(invalid["structuredContent"]["field"], "iata", "{invalid}");
    let by_name = view.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(
        by_name["isError"], false,
        "a tool that was found may be called by its name: {by_name}"
    );

    for (tool, arguments, field) in [
        ("find_tools", json!({}), "query"),
        ("find_tools", json!({"query": "x".repeat(8_001)}), "query"),
        ("find_tools", json!({"query": "x", "limit": 21}), "limit"),
        ("find_tools", json!({"query": "x", "more": 1}), "more"),
        ("call_tool", json!({}), "name"),
        ("call_tool", json!({"name": 7}), "name"),
        (
            "call_tool",
            json!({"name": "lookup_airport", "arguments": "{\"iata\":\"OSL\"}"}),
            "arguments",
        ),
        (
            "call_tool",
            json!({"name": "lookup_airport", "iata": "OSL"}),
            "iata",
        ),
    ] {
        let refused = view.call(tool, arguments.clone()).await;
        let error = &refused["structuredContent"];
        assert_eq!(
            (&error["code"], &error["field"]),
            (&json!("invalid_arguments"), &json!(field)),
            "{arguments}: {refused}"
        );
    }
    for name in ["nothing", "call_tool", "find_tools"] {
        let unknown = view
            .call("call_tool", json!({"name": name, "arguments": {}}))
            .await;
        let message = unknown["structuredContent"]["message"]
            .as_str()
            .expect("a message");
        assert_eq!(
            message,
            format!("There is no tool `{name}` here. Use a name that find_tools answers.")
        );
        let call_id = unknown["structuredContent"]["call_id"]
            .as_str()
            .expect("a call id");
        assert!(
            call_id.starts_with("c_"),
            "the call is on record: {unknown}"
        );
    }

    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Legacy::open(gateway.view_url("find"), version).await;
        let list = session.ask("tools/list", json!({})).await;
        assert_eq!(
            names(list.result()["tools"].as_array().expect("tools")),
            ["find_tools", "call_tool"],
            "{version}"
        );
        let text = session
            .call("find_tools", json!({"query": "air field"}))
            .await["content"][0]["text"]
            .to_string();
        assert!(text.contains("lookup_field"), "{version}: {text}");
        let called = session
            .call(
                "call_tool",
                json!({"name": "lookup_field", "arguments": {"iata": "OSL"}}),
            )
            .await;
        assert_eq!(called["isError"], false, "{version}: {called}");
    }
}

/// Google's converter refuses a tool whose schema has `additionalProperties: false`.
#[tokio::test]
async fn the_tools_of_a_search_are_written_for_its_client() {
    let house = sample::house().config(
        "[views.gemini]\nsearch = true\nprofile = \"gemini\"\n[views.claude]\nsearch = true\nprofile = \"anthropic\"\n",
    );
    let gateway = house.serve();
    let (whole, _) = Modern::new(gateway.view_url("claude")).list().await;
    let (read, _) = Modern::new(gateway.view_url("gemini")).list().await;
    for (mut whole, read) in whole.into_iter().zip(read) {
        let input = whole["inputSchema"].as_object_mut().expect("a schema");
        assert_eq!(input.remove("additionalProperties"), Some(json!(false)));
        if let Some(limit) = input["properties"].get_mut("limit") {
            limit.as_object_mut().expect("a schema").remove("default");
        }
        assert_eq!(read["inputSchema"], whole["inputSchema"]);
    }
}

/// A list that is filled up with what fits least is taken for an answer.
#[tokio::test]
async fn complaint_24_a_search_says_that_its_matches_are_weak() {
    let house = sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config(SEARCH);
    let gateway = house.serve();
    let view = Modern::new(gateway.view_url("find"));
    for (query, shares_a_word) in [
        ("translate a poem of Goethe into French", false),
        ("xyzzy", false),
        ("天気を教えて", false),
        // No tool has the word, and one has it as a part of another.
        ("Flughafenairports", true),
        ("play some jazz in the airport bar tonight", true),
    ] {
        let answer = view
            .succeed("find_tools", json!({"query": query, "limit": 20}))
            .await;
        let tools = answer["structuredContent"]["tools"]
            .as_array()
            .expect("tools");
        assert_eq!(!tools.is_empty(), shares_a_word, "{query}: {answer}");
        assert!(
            tools.iter().all(|tool| tool["weak"] == true),
            "{query}: {answer}"
        );
        let hint = answer["structuredContent"]["hint"]
            .as_str()
            .expect("a hint");
        let expected = match shares_a_word {
            true => "These are weak matches: ",
            false => "None of the 4 tools here shares a word with that.",
        };
        assert!(hint.starts_with(expected), "{query}: {hint}");
    }
    let something = view
        .call("find_tools", json!({"query": "look an airport up"}))
        .await;
    assert!(found(&something).contains(&"lookup_airport"), "{something}");
    assert!(
        something["structuredContent"].get("hint").is_none(),
        "{something}"
    );
}

/// Search finds what may be used, and a call is recorded, counted and limited under the tool's own name.
#[tokio::test]
async fn search_finds_what_the_caller_sees_and_calls_are_the_tools_own() {
    let house = sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config(SEARCH);
    let gateway = house.serve();
    let url = gateway.view_url("find");
    let ann = house.key(&[
        "--agent",
        "ann",
        "--contract",
        "airports",
        "--tool-rate",
        "lookup_airport=1/min",
    ]);
    let bob = house.key(&[
        "--agent",
        "bob",
        "--tool",
        "lookup_field",
        "--rate",
        "3/min",
    ]);
    let (ann, bob) = (Modern::with_key(&url, &ann), Modern::with_key(&url, &bob));
    let question = json!({"query": "air field or airport by IATA code", "limit": 20});
    assert!(!found(&ann.call("find_tools", question.clone()).await).contains(&"lookup_field"));
    assert_eq!(
        found(&bob.call("find_tools", question.clone()).await),
        ["lookup_field"]
    );
    let reply = bob.list().await.0[0]["description"].to_string();
    assert!(
        reply.contains("There is 1 tool, of fields.") && !reply.contains("airports"),
        "{reply}"
    );
    let call = async |name: &str| {
        ann.call(
            "call_tool",
            json!({"name": name, "arguments": {"iata": "OSL"}}),
        )
        .await
    };
    let reply = async |name: &str| {
        let answer = call(name).await;
        // The ids of calls are random.
        let id = answer["structuredContent"]["call_id"]
            .as_str()
            .expect("a call id")
            .to_owned();
        answer.to_string().replace(name, "").replace(&id, "")
    };
    assert_eq!(
        reply("lookup_field").await,
        reply("lookup_fiels").await,
        "hidden and unknown cannot differ"
    );
    assert_eq!(call("lookup_airport").await["isError"], false);
    assert_eq!(
        call("lookup_airport").await["structuredContent"]["code"],
        "rate_limited"
    );
    // There is one bucket over all that is asked, finding too: two were taken above.
    assert_eq!(
        found(&bob.call("find_tools", question.clone()).await).len(),
        1
    );
    let limited = bob.call("find_tools", question).await;
    assert_eq!(
        limited["structuredContent"]["code"], "rate_limited",
        "{limited}"
    );

    // A search is not a call of the tools that it finds: it is recorded and counted under its own name, with no contract.
    let calls = |agent: &str| -> Vec<Value> {
        let (_, lines, _) = house.run(&["audit", "query", "--json", "--agent", agent]);
        let records = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let calls = records.filter(|record| record["kind"] == "call");
        calls
            .map(|call| {
                json!([
                    call["tool"],
                    call["contract"].is_null(),
                    call["outcome"],
                    call["code"]
                ])
            })
            .collect()
    };
    let finding = |outcome: &str, code: Value| json!(["find_tools", true, outcome, code]);
    assert_eq!(
        calls("ann"),
        [
            finding("ok", Value::Null),
            json!([null, true, "refused", "unknown_tool"]),
            json!([null, true, "refused", "unknown_tool"]),
            json!(["lookup_airport", false, "ok", null]),
            json!(["lookup_airport", false, "refused", "rate_limited"]),
        ]
    );
    let bobs = [
        finding("ok", Value::Null),
        finding("ok", Value::Null),
        finding("refused", json!("rate_limited")),
    ];
    assert_eq!(calls("bob"), bobs);
}

/// Every call leaves a record, even if it is refused before it names a tool, and its answer has the record's id and
/// its receipt.
#[tokio::test]
async fn what_search_refuses_is_recorded() {
    let house = sample::house().config(SEARCH);
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--rate", "5/min"]);
    let view = Modern::with_key(gateway.view_url("find"), &key);
    let mut answers = Vec::new();
    for (tool, arguments) in [
        ("find_tools", json!({})),
        ("find_tools", json!({"query": "airport"})),
        ("call_tool", json!({"name": 7})),
        (
            "call_tool",
            json!({"name": "lookup_airport", "iata": "OSL"}),
        ),
        ("call_tool", json!({"name": "nothing"})),
        ("call_tool", json!({})),
        ("find_tools", json!({"query": "airport"})),
        (
            "call_tool",
            json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}}),
        ),
    ] {
        answers.push(view.call(tool, arguments).await);
    }
    let (_, lines, _) = house.run(&["audit", "query", "--json"]);
    let records = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let calls: Vec<Value> = records.filter(|record| record["kind"] == "call").collect();
    let reply: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!([
                call["tool"],
                call["outcome"],
                call["code"],
                call["protocol"]
            ])
        })
        .collect();
    let modern = "2026-07-28";
    assert_eq!(
        reply,
        [
            json!(["find_tools", "refused", "invalid_arguments", modern]),
            json!(["find_tools", "ok", null, modern]),
            json!(["call_tool", "refused", "invalid_arguments", modern]),
            json!(["call_tool", "refused", "invalid_arguments", modern]),
            json!([null, "refused", "unknown_tool", modern]),
            // The rate is spent. A call that names a tool is refused before anyone looks for it.
            json!(["call_tool", "refused", "rate_limited", modern]),
            json!(["find_tools", "refused", "rate_limited", modern]),
            json!([null, "refused", "rate_limited", modern]),
        ]
    );
    for (answer, call) in answers.iter().zip(&calls) {
        let is_unknown = call["code"] == "unknown_tool";
        let receipt = answer["_meta"]["dev.weir/receipt"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(
            receipt.contains(call["hash"].as_str().expect("a hash")),
            !is_unknown,
            "{answer}: {call}"
        );
        if answer["isError"] == true && !is_unknown {
            assert_eq!(
                answer["structuredContent"]["call_id"], call["call_id"],
                "{answer}"
            );
        }
        assert!(
            call["arguments_digest"].is_string() && call["agent"] == "ann",
            "{call}"
        );
    }
    let scraped = gateway.metrics().await;
    let line = "weir_calls_total{contract=\"\",outcome=\"ok\",tool=\"find_tools\",version=\"\"} 1";
    assert!(scraped.contains(line), "{scraped}");
}

/// A profile is the operator's choice: schemas are lowered, arguments meet the full one.
#[tokio::test]
async fn a_profile_lowers_what_is_listed_and_nothing_of_what_is_checked() {
    let house = sample::house()
        .config("[views.plain]\n[views.gemini]\nprofile = \"gemini\"\n[views.strict]\nprofile = \"openai-strict\"");
    let gateway = house.serve();
    let schema = async |view: &str, tool: &str| {
        let (tools, _) = Modern::new(gateway.view_url(view)).list().await;
        tools
            .iter()
            .find(|listed| listed["name"] == tool)
            .expect("it is listed")["inputSchema"]
            .clone()
    };
    let plain = schema("plain", "list_airports").await;
    let gemini = schema("gemini", "list_airports").await;
    assert!(
        plain.get("additionalProperties").is_some() && gemini.get("additionalProperties").is_none(),
        "{gemini}"
    );
    let strict = schema("strict", "lookup_airport").await;
    assert_eq!(strict["required"], json!(["iata"]));
    let strict = schema("strict", "list_airports").await;
    let all: Vec<&String> = strict["properties"]
        .as_object()
        .expect("properties")
        .keys()
        .collect();
    assert_eq!(strict["required"], json!(all), "{strict}");
    let view = Modern::new(gateway.view_url("strict"));
    let nulls = view
        .call(
            "list_airports",
            json!({"country": "NO", "min_elevation_ft": null, "limit": null, "cursor": null}),
        )
        .await;
    assert_eq!(
        nulls["isError"], false,
        "what a strict model sends: {nulls}"
    );
    let refused = Modern::new(gateway.view_url("gemini"))
        .call("list_airports", json!({"nonsense": 1}))
        .await;
    assert_eq!(
        refused["structuredContent"]["code"], "invalid_arguments",
        "{refused}"
    );

    let printed = house.succeed(&["tools", "clients"]);
    assert!(
        printed.starts_with("TOOL") && printed.contains("openai-strict"),
        "{printed}"
    );
    assert!(
        printed.contains("loss   lookup_airport") || printed.contains("loss   list_airports"),
        "{printed}"
    );
    let (code, ..) = house.run(&["tools", "clients", "--no-loss"]);
    assert_eq!(code, 1);
    let checked = house.json(&["tools", "clients", "--view", "gemini"]);
    let clients = checked[0]["clients"].as_object().expect("clients");
    assert_eq!(clients.keys().collect::<Vec<_>>(), ["gemini"], "{checked}");
    let long = CONTRACT_LONG.replace("NAME", &"n".repeat(60));
    let house = house.file("contracts/long.yaml", long);
    let (code, printed, _) = house.run(&["tools", "clients", "--client", "cursor"]);
    assert!(code == 1 && printed.contains("refuse nnnn"), "{printed}");
    let (code, of_file, _) = house.run(&[
        "tools",
        "clients",
        "contracts/long.yaml",
        "--client",
        "cursor",
    ]);
    assert!(
        code == 1 && printed.contains(&of_file.lines().last().expect("a refusal").to_owned()),
        "{of_file}"
    );
    let of_another = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": "send", "inputSchema": {"type": "object", "properties": {"Amount (EUR)": {"type": "number"}}}},
    ]}});
    let house = house.file("listed.json", of_another.to_string());
    let (code, printed, _) =
        house.run(&["tools", "clients", "listed.json", "--client", "anthropic"]);
    assert!(
        code == 1 && printed.contains("refuse send for anthropic at /properties/Amount (EUR)"),
        "{printed}"
    );
    let (code, _, err) = house.run(&["tools", "clients", "--client", "netscape"]);
    assert!(code == 2 && err.contains("known are anthropic"), "{err}");
}

const CONTRACT_LONG: &str = r#"
contract: long
collections:
  long: { adapter: sheet, settings: { connection: data, path: airports.csv }, key: [iata] }
tools:
  - tool: NAME
    description: Returns the airport with an IATA code.
    verb: lookup
    collection: long
    fields: [{ name: iata, type: text, required: true }]
"#;

/// Results hold the receipt of their call where the configuration has them: at `/mcp`, and in views by their own word or the
/// profile of their client.
#[tokio::test]
async fn receipts_are_in_results_where_the_configuration_has_them() {
    let views = "[views.usual]\n[views.shown]\nreceipts = true\nprofile = \"gemini\"\n[views.bare]\nreceipts = false\n\
                 [views.gemini]\nprofile = \"gemini\"";
    for (audit, usually) in [("", true), ("[audit]\nreceipts = false", false)] {
        let house = sample::house().config(views).config(audit);
        let gateway = house.serve();
        let places = [
            (gateway.url(), usually),
            (gateway.contract_url("airports"), usually),
            (gateway.view_url("usual"), usually),
            (gateway.view_url("shown"), true),
            (gateway.view_url("bare"), false),
            (gateway.view_url("gemini"), false),
        ];
        for (url, has_receipt) in &places {
            let oslo = json!({"iata": "OSL"});
            let legacy = Legacy::open(url, LEGACY).await;
            for result in [
                Modern::new(url).call("lookup_airport", oslo.clone()).await,
                legacy.call("lookup_airport", oslo).await,
            ] {
                assert_eq!(result["isError"], false, "{url}: {result}");
                let receipt = &result["_meta"]["dev.weir/receipt"];
                assert_eq!(receipt.is_string(), *has_receipt, "{url}: {result}");
            }
        }
        let calls = crate::audit::records(&house, &["--kind", "call"]);
        assert_eq!(calls.len(), 2 * places.len(), "the trail has every call");
    }
}

#[tokio::test]
async fn the_cost_of_each_way_is_measured_and_the_cheaper_one_is_named() {
    let house = house();
    let gateway = house.serve();
    let (all, _) = Modern::new(gateway.url()).list().await;
    let text = Modern::new(gateway.url())
        .ask("tools/list", json!({}))
        .await
        .text;
    drop(gateway);
    let cost = house.json(&["tools", "cost"]);
    let row = |name: &str| {
        let rows = cost["rows"].as_array().expect("rows").iter();
        rows.clone()
            .find(|row| row["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {cost}"))
            .clone()
    };
    let everything = row("(everything)");
    let listed: &serde_json::value::RawValue = {
        #[derive(serde::Deserialize)]
        struct Reply<'a> {
            #[serde(borrow)]
            result: Result_<'a>,
        }
        #[derive(serde::Deserialize)]
        struct Result_<'a> {
            #[serde(borrow)]
            tools: &'a serde_json::value::RawValue,
        }
        serde_json::from_str::<Reply<'_>>(&text)
            .expect("a list")
            .result
            .tools
    };
    assert_eq!(everything["bytes"], listed.get().len(), "bytes are exact");
    assert_eq!(everything["tools"], all.len());
    let tokens = everything["tokens"].as_u64().expect("tokens");
    let bytes = everything["bytes"].as_u64().expect("bytes");
    assert!(
        (bytes / 30..bytes / 2).contains(&tokens),
        "{tokens} tokens of {bytes} bytes"
    );
    assert_eq!(everything["task_tokens"], 2 * tokens);
    let search = row("(search)");
    let found = search["found_tokens"].as_u64().expect("an answer");
    assert_eq!(
        search["task_tokens"],
        3 * search["tokens"].as_u64().expect("tokens") + 2 * (found + 30)
    );
    assert!(row("reading")["tokens"].as_u64() < Some(tokens));
    let advice = cost["advice"].as_str().expect("advice");
    let is_list = everything["task_tokens"].as_u64() <= search["task_tokens"].as_u64();
    assert_eq!(
        advice.starts_with("Listing all 4 tools costs less than search"),
        is_list,
        "{advice}"
    );
    let (code, printed, err) = house.run(&["tools", "cost", "--client", "gemini"]);
    assert!(
        code == 0 && printed.contains("Tokens are an estimate (o200k)."),
        "{printed}{err}"
    );
}

/// Search finds what is published now. A profile is a change only if it lowers something.
#[tokio::test]
async fn search_and_profiles_follow_what_is_published() {
    let house = sample::house().config("[views.find]\nsearch = true\n[views.shown]");
    let gateway = house.serve();
    let listen = async |view: &str| {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let mut events = Events::open(
            Modern::new(gateway.view_url(view)).request("subscriptions/listen", wanted),
        )
        .await;
        events
            .next(Duration::from_secs(60))
            .await
            .expect("acknowledged");
        events
    };
    let (mut find, mut shown) = (listen("find").await, listen("shown").await);
    let view = Modern::new(gateway.view_url("find"));
    let question = json!({"query": "an air field"});
    assert!(!found(&view.call("find_tools", question.clone()).await).contains(&"lookup_field"));
    house.write("contracts/fields.yaml", FIELDS);
    for events in [&mut find, &mut shown] {
        assert!(
            events.next(Duration::from_secs(60)).await.is_some(),
            "list_changed"
        );
    }
    assert_eq!(
        found(&view.call("find_tools", question).await)[0],
        "lookup_field"
    );

    let config =
        std::fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
    for (profile, is_change) in [("anthropic", false), ("gemini", true)] {
        house.write("weir.toml", format!("{config}\nprofile = \"{profile}\"\n"));
        reload(&gateway);
        let wait = Duration::from_millis(if is_change { 60_000 } else { 1_500 });
        assert_eq!(shown.next(wait).await.is_some(), is_change, "{profile}");
    }
    house.write("weir.toml", format!("{config}\nprofile = \"netscape\"\n"));
    let (_, _, answer) = house.run_as_it_is(&["tools", "llms"]);
    assert!(
        answer
            .contains("/views/shown/profile: must be \"anthropic\", \"openai\", \"openai-strict\""),
        "{answer}"
    );
}
