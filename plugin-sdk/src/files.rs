//! Files under a named root that the operator granted.

#[cfg(target_arch = "wasm32")]
use crate::bindings::calls::files as imported;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::files as imported;

use crate::error::Result;

/// The most one [`read`] answers.
pub const READ_MAX: u32 = 1 << 20;

/// `version` changes whenever the content does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Another text after every change of the content.
    pub version: String,
    /// In bytes.
    pub size: u64,
}

/// Some of the files under a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Paths below the root, in their order.
    pub paths: Vec<String>,
    /// Where the next listing starts; none: this was the last.
    pub next: Option<String>,
}

/// The version and the size of a file.
pub fn stat(root: &str, path: &str) -> Result<Info> {
    imported::stat(root, path)
}

/// At most [`READ_MAX`] bytes from `offset` on; fewer at the end of the file, none behind it.
pub fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
    imported::read(root, path, offset, length)
}

/// Replaces the whole file at once: readers see the old or the new one. With `if_version`, answers `conflict` when the
/// file is another by now. Returns the new version.
pub fn replace(root: &str, path: &str, if_version: Option<&str>, content: &[u8]) -> Result<String> {
    imported::replace(root, path, if_version, content)
}

/// The files under a prefix.
pub fn list(root: &str, prefix: &str, cursor: Option<&str>) -> Result<Listing> {
    imported::list(root, prefix, cursor)
}
