//! Copies of the audit trail in a bucket.

mod counted_bucket;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use weir_tests::{
    Gateway, House, Modern, SERVE, answer_to, http, read_output, until,
    upstream::{BucketServer, free_port},
};

use self::counted_bucket::CountedBucket;
use crate::sample;

const CREDENTIALS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "weir"),
    ("AWS_SECRET_ACCESS_KEY", "weir-secret"),
];

/// Returns the value of a metric without labels.
async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let text = gateway.metrics().await;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_else(|| panic!("{name} is not there: {text}"));
    value.trim().parse().expect("a number")
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

fn serve(house: &House) -> Gateway {
    let mut command = house.weir(&SERVE);
    command.envs(CREDENTIALS);
    Gateway::start(command)
}

/// Returns the files in a folder and those in its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn collect(house: &House, to: &str) -> (i32, String) {
    let from = ["--from", "s3://trail/weir"];
    let (code, _, err) = run(
        house,
        &[&["audit", "collect", "--to", to], &from[..]].concat(),
    );
    (code, err)
}

#[tokio::test]
async fn what_a_bucket_missed_while_it_was_away_is_copied_when_it_is_back() {
    let port = free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let house = sample::house()
        .config(&format!(
            "[audit]\ncopies = \"s3://trail/weir\"\ncopies_endpoint = \"{endpoint}\"\ncopies_region = \"eu-central-1\""
        ));
    let gateway = serve(&house);
    let mut receipts = vec![look_up(&gateway).await];
    until("the bucket is missed", async || {
        metric(&gateway, "weir_audit_copy_failures_total").await > 0.0
    })
    .await;
    assert!(metric(&gateway, "weir_audit_unshipped_bytes").await > 0.0);

    let _bucket = BucketServer::start(port);
    let made = answer_to(http().put(format!("{endpoint}/trail"))).await;
    assert!(made.status().is_success());
    until("everything is copied", async || {
        metric(&gateway, "weir_audit_unshipped_bytes").await == 0.0
    })
    .await;
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

/// While segments are copied one after the other, those already copied make room: calls do not wait for a whole round.
#[tokio::test(flavor = "multi_thread")]
async fn each_segment_that_is_copied_makes_room_in_a_full_trail() {
    const KEPT: u64 = 40_000;
    let bucket = CountedBucket::start(0).await;
    let limits = format!("segment_max_bytes = 5000\nkeep_max_bytes = {KEPT}");
    let house = sample::house().config(&bucket.config(&limits));
    let gateway = serve(&house);
    let client = Modern::new(gateway.url());
    let is_answered = async || {
        let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        found["_meta"]["dev.weir/receipt"].is_string()
    };
    let trail = house.path().join("state/audit");
    let bytes = || {
        let files = files(&trail).into_iter();
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum::<u64>()
    };
    while bytes() <= KEPT {
        assert!(is_answered().await);
        // Segments end as they are full.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let started = Instant::now();
    while is_answered().await {
        assert!(started.elapsed() < Duration::from_secs(40), "{}", bytes());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bucket.content.puts.add_permits(6);
    until("there is room again", &is_answered).await;
    assert!(bucket.content.objects.lock().len() <= 6);
    assert!(metric(&gateway, "weir_audit_unshipped_segments").await > 1.0);
}

/// Waits until the bucket has a text.
async fn wait_for_copy(bucket: &CountedBucket, text: &str) {
    until(text, async || bucket.text().contains(text)).await;
}

fn hash(receipt: &str) -> &str {
    let (_, hash) = receipt.rsplit_once(':').expect("a receipt");
    hash
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_bear_their_checksums_and_the_end_of_a_process_copies_the_rest() {
    let bucket = CountedBucket::start(Semaphore::MAX_PERMITS).await;
    let house = sample::house().config(&bucket.config(""));
    let mut gateway = serve(&house);
    wait_for_copy(&bucket, "\"act\":\"open\"").await;
    let receipt = look_up(&gateway).await;
    gateway.signal("TERM");
    assert!(gateway.left().success());
    assert!(bucket.text().contains(hash(&receipt)), "{receipt}");
    for (key, object) in &*bucket.content.objects.lock() {
        let digest = BASE64_STANDARD.encode(Sha256::digest(&object.content));
        assert_eq!(object.checksum.as_ref(), Some(&digest), "{key}");
    }
}

/// Copies three calls of two processes: the first one in a part between others.
async fn copy_three_calls(house: &House, bucket: &CountedBucket) -> Vec<String> {
    let mut receipts = Vec::new();
    let mut gateway = serve(house);
    wait_for_copy(bucket, "\"act\":\"open\"").await;
    receipts.push(look_up(&gateway).await);
    wait_for_copy(bucket, hash(&receipts[0])).await;
    receipts.push(look_up(&gateway).await);
    gateway.signal("TERM");
    assert!(gateway.left().success());
    gateway = serve(house);
    receipts.push(look_up(&gateway).await);
    gateway.signal("TERM");
    assert!(gateway.left().success());
    receipts
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_are_collected_around_gaps_which_are_named() {
    let bucket = CountedBucket::start(Semaphore::MAX_PERMITS).await;
    let house = sample::house().config(&bucket.config(""));
    let receipts = copy_three_calls(&house, &bucket).await;
    let (code, err) = collect(&house, "all");
    assert_eq!(code, 0, "{err}");

    let objects = &bucket.content.objects;
    let kept = objects.lock().clone();
    // The next record names it as the one before.
    let own_hash = format!("\"hash\":\"{}\"", hash(&receipts[0]));
    let is_lost = |text: &str| text.contains(&own_hash) && !text.contains("\"act\":\"open\"");
    // A part whose copying was interrupted by the end of the process has been copied again.
    let mut lost = Vec::new();
    objects.lock().retain(|_, object| {
        let text = String::from_utf8_lossy(&object.content);
        let keep = !is_lost(&text);
        if !keep {
            lost.extend(text.lines().map(|line| -> u64 {
                let record: Value = serde_json::from_str(line).expect("a record");
                record["seq"].as_u64().expect("a number")
            }));
        }
        keep
    });
    let (first, last) = (lost.iter().min(), lost.iter().max());
    let (first, last) = (first.expect("a record"), last.expect("a record"));
    let (code, err) = collect(&house, "some");
    assert!(
        code == 1 && err.contains(&format!("the records {first} to {last} are missing")),
        "{code}: {err}"
    );
    let check = |receipts: &[String]| {
        let receipts = receipts.iter().map(String::as_str);
        let words = ["audit", "verify", "--folder", "some"].into_iter();
        run(&house, &words.chain(receipts).collect::<Vec<_>>())
    };
    let (code, out, err) = check(&receipts[1..]);
    let present = out.matches(": present").count();
    assert_eq!((code, present), (1, 2), "{out}{err}");

    // The other folder has the records, and so has this one once the copy is back.
    let (code, err) = collect(&house, "all");
    assert_eq!(code, 0, "{err}");
    *objects.lock() = kept;
    let (code, err) = collect(&house, "some");
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = check(&receipts);
    assert_eq!(code, 0, "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_were_changed_take_the_place_of_nothing_collected() {
    let bucket = CountedBucket::start(Semaphore::MAX_PERMITS).await;
    let house = sample::house().config(&bucket.config(""));
    copy_three_calls(&house, &bucket).await;
    let (code, err) = collect(&house, "all");
    assert_eq!(code, 0, "{err}");
    let read_all = || {
        let mut files = files(&house.path().join("all"));
        files.sort();
        let read = files
            .into_iter()
            .map(|file| (std::fs::read(&file).ok(), file));
        read.collect::<Vec<_>>()
    };
    let before = read_all();
    for object in bucket.content.objects.lock().values_mut() {
        let text = String::from_utf8_lossy(&object.content);
        object.content = text.replace("lookup_airport", "delete_airport").into();
    }
    let (code, err) = collect(&house, "all");
    assert!(
        code == 1 && err.matches("differs from what was collected").count() == 2,
        "each chain is looked at: {code}: {err}"
    );
    assert!(before == read_all());
}

/// A chain may be longer than the memory.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_collected_is_on_the_disk_before_its_part_is_whole() {
    let bucket = CountedBucket::start(Semaphore::MAX_PERMITS).await;
    let house = sample::house().config(&bucket.config(""));
    let mut gateway = serve(&house);
    look_up(&gateway).await;
    gateway.signal("TERM");
    assert!(gateway.left().success());
    bucket.content.reads.forget_permits(Semaphore::MAX_PERMITS);
    let words = [
        "audit",
        "collect",
        "--to",
        "all",
        "--from",
        "s3://trail/weir",
    ];
    let mut command = house.weir(&words);
    let mut collecting = command.envs(CREDENTIALS).spawn().expect("weir starts");
    let all = house.path().join("all");
    let is_filled = |file: PathBuf| file.metadata().is_ok_and(|it| it.len() > 0);
    until("something is on the disk", async || {
        all.exists() && files(&all).into_iter().any(is_filled)
    })
    .await;
    bucket.content.reads.add_permits(100);
    assert!(collecting.wait().expect("it ends").success());
}
