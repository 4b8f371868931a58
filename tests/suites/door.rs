//! What one caller costs the others before and after its calls: bytes, connections and sessions have bounds, in all and for
//! each, and the admin listener always has room for an operator.

use std::time::Duration;

use reqwest::header::HOST;
use serde_json::{Value, json};
use weir_tests::{Admin, Events, Legacy};

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

/// Every route of the admin API refuses hosts and origins that are not its own: a page that made its name lead here must not
/// read anything, whatever it knows.
#[tokio::test]
async fn the_admin_api_checks_host_and_origin_on_every_route() {
    let house = sample::house().config("[admin]\nhosts = [\"weir.internal\"]\n");
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let (_, document) = admin.ask("GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().expect("paths");
    let mut routes: Vec<(String, String)> = Vec::new();
    for (path, item) in paths {
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().expect("methods").keys() {
            routes.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(routes.len() >= 30, "{routes:?}");
    for path in ["/openapi.json", "/healthz", "/readyz", "/nothing"] {
        routes.push(("GET".to_owned(), path.to_owned()));
    }
    for (method, path) in &routes {
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "evil.example:80"),
            ("host", "localhost.evil.example"),
            ("origin", "http://evil.example"),
            ("origin", "https://app.example:8443"),
            ("origin", "null"),
        ] {
            let request = admin.request(method, path).header(name, value);
            let response = request.send().await.expect("an answer");
            let shown = format!("{method} {path} {name}: {value}");
            assert_eq!(response.status(), 403, "{shown}");
            let media = response.headers()["content-type"]
                .to_str()
                .expect("text")
                .to_owned();
            assert_eq!(media, "application/problem+json", "{shown}");
            let problem: Value = response.json().await.expect("JSON");
            let detail = problem["detail"].as_str().expect("a text");
            assert!(detail.contains("[admin]"), "{shown}: {detail}");
        }
    }
    for host in [
        "localhost",
        "127.0.0.1:9",
        "[::1]",
        "weir.internal",
        "WEIR.internal:9000",
    ] {
        let request = admin.request("GET", "/v1/keys").header(HOST, host);
        let origin = format!("http://{host}");
        let response = request.header("origin", origin).send().await;
        assert_eq!(response.expect("an answer").status(), 200, "{host}");
    }
    // Probes come by an address.
    for path in ["/healthz", "/readyz"] {
        let request = admin.request("GET", path).header(HOST, "10.0.0.7:9000");
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
    }
    let refused = crate::audit::records(&house, &["--kind", "refused"]);
    assert!(
        refused.iter().any(|record| record["reason"] == "host"),
        "{refused:?}"
    );
}
