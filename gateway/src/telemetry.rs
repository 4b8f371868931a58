//! Logs, metrics, traces and the audit trail.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

mod audit;
pub mod events;
mod logs;
pub mod metrics;
pub mod traces;

pub use audit::{AuditRecorder, AuditUnavailable, heads_of_others, read_heads};
pub use logs::{
    LoggedCall, call, check_variable, is_filter, lines_lost, note_written, set_filter, start,
};
pub use metrics::GatewayMetrics;
pub use traces::TraceSender;

/// Sends and writes whatever is still pending.
pub fn end() {
    traces::end();
    logs::end();
}

/// Returns an id that is unguessable and short enough to read out: `c_` and 16 hex digits. It is a keyed hash of a
/// counter, which needs no system call.
pub fn call_id() -> Arc<str> {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut text = *b"c_0000000000000000";
    let id = KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed));
    hex::encode_to_slice(id.to_be_bytes(), &mut text[2..]).expect("16 digits for 8 bytes");
    std::str::from_utf8(&text).expect("ASCII").into()
}
