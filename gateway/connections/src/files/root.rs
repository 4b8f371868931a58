//! The root of a connection while it is open: how a path is found beneath it.
//!
//! A root may hold a folder that no path reaches, Weir's own state. Where it does, each folder on the way to a file is
//! opened by itself, without following a link, and compared with that folder: a link that somebody swaps in meanwhile, or
//! a folder that got another name, leads nowhere else. A hard link to a file of the state is such a file under another
//! name, and is not known from others; only who may write to the state can make one.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, MetadataExt as _},
};

use super::{failed, path::RootedPath};
use crate::{Code, ConnectionError};

/// How often a file is opened again that another one replaces meanwhile.
const ATTEMPTS_MAX: usize = 100;

pub(super) struct Root {
    folder: Dir,
    /// The folder that no path reaches.
    private: Option<Identity>,
}

/// The device and the number of a file or folder.
type Identity = (u64, u64);

impl Root {
    /// Opens the root. `private` is the folder that no path reaches; while there is none, there is nothing to be kept.
    pub(super) fn open(root: &Path, private: Option<&Path>) -> Result<Self, ConnectionError> {
        let unavailable =
            |error: io::Error| ConnectionError::new(Code::Unavailable, "the folder cannot be opened").details(error);
        let folder = Dir::open_ambient_dir(root, ambient_authority()).map_err(unavailable)?;
        let private = match private.map(std::fs::metadata) {
            Some(Ok(metadata)) => {
                use std::os::unix::fs::MetadataExt as _;
                Some((metadata.dev(), metadata.ino()))
            }
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => return Err(unavailable(error)),
            _ => None,
        };
        Ok(Self { folder, private })
    }

    pub(super) fn metadata(&self, path: &RootedPath) -> Result<Metadata, ConnectionError> {
        if self.private.is_none() {
            return self.folder.metadata(path.as_path()).map_err(failed);
        }
        let (folder, name) = self.place(path)?;
        folder.symlink_metadata(name).map_err(failed)
    }

    /// Opens a regular file only: a pipe would block, a device is nobody's table.
    pub(super) fn file(&self, path: &RootedPath) -> Result<File, ConnectionError> {
        if !self.metadata(path)?.is_file() {
            return Err(ConnectionError::new(Code::InvalidArguments, "the path does not name a file").field("path"));
        }
        if self.private.is_none() {
            return self.folder.open(path.as_path()).map_err(failed);
        }
        let (folder, name) = self.place(path)?;
        open_itself(&folder, &name).map_err(failed)
    }

    /// Returns the folder the file really lies in and its name there: a link to a file stays a link.
    pub(super) fn place(&self, path: &RootedPath) -> Result<(Dir, PathBuf), ConnectionError> {
        let real = match self.folder.canonicalize(path.as_path()) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => path.as_path().to_owned(),
            Err(error) => return Err(failed(error)),
        };
        let name = PathBuf::from(real.file_name().ok_or_else(|| {
            ConnectionError::new(Code::InvalidArguments, "the path does not name a file").field("path")
        })?);
        let folder = self.folder(real.parent().unwrap_or(Path::new("")))?;
        Ok((folder, name))
    }

    /// Opens a folder beneath the root; the empty path is the root itself.
    pub(super) fn folder(&self, path: &Path) -> Result<Dir, ConnectionError> {
        if path == Path::new("") {
            return self.reached(self.folder.try_clone().map_err(failed)?)?.ok_or_else(private);
        }
        if self.private.is_none() {
            return self.folder.open_dir(path).map_err(failed);
        }
        let real = self.folder.canonicalize(path).map_err(failed)?;
        let begin = self.folder(Path::new(""))?;
        real.iter().try_fold(begin, |folder, name| self.inner(&folder, Path::new(name))?.ok_or_else(private))
    }

    /// Opens a folder in a folder; `None` if no path reaches it.
    pub(super) fn inner(&self, folder: &Dir, name: &Path) -> Result<Option<Dir>, ConnectionError> {
        let inner = folder.open_dir(name).map_err(failed)?;
        if self.private.is_none() {
            return Ok(Some(inner));
        }
        let named = folder.symlink_metadata(name).map_err(failed)?;
        if identity(&named) != identity(&inner.dir_metadata().map_err(failed)?) {
            return Err(failed(ErrorKind::NotFound.into())); // a link took its place
        }
        self.reached(inner)
    }

    /// Returns the folder; `None` if no path reaches it.
    fn reached(&self, folder: Dir) -> Result<Option<Dir>, ConnectionError> {
        let Some(private) = self.private else { return Ok(Some(folder)) };
        let found = identity(&folder.dir_metadata().map_err(failed)?);
        Ok((found != private).then_some(folder))
    }
}

fn private() -> ConnectionError {
    ConnectionError::new(Code::Forbidden, "the file may not be reached: Weir's own state is there")
}

/// Opens the file that has this name, and none that a link of this name leads to.
pub(super) fn open_itself(folder: &Dir, name: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS_MAX {
        let file = folder.open(name)?;
        let named = folder.symlink_metadata(name)?;
        if identity(&named) == identity(&file.metadata()?) {
            return Ok(file);
        }
        if named.is_symlink() {
            return Err(ErrorKind::NotFound.into());
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}
