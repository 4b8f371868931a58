//! Servers whose answers are read although they deviate from the protocol, as `weir extract` and callers see them.

use axum::{
    Json, Router,
    body::Bytes,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use weir_tests::{Admin, House, Legacy, Modern, schema::tool, strangers::hostile, until, web};

use super::{code, listed, serve_listed, text, trusted};

/// Speaks only the earlier era. The path selects how the request for the newer one is refused, or how answers are written.
async fn answer(Path(how): Path<String>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let id = request["id"].clone();
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => return refuse(&how, id),
        "initialize" => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "odd", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" },
            "description": "Echoes what it is given." }] }),
        _ if how == "blocks" => {
            json!({ "content": [{ "type": "video" }], "structuredContent": [1, 2] })
        }
        _ => json!({ "content": [{ "type": "text", "text": "echoed" }] }),
    };
    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    let (json, events) = ("application/json", "text/event-stream");
    match how.as_str() {
        "marked" => typed(json, format!("\u{feff}{text}")),
        "streamed" => typed(events, format!("\u{feff}data: {text}\n\n")),
        "gzip" => ([(header::CONTENT_ENCODING, "gzip")], typed(json, text)).into_response(),
        _ => typed(json, text),
    }
}

fn typed(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Refuses the question for the newer era.
fn refuse(how: &str, id: Value) -> Response {
    let (status, id, code) = match how {
        "failing" => (StatusCode::INTERNAL_SERVER_ERROR, id, -32601),
        "broken" => return (StatusCode::INTERNAL_SERVER_ERROR, "boom").into_response(),
        "lacking" => return StatusCode::NOT_IMPLEMENTED.into_response(),
        "nameless" => (StatusCode::OK, Value::Null, -32600),
        _ => (StatusCode::OK, id, -32601),
    };
    let error = json!({ "code": code, "message": "unknown" });
    let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    (status, Json(refusal)).into_response()
}

const READ: [&str; 6] = [
    "failing", "broken", "lacking", "nameless", "marked", "streamed",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_one_era_is_read_however_it_says_so() {
    let base = web::serve(Router::new().route("/{how}", post(answer))).await;
    let mut house = House::new();
    for how in READ {
        let url = format!("{base}/{how}");
        let words = ["extract", &url, "--timeout", "8"];
        let (code, out, err) = crate::import::weir(&house, &words);
        assert_eq!(code, 0, "{how}: {err}");
        let document: Value = serde_json::from_str(&out).expect("a document");
        assert_eq!(document["items"][0]["name"], "echo", "{how}: {document}");
        house = house.config(&format!(
            "[upstreams.{how}]\nurl = \"{url}\"\nfirst = \"publish\""
        ));
    }
    let (_gateway, client) = house.serve_client();
    for how in READ {
        let name = format!("{how}_echo");
        listed(&client, &name).await;
        assert_eq!(
            text(&client.call(&name, json!({})).await),
            "echoed",
            "{how}"
        );
    }
    // What is compressed is not read, and the operator is shown why.
    let url = format!("{base}/gzip");
    let words = ["extract", &url, "--timeout", "8"];
    let (code, _, err) = crate::import::weir(&house, &words);
    assert!(
        code == 1 && err.contains("`Content-Encoding: gzip`") && err.contains("\nSteps:"),
        "{err}"
    );
}

/// One odd part of an answer does not cost the rest, and the revisions before 2026-07-28 have no lists as values.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_cannot_take_is_passed_on_as_text() {
    let base = web::serve(Router::new().route("/{how}", post(answer))).await;
    let house = House::new().config(&format!(
        "[upstreams.odd]\nurl = \"{base}/blocks\"\nfirst = \"publish\""
    ));
    let (gateway, client) = serve_listed(&house, "odd_echo").await;
    let modern = client.call("odd_echo", json!({})).await;
    assert_eq!(modern["structuredContent"], json!([1, 2]), "{modern}");
    let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
    let params = json!({ "name": "odd_echo", "arguments": {} });
    let older = legacy.ask("tools/call", params).await.result().clone();
    assert!(older.get("structuredContent").is_none(), "{older}");
    let note = "Not passed on as the server answered it: content block 0: its `type` is none of text, image, audio, \
                resource_link, resource.";
    for result in [modern, older] {
        let blocks = result["content"].as_array().expect("blocks");
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert_eq!(texts, ["[1,2]", r#"{"type":"video"}"#, note], "{result}");
        assert_eq!(result["isError"], false, "{result}");
    }
}

/// Servers write the reason of a refusal next to its message.
#[tokio::test]
async fn the_data_of_an_error_reaches_the_caller() {
    let house = House::new().config(&trusted("bad", &hostile(&["spent"])));
    let (_gateway, client) = serve_listed(&house, "bad_spent").await;
    let reason = r#"Internal error: {"reason": "quota of project 7 used up""#;
    for arguments in [json!({}), json!({ "trace": true })] {
        let refused = client.call("bad_spent", arguments).await;
        assert_eq!(
            (code(&refused), &refused["isError"]),
            ("upstream_error", &json!(true)),
            "{refused}"
        );
        let message = refused["structuredContent"]["message"].as_str();
        for words in [text(&refused), message.unwrap_or_default()] {
            // A trace of a mebibyte is cut.
            assert!(words.starts_with(reason) && words.len() < 2_000, "{words}");
        }
    }
}

/// The server's question failed, not the call of its tool, which is unchanged since it was published.
#[tokio::test]
async fn a_call_that_fails_by_a_question_is_no_change_of_its_tool() {
    let house = House::new().config(&trusted("bad", &hostile(&["relays"])));
    let (_gateway, client) = serve_listed(&house, "bad_relay").await;
    let failed = client.call("bad_relay", json!({})).await;
    assert_eq!(
        (code(&failed), text(&failed)),
        (
            "upstream_error",
            "MCP error -32601: the client does not offer sampling/createMessage"
        ),
        "{failed}"
    );
}

/// A member that is null is absent, and clients refuse an `enum` that has a value twice.
#[tokio::test]
async fn a_tool_with_null_for_what_it_lacks_is_served() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("lists.json");
    let kind = json!({ "type": "string", "enum": ["a", "b", "a"] });
    let lists = json!({ "tools": [{
        "name": "t", "description": "A tool.", "title": null, "annotations": null, "outputSchema": null,
        "inputSchema": { "type": "object", "properties": { "kind": kind } },
    }] });
    std::fs::write(&file, lists.to_string()).expect("lists");
    let words = hostile(&["lists", &file.display().to_string()]);
    let house = House::new().config(&trusted("n", &words));
    let (_gateway, client) = serve_listed(&house, "n_t").await;
    let (tools, _) = client.list().await;
    let served = tool(&tools, "n_t");
    assert!(served.get("outputSchema").is_none(), "{served}");
    assert_eq!(
        served["inputSchema"]["properties"]["kind"]["enum"],
        json!(["a", "b"])
    );
    client.succeed("n_t", json!({ "kind": "b" })).await;
}

/// Each look at such a server would ask for the next one: it announces a change whenever its lists are read.
#[tokio::test]
async fn a_server_that_announces_changes_without_end_is_looked_at_ever_less_often() {
    let house = House::new().config(&trusted("restless", &hostile(&["restless"])));
    let gateway = house.serve();
    listed(&Modern::new(gateway.url()), "restless_good").await;
    let admin = Admin::of(&house);
    let mut last = None;
    until("two looks are nine seconds apart", async || {
        let (_, shown) = admin.ask("GET", "/v1/upstreams/restless", "").await;
        let now = shown["looked_ms"].as_u64().expect("it was looked at");
        let before = last.replace(now).unwrap_or(now);
        now - before >= 9000
    })
    .await;
}

/// Proxies in front, and many clients, cut off an answer that sends nothing for a minute.
#[tokio::test]
async fn a_call_that_is_silent_for_long_begins_its_stream_before_its_answer() {
    let house = House::new().config(&trusted("slow", &hostile(&["tools"])));
    let (_gateway, client) = serve_listed(&house, "slow_sleep").await;
    let arguments = json!({ "seconds": 25 });
    let meta = json!({ "progressToken": "p" });
    let params = json!({ "name": "slow_sleep", "arguments": arguments, "_meta": meta });
    let response = client.request("tools/call", params).send().await;
    let mut response = response.expect("the answer begins");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = response.chunk().await.expect("it goes on");
    assert_eq!(first.as_deref(), Some(&b":\n\n"[..]));
}
