//! A start: what is published is served, whatever is wrong beside it, and everything that is refused is said.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, http};

use crate::sample;

/// A second contract over the same file.
fn fields() -> String {
    let text = sample::CONTRACT.replace("contract: airports", "contract: fields");
    text.replace("_airport\n", "_field\n").replace("_airports\n", "_fields\n")
}

async fn country(gateway: &Gateway) -> Value {
    let result = Modern::new(gateway.url()).call("lookup_airport", json!({"iata": "OSL"})).await;
    result["structuredContent"]["country"].clone()
}

async fn text(house: &House, path: &str) -> String {
    let url = format!("{}{path}", Admin::of(house).url);
    http().get(url).send().await.expect("an answer").text().await.expect("text")
}

/// The start that `--strict` asks for: it ends, and says why.
fn strict(house: &House) -> String {
    let (code, _, err) = house.run(&["serve", "--strict", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1, "{err}");
    err
}

#[tokio::test]
async fn a_start_serves_what_is_published_beside_files_that_do_not_compile() {
    let house = sample::house();
    assert_eq!(country(&house.serve()).await, "NO");
    house.write("contracts/airports.yaml", sample::CONTRACT.replace("verb: list", "verb: lst"));
    house.write("contracts/new.yaml", "contract: new\ntools: 7\n");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO", "what is published is served");
    for said in ["/tools/1/verb", "new.yaml"] {
        assert!(gateway.log().contains(said), "the log does not say {said}:\n{}", gateway.log());
    }
    let listed = house.json(&["contracts", "list"]);
    let refused: Vec<_> = listed["refused"].as_array().into_iter().flatten().map(|one| &one["kind"]).collect();
    assert_eq!(
        (refused, &listed["contracts"][0]["version"]),
        (vec![&json!("contract"); 2], &json!("1.0.0")),
        "{listed}"
    );
    let ready = text(&house, "/readyz").await;
    assert!(
        ready.starts_with("ready\n") && ready.contains("refused: contract ") && ready.contains("new.yaml"),
        "{ready}"
    );
    let metrics = text(&house, "/metrics").await;
    assert!(metrics.contains("weir_refused{kind=\"contract\"} 2"), "{metrics}");
    drop(gateway);
    let said = strict(&house);
    assert!(said.contains("/tools/1/verb") && said.contains("new.yaml"), "{said}");
}

/// Without a state nothing is published: a gateway that would serve nothing of what it was given does not start.
#[tokio::test]
async fn a_start_that_could_serve_nothing_ends_and_says_why() {
    let house = House::new().sheets().file("contracts/new.yaml", "contract: new\ntools: 7\n");
    let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 1 && err.contains("new.yaml"), "{code}: {err}");
}

/// Without its lock nobody knows what was published of a contract: its file must not go live without being compared.
#[tokio::test]
async fn a_lock_that_cannot_be_read_holds_back_its_own_contract_alone() {
    let house = sample::house().file("contracts/fields.yaml", fields()).file("contracts/fields.lock.json", "{");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    let listed = house.json(&["contracts", "list"]);
    let names: Vec<_> = listed["contracts"].as_array().into_iter().flatten().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["airports"], "{listed}");
    let problem = &listed["refused"][0]["problems"][0];
    assert!(problem["file"].as_str().is_some_and(|file| file.ends_with("fields.lock.json")), "{listed}");
    assert!(gateway.log().contains("fields.lock.json"), "{}", gateway.log());
    // Once the lock is mended, here by taking it away, the contract goes live without a restart.
    std::fs::remove_file(house.path().join("contracts/fields.lock.json")).expect("removed");
    let started = Instant::now();
    while Modern::new(gateway.contract_url("fields")).ask("server/discover", json!({})).await.reply()["result"]
        .is_null()
    {
        assert!(started.elapsed() < Duration::from_secs(30), "it is not served:\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_connection_without_its_secret_stops_only_what_needs_it() {
    let service = "[connections.tracker]\nkind = \"http\"\nbase_url = \"https://tracker.example\"\n\
                   headers = { Authorization = \"Bearer ${env:NO_SUCH_TOKEN}\" }\n[plugins.rest.grants]\ntracker = \"read\"";
    let house = sample::house().config(service);
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    assert!(gateway.log().contains("NO_SUCH_TOKEN is not set"), "{}", gateway.log());
    let listed = house.json(&["contracts", "list"]);
    assert_eq!(
        (&listed["refused"][0]["kind"], &listed["refused"][0]["file"]),
        (&json!("connection"), &json!("tracker"))
    );
    assert!(text(&house, "/readyz").await.contains("refused: connection tracker"));
    assert!(text(&house, "/metrics").await.contains("weir_refused{kind=\"connection\"} 1"));
    drop(gateway);
    assert!(strict(&house).contains("NO_SUCH_TOKEN is not set"));
}

#[tokio::test]
async fn a_plugin_file_that_does_not_load_stops_only_what_needs_it() {
    let house = sample::house().own_plugins(&["sheet"]).file("plugins/odd.wasm", "no component");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    let listed = house.json(&["contracts", "list"]);
    assert_eq!((&listed["refused"][0]["kind"], &listed["refused"][0]["file"]), (&json!("plugin"), &json!("odd.wasm")));
    drop(gateway);
    assert!(strict(&house).contains("odd.wasm"));
}
