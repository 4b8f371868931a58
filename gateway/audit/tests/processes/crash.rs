//! Processes that are killed while they write, and several of them in one folder.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use weir_audit::AuditReceipt;

use crate::{append, check_whole, child, open};

fn start(folder: &Path) -> Child {
    Command::new(child())
        .arg("write")
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a process after so many answers, and returns what it had answered: its complete lines.
fn answered(mut child: Child, after: usize) -> Vec<AuditReceipt> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut text = Vec::new();
    for _ in 0..after {
        lines.read_until(b'\n', &mut text).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lines.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let complete = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    complete
        .lines()
        .filter_map(|line| line.strip_prefix("receipt "))
        .map(|line| line.parse().unwrap())
        .collect()
}

/// Answered calls were recorded: there are fifty kills, each beside a process that lives on.
#[test]
fn nothing_answered_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let living = open(folder.path());
    let mut receipts = Vec::new();
    for round in 0..50 {
        // The kill comes anywhere from within the start of the process to well into its work.
        receipts.extend(answered(start(folder.path()), round));
        receipts.extend(append(&living, 3));
    }
    assert!(receipts.len() > 1000, "{} answers", receipts.len());
    check_whole(folder.path(), &receipts);
    // The next process repairs what is torn; then nothing is left to warn of.
    drop(open(folder.path()));
    let report = check_whole(folder.path(), &receipts);
    assert_eq!(report.warnings_count, 0, "{report}");
}

#[test]
fn two_processes_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (start(folder.path()), start(folder.path()));
    let two = thread::spawn(move || answered(two, 300));
    let one = answered(one, 200);
    let two = two.join().unwrap();
    assert!(!one.is_empty() && !two.is_empty());
    assert_ne!(one[0].chain, two[0].chain);
    check_whole(folder.path(), &[one, two].concat());
}

/// Verification beside processes that write, rotate and begin chains finds nothing that is not there.
#[test]
fn a_living_trail_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let child = start(folder.path());
    let reader = thread::spawn(move || answered(child, 600));
    while !reader.is_finished() {
        check_whole(folder.path(), &append(&open(folder.path()), 3));
    }
    check_whole(folder.path(), &reader.join().unwrap());
}
