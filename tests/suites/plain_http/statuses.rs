//! The status and the body of a call by plain HTTP whose tool or source fails.

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, answer_to, http, place, web::Web};

use crate::calls;

/// A tool that waits no longer than a second. The others have time on a busy machine.
const HASTY: &str = r#"  - tool: hurry_item
    description: One item, if it comes at once.
    verb: lookup
    collection: items
    limits: { timeout_ms: 1000 }
    fields:
      - { name: id, type: text, required: true, max_length: 20 }
"#;

/// Tools that fail in every way.
fn house(web: &Web) -> House {
    let house = calls::house(&web.base)
        .own_plugins(&["rest"])
        .file("contracts/items.yaml", calls::ITEMS.to_owned() + HASTY);
    let house = house.config(
        "[http]\nforms = true\n[plugins.weir-guest-tools]\ncpu_max_ms = 60000\nlimits = { timeout_ms = 5000 }",
    );
    house.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    house
}

/// Checks that a call fails so at each door, and as it does over MCP.
async fn fails(
    gateway: &Gateway,
    (contract, tool): (&str, &str),
    arguments: &Value,
    status: u16,
    code: &str,
) {
    let over_mcp = Modern::new(gateway.url())
        .call(tool, arguments.clone())
        .await;
    assert_eq!(over_mcp["structuredContent"]["code"], code, "{over_mcp}");
    for door in ["rest", "forms"] {
        let url = format!("{}/{door}/{contract}/{tool}", gateway.base);
        let answer = answer_to(http().post(url).json(arguments)).await;
        assert_eq!(answer.status(), status, "{door} {tool}");
        assert_eq!(
            answer.headers()["content-type"],
            "application/problem+json",
            "{door} {tool}"
        );
        assert!(
            answer.headers().contains_key("weir-receipt"),
            "a call that fails is on record: {door} {tool}"
        );
        let waits = answer
            .headers()
            .get("retry-after")
            .map(|value| value.to_str().expect("text").to_owned());
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&json!(code), &json!(status)),
            "{door}: {problem}"
        );
        for member in ["reason", "field", "outcome", "errors"] {
            assert_eq!(
                problem.get(member),
                over_mcp["structuredContent"].get(member),
                "{door} {tool}: {member}"
            );
        }
        let asked = problem["retry_after_ms"]
            .as_u64()
            .map(|wait| wait.div_ceil(1000).to_string());
        assert_eq!(waits, asked, "{door} {tool}: {problem}");
    }
}

#[tokio::test]
async fn each_failure_has_its_status_and_says_what_mcp_says() {
    let web = Web::start().await;
    let house = house(&web);
    let gateway = house.serve();
    for (contract, tool, arguments, status, code) in [
        ("weir-guest-tools", "refuse", json!({}), 422, "tool_error"),
        ("weir-guest-tools", "crash", json!({}), 502, "plugin_failed"),
        (
            "weir-guest-tools",
            "wrong",
            json!({}),
            502,
            "output_mismatch",
        ),
        ("weir-guest-tools", "spin", json!({}), 504, "timeout"),
        ("weir-guest-tools", "look", json!({}), 403, "forbidden"),
        (
            "items",
            "get_item",
            json!({"id": "missing"}),
            404,
            "not_found",
        ),
        ("items", "hurry_item", json!({"id": "held"}), 504, "timeout"),
        (
            "items",
            "create_item",
            json!({"id": "huge", "name": "Huge", "count": 1}),
            413,
            "too_large",
        ),
    ] {
        fails(&gateway, (contract, tool), &arguments, status, code).await;
    }
}

#[tokio::test]
async fn a_source_that_is_not_there_is_a_503() {
    let house = calls::house("http://127.0.0.1:1").config("[http]\nforms = true");
    let gateway = house.serve();
    fails(
        &gateway,
        ("items", "get_item"),
        &json!({"id": "1"}),
        503,
        "unavailable",
    )
    .await;
    let created = json!({"id": "1", "name": "One", "count": 1});
    fails(
        &gateway,
        ("items", "create_item"),
        &created,
        503,
        "unavailable",
    )
    .await;
}

/// Plain HTTP cannot carry a question, so that the tool is not run on.
#[tokio::test]
async fn a_tool_that_asks_answers_501() {
    let web = Web::start().await;
    let house = house(&web);
    let gateway = house.serve();
    for door in ["rest", "forms"] {
        let url = format!("{}/{door}/weir-guest-tools/remove", gateway.base);
        let answer = answer_to(http().post(url).json(&json!({"environment": "prod"}))).await;
        assert_eq!(answer.status(), 501, "{door}");
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&json!("unsupported"), &json!(501)),
            "{problem}"
        );
        let detail = problem["detail"].as_str().expect("a text");
        assert!(
            detail.contains("asks its caller") && detail.contains("MCP client"),
            "{problem}"
        );
        assert!(!problem.to_string().contains("Remove prod?"), "{problem}");
    }
}
