//! A server asks in the middle of its call, and the answer arrives at a node other than the one that called it.

use serde_json::json;
use weir_tests::{House, Modern, Postgres, strangers::hostile};

use crate::upstreams::{ask_for, entry, listed};

fn house(server: &Postgres) -> House {
    let more = "first = \"publish\"\nask = [\"elicitation\"]";
    House::new()
        .config(&format!(
            "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"",
            server.url()
        ))
        .config(&entry("asks", &hostile(&["inquires"]), more))
}

#[tokio::test]
async fn an_answer_that_comes_to_another_node_is_refused_and_goes_on_at_the_right_one() {
    let server = Postgres::start();
    let houses = [(), ()].map(|()| house(&server));
    let gateways = [houses[0].serve(), houses[1].serve()];
    let [here, there] = [0, 1].map(|node: usize| Modern::new(gateways[node].url()));
    for client in [&here, &there] {
        listed(client, "asks_inquire").await;
    }
    let call = json!({"name": "asks_inquire", "arguments": {}});
    let asked = ask_for(&here, "tools/call", call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = json!({"action": "accept", "content": {"sure": true}});
    let mut answered = call;
    answered["requestState"] = asked["requestState"].clone();
    answered["inputResponses"] = json!({ "question": answer });
    let elsewhere = ask_for(&there, "tools/call", answered.clone()).await["result"].clone();
    let text = elsewhere.to_string();
    assert!(
        elsewhere["isError"] == true
            && text.contains("unavailable")
            && text.contains("it may run at another one: send the answer again"),
        "{elsewhere}"
    );
    // This did not lose any part of the call: the next try may reach the node that asked.
    let done = ask_for(&here, "tools/call", answered).await["result"].clone();
    assert_eq!(done["structuredContent"], answer, "{done}");
}
