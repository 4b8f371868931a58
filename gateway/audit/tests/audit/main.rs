//! The trail from outside, on real files. Nothing here starts a process: between its fork and its exec, the child would
//! hold the lock of a chain that another test has just ended.

mod collected;
mod proof;
mod reading;
mod retention;
#[path = "../steps/mod.rs"]
mod steps;
mod tamper;
mod writing;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use weir_audit::{AuditReceipt, TrailProblem, verify};

use steps::{append, call, check_whole, open, settings};

/// Returns the problems found, in order.
#[track_caller]
fn problems(folder: &Path, receipts: &[AuditReceipt]) -> Vec<TrailProblem> {
    let report = verify(folder, receipts).unwrap();
    assert_eq!(report.is_ok(), report.findings.is_empty(), "{report}");
    report.findings.iter().map(|finding| finding.what).collect()
}

/// Waits until it holds, which the thread beside a trail brings about.
#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(5));
    }
}

fn segment(folder: &Path, receipt: &AuditReceipt, number: u32) -> PathBuf {
    folder
        .join(receipt.chain.as_str())
        .join(format!("{number:06}.jsonl"))
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn write_lines(path: &Path, lines: &[String]) {
    fs::write(
        path,
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
}
