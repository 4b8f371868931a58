//! A clock that moves only when a test moves it.

use std::cell::Cell;

thread_local! { static NOW_MS: Cell<u64> = const { Cell::new(1_700_000_000_000) }; }

/// Sets the clock to this many milliseconds since 1970.
pub fn set_ms(now_ms: u64) {
    NOW_MS.set(now_ms);
}

/// Returns the time for [`crate::clock::now_ms`].
pub fn now_ms() -> u64 {
    NOW_MS.get()
}

/// Returns the time for [`crate::clock::monotonic_ns`].
pub fn monotonic_ns() -> u64 {
    NOW_MS.get().wrapping_mul(1_000_000)
}

pub(super) fn reset() {
    NOW_MS.set(1_700_000_000_000);
}
