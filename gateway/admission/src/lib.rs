//! Whose call may run now, of a plugin or of another server: turns, and waits after failures.

mod backoff;
mod turns;

pub use backoff::{Attempt, BackedOff, Backoff, End};
pub use turns::{Overloaded, Turn, Turns, WAIT};
