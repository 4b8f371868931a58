//! Processes that the tests of this crate start: `child write FOLDER` to be killed, `child fill FOLDER` on a full disk.

use std::{
    env,
    error::Error,
    io::{Write as _, stdout},
    path::Path,
    thread,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use weir_audit::{
    AuditError, AuditEvent, AuditReceipt, AuditTrail, FsyncPolicy, TrailEntry, TrailSettings,
};

#[path = "../tests/steps/mod.rs"]
mod steps;

use steps::{append, call, check_whole, open, settings};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [verb, folder] if verb == "write" => write(Path::new(folder)),
        [verb, folder] if verb == "fill" => fill(Path::new(folder)),
        _ => Err("usage: child write|fill FOLDER".into()),
    }
}

/// Writes as fast as it can, until it is killed. A receipt is printed once it is given.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    let small = TrailSettings {
        segment_max_bytes: 32 << 10,
        fsync: FsyncPolicy::Off,
        ..settings()
    };
    let trail = AuditTrail::open(folder, small)?;
    let clear = json!({ "note": "x".repeat(900) }).as_object().cloned();
    let on_and_on = || {
        loop {
            let AuditEvent::Call(mut event) = call("c_00") else {
                unreachable!("a call")
            };
            event.about.clear = clear.as_ref();
            let receipt = trail
                .append(&AuditEvent::Call(event))
                .expect("the folder can be written");
            let line = format!("receipt {receipt}\n");
            stdout().write_all(line.as_bytes()).expect("someone reads");
        }
    };
    thread::scope(|scope| {
        scope.spawn(on_and_on);
        scope.spawn(on_and_on);
    });
    Ok(())
}

/// Writes into a full file. The signal of the limit is ignored here, so that a write is short and the next one fails.
fn fill(folder: &Path) -> Result<(), Box<dyn Error>> {
    let trail = open(folder);
    limit_files_to(Some(20_000))?;
    let mut receipts: Vec<AuditReceipt> = Vec::new();
    let error = loop {
        match trail.append(&call("c_00")) {
            Ok(receipt) => receipts.push(receipt),
            Err(error) => break error,
        }
        assert!(receipts.len() < 1000, "the limit is never met");
    };
    assert!(matches!(error, AuditError::Write(_)), "{error}");
    let health = trail.health();
    assert!(
        health.failing && health.failures == 1 && health.last_error.is_some(),
        "{health:?}"
    );
    assert!(
        trail.append(&call("c_01")).is_err(),
        "there is still no room"
    );
    let report = check_whole(folder, &receipts);
    assert_eq!(
        report.warnings_count, 0,
        "half a line was taken back: {report}"
    );

    // Room for some of the records that are written together: each gets its own result.
    limit_files_to(Some(22_000))?;
    let entries: Vec<_> = (0..20)
        .map(|_| trail.enter(&call("c_02")).expect("it has a place"))
        .collect();
    let outcomes: Vec<_> = entries.into_iter().map(TrailEntry::written).collect();
    let fitted = outcomes
        .iter()
        .take_while(|outcome| outcome.is_ok())
        .count();
    assert!(
        (1..20).contains(&fitted) && outcomes[fitted..].iter().all(Result::is_err),
        "{outcomes:?}"
    );
    receipts.extend(outcomes.into_iter().filter_map(Result::ok));
    check_whole(folder, &receipts);

    limit_files_to(None)?;
    receipts.extend(append(&trail, 10));
    assert!(!trail.health().failing, "there is room again");
    assert_eq!(trail.health().failures, 3);
    drop(trail);
    check_whole(folder, &receipts);
    Ok(())
}

/// Limits the length of each file of this process, over all its threads.
fn limit_files_to(bytes: Option<u64>) -> Result<(), rustix::io::Errno> {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes.or(maximum),
            maximum,
        },
    )
}
