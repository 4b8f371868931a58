//! Requests at one node about a session or a task of another.

use std::{
    fs,
    time::{Duration, Instant},
};

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use weir_tests::{
    Admin, Events, Gateway, House, Legacy, Modern, Postgres, answer_to,
    client::{LEGACY, send},
    place, within,
};

use crate::tasks::{begun, knows_tasks, running};

const WAIT: Duration = Duration::from_secs(20);

pub(super) fn house(server: &Postgres) -> House {
    let house = House::new().own_plugins(&[]).config(&format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [plugins.weir-guest-conformance]\ncontract = \"conformance\"\ncpu_max_ms = 60000\n",
        server.url()
    ));
    house.write(
        "plugins/conformance.wasm",
        fs::read(place::guest("conformance")).expect("a guest can be read"),
    );
    house
}

/// Two gateways with the same plugin; the first has the admin key.
fn nodes(server: &Postgres) -> [(House, Gateway); 2] {
    nodes_with(server, "")
}

fn nodes_with(server: &Postgres, config: &str) -> [(House, Gateway); 2] {
    [(), ()].map(|()| {
        let house = house(server).config(config);
        let gateway = house.serve();
        (house, gateway)
    })
}

/// Reads a stream to its end; `false` if it is open still after `wait`.
async fn ends(stream: &mut Response, wait: Duration) -> bool {
    let read = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(wait, read).await.is_ok()
}

async fn open_stream(client: &Legacy) -> Response {
    let stream = answer_to(client.stream()).await;
    assert_eq!(stream.status(), StatusCode::OK);
    stream
}

/// Starts a long call with an id, and waits until it runs.
async fn start_call(client: &Legacy, gateway: &Gateway, id: u64) -> tokio::task::JoinHandle<()> {
    let params = json!({"name": "slow_compute", "arguments": {"seconds": 50}});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let request = client.in_session(body.to_string());
    let call = tokio::spawn(async move {
        let _ = answer_to(request).await.text().await; // a cancelled call has none
    });
    within(WAIT, "the call runs", async || running(gateway).await).await;
    call
}

async fn cancel(client: &Legacy, id: u64) {
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let answer = send(client.in_session(cancelled.to_string())).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
}

#[tokio::test]
async fn a_call_of_one_node_is_cancelled_at_another_and_by_its_own_session_alone() {
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes(&server);
    let client = Legacy::open(first.url(), LEGACY).await;
    let there = client.at(second.url());
    let call = start_call(&client, &first, 7).await;
    cancel(&Legacy::open(second.url(), LEGACY).await, 7).await;
    cancel(&there, 8).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(running(&first).await, "nothing that names it has arrived");
    cancel(&there, 7).await;
    within(WAIT, "the call is cancelled", async || {
        !running(&first).await
    })
    .await;
    call.await.expect("it ends");
    let waiting = server.sql("SELECT count(*) FROM messages WHERE position('requestId' in encode(content, 'escape')) > 0");
    assert!(waiting == "0", "messages are sealed: {waiting}");
}

#[tokio::test]
async fn a_session_that_ends_at_one_node_ends_its_calls_and_its_stream_at_another() {
    let server = Postgres::start();
    let [(one, first), (_two, second)] = nodes(&server);
    let admin = Admin::of(&one);
    let generation = async || {
        let (_, list) = admin.ask("GET", "/v1/nodes", "").await;
        list["generation"].as_i64().expect("a number")
    };
    let client = Legacy::open(first.url(), LEGACY).await;
    let there = client.at(second.url());
    assert_eq!(there.ask("ping", json!({})).await.status, StatusCode::OK);
    let before = generation().await;
    let mut stream = open_stream(&client).await;
    let call = start_call(&client, &first, 7).await;
    let levelled = there.ask("logging/setLevel", json!({"level": "error"}));
    levelled.await.result();
    let answer = answer_to(there.delete()).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    assert!(ends(&mut stream, WAIT).await);
    within(WAIT, "the call ends", async || !running(&first).await).await;
    call.await.expect("it ends");
    for node in [&client, &there] {
        let answer = node.ask("ping", json!({})).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text);
    }
    assert_eq!(
        generation().await,
        before,
        "contracts and keys do not move with sessions"
    );
}

#[tokio::test]
async fn a_newer_stream_at_another_node_takes_the_place_of_the_older_one() {
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes(&server);
    let client = Legacy::open(first.url(), LEGACY).await;
    let there = client.at(second.url());
    let mut older = open_stream(&client).await;
    let shortly = Duration::from_millis(300);
    assert!(!ends(&mut older, shortly).await);
    let mut newer = open_stream(&there).await;
    assert!(ends(&mut older, WAIT).await, "each message goes out once");
    assert!(!ends(&mut newer, shortly).await);
    let mut newest = open_stream(&client).await;
    assert!(ends(&mut newer, WAIT).await);
    assert!(!ends(&mut newest, shortly).await);
}

#[tokio::test]
async fn what_a_client_answers_at_one_node_reaches_the_call_that_asked_at_another() {
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes(&server);
    let able = json!({"elicitation": {}});
    let client = Legacy::able(first.url(), LEGACY, able).await;
    let there = client.at(second.url());
    let ask = async |client: &Legacy| {
        let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let mut events = Events::open(client.in_session(body.to_string())).await;
        let question = events.next(WAIT).await.expect("it asks");
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (events, question["id"].clone())
    };
    // Each node asks; each answer is given at the other one.
    let (mut at_first, one) = ask(&client).await;
    let (mut at_second, two) = ask(&there).await;
    assert_ne!(one, two, "an answer belongs to one question");
    for (node, id, name) in [(&client, &two, "Bo"), (&there, &one, "Ann")] {
        let content = json!({"username": name, "email": "a@example.com"});
        let result = json!({"action": "accept", "content": content});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let answer = send(node.in_session(answer.to_string())).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    }
    for (events, name) in [(&mut at_first, "Ann"), (&mut at_second, "Bo")] {
        let result = events.next(WAIT).await.expect("it goes on");
        assert!(result["result"].to_string().contains(name), "{result}");
    }
}

/// Returns the same client at another address.
fn at(client: &Modern, url: String) -> Modern {
    let mut client = client.clone();
    client.url = url;
    client
}

async fn look(client: &Modern, task: &str) -> Value {
    let answer = client.ask("tasks/get", json!({"taskId": task})).await;
    answer.result().clone()
}

async fn until_status(client: &Modern, task: &str, status: &str) -> Value {
    let began = Instant::now();
    loop {
        let seen = look(client, task).await;
        if seen["status"] == status {
            return seen;
        }
        assert!(began.elapsed() < WAIT, "it never is {status}: {seen}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_task_of_one_node_is_read_answered_and_cancelled_at_another_by_its_caller_alone() {
    let server = Postgres::start();
    let [(one, first), (_two, second)] = nodes(&server);
    let keys = ["ann", "bob"].map(|agent| one.key(&["--agent", agent]));
    let [ann, bob] = keys.map(|key| Modern::with_key(first.url(), &key).saying(knows_tasks()));
    let there = at(&ann, second.url());
    let task = begun(&ann, "confirm_delete", json!({"filename": "a.txt"})).await;
    let asked = until_status(&there, &task, "input_required").await;
    assert_eq!(asked["taskId"], task.as_str(), "{asked}");
    assert_eq!(
        asked["inputRequests"]["confirm"]["method"],
        "elicitation/create"
    );
    for stranger in [
        at(&bob, second.url()),
        at(&ann, second.contract_url("conformance")),
    ] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params =
                json!({"taskId": task, "inputResponses": {"confirm": {"action": "decline"}}});
            let refused = stranger.ask(method, params).await;
            let unknown = stranger.ask(
                method,
                json!({"taskId": "0".repeat(32), "inputResponses": {}}),
            );
            let unknown = unknown.await;
            assert_eq!(refused.error_code(), -32602, "{method}");
            assert_eq!(refused.reply()["error"], unknown.reply()["error"]);
        }
    }
    let answers = json!({"confirm": {"action": "accept", "content": {"ok": true}}});
    let params = json!({"taskId": task, "inputResponses": answers});
    let answered = there.ask("tasks/update", params).await;
    assert_eq!(answered.result()["resultType"], "complete");
    let ended = until_status(&there, &task, "completed").await;
    let text = ended["result"]["content"][0]["text"].as_str();
    assert!(
        text.is_some_and(|text| text.starts_with("a.txt")),
        "{ended}"
    );
    assert_eq!(look(&ann, &task).await, ended, "both nodes say the same");

    let slow = begun(&there, "slow_compute", json!({"seconds": 50})).await;
    assert_eq!(look(&ann, &slow).await["status"], "working");
    let cancelled = ann.ask("tasks/cancel", json!({"taskId": slow})).await;
    assert_eq!(cancelled.result()["resultType"], "complete");
    until_status(&ann, &slow, "cancelled").await;
    assert!(!running(&second).await);
}

/// An answer that its caller has received makes room for other tasks; a task that is only cancelled or updated at
/// another node does not.
#[tokio::test]
async fn an_answer_counts_as_given_once_another_node_has_sent_it() {
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes_with(&server, "[limits]\ntasks_max = 1");
    let ann = Modern::able(first.url(), knows_tasks());
    let there = at(&ann, second.url());
    let task = begun(&ann, "slow_compute", json!({"seconds": 1})).await;
    within(WAIT, "the call ends", async || !running(&first).await).await;
    for method in ["tasks/cancel", "tasks/update"] {
        let params = json!({"taskId": task, "inputResponses": {}});
        there.ask(method, params).await.result();
    }
    let becomes_task = async || {
        let result = ann.call("slow_compute", json!({"seconds": 1})).await;
        result["resultType"] == "task"
    };
    assert!(!becomes_task().await, "there is room for one task");
    assert_eq!(look(&there, &task).await["status"], "completed");
    within(WAIT, "the answer makes room", becomes_task).await;
}

#[tokio::test]
async fn who_listens_at_one_node_hears_of_a_task_of_another() {
    let server = Postgres::start();
    let [(one, first), (_two, second)] = nodes(&server);
    let keys = ["ann", "bob"].map(|agent| one.key(&["--agent", agent]));
    let [ann, bob] = keys.map(|key| Modern::with_key(first.url(), &key).saying(knows_tasks()));
    let there = at(&ann, second.url());
    let task = begun(&ann, "confirm_delete", json!({"filename": "a.txt"})).await;
    let filter = json!({"notifications": {"taskIds": [task, "0".repeat(32)]}});
    let bob = at(&bob, second.url());
    let mut others = Events::open(bob.request("subscriptions/listen", filter.clone())).await;
    let accepted = others.next(WAIT).await.expect("it is acknowledged");
    assert_eq!(accepted["params"]["notifications"], json!({}), "{accepted}");
    let mut events = Events::open(there.request("subscriptions/listen", filter)).await;
    let accepted = events.next(WAIT).await.expect("it is acknowledged");
    let followed = &accepted["params"]["notifications"]["taskIds"];
    assert_eq!(followed, &json!([task]), "{accepted}");
    let mut wait_for_status = async |status: &str| {
        let began = Instant::now();
        loop {
            let message = events.next(WAIT).await.expect("a notification");
            if message["params"]["status"] == status {
                return message["params"].clone();
            }
            assert!(began.elapsed() < WAIT, "{message}");
        }
    };
    let asked = wait_for_status("input_required").await;
    assert!(asked["inputRequests"]["confirm"].is_object(), "{asked}");
    let answers = json!({"confirm": {"action": "accept", "content": {"ok": true}}});
    let params = json!({"taskId": task, "inputResponses": answers});
    ann.ask("tasks/update", params).await.result();
    let ended = wait_for_status("completed").await;
    assert_eq!(ended["taskId"], task.as_str(), "{ended}");
    assert_eq!(ended["result"]["isError"], false, "{ended}");
}

/// A task that its node no longer keeps is not requested again and again while a client listens for it.
#[tokio::test]
async fn a_forgotten_task_of_another_node_is_looked_at_once() {
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes_with(&server, "[limits]\ntasks_max = 1");
    let ann = Modern::able(first.url(), knows_tasks());
    let there = at(&ann, second.url());
    let task = begun(&ann, "slow_compute", json!({"seconds": 1})).await;
    until_status(&there, &task, "completed").await;
    within(WAIT, "another task takes its place", async || {
        let result = ann.call("slow_compute", json!({"seconds": 1})).await;
        result["resultType"] == "task"
    })
    .await;
    let filter = json!({"notifications": {"taskIds": [task]}});
    let mut events = Events::open(there.request("subscriptions/listen", filter)).await;
    let accepted = events.next(WAIT).await.expect("it is acknowledged");
    let followed = &accepted["params"]["notifications"]["taskIds"];
    assert_eq!(followed, &json!([task]), "{accepted}");
    let sent = || server.sql("SELECT n FROM message_numbers");
    let mut before = sent();
    // It would be asked for once a second.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let after = sent();
        if after == before {
            return;
        }
        before = after;
    }
    panic!("the task is asked for on and on");
}

#[tokio::test]
async fn a_task_whose_node_is_gone_has_failed_and_nothing_is_known_of_it() {
    let server = Postgres::start();
    let [(_one, mut first), (_two, second)] = nodes(&server);
    let client = Modern::able(first.url(), knows_tasks());
    let there = at(&client, second.url());
    let task = begun(&client, "slow_compute", json!({"seconds": 50})).await;
    let before = look(&there, &task).await;
    assert_eq!(before["status"], "working", "{before}");
    first.kill();
    let began = Instant::now();
    let seen = loop {
        let answer = there.ask("tasks/get", json!({"taskId": task})).await;
        match answer.reply().get("result") {
            Some(seen) => break seen.clone(),
            None => assert_eq!(answer.error_code(), -32603, "until its lease has ended"),
        }
        assert!(began.elapsed() < WAIT);
    };
    assert_eq!(seen["status"], "failed", "{seen}");
    let data = json!({"code": "unavailable", "outcome": "unknown"});
    assert_eq!(seen["error"]["data"], data, "{seen}");
    assert_eq!(seen["createdAt"], before["createdAt"]);
    for method in ["tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": task, "inputResponses": {}});
        let answer = there.ask(method, params).await;
        assert_eq!(answer.result()["resultType"], "complete", "{method}");
    }
}

/// All look at the same list of nodes, one after the other. Those that wait for their turn give up as well.
#[tokio::test(flavor = "multi_thread")]
async fn looks_at_tasks_of_another_node_wait_for_a_database_that_hangs_no_longer_than_one() {
    const LOOKS: usize = 16;
    let server = Postgres::start();
    let [(_one, first), (_two, second)] = nodes(&server);
    let client = Modern::able(first.url(), knows_tasks());
    let there = at(&client, second.url());
    let task = begun(&client, "slow_compute", json!({"seconds": 50})).await;
    assert_eq!(look(&there, &task).await["status"], "working");
    server.signal("STOP");
    tokio::time::sleep(Duration::from_secs(1)).await; // what is known of the nodes is too old
    let began = Instant::now();
    let looks = (0..LOOKS).map(|_| {
        let (there, params) = (there.clone(), json!({ "taskId": task }));
        tokio::spawn(async move { there.ask("tasks/get", params).await.text })
    });
    let answers = futures::future::join_all(looks.collect::<Vec<_>>()).await;
    // One statement may take ten seconds, and one turn two: one after the other they would take minutes.
    let waited = began.elapsed();
    server.signal("CONT");
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    for answer in answers {
        let text = answer.expect("an answer");
        assert!(text.contains("-32603"), "{text}");
    }
}
