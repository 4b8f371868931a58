//! Randomness, which a component does not have on its own.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::random as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::random as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::random as imported;

/// Returns this many random bytes.
pub fn bytes(length: u32) -> Vec<u8> {
    imported::bytes(length)
}
