//! Gateways of several versions over one state, and machines that may not join.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{Modern, Postgres, Stdio};

use super::{house, make_node, nodes, status, submit};
use crate::sample;

/// A contract that programs before format 5 cannot read.
fn counting(words: &str) -> String {
    let tool = format!(
        "  - tool: count_airports\n    description: {words}\n    verb: count\n    collection: airports\n    fields:\n      \
         - {{ name: country, type: dropdown, choices: [NO, SE, IS] }}\n"
    );
    sample::CONTRACT.to_owned() + &tool
}

/// Lets a program that reads the first two formats be a node, or ends its lease.
fn older_node(server: &Postgres, is_live: bool) {
    let lease = if is_live { "9000000000000" } else { "0" };
    server.sql(&format!(
        "INSERT INTO nodes (id, name, version, formats, configuration, started_ms, lease_ms, stale_ms, seen) \
         VALUES ('old', 'n9', '0.0.9', '1,2', 'c', 0, {lease}, 0, 9000000000000) ON CONFLICT (id) DO UPDATE SET lease_ms = excluded.lease_ms"
    ));
}

fn assert_names_the_node(what: &str, (status, refused): &(u16, Value)) {
    let detail = refused["detail"].as_str().unwrap_or_default();
    let says = ["format 5", "`n9`", "0.0.9", "up to 2", "upgrade that node"];
    assert!(
        *status == 409 && says.iter().all(|part| detail.contains(part)),
        "{what}, {status}: {refused}"
    );
}

#[tokio::test]
async fn nothing_goes_live_that_a_node_of_an_earlier_version_cannot_read() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    let (code, published) = submit(&one, &counting("Counts airports.")).await;
    assert_eq!(
        (code, &published["version"]),
        (200, &json!("1.1.0")),
        "{published}"
    );
    let back = async |to: &str| {
        let path = "/v1/contracts/airports/rollback";
        let body = |fingerprint: &str| json!({"to": to, "fingerprint": fingerprint}).to_string();
        let (_, refused) = one.admin.ask("POST", path, body("0")).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        let fingerprint = detail.rsplit(' ').next().unwrap_or_default();
        one.admin.ask("POST", path, body(fingerprint)).await
    };
    assert_eq!(back("1.0.0").await.0, 200);
    let words = "Counts the airports of a country.";
    let held = json!({"source": counting(words), "hold": true}).to_string();
    let (code, held) = two.admin.ask("POST", "/v1/contracts", held).await;
    assert_eq!(code, 202, "{held}");

    older_node(&server, true);
    let submitted = submit(&two, &counting("Counts all airports.")).await;
    assert_names_the_node("submitting", &submitted);
    assert_names_the_node("rolling back", &back("1.1.0").await);
    let path = format!(
        "/v1/drafts/{}/publish",
        held["draft"].as_str().expect("an id")
    );
    let approval = json!({"fingerprint": held["fingerprint"]}).to_string();
    let approved = one.admin.ask("POST", &path, approval.clone()).await;
    assert_names_the_node("approving", &approved);
    let other = sample::CONTRACT.replace("Adds an airport.", "Adds one airport.");
    assert_eq!(submit(&one, &other).await.0, 200, "it reads this one");

    older_node(&server, false);
    let (code, published) = submit(&one, &counting(words)).await;
    assert_eq!(code, 200, "{published}");
}

/// A node of an earlier version can read no admin at all if it does not know the role of one.
#[tokio::test]
async fn nobody_becomes_an_approver_while_a_node_does_not_know_the_role() {
    let server = Postgres::start();
    let (one, _two) = nodes(&server);
    let make = async |name: &str, role: &str, approves: bool| {
        let new = json!({"name": name, "role": role, "approves": approves});
        one.admin.ask("POST", "/v1/admins", new.to_string()).await
    };
    older_node(&server, true);
    let (status, refused) = make("eve", "approver", false).await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    let says = ["`n9`", "0.0.9", "the role approver", "upgrade that node"];
    assert!(
        status == 409 && says.iter().all(|part| detail.contains(part)),
        "{status}: {refused}"
    );
    let (status, made) = make("bob", "viewer", true).await;
    assert_eq!(status, 201, "it is a viewer there: {made}");
    older_node(&server, false);
    let (status, made) = make("eve", "approver", false).await;
    assert_eq!(status, 201, "{made}");
}

/// An upgrade may have to be rolled back: the tables of a later version have additions, and nothing that is read here is gone.
#[tokio::test]
async fn a_gateway_starts_and_serves_on_the_tables_of_the_next_version() {
    let server = Postgres::start();
    let (one, two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    server.sql(
        "CREATE TABLE of_tomorrow (id TEXT); \
         ALTER TABLE keys ADD COLUMN of_tomorrow TEXT; ALTER TABLE nodes ADD COLUMN of_tomorrow TEXT NOT NULL DEFAULT ''; \
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (999, 'of tomorrow', true, '', 0)",
    );
    drop(two);
    let again = super::join(&server, &one.admin);
    assert_eq!(super::country(&again, None).await, "NO");
    let body = json!({"agent": "ann"}).to_string();
    let (code, made) = again.admin.ask("POST", "/v1/keys", body).await;
    assert_eq!(code, 201, "{made}");
    let key = made["key"].as_str().expect("a key");
    assert_eq!(status(&one, key).await, StatusCode::OK);
    // Rows that this program does not know would be left behind.
    let (code, _, err) = one.house.run(&["state", "migrate", "--to", "copied"]);
    assert!(code == 1 && err.contains("999"), "{code}: {err}");
}

#[tokio::test]
async fn a_machine_whose_clock_is_off_does_not_join() {
    let server = Postgres::start();
    server.sql(
        "CREATE SCHEMA other_clock; CREATE FUNCTION other_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql \
         AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 second' * 3 $$",
    );
    let options = "options=-csearch_path%3Dother_clock%2Cpg_catalog";
    let url = format!("{}?{options}", server.url());
    let (code, _, err) = house(&url).run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("ms behind that of the database") && err.contains("NTP"),
        "{code}: {err}"
    );
    server.sql(
        "CREATE OR REPLACE FUNCTION other_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql \
         AS $$ SELECT pg_catalog.clock_timestamp() - interval '1 second' $$",
    );
    drop(house(&url).serve());
}

/// The clock of a machine may be set after it joined: times that others read remain those of the database.
#[tokio::test]
async fn a_node_whose_clock_is_set_goes_on_with_the_time_of_the_database() {
    let server = Postgres::start();
    let set = |hours: u32| {
        server.sql(&format!(
            "CREATE OR REPLACE FUNCTION other_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql \
             AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' * {hours} $$"
        ));
    };
    server.sql("CREATE SCHEMA other_clock");
    set(0);
    let options = "options=-csearch_path%3Dother_clock%2Cpg_catalog";
    let node = make_node(house(&format!("{}?{options}", server.url())));
    let verb = "    verb: create\n";
    let waiting = sample::CONTRACT.replace(verb, &format!("{verb}    approval: required\n"));
    let (code, published) = submit(&node, &waiting).await;
    assert_eq!(code, 200, "{published}");
    let minutes_left = async |iata: &str| {
        let client = Modern::new(node.gateway.url());
        let airport = json!({ "iata": iata, "name": "Another", "country": "NO" });
        let waits = client.call("create_airport", airport).await;
        let expires_ms = waits["structuredContent"]["plan"]["expires_ms"].as_u64();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.expect("a clock").as_secs();
        (expires_ms.expect("a plan") / 1000 - now_s) / 60
    };
    assert!(minutes_left("AAA").await <= 15);
    set(1);
    node.gateway
        .wait_for_log("the clock of this machine is another one");
    assert!(minutes_left("BBB").await > 60, "it is that of the machine");
    set(0);
    node.gateway
        .wait_for_log("the clock of this machine agrees");
    assert!(minutes_left("CCC").await <= 15);
}

/// A process on stdio serves from its own memory like any other: others wait for it.
#[tokio::test]
async fn a_process_on_stdio_is_a_node_while_it_runs() {
    let server = Postgres::start();
    let (one, _two) = nodes(&server);
    submit(&one, sample::CONTRACT).await;
    let there = house(&server.url());
    let mut stdio = Stdio::start(&there);
    let listed = stdio.ask_modern("tools/list", json!({})).await;
    assert!(listed.to_string().contains("lookup_airport"), "{listed}");
    let live = async || {
        let (_, list) = one.admin.ask("GET", "/v1/nodes", "").await;
        let nodes = list["nodes"].as_array().expect("a list").clone();
        nodes.iter().filter(|node| node["live"] == true).count()
    };
    assert_eq!(live().await, 3);
    let (code, published) = submit(&one, &counting("Counts airports.")).await;
    assert_eq!(
        (code, &published["everywhere"]),
        (200, &json!(true)),
        "{published}"
    );
    let listed = stdio.ask_modern("tools/list", json!({})).await;
    assert!(listed.to_string().contains("count_airports"), "{listed}");
    assert_eq!(stdio.close().await.code(), Some(0));
    assert_eq!(live().await, 2, "it says that it ends");
}
