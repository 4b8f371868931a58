//! The time, which a component does not have on its own.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::clock as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::clock as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::clock as imported;

/// Returns the milliseconds since 1970 in UTC.
pub fn now_ms() -> u64 {
    imported::now_ms()
}

/// Nanoseconds since some moment, never going back.
pub fn monotonic_ns() -> u64 {
    imported::monotonic_ns()
}
