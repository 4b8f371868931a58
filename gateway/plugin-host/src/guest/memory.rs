//! Bounds the memory of one instance, over all its memories and tables.

use wasmtime::ResourceLimiter;

const TABLE_ELEMENTS_MAX: usize = 40_000;

pub(crate) struct MemoryLimit {
    max: usize,
    used: usize,
    refused: bool,
}

impl MemoryLimit {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            used: 0,
            refused: false,
        }
    }

    /// Returns the bytes of linear memory that the instance holds.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns `true` once the guest was refused more memory: a trap after that most likely comes from it.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.max {
            self.refused = true;
            return Ok(false);
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}
