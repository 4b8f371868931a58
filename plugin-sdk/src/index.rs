//! Ordered indexes that the gateway keeps on disk, so that a large source is not read whole for every call.
//!
//! Indexes are scratch: bounded, dropped when space is short, and bound to one version of the source. An adapter that
//! does not find an index reads its source as if there were none, and asks for one with [`later`].

#[cfg(target_arch = "wasm32")]
use crate::bindings::calls::index as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::index as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::index as imported;

use crate::error::Result;

/// The most bytes a key has.
pub const KEY_MAX: usize = 256;
/// The most entries that one [`range`] answers.
pub const RANGE_MAX: u32 = 4_096;

/// The name of an index. All three parts are the adapter's own words; indexes of one source continue together when the source
/// is extended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The source.
    pub source: String,
    /// The version of the source.
    pub version: String,
    /// The column of the source, and how its values are read.
    pub column: String,
}

/// The place of one record in its source and in the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key, of at most [`KEY_MAX`] bytes, ordered bytewise.
    pub key: Vec<u8>,
    /// The offset where the record begins.
    pub at: u64,
    /// The number of bytes that the record takes.
    pub length: u32,
}

/// Entries with `from` ≤ key, and key < `to` if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub from: Vec<u8>,
    /// The first key after the range; `None` if the range has no end.
    pub to: Option<Vec<u8>>,
    /// The greatest key first. Entries of one key come in the order of `at` either way.
    pub descending: bool,
    /// The last entry of the page before.
    pub after: Option<Entry>,
    /// The largest number of entries, at most [`RANGE_MAX`].
    pub limit: u32,
}

/// Returns how many bytes of the source the index covers; `None` while there is no index.
pub fn find(name: &Name) -> Option<u64> {
    imported::find(name)
}

/// Returns the entries of a range.
pub fn range(name: &Name, range: &Range) -> Result<Vec<Entry>> {
    imported::range(name, range)
}

/// Asks for work that takes longer than a call may: once this call is answered, [`crate::Adapter::later`] is called with
/// the same text in the background, and again until it reports that it is done.
pub fn later(work: &str) {
    imported::later(work);
}

/// Begins an index, or continues one, and returns how many bytes of the source it covers so far. Call it only in work that
/// was requested with [`later`].
pub fn begin(name: &Name) -> Result<u64> {
    imported::begin(name)
}

/// Adds the entries of the source's bytes `from` to `to`. Answers `conflict` where another call has done these.
pub fn add(name: &Name, entries: &[Entry], from: u64, to: u64) -> Result<()> {
    imported::add(name, entries, from, to)
}

/// Sorts the added entries: from here on the index is found.
pub fn finish(name: &Name) -> Result<()> {
    imported::finish(name)
}

/// Turns the indexes of an old version into those of a new one that begins with all they cover.
pub fn extend(source: &str, old: &str, new: &str) -> Result<()> {
    imported::extend(source, old, new)
}
