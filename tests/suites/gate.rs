//! Contracts that change: what goes live, what waits, who agrees, and what agents see of it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{Admin, Events, House, Legacy, Modern, answer_to, until};

use crate::{sample, views::FIELDS};

const HELD: i32 = 3;
/// One who has two roles, and may what either may.
const APPROVING_VIEWER: &str = "approving-viewer";

/// The least role that each route lets in, with the body that it gets. What it then answers is not asked here, only who is refused.
const ROUTES: &str = r#"
anonymous GET /v1/session/oidc
anonymous POST /v1/session/oidc {"tab":"0"}
anonymous POST /v1/session/oidc/answer {"query":"","tab":"0"}
viewer GET /v1/contracts
viewer GET /v1/contracts/airports
viewer GET /v1/contracts/airports/versions/1.0.0
viewer GET /v1/contracts/airports/diff
viewer POST /v1/contracts/airports/impact {"tools":{}}
viewer GET /v1/drafts
viewer GET /v1/drafts/none
viewer GET /v1/keys
auditor GET /v1/identity/failures
viewer GET /v1/versions
viewer GET /v1/form
viewer GET /v1/form/schema
approver GET /v1/session
approver POST /v1/session
approver DELETE /v1/session
approver POST /v1/session/link
viewer GET /v1/snippets
viewer GET /v1/stats
viewer GET /v1/events
viewer GET /v1/connections
viewer GET /v1/tools
viewer GET /v1/policy
viewer GET /v1/policy/schema
viewer POST /v1/policy/test {"cases":[]}
viewer GET /v1/collections
viewer GET /v1/plugins
viewer GET /v1/upstreams
viewer GET /v1/upstreams/none
decider GET /v1/approvals
decider GET /v1/approvals/none
decider POST /v1/approvals/none/approve {"fingerprint":"0"}
decider POST /v1/approvals/none/reject {"reason":null}
auditor GET /v1/audit
auditor GET /v1/audit/none
auditor GET /v1/audit/none/proof
auditor GET /v1/audit/heads
auditor GET /v1/audit/chains
auditor GET /v1/audit/chains/none/1
auditor GET /v1/audit/export
auditor GET /v1/audit/verify
auditor POST /v1/audit/verify {"receipts":[]}
viewer GET /v1/config
viewer GET /v1/nodes
viewer GET /v1/contracts/airports/callers
editor POST /v1/contracts {"source":"x"}
editor POST /v1/contracts/preview {"source":"x"}
editor POST /v1/contracts/none/retire
editor POST /v1/contracts/none/rollback {"to":"1.0.0","fingerprint":"0"}
editor POST /v1/drafts/none/discard
editor POST /v1/collections/airports/airports/describe
editor POST /v1/upstreams/none/look
operator GET /v1/upstreams/none/accounts
operator DELETE /v1/upstreams/none/accounts/1
editor POST /v1/connections/none/check
editor GET /v1/connections/none/sources
editor POST /v1/sources/describe {"connection":"none","source":"x"}
editor POST /v1/sources/draft {"connection":"none","source":"x"}
editor POST /v1/sources/rows {"connection":"none","source":"x"}
editor PUT /v1/files/none/x.csv "a"
editor POST /v1/calls {"tool":"none"}
operator GET /v1/admins
operator POST /v1/upstreams/look {"name":"x","url":"none"}
operator POST /v1/keys {"agent":"?"}
operator DELETE /v1/keys/none
operator PUT /v1/versions/none/1 {"sunset":null}
operator PUT /v1/pins/none/none {"major":1}
operator DELETE /v1/pins/none/none
operator POST /v1/admins {"name":"?","role":"viewer"}
operator DELETE /v1/admins/none
operator GET /v1/sessions
operator DELETE /v1/sessions/none
operator PUT /v1/plugins/none "no component"
operator DELETE /v1/plugins/none
operator POST /v1/plugins/none/accept {"sha256":"00"}
operator POST /v1/plugins/reload
operator POST /v1/config/reload
"#;

/// Returns a breaking change: an optional argument becomes required.
fn broken() -> String {
    let change = sample::CONTRACT.replace(
        "{ name: country, type: dropdown, choices: [NO, SE, IS] }",
        "{ name: country, type: dropdown, required: true, choices: [NO, SE, IS] }",
    );
    assert_ne!(change, sample::CONTRACT);
    change
}

fn wider() -> String {
    sample::CONTRACT.replace("max: 9000", "max: 12000")
}

/// Returns the version that the endpoint states; `none` if there is none.
async fn version(url: &str) -> String {
    let answer = Modern::new(url).ask("server/discover", json!({})).await;
    let info = &answer.reply()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    info["version"].as_str().unwrap_or("none").to_owned()
}

async fn until_version(url: &str, wanted: &str) {
    until(&format!("{url} serves {wanted}"), async || {
        version(url).await == wanted
    })
    .await;
}

fn pending(house: &House) -> Value {
    house.waiting_draft("airports")
}

async fn held(house: &House) -> Value {
    let mut draft = Value::Null;
    until("a change is held", async || {
        draft = pending(house);
        !draft.is_null()
    })
    .await;
    draft
}

/// Before anyone agrees to a change, the report shows whose past calls it would have refused; their arguments are not
/// stored.
#[tokio::test]
async fn a_change_is_told_with_the_calls_it_would_have_refused() {
    let house = House::new()
        .sheets()
        .config("[contracts]\nimpact_days = 30");
    let house = house
        .file("data/airports.csv", sample::DATA)
        .file("airports.yaml", sample::CONTRACT);
    let gateway = house.serve();
    let (code, _, err) = house.run(&["contracts", "submit", "airports.yaml"]);
    assert_eq!(code, 0, "{err}");
    let (ann, bob) = (
        house.key(&["--agent", "ann"]),
        house.key(&["--agent", "bob"]),
    );
    for (key, arguments) in [
        (&ann, json!({"country": "SE"})),
        (&ann, json!({"country": "SE"})),
        (&ann, json!({})),
        (&bob, json!({"country": "NO"})),
    ] {
        let result = Modern::with_key(gateway.url(), key)
            .call("list_airports", arguments)
            .await;
        assert_eq!(result["isError"], false, "{result}");
    }
    let created = json!({"iata": "QQQ", "name": "hunter2", "country": "IS"});
    Modern::with_key(gateway.url(), &bob)
        .call("create_airport", created)
        .await;
    let narrower = sample::CONTRACT
        .replace("choices: [NO, SE, IS]", "choices: [NO, IS]")
        .replace("max_length: 80", "max_length: 5");
    house.write("narrower.yaml", narrower);
    let submitted = house.json(&["contracts", "submit", "narrower.yaml"]);
    let agents = submitted["impact"]["agents"].as_array().expect("an impact");
    let of = |agent: &str| {
        agents
            .iter()
            .find(|one| one["agent"] == agent)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(
        (&of("ann")["calls"], &of("ann")["fail"]),
        (&json!(3), &json!(2)),
        "{submitted}"
    );
    assert!(
        of("ann")["reasons"][0]
            .as_str()
            .is_some_and(|why| why.contains("/country")),
        "{submitted}"
    );
    assert_eq!(
        (&of("bob")["tool"], &of("bob")["fail"]),
        (&json!("create_airport"), &json!(1)),
        "{submitted}"
    );
    assert_eq!(submitted["impact"]["calls"], 5);
    let id = submitted["draft"].as_str().expect("a draft");
    let (_, shown, _) = house.run(&["contracts", "show", id]);
    assert!(
        shown.contains("of 3 calls of list_airports by ann: 2 would have failed"),
        "{shown}"
    );
    let against = gateway.contract_url("airports");
    let mut command = house.weir(&["diff", "narrower.yaml", "--against", &against]);
    let output = command.env("WEIR_KEY", &ann).output().expect("weir starts");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{answer}");
    assert!(
        answer.contains("of 3 calls of list_airports by ann: 2 would have failed"),
        "{answer}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    drop(gateway);
    for name in ["weir.db", "weir.db-wal"] {
        let kept = std::fs::read(house.path().join("state").join(name)).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&kept).contains("hunter2"),
            "{name} holds what an agent wrote"
        );
    }
}

/// A process that ends in order keeps the calls that it counted last, as one of `weir call` always does.
#[tokio::test]
async fn a_call_from_the_terminal_is_a_past_call() {
    let house = House::new()
        .sheets()
        .config("[contracts]\nimpact_days = 30")
        .file("data/airports.csv", sample::DATA)
        .file("airports.yaml", sample::CONTRACT);
    let _gateway = house.serve();
    house.succeed(&["contracts", "submit", "airports.yaml"]);
    let ann = house.key(&["--agent", "ann"]);
    let mut call = house.weir(&["call"]);
    call.args(["list_airports", "--country", "SE"])
        .env("WEIR_KEY", &ann);
    let output = call.output().expect("weir starts");
    assert!(output.status.success(), "{output:?}");
    let narrower = sample::CONTRACT.replace("choices: [NO, SE, IS]", "choices: [NO, IS]");
    house.write("narrower.yaml", narrower);
    let submitted = house.json(&["contracts", "submit", "narrower.yaml"]);
    assert_eq!(submitted["impact"]["calls"], 1, "{submitted}");
    assert_eq!(submitted["impact"]["agents"][0]["fail"], 1, "{submitted}");
}

/// Even under load no client sees the breaking change before it is published, and every connected client is notified after.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_breaking_file_is_held_until_an_operator_agrees_to_exactly_that_change() {
    let house = sample::house();
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    assert_eq!(version(&url).await, "1.0.0");
    let before = Modern::new(&url).list().await;
    let legacy = Legacy::open(&url, "2025-11-25").await;
    let mut legacy_stream = Events::open(legacy.stream()).await;
    let listening = Modern::new(&url);
    let mut stream = Events::open(listening.request(
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    ))
    .await;
    stream
        .next(Duration::from_secs(60))
        .await
        .expect("acknowledged");

    let (stop, is_new) = (AtomicBool::new(false), AtomicBool::new(false));
    let load = async {
        let (mut calls, mut old, mut new) = (0, 0, 0);
        while !stop.load(Ordering::Relaxed) {
            let client = Modern::new(&url);
            let result = client.call("list_airports", json!({"limit": 1})).await;
            calls += 1;
            match result["structuredContent"]["code"].as_str() {
                None => {
                    assert_eq!(new, 0, "the old contract answers after the new one did");
                    old += 1;
                }
                Some(code) => {
                    assert_eq!(code, "invalid_arguments", "{result}");
                    new += 1;
                    is_new.store(true, Ordering::Relaxed);
                }
            }
        }
        (calls, old, new)
    };
    let change = async {
        house.write("contracts/airports.yaml", broken());
        let draft = held(&house).await;
        assert_eq!(
            (draft["class"].as_str(), draft["version"].as_str()),
            (Some("breaking"), Some("2.0.0"))
        );
        let item = draft["report"]["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|item| item["class"] == "breaking");
        let item = item.expect("a breaking item");
        assert_eq!(
            (item["tool"].as_str(), item["side"].as_str()),
            (Some("list_airports"), Some("input"))
        );
        assert!(item["witness"].is_object(), "{item}");
        assert_eq!(Modern::new(&url).list().await, before);
        assert_eq!(version(&url).await, "1.0.0");
        gateway.wait_for_log("held: airports");

        let id = draft["id"].as_str().expect("an id");
        let (code, out, _) = house.run(&["contracts", "publish", id]);
        assert_eq!(code, HELD, "{out}");
        assert!(out.contains("nothing is published yet"), "{out}");
        let (code, _, err) = house.run(&["contracts", "publish", id, "--fingerprint", "00"]);
        assert_eq!(code, 1);
        assert!(err.contains("another change"), "{err}");
        assert_eq!(version(&url).await, "1.0.0");
        let (code, out, err) = house.publish(&draft);
        assert_eq!((code, out.as_str()), (0, "airports: 2.0.0"), "{err}");
        let (code, out, _) = house.run(&["contracts", "show", id]);
        assert!(
            code == 0 && out.contains("published by") && !out.contains("to agree"),
            "{out}"
        );
        until_version(&url, "2.0.0").await;
        until("the new contract answers", async || {
            is_new.load(Ordering::Relaxed)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.store(true, Ordering::Relaxed);
    };
    let ((calls, old, new), ()) = tokio::join!(load, change);
    assert!(
        old > 0 && new > 0,
        "{calls} calls, {old} before and {new} after"
    );
    for stream in [&mut stream, &mut legacy_stream] {
        let message = stream
            .next(Duration::from_secs(60))
            .await
            .expect("list_changed");
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
    let again = house.run(&[
        "contracts",
        "publish",
        pending(&house)["id"].as_str().unwrap_or("d_none"),
    ]);
    assert_eq!(again.0, 1, "nothing is pending any more: {}", again.1);
}

#[tokio::test]
async fn what_breaks_nothing_goes_live_with_its_number() {
    let house = sample::house();
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    house.write("contracts/airports.yaml", wider());
    until_version(&url, "1.1.0").await;
    house.write(
        "contracts/airports.yaml",
        wider().replace("IATA code.", "Its IATA code."),
    );
    until_version(&url, "1.1.1").await;
    let all = Modern::new(gateway.url());
    let before = all.list().await;
    house.write(
        "contracts/airports.yaml",
        format!(
            "# a comment\n{}",
            wider().replace("IATA code.", "Its IATA code.")
        ),
    );
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(version(&url).await, "1.1.1", "a comment is no change");
    assert_eq!(all.list().await, before);

    let report = go_back(&house);
    assert_eq!(
        report["class"], "breaking",
        "going back takes what was given: {report}"
    );
    until_version(&url, "1.0.0").await;
    let versions = house.json(&["contracts", "show", "airports"])["versions"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(versions, 3, "nothing is forgotten");

    drop(gateway);
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    assert_eq!(
        version(&url).await,
        "1.0.0",
        "the file says what it did: going back holds"
    );
    house.write("contracts/airports.yaml", wider());
    until_version(&url, "1.2.0").await;
}

/// Across restarts: the live version comes from the state, whatever is in the folder. Removing a tool and adding it
/// again under the same name does not get around the gate.
#[tokio::test]
async fn a_tool_that_comes_back_is_compared_with_its_last_version() {
    let house = sample::house();
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    let (rest, tool) = sample::CONTRACT
        .split_once("  - tool: create_airport")
        .expect("its last tool");
    let created = |change: &str| format!("{rest}  - tool: create_airport{change}");
    house.write("contracts/airports.yaml", rest);
    let (code, _, err) = house.publish(&held(&house).await);
    assert_eq!(code, 0, "{err}");
    until_version(&url, "2.0.0").await;

    let stricter = tool.replace("max_length: 80", "max_length: 8");
    house.write("contracts/airports.yaml", created(&stricter));
    let draft = held(&house).await;
    assert_eq!(
        (draft["class"].as_str(), draft["version"].as_str()),
        (Some("breaking"), Some("3.0.0"))
    );
    let items = draft["report"]["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["class"] == "breaking");
    let reason = item.expect("a breaking item")["reason"].as_str();
    assert!(
        reason.is_some_and(
            |reason| reason.ends_with(", compared with 1.0.0, the last version with this tool")
        ),
        "{reason:?}"
    );
    let source = json!({ "source": created(&stricter) }).to_string();
    let (_, preview) = Admin::of(&house)
        .ask("POST", "/v1/contracts/preview", source)
        .await;
    assert_eq!(preview["class"], "breaking", "{preview}");

    house.write("contracts/airports.yaml", created(tool));
    until_version(&url, "2.1.0").await;
}

/// Going back to a version whose tool was removed since does not get around the gate either.
#[tokio::test]
async fn a_tool_that_a_rollback_brings_back_is_compared_with_its_last_version() {
    let stricter = sample::CONTRACT.replace("max_length: 80", "max_length: 8");
    let house = sample::house().file("contracts/airports.yaml", stricter);
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    house.write("contracts/airports.yaml", sample::CONTRACT);
    until_version(&url, "1.1.0").await;
    let (rest, _) = sample::CONTRACT
        .split_once("  - tool: create_airport")
        .expect("its last tool");
    house.write("contracts/airports.yaml", rest);
    let (code, _, err) = house.publish(&held(&house).await);
    assert_eq!(code, 0, "{err}");
    until_version(&url, "2.0.0").await;

    let last = house.json(&["contracts", "rollback", "airports", "--to", "1.1.0"]);
    assert_eq!(last["class"], "compatible", "{last}");
    let report = go_back(&house);
    assert_eq!(report["class"], "breaking", "{report}");
    let items = report["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["class"] == "breaking");
    let reason = item.expect("a breaking item")["reason"].as_str();
    assert!(
        reason.is_some_and(
            |reason| reason.ends_with(", compared with 1.1.0, the last version with this tool")
        ),
        "{reason:?}"
    );
    until_version(&url, "1.0.0").await;
}

#[tokio::test]
async fn a_breaking_edit_and_a_deleted_file_stay_held_over_a_restart() {
    let house = sample::house();
    drop(house.serve());
    house.write("contracts/airports.yaml", broken());
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    assert_eq!(version(&url).await, "1.0.0");
    assert_eq!(
        Modern::new(&url).call("list_airports", json!({})).await["isError"],
        false
    );
    assert_eq!(held(&house).await["class"], "breaking");
    drop(gateway);

    std::fs::remove_file(house.path().join("contracts/airports.yaml")).expect("removed");
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    assert_eq!(
        Modern::new(&url)
            .call("lookup_airport", json!({"iata": "OSL"}))
            .await["isError"],
        false
    );
    let draft = held(&house).await;
    assert_eq!(
        (draft["version"].as_str(), draft["class"].as_str()),
        (None, Some("breaking")),
        "to be retired"
    );

    house.write("contracts/airports.yaml", sample::CONTRACT);
    until("nothing is to be retired", async || {
        pending(&house).is_null()
    })
    .await;
    std::fs::remove_file(house.path().join("contracts/airports.yaml")).expect("removed");
    let draft = held(&house).await;
    house.agree(&draft);
    until("it is no longer served", async || {
        Modern::new(&url).ask("tools/list", json!({})).await.status != 200
    })
    .await;

    // A name's history outlives its deletion: removing and adding it again is a change like any other.
    house.write("contracts/airports.yaml", broken());
    assert_eq!(held(&house).await["class"], "breaking");
    house.write("contracts/airports.yaml", wider());
    until_version(&url, "1.1.0").await;
}

/// Going back holds while the file is unchanged; after that, and for a retired name, every text is compared with what
/// was served.
#[tokio::test]
async fn what_someone_went_back_from_is_judged_like_any_change() {
    let house = sample::house();
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    house.write("contracts/airports.yaml", broken());
    house.agree(&held(&house).await);
    until_version(&url, "2.0.0").await;
    go_back(&house);
    until_version(&url, "1.0.0").await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert!(
        pending(&house).is_null(),
        "the file says what it did: going back holds"
    );

    house.write(
        "contracts/airports.yaml",
        broken().replace("IATA code.", "Its IATA code."),
    );
    held(&house).await;
    house.write("contracts/airports.yaml", broken());
    until("the draft is of the present text", async || {
        !held(&house).await["report"]
            .to_string()
            .contains("Its IATA")
    })
    .await;
    assert_eq!(
        (
            held(&house).await["class"].as_str(),
            version(&url).await.as_str()
        ),
        (Some("breaking"), "1.0.0")
    );

    std::fs::remove_file(house.path().join("contracts/airports.yaml")).expect("removed");
    until("a file that is gone asks to be retired", async || {
        held(&house).await["version"].is_null()
    })
    .await;
    house.agree(&held(&house).await);
    // Agents were served 1.0.0, although 2.0.0 is the last version that was ever published.
    house.write("contracts/airports.yaml", broken());
    assert_eq!(held(&house).await["class"], "breaking");
    assert_eq!(version(&url).await, "none");
    house.write("contracts/airports.yaml", sample::CONTRACT);
    until_version(&url, "1.0.0").await;
}

/// Goes back to the first version as an operator, and returns the report that was agreed to.
fn go_back(house: &House) -> Value {
    let rollback = ["contracts", "rollback", "airports", "--to", "1.0.0"];
    let report = house.json(&rollback);
    let fingerprint = report["fingerprint"].as_str().expect("a fingerprint");
    let (code, out, err) = house.run(&[&rollback[..], &["--fingerprint", fingerprint]].concat());
    assert_eq!((code, out.as_str()), (0, "airports: 1.0.0"), "{err}");
    let (_, listed, _) = house.run(&["contracts", "list"]);
    assert!(listed.contains("airports was rolled back from"), "{listed}");
    report
}

/// Submissions over the API meet the same gate, and each role may do what it may.
#[tokio::test]
async fn the_api_has_the_same_gate_and_each_role_its_own_reach() {
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    let gateway = house.serve();
    house.write("a.yaml", sample::CONTRACT);
    let (code, out, err) = house.run(&["contracts", "submit", "a.yaml"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "airports: published 1.0.0"),
        "{err}"
    );
    let url = gateway.contract_url("airports");
    assert_eq!(
        Modern::new(&url)
            .call("lookup_airport", json!({"iata": "OSL"}))
            .await["isError"],
        false
    );
    let (code, out, _) = house.run(&["contracts", "submit", "a.yaml"]);
    assert_eq!((code, out.as_str()), (0, "airports: unchanged 1.0.0"));
    house.write("a.yaml", broken());
    let (code, out, _) = house.run(&["contracts", "submit", "a.yaml"]);
    assert_eq!(code, HELD, "{out}");
    assert!(
        out.contains("for example {"),
        "the report has a witness: {out}"
    );
    house.write("a.yaml", "contract: airports\ntools: [{ tool: x }]\n");
    let (code, _, err) = house.run(&["contracts", "submit", "a.yaml"]);
    assert!(code == 1 && err.contains("source at /tools/0"), "{err}");
    house.write("contracts/airports.yaml", wider());
    gateway.wait_for_log("comes from the admin API already");

    let admin = Admin::of(&house);
    let mut keys = vec![
        ("anonymous", String::new()),
        ("agent", house.key(&["--agent", "ann"])),
    ];
    for name in ["approver", "auditor", "viewer", APPROVING_VIEWER, "editor"] {
        let new = match name {
            APPROVING_VIEWER => json!({"name": name, "role": "viewer", "approves": true}),
            role => json!({"name": role, "role": role}),
        };
        let made = admin.ask("POST", "/v1/admins", new.to_string()).await;
        assert_eq!(made.0, 201, "{}", made.1);
        keys.push((name, made.1["key"].as_str().expect("a key").to_owned()));
    }
    keys.push(("operator", admin.key.clone()));
    let draft = pending(&house);
    let publish = format!(
        "/v1/drafts/{}/publish",
        draft["id"].as_str().expect("an id")
    );
    let agreed = json!({"fingerprint": draft["fingerprint"]});
    let mut routes: Vec<(&str, &str, &str, String)> = Vec::new();
    for line in ROUTES.trim().lines() {
        let mut parts = line.splitn(4, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let (least, method, path, body) = (next(), next(), next(), next());
        routes.push((least, method, path, body.to_owned()));
    }
    routes.push(("operator", "POST", publish.as_str(), agreed.to_string()));
    let (_, document) = admin.ask("GET", "/openapi.json", "").await;
    for (documented, operations) in document["paths"].as_object().expect("paths") {
        for operation in operations.as_object().expect("operations").keys() {
            let is_asked = |(_, method, path, _): &(&str, &str, &str, String)| {
                method.eq_ignore_ascii_case(operation) && is_at(documented, path)
            };
            assert!(
                routes.iter().any(is_asked),
                "who may {operation} {documented}?"
            );
        }
    }
    for (least, method, path, body) in routes {
        let mut reached = false;
        for (role, key) in &keys {
            let admin = Admin {
                key: key.clone(),
                ..admin.clone()
            };
            let answered = answer_to(admin.request(method, path).body(body.clone())).await;
            let status = answered.status().as_u16();
            // A stream does not end on its own.
            let answer = match (path, status) {
                ("/v1/events", 200) => String::new(),
                _ => answered.text().await.expect("a text"),
            };
            // Plans of writes are for roles that are not next to each other in the order.
            match least {
                "decider" => reached = ["approver", APPROVING_VIEWER, "operator"].contains(role),
                least => reached |= *role == least,
            }
            match *role {
                "anonymous" | "agent" if least != "anonymous" => {
                    assert_eq!(status, 401, "{role} {method} {path}: {answer}")
                }
                _ if reached => assert!(
                    ![401, 403].contains(&status),
                    "{role} {method} {path}: {status} {answer}"
                ),
                _ => assert_eq!(status, 403, "{role} {method} {path}: {answer}"),
            }
        }
    }
    assert_eq!(
        house.json(&["contracts", "show", "airports"])["version"],
        "2.0.0"
    );
}

/// Returns `true` if the path is one that the document describes by its template.
fn is_at(template: &str, path: &str) -> bool {
    let (template, path) = (
        template.split('/').collect::<Vec<_>>(),
        path.split('/').collect::<Vec<_>>(),
    );
    let is_part = |(part, given): (&&str, &&str)| part.starts_with('{') || part == given;
    template.len() == path.len() && template.iter().zip(&path).all(is_part)
}

/// In a fresh container the state is gone, the file was edited, and its lock lies next to it.
#[tokio::test]
async fn with_an_empty_state_the_lock_is_the_published_version() {
    let house = sample::house();
    let gateway = house.serve();
    house.write("contracts/airports.yaml", wider());
    until_version(&gateway.contract_url("airports"), "1.1.0").await;
    let (code, out, err) = house.run(&["contracts", "lock"]);
    assert!(code == 0 && out.contains("airports 1.1.0"), "{out} {err}");
    drop(gateway);
    std::fs::remove_dir_all(house.path().join("state")).expect("wiped");
    house.write("contracts/airports.yaml", broken());
    // A lock contains the whole compiled contract, which is longer than the contract's file.
    let lock =
        std::fs::read_to_string(house.path().join("contracts/airports.lock.json")).expect("a lock");
    house.write(
        "contracts/airports.lock.json",
        format!("{lock}{}", " ".repeat(5 << 20)),
    );
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    assert_eq!(version(&url).await, "1.1.0");
    assert_eq!(
        Modern::new(&url)
            .call("list_airports", json!({"min_elevation_ft": 10000}))
            .await["isError"],
        false
    );
    assert_eq!(held(&house).await["base"], "1.1.0");
    drop(gateway);

    std::fs::remove_dir_all(house.path().join("state")).expect("wiped");
    house.write(
        "contracts/airports.lock.json",
        "{\"lock\": 1, \"contract\": {}}",
    );
    let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("airports.lock.json"),
        "a lock that cannot be read is no lock to ignore: {err}"
    );
}

/// An admin who changes what they read gets an error if someone else was faster; one who sends no tag changes the
/// current version, whatever it is.
#[tokio::test]
async fn a_change_may_insist_on_what_was_read() {
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let submit = async |source: &str, tag: Option<&str>| {
        let request = admin
            .request("POST", "/v1/contracts")
            .body(json!({"source": source}).to_string());
        let request = tag
            .into_iter()
            .fold(request, |request, tag| request.header("if-match", tag));
        let answer = answer_to(request).await;
        (
            answer.status().as_u16(),
            answer.headers()["content-type"]
                .to_str()
                .expect("text")
                .to_owned(),
        )
    };
    let tag = async || {
        let answer = answer_to(admin.request("GET", "/v1/contracts/airports")).await;
        answer.headers()["etag"].to_str().expect("text").to_owned()
    };
    assert_eq!(
        submit(sample::CONTRACT, Some("*")).await.0,
        412,
        "there is none yet"
    );
    assert_eq!(submit(sample::CONTRACT, None).await.0, 200);
    let (ann, bob) = (tag().await, tag().await);
    assert_eq!(ann, bob);
    assert_eq!(submit(&wider(), Some(&ann)).await.0, 200);
    let bobs = sample::CONTRACT.replace("IATA code.", "Its IATA code.");
    assert_eq!(
        submit(&bobs, Some(&bob)).await,
        (412, "application/problem+json".to_owned()),
        "ann was faster"
    );
    let retire = admin
        .request("POST", "/v1/contracts/airports/retire")
        .header("if-match", &bob);
    assert_eq!(answer_to(retire).await.status(), 412);
    let back = json!({"to": "1.0.0", "fingerprint": "0"}).to_string();
    let back = admin
        .request("POST", "/v1/contracts/airports/rollback")
        .header("if-match", &bob)
        .body(back);
    assert_eq!(answer_to(back).await.status(), 412);
    let now = tag().await;
    // The text may be as long as a file.
    let long = format!("{}\n#{}\n", broken(), "\t".repeat(5 << 20));
    assert_eq!(submit(&long, Some(&format!("{bob}, {now}"))).await.0, 202);
    assert_ne!(tag().await, now, "a draft waits");

    // Of several at once that rest on the same drafts, one is taken.
    for round in 0..5 {
        let now = tag().await;
        let texts = ["IATA", "The IATA", "An IATA"]
            .map(|words| broken().replace("IATA code.", &format!("{words} code, {round}.")));
        let tags = Some(now.as_str());
        let (one, two, three) = tokio::join!(
            submit(&texts[0], tags),
            submit(&texts[1], tags),
            submit(&texts[2], tags)
        );
        let mut statuses = [one.0, two.0, three.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 412, 412], "round {round}");
    }
}

#[tokio::test]
async fn drafts_are_listed_by_their_status_and_page_by_page() {
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let submit = async |source: String, hold: bool| {
        let body = json!({"source": source, "hold": hold}).to_string();
        let (_, submitted) = admin.ask("POST", "/v1/contracts", body).await;
        submitted["draft"].as_str().unwrap_or_default().to_owned()
    };
    submit(sample::CONTRACT.to_owned(), false).await;
    let discarded = submit(broken(), true).await;
    let path = format!("/v1/drafts/{discarded}/discard");
    assert_eq!(admin.ask("POST", &path, "").await.0, 204);
    let replaced = submit(wider(), true).await;
    let waits = submit(broken(), true).await;
    let ids = async |query: &str| {
        let (status, drafts) = admin.ask("GET", &format!("/v1/drafts?{query}"), "").await;
        let drafts = drafts.as_array().into_iter().flatten();
        (
            status,
            drafts
                .map(|draft| draft["id"].as_str().expect("an id").to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let all = [waits.clone(), replaced.clone(), discarded.clone()];
    assert_eq!(ids("contract=airports").await, (200, all.to_vec()));
    assert_eq!(ids("status=pending").await, (200, vec![waits.clone()]));
    assert_eq!(
        ids("status=superseded").await,
        (200, vec![replaced.clone()])
    );
    assert_eq!(
        ids(&format!("before={replaced}")).await,
        (200, vec![discarded])
    );
    assert_eq!(ids("before=none").await.0, 404);
    assert_eq!(ids("status=harmless").await.0, 400);
    let (_, contracts) = admin.ask("GET", "/v1/contracts", "").await;
    assert_eq!(contracts["contracts"][0]["pending"], json!([waits]));
}

/// A faulty edit of a served contract is reported where its operator looks, until the file is corrected.
#[tokio::test]
async fn a_refused_file_is_listed_with_its_problems() {
    let house = sample::house();
    let gateway = house.serve();
    let listed = async |done: &dyn Fn(&Value) -> bool| {
        let started = Instant::now();
        loop {
            let listed = house.json(&["contracts", "list"]);
            if done(&listed) {
                return listed;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "{listed}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("verb: list", "verb: lst"),
    );
    let all = listed(&|listed| listed["refused"] != json!([])).await;
    assert_eq!(
        (
            &all["contracts"][0]["name"],
            &all["contracts"][0]["version"]
        ),
        (&json!("airports"), &json!("1.0.0"))
    );
    let problem = &all["refused"][0]["problems"][0];
    assert_eq!(problem["place"], "/tools/1/verb", "{all}");
    let (_, text, _) = house.run(&["contracts", "list"]);
    let hint = problem["hint"].as_str().expect("a hint");
    assert!(
        text.contains("contracts/airports.yaml; the version published before is still served")
            && text.contains(&format!("hint: {hint}")),
        "{text}"
    );
    house.write("contracts/airports.yaml", wider());
    listed(&|listed| listed["refused"] == json!([])).await;
    until_version(&gateway.contract_url("airports"), "1.1.0").await;

    house.write(
        "contracts/parts.yaml",
        FIELDS.replace("adapter: sheet", "adapter: nowhere"),
    );
    let all = listed(&|listed| listed["waiting"] != json!([])).await;
    assert!(
        all["waiting"][0]["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("parts.yaml")),
        "{all}"
    );
}

/// A retirement is agreed to as a rollback is: the fingerprint is printed, and with it the command does it.
#[tokio::test]
async fn a_contract_is_retired_by_its_fingerprint() {
    let house = sample::house();
    let gateway = house.serve();
    let url = gateway.contract_url("airports");
    let retire = ["contracts", "retire", "airports"];
    let asked = house.json(&retire);
    assert_eq!(
        (asked["verdict"].as_str(), version(&url).await.as_str()),
        (Some("held"), "1.0.0"),
        "{asked}"
    );
    let (code, _, err) = house.run(&[&retire[..], &["--fingerprint", &"0".repeat(64)]].concat());
    assert!(code == 1 && err.contains("another change"), "{code}: {err}");
    assert_eq!(version(&url).await, "1.0.0");
    let fingerprint = asked["fingerprint"].as_str().expect("a fingerprint");
    let (code, out, err) = house.run(&[&retire[..], &["--fingerprint", fingerprint]].concat());
    assert_eq!((code, out.as_str()), (0, "airports: retired"), "{err}");
    until_version(&url, "none").await;
}

/// `weir diff` reports the same about files, with an exit code for a pipeline.
#[tokio::test]
async fn diff_tells_a_pipeline_by_its_exit_code() {
    let house = sample::house()
        .file("old.yaml", sample::CONTRACT)
        .file("new.yaml", broken())
        .file("wide.yaml", wider());
    let (code, out, err) = house.run(&["diff", "old.yaml", "new.yaml", "--json"]);
    let report: Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
    assert_eq!((code, report["breaking"].as_bool()), (2, Some(true)));
    assert_eq!(house.run(&["diff", "old.yaml", "wide.yaml"]).0, 0);
    let gateway = house.serve();
    let (code, out, _) = house.run(&[
        "diff",
        "new.yaml",
        "--against",
        &gateway.contract_url("airports"),
    ]);
    assert!(code == 2 && out.contains("breaking"), "{code}: {out}");
    let planned = house.json(&[
        "diff",
        "new.yaml",
        "--against",
        &gateway.contract_url("airports"),
    ]);
    let all = house.json(&["diff", "new.yaml", "--against", &gateway.url()]);
    house.write("contracts/airports.yaml", broken());
    let draft = held(&house).await;
    assert_eq!(
        planned["fingerprint"], draft["fingerprint"],
        "{planned}\n{draft}"
    );
    assert_eq!(
        all["fingerprint"], draft["fingerprint"],
        "the endpoint of all contracts"
    );
    house.write("contracts/airports.yaml", sample::CONTRACT);
    // If no admin API can be asked, there is only the listing, and the report states that.
    let elsewhere = sample::house().file("new.yaml", broken());
    let (code, out, err) = elsewhere.run(&[
        "diff",
        "new.yaml",
        "--against",
        &gateway.contract_url("airports"),
    ]);
    assert!(code == 2 && err.contains("--admin"), "{code}: {out} {err}");
    for same in ["old.yaml", "wide.yaml"] {
        let (code, out, err) =
            house.run(&["diff", same, "--against", &gateway.contract_url("airports")]);
        assert_eq!(code, 0, "{out} {err}");
    }
    assert_eq!(
        house
            .run(&["contracts", "lock", "contracts/airports.yaml"])
            .0,
        0
    );
    let listed = Modern::new(gateway.url())
        .ask("tools/list", json!({}))
        .await
        .text;
    house.write("listed.json", listed);
    for was in ["contracts/airports.lock.json", "listed.json"] {
        let (code, out, err) = house.run(&["diff", was, "new.yaml"]);
        assert!(
            code == 2 && out.contains("breaking"),
            "{was}: {code}: {out} {err}"
        );
    }
    // A server may have lost all its tools.
    house.write("none.json", r#"{"tools":[]}"#);
    let (code, out, err) = house.run(&["diff", "listed.json", "none.json"]);
    assert!(
        code == 2 && out.contains("(tool-removed)"),
        "{code}: {out} {err}"
    );
    assert_eq!(house.run(&["diff", "none.json", "listed.json"]).0, 0);
    let (code, out, _) = house.run(&["lint", "old.yaml", "--json"]);
    let findings: Value = serde_json::from_str(&out).expect("JSON");
    assert!(code == 0 && findings["findings"].is_array(), "{out}");
}

/// Going back to a version brings its tools back: if another contract has taken a name meanwhile, the version is refused,
/// however it is restored.
#[tokio::test]
async fn a_name_that_another_contract_took_is_refused_on_every_way_back() {
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let ask = async |path: &str, body: Value| admin.ask("POST", path, body.to_string()).await;
    let named = |contract: &str, tool: &str| {
        FIELDS
            .replace("contract: fields", &format!("contract: {contract}"))
            .replace("lookup_field", tool)
    };
    let at = |tool: &str| {
        sample::CONTRACT
            .find(&format!("  - tool: {tool}"))
            .expect("the tool is there")
    };
    let without = [
        &sample::CONTRACT[..at("lookup_airport")],
        &sample::CONTRACT[at("list_airports")..],
    ]
    .concat();
    assert_eq!(
        ask("/v1/contracts", json!({"source": sample::CONTRACT}))
            .await
            .0,
        200
    );
    let (status, held) = ask("/v1/contracts", json!({"source": without})).await;
    assert_eq!(status, 202, "{held}");
    house.agree(&json!({"id": held["draft"], "fingerprint": held["fingerprint"]}));
    // The name is free: one contract with it waits, and another one gets it.
    let spare = json!({"source": named("spare", "lookup_airport"), "hold": true});
    let (status, waiting) = ask("/v1/contracts", spare).await;
    assert_eq!(status, 202, "{waiting}");
    let (status, published) = ask(
        "/v1/contracts",
        json!({"source": named("fields", "lookup_airport")}),
    )
    .await;
    assert_eq!(status, 200, "{published}");

    let back = house.json(&["contracts", "rollback", "airports", "--to", "1.0.0"]);
    let back = json!({"to": "1.0.0", "fingerprint": back["fingerprint"]});
    let agreed = json!({"fingerprint": waiting["fingerprint"]});
    let publish = format!(
        "/v1/drafts/{}/publish",
        waiting["draft"].as_str().expect("a draft")
    );
    for (path, body) in [
        ("/v1/contracts/airports/rollback", back),
        (publish.as_str(), agreed),
    ] {
        let (status, refusal) = ask(path, body).await;
        let why = &refusal["problems"][0]["message"];
        assert_eq!(
            (status, why.as_str()),
            (422, Some(TAKEN)),
            "{path}: {refusal}"
        );
    }
    let elsewhere = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    let elsewhere = elsewhere.file("contracts/third.yaml", named("third", "lookup_airport"));
    drop(elsewhere.serve());
    assert_eq!(elsewhere.run(&["contracts", "lock"]).0, 0);
    let lock = std::fs::read(elsewhere.path().join("contracts/third.lock.json")).expect("a lock");
    house.write("contracts/third.lock.json", lock);
    house.write("contracts/third.yaml", named("third", "lookup_third"));
    gateway.wait_for_log("third.lock.json");
    assert!(gateway.log().contains(TAKEN), "{}", gateway.log());

    assert_eq!(version(&gateway.contract_url("airports")).await, "2.0.0");
    for absent in ["spare", "third"] {
        assert_eq!(version(&gateway.contract_url(absent)).await, "none");
    }
    let found = Modern::new(gateway.contract_url("fields"))
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(found["structuredContent"]["country"], "NO", "{found}");
}

const TAKEN: &str = "the tool `lookup_airport` is defined by the contract `fields` already";
