//! Any bytes as a segment of the audit trail, and any change of a right one: no change stays unseen.
#![no_main]

#[path = "../parts/edits.rs"]
mod edits;

use std::{fs, path::PathBuf, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use weir_audit::{AuditReceipt, ReceiptStatus, verify};

const RIGHT: &[u8] = include_bytes!("../parts/segment.jsonl");
/// The chain that the segment is of, as its first record says.
const CHAIN: &str = "20261125T041744Z-17247-c55e6a99";

struct Trail {
    folder: tempfile::TempDir,
    segment: PathBuf,
    /// The receipts of every record of the right segment.
    receipts: Vec<AuditReceipt>,
}

fn trail() -> &'static Trail {
    static TRAIL: OnceLock<Trail> = OnceLock::new();
    TRAIL.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let chain = folder.path().join(CHAIN);
        fs::create_dir(&chain).expect("a folder");
        let segment = chain.join("000001.jsonl");
        fs::write(&segment, RIGHT).expect("written");
        let report = verify(folder.path(), &[]).expect("readable");
        assert!(report.is_ok(), "{report}");
        let records = weir_audit::read(folder.path(), Default::default()).expect("readable");
        let receipts = records
            .map(|record| record.expect("a record").receipt())
            .collect();
        Trail {
            folder,
            segment,
            receipts,
        }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Trail {
        folder,
        segment,
        receipts,
    } = trail();
    let changed = match bytes.split_first() {
        Some((0, rest)) => rest.to_vec(),
        Some((_, changes)) => edits::edited(RIGHT, changes),
        None => return,
    };
    fs::write(segment, &changed).expect("written");
    let report = verify(folder.path(), receipts).expect("a folder that can be read");
    let is_whole = report.is_ok()
        && report
            .receipts
            .iter()
            .all(|check| check.status == ReceiptStatus::Present);
    // A line that a crash cut short is no record yet: it is reported as a warning.
    let is_told = report.warnings_count > 0;
    assert!(!is_whole || is_told || changed == RIGHT, "{report}");
    if let Ok(records) = weir_audit::read(folder.path(), Default::default()) {
        records.for_each(drop);
    }
});
