//! The wire, byte by byte, where clients of either era are easily misled.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{Legacy, Modern, Stdio, client};

use crate::sample;

fn body(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": client::MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn modern_requests_are_checked_in_order() {
    let house = sample::house();
    let (_gateway, client) = house.serve_client();

    // Discovery, with nothing but what the revision demands.
    let answer = client.ask("server/discover", json!({})).await;
    let result = answer.result();
    assert_eq!(result["supportedVersions"], json!([client::MODERN]));
    assert_eq!(result["resultType"], "complete");
    assert!(
        result["ttlMs"].is_u64() && result["cacheScope"].is_string(),
        "{result}"
    );

    // Removed methods are unknown: 404 with a body.
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
    ] {
        let answer = client.ask(method, json!({})).await;
        assert_eq!(
            (answer.status, answer.error_code()),
            (StatusCode::NOT_FOUND, -32601),
            "{method}"
        );
    }
    let unknown = client
        .ask(
            "tools/call",
            json!({"name": "no_such_tool", "arguments": {}}),
        )
        .await;
    assert_eq!(
        (unknown.status, unknown.error_code()),
        (StatusCode::OK, -32602)
    );

    // Absent arguments are empty ones.
    let absent = client
        .ask("tools/call", json!({"name": "list_airports"}))
        .await;
    assert_eq!(absent.result()["isError"], false);

    // The id is returned unchanged.
    for id in [
        json!("text"),
        json!(0),
        json!(-5),
        json!(9_007_199_254_740_993_i64),
    ] {
        let request = client.raw(body(&id, "tools/list", &json!({"_meta": modern_meta()})));
        let request = request
            .header("mcp-protocol-version", client::MODERN)
            .header("mcp-method", "tools/list");
        assert_eq!(client::send(request).await.reply()["id"], id);
    }

    // Headers must agree with the body.
    let list = body(&json!(1), "tools/list", &json!({"_meta": modern_meta()}));
    let cases: [(&[(&str, &str)], i64); 5] = [
        (&[], -32020),
        (&[("mcp-protocol-version", client::MODERN)], -32020),
        (
            &[
                ("mcp-protocol-version", client::MODERN),
                ("mcp-method", "tools/call"),
            ],
            -32020,
        ),
        (
            &[
                ("mcp-protocol-version", "2025-11-25"),
                ("mcp-method", "tools/list"),
            ],
            -32020,
        ),
        (
            &[
                ("mcp-protocol-version", client::MODERN),
                ("mcp-method", "TOOLS/LIST"),
            ],
            -32020,
        ),
    ];
    for (headers, code) in cases {
        let request = headers
            .iter()
            .fold(client.raw(list.clone()), |request, (name, value)| {
                request.header(*name, *value)
            });
        let answer = client::send(request).await;
        assert_eq!(
            (answer.status, answer.error_code()),
            (StatusCode::BAD_REQUEST, code),
            "{headers:?}"
        );
        assert_eq!(answer.reply()["id"], 1, "{headers:?}");
    }
    let unsupported = list.replace(client::MODERN, "2031-01-01");
    let request = client
        .raw(unsupported)
        .header("mcp-protocol-version", "2031-01-01")
        .header("mcp-method", "tools/list");
    let answer = client::send(request).await;
    assert_eq!(
        (answer.status, answer.error_code()),
        (StatusCode::BAD_REQUEST, -32022)
    );
    assert_eq!(
        answer.reply()["error"]["data"]["supported"],
        json!([client::MODERN])
    );

    // A batch is a thing of one old revision.
    let batch = client::send(client.raw(format!("[{list}]"))).await;
    assert_eq!(
        (batch.status, batch.error_code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    let garbage = client::send(client.raw("{\"jsonrpc\":")).await;
    assert_eq!(
        (garbage.status, garbage.error_code()),
        (StatusCode::BAD_REQUEST, -32700)
    );
}

#[tokio::test]
async fn strangers_are_kept_out() {
    let house = sample::house();
    let (_gateway, client) = house.serve_client();
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("host", "evil.example"),
        ("origin", "null"),
    ] {
        let answer =
            client::send(client.request("tools/list", json!({})).header(name, value)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    let local = client::send(
        client
            .request("tools/list", json!({}))
            .header("origin", "http://localhost:3000"),
    )
    .await;
    assert_eq!(local.status, StatusCode::OK, "{}", local.text);
    let large = client::send(client.raw(vec![b' '; 5 << 20])).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    let http = client::http();
    let plain = client::send(
        http.post(&client.url)
            .header("content-type", "text/plain")
            .body("{}"),
    )
    .await;
    assert_eq!(plain.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_session_lives_until_it_is_deleted() {
    let house = sample::house();
    let gateway = house.serve();
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    assert_eq!(session.ask("ping", json!({})).await.result(), &json!({}));
    let called = session.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(called["structuredContent"]["country"], "NO");
    assert_eq!(
        called.get("resultType"),
        None,
        "a member of the other era: {called}"
    );
    if session.session.is_some() {
        let deleted = client::send(session.delete()).await;
        assert!(deleted.status.is_success(), "{}", deleted.status);
        let gone = session.ask("ping", json!({})).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
    let mut stranger = session.clone();
    stranger.session = Some("made-up".to_owned());
    assert_eq!(
        stranger.ask("tools/list", json!({})).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn older_revisions_get_what_they_know() {
    let house = sample::house();
    let gateway = house.serve();
    for (version, typed) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
        ("2025-11-25", true),
    ] {
        let session = Legacy::open(gateway.url(), version).await;
        assert_eq!(session.version, version);
        let listed = session.ask("tools/list", json!({})).await;
        let tool = &listed.result()["tools"][0];
        assert_eq!(
            tool.get("outputSchema").is_some(),
            typed,
            "{version}: {tool}"
        );
        let called = session.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(
            called.get("structuredContent").is_some(),
            typed,
            "{version}: {called}"
        );
        let text = called["content"][0]["text"].as_str().expect("a text block");
        assert!(text.contains("Oslo Gardermoen"), "{version}: {text}");
    }
    // An unknown revision is answered with the newest of this era.
    assert_eq!(
        Legacy::open(gateway.url(), "1999-01-01").await.version,
        client::LEGACY
    );
    // Batches belong to one revision.
    let session = Legacy::open(gateway.url(), "2025-03-26").await;
    let batch = format!(
        "[{},{}]",
        body(&json!(1), "ping", &json!({})),
        body(&json!(2), "tools/list", &json!({}))
    );
    let answer = client::send(session.in_session(batch.clone())).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(answer.text.contains("airports"), "{}", answer.text);
    let newer = Legacy::open(gateway.url(), "2025-06-18").await;
    assert_eq!(
        client::send(newer.in_session(batch)).await.status,
        StatusCode::BAD_REQUEST
    );
}

/// Some clients write the params of a list as null, and would have no tools.
#[tokio::test]
async fn params_that_are_null_count_as_absent() {
    let house = sample::house();
    let gateway = house.serve();
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    let list = body(&json!(1), "tools/list", &Value::Null);
    let listed = client::send(session.in_session(list)).await;
    assert!(listed.result()["tools"].is_array(), "{}", listed.text);
    let call = body(&json!(2), "tools/call", &Value::Null);
    let refused = client::send(session.in_session(call)).await;
    assert!(refused.text.contains("`params.name`"), "{}", refused.text);
}

/// Clients in Go, Java and C# write null for what was not set, and would list and call nothing.
#[tokio::test]
async fn members_of_params_that_are_null_count_as_absent() {
    let house = sample::house();
    let gateway = house.serve();
    let session = Legacy::open(gateway.url(), client::LEGACY).await;
    for params in [
        json!({"cursor": null}),
        json!({"cursor": null, "_meta": null}),
        json!({"_meta": {"progressToken": null, "traceparent": null}}),
    ] {
        let listed = session.ask("tools/list", params.clone()).await;
        assert!(
            listed.result()["tools"].is_array(),
            "{params}: {}",
            listed.text
        );
    }
    for arguments in [Value::Null, json!([])] {
        let params = json!({"name": "list_airports", "arguments": arguments, "_meta": null});
        let answer = session.ask("tools/call", params).await;
        assert_eq!(answer.result()["isError"], false, "{}", answer.text);
    }
    let given = json!({"name": "lookup_airport", "arguments": ["OSL"]});
    let refused = session.ask("tools/call", given).await;
    assert_eq!(refused.error_code(), -32602, "{}", refused.text);

    let modern = Modern::new(gateway.url());
    let listed = modern.ask("tools/list", json!({"cursor": null})).await;
    assert!(listed.result()["tools"].is_array(), "{}", listed.text);
}

#[tokio::test]
async fn a_contract_is_a_server_of_its_own() {
    let house = sample::house().file(
        "contracts/other.yaml",
        sample::CONTRACT.replace("contract: airports", "contract: other\nprefix: other"),
    );
    let gateway = house.serve();
    let (all, _) = Modern::new(gateway.url()).list().await;
    let own = Modern::new(gateway.contract_url("airports"));
    let (some, _) = own.list().await;
    assert_eq!((all.len(), some.len()), (6, 3));
    let hidden = own
        .ask(
            "tools/call",
            json!({"name": "other_lookup_airport", "arguments": {"iata": "OSL"}}),
        )
        .await;
    let unknown = own
        .ask(
            "tools/call",
            json!({"name": "other_lookup_airpxrt", "arguments": {"iata": "OSL"}}),
        )
        .await;
    assert_eq!(hidden.error_code(), -32602);
    let neutral = |text: &str| {
        text.replace("airpxrt", "airport")
            .replace(char::is_numeric, "")
    };
    assert_eq!(
        neutral(&hidden.text),
        neutral(&unknown.text),
        "a hidden tool and an unknown one differ"
    );
    let nowhere = Modern::new(gateway.contract_url("nowhere"))
        .ask("tools/list", json!({}))
        .await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND, "{}", nowhere.text);
}

/// Many clients read only one page: 1,000 tools by default, or as many as `page_size` sets.
#[tokio::test]
async fn a_page_of_tools_is_as_long_as_configured() {
    const TOOLS: usize = 2001;
    let (head, _) = sample::CONTRACT
        .split_once("tools:\n")
        .expect("the sample has tools");
    let mut contract = format!("{head}tools:\n");
    for number in 0..TOOLS {
        write!(
            contract,
            "  - tool: find_{number}\n    description: Returns the airport with an IATA code.\n    verb: lookup\n    \
             collection: airports\n    fields:\n      - {{ name: iata, type: text, required: true, help: IATA code. }}\n"
        )
        .expect("a text grows");
    }
    for (config, size, pages) in [
        ("", 1000, 3),
        ("[http]\npage_size = 300", 300, 7),
        ("[http]\npage_size = 2001", TOOLS, 1),
    ] {
        let house = sample::house()
            .config(config)
            .file("contracts/airports.yaml", &contract);
        let (gateway, client) = house.serve_client();
        let first = client.ask("tools/list", json!({})).await;
        assert_eq!(
            first.result()["tools"].as_array().map(Vec::len),
            Some(size),
            "{config}"
        );
        assert_eq!(
            first.result().get("nextCursor").is_some(),
            pages > 1,
            "{config}"
        );
        let (tools, read) = client.list().await;
        assert_eq!((tools.len(), read), (TOOLS, pages), "{config}");
        let legacy = Legacy::open(gateway.url(), client::LEGACY)
            .await
            .ask("tools/list", json!({}))
            .await;
        assert_eq!(
            legacy.result()["tools"].as_array().map(Vec::len),
            Some(size),
            "{config}"
        );
    }
}

#[tokio::test]
async fn stdio_speaks_both_eras_and_leaves_when_told() {
    let house = sample::house();
    let mut weir = Stdio::start(&house);
    let discovered = weir.ask_modern("server/discover", json!({})).await;
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!([client::MODERN]),
        "{discovered}"
    );
    let params = json!({"protocolVersion": client::LEGACY, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let opened = weir.ask("initialize", params).await;
    assert_eq!(
        opened["result"]["protocolVersion"],
        client::LEGACY,
        "{opened}"
    );
    weir.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let call = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    let legacy = weir.ask("tools/call", call.clone()).await;
    assert_eq!(
        legacy["result"]["structuredContent"]["country"], "NO",
        "{legacy}"
    );
    let modern = weir.ask_modern("tools/call", call).await;
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
    weir.send_line("this is not JSON").await;
    assert_eq!(weir.read().await["error"]["code"], -32700);
    weir.send_line("").await;
    let alive = weir.ask("ping", json!({})).await;
    assert_eq!(alive["result"], json!({}), "{alive}");
    assert!(weir.close().await.success());
}

/// A blocked read of stdin used to keep the process alive until one more line came.
#[tokio::test]
async fn stdio_ends_on_a_signal_while_stdin_is_open() {
    let house = sample::house();
    for name in ["TERM", "INT"] {
        let mut quickest = Duration::MAX;
        for _ in 0..20 {
            let mut weir = Stdio::start(&house);
            let call = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
            weir.ask_modern("tools/call", call).await;
            let sent = Instant::now();
            weir.signal(name).await;
            let status = weir.left().await;
            assert!(status.success(), "{name}: {status}");
            quickest = quickest.min(sent.elapsed());
            // The machine of a test may be busy with others.
            if quickest < Duration::from_millis(200) {
                break;
            }
        }
        assert!(
            quickest < Duration::from_millis(200),
            "{name}: {quickest:?}"
        );
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_walk() {
    let house = sample::house();
    let (_gateway, client) = house.serve_client();
    let first = client
        .call("list_airports", json!({"country": "NO", "limit": 1}))
        .await;
    let cursor = first["structuredContent"]["next"]
        .as_str()
        .expect("more is left")
        .to_owned();
    let second = client
        .call(
            "list_airports",
            json!({"country": "NO", "limit": 1, "cursor": cursor}),
        )
        .await;
    assert_eq!(
        second["structuredContent"]["records"][0]["iata"], "OSL",
        "{second}"
    );
    let mut altered = cursor.clone().into_bytes();
    let middle = altered.len() / 2;
    altered[middle] = if altered[middle] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).expect("ASCII");
    for arguments in [
        json!({"country": "SE", "limit": 1, "cursor": cursor}),
        json!({"limit": 1, "cursor": cursor}),
        json!({"country": "NO", "limit": 1, "cursor": altered}),
        json!({"country": "NO", "limit": 1, "cursor": ""}),
    ] {
        let refused = client.call("list_airports", arguments.clone()).await;
        assert_eq!(
            refused["structuredContent"]["code"], "invalid_arguments",
            "{arguments}: {refused}"
        );
        assert_eq!(
            refused["structuredContent"]["reason"], "bad_cursor",
            "{arguments}: {refused}"
        );
    }
    let bad = client
        .ask("tools/list", json!({"cursor": "made up\u{0}"}))
        .await;
    assert_eq!(bad.error_code(), -32602, "{}", bad.text);
}

/// Clients on another dialect refuse a tool for the name of 2020-12, which it has without the name too; the document that
/// `weir compile` prints names it.
#[tokio::test]
async fn a_compiled_schema_names_its_dialect_and_a_listed_one_does_not() {
    let house = sample::house();
    let gateway = house.serve();
    let out = house.succeed(&["compile", "contracts/airports.yaml"]);
    let compiled: Value = serde_json::from_str(&out).expect("a document");
    let listed = Modern::new(gateway.url())
        .ask("tools/list", json!({}))
        .await;
    assert!(!listed.text.contains("$schema"), "{}", listed.text);
    let listed = &listed.result()["tools"];
    let tools = compiled["tools"].as_array().expect("tools");
    assert_eq!(Some(tools.len()), listed.as_array().map(Vec::len));
    for tool in tools {
        let mut input = tool["inputSchema"].clone();
        let members = input.as_object_mut().expect("a schema");
        let dialect = members.shift_remove("$schema");
        assert_eq!(
            dialect,
            Some(json!("https://json-schema.org/draft/2020-12/schema"))
        );
        let mut same = listed.as_array().into_iter().flatten();
        let same = same.find(|listed| listed["name"] == tool["name"]);
        assert_eq!(same.map(|listed| &listed["inputSchema"]), Some(&input));
    }
}

#[tokio::test]
async fn health_is_told() {
    let house = sample::house();
    let gateway = house.serve();
    let http = client::http();
    let answer = client::send(http.get(format!("{}/healthz", gateway.base))).await;
    assert_eq!(answer.status, StatusCode::OK);
}
