//! Heads of trails in a database that hangs.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_tests::{Modern, Postgres, within};

use super::{house, make_node, submit};
use crate::sample;

/// All writes wait for the same statement. Those that wait for their turn give up as well.
#[tokio::test(flavor = "multi_thread")]
async fn writes_at_once_wait_for_a_database_that_hangs_no_longer_than_one() {
    const WRITES: usize = 16;
    let server = Postgres::start();
    let node = make_node(house(&server.url()).config("[audit]\nreplicate = \"writes\""));
    submit(&node, sample::CONTRACT).await;
    let url = node.gateway.url();
    Modern::new(&url).list().await;
    server.signal("STOP");
    let started = Instant::now();
    let writes = (0..WRITES).map(|number| {
        let client = Modern::new(&url);
        let letter = char::from(b'A' + u8::try_from(number).expect("a letter"));
        let arguments = json!({"iata": format!("QQ{letter}"), "name": "New", "country": "NO"});
        let call = json!({"name": "create_airport", "arguments": arguments});
        tokio::spawn(async move { client.ask("tools/call", call).await.text })
    });
    let answers = futures::future::join_all(writes.collect::<Vec<_>>()).await;
    // One statement may take two seconds, and so may one turn: one after the other they would take 32.
    let waited = started.elapsed();
    server.signal("CONT");
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    for answer in answers {
        let text = answer.expect("an answer");
        assert!(text.contains("unavailable"), "{text}");
    }
    let data = std::fs::read_to_string(node.house.path().join("data/airports.csv"));
    assert!(!data.expect("the data").contains("QQ"), "nothing ran");
}

/// A write that cannot be announced does not run, and its approval is still valid once it can be.
#[tokio::test]
async fn a_write_that_is_not_recorded_keeps_its_approval() {
    let server = Postgres::start();
    let node = make_node(house(&server.url()).config("[audit]\nreplicate = \"writes\""));
    let verb = "    verb: create\n";
    let waiting = sample::CONTRACT.replace(verb, &format!("{verb}    approval: required\n"));
    let (code, published) = submit(&node, &waiting).await;
    assert_eq!(code, 200, "{published}");
    let create = async || {
        let airport = json!({"iata": "BOO", "name": "Another", "country": "NO"});
        let client = Modern::new(node.gateway.url());
        client.call("create_airport", airport).await["structuredContent"].clone()
    };
    let waits = create().await;
    let path = format!(
        "/v1/approvals/{}",
        waits["plan"]["id"].as_str().expect("a plan")
    );
    let (_, shown) = node.admin.ask("GET", &path, "").await;
    let body = json!({ "fingerprint": shown["fingerprint"] }).to_string();
    let (code, approved) = node
        .admin
        .ask("POST", &format!("{path}/approve"), body)
        .await;
    assert_eq!(code, 200, "{approved}");
    server.sql(
        "CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'failing'; END $$;
         CREATE TRIGGER failing BEFORE INSERT OR UPDATE ON audit_heads FOR EACH ROW EXECUTE FUNCTION failing();",
    );
    let refused = create().await;
    assert_eq!(refused["code"], "unavailable", "{refused}");
    server.sql("DROP TRIGGER failing ON audit_heads");
    within(Duration::from_secs(20), "it is made", async || {
        create().await["status"] == "created"
    })
    .await;
}
