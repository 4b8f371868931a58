//! Randomness, which a component does not have by itself.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::random as imported;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::random as imported;

/// So many random bytes.
pub fn bytes(length: u32) -> Vec<u8> {
    imported::bytes(length)
}
