//! The trail from outside: real files, real processes, real kills.

mod crash;
mod full_disk;
mod retention;
mod tamper;
mod writing;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_audit::{About, Call, Event, Fsync, Outcome, Problem, Receipt, Report, Settings, Trail, verify};

/// Keeps everything, rotates only when asked.
pub fn settings() -> Settings {
    Settings {
        process: "test".into(),
        fsync: Fsync::Interval(Duration::from_millis(20)),
        segment_max_bytes: u64::MAX,
        segment_max_age: Duration::from_secs(3600),
        keep_age: None,
        keep_bytes: None,
    }
}

pub fn open(folder: &Path) -> Trail {
    Trail::open(folder, settings()).unwrap()
}

pub fn call(id: &str) -> Event<'_> {
    let about = About {
        call_id: id,
        agent: "ada",
        tenant: "north",
        tool: Some("airports_find"),
        contract: Some("airports@1.2.0"),
        arguments_digest: Some("4be1b9db9b6ad0c7e59f0a4bb2f7e8f2c7ac0a0b6f21c5d7a0d1c6f0f1d3a5b7"),
        transport: "http",
        protocol: Some("2025-11-25"),
        ..About::default()
    };
    Event::Call(Call { about, outcome: Outcome::Ok, code: None, ms: 1.234 })
}

pub fn append(trail: &Trail, count: usize) -> Vec<Receipt> {
    (0..count).map(|index| trail.append(&call(&format!("c_{index:016x}"))).unwrap()).collect()
}

/// The problems found, in order.
#[track_caller]
pub fn problems(folder: &Path, receipts: &[Receipt]) -> Vec<Problem> {
    let report = verify(folder, receipts).unwrap();
    assert_eq!(report.is_ok(), report.findings.is_empty(), "{report}");
    report.findings.iter().map(|finding| finding.what).collect()
}

/// Everything is there, and every receipt is honoured.
#[track_caller]
pub fn check_whole(folder: &Path, receipts: &[Receipt]) -> Report {
    let report = verify(folder, receipts).unwrap();
    assert!(report.is_ok(), "{report}");
    report
}

pub fn segment(folder: &Path, receipt: &Receipt, number: u32) -> PathBuf {
    folder.join(receipt.chain.as_str()).join(format!("{number:06}.jsonl"))
}

pub fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

pub fn write_lines(path: &Path, lines: &[String]) {
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}
