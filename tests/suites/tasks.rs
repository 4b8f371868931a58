//! Calls that continue as tasks after their request was answered. The protocol's own suite checks the wire; this one
//! checks the rest: the owner of a task, its end, and who is not notified of it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Events, Gateway, House, Legacy, Modern, Stdio, client::LEGACY, http, place,
    strangers::STRANGERS, until,
};

use crate::upstreams::trusted;

pub(crate) fn knows_tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": {} })
}

fn house(config: &str) -> House {
    let house = House::new()
        .own_plugins(&[])
        .config("[plugins.weir-guest-conformance]\ncontract = \"conformance\"\ncpu_max_ms = 30000")
        .config(config);
    house.write(
        "plugins/conformance.wasm",
        fs::read(place::guest("conformance")).expect("a guest can be read"),
    );
    house
}

/// Calls a tool that takes its time, and returns the task.
pub(crate) async fn begun(client: &Modern, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"]
        .as_str()
        .expect("a task has an id")
        .to_owned()
}

async fn look(client: &Modern, task: &str) -> Value {
    client
        .ask("tasks/get", json!({ "taskId": task }))
        .await
        .result()
        .clone()
}

async fn reach(client: &Modern, task: &str, status: &str) -> Value {
    let began = Instant::now();
    loop {
        let seen = look(client, task).await;
        if seen["status"] == status {
            return seen;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it never is {status}: {seen}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_task_is_known_to_its_caller_alone_and_ends_with_the_key() {
    let house = house("");
    let gateway = house.serve();
    let (ann, bob) = (
        house.key(&["--agent", "ann"]),
        house.key(&["--agent", "bob"]),
    );
    let [ann, bob] =
        [ann, bob].map(|key| Modern::with_key(gateway.url(), &key).saying(knows_tasks()));
    let task = begun(&ann, "slow_compute", json!({ "seconds": 25 })).await;
    let mut elsewhere = ann.clone();
    elsewhere.url = gateway.contract_url("conformance");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        assert_eq!(
            bob.ask(method, params).await.error_code(),
            -32602,
            "{method}"
        );
        let params = json!({ "taskId": task, "inputResponses": {} });
        assert_eq!(
            elsewhere.ask(method, params).await.error_code(),
            -32602,
            "{method}"
        );
    }
    assert_eq!(look(&ann, &task).await["status"], "working");
    assert!(running(&gateway).await, "the call is under way");
    let keys = house.json(&["keys", "list"]);
    let of_ann = keys
        .as_array()
        .into_iter()
        .flatten()
        .find(|key| key["agent"] == "ann")
        .expect("it is listed");
    house.succeed(&["keys", "revoke", of_ann["id"].as_str().expect("an id")]);
    let began = Instant::now();
    while running(&gateway).await {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "a task outlives the key that began it"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns `true` while one call runs.
pub(crate) async fn running(gateway: &Gateway) -> bool {
    let metrics = gateway.metrics().await;
    metrics.lines().any(|line| line == "weir_in_flight_calls 1")
}

#[tokio::test]
async fn a_question_is_answered_in_the_task_and_the_result_has_its_receipt() {
    let house = house("");
    let gateway = house.serve();
    let client = Modern::able(gateway.url(), knows_tasks());
    let task = begun(&client, "confirm_delete", json!({ "filename": "a.txt" })).await;
    let asked = reach(&client, &task, "input_required").await;
    assert_eq!(
        asked["inputRequests"]["confirm"]["method"], "elicitation/create",
        "{asked}"
    );
    assert!(asked.get("requestState").is_none(), "{asked}");
    let answers =
        json!({ "confirm": { "action": "accept", "content": { "ok": true } }, "other": {} });
    let answer = client
        .ask(
            "tasks/update",
            json!({ "taskId": task, "inputResponses": answers }),
        )
        .await;
    assert_eq!(answer.result()["resultType"], "complete");
    let ended = reach(&client, &task, "completed").await;
    assert_eq!(ended["result"]["isError"], false, "{ended}");
    assert!(
        ended["result"]["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("a.txt")),
        "{ended}"
    );
    assert!(
        ended["result"]["_meta"]["dev.weir/receipt"].is_string(),
        "{ended}"
    );
    let again = look(&client, &task).await;
    assert_eq!(again, ended, "what has ended stays as it is");
}

/// A listener need not poll: it gets each status with what `tasks/get` would answer.
#[tokio::test]
async fn who_listens_for_a_task_is_told_of_each_status_and_nobody_else_is() {
    const WAIT: Duration = Duration::from_secs(20);
    let house = house("");
    let gateway = house.serve();
    let keys = [
        house.key(&["--agent", "ann"]),
        house.key(&["--agent", "bob"]),
    ];
    let [ann, bob] = keys.map(|key| Modern::with_key(gateway.url(), &key).saying(knows_tasks()));
    let slow = begun(&ann, "slow_compute", json!({ "seconds": 30 })).await;
    let asks = begun(&ann, "confirm_delete", json!({ "filename": "a.txt" })).await;
    reach(&ann, &asks, "input_required").await;
    let filter = json!({ "notifications": { "taskIds": [asks, slow, slow, "0".repeat(32)], "toolsListChanged": true } });
    let mut events = Events::open(ann.request("subscriptions/listen", filter.clone())).await;
    let accepted = events.next(WAIT).await.expect("it is acknowledged");
    let mut ids = [asks.clone(), slow.clone()];
    ids.sort_unstable();
    assert_eq!(
        accepted["params"]["notifications"],
        json!({ "toolsListChanged": true, "taskIds": ids }),
        "{accepted}"
    );
    let subscription = accepted["params"]["_meta"].clone();
    assert!(
        subscription["io.modelcontextprotocol/subscriptionId"].is_number(),
        "{accepted}"
    );

    // How they fare by now, in any order.
    let mut answer = BTreeMap::new();
    for _ in 0..2 {
        let message = events.next(WAIT).await.expect("it is notified");
        assert_eq!(
            (&message["method"], &message["params"]["_meta"]),
            (&json!("notifications/tasks"), &subscription)
        );
        let id = message["params"]["taskId"]
            .as_str()
            .expect("a task has an id")
            .to_owned();
        answer.insert(id, message["params"].clone());
    }
    assert_eq!(answer[&slow]["status"], "working");
    assert_eq!(
        answer[&asks]["inputRequests"]["confirm"]["method"], "elicitation/create",
        "{answer:?}"
    );

    let mut told_next = async |task: &str, status: &str| loop {
        let message = events.next(WAIT).await.expect("it is notified");
        assert_eq!(
            (&message["method"], &message["params"]["taskId"]),
            (&json!("notifications/tasks"), &json!(task))
        );
        if message["params"]["status"] == status {
            let mut same = look(&ann, task).await;
            for of_answer in ["resultType", "_meta"] {
                same.as_object_mut().expect("an object").remove(of_answer);
            }
            let mut params = message["params"].clone();
            params.as_object_mut().expect("an object").remove("_meta");
            assert_eq!(params, same, "what `tasks/get` answers");
            break;
        }
        assert_eq!(
            message["params"]["status"], "working",
            "only on the way there: {message}"
        );
    };
    let answers = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    ann.ask(
        "tasks/update",
        json!({ "taskId": asks, "inputResponses": answers }),
    )
    .await;
    told_next(&asks, "completed").await;
    ann.ask("tasks/cancel", json!({ "taskId": slow })).await;
    told_next(&slow, "cancelled").await;

    // Other callers cannot see them, and a client that does not support tasks gets an error.
    let mut others = Events::open(bob.request("subscriptions/listen", filter.clone())).await;
    let accepted = others.next(WAIT).await.expect("it is acknowledged");
    assert_eq!(
        accepted["params"]["notifications"],
        json!({ "toolsListChanged": true }),
        "{accepted}"
    );
    let refused = ann
        .saying(json!({}))
        .ask("subscriptions/listen", filter)
        .await;
    assert_eq!(refused.error_code(), -32021, "{}", refused.text);
}

#[tokio::test]
async fn who_knows_no_tasks_waits_or_is_told() {
    let house = house("");
    let (gateway, modern) = house.serve_client();
    let result = modern.call("slow_compute", json!({ "seconds": 1 })).await;
    assert_eq!(result["resultType"], "complete", "{result}");
    let refused = modern
        .ask("tools/call", json!({ "name": "failing_job" }))
        .await;
    assert_eq!(refused.error_code(), -32021, "{}", refused.text);
    let needed = &refused.reply()["error"]["data"]["requiredCapabilities"];
    assert_eq!(
        *needed,
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
    );
    let message = refused.reply()["error"]["message"].as_str();
    let lacks = "the extension io.modelcontextprotocol/tasks, and this client does not declare it";
    assert!(
        message.is_some_and(|message| message.contains(lacks)),
        "{}",
        refused.text
    );
    // The earlier era has no word for it: such a client waits, whatever the tool would rather have.
    let legacy = Legacy::open(gateway.url(), LEGACY).await;
    let result = legacy.call("failing_job", json!({})).await;
    assert_eq!(
        result["structuredContent"]["reason"], "intended",
        "{result}"
    );
    let rest = format!("{}/rest/conformance/slow_compute", gateway.base);
    let answer = http()
        .post(rest)
        .json(&json!({ "seconds": 1 }))
        .send()
        .await
        .expect("it is answered");
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn without_room_a_call_is_waited_for() {
    let house = house("[limits]\ntasks_max = 1\n");
    let gateway = house.serve();
    let client = Modern::able(gateway.url(), knows_tasks());
    begun(&client, "slow_compute", json!({ "seconds": 1 })).await;
    let result = client.call("slow_compute", json!({ "seconds": 1 })).await;
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(result["isError"], false, "{result}");
}

/// The tasks of the reference server are of 2025-11-25, those of another gateway of 2026-07-28.
#[tokio::test]
async fn tasks_of_other_servers_are_waited_for_and_are_our_own_to_callers() {
    let inner = house("");
    let inner = inner.serve();
    let everything = STRANGERS
        .iter()
        .find(|stranger| stranger.name == "everything")
        .expect("a known server");
    let house = House::new()
        .own_plugins(&[])
        .config(&trusted("everything", &everything.command(Path::new("."))))
        .config(&format!(
            "[upstreams.inner]\nurl = {:?}\nfirst = \"publish\"\nprefix = \"\"\nask = [\"elicitation\"]",
            inner.url()
        ));
    let gateway = house.serve();
    let plain = Modern::new(gateway.url());
    until_listed(
        &plain,
        &["everything_simulate-research-query", "confirm_delete"],
    )
    .await;
    let topic = json!({ "topic": "weirs" });
    let waited = plain
        .call("everything_simulate-research-query", topic.clone())
        .await;
    assert_eq!(waited["isError"], false, "{waited}");
    assert!(
        waited["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("weirs")),
        "{waited}"
    );
    let able = Modern::able(gateway.url(), knows_tasks());
    let task = begun(&able, "everything_simulate-research-query", topic).await;
    let ended = reach(&able, &task, "completed").await;
    assert_eq!(ended["result"]["isError"], false, "{ended}");

    let waited = plain
        .call("slow_compute", json!({ "seconds": 1, "label": "inner" }))
        .await;
    assert_eq!(waited["content"][0]["text"], "inner: 1 s", "{waited}");
    let refused = plain.call("failing_job", json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let task = begun(&able, "confirm_delete", json!({ "filename": "b.txt" })).await;
    let asked = reach(&able, &task, "input_required").await;
    let (key, _) = asked["inputRequests"]
        .as_object()
        .and_then(|asked| asked.iter().next())
        .expect("one question");
    let answers = json!({ key: { "action": "accept", "content": { "ok": true } } });
    able.ask(
        "tasks/update",
        json!({ "taskId": task, "inputResponses": answers }),
    )
    .await;
    let ended = reach(&able, &task, "completed").await;
    assert!(
        ended["result"]["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("b.txt")),
        "{ended}"
    );

    let task = begun(&able, "slow_compute", json!({ "seconds": 25 })).await;
    let began = Instant::now();
    while !running(&inner).await {
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(15), "it does not run there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    able.ask("tasks/cancel", json!({ "taskId": task })).await;
    reach(&able, &task, "cancelled").await;
    let began = Instant::now();
    while running(&inner).await {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "what was cancelled here runs on there"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_listed(client: &Modern, wanted: &[&str]) {
    until("the tools are listed", async || {
        let (tools, _) = client.list().await;
        wanted
            .iter()
            .all(|name| tools.iter().any(|tool| tool["name"] == *name))
    })
    .await;
}

#[tokio::test]
async fn a_task_runs_over_stdio_too_and_ends_with_the_process() {
    let house = house("");
    let mut stdio = Stdio::start(&house);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": knows_tasks(),
    });
    let params = json!({ "name": "slow_compute", "arguments": { "seconds": 30 }, "_meta": meta });
    let created = stdio.ask("tools/call", params).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let params = json!({ "taskId": created["result"]["taskId"], "_meta": meta });
    let seen = stdio.ask("tasks/get", params).await;
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    let began = Instant::now();
    assert!(stdio.close().await.success());
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it ended after {:?}",
        began.elapsed()
    );
}
