//! Files under a named root that the operator granted.

#[cfg(target_arch = "wasm32")]
use crate::bindings::calls::{files as imported, parts};
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::{files as imported, parts};
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::files::{self as imported, parts};

use crate::error::Result;

/// The most one [`read`] answers.
pub const READ_MAX: u32 = 1 << 20;

/// `version` changes whenever the content does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Another text after every change of the content.
    pub version: String,
    /// The size in bytes.
    pub size: u64,
}

/// Some of the files under a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Paths below the root, in their order.
    pub paths: Vec<String>,
    /// The cursor of the next listing; `None` after the last one.
    pub next: Option<String>,
}

/// Returns the version and the size of a file.
pub fn stat(root: &str, path: &str) -> Result<Info> {
    imported::stat(root, path)
}

/// Reads at most [`READ_MAX`] bytes from `offset` on; fewer at the end of the file, none after it.
pub fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
    imported::read(root, path, offset, length)
}

/// Replaces the whole file at once: readers see the old or the new one. With `if_version`, returns `conflict` if the file has
/// changed. Returns the new version.
pub fn replace(root: &str, path: &str, if_version: Option<&str>, content: &[u8]) -> Result<String> {
    imported::replace(root, path, if_version, content)
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset where the bytes begin.
    pub at: u64,
    /// The number of bytes.
    pub length: u32,
}

/// Bytes that replace others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The offset of the change.
    pub at: u64,
    /// The number of bytes that are replaced.
    pub length: u64,
    /// The bytes that take their place.
    pub content: Vec<u8>,
}

/// The most that one [`read_parts`] answers.
pub const PARTS_MAX: usize = 4 << 20;

/// Reads each part, in the order asked. A part is shorter where the file ends. All together are at most [`PARTS_MAX`]
/// bytes.
pub fn read_parts(root: &str, path: &str, parts: &[Part]) -> Result<Vec<Vec<u8>>> {
    parts::read(root, path, parts)
}

/// Replaces a file like [`replace`], with its own bytes except for the edits, which are in order and do not overlap.
/// This is for files that are too large to be in memory.
pub fn replace_parts(root: &str, path: &str, if_version: &str, edits: &[Edit]) -> Result<String> {
    parts::replace(root, path, if_version, edits)
}

/// Lists the files under a prefix.
pub fn list(root: &str, prefix: &str, cursor: Option<&str>) -> Result<Listing> {
    imported::list(root, prefix, cursor)
}
