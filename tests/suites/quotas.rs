//! Quotas: what an agent may call in a day and in a month, whatever key it has and however the process ended.

use serde_json::{Value, json};
use weir_tests::{Modern, until};

use crate::sample;

async fn look_up(client: &Modern) -> Value {
    client
        .call("lookup_airport", json!({ "iata": "OSL" }))
        .await
}

#[tokio::test]
async fn a_quota_bounds_an_agent_over_its_keys_and_restarts() {
    let house = sample::house().config("[limits]\nagent_quota_month = 3\n");
    let mut gateway = house.serve();
    let key = |words: &[&str]| house.key(&[&["--agent", "ada"], words].concat());
    let (first, second) = (key(&["--quota-day", "2"]), key(&[]));
    let other = house.key(&["--agent", "bob"]);
    let client = Modern::with_key(gateway.url(), &first);
    for _ in 0..2 {
        assert_eq!(look_up(&client).await["isError"], false);
    }
    let refused = look_up(&client).await;
    let error = &refused["structuredContent"];
    assert_eq!(error["code"], "rate_limited");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.starts_with("The quota of 2 calls a day is used up")
            && message.contains("T00:00:00Z"),
        "{message}"
    );
    let wait = error["retry_after_ms"].as_u64().expect("a time");
    assert!(wait <= 24 * 3600 * 1000, "{wait}");
    // The other key has the monthly quota of the configuration, of which two calls are used.
    let client = Modern::with_key(gateway.url(), &second);
    assert_eq!(look_up(&client).await["isError"], false);
    let refused = look_up(&client).await;
    let message = refused["structuredContent"]["message"].as_str();
    assert!(
        message.is_some_and(|message| message.starts_with("The quota of 3 calls a month")),
        "{refused}"
    );
    let client = Modern::with_key(gateway.url(), &other);
    assert_eq!(look_up(&client).await["isError"], false);
    let state = rusqlite::Connection::open(house.path().join("state/weir.db")).expect("it opens");
    let counted = "SELECT coalesce(sum(calls), 0) FROM agent_calls WHERE agent = 'ada'";
    until("what was counted is in the state", async || {
        let calls: i64 = state
            .query_row(counted, (), |row| row.get(0))
            .expect("a sum");
        calls >= 3
    })
    .await;
    drop(state);
    gateway.kill();
    let gateway = house.serve();
    for key in [&first, &second] {
        let refused = look_up(&Modern::with_key(gateway.url(), key)).await;
        assert_eq!(refused["structuredContent"]["code"], "rate_limited");
    }
    let keys = house.json(&["keys", "list"]);
    let limits: Vec<&Value> = keys
        .as_array()
        .expect("keys")
        .iter()
        .map(|key| &key["limits"]["quota_day"])
        .collect();
    assert!(limits.contains(&&json!(2)), "{keys}");
}
