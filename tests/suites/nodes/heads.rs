//! Heads of trails in a database that hangs.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_tests::{Admin, Modern, Postgres};

use super::{Node, house, submit};
use crate::sample;

/// All writes wait for the same statement. Those that wait for their turn give up as well.
#[tokio::test(flavor = "multi_thread")]
async fn writes_at_once_wait_for_a_database_that_hangs_no_longer_than_one() {
    const WRITES: usize = 16;
    let server = Postgres::start();
    let one = house(&server.url()).config("[audit]\nreplicate = \"writes\"");
    let gateway = one.serve();
    let admin = Admin::of(&one);
    let node = Node {
        house: one,
        gateway,
        admin,
    };
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
    // One statement may take two seconds, and one turn: one after the other they would take 32.
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
