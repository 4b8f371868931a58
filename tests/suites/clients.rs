//! Official clients, over both transports: list, call, and a typed result that keeps its advertised schema on success
//! and on error.

use std::process::Command;

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use weir_tests::{Gateway, House, client, foreign, schema};

use crate::sample;

/// Pages of one tool each, so that every client has to walk.
fn house() -> House {
    sample::house().config("[http]\npage_size = 1")
}

/// Returns what every client is asked to call: success, a typed miss, and refused arguments.
fn calls() -> Value {
    json!([
        {"tool": "lookup_airport", "arguments": {"iata": "OSL"}},
        {"tool": "lookup_airport", "arguments": {"iata": "XXX"}},
        {"tool": "lookup_airport", "arguments": {"iata": "osl"}},
        {"tool": "list_airports", "arguments": {"country": "NO", "limit": 2}},
        {"tool": "list_airports", "arguments": {"country": "DK"}},
        {"tool": "no_such_tool", "arguments": {}},
    ])
}

fn over_http(command: Command, mode: &str) -> Value {
    let house = house();
    let gateway = house.serve();
    check(foreign::report(
        command,
        &json!({"url": gateway.url(), "mode": mode, "calls": calls()}),
    ))
}

fn over_stdio(command: Command, mode: &str) -> Value {
    let house = house();
    check(foreign::report(
        command,
        &json!({"command": house.stdio_command(), "mode": mode, "calls": calls()}),
    ))
}

/// Checks what applies to every client.
fn check(report: Value) -> Value {
    let tools = report["tools"].as_array().expect("a report lists tools");
    let mut names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["create_airport", "list_airports", "lookup_airport"]);
    if let Some(pages) = report["pages"].as_u64() {
        assert_eq!(pages, 3, "one page a tool");
    }
    let answers = report["calls"].as_array().expect("a report has calls");
    let asked = calls();
    for (call, answer) in asked.as_array().expect("a list").iter().zip(answers) {
        if call["tool"] == "no_such_tool" {
            let refused = answer["refused"]
                .as_str()
                .unwrap_or_else(|| panic!("an unknown tool is refused: {answer}"));
            assert!(
                refused.contains("no_such_tool") || answer["code"] == -32602,
                "{answer}"
            );
            continue;
        }
        assert_eq!(
            answer["refused"],
            Value::Null,
            "the client refuses what Weir answered to {call}"
        );
        let name = call["tool"].as_str().expect("a call names its tool");
        schema::check(
            schema::tool(tools, name),
            &json!({"structuredContent": answer["structured"]}),
        );
        assert!(
            answer["text"].as_str().is_some_and(|text| !text.is_empty()),
            "{answer}"
        );
    }
    assert_eq!(answers[0]["structured"]["name"], "Oslo Gardermoen Airport");
    assert_eq!(answers[0]["isError"], false);
    assert_error(&answers[1], "not_found");
    assert_error(&answers[2], "invalid_arguments");
    assert_eq!(answers[2]["structured"]["field"], "iata");
    assert_eq!(
        answers[3]["structured"]["records"].as_array().map(Vec::len),
        Some(2)
    );
    assert!(
        answers[3]["structured"]["next"].is_string(),
        "a third airport is left: {}",
        answers[3]
    );
    assert_error(&answers[4], "invalid_arguments");
    assert_eq!(answers[4]["structured"]["reason"], "not_in_enum");
    report
}

fn assert_error(answer: &Value, code: &str) {
    assert_eq!(answer["isError"], true, "{answer}");
    assert_eq!(answer["structured"]["code"], code, "{answer}");
}

#[test]
fn typescript_2_picks_the_modern_era() {
    assert_eq!(
        over_http(foreign::node_script("typescript2.mjs"), "auto")["protocol"],
        "2026-07-28"
    );
    assert_eq!(
        over_stdio(foreign::node_script("typescript2.mjs"), "auto")["protocol"],
        "2026-07-28"
    );
}

#[test]
fn typescript_2_pinned_to_the_modern_era() {
    assert_eq!(
        over_http(foreign::node_script("typescript2.mjs"), "modern")["protocol"],
        "2026-07-28"
    );
    assert_eq!(
        over_stdio(foreign::node_script("typescript2.mjs"), "modern")["protocol"],
        "2026-07-28"
    );
}

#[test]
fn typescript_2_in_the_session_era() {
    assert_eq!(
        over_http(foreign::node_script("typescript2.mjs"), "legacy")["protocol"],
        "2025-11-25"
    );
    assert_eq!(
        over_stdio(foreign::node_script("typescript2.mjs"), "legacy")["protocol"],
        "2025-11-25"
    );
}

#[test]
fn typescript_1() {
    over_http(foreign::node_script("typescript1.mjs"), "legacy");
    over_stdio(foreign::node_script("typescript1.mjs"), "legacy");
}

#[test]
fn python_2_picks_the_modern_era() {
    assert_eq!(
        over_http(foreign::python_script("python-current", "mcp2.py"), "auto")["protocol"],
        "2026-07-28"
    );
    assert_eq!(
        over_stdio(foreign::python_script("python-current", "mcp2.py"), "auto")["protocol"],
        "2026-07-28"
    );
}

#[test]
fn python_2_in_the_session_era() {
    assert_eq!(
        over_http(
            foreign::python_script("python-current", "mcp2.py"),
            "legacy"
        )["protocol"],
        "2025-11-25"
    );
    assert_eq!(
        over_stdio(
            foreign::python_script("python-current", "mcp2.py"),
            "legacy"
        )["protocol"],
        "2025-11-25"
    );
}

#[test]
fn python_1() {
    assert_eq!(
        over_http(foreign::python_script("python-mcp1", "mcp1.py"), "legacy")["protocol"],
        "2025-11-25"
    );
    assert_eq!(
        over_stdio(foreign::python_script("python-mcp1", "mcp1.py"), "legacy")["protocol"],
        "2025-11-25"
    );
}

/// This client builds its own type from the output schema: the record's fields must be in it.
#[test]
fn fastmcp_4_types_the_record() {
    for report in [
        over_http(
            foreign::python_script("python-current", "fastmcp4.py"),
            "auto",
        ),
        over_stdio(
            foreign::python_script("python-current", "fastmcp4.py"),
            "auto",
        ),
    ] {
        let record = json!(["country", "elevation_ft", "iata", "latitude", "name"]);
        assert_eq!(report["calls"][0]["data"], record, "{}", report["calls"][0]);
        assert_eq!(
            report["calls"][3]["data"],
            json!(["next", "records"]),
            "{}",
            report["calls"][3]
        );
    }
}

#[test]
fn the_inspector_lists_and_calls() {
    let house = house();
    let gateway = house.serve();
    let http = [
        "--cli".to_owned(),
        gateway.url(),
        "--transport".to_owned(),
        "http".to_owned(),
    ];
    inspect(&http);
    let words = house.stdio_command();
    let config = json!({"mcpServers": {"weir": {"command": words[0], "args": words[1..]}}});
    let file = house.path().join("inspector.json");
    house.write("inspector.json", config.to_string());
    inspect(
        &[
            "--cli",
            "--config",
            &file.display().to_string(),
            "--server",
            "weir",
        ]
        .map(str::to_owned),
    );
}

fn inspect(target: &[String]) {
    let listed = inspector(target, &["--method", "tools/list"]);
    let tools = listed["tools"]
        .as_array()
        .expect("the inspector lists tools");
    assert!(
        tools.iter().any(|tool| tool["name"] == "lookup_airport"),
        "{listed}"
    );
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "lookup_airport",
        "--tool-arg",
    ];
    let hit = inspector(target, &[&call[..], &["iata=OSL"]].concat());
    assert_eq!(
        hit["structuredContent"]["name"], "Oslo Gardermoen Airport",
        "{hit}"
    );
    schema::check(schema::tool(tools, "lookup_airport"), &hit);
    let miss = inspector(target, &[&call[..], &["iata=XXX"]].concat());
    assert_eq!(miss["structuredContent"]["code"], "not_found", "{miss}");
    schema::check(schema::tool(tools, "lookup_airport"), &miss);
}

fn inspector(target: &[String], words: &[&str]) -> Value {
    let mut command = foreign::node();
    command
        .arg(foreign::node_module(".bin/mcp-inspector"))
        .args(target)
        .args(words);
    let output = foreign::run(command, std::time::Duration::from_secs(120));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let start = stdout
        .find('{')
        .unwrap_or_else(|| panic!("the inspector prints no JSON:\n{stdout}\n{stderr}"));
    serde_json::from_str(stdout[start..].trim())
        .unwrap_or_else(|error| panic!("{error}:\n{stdout}\n{stderr}"))
}

#[tokio::test]
async fn rmcp_lists_and_calls() {
    client::choose_tls();
    let house = house();
    let gateway: Gateway = house.serve();
    let http = StreamableHttpClientTransport::from_uri(gateway.url());
    rmcp_session(
        ClientConfig::default()
            .serve(http)
            .await
            .expect("rmcp connects over HTTP"),
    )
    .await;
    let words = house.stdio_command();
    let mut command = tokio::process::Command::new(&words[0]);
    command.args(&words[1..]);
    let stdio = TokioChildProcess::new(command).expect("weir starts");
    rmcp_session(
        ClientConfig::default()
            .serve(stdio)
            .await
            .expect("rmcp connects over stdio"),
    )
    .await;
}

async fn rmcp_session(client: rmcp::service::RunningService<rmcp::RoleClient, ClientConfig>) {
    let tools = client.list_all_tools().await.expect("rmcp lists");
    assert_eq!(tools.len(), 3);
    let tools: Vec<Value> = tools
        .iter()
        .map(|tool| serde_json::to_value(tool).expect("plain JSON"))
        .collect();
    for (iata, is_error) in [("OSL", false), ("XXX", true)] {
        let arguments = json!({"iata": iata}).as_object().cloned();
        let mut request = CallToolRequestParams::new("lookup_airport");
        request.arguments = arguments;
        let result = client.call_tool(request).await.expect("rmcp calls");
        let result = serde_json::to_value(&result).expect("plain JSON");
        assert_eq!(result["isError"], is_error, "{result}");
        schema::check(schema::tool(&tools, "lookup_airport"), &result);
    }
    client.cancel().await.expect("rmcp closes");
}
