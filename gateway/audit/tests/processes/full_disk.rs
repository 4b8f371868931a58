//! A disk that is full: nothing half-written stays, nothing is answered, and writing goes on when there is room.

use std::{path::Path, process::Command};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_audit::{AuditError, Receipt};

use crate::{append, call, check_whole, open};

const FOLDER: &str = "WEIR_AUDIT_TEST_FOLDER";

/// The longest file of this process. At the limit a write is short, and the next one fails.
fn limit_files_to(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

/// Runs in a process of its own, since the limit holds for all threads.
#[test]
#[ignore = "started by the test below, where the signal of the limit is ignored"]
fn at_the_limit() {
    let folder = std::env::var(FOLDER).expect("the folder is given");
    let folder = Path::new(&folder);
    let trail = open(folder);
    limit_files_to(Some(20_000));
    let mut receipts: Vec<Receipt> = Vec::new();
    let error = loop {
        match trail.append(&call("c_00")) {
            Ok(receipt) => receipts.push(receipt),
            Err(error) => break error,
        }
        assert!(receipts.len() < 1000);
    };
    assert!(matches!(error, AuditError::Write(_)), "{error}");
    let health = trail.health();
    assert!(health.failing && health.failures == 1 && health.last_error.is_some(), "{health:?}");
    assert!(trail.append(&call("c_01")).is_err());
    let report = check_whole(folder, &receipts);
    assert_eq!(report.warnings_count, 0, "half a line was taken back: {report}");

    limit_files_to(None);
    receipts.extend(append(&trail, 10));
    assert!(!trail.health().failing);
    assert_eq!(trail.health().failures, 2);
    drop(trail);
    check_whole(folder, &receipts);
}

#[test]
fn a_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" full_disk::at_the_limit --exact --ignored"])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .status()
        .unwrap();
    assert!(status.success());
}
