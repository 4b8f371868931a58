//! The world outside, faked, for an adapter's native unit tests.
//!
//! Everything is thread-local, so tests running side by side do not meet; [`reset`] at the start of a test makes that
//! independent of the test runner's threads too.

pub mod clock;
pub mod events;
pub mod files;
pub mod http;
pub mod index;
pub mod log;
pub mod progress;
pub mod random;
pub mod sql;

/// Forgets what this thread's tests put there.
pub fn reset() {
    clock::reset();
    events::reset();
    files::reset();
    http::reset();
    index::reset();
    log::reset();
    progress::reset();
    random::reset();
    sql::reset();
}
