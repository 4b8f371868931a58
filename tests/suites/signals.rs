//! What a signal ends: new calls at once, calls in flight with their answers, and then the process, with 0.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_tests::{Modern, Stdio, web::Web};

use crate::calls;

/// The time from the last answer to the end of the process, for the quickest of [`ROUNDS`]: the machine of a test may
/// be busy with others.
const END_MAX: Duration = Duration::from_millis(200);
const ROUNDS: usize = 3;

#[tokio::test]
async fn serve_answers_what_is_in_flight_and_leaves() {
    let web = Web::start().await;
    let house = calls::house(&web.base);
    for name in ["TERM", "INT"] {
        let mut quickest = Duration::MAX;
        for _ in 0..ROUNDS {
            let mut gateway = house.serve();
            let client = Modern::new(gateway.url());
            let before = web.requests();
            let call = tokio::spawn({
                let client = client.clone();
                async move { client.call("get_item", json!({"id": "slow-800"})).await }
            });
            calls::within(Duration::from_secs(20), "the call reaches the service", || web.requests() > before).await;
            gateway.signal(name);
            gateway.wait_for_log("stopping: calls in flight run to their end");
            assert!(!call.is_finished(), "the signal came while the call was in flight");
            let late = client.request("tools/list", json!({})).send();
            assert!(late.await.is_err_and(|error| error.is_connect()), "nobody new is let in");
            let answer = call.await.expect("the call ends");
            let answered = Instant::now();
            assert_eq!(answer["structuredContent"]["id"], "slow-800", "{name}: {answer}");
            let status = gateway.left();
            assert_eq!(status.code(), Some(0), "{name}: {status}\n{}", gateway.log());
            quickest = quickest.min(answered.elapsed());
        }
        assert!(quickest < END_MAX, "{name}: {quickest:?}");
    }
}

#[tokio::test]
async fn stdio_answers_what_is_in_flight_and_leaves() {
    let web = Web::start().await;
    let house = calls::house(&web.base);
    for name in ["TERM", "INT"] {
        let mut quickest = Duration::MAX;
        for _ in 0..ROUNDS {
            let mut weir = Stdio::start(&house);
            weir.ask_modern("tools/list", json!({})).await;
            let before = web.requests();
            let id =
                weir.begin_modern("tools/call", json!({"name": "get_item", "arguments": {"id": "slow-800"}})).await;
            calls::within(Duration::from_secs(20), "the call reaches the service", || web.requests() > before).await;
            weir.signal(name).await;
            let answer = weir.read().await;
            let answered = Instant::now();
            assert_eq!(answer["id"], id, "{name}: {answer}");
            assert_eq!(answer["result"]["structuredContent"]["id"], "slow-800", "{name}: {answer}");
            let status = weir.left().await;
            assert_eq!(status.code(), Some(0), "{name}: {status}");
            quickest = quickest.min(answered.elapsed());
        }
        assert!(quickest < END_MAX, "{name}: {quickest:?}");
    }
}
