//! Old records go, and what is left verifies.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use weir_audit::{AuditReceipt, AuditTrail, ReceiptStatus, TrailProblem, TrailSettings, verify};

use crate::{append, call, check_whole, open, problems, segment, settings, wait_until};

fn keeping(bytes: u64) -> TrailSettings {
    TrailSettings {
        keep_bytes: Some(bytes),
        ..settings()
    }
}

fn exists(folder: &Path, receipt: &AuditReceipt) -> bool {
    folder.join(receipt.chain.as_str()).exists()
}

/// Checks that every receipt of removed records is known to be removed, by statement.
#[track_caller]
fn check_removed(folder: &Path, receipts: &[AuditReceipt]) {
    let report = check_whole(folder, receipts);
    assert!(
        report
            .receipts
            .iter()
            .all(|check| check.status == ReceiptStatus::Removed),
        "{report}"
    );
}

#[test]
fn the_oldest_ended_chains_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let ended: Vec<Vec<AuditReceipt>> = (0..4).map(|_| append(&open(folder.path()), 10)).collect();
    let living = open(folder.path());
    let kept = append(&living, 10);
    // Room for two of the ended chains and the two living ones.
    let bytes = fs::metadata(segment(folder.path(), &kept[0], 1))
        .unwrap()
        .len();
    let trail = AuditTrail::open(folder.path(), keeping(bytes * 3 + bytes / 2)).unwrap();
    let there: Vec<bool> = ended
        .iter()
        .map(|receipts| exists(folder.path(), &receipts[0]))
        .collect();
    assert_eq!(there, [false, false, true, true]);
    check_removed(
        folder.path(),
        &[ended[0].clone(), ended[1].clone()].concat(),
    );
    check_whole(
        folder.path(),
        &[ended[2].clone(), ended[3].clone(), kept, append(&trail, 1)].concat(),
    );
}

#[test]
fn age_removes_ended_chains_and_own_segments() {
    let folder = tempfile::tempdir().unwrap();
    let ended = append(&open(folder.path()), 10);
    let other = open(folder.path());
    let others = append(&other, 10);
    let trail = AuditTrail::open(
        folder.path(),
        TrailSettings {
            keep_age: Some(Duration::ZERO),
            ..settings()
        },
    )
    .unwrap();
    assert!(!exists(folder.path(), &ended[0]), "removed at start");
    let own = append(&trail, 10);
    trail.rotate().unwrap();
    // The segment before ends with the opening of the next one, so it goes one rotation later.
    trail.rotate().unwrap();
    assert!(!segment(folder.path(), &own[0], 1).exists());
    check_removed(folder.path(), &[ended, own].concat());
    check_whole(folder.path(), &others);
}

/// A chain that had stated removals is removed itself: what it stated is stated anew, as long as it is needed.
#[test]
fn statements_outlive_the_chain_that_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let first = append(&open(folder.path()), 10);
    let witness = open(folder.path());
    append(&witness, 1);
    let everything = TrailSettings {
        keep_age: Some(Duration::ZERO),
        ..settings()
    };
    let remover = append(
        &AuditTrail::open(folder.path(), everything.clone()).unwrap(),
        1,
    );
    assert!(!exists(folder.path(), &first[0]));
    for _ in 0..3 {
        drop(AuditTrail::open(folder.path(), everything.clone()).unwrap());
    }
    assert!(!exists(folder.path(), &remover[0]));
    // The witness still names the first chain's head.
    check_removed(folder.path(), &[first, remover].concat());
}

/// A removal by hand is not a removal by retention.
#[test]
fn only_a_statement_excuses_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let receipts = append(&trail, 10);
    trail.rotate().unwrap();
    append(&trail, 10);
    drop(trail);
    fs::remove_file(segment(folder.path(), &receipts[0], 1)).unwrap();
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Deleted]);
    let report = verify(folder.path(), &receipts).unwrap();
    assert!(
        report
            .receipts
            .iter()
            .all(|check| check.status == ReceiptStatus::Missing),
        "{report}"
    );
}

#[test]
fn many_processes_and_small_keeping_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let living = AuditTrail::open(folder.path(), keeping(20_000)).unwrap();
    for round in 0..60 {
        append(
            &AuditTrail::open(folder.path(), keeping(20_000)).unwrap(),
            5,
        );
        append(&living, 5);
        if round % 7 == 0 {
            living.rotate().unwrap();
        }
        check_whole(folder.path(), &[]);
    }
    let bytes = verify(folder.path(), &[]).unwrap().bytes;
    assert!(bytes < 60_000, "{bytes} bytes are kept");
}

/// A segment stays until it is copied; if there is no room then, recording stops, since records would be lost otherwise.
#[test]
fn what_is_not_copied_is_kept_and_a_full_trail_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = TrailSettings {
        keep_bytes: Some(8_000),
        waits_for_copies: true,
        ..settings()
    };
    let trail = AuditTrail::open(folder.path(), settings).unwrap();
    let first = append(&trail, 8)[0].clone();
    trail.rotate().unwrap();
    assert!(segment(folder.path(), &first, 1).exists());
    let refused = || trail.append(&call("c_more")).is_err();
    wait_until(refused);
    assert!(trail.health().failing);
    trail.rotate().unwrap();
    assert!(segment(folder.path(), &first, 1).exists());
    trail.set_copied(BTreeMap::from([(first.chain.clone(), 2)]));
    wait_until(|| !refused());
    assert!(!segment(folder.path(), &first, 1).exists());
    append(&trail, 1);
    assert!(!trail.health().failing);
    drop(trail);
    check_whole(folder.path(), &[]);
}
