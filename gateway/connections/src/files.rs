//! Files under one root. No path leaves it, through no link.
//!
//! Opening goes through `cap-std`, which resolves every component beneath the root and refuses a link that leads out, even if
//! one is swapped in while a path is being resolved. The rules here are additional: they keep paths portable, leave hidden
//! files alone, and keep Weir's own state out of reach.

mod exchange;
mod lease;
mod listing;
mod path;
mod replace;
mod root;
mod version;

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{ConnectionError, FailureCode};
use path::RootedPath;
use root::{Holds, OpenRoot};
pub(crate) use root::{PrivateFolder, real};
use version::VersionCache;

/// The most bytes one `read` answers.
pub const READ_MAX_BYTES: u32 = 1024 * 1024;

/// A connection to the files of one folder. Clones share the folder.
#[derive(Clone)]
pub struct FileRoot {
    inner: Arc<RootInner>,
}

struct RootInner {
    root: PathBuf,
    writable: bool,
    takes_uploads: bool,
    /// A folder that no path reaches: Weir's own state.
    private: Option<Arc<PrivateFolder>>,
    holds: Holds,
    versions: VersionCache,
}

/// The version and the size of a file. The size is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Changes whenever the content does, and only then.
    pub version: String,
    pub size: u64,
}

/// One page of the paths in a folder, and where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileListing {
    pub paths: Vec<String>,
    pub next: Option<String>,
}

impl FileRoot {
    /// Creates a connection. The folder need not exist yet: until it does, calls answer `unavailable`. No path reaches
    /// `private`.
    pub(crate) fn new(
        root: PathBuf,
        writable: bool,
        takes_uploads: bool,
        private: Option<Arc<PrivateFolder>>,
    ) -> Self {
        let (holds, versions) = (Holds::default(), VersionCache::default());
        Self {
            inner: Arc::new(RootInner {
                root,
                writable,
                takes_uploads,
                private,
                holds,
                versions,
            }),
        }
    }

    /// Returns `true` if files may be written.
    pub fn writable(&self) -> bool {
        self.inner.writable
    }

    /// Returns `true` if people may put files in.
    pub fn takes_uploads(&self) -> bool {
        self.inner.takes_uploads
    }

    /// Refuses a text that names no file beneath the root.
    pub fn check_path(&self, path: &str) -> Result<(), ConnectionError> {
        RootedPath::parse(path).map(drop)
    }

    /// Asks whether the folder is there and can be read.
    pub(crate) async fn check(&self) -> Result<(), ConnectionError> {
        self.blocking(|inner| {
            let folder = inner.open_root()?.folder(Path::new(""))?;
            folder.entries().map(drop).map_err(failed)
        })
        .await
    }

    /// Returns the version and the size of a file, or the error `not_found` if there is none.
    pub async fn stat(&self, path: &str) -> Result<FileStat, ConnectionError> {
        let path = RootedPath::parse(path)?;
        self.blocking(move |inner| inner.versions.info(&inner.open_root()?, &path))
            .await
    }

    /// Reads at most [`READ_MAX_BYTES`]; an empty answer is the end of the file.
    pub async fn read(
        &self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, ConnectionError> {
        let path = RootedPath::parse(path)?;
        if length > READ_MAX_BYTES {
            return Err(ConnectionError::new(
                FailureCode::TooLarge,
                "at most 1 MiB can be read at once",
            )
            .field("length"));
        }
        self.blocking(move |inner| {
            let file = inner.open_root()?.file(&path)?.into_std();
            read_at(&file, offset, length).map_err(failed)
        })
        .await
    }

    /// Reads several parts at once, in the order asked; a part is shorter where the file ends.
    pub async fn read_parts(
        &self,
        path: &str,
        parts: Vec<(u64, u32)>,
    ) -> Result<Vec<Vec<u8>>, ConnectionError> {
        let path = RootedPath::parse(path)?;
        self.blocking(move |inner| {
            let file = inner.open_root()?.file(&path)?.into_std();
            parts
                .into_iter()
                .map(|(at, length)| read_at(&file, at, length).map_err(failed))
                .collect()
        })
        .await
    }

    /// Replaces a file, whole and atomically: by a lock across processes, a temporary file, fsync, an exchange of the
    /// names, and fsync of the folder. `if_version` is the version the content was made from; the error is `conflict` if
    /// the file has moved on, and then the newest file has the name.
    pub async fn replace(
        &self,
        path: &str,
        if_version: Option<&str>,
        content: Vec<u8>,
    ) -> Result<String, ConnectionError> {
        if !self.inner.writable {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the files of this connection are read-only",
            ));
        }
        let path = RootedPath::parse(path)?;
        let if_version = if_version.map(str::to_owned);
        // This runs on a blocking thread, so it runs to its end even if its caller is gone.
        self.blocking(move |inner| {
            let content = replace::FileContent::Whole(&content);
            replace::replace(
                &inner.open_root()?,
                &inner.versions,
                &path,
                if_version.as_deref(),
                content,
            )
        })
        .await
    }

    /// Replaces a file by a person's file, whole and atomically like `replace`; `content` is read in place.
    pub async fn upload(
        &self,
        path: &str,
        content: std::fs::File,
    ) -> Result<String, ConnectionError> {
        if !self.inner.takes_uploads {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the connection takes no files",
            ));
        }
        let path = RootedPath::parse(path)?;
        self.blocking(move |inner| {
            let content = replace::FileContent::Copied(&content);
            replace::replace(&inner.open_root()?, &inner.versions, &path, None, content)
        })
        .await
    }

    /// Replaces a file like `replace`, with its own bytes except for the edits: the position, the length of what is
    /// removed, and what replaces it. Edits are in order and do not overlap.
    pub async fn replace_parts(
        &self,
        path: &str,
        if_version: &str,
        edits: Vec<(u64, u64, Vec<u8>)>,
    ) -> Result<String, ConnectionError> {
        if !self.inner.writable {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the files of this connection are read-only",
            ));
        }
        let path = RootedPath::parse(path)?;
        let if_version = if_version.to_owned();
        self.blocking(move |inner| {
            let content = replace::FileContent::Edited(&edits);
            replace::replace(
                &inner.open_root()?,
                &inner.versions,
                &path,
                Some(&if_version),
                content,
            )
        })
        .await
    }

    /// Returns the paths of files that begin with `prefix`, in order, a thousand at a time; hidden files are left out.
    pub async fn list(
        &self,
        prefix: &str,
        cursor: Option<&str>,
    ) -> Result<FileListing, ConnectionError> {
        let prefix = path::PathPrefix::parse(prefix)?;
        let cursor = cursor.map(str::to_owned);
        self.blocking(move |inner| listing::list(&inner.open_root()?, &prefix, cursor.as_deref()))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RootInner) -> Result<T, ConnectionError> + Send + 'static,
    ) -> Result<T, ConnectionError> {
        let inner = self.inner.clone();
        match weir_admission::run_blocking(move || work(&inner)).await {
            Ok(result) => result,
            Err(error) => Err(ConnectionError::new(
                FailureCode::UpstreamError,
                "the file access failed",
            )
            .details(error)),
        }
    }
}

impl RootInner {
    /// Opens the root again each time (a microsecond), so that a root that appears or is exchanged is simply found.
    fn open_root(&self) -> Result<OpenRoot, ConnectionError> {
        OpenRoot::open(&self.root, self.private.as_deref(), &self.holds)
    }
}

fn read_at(file: &std::fs::File, offset: u64, length: u32) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut content = vec![0; length as usize];
    let mut filled = 0;
    while filled < content.len() {
        match file.read_at(&mut content[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    content.truncate(filled);
    Ok(content)
}

/// Translates the system's word for a failure. The message never contains a path of the machine.
fn failed(error: io::Error) -> ConnectionError {
    let (code, message) = match error.kind() {
        ErrorKind::NotFound => (FailureCode::NotFound, "there is no such file"),
        ErrorKind::PermissionDenied => (FailureCode::Forbidden, "the file may not be reached"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (FailureCode::Unavailable, "the disk is full")
        }
        ErrorKind::ReadOnlyFilesystem => (FailureCode::Forbidden, "the disk is read-only"),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            (FailureCode::NotFound, "there is no such file")
        }
        ErrorKind::InvalidFilename => (
            FailureCode::InvalidArguments,
            "a name in the path is longer than the disk takes",
        ),
        _ => (FailureCode::UpstreamError, "the file cannot be used"),
    };
    ConnectionError::new(code, message).details(error)
}
