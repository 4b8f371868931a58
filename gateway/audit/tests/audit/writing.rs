//! Appending: numbering under concurrency, what a record holds, segments, health, and the key of arguments.

use std::{fs, os::unix::fs::PermissionsExt as _, thread, time::Duration};

use serde_json::{Map, Value, json};
use weir_audit::{
    AdminAct, ArgumentsKey, AuditEvent, AuditOutcome, AuditReceipt, AuditTrail, AuditedCall,
    AuditedChange, AuditedIntent, AuditedRefusal, CallDetails, FsyncPolicy, RefusedWhat,
    TrailSettings,
};

use crate::{append, call, check_whole, lines, open, segment, settings, wait_until};

#[test]
fn eight_threads_leave_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let small = TrailSettings {
        segment_max_bytes: 64 << 10,
        ..settings()
    };
    let trail = AuditTrail::open(folder.path(), small).unwrap();
    let mut receipts: Vec<AuditReceipt> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| append(&trail, 500)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    receipts.sort();
    let seqs: Vec<u64> = receipts.iter().map(|receipt| receipt.seq).collect();
    assert!(
        seqs.is_sorted_by(|a, b| a < b),
        "every record has a number of its own"
    );
    assert_eq!(trail.health().records, trail.head().seq);
    drop(trail);
    let report = check_whole(folder.path(), &receipts);
    // Opening and end of the chain, and the first record of every further segment.
    assert_eq!(report.records, 4000 + 2 + report.segments - 1);
    assert_eq!(report.heads[0].seq, report.records);
}

/// Records that were entered together are in the chain in that order, in whatever order they are awaited; an unawaited one is
/// written too.
#[test]
fn entries_share_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let opened = trail.health().records;
    let entries: Vec<_> = (0..3)
        .map(|_| trail.enter(&call("c_00")).unwrap())
        .collect();
    let [first, forgotten, last] = <[_; 3]>::try_from(entries).ok().unwrap();
    let last = last.written().unwrap();
    assert_eq!(trail.head(), last, "all of them are written");
    assert_eq!(trail.health().records, opened + 3);
    let first = first.written().unwrap();
    assert_eq!(
        (first.seq, trail.health().records),
        (last.seq - 2, opened + 3)
    );
    drop(forgotten);
    drop(trail.enter(&call("c_01")).unwrap());
    assert_eq!(
        trail.health().records,
        opened + 4,
        "a dropped entry is recorded all the same"
    );
    drop(trail);
    assert_eq!(
        check_whole(folder.path(), &[first, last]).records,
        opened + 5
    );
}

#[test]
fn a_full_segment_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let small = TrailSettings {
        segment_max_bytes: 10_000,
        ..settings()
    };
    let trail = AuditTrail::open(folder.path(), small).unwrap();
    let mut receipts = Vec::new();
    while trail.health().segment < 3 {
        receipts.extend(append(&trail, 10));
        thread::sleep(Duration::from_millis(1));
    }
    drop(trail);
    let report = check_whole(folder.path(), &receipts);
    assert!(report.segments >= 3);
    let second = lines(&segment(folder.path(), &receipts[0], 2));
    let opening: Value = serde_json::from_str(&second[0]).unwrap();
    assert_eq!(
        (&opening["act"], &opening["segment"]),
        (&json!("segment"), &json!(2))
    );
}

/// A later segment alone still shows that the earlier ones and the other chains were there.
#[test]
fn an_old_segment_is_followed_when_there_is_something_to_say() {
    let folder = tempfile::tempdir().unwrap();
    let quick = TrailSettings {
        fsync: FsyncPolicy::Off,
        segment_max_age: Duration::from_millis(10),
        ..settings()
    };
    let trail = AuditTrail::open(folder.path(), quick.clone()).unwrap();
    // A trail that was opened later looks at its age twice, and has something to say.
    let elsewhere = tempfile::tempdir().unwrap();
    let busy = AuditTrail::open(elsewhere.path(), quick).unwrap();
    wait_until(|| {
        append(&busy, 1);
        busy.health().segment > 2
    });
    assert_eq!(trail.health().segment, 1, "an idle trail does not grow");
    let other = append(&open(folder.path()), 1);
    wait_until(|| trail.health().segment > 1);
    let second = lines(&segment(folder.path(), &trail.head(), 2));
    let opening: Value = serde_json::from_str(&second[0]).unwrap();
    assert_eq!(opening["heads"][0]["chain"], other[0].chain.as_str());
    check_whole(folder.path(), &other);
}

/// Each head is named once: a thousand short processes do not make each other's records long.
#[test]
fn heads_are_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = append(&open(folder.path()), 1);
    let second = append(&open(folder.path()), 1);
    let third = append(&open(folder.path()), 1);
    let heads = |receipt: &AuditReceipt| -> Vec<String> {
        let opening: Value =
            serde_json::from_str(&lines(&segment(folder.path(), receipt, 1))[0]).unwrap();
        let heads = opening["heads"].as_array().cloned().unwrap_or_default();
        heads
            .iter()
            .map(|head| head["chain"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(heads(&first[0]), Vec::<String>::new());
    assert_eq!(heads(&second[0]), [first[0].chain.as_str()]);
    assert_eq!(heads(&third[0]), [second[0].chain.as_str()]);
}

#[test]
fn records_say_what_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let clear = json!({"iata": "ZRH", "note": "x".repeat(5000)});
    let clear = clear.as_object().expect("an object");
    let about = CallDetails {
        call_id: "c_1",
        agent: "ada",
        tenant: "north",
        transport: "stdio",
        ..CallDetails::default()
    };
    let intent = AuditedIntent {
        about: CallDetails {
            clear: Some(clear),
            ..about.clone()
        },
    };
    let refused = AuditedRefusal {
        what: RefusedWhat::Identity,
        place: Some("/mcp"),
        key_id: Some("k_12"),
        agent: None,
        address: Some("203.0.113.9"),
        reason: Some("revoked"),
        count: 3,
    };
    let admin = AuditedChange {
        act: AdminAct::Publish,
        subject: "airports@1.2.0",
        fingerprint: Some("9f3c"),
        by: "grace",
        detail: None,
    };
    let long = "é\u{1b}".repeat(300);
    let ended = AuditedCall {
        about: CallDetails {
            tool: Some(&long),
            ..about
        },
        outcome: AuditOutcome::Unknown,
        code: Some("timeout"),
        reason: None,
        ms: 0.5,
    };
    for event in [
        AuditEvent::Intent(intent),
        AuditEvent::Refused(refused),
        AuditEvent::Admin(admin),
        AuditEvent::Call(ended),
    ] {
        trail.append(&event).unwrap();
    }
    let path = segment(folder.path(), &trail.head(), 1);
    let records: Vec<Value> = lines(&path)[1..]
        .iter()
        .map(|line| {
            let mut record: Map<String, Value> = serde_json::from_str(line).unwrap();
            for chained in ["seq", "time", "prev", "hash"] {
                record.remove(chained).unwrap();
            }
            Value::Object(record)
        })
        .collect();
    assert_eq!(
        records[0],
        json!({
            "kind": "intent", "call_id": "c_1", "agent": "ada", "tenant": "north",
            "clear": {"iata": "ZRH", "note": "… (5002 bytes)"}, "transport": "stdio",
        })
    );
    assert_eq!(
        records[1],
        json!({
            "kind": "refused", "what": "identity", "place": "/mcp", "key_id": "k_12", "address": "203.0.113.9",
            "reason": "revoked", "count": 3,
        })
    );
    assert_eq!(
        records[2],
        json!({
            "kind": "admin", "act": "publish", "subject": "airports@1.2.0", "fingerprint": "9f3c", "by": "grace",
        })
    );
    assert_eq!(
        records[3],
        json!({
            "kind": "call", "call_id": "c_1", "agent": "ada", "tenant": "north",
            "tool": format!("{}…", "é\u{1b}".repeat(128)), "transport": "stdio",
            "outcome": "unknown", "code": "timeout", "ms": 0.5,
        })
    );
    assert!(
        !fs::read(&path).unwrap().contains(&0x1b),
        "control characters are escaped"
    );
    check_whole(folder.path(), &[]);
}

#[test]
fn a_receipt_survives_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let receipt = open(folder.path()).append(&call("c_1")).unwrap();
    let text = receipt.to_string();
    assert!(text.len() < 120, "{text}");
    assert_eq!(text.parse(), Ok(receipt));
    for wrong in [
        "",
        "a:1:b",
        "../x:1:00",
        &text[..text.len() - 1],
        &text.to_uppercase(),
        &format!("{text}0"),
    ] {
        assert!(wrong.parse::<AuditReceipt>().is_err(), "{wrong}");
    }
}

#[test]
fn only_the_owner_reads_the_trail() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let trail = open(&audit);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = segment(&audit, &trail.head(), 1);
    assert_eq!(
        (mode(&audit), mode(path.parent().unwrap()), mode(&path)),
        (0o700, 0o700, 0o600)
    );
}

#[test]
fn each_record_is_synced_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let trail = AuditTrail::open(
        folder.path(),
        TrailSettings {
            fsync: FsyncPolicy::Each,
            ..settings()
        },
    )
    .unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| append(&trail, 20));
        }
    });
    assert_eq!(trail.health().unsynced, 0);
}

#[test]
fn records_are_synced_within_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    for _ in 0..3 {
        append(&trail, 100);
        wait_until(|| trail.health().unsynced == 0);
    }
}

/// A trail whose files are gone records nothing, although the system takes every write.
#[test]
fn a_trail_whose_folder_is_gone_fails_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let trail = open(&audit);
    let before = append(&trail, 5);
    let away = folder.path().join("away");
    fs::rename(&audit, &away).unwrap();
    wait_until(|| trail.health().failing);
    assert!(trail.append(&call("c_lost")).is_err());
    assert!(trail.health().last_error.is_some());
    fs::rename(&away, &audit).unwrap();
    let after = append(&trail, 5);
    assert!(!trail.health().failing);
    drop(trail);
    check_whole(&audit, &[before, after].concat());
}

/// A process that refuses its calls is sent none, so none of them can show that the trail is back.
#[test]
fn a_trail_that_fails_goes_on_without_another_record() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let trail = open(&audit);
    let before = append(&trail, 5);
    assert!(!trail.is_refusing());
    let away = folder.path().join("away");
    fs::rename(&audit, &away).unwrap();
    wait_until(|| trail.is_refusing());
    fs::rename(&away, &audit).unwrap();
    wait_until(|| !trail.is_refusing());
    assert!(!trail.health().failing);
    let after = append(&trail, 5);
    drop(trail);
    check_whole(&audit, &[before, after].concat());
}

#[test]
fn arguments_are_digested_with_a_key_of_the_installation() {
    let (here, there) = (ArgumentsKey::new(&[7; 32]), ArgumentsKey::new(&[8; 32]));
    let digest = here.digest(br#"{"amount":100}"#);
    assert_eq!(
        digest,
        "17e258c9c5d8e4950ad4ba86647e7dd09a849a7ed36e28d7e7498665c04af9d6"
    );
    assert_ne!(here.digest(br#"{"amount":101}"#), digest);
    assert_ne!(there.digest(br#"{"amount":100}"#), digest);
}

/// docs/audit.md explains every act of an admin. The acts are read in the source, where each has a line of its own.
#[test]
fn the_page_names_every_act_of_an_admin() {
    let source = include_str!("../../src/event.rs");
    let page = include_str!("../../../../docs/audit.md");
    let (_, acts) = source.split_once("pub enum AdminAct {").unwrap();
    let (acts, _) = acts.split_once("\n}").unwrap();
    let acts = acts.lines().map(str::trim);
    let acts: Vec<String> = acts
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| snake_case(line.trim_end_matches(',')))
        .collect();
    assert!(acts.contains(&"key_create".to_owned()), "{acts:?}");
    let missing = acts
        .iter()
        .filter(|act| !page.contains(&format!("`{act}`")));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
}

fn snake_case(name: &str) -> String {
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}
