//! Failures of another server's tools, and answers of such a server that look like Weir's errors.

use std::path::Path;

use axum::body::Bytes;
use tokio::sync::{Mutex, mpsc};
use weir_upstream::{KeptFiles, UpstreamConfig};

use super::*;

/// A server whose calls are answered by the test, and the gateway in front of it. `close_order` may write, `order_status` only
/// reads and may become a task; both have an output schema.
struct Shop {
    server: Running,
    /// The calls that wait for an answer: `{result}` or `{error}`.
    calls: Mutex<mpsc::UnboundedReceiver<oneshot::Sender<Value>>>,
}

impl Shop {
    async fn open(gateway: testing::GatewayFixture) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the test makes few calls")]
        let (called, calls) = mpsc::unbounded_channel();
        let routes =
            Router::new().route("/mcp", any(move |body: Bytes| answer(called.clone(), body)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let config = UpstreamConfig {
            url: Some(url),
            timeout_ms: 30_000,
            ..UpstreamConfig::default()
        };
        let (resolved, wrong) = gateway.upstreams().resolve(
            &[("up".to_owned(), config)].into(),
            Path::new("."),
            &KeptFiles::default(),
        );
        assert_eq!(wrong, []);
        gateway.upstreams().take(resolved);
        let id = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        let code = json!({ "type": "object", "properties": { "code": { "type": "string" } } });
        let tools = json!([
            { "name": "close_order", "inputSchema": id, "outputSchema": code },
            { "name": "order_status", "inputSchema": { "type": "object" }, "outputSchema": code,
              "annotations": { "readOnlyHint": true }, "execution": { "taskSupport": "optional" },
              "_meta": { "own": 1, "dev.weir/contract": "another@9.0.0", "dev.weir/more": true } },
        ]);
        testing::publish_offer(&gateway, &json!({ "tools": tools }), ResourceMode::Pinned);
        Self {
            server: Running::serving(gateway).await,
            calls: Mutex::new(calls),
        }
    }

    /// Returns the next call that arrives at the server.
    async fn called(&self) -> oneshot::Sender<Value> {
        self.calls
            .lock()
            .await
            .recv()
            .await
            .expect("the server runs")
    }

    async fn answers(&self, message: &Value) {
        self.called()
            .await
            .send(message.clone())
            .expect("the call waits");
    }

    /// Sends a modern request of a client with support for tasks, and returns the result.
    async fn able(&self, method: &str, params: &str) -> Value {
        let (headers, body) = modern("1", method, params);
        let able = r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let body = body.replace(r#"clientCapabilities":{}"#, able);
        let headers = borrowed(&headers);
        self.server.post("/mcp", &headers, &body).await.json()["result"].take()
    }

    /// Begins a call of `order_status` that becomes a task, and returns its id.
    async fn begun(&self) -> String {
        let created = self
            .able("tools/call", r#""name":"up_order_status","arguments":{}"#)
            .await;
        created["taskId"]
            .as_str()
            .unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    /// Returns the task once it has ended.
    async fn ended(&self, task: &str) -> Value {
        let mut entered = self.server.gateway.tasks().heard();
        loop {
            entered.borrow_and_update();
            let seen = self
                .able("tasks/get", &format!(r#""taskId":"{task}""#))
                .await;
            if seen["status"] != "working" {
                return seen;
            }
            entered.changed().await.expect("the gateway lives");
        }
    }

    async fn close_order(&self) -> Value {
        let params = r#""name":"up_close_order","arguments":{"id":"7"}"#;
        self.server
            .modern("/mcp", "1", "tools/call", params)
            .await
            .json()["result"]
            .take()
    }

    /// Calls a tool by plain HTTP, and returns the status and the problem.
    async fn problem(&self, tool: &str, arguments: &str) -> (u16, Value) {
        let head = format!(
            "POST /rest/up/{tool} HTTP/1.1\nHost: localhost\nContent-Type: application/json"
        );
        let got = self.server.raw(&head, arguments.as_bytes()).await;
        assert_eq!(
            got.header("content-type"),
            Some("application/problem+json"),
            "{got:?}"
        );
        (got.status, serde_json::from_str(&got.body).expect("JSON"))
    }
}

async fn answer(called: mpsc::UnboundedSender<oneshot::Sender<Value>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return reply::not_allowed("POST");
    };
    let mut message = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            json!({ "result": { "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } } })
        }
        "tools/call" => {
            let (answers, answer) = oneshot::channel();
            let _ = called.send(answers);
            let Ok(message) = answer.await else {
                return reply::not_allowed("POST");
            };
            message
        }
        _ => return reply::accepted(),
    };
    message["jsonrpc"] = "2.0".into();
    message["id"] = request["id"].clone();
    reply::json(200, message.to_string().into_bytes())
}

#[tokio::test]
async fn an_error_of_ours_keeps_its_members_over_plain_http_where_the_tool_has_an_output_schema() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let broke = json!({ "error": { "code": -32000, "message": "broke half way" } });
    let (answer, ()) = tokio::join!(shop.close_order(), shop.answers(&broke));
    let over_mcp = &answer["_meta"]["dev.weir/error"];
    assert_eq!(
        (&over_mcp["code"], &over_mcp["outcome"]),
        (&json!("upstream_error"), &json!("unknown")),
        "{answer}"
    );
    let ((status, problem), ()) = tokio::join!(
        shop.problem("up_close_order", r#"{"id":"7"}"#),
        shop.answers(&broke)
    );
    assert_eq!(
        (status, &problem["status"]),
        (502, &json!(502)),
        "{problem}"
    );
    assert_eq!(
        (&problem["code"], &problem["outcome"]),
        (&over_mcp["code"], &over_mcp["outcome"]),
        "{problem}"
    );
    assert!(
        problem["call_id"].is_string() && problem["detail"] == "broke half way",
        "{problem}"
    );

    let (status, problem) = shop.problem("up_close_order", "{}").await;
    assert_eq!(
        (status, &problem["code"]),
        (400, &json!("invalid_arguments")),
        "{problem}"
    );
    assert_eq!(
        problem["errors"][0]["reason"], "missing_required",
        "{problem}"
    );
    shop.server.stop().await;
}

#[tokio::test]
async fn an_error_in_the_words_of_a_server_is_not_taken_for_ours() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let theirs =
        json!({ "code": "cancelled", "outcome": "none", "status": "open", "retry_after_ms": 5 });
    let text = json!([{ "type": "text", "text": "The order is open." }]);
    let answered =
        json!({ "result": { "content": text, "isError": true, "structuredContent": theirs } });
    let ((status, mut problem), ()) = tokio::join!(
        shop.problem("up_order_status", "{}"),
        shop.answers(&answered)
    );
    let members = problem.as_object_mut().expect("an object");
    members.remove("title");
    let call_id = members.remove("call_id").expect("it can be asked for");
    assert!(call_id.as_str().is_some_and(|id| id.starts_with("c_")));
    let expected = json!({
        "type": "urn:weir:error:tool_error",
        "status": 422,
        "detail": "The order is open.",
        "code": "tool_error",
        "structuredContent": theirs,
    });
    assert_eq!((status, problem), (422, expected));
    shop.server.stop().await;
}

#[tokio::test]
async fn a_task_is_cancelled_if_its_call_was_and_not_if_its_result_says_so() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    for is_error in [false, true] {
        let task = shop.begun().await;
        let theirs = json!({ "code": "cancelled" });
        let answered = json!({ "result": { "content": [], "isError": is_error, "structuredContent": theirs } });
        shop.answers(&answered).await;
        let ended = shop.ended(&task).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        let result = &ended["result"];
        assert_eq!(
            (&result["structuredContent"], &result["isError"]),
            (&theirs, &json!(is_error)),
            "{ended}"
        );
    }
    let task = shop.begun().await;
    let _unanswered = shop.called().await;
    shop.able("tasks/cancel", &format!(r#""taskId":"{task}""#))
        .await;
    assert_eq!(shop.ended(&task).await["status"], "cancelled");
    shop.server.stop().await;
}

#[tokio::test]
async fn what_a_server_says_of_a_write_that_ran_is_told_though_it_cannot_be_recorded() {
    let shop = Shop::open(testing::recording_gateway(|_| {}).await).await;
    let words = "The order was closed, its customer was not told.";
    let text = json!([{ "type": "text", "text": words }]);
    let breaks = async {
        let call = shop.called().await;
        let gateway = &shop.server.gateway;
        let trail = gateway.config().folders.state.join("audit");
        std::fs::rename(&trail, trail.with_file_name("away")).expect("moved away");
        // The trail checks once a second whether its file is still in place.
        while !gateway
            .audit()
            .health()
            .is_some_and(|health| health.failing)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        call.send(json!({ "result": { "content": text, "isError": true } }))
            .expect("the call waits");
    };
    let (answer, ()) = tokio::join!(shop.close_order(), breaks);
    assert_eq!(
        (&answer["content"][0]["text"], &answer["isError"]),
        (&json!(words), &json!(true)),
        "{answer}"
    );
    assert_eq!(
        answer["_meta"]["dev.weir/audit"], "not recorded",
        "{answer}"
    );
    assert!(
        answer["_meta"].get("dev.weir/receipt").is_none(),
        "{answer}"
    );
    shop.server.stop().await;
}

#[tokio::test]
async fn a_listed_tool_of_another_server_does_not_speak_in_our_name() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let page = shop
        .server
        .modern("/mcp/up", "1", "tools/list", "")
        .await
        .json();
    let tools = page["result"]["tools"].as_array().expect("tools");
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "up_order_status")
        .unwrap_or_else(|| panic!("{page}"));
    let meta = tool["_meta"].as_object().expect("an object");
    assert!(
        meta["dev.weir/contract"]
            .as_str()
            .is_some_and(|named| named.starts_with("up@")),
        "{tool}"
    );
    assert_eq!((meta.len(), &meta["own"]), (2, &json!(1)), "{tool}");
    shop.server.stop().await;
}

#[tokio::test]
async fn a_value_is_told_as_text_where_a_server_answers_no_text() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    let value = json!({ "type": "text", "text": r#"{"code":"7"}"# });
    let own = json!({ "type": "text", "text": "It is open." });
    for (content, expected) in [
        (json!([]), json!([value])),
        (json!([image]), json!([value, image])),
        (json!([own, image]), json!([own, image])),
    ] {
        let answered =
            json!({ "result": { "content": content, "structuredContent": { "code": "7" } } });
        let (result, ()) = tokio::join!(shop.close_order(), shop.answers(&answered));
        assert_eq!(result["content"], expected, "{result}");
    }
    shop.server.stop().await;
}

#[tokio::test]
async fn the_data_of_a_refusal_reaches_the_agent() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let data = json!({ "reason": "quota of project 7 used up" });
    let refused = json!({ "error": { "code": -32603, "message": "Internal error", "data": data } });
    let (answer, ()) = tokio::join!(shop.close_order(), shop.answers(&refused));
    let words = r#"Internal error: {"reason":"quota of project 7 used up"}"#;
    assert_eq!(answer["content"][0]["text"], words, "{answer}");
    assert_eq!(
        answer["_meta"]["dev.weir/error"]["message"], words,
        "{answer}"
    );
    shop.server.stop().await;
}

#[tokio::test]
async fn a_member_that_is_missing_is_told_from_one_that_is_wrong() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let answered = json!({ "result": { "content": [], "structuredContent": { "code": 7 } } });
    let (answer, ()) = tokio::join!(shop.close_order(), shop.answers(&answered));
    let text = answer["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.contains("the member is wrong") && text.contains("at /code"),
        "{text}"
    );
    shop.server.stop().await;
}

/// Clients of other eras, and servers, have different kinds of tasks, and insist on them.
#[tokio::test]
async fn only_a_client_that_knows_tasks_is_told_which_tools_may_become_one() {
    let shop = Shop::open(testing::gateway(|_| {}).await).await;
    let status = |listed: &Value| {
        let tools = listed["tools"].as_array().expect("tools").clone();
        let is_it = |tool: &Value| tool["name"] == "up_order_status";
        tools.into_iter().find(is_it).expect("it is listed")
    };
    let able = shop.able("tools/list", "").await;
    assert_eq!(
        status(&able)["execution"],
        json!({ "taskSupport": "optional" })
    );
    let other = shop.server.modern("/mcp", "1", "tools/list", "").await;
    assert_eq!(status(&other.json()["result"]).get("execution"), None);
    shop.server.stop().await;
}
