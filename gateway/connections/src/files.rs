//! Files under one root. No path leaves it, through no link.

use crate::ConnectionError;

pub struct FileRoot {}

pub struct Info {
    /// Changes whenever the content does.
    pub version: String,
    pub size: u64,
}

pub struct Listing {
    pub paths: Vec<String>,
    pub next: Option<String>,
}

impl FileRoot {
    pub fn writable(&self) -> bool {
        false
    }

    pub async fn stat(&self, _path: &str) -> Result<Info, ConnectionError> {
        Err(ConnectionError::new("not_found", "no such file"))
    }

    /// At most 1 MiB.
    pub async fn read(&self, _path: &str, _offset: u64, _length: u32) -> Result<Vec<u8>, ConnectionError> {
        Err(ConnectionError::new("not_found", "no such file"))
    }

    /// Whole and atomic: per-path lock across processes, temporary file, fsync, rename, fsync of the folder.
    /// `if_version`: the version the content was made from; `conflict` when the file has moved on.
    pub async fn replace(
        &self,
        _path: &str,
        _if_version: Option<&str>,
        _content: Vec<u8>,
    ) -> Result<String, ConnectionError> {
        Err(ConnectionError::new("denied", "read-only"))
    }

    pub async fn list(&self, _prefix: &str, _cursor: Option<&str>) -> Result<Listing, ConnectionError> {
        Err(ConnectionError::new("not_found", "no such folder"))
    }
}
