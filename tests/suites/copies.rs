//! Copies of the audit trail in a bucket.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_tests::{
    Gateway, House, Modern, http, read_output,
    upstream::{BucketServer, free_port},
};

use crate::sample;

const CREDENTIALS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "weir"),
    ("AWS_SECRET_ACCESS_KEY", "weir-secret"),
];

/// Returns the value of a metric without labels.
async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let answer = http().get(format!("{}/metrics", gateway.base)).send().await;
    let text = answer.expect("an answer").text().await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_else(|| panic!("{name} is not there: {text}"));
    value.trim().parse().expect("a number")
}

async fn wait_until(gateway: &Gateway, name: &str, holds: impl Fn(f64) -> bool) {
    let started = Instant::now();
    loop {
        let value = metric(gateway, name).await;
        if holds(value) {
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(40),
            "{name} is {value}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn look_up(gateway: &Gateway) -> String {
    let client = Modern::new(gateway.url());
    let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    let receipt = &found["_meta"]["dev.weir/receipt"];
    receipt
        .as_str()
        .unwrap_or_else(|| panic!("{found}"))
        .to_owned()
}

fn run(house: &House, words: &[&str]) -> (i32, String, String) {
    let mut command = house.weir(words);
    command.envs(CREDENTIALS);
    read_output(command.output().expect("weir starts"))
}

#[tokio::test]
async fn what_a_bucket_missed_while_it_was_away_is_copied_when_it_is_back() {
    let port = free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let house = sample::house()
        .config(&format!(
            "[audit]\ncopies = \"s3://trail/weir\"\ncopies_endpoint = \"{endpoint}\"\ncopies_region = \"eu-central-1\""
        ));
    let mut command = house.weir(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.envs(CREDENTIALS);
    let gateway = Gateway::start(command);
    let mut receipts = vec![look_up(&gateway).await];
    wait_until(&gateway, "weir_audit_copy_failures_total", |count| {
        count > 0.0
    })
    .await;
    assert!(metric(&gateway, "weir_audit_unshipped_bytes").await > 0.0);

    let _bucket = BucketServer::start(port);
    let made = http().put(format!("{endpoint}/trail")).send().await;
    assert!(made.expect("an answer").status().is_success());
    wait_until(&gateway, "weir_audit_unshipped_bytes", |bytes| bytes == 0.0).await;
    receipts.push(look_up(&gateway).await);
    let collect = [
        "audit",
        "collect",
        "--to",
        "all",
        "--from",
        "s3://trail/weir",
    ];
    let verify = |house: &House| {
        let words = [
            &["audit", "verify", "--folder", "all"],
            &receipts.iter().map(String::as_str).collect::<Vec<_>>()[..],
        ]
        .concat();
        run(house, &words)
    };
    let started = Instant::now();
    loop {
        let (code, _, err) = run(&house, &collect);
        assert_eq!(code, 0, "{err}");
        let (code, out, err) = verify(&house);
        if code == 0 {
            assert!(out.contains("the trail is whole"), "{out}{err}");
            break;
        }
        // The last call is in the next round.
        assert!(out.contains("MISSING"), "{out}{err}");
        assert!(started.elapsed() < Duration::from_secs(40), "{out}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (code, _, err) = run(
        &house,
        &[
            "audit",
            "collect",
            "--to",
            "none",
            "--from",
            "s3://other/weir",
        ],
    );
    assert!(code == 1 && err.contains("s3://other"), "{code}: {err}");
}

#[tokio::test]
async fn what_is_no_place_for_copies_is_refused_at_the_start() {
    let house = sample::house().config("[audit]\ncopies = \"trail\"");
    let (code, _, err) = run(&house, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("s3://BUCKET/PREFIX"),
        "{code}: {err}"
    );
}
