//! Decides whose call of a plugin or another server may run now, by turns and by waits after failures.

mod backoff;
mod turns;

pub use backoff::{AttemptOutcome, BackedOff, CallAttempt, FailureBackoff};
pub use turns::{ConcurrencyLimiter, ConcurrencyPermit, OverloadError, WAIT};
