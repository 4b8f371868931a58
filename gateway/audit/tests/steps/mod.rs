//! Holds what the tests of both binaries do with a trail.

use std::{path::Path, time::Duration};

use weir_audit::{
    AuditEvent, AuditOutcome, AuditReceipt, AuditTrail, AuditedCall, CallDetails, FsyncPolicy,
    TrailReport, TrailSettings, verify,
};

/// Keeps everything, rotates only when asked.
pub(crate) fn settings() -> TrailSettings {
    TrailSettings {
        process: "test".into(),
        fsync: FsyncPolicy::Interval(Duration::from_millis(20)),
        segment_max_bytes: u64::MAX,
        segment_max_age: Duration::from_secs(3600),
        keep_age: None,
        keep_bytes: None,
        waits_for_copies: false,
        heads_elsewhere: Vec::new(),
    }
}

pub(crate) fn open(folder: &Path) -> AuditTrail {
    AuditTrail::open(folder, settings()).unwrap()
}

pub(crate) fn call(id: &str) -> AuditEvent<'_> {
    let about = CallDetails {
        call_id: id,
        agent: "ada",
        tenant: "north",
        tool: Some("airports_find"),
        contract: Some("airports@1.2.0"),
        arguments_digest: Some("4be1b9db9b6ad0c7e59f0a4bb2f7e8f2c7ac0a0b6f21c5d7a0d1c6f0f1d3a5b7"),
        transport: "http",
        protocol: Some("2025-11-25"),
        ..CallDetails::default()
    };
    AuditEvent::Call(AuditedCall {
        about,
        outcome: AuditOutcome::Ok,
        code: None,
        reason: None,
        ms: 1.234,
    })
}

pub(crate) fn append(trail: &AuditTrail, count: usize) -> Vec<AuditReceipt> {
    (0..count)
        .map(|index| trail.append(&call(&format!("c_{index:016x}"))).unwrap())
        .collect()
}

/// Checks that everything is there, and every receipt is honoured.
#[track_caller]
pub(crate) fn check_whole(folder: &Path, receipts: &[AuditReceipt]) -> TrailReport {
    let report = verify(folder, receipts).unwrap();
    assert!(report.is_ok(), "{report}");
    report
}
