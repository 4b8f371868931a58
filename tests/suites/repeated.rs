//! Writes with an idempotency key: only one of those with the same key runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{
    Admin, Gateway, House, Modern, Postgres, answer_to, client::send, http, place,
    strangers::hostile, until, within,
};

use crate::{
    approvals::{database, node, sqlite_house},
    upstreams::{listed, trusted},
};

pub(crate) const ORDERS: &str = r#"
contract: orders
collections:
  orders:
    adapter: sql
    settings: { connection: db, table: orders }
    key: [id]
    write: true
tools:
  - tool: create_order
    description: Makes an order.
    verb: create
    collection: orders
    fields:
      - { name: what, type: text, required: true }
  - tool: approved_order
    description: Makes an order that a person approves.
    verb: create
    collection: orders
    approval: required
    fields:
      - { name: what, type: text, required: true }
"#;

const TABLE: &str =
    "CREATE TABLE orders (id integer PRIMARY KEY, what text NOT NULL CHECK (what <> 'bad'))";

fn sqlite() -> (House, Gateway) {
    let house = sqlite_house(TABLE).file("contracts/orders.yaml", ORDERS);
    let gateway = house.serve();
    (house, gateway)
}

fn orders(house: &House) -> i64 {
    let count = "SELECT count(*) FROM orders";
    let counted = database(house).query_row(count, (), |row| row.get(0));
    counted.expect("a count")
}

async fn create(client: &Modern, tool: &str, what: &str, key: &str) -> Value {
    let meta = json!({ "dev.weir/idempotency-key": key });
    let params = json!({ "name": tool, "arguments": { "what": what }, "_meta": meta });
    client.ask("tools/call", params).await.result().clone()
}

fn reason(result: &Value) -> &str {
    result["structuredContent"]["reason"]
        .as_str()
        .unwrap_or("none")
}

#[tokio::test]
async fn a_repeated_write_gets_the_first_result() {
    let (house, gateway) = sqlite();
    let [ann, bob] = ["ann", "bob"].map(|agent| {
        let key = house.key(&["--agent", agent]);
        Modern::with_key(gateway.url(), &key)
    });
    let first = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(first["isError"], false, "{first}");
    let again = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(
        again["structuredContent"], first["structuredContent"],
        "{again}"
    );
    assert_eq!(again["_meta"]["dev.weir/replayed"], true, "{again}");
    assert_eq!(orders(&house), 1);

    // A key belongs to one caller, one tool and one change.
    let other = create(&ann, "create_order", "desk", "k1").await;
    assert_eq!(reason(&other), "idempotency_key_reused", "{other}");
    let bobs = create(&bob, "create_order", "lamp", "k1").await;
    assert_eq!(bobs["_meta"].get("dev.weir/replayed"), None, "{bobs}");
    assert_eq!(orders(&house), 2);
    let params = json!({ "name": "create_order", "arguments": { "what": "x" }, "_meta": { "dev.weir/idempotency-key": "" } });
    assert_eq!(ann.ask("tools/call", params).await.error_code(), -32602);

    // What was refused was not done, and runs anew.
    for _ in 0..2 {
        let refused = create(&ann, "create_order", "bad", "k2").await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(refused["_meta"].get("dev.weir/replayed"), None, "{refused}");
    }
    // At its end, and after a restart, the result is the same.
    drop(gateway);
    let gateway = house.serve();
    let ann = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    let again = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(
        again["structuredContent"], first["structuredContent"],
        "{again}"
    );
    assert_eq!(orders(&house), 2);
}

#[tokio::test]
async fn a_write_that_did_not_end_is_unknown_and_never_made_again() {
    let (house, gateway) = sqlite();
    let ann = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    create(&ann, "create_order", "lamp", "k1").await;
    let state = rusqlite::Connection::open(house.path().join("state/weir.db")).expect("a state");
    let set = |lease: &str| {
        let set = format!(
            "UPDATE call_replies SET status = 'running', sealed = NULL, lease_ms = {lease}"
        );
        assert_eq!(state.execute(&set, ()).expect("set"), 1);
    };
    set("9000000000000");
    let running = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(reason(&running), "in_progress", "{running}");
    assert!(
        running["structuredContent"]["retry_after_ms"].is_number(),
        "{running}"
    );
    set("1");
    let unknown = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(reason(&unknown), "outcome_unknown", "{unknown}");
    assert_eq!(
        unknown["structuredContent"]["outcome"], "unknown",
        "{unknown}"
    );
    assert_eq!(orders(&house), 1);
}

#[tokio::test]
async fn a_key_holds_by_plain_http_and_beside_an_approval() {
    let (house, gateway) = sqlite();
    let key = house.key(&["--agent", "ann"]);
    let post = async |name: &str, value: &str| {
        let request = http()
            .post(format!("{}/rest/orders/create_order", gateway.base))
            .bearer_auth(&key)
            .header("content-type", "application/json")
            .header(name, value)
            .body(r#"{"what":"lamp"}"#);
        let answer = answer_to(request).await;
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a text"))
    };
    let first = post("idempotency-key", "k1").await;
    assert_eq!(first.0, 200, "{}", first.1);
    assert_eq!(post("Idempotency-Key", "k1").await, first);
    assert_eq!(post("idempotency-key", "a b").await.0, 400);
    assert_eq!(orders(&house), 1);

    let ann = Modern::with_key(gateway.url(), &key);
    let admin = Admin::of(&house);
    let asked = create(&ann, "approved_order", "desk", "k2").await;
    let id = asked["structuredContent"]["plan"]["id"]
        .as_str()
        .expect("a plan")
        .to_owned();
    let path = format!("/v1/approvals/{id}");
    let (_, plan) = admin.ask("GET", &path, "").await;
    let body = json!({ "fingerprint": plan["fingerprint"] }).to_string();
    admin
        .succeed("POST", &format!("{path}/approve"), body)
        .await;
    let done = create(&ann, "approved_order", "desk", "k2").await;
    assert_eq!(done["isError"], false, "{done}");
    let again = create(&ann, "approved_order", "desk", "k2").await;
    assert_eq!(
        again["structuredContent"], done["structuredContent"],
        "no further approval is asked for"
    );
    assert_eq!(orders(&house), 2);
}

/// A contract that takes the place of another may have a tool of the same name.
#[tokio::test]
async fn a_key_is_of_one_contract() {
    let (house, gateway) = sqlite();
    let ann = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    let first = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(first["isError"], false, "{first}");
    let retire = ["contracts", "retire", "orders"];
    let held = house.json(&retire);
    let fingerprint = held["fingerprint"].as_str().expect("a fingerprint");
    house.succeed(&[&retire[..], &["--fingerprint", fingerprint]].concat());
    let source = ORDERS.replace("contract: orders", "contract: sales");
    let source = json!({ "source": source }).to_string();
    Admin::of(&house)
        .succeed("POST", "/v1/contracts", source)
        .await;
    let other = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(other["isError"], false, "{other}");
    assert_eq!(other["_meta"].get("dev.weir/replayed"), None, "{other}");
    assert_eq!(orders(&house), 2);
}

/// A tool that asks its caller has done nothing yet: the call with the answer is the first, and its result is kept.
#[tokio::test]
async fn a_question_is_asked_before_a_key_is_used_up() {
    let house = House::new()
        .own_plugins(&[])
        .config("[plugins.weir-guest-tools]");
    let guest = std::fs::read(place::guest("tools-rust")).expect("a guest can be read");
    house.write("plugins/tools-rust.wasm", guest);
    let gateway = house.serve();
    let ann = Modern::able(gateway.url(), json!({ "elicitation": {} }));
    let call = async |more: Value| {
        let mut params = json!({
            "name": "remove", "arguments": { "environment": "prod" }, "_meta": { "dev.weir/idempotency-key": "k1" },
        });
        let members = params.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        ann.ask("tools/call", params).await.result().clone()
    };
    for _ in 0..2 {
        let asked = call(json!({})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
    }
    let asked = call(json!({})).await;
    let sure = json!({ "sure": { "action": "accept", "content": { "sure": true } } });
    let answer = json!({ "inputResponses": sure, "requestState": asked["requestState"] });
    let done = call(answer.clone()).await;
    assert_eq!(done["structuredContent"]["removed"], true, "{done}");
    for more in [answer, json!({})] {
        let again = call(more).await;
        assert_eq!(
            again["structuredContent"], done["structuredContent"],
            "{again}"
        );
        assert_eq!(again["_meta"]["dev.weir/replayed"], true, "{again}");
    }
}

/// Another server gets the arguments as they were sent, and the order of members is not part of their meaning.
#[tokio::test]
async fn the_same_arguments_in_another_order_are_the_same_call() {
    let house = House::new().config(&trusted("tracker", &hostile(&["tracker"])));
    let gateway = house.serve();
    let ann = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    listed(&ann, "tracker_create_issue").await;
    let call = async |arguments: Value| {
        let meta = json!({ "dev.weir/idempotency-key": "k1" });
        let params =
            json!({ "name": "tracker_create_issue", "arguments": arguments, "_meta": meta });
        ann.ask("tools/call", params).await.result().clone()
    };
    let options = json!({"grosse": 3});
    let first = json!({"owner": "acme", "title": "Rain", "filter_name": "roof", "options": options, "labels": []});
    let turned = json!({"labels": [], "options": options, "filter_name": "roof", "title": "Rain", "owner": "acme"});
    let done = call(first.clone()).await;
    assert_eq!(done["isError"], false, "{done}");
    let again = call(turned).await;
    assert_eq!(again["_meta"]["dev.weir/replayed"], true, "{again}");
    let mut other = first;
    other["title"] = json!("Snow");
    let other = call(other).await.to_string();
    assert!(other.contains("idempotency_key_reused"), "{other}");
}

#[tokio::test]
async fn of_two_nodes_at_once_one_makes_the_write() {
    let server = Postgres::start();
    server.sql("CREATE TABLE orders (id bigserial PRIMARY KEY, what text NOT NULL)");
    let (house, one) = node(&server);
    let (_other, two) = node(&server);
    let source = json!({ "source": ORDERS }).to_string();
    Admin::of(&house)
        .succeed("POST", "/v1/contracts", source)
        .await;
    let key = house.key(&["--agent", "ann"]);
    let clients = [&one, &two].map(|gateway| Modern::with_key(gateway.url(), &key));
    for round in 0..10 {
        let (what, key) = (format!("order {round}"), format!("k{round}"));
        let calls = clients.iter().cycle().take(6);
        let calls = calls.map(|client| create(client, "create_order", &what, &key));
        let results = futures::future::join_all(calls).await;
        for result in &results {
            let is_known = result["isError"] == false || reason(result) == "in_progress";
            assert!(is_known, "{result}");
        }
        let kept = create(&clients[1], "create_order", &what, &key).await;
        assert_eq!(kept["_meta"]["dev.weir/replayed"], true, "{kept}");
    }
    assert_eq!(server.sql("SELECT count(*) FROM orders").trim(), "10");
}

#[tokio::test]
async fn a_caller_that_left_finds_the_result_of_its_write() {
    let server = Postgres::start();
    server.sql(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, what text NOT NULL);
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NEW; END';
         CREATE TRIGGER slow BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let (house, gateway) = node(&server);
    let source = json!({ "source": ORDERS }).to_string();
    Admin::of(&house)
        .succeed("POST", "/v1/contracts", source)
        .await;
    let key = house.key(&["--agent", "ann"]);
    let ann = Modern::with_key(gateway.url(), &key);
    // The caller disconnects once its order is being made.
    let leave = async |request: reqwest::RequestBuilder| {
        let running = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let call = tokio::spawn(request.send());
        until("the order is being made", async || {
            server.sql(running) == "1" || call.is_finished()
        })
        .await;
        call.abort();
        let _ = call.await;
    };

    let params = json!({
        "name": "create_order", "arguments": { "what": "lamp" }, "_meta": { "dev.weir/idempotency-key": "k1" },
    });
    leave(ann.request("tools/call", params)).await;
    let again = until_ended(async || create(&ann, "create_order", "lamp", "k1").await).await;
    assert_eq!(again["isError"], false, "{again}");
    assert_eq!(again["_meta"]["dev.weir/replayed"], true, "{again}");

    let post = || {
        let request = http().post(format!("{}/rest/orders/create_order", gateway.base));
        let request = request.bearer_auth(&key).header("idempotency-key", "k2");
        request
            .header("content-type", "application/json")
            .body(r#"{"what":"desk"}"#)
    };
    leave(post()).await;
    let again = until_ended(async || {
        let answer: Value = serde_json::from_str(&send(post()).await.text).expect("JSON");
        json!({ "structuredContent": answer })
    })
    .await;
    assert_eq!(again["structuredContent"].get("code"), None, "{again}");
    assert_eq!(server.sql("SELECT count(*) FROM orders").trim(), "2");
}

/// Makes a call again until the first one has ended.
async fn until_ended(call: impl AsyncFn() -> Value) -> Value {
    let began = Instant::now();
    loop {
        let result = call().await;
        if reason(&result) != "in_progress" {
            return result;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{result}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The state cannot be changed for a moment, just as a write ends.
#[tokio::test]
async fn what_became_of_a_write_is_kept_once_the_state_can_be_changed_again() {
    let (house, gateway) = sqlite();
    let ann = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    let state = rusqlite::Connection::open(house.path().join("state/weir.db")).expect("a state");
    let failing = "CREATE TRIGGER kept BEFORE UPDATE ON call_replies BEGIN SELECT RAISE(ABORT, 'failing'); END;
                   CREATE TRIGGER forgotten BEFORE DELETE ON call_replies BEGIN SELECT RAISE(ABORT, 'failing'); END;";
    state.execute_batch(failing).expect("the state fails");
    let made = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(made["isError"], false, "{made}");
    let refused = create(&ann, "create_order", "bad", "k2").await;
    assert_eq!(refused["isError"], true, "{refused}");
    let again = create(&ann, "create_order", "lamp", "k1").await;
    assert_eq!(reason(&again), "in_progress", "{again}");
    state
        .execute_batch("DROP TRIGGER kept; DROP TRIGGER forgotten;")
        .expect("the state works again");
    within(Duration::from_secs(30), "the result is kept", async || {
        let again = create(&ann, "create_order", "lamp", "k1").await;
        again["_meta"]["dev.weir/replayed"] == true
    })
    .await;
    within(Duration::from_secs(30), "the key is free", async || {
        let again = create(&ann, "create_order", "bad", "k2").await;
        again["structuredContent"]["code"] == refused["structuredContent"]["code"]
    })
    .await;
    assert_eq!(orders(&house), 1);
}
