//! Bytes that look random and are the same in every run (xorshift).

use std::cell::Cell;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! { static STATE: Cell<u64> = const { Cell::new(SEED) }; }

/// Answers [`crate::random::bytes`].
pub fn bytes(length: u32) -> Vec<u8> {
    (0..length)
        .map(|_| {
            let mut state = STATE.get();
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            STATE.set(state);
            (state >> 32) as u8
        })
        .collect()
}

pub(super) fn reset() {
    STATE.set(SEED);
}
