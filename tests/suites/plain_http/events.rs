//! Calls by plain HTTP whose answer is a stream of events, and callers of either kind who go away.

use std::sync::atomic::Ordering;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use weir_tests::{Gateway, House, answer_to, http, place, until, web::Web};

use crate::calls::{self, leave};

/// The guest with tools, in Rust.
fn house() -> House {
    let house = House::new().own_plugins(&[]).config("[http]\nforms = true");
    house.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    house
}

fn post(gateway: &Gateway, door: &str, tool: &str, arguments: &Value) -> RequestBuilder {
    let url = format!("{}/{door}/weir-guest-tools/{tool}", gateway.base);
    http()
        .post(url)
        .json(arguments)
        .header("accept", "text/event-stream")
}

/// Reads a stream to its end: each event by its name.
async fn events(request: RequestBuilder) -> Vec<(String, Value)> {
    let response = answer_to(request).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(
        response.headers()["cache-control"]
            .to_str()
            .expect("text")
            .contains("no-store")
    );
    let text = response.text().await.expect("the stream ends by itself");
    let event = |event: &str| {
        let (name, data) = event.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((
            name.to_owned(),
            serde_json::from_str(data).expect("JSON on one line"),
        ))
    };
    // All other lines are comments, which keep the connection alive.
    let events = text
        .split("\n\n")
        .filter(|event| !event.is_empty() && !event.starts_with(':'));
    events
        .map(|text| event(text).unwrap_or_else(|| panic!("no event: {text:?}")))
        .collect()
}

#[tokio::test]
async fn a_tool_says_how_far_it_is_and_then_answers() {
    let house = house();
    let gateway = house.serve();
    let step = |done: u8| {
        let progress = json!({"progress": done, "total": 3, "message": format!("step {done}")});
        ("progress".to_owned(), progress)
    };
    let reply = vec![
        step(1),
        step(2),
        step(3),
        ("result".to_owned(), json!({"result": 3})),
    ];
    for door in ["rest", "forms"] {
        assert_eq!(
            events(post(&gateway, door, "steps", &json!({"pause_ms": 200}))).await,
            reply,
            "{door}"
        );
    }
    let url = format!("{}/rest/weir-guest-tools/steps?pause_ms=200", gateway.base);
    for accept in [
        "text/event-stream",
        "application/json;q=0.1, Text/Event-Stream;q=0.9",
    ] {
        assert_eq!(
            events(http().get(&url).header("accept", accept)).await,
            reply,
            "{accept}"
        );
    }
    // Only a client that asked for events gets them.
    for accept in [
        "application/json",
        "*/*",
        "text/event-streams",
        "application/json, text/event-stream; q=0",
    ] {
        let answer = answer_to(http().get(&url).header("accept", accept)).await;
        assert_eq!(
            answer.headers()["content-type"],
            "application/json",
            "{accept}"
        );
        assert_eq!(
            answer.json::<Value>().await.expect("JSON"),
            json!({"result": 3}),
            "{accept}"
        );
    }
}

/// A problem is the same with a stream and without, and a call that is refused before it is one has no stream.
#[tokio::test]
async fn a_stream_ends_with_its_problem() {
    let house = house();
    let gateway = house.serve();
    for (tool, arguments, code) in [
        ("refuse", json!({}), "tool_error"),
        ("crash", json!({}), "plugin_failed"),
        ("wrong", json!({}), "output_mismatch"),
        ("steps", json!({"pause_ms": -1}), "invalid_arguments"),
        ("remove", json!({"environment": "prod"}), "unsupported"),
        ("no_such_tool", json!({}), "unknown_tool"),
    ] {
        let streamed = events(post(&gateway, "rest", tool, &arguments)).await;
        let url = format!("{}/rest/weir-guest-tools/{tool}", gateway.base);
        let plain = answer_to(http().post(url).json(&arguments)).await;
        let status = plain.status().as_u16();
        let mut problem: Value = plain.json().await.expect("JSON");
        let [(name, mut reply)] = <[_; 1]>::try_from(streamed).expect("one event");
        assert_eq!(
            (name.as_str(), &reply["code"], &reply["status"]),
            ("problem", &json!(code), &json!(status)),
            "{reply}"
        );
        for body in [&mut problem, &mut reply] {
            // Each call has its own.
            let members = body.as_object_mut().expect("an object");
            let id = members.shift_remove("call_id");
            assert_eq!(
                id.is_some(),
                !["unknown_tool", "unsupported"].contains(&code),
                "{code}"
            );
        }
        assert_eq!(reply, problem, "{tool}");
    }
    for (request, status) in [
        (post(&gateway, "rest", "steps", &json!([])), 400),
        (
            post(&gateway, "rest", "steps", &json!({})).header("origin", "https://evil.example"),
            403,
        ),
    ] {
        let answer = answer_to(request).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    let key = house.key(&["--agent", "ann"]);
    let keyless = answer_to(post(&gateway, "rest", "steps", &json!({}))).await;
    assert_eq!(keyless.status(), 401);
    assert_eq!(
        events(post(&gateway, "rest", "steps", &json!({})).bearer_auth(key))
            .await
            .len(),
        4
    );
}

/// Progress arrives while the tool still works, and closing the stream then ends the tool.
#[tokio::test]
async fn closing_a_stream_ends_its_tool() {
    let house = house();
    let gateway = house.serve();
    let mut answer = answer_to(post(&gateway, "rest", "steps", &json!({"pause_ms": 1000}))).await;
    let first = answer.chunk().await.expect("a stream").expect("an event");
    assert!(first.starts_with(b"event: progress\ndata: "), "{first:?}");
    drop(answer);
    until("the call is recorded as cancelled", async || {
        gateway.log().contains("\"outcome\":\"cancelled\"")
    })
    .await;
}

/// Closing the connection cancels a read, with events and without, at each door.
#[tokio::test]
async fn a_caller_who_leaves_cancels_a_read_and_no_write() {
    let web = Web::start().await;
    let house = calls::house(&web.base).config("[http]\nforms = true");
    let gateway = house.serve();
    let tool = |door: &str, tool: &str| format!("{}/{door}/items/{tool}", gateway.base);
    let post =
        |door: &str, name: &str, arguments: Value| http().post(tool(door, name)).json(&arguments);
    let slow = || json!({"id": "slow-30000"});
    let reads = [
        (
            "GET /rest",
            http().get(tool("rest", "get_item?id=slow-30000")),
        ),
        ("POST /rest", post("rest", "get_item", slow())),
        ("POST /forms", post("forms", "get_item", slow())),
        (
            "events",
            post("rest", "get_item", slow()).header("accept", "text/event-stream"),
        ),
    ];
    let all = reads.len();
    for (number, (what, request)) in reads.into_iter().enumerate() {
        leave(request, &web).await;
        let dropped = async || web.seen.dropped.load(Ordering::SeqCst) == number + 1;
        until(&format!("the source is let go: {what}"), dropped).await;
        let recorded =
            async || gateway.log().matches("\"outcome\":\"cancelled\"").count() == number + 1;
        until(&format!("it is recorded: {what}"), recorded).await;
    }
    let late = || json!({"id": "slow-1500", "name": "Late", "count": 1});
    let writes = [
        ("POST /rest", post("rest", "create_item", late())),
        (
            "events",
            post("rest", "create_item", late()).header("accept", "text/event-stream"),
        ),
    ];
    for (number, (what, request)) in writes.into_iter().enumerate() {
        leave(request, &web).await;
        let finished = async || web.seen.finished.load(Ordering::SeqCst) == number + 1;
        until(&format!("the write runs to its end: {what}"), finished).await;
    }
    assert_eq!(web.seen.dropped.load(Ordering::SeqCst), all);
}
