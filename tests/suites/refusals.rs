//! Tests the records of refused calls, in which the agent's developer finds the reason.

use serde_json::{Value, json};
use weir_tests::{Admin, House, Modern, answer_to};

use crate::{audit::records, sample};

/// The record and the line of the log name the fields, the reasons and the near name, and no value.
#[tokio::test]
async fn a_refused_call_says_which_field_and_why() {
    let house = sample::house();
    let (gateway, client) = house.serve_client();
    let long_name = "x".repeat(5_000);
    for arguments in [
        json!({"country": "top-secret-value"}),
        json!({"contry": "NO"}),
        json!({"country": "top-secret-value", "min_elevation_ft": -1}),
        json!({(format!("a\u{1b}{long_name}")): 1}),
    ] {
        client.call("list_airports", arguments).await;
    }
    let many: Vec<(String, Value)> = (0..20)
        .map(|at| (format!("field_{at}"), json!(1)))
        .collect();
    client
        .call("list_airports", Value::Object(many.into_iter().collect()))
        .await;

    let calls = records(&house, &["--kind", "call"]);
    let reasons: Vec<&str> = calls
        .iter()
        .map(|call| call["reason"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(
        reasons[..3],
        [
            "country: not_in_enum",
            "contry: unknown_argument (did you mean country?)",
            "country: not_in_enum; min_elevation_ft: out_of_range",
        ]
    );
    assert!(
        reasons[3].starts_with("axxx") && reasons[3].len() < 150,
        "{}",
        reasons[3]
    );
    assert!(reasons[4].ends_with("; and 12 more"), "{}", reasons[4]);
    let (_, shown, _) = house.run(&["audit", "query", "--kind", "call", "--limit", "1"]);
    assert!(shown.contains("reason=\"country: not_in_enum\""), "{shown}");
    let (_, answer) = Admin::of(&house)
        .ask("GET", "/v1/audit?kind=call", "")
        .await;
    assert_eq!(answer[1]["reason"], calls[1]["reason"]);

    let id = calls[0]["call_id"].as_str().expect("an id");
    gateway.wait_for_log(id);
    let log = gateway.log();
    let line = log.lines().find(|line| line.contains(id)).expect("a line");
    assert!(line.contains("country: not_in_enum"), "{line}");
    assert!(!log.contains("top-secret-value") && !shown.contains("top-secret-value"));
}

/// Questions of every verb over two sheets, one of which has a price in another unit.
const QUESTIONS: &str = "contract: shop
collections:
  orders:
    adapter: sheet
    settings: { connection: data, path: orders.csv }
    hide: [margin]
    misfits: empty
    shape: { price: { unit: \"# €\" } }
    relations: { customer: { collection: customers, columns: [customer_id] } }
  customers: { adapter: sheet, settings: { connection: data, path: customers.csv } }
tools:
  - tool: list_orders
    verb: list
    collection: orders
    order_by: [total]
    columns: [city, total]
    with_total: true
    fields: [{ name: city, type: text }]
  - tool: count_orders
    verb: count
    collection: orders
    fields: [{ name: city, type: text }]
  - tool: summarize_orders
    verb: summarize
    collection: orders
    group_by: [city, placed]
    measures: [count, sum(total), sum(price), max(placed)]
    fields: [{ name: city, type: text }]
  - tool: get_order
    verb: lookup
    collection: orders
    include: [customer]
    fields: [{ name: id, type: number, required: true }]
";

/// What a question cannot have is refused with its place, and with what to use instead.
#[tokio::test]
async fn a_refused_question_names_the_argument_and_what_would_do() {
    let house = House::new()
        .config("[connections.data]\nkind = \"files\"\npath = \"data\"\n[plugins.sheet.grants]\ndata = \"read\"")
        .file("contracts/shop.yaml", QUESTIONS)
        .file(
            "data/orders.csv",
            "id,customer_id,city,total,margin,placed,price\n1,3,Wien,10.5,1,2026-10-01,5 €\n2,3,Graz,7,2,2026-11-01,5 USD\n",
        )
        .file("data/customers.csv", "id,name\n3,Cem\n");
    let (_gateway, client) = house.serve_client();
    let (list, summarize) = ("list_orders", "summarize_orders");
    for (tool, arguments, path, text) in [
        (
            list,
            json!({ "order_by": ["city"] }),
            "/order_by/0",
            "must be one of total, -total",
        ),
        (
            list,
            json!({ "order_by": ["total", "-total"] }),
            "/order_by/1",
            "is not allowed. Leave it out.",
        ),
        (list, json!({ "order_by": [] }), "/order_by", "must have 1"),
        (
            list,
            json!({ "columns": ["margin"] }),
            "/columns/0",
            "must be one of id, customer_id, city",
        ),
        (list, json!({ "columns": [] }), "/columns", "must have 1"),
        (
            list,
            json!({ "with_total": "yes" }),
            "/with_total",
            "must be of type boolean",
        ),
        (list, json!({ "cursor": "x" }), "/cursor", "Leave it out."),
        (
            "count_orders",
            json!({ "town": "Wien" }),
            "/town",
            "is not an argument of this tool.",
        ),
        (
            "count_orders",
            json!({ "with_total": true }),
            "/with_total",
            "is not an argument of this tool.",
        ),
        (
            summarize,
            json!({ "group_by": ["town"] }),
            "/group_by/0",
            "must be one of city, day(placed)",
        ),
        (
            summarize,
            json!({ "group_by": ["city", "city"] }),
            "/group_by",
            "has an item twice",
        ),
        (
            summarize,
            json!({ "measures": ["sum(city)"] }),
            "/measures/0",
            "must be one of count, sum(total)",
        ),
        (
            summarize,
            json!({ "measures": ["count"], "order_by": ["sum(total)"] }),
            "/order_by/0",
            "must be one of count",
        ),
        (
            summarize,
            json!({ "measures": ["count"], "having": [{ "measure": "sum(total)", "at_least": 1 }] }),
            "/having/0/measure",
            "must be one of count",
        ),
        (
            summarize,
            json!({ "measures": ["max(placed)"], "having": [{ "measure": "max(placed)", "at_least": 1 }] }),
            "/having/0",
            "is not allowed. Leave it out.",
        ),
        (summarize, json!({ "limit": 101 }), "/limit", "at most 100"),
        (
            "get_order",
            json!({ "id": 1, "include": ["buyer"] }),
            "/include/0",
            "must be one of customer",
        ),
        (
            "get_order",
            json!({ "id": 1, "include": [] }),
            "/include",
            "must have 1",
        ),
    ] {
        let refused = client.call(tool, arguments.clone()).await;
        let error = &refused["structuredContent"];
        assert_eq!(error["code"], "invalid_arguments", "{arguments}: {refused}");
        assert_eq!(error["errors"][0]["path"], path, "{arguments}: {refused}");
        let line = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert!(line.contains(text), "{arguments}: {line}");
    }
    // What only the cells reveal is refused with the column.
    let mixed = client
        .call(summarize, json!({ "measures": ["sum(price)"] }))
        .await;
    let error = &mixed["structuredContent"];
    assert_eq!(error["field"], "price", "{mixed}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("Narrow the conditions to records of one unit"),
        "{message}"
    );
}

/// A source names columns, and an agent knows arguments: the answer has the argument's name, in the text too.
#[tokio::test]
async fn what_a_source_refuses_is_named_as_the_argument() {
    let contract = sample::CONTRACT.replace(
        "{ name: iata, type: text, required: true, pattern: \"^[A-Z]{3}$\" }",
        "{ name: code, column: iata, type: text, required: true, pattern: \"^[A-Z]{3}$\" }",
    );
    let house = sample::house().file("contracts/airports.yaml", contract);
    let (_gateway, client) = house.serve_client();
    let taken = json!({ "code": "OSL", "name": "Second", "country": "NO" });
    let refused = client.call("create_airport", taken).await;
    let error = &refused["structuredContent"];
    assert_eq!(
        (&error["code"], &error["field"]),
        (&json!("conflict"), &json!("code")),
        "{refused}"
    );
    let text = "`code`: There is a record with this key already.";
    assert_eq!(error["message"], text, "{refused}");
    assert_eq!(refused["content"][0]["text"], text, "{refused}");
}

/// The error of a call over a limit names the limit.
#[tokio::test]
async fn a_limited_call_says_which_limit() {
    let limited = "    collection: airports\n    limits: { rate: 1/hour }\n    fields:\n      - { name: iata, type: text, required: true, pattern: \"^[A-Z]{3}$\", help";
    let contract = sample::CONTRACT.replace(
        "    collection: airports\n    fields:\n      - { name: iata, type: text, required: true, pattern: \"^[A-Z]{3}$\", help",
        limited,
    );
    assert_ne!(contract, sample::CONTRACT);
    let house = sample::house().file("contracts/airports.yaml", contract);
    let gateway = house.serve();
    let ann = house.key(&["--agent", "ann", "--tool-rate", "list_airports=1/min"]);
    let bob = house.key(&["--agent", "bob", "--rate", "2/min"]);
    let dora = house.key(&["--agent", "dora", "--quota-day", "1"]);
    for (key, tool, arguments) in [
        (&ann, "list_airports", json!({"country": "wrong"})),
        (&ann, "list_airports", json!({})),
        (&ann, "lookup_airport", json!({"iata": "OSL"})),
        (&ann, "lookup_airport", json!({"iata": "OSL"})),
        (&bob, "list_airports", json!({})),
        (&bob, "list_airports", json!({})),
        (&bob, "list_airports", json!({})),
        (&dora, "list_airports", json!({})),
        (&dora, "list_airports", json!({})),
    ] {
        Modern::with_key(gateway.url(), key)
            .call(tool, arguments)
            .await;
    }
    let reasons: Vec<Value> = records(&house, &["--kind", "call"])
        .into_iter()
        .filter(|call| call["code"] == "rate_limited")
        .map(|call| call["reason"].clone())
        .collect();
    assert_eq!(
        reasons,
        [
            "list_airports 1/min of this key; calls with wrong arguments count as well",
            "lookup_airport 1/hour of its contract; calls with wrong arguments count as well",
            "all requests 2/min of this key",
            "the quota of 1 calls a day",
        ]
    );
}

/// The name that was asked for is recorded, and whether it is served to others; the agent cannot tell.
#[tokio::test]
async fn a_call_of_what_is_not_there_says_what_was_asked_for() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let ann = Modern::with_key(gateway.url(), &key);
    let mut answers = Vec::new();
    let long_name = format!("no\u{1b}[2Jsuch{}", "x".repeat(5_000));
    for tool in ["list_airports", "drop_airports", &long_name] {
        answers.push(
            ann.ask("tools/call", json!({"name": tool, "arguments": {}}))
                .await,
        );
    }
    let outcome = |at: usize, name: &str| {
        let answer: &weir_tests::Answer = &answers[at];
        answer.reply()["error"].to_string().replace(name, "NAME")
    };
    assert_eq!(
        outcome(0, "list_airports"),
        outcome(1, "drop_airports"),
        "hidden and unknown are alike for the agent"
    );

    let calls = records(&house, &["--kind", "call"]);
    let asked: Vec<(&Value, &Value, bool)> = calls
        .iter()
        .map(|call| (&call["asked"], &call["hidden"], call.get("tool").is_some()))
        .collect();
    assert_eq!(
        asked[..2],
        [
            (&json!("list_airports"), &json!(true), false),
            (&json!("drop_airports"), &json!(false), false),
        ]
    );
    let long = asked[2].0.as_str().expect("a name");
    assert!(
        long.starts_with("no[2Jsuch") && long.chars().count() <= 129,
        "{long}"
    );
    let metrics =
        answer_to(weir_tests::http().get(format!("{}/metrics", Admin::of(&house).url))).await;
    assert_eq!(metrics.status(), 200);
    let metrics = metrics.text().await.expect("text");
    assert!(
        metrics.contains("_unknown") && !metrics.contains("drop_airports"),
        "what a caller made up is no label"
    );

    let admin = Admin::of(&house);
    for (tool, expected) in [
        (
            "list_airports",
            "`list_airports` is served, but the agent `ann` may not use it",
        ),
        ("drop_airports", "there is no tool `drop_airports`"),
    ] {
        let trial = json!({"tool": tool, "arguments": {}, "agent": "ann"});
        let (status, answer) = admin.ask("POST", "/v1/calls", trial.to_string()).await;
        let detail = answer["detail"].as_str().unwrap_or_default();
        assert!(
            status == 404 && detail.starts_with(expected),
            "{status} {answer}"
        );
    }
}
