//! Decides whose call of a plugin or another server may run now, by turns and by waits after failures, and runs long work behind
//! that of others.

mod apart;
mod backoff;
mod turns;

pub use apart::{ApartTurn, LARGE_BYTES, give_way, long_work_turns, run_blocking, run_soon};
pub use backoff::{AttemptOutcome, BackedOff, CallAttempt, FailureBackoff};
pub use turns::{ConcurrencyLimiter, ConcurrencyPermit, OverloadError, WAIT};
