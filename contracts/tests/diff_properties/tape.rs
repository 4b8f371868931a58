//! Random choices from one list of numbers, so that a failing case shrinks as a whole.

use proptest::prelude::*;

pub(crate) fn tapes() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 150..600)
}

/// Reads a list of numbers; past its end everything is the first choice.
pub(crate) struct Tape<'t> {
    numbers: std::slice::Iter<'t, u16>,
}

impl<'t> Tape<'t> {
    pub(crate) fn new(numbers: &'t [u16]) -> Self {
        Self {
            numbers: numbers.iter(),
        }
    }

    /// Returns one of `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.numbers
            .next()
            .map_or(0, |number| usize::from(*number) % count)
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    pub(crate) fn pick<'p, T>(&mut self, all: &'p [T]) -> &'p T {
        &all[self.below(all.len())]
    }
}
