//! Reports the progress of a call, and returns whether its caller still waits.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::progress as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::progress as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::progress as imported;

/// Reports progress. `done` must grow with every report of a call; `total` is given if it is known.
pub fn report(done: f64, total: Option<f64>, message: &str) {
    imported::report(done, total, message);
}

/// Returns `true` once the caller is gone: stop early.
pub fn cancelled() -> bool {
    imported::cancelled()
}
