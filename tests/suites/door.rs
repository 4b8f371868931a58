//! What one caller costs the others before and after its calls: bytes, connections and sessions have bounds, in all and for
//! each, and the admin listener always has room for an operator.

use std::time::Duration;

use serde_json::json;
use weir_tests::{Events, Legacy};

use crate::sample;

#[tokio::test]
async fn an_agent_that_opens_sessions_leaves_those_of_others() {
    let house = sample::house().config("[http]\nsessions_max = 16\n");
    let gateway = house.serve();
    let [quiet, busy] = ["quiet", "busy"].map(|agent| house.key(&["--agent", agent]));
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&quiet)).await;
    let mut stream = Events::open(session.stream()).await;
    for _ in 0..100 {
        Legacy::open_as(gateway.url(), "2025-11-25", Some(&busy)).await;
    }
    let found = session.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(found["isError"], false, "{found}");
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("by country and elevation", "by country and height"),
    );
    let changed = stream.next(Duration::from_secs(20)).await;
    let changed = changed.expect("its stream is open");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}
