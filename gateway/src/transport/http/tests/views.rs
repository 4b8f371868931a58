//! Tests what clients of a view can do: what it lists, and everything that its lists lead to.

use weir_schema::client::ClientProfile;

use super::*;
use crate::{call::has_resource, catalogue::CatalogueViewer, config::ViewConfig};

async fn server(lists: &Value, resources: ResourceMode) -> Running {
    let views = [
        ("whole", ViewConfig::default()),
        (
            "find",
            ViewConfig {
                search: true,
                ..ViewConfig::default()
            },
        ),
        (
            "gemini",
            ViewConfig {
                profile: Some(ClientProfile::Gemini),
                ..ViewConfig::default()
            },
        ),
        (
            "other",
            ViewConfig {
                tools: vec!["up_plain".to_owned()],
                ..ViewConfig::default()
            },
        ),
    ];
    let views = views
        .into_iter()
        .map(|(name, view)| (name.to_owned(), view))
        .collect();
    let server = Running::with(|config| config.views = views).await;
    testing::publish_offer(&server.gateway, lists, resources);
    server
}

/// Calls a tool of the view with further headers.
async fn called(
    server: &Running,
    view: &str,
    tool: &str,
    arguments: &Value,
    header: Option<&str>,
) -> Got {
    let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
    let (headers, body) = modern("1", "tools/call", &params);
    let mut headers = borrowed(&headers);
    headers.extend(header.map(|value| ("Mcp-Param-Region", value)));
    server
        .post(&format!("/mcp/view/{view}"), &headers, &body)
        .await
}

#[tokio::test]
async fn clients_repeat_in_headers_what_they_were_shown() {
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    let lists = json!({ "tools": [{ "name": "locate", "inputSchema": { "type": "object", "properties": { "region": region } } }] });
    let server = server(&lists, ResourceMode::Pinned).await;
    let arguments = json!({ "region": "north" });
    let found = json!({ "name": "up_locate", "arguments": arguments });
    for (view, tool, arguments, is_shown) in [
        ("whole", "up_locate", &arguments, true),
        ("gemini", "up_locate", &arguments, false),
        ("find", "call_tool", &found, false),
    ] {
        let listed = server
            .modern(&format!("/mcp/view/{view}"), "1", "tools/list", "")
            .await;
        assert_eq!(listed.body.contains("x-mcp-header"), is_shown, "{view}");
        let without = called(&server, view, tool, arguments, None).await;
        match is_shown {
            true => without.refused(400, -32020, json!(1)),
            false => assert_eq!(
                without.json()["result"]["structuredContent"]["code"],
                "unavailable",
                "{view}"
            ),
        }
        called(&server, view, tool, arguments, Some("south"))
            .await
            .refused(400, -32020, json!(1));
        let agreeing = called(&server, view, tool, arguments, Some("north"))
            .await
            .json();
        assert_eq!(
            agreeing["result"]["structuredContent"]["code"], "unavailable",
            "{view}"
        );
    }
    server.stop().await;
}

/// The Python SDK writes a whole float with its fraction, in the header and in the body.
#[tokio::test]
async fn a_header_repeats_a_number_by_its_value() {
    let region = json!({ "type": "integer", "x-mcp-header": "Region" });
    let lists = json!({ "tools": [{ "name": "locate", "inputSchema": { "type": "object", "properties": { "region": region } } }] });
    let server = server(&lists, ResourceMode::Pinned).await;
    for (number, header) in [
        (json!(42), "42"),
        (json!(42), "42.0"),
        (json!(42.0), "42.0"),
    ] {
        let arguments = json!({ "region": number });
        let agreeing = called(&server, "whole", "up_locate", &arguments, Some(header)).await;
        assert_eq!(
            agreeing.json()["result"]["structuredContent"]["code"],
            "unavailable",
            "{number} {header}"
        );
    }
    let arguments = json!({ "region": 42 });
    called(&server, "whole", "up_locate", &arguments, Some("43"))
        .await
        .refused(400, -32020, json!(1));
    server.stop().await;
}

/// A receipt, which many clients would show to a model, is sent only on request.
#[tokio::test]
async fn results_in_a_view_with_a_profile_hold_no_receipt() {
    let view = |profile, receipts| ViewConfig {
        profile,
        receipts,
        ..ViewConfig::default()
    };
    let gemini = Some(ClientProfile::Gemini);
    for (usually, views) in [
        (
            true,
            [(view(None, None), true), (view(gemini, None), false)],
        ),
        (
            true,
            [
                (view(None, Some(false)), false),
                (view(gemini, Some(true)), true),
            ],
        ),
        (
            false,
            [(view(None, None), false), (view(gemini, Some(true)), true)],
        ),
    ] {
        let names = ["plain", "gemini"].map(str::to_owned);
        let served = names
            .iter()
            .cloned()
            .zip(views.clone().map(|(view, _)| view))
            .collect();
        let gateway = testing::recording_gateway(|config| {
            config.views = served;
            config.audit.receipts = usually;
        })
        .await;
        let server = Running::serving(gateway).await;
        let lists = json!({ "tools": [{ "name": "t", "inputSchema": {} }] });
        testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
        let params = r#""name":"up_t","arguments":{}"#;
        for (name, (_, has_receipt)) in names.iter().zip(views) {
            let path = format!("/mcp/view/{name}");
            let got = server.modern(&path, "1", "tools/call", params).await;
            let receipt = &got.json()["result"]["_meta"]["dev.weir/receipt"];
            assert_eq!(
                receipt.is_string(),
                has_receipt,
                "{name} {usually}: {got:?}"
            );
        }
        let got = server.modern("/mcp", "1", "tools/call", params).await;
        let receipt = &got.json()["result"]["_meta"]["dev.weir/receipt"];
        assert_eq!(receipt.is_string(), usually, "{got:?}");
        server.stop().await;
    }
}

#[tokio::test]
async fn claude_code_finds_the_tools_of_its_view_and_loads_those_that_are_named() {
    let view = ViewConfig {
        profile: Some(ClientProfile::Anthropic),
        always_load: vec!["up_list_*".to_owned()],
        ..ViewConfig::default()
    };
    let views = [("claude".to_owned(), view)].into();
    let server = Running::with(|config| config.views = views).await;
    let tool = |name: &str, title: &str| json!({ "name": name, "title": title, "inputSchema": {} });
    let lists = json!({ "tools": [tool("list_days", "List days"), tool("other", "Another")] });
    testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
    let metas = async |path: &str| {
        let listed = server.modern(path, "1", "tools/list", "").await.json();
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        let metas: Vec<Value> = tools.iter().map(|tool| tool["_meta"].clone()).collect();
        metas
    };
    let [listed, other] = &metas("/mcp/view/claude").await[..] else {
        panic!("two tools");
    };
    assert_eq!(
        (
            &listed["anthropic/searchHint"],
            &listed["anthropic/alwaysLoad"]
        ),
        (&json!("List days"), &json!(true))
    );
    assert_eq!(
        (
            &other["anthropic/searchHint"],
            other.get("anthropic/alwaysLoad")
        ),
        (&json!("Another"), None)
    );
    for meta in metas("/mcp/up").await {
        assert!(meta.get("anthropic/searchHint").is_none(), "{meta}");
    }
    server.stop().await;
}

/// Clients on another dialect refuse a tool that names 2020-12, which is the default dialect anyway.
#[tokio::test]
async fn no_published_schema_names_its_dialect() {
    let schema = |dialect: &str| json!({ "$schema": dialect, "type": "object", "properties": { "a": { "type": "string" } } });
    let lists = json!({ "tools": [
        { "name": "new", "inputSchema": schema("https://json-schema.org/draft/2020-12/schema"),
          "outputSchema": schema("https://json-schema.org/draft/2020-12/schema") },
        { "name": "old", "inputSchema": schema("http://json-schema.org/draft-07/schema#") },
    ] });
    let server = server(&lists, ResourceMode::Pinned).await;
    for (view, method) in [
        ("whole", "tools/list"),
        ("gemini", "tools/list"),
        ("find", "tools/call"),
    ] {
        let found = r#""name":"find_tools","arguments":{"query":"up new old"}"#;
        let params = if method == "tools/call" { found } else { "" };
        let (headers, body) = modern("1", method, params);
        let headers = borrowed(&headers);
        let got = server
            .post(&format!("/mcp/view/{view}"), &headers, &body)
            .await;
        assert!(got.body.contains("up_new"), "{view}: {}", got.body);
        assert!(!got.body.contains("$schema"), "{view}: {}", got.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_pages_that_the_tools_of_a_view_link_are_read_there() {
    let lists = json!({
        "tools": [
            { "name": "shown", "inputSchema": {}, "_meta": { "ui": { "resourceUri": "ui://page" } } },
            { "name": "plain", "inputSchema": {} },
        ],
        "resources": [{ "uri": "ui://page", "name": "page" }, { "uri": "file:///a", "name": "a" }],
    });
    for resources in [ResourceMode::Pinned, ResourceMode::Live] {
        let server = server(&lists, resources).await;
        let listed = server
            .modern("/mcp/view/whole", "1", "tools/list", "")
            .await
            .json();
        let tools = listed["result"]["tools"].as_array().unwrap();
        let page = tools
            .iter()
            .find_map(|tool| tool["_meta"]["ui"]["resourceUri"].as_str())
            .expect("a link")
            .to_owned();
        let read = async |view: &str, uri: &str| {
            let got = server
                .modern(
                    &format!("/mcp/view/{view}"),
                    "1",
                    "resources/read",
                    &format!(r#""uri":"{uri}""#),
                )
                .await;
            got.json()["error"].clone()
        };
        let listing = |view: &str| {
            let endpoint = CatalogueEndpoint::View(view.into());
            server
                .gateway
                .snapshot()
                .catalogue
                .listing(&endpoint, CatalogueViewer::EVERYTHING)
                .expect("a view")
        };
        assert!(has_resource(&listing("whole"), &page) && !has_resource(&listing("other"), &page));
        // Its server does not run: this is reported, rather than a missing page. A page that comes and goes is not found either.
        if resources == ResourceMode::Pinned {
            assert_eq!(read("whole", &page).await["data"]["code"], "unavailable");
        }
        for (view, uri) in [("whole", "up+file:///a"), ("other", page.as_str())] {
            assert_eq!(read(view, uri).await["code"], -32602, "{view} {uri}");
        }
        let listed = server
            .modern("/mcp/view/whole", "1", "resources/list", "")
            .await
            .json();
        assert_eq!(listed["result"]["resources"], json!([]));
        server.stop().await;
    }
}
