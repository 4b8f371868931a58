//! Decides whose call of a plugin or another server may run now, by turns and by waits after failures.

mod backoff;
mod turns;

pub use backoff::{Attempt, BackedOff, Backoff, End};
pub use turns::{Overloaded, Turn, Turns, WAIT};
