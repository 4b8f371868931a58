//! A standby takes over from the primary, which had changes that the standby lacks.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use reqwest::StatusCode;
use serde_json::json;
use weir_tests::{Admin, Modern, Postgres, within};

use super::{Node, country, house, join_at, make_node, rights::SampleRights, status, submit};
use crate::sample;

const TOOL: &str = "  - tool: all_airports\n    description: Lists all airports.\n    verb: list\n    collection: airports\n    fields: []\n";

async fn make_key(node: &Node, agent: &str) -> Option<(String, String)> {
    let body = json!({"agent": agent}).to_string();
    let (status, made) = node.admin.ask("POST", "/v1/keys", body).await;
    let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
    (status == 201).then(|| (text("id"), text("key")))
}

/// Makes an operator, and returns the id of the key and the admin API of a node with it.
async fn make_admin(node: &Node) -> (String, Admin) {
    let body = json!({"name": "mia", "role": "operator"}).to_string();
    let (status, made) = node.admin.ask("POST", "/v1/admins", body).await;
    assert_eq!(status, 201, "{made}");
    let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
    let mia = Admin {
        url: node.admin.url.clone(),
        key: text("key"),
    };
    (text("id"), mia)
}

/// Asserts that a node refuses the admin key that was revoked.
async fn assert_refuses(node: &Node, revoked: &Admin) {
    let there = Admin {
        url: node.admin.url.clone(),
        key: revoked.key.clone(),
    };
    let (status, answer) = there.ask("GET", "/v1/admins", "").await;
    assert_eq!(status, 401, "{answer}");
}

async fn fail_overs(node: &Node) -> Option<f64> {
    let text = node.gateway.metrics().await;
    let count = |line: &str| {
        line.strip_prefix("weir_state_fail_overs_total ")?
            .parse()
            .ok()
    };
    text.lines().find_map(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_and_rights_that_had_ended_stay_so() {
    let mut primary = Postgres::start();
    let mut standby = primary.start_standby();
    let url = primary.url_with(&standby);
    let one = make_node(house(&url));
    let two = join_at(&url, &one.admin);
    submit(&one, sample::CONTRACT).await;
    let (ann, revoked) = make_key(&one, "ann").await.expect("made");
    let (_, kept) = make_key(&one, "bob").await.expect("made");
    let rights = SampleRights::grant(&one, &primary, &kept).await;
    let (mia, left) = make_admin(&one).await;
    let (code, _) = left.ask("GET", "/v1/admins", "").await;
    assert_eq!(code, 200, "the key opens the admin API");
    let follows = async || standby.sql("SELECT count(*) FROM admins") == "2";
    within(Duration::from_secs(60), "the standby follows", follows).await;

    // The standby does not receive what follows.
    standby.stop();
    rights.end(&one, &primary).await;
    let (code, answer) = one
        .admin
        .ask("DELETE", &format!("/v1/keys/{ann}"), "")
        .await;
    assert_eq!(code, 200, "{answer}");
    let path = format!("/v1/admins/{mia}");
    let (_, answer) = one.admin.ask("DELETE", &path, "").await;
    assert_eq!(answer["everywhere"], json!(true), "{answer}");
    let (code, lost) = submit(&one, &(sample::CONTRACT.to_owned() + TOOL)).await;
    assert_eq!((code, &lost["everywhere"]), (200, &json!(true)), "{lost}");
    let (_, forgotten) = make_key(&one, "eve").await.expect("made");

    let (is_over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let calling = async {
        while !is_over.load(Relaxed) {
            for node in [&one, &two] {
                assert_eq!(country(node, Some(&kept)).await, "NO", "calls go on");
                assert_eq!(status(node, &revoked).await, StatusCode::UNAUTHORIZED);
            }
            calls.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let failing_over = async {
        primary.stop();
        tokio::task::block_in_place(|| {
            standby.run();
            standby.promote();
        });
        for node in [&one, &two] {
            let changes = async || make_key(node, "cid").await.is_some();
            within(Duration::from_secs(60), "changes are made again", changes).await;
        }
        for node in [&one, &two] {
            assert_refuses(node, &left).await;
            rights.assert_ended(node, &standby).await;
        }
        let written = "SELECT count(*) FROM admins WHERE name = 'mia' AND revoked_ms IS NOT NULL";
        let is_written = async || standby.sql(written) == "1";
        within(Duration::from_secs(60), "revoked there too", is_written).await;
        let written = "SELECT count(*) FROM keys WHERE agent = 'ann' AND revoked_ms IS NOT NULL";
        let is_written = async || standby.sql(written) == "1";
        within(Duration::from_secs(60), "revoked there too", is_written).await;
        for node in [&one, &two] {
            let client = Modern::with_key(node.gateway.url(), &kept);
            let is_back = async || {
                let (tools, _) = client.list().await;
                tools.iter().all(|tool| tool["name"] != "all_airports")
            };
            within(Duration::from_secs(60), "as in the database", is_back).await;
            let is_unknown = async || status(node, &forgotten).await == StatusCode::UNAUTHORIZED;
            within(Duration::from_secs(60), "as in the database", is_unknown).await;
            let counted = fail_overs(node).await;
            assert!(counted.is_some_and(|count| count >= 1.0), "{counted:?}");
        }
        is_over.store(true, Relaxed);
    };
    tokio::join!(calling, failing_over);
    assert!(calls.load(Relaxed) > 20);

    // The same number is another version now.
    let again = TOOL.replace("Lists all airports.", "Lists every airport.");
    let (code, published) = submit(&two, &(sample::CONTRACT.to_owned() + &again)).await;
    assert_eq!(
        (code, &published["version"], &published["everywhere"]),
        (200, &lost["version"], &json!(true)),
        "{published}"
    );
    // A start finds the primary, whichever of the two it is.
    let three = join_at(&url, &one.admin);
    assert_eq!(status(&three, &revoked).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&three, &kept).await, StatusCode::OK);
    assert_refuses(&three, &left).await;
    rights.assert_ended(&three, &standby).await;
}

#[tokio::test]
async fn a_standby_alone_is_refused_at_a_start() {
    let primary = Postgres::start();
    let standby = primary.start_standby();
    let (code, _, err) = house(&standby.url()).run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("it is a standby"),
        "{code}: {err}"
    );
}
