//! Checks that what was answered is recorded, and that every later change of the record is found.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Admin, Gateway, House, Modern, SERVE, Stdio, client, gateway::read_output, until, within,
};

use crate::{
    sample,
    upstreams::sandbox::{as_nobody, give_away},
};

fn receipt(result: &Value) -> String {
    result["_meta"]["dev.weir/receipt"]
        .as_str()
        .unwrap_or_else(|| panic!("no receipt: {result}"))
        .to_owned()
}

pub(crate) fn records(house: &House, words: &[&str]) -> Vec<Value> {
    let out = house.succeed(&[&["audit", "query", "--json"], words].concat());
    out.lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"))
        .collect()
}

/// The arguments of a call are enough to find it in the trail.
#[tokio::test]
async fn the_digest_of_arguments_finds_their_calls() {
    let house = sample::house();
    let gateway = house.serve();
    Modern::new(gateway.url())
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    let out = house.succeed(&["audit", "digest", r#"{"iata": "OSL"}"#]);
    let digests: Vec<&str> = out
        .lines()
        .filter_map(|line| line.split("  ").next())
        .collect();
    let [given, shortest] = digests[..] else {
        panic!("as given, and without spaces: {out}")
    };
    assert_eq!(records(&house, &["--text", shortest]).len(), 1, "{out}");
    assert_eq!(records(&house, &["--text", given]).len(), 0, "{out}");
    // Without its spaces a number is still what the client wrote.
    let number = json!({"min_elevation_ft": 600.0});
    Modern::new(gateway.url())
        .call("list_airports", number)
        .await;
    let (_, out, err) = house.run(&["audit", "digest", r#"{ "min_elevation_ft": 600.0 }"#]);
    let shortest = out.lines().nth(1).and_then(|line| line.split("  ").next());
    let shortest = shortest.unwrap_or_else(|| panic!("{out}{err}"));
    assert_eq!(records(&house, &["--text", shortest]).len(), 1, "{out}");
    let (code, out, err) = house.run(&["audit", "digest", "{iata"]);
    assert!(code == 1 && out.is_empty() && err.contains("JSON"), "{err}");
}

/// A full disk at the output's place does not mean that the trail is broken.
#[tokio::test]
async fn an_output_that_cannot_be_written_is_no_fault_of_the_trail() {
    let house = sample::house();
    let gateway = house.serve();
    Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    for words in [
        &["audit", "query"][..],
        &["audit", "tail"],
        &["audit", "export"],
        &["audit", "verify"],
        &["audit", "digest", "{}"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = house.weir(words);
        command.stdout(full.expect("a device that is full"));
        let (code, _, err) = read_output(command.output().expect("weir starts"));
        let expected = "weir: the output cannot be written: No space left on device (os error 28)";
        assert_eq!((code, &*err), (1, expected), "{words:?}");
    }
}

#[test]
fn a_cause_is_named_once() {
    let house = sample::house();
    let (code, _, err) = house.run(&["audit", "verify", "--folder", "weir.toml"]);
    assert_eq!(
        (code, err.matches("Not a directory").count()),
        (1, 1),
        "{err}"
    );
}

/// A trail that is read in part, or not at all, would look like one with fewer records.
#[test]
fn records_that_cannot_be_read_are_no_short_answer() {
    let house = sample::house();
    drop(house.serve());
    drop(house.serve());
    for verb in ["query", "tail", "export"] {
        let (code, out, err) = house.run(&["audit", verb, "--folder", "data"]);
        assert!(
            code == 1 && out.is_empty() && err.contains("there is no trail in it"),
            "{verb}: {code} {out} {err}"
        );
    }
    let trail = house.path().join("state/audit");
    let mut chains = std::fs::read_dir(&trail).expect("a trail");
    let chain = chains.next().expect("a chain").expect("an entry").path();
    give_away(house.path());
    let set_mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&chain, mode).expect("a folder of the test");
    };
    set_mode(0o000);
    for verb in ["query", "tail", "export"] {
        let output = as_nobody(&house.weir(&["audit", verb])).output();
        let (code, out, err) = read_output(output.expect("weir starts"));
        assert!(
            code == 0 && !out.is_empty() && err.contains("its records are left out"),
            "{verb}: {code} {out} {err}"
        );
    }
    set_mode(0o755);
}

/// A copy of a state, as a backup or another machine's disk is, may not be written by who looks something up in it.
#[tokio::test]
async fn the_digest_is_found_in_a_state_that_cannot_be_written() {
    let house = sample::house();
    let gateway = house.serve();
    Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    let words = ["audit", "digest", r#"{"iata":"OSL"}"#];
    let (_, expected, _) = house.run(&words);
    let folder = house.path().join("copy");
    std::fs::create_dir(&folder).expect("a folder");
    let log = "weir.db-wal";
    for name in ["weir.db", log] {
        let from = house.path().join("state").join(name);
        std::fs::copy(from, folder.join(name)).expect("a file of the state");
    }
    // It is a copy of a state in use: not all of it is in its main file.
    assert!(folder.join(log).metadata().expect("a log").len() > 0);
    give_away(house.path());
    let runs = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(&folder, runs).expect("a folder of the test");
    let mut digest = house.weir(&words);
    digest.args(["--state", "copy"]);
    let output = as_nobody(&digest).output().expect("weir starts");
    let (code, out, err) = read_output(output);
    assert_eq!((code, out), (0, expected), "{err}");
    drop(gateway);
}

#[tokio::test]
async fn every_call_leaves_its_record_and_the_caller_a_receipt() {
    let contract = sample::CONTRACT.replace(
        "    fields:\n      - { name: country, type: dropdown, choices: [NO, SE, IS] }",
        "    audit: { clear: [country] }\n    fields:\n      - { name: country, type: dropdown, choices: [NO, SE, IS] }",
    );
    assert_ne!(contract, sample::CONTRACT);
    let house = sample::house().file("contracts/airports.yaml", contract);
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--tenant", "acme"]);
    let ann = Modern::with_key(gateway.url(), &key);
    let found = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
    let bad = ann
        .call("lookup_airport", json!({"iata": "top-secret-value"}))
        .await;
    let listed = ann.call("list_airports", json!({"country": "NO"})).await;
    let made = ann
        .call(
            "create_airport",
            json!({"iata": "BOO", "name": "Bodo Airport", "country": "NO"}),
        )
        .await;
    ann.ask(
        "tools/call",
        json!({"name": "no_such_tool", "arguments": {}}),
    )
    .await;
    client::send(Modern::new(gateway.url()).request("tools/list", json!({}))).await;
    let wrong = format!(
        "{}{}",
        &key[..key.len() - 4],
        if key.ends_with("0000") {
            "1111"
        } else {
            "0000"
        }
    );
    client::send(Modern::with_key(gateway.url(), &wrong).request("tools/list", json!({}))).await;

    let calls = records(&house, &["--kind", "call"]);
    let recorded: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| {
            (
                call["tool"].as_str().unwrap_or("-"),
                call["outcome"].as_str().unwrap_or("?"),
            )
        })
        .collect();
    let expected = [
        ("lookup_airport", "ok"),
        ("lookup_airport", "refused"),
        ("list_airports", "ok"),
        ("create_airport", "ok"),
        ("-", "refused"),
    ];
    assert_eq!(recorded, expected);
    assert_eq!(calls[1]["code"], "invalid_arguments");
    for call in &calls {
        let id = call["call_id"].as_str().expect("an id");
        gateway.wait_for_log(id);
        let log = gateway.log();
        let line = log
            .lines()
            .find(|line| line.contains(id) && line.contains("weir::call"))
            .expect("a line a call");
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(
            (&line["outcome"], &line["code"]),
            (&call["outcome"], &call["code"]),
            "the log says what the trail says"
        );
    }
    assert_eq!(calls[1]["call_id"], bad["structuredContent"]["call_id"]);
    assert_eq!(
        (calls[0]["agent"].as_str(), calls[0]["tenant"].as_str()),
        (Some("ann"), Some("acme"))
    );
    assert_eq!(calls[0]["contract"], "airports@1.0.0");
    let (loads, ran) = (records(&house, &["--kind", "admin"]), |at: usize| {
        calls[at]["plugin"].as_str()
    });
    let sheet = loads
        .iter()
        .find(|act| act["subject"] == "sheet")
        .expect("a load");
    assert_eq!(
        (ran(0), ran(1), ran(3)),
        (
            sheet["fingerprint"].as_str(),
            None,
            sheet["fingerprint"].as_str()
        )
    );
    assert_eq!(calls[2]["clear"], json!({"country": "NO"}));
    assert!(calls[0].get("clear").is_none());
    let intents = records(&house, &["--kind", "intent"]);
    assert_eq!(intents.len(), 1, "a write is announced: {intents:?}");
    assert_eq!(intents[0]["call_id"], calls[3]["call_id"]);
    let refused = records(&house, &["--kind", "refused"]);
    assert_eq!(
        (&refused[0]["what"], &refused[0]["address"]),
        (&json!("identity"), &json!("127.0.0.1"))
    );
    let id = key.split('_').nth(1).expect("a public id");
    assert_eq!(
        (&refused[0].get("key_id"), &refused[1]["key_id"]),
        (&None, &json!(id)),
        "{refused:?}"
    );
    let acts: Vec<Value> = records(&house, &["--kind", "admin"])
        .into_iter()
        .map(|act| act["act"].clone())
        .collect();
    assert_eq!(
        acts,
        [
            "plugin_load",
            "plugin_load",
            "plugin_load",
            "publish",
            "key_create"
        ]
    );

    let receipts = [
        receipt(&found),
        receipt(&bad),
        receipt(&listed),
        receipt(&made),
    ];
    let words: Vec<&str> = ["audit", "verify"]
        .into_iter()
        .chain(receipts.iter().map(String::as_str))
        .collect();
    house.succeed(&words);
    let trail = std::fs::read_dir(house.path().join("state/audit")).expect("a trail");
    let text: String = trail
        .flatten()
        .flat_map(|chain| segments(&chain.path()))
        .map(|file| read(&file))
        .collect();
    for secret in [key.as_str(), "top-secret-value", "Bodo"] {
        assert!(!text.contains(secret), "`{secret}` is in the trail");
    }
}

/// `weir audit verify` finds each way to change a trail.
#[tokio::test]
async fn verify_finds_every_change() {
    let house = sample::house();
    let (gateway, client) = house.serve_client();
    let mut last = String::new();
    for _ in 0..8 {
        last = receipt(&client.call("lookup_airport", json!({"iata": "OSL"})).await);
    }
    drop(gateway);
    let trail = house.path().join("state/audit");
    let chain = std::fs::read_dir(&trail)
        .expect("a trail")
        .flatten()
        .map(|chain| chain.path())
        .find(|path| path.is_dir());
    let chain = chain.expect("a chain");
    let segment = segments(&chain).pop().expect("a segment");
    let whole = read(&segment);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let swapped = [&lines[..2], &[lines[3], lines[2]], &lines[4..]]
        .concat()
        .concat();
    let cases = [
        (
            "a changed byte",
            whole.replacen("lookup_airport", "lookup_airporT", 1),
        ),
        (
            "a deleted line",
            [&lines[..3], &lines[4..]].concat().concat(),
        ),
        ("two swapped lines", swapped),
        ("a cut tail", lines[..lines.len() - 2].concat()),
    ];
    assert_eq!(house.run(&["audit", "verify", &last]).0, 0);
    for (what, text) in cases {
        std::fs::write(&segment, text).expect("written");
        let (code, out, _) = house.run(&["audit", "verify", &last]);
        assert_eq!(code, 1, "{what} is not found: {out}");
    }
    std::fs::write(&segment, &whole).expect("written");
    assert_eq!(house.run(&["audit", "verify", &last]).0, 0);
    let other = sample::house();
    let gateway = other.serve();
    Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "ARN"}))
        .await;
    drop(gateway);
    let foreign = std::fs::read_dir(other.path().join("state/audit"))
        .expect("a trail")
        .flatten()
        .map(|chain| chain.path());
    let foreign = segments(
        &foreign
            .into_iter()
            .find(|path| path.is_dir())
            .expect("a chain"),
    )
    .pop()
    .expect("a segment");
    std::fs::copy(foreign, &segment).expect("replaced");
    assert_eq!(
        house.run(&["audit", "verify", &last]).0,
        1,
        "a replaced file is not found"
    );
}

/// The gateway is killed under load, again and again, with two more processes on the same state: every call that a
/// client got an answer to is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_answered_before_a_kill_is_recorded() {
    const KILLS: usize = 50;
    let house = sample::house();
    let mut receipts = Vec::new();
    let (mut first, mut second) = (Stdio::start(&house), Stdio::start(&house));
    for round in 0..KILLS {
        let mut gateway = house.serve();
        let url = gateway.url();
        let (stop, answered) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (client, stop, answered) =
                    (Modern::new(url.clone()), stop.clone(), answered.clone());
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let params =
                            json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
                        let Ok(response) = client.request("tools/call", params).send().await else {
                            break;
                        };
                        let Ok(text) = response.text().await else {
                            break;
                        };
                        let Ok(answer) = serde_json::from_str::<Value>(&text) else {
                            break;
                        };
                        assert!(answer["error"].is_null(), "{answer}");
                        got.push(receipt(&answer["result"]));
                        answered.store(true, Ordering::Relaxed);
                    }
                    got
                })
            })
            .collect();
        if round % 10 == 0 {
            for process in [&mut first, &mut second] {
                let params = json!({"name": "lookup_airport", "arguments": {"iata": "KEF"}});
                let answer = process.ask_modern("tools/call", params).await;
                assert!(answer["error"].is_null(), "{answer}");
                receipts.push(receipt(&answer["result"]));
            }
        }
        within(Duration::from_secs(60), "a call is answered", async || {
            answered.load(Ordering::Relaxed)
        })
        .await;
        tokio::time::sleep(Duration::from_millis((round as u64 * 7) % 60)).await;
        gateway.kill();
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            receipts.extend(caller.await.expect("a caller ends"));
        }
    }
    drop((first, second));
    assert!(receipts.len() > KILLS, "{} answers", receipts.len());
    // The newest records of each chain vouch for the earlier ones, to which they are chained.
    let mut newest = std::collections::BTreeMap::new();
    for receipt in &receipts {
        let mut parts = receipt.split(':');
        let (chain, seq) = (
            parts.next().expect("a chain"),
            parts.next().and_then(|seq| seq.parse::<u64>().ok()),
        );
        let kept = newest.entry(chain.to_owned()).or_insert((seq, receipt));
        if seq > kept.0 {
            *kept = (seq, receipt);
        }
    }
    let words: Vec<&str> = ["audit", "verify"]
        .into_iter()
        .chain(newest.values().map(|(_, receipt)| receipt.as_str()))
        .collect();
    house.succeed(&words);
    let gateway = house.serve();
    Modern::new(gateway.url())
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(
        house.json(&["contracts", "show", "airports"])["versions"]
            .as_array()
            .map_or(0, Vec::len),
        1
    );
}

/// Without its trail a gateway answers nothing and runs no write; it resumes on its own when the trail is back.
#[tokio::test]
async fn what_cannot_be_recorded_is_not_answered() {
    let house = sample::house();
    let (gateway, client) = house.serve_client();
    let lookup = async || client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(lookup().await["isError"], false);
    let (trail, away) = (
        house.path().join("state/audit"),
        house.path().join("state/away"),
    );
    std::fs::rename(&trail, &away).expect("moved");
    std::fs::write(&trail, "in the way").expect("written");
    // A trail that was moved away is noticed soon, not at once.
    within(Duration::from_secs(20), "the call fails", async || {
        lookup().await["isError"] == true
    })
    .await;
    for (tool, arguments) in [
        ("lookup_airport", json!({"iata": "OSL"})),
        (
            "create_airport",
            json!({"iata": "BOO", "name": "Bodo Airport", "country": "NO"}),
        ),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(
            result["structuredContent"]["code"], "unavailable",
            "{result}"
        );
        assert!(result["_meta"]["dev.weir/receipt"].is_null());
    }
    let line = "the audit trail cannot be written";
    // A thread writes the log.
    until("the line is there", async || gateway.log().contains(line)).await;
    let log = gateway.log();
    assert_eq!(log.matches(line).count(), 1, "the log says so once: {log}");
    std::fs::remove_file(&trail).expect("removed");
    std::fs::rename(&away, &trail).expect("moved back");
    within(Duration::from_secs(20), "the call runs again", async || {
        lookup().await["isError"] == false
    })
    .await;
    let unwritten = client.call("lookup_airport", json!({"iata": "BOO"})).await;
    assert_eq!(
        unwritten["structuredContent"]["code"], "not_found",
        "the write that was not recorded was not run"
    );
    drop(gateway);
    assert_eq!(house.run(&["audit", "verify"]).0, 0);
}

/// Returns whether this machine lets processes have their own mounts; prints a note if it does not.
fn may_mount() -> bool {
    let tried = std::process::Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output();
    let is_allowed = tried.is_ok_and(|tried| tried.status.success());
    if !is_allowed {
        eprintln!("not tested: this machine makes no mounts (`unshare --mount`)");
    }
    is_allowed
}

/// Serves with a state folder on a disk of 16 MB, which exists only in the gateway's own mounts and disappears with the
/// process. Returns the folder as this process reaches it.
fn serve_on_small_disk(house: &House) -> (Gateway, PathBuf) {
    let weir = house.weir(&SERVE);
    let mut mounted = std::process::Command::new("unshare");
    let script = "mount -t tmpfs -o size=16m tmpfs state && exec \"$@\"";
    mounted
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(weir.get_program())
        .args(weir.get_args())
        .current_dir(house.path());
    for (name, _) in weir.get_envs() {
        mounted.env_remove(name);
    }
    let gateway = Gateway::start(mounted);
    let root = format!("/proc/{}/root", gateway.process_id());
    let state = house.path().strip_prefix("/").expect("a whole path");
    let state = Path::new(&root).join(state).join("state");
    (gateway, state)
}

/// Returns how often each message of a warning or an error is in the log.
fn complaints(gateway: &Gateway) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in gateway.log().lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["level"] == "ERROR" || line["level"] == "WARN" {
            *counts.entry(line["message"].to_string()).or_default() += 1;
        }
    }
    counts
}

/// While a disk is full nothing is answered, and each failure is logged once, however often it is retried; the gateway resumes
/// on its own when there is room.
#[tokio::test]
async fn a_full_disk_is_one_line_in_the_log() {
    if !may_mount() {
        return;
    }
    let house = sample::house().config("[limits]\nagent_quota_day = 1000000\nagent_rate = \"off\"");
    let (gateway, state) = serve_on_small_disk(&house);
    let read = |name: &str| std::fs::read_to_string(state.join(name)).expect("it is written");
    let admin = Admin {
        url: read("admin.url"),
        key: read("admin.token"),
    };
    let (status, made) = admin.ask("POST", "/v1/keys", r#"{"agent":"ann"}"#).await;
    assert_eq!(status, 201, "{made}");
    let client = Modern::with_key(gateway.url(), made["key"].as_str().expect("a key"));
    let look_up = || client.call("lookup_airport", json!({"iata": "OSL"}));
    assert_eq!(look_up().await["isError"], false);
    let before = complaints(&gateway);

    let filler = state.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file");
    let full = loop {
        if let Err(full) = file.write_all(&[0; 4096]) {
            break full;
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    // What the last block of the trail has room for is still recorded.
    let started = Instant::now();
    while look_up().await["isError"] == false {
        let took = started.elapsed();
        assert!(
            took < Duration::from_secs(20),
            "it is answered on a full disk"
        );
    }
    // Uses of keys are written after five seconds, quotas and profiles sooner.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(12) {
        let refused = look_up().await;
        assert_eq!(
            refused["structuredContent"]["code"], "unavailable",
            "{refused}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut counted = complaints(&gateway);
    counted.retain(|message, _| !before.contains_key(message));
    let trail = "\"the audit trail cannot be written: calls are refused until it can\"";
    assert_eq!(counted.get(trail), Some(&1), "{counted:?}");
    let often: Vec<_> = counted.iter().filter(|(_, count)| **count > 1).collect();
    assert!(often.is_empty(), "{often:?}");

    drop(file);
    std::fs::remove_file(&filler).expect("removed");
    until("it goes on", async || look_up().await["isError"] == false).await;
    let weir = house.weir(&["audit", "verify"]);
    let verified = std::process::Command::new("nsenter")
        .args(["--mount", "--target", &gateway.process_id().to_string()])
        .arg(weir.get_program())
        .args(weir.get_args())
        .output();
    let (code, out, err) = read_output(verified.expect("nsenter starts"));
    assert_eq!(code, 0, "{out}{err}");
}

/// A limit on the size of files does not end the process: what cannot be recorded is refused, and what was recorded is intact.
#[tokio::test]
async fn a_file_limit_is_outlived() {
    let house = sample::house();
    let weir = house.weir(&SERVE);
    let mut limited = std::process::Command::new("sh");
    // The limit is in blocks of 512 bytes: the database of the state fits, and a thousand records.
    limited
        .args(["-c", "ulimit -f 1900; exec \"$@\"", "sh"])
        .arg(weir.get_program())
        .args(weir.get_args());
    limited.current_dir(house.path());
    let gateway = Gateway::start(limited);
    let client = Modern::new(gateway.url());
    let mut answered = 0;
    loop {
        let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        if result["isError"] == true {
            assert_eq!(
                result["structuredContent"]["code"], "unavailable",
                "{result}"
            );
            break;
        }
        answered += 1;
        assert!(answered < 5000, "the limit is never reached");
    }
    assert_eq!(
        client.list().await.0.len(),
        3,
        "what needs no record is answered"
    );
    drop(gateway);
    assert_eq!(records(&house, &["--kind", "call"]).len(), answered);
}

/// Strangers without a key do not hide one that guesses keys of admins.
#[tokio::test]
async fn a_flood_of_refusals_hides_no_other_refusal() {
    let house = sample::house();
    let mut gateway = house.serve();
    house.key(&["--agent", "ann"]);
    let admin = Admin {
        key: String::new(),
        ..Admin::of(&house)
    };
    let asked = (0..300).map(|_| {
        Modern::new(gateway.url())
            .request("tools/list", json!({}))
            .send()
    });
    let answers = futures::future::join_all(asked).await;
    assert!(
        answers
            .into_iter()
            .all(|answer| answer.is_ok_and(|answer| answer.status() == 401))
    );
    let guess = Admin {
        key: "weiradm_guessed".to_owned(),
        ..admin
    };
    assert_eq!(guess.ask("GET", "/v1/keys", "").await.0, 401);
    gateway.signal("TERM");
    gateway.left();
    let refused = records(&house, &["--kind", "refused", "--limit", "1000"]);
    let is_guess = |record: &&Value| {
        record["place"] == "/v1/keys" && record["count"] == 1 && record["address"] == "127.0.0.1"
    };
    assert_eq!(refused.iter().filter(is_guess).count(), 1, "{refused:?}");
    let strangers = refused
        .iter()
        .filter(|record| record["reason"] == "missing");
    assert_eq!(
        strangers
            .clone()
            .filter_map(|record| record["count"].as_u64())
            .sum::<u64>(),
        300,
        "{refused:?}"
    );
    assert!(strangers.clone().count() < 150, "they do not fill the disk");
    let many = strangers
        .filter(|record| record["count"].as_u64() > Some(1))
        .collect::<Vec<_>>();
    assert!(
        many.iter()
            .all(|record| record.get("address").is_none() && record.get("place").is_none()),
        "{many:?}"
    );
}

fn segments(chain: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(chain)
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a segment is text")
}
