//! Random choices from the bytes of one input: the same interface as the property tests' tape, whose schemas and values
//! are made here too.

/// Reads numbers; past its end everything is the first choice.
pub(crate) struct Tape<'t> {
    numbers: std::slice::ChunksExact<'t, u8>,
}

impl<'t> Tape<'t> {
    pub(crate) fn new(bytes: &'t [u8]) -> Self {
        Self {
            numbers: bytes.chunks_exact(2),
        }
    }

    /// Returns one of `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.numbers.next().map_or(0, |pair| {
            usize::from(u16::from_le_bytes([pair[0], pair[1]])) % count
        })
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    pub(crate) fn pick<'p, T>(&mut self, all: &'p [T]) -> &'p T {
        &all[self.below(all.len())]
    }
}
