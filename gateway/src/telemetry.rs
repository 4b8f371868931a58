//! Logs, metrics and the audit trail.

mod audit;
mod logs;
pub mod metrics;

pub use audit::{Audit, Unrecorded};
pub use logs::{Call, call, start};
pub use metrics::Metrics;

/// Unguessable and short enough to read out: `c_` and 16 hex digits.
pub fn call_id() -> String {
    let mut bytes = [0; 8];
    // Without randomness a call still has an identifier, only a guessable one; it is no secret.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos() as u64)
            .to_be_bytes();
    }
    format!("c_{:016x}", u64::from_be_bytes(bytes))
}
