//! The root of a connection while it is open: how a path is found beneath it.
//!
//! A root may contain a folder that no path reaches, Weir's own state. If it does, each folder on the way to a file is opened
//! separately, without following a link, and compared with that folder: a link that is swapped in meanwhile, or another name
//! of the folder, cannot lead anywhere else. A hard link to a file of the state is such a file under another name, and
//! cannot be recognised; only a user that may write to the state can make one.

use std::{
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _},
};
use parking_lot::Mutex;

use super::{failed, path::RootedPath};
use crate::{ConnectionError, FailureCode};

/// The number of times a file is opened again because another one replaced it in the meantime.
const ATTEMPTS_MAX: usize = 100;

/// The device and the number of a file or folder.
type Identity = (u64, u64);

/// The folder that no path reaches.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
    /// The folder as it was seen first, under whatever name now. It is kept open, so that its number is not given to another.
    seen: Mutex<Option<(std::fs::File, Identity)>>,
}

impl PrivateFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder that was seen first, and the one that has its name now. If there is none, nothing is protected.
    fn folders(&self) -> io::Result<Vec<Identity>> {
        let now = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some((metadata.dev(), metadata.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut seen = self.seen.lock();
        if seen.is_none() && now.is_some() {
            let folder = std::fs::File::open(&self.path)?;
            let metadata = folder.metadata()?;
            *seen = Some((folder, (metadata.dev(), metadata.ino())));
        }
        let first = seen.as_ref().map(|(_, identity)| *identity);
        Ok(first
            .into_iter()
            .chain(now.filter(|now| Some(*now) != first))
            .collect())
    }
}

/// Returns the path without links; a part that does not exist yet is kept as written.
pub(crate) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = |there: &Path| {
        Some(
            there
                .canonicalize()
                .ok()?
                .join(path.strip_prefix(there).ok()?),
        )
    };
    path.ancestors()
        .find_map(known)
        .unwrap_or_else(|| path.clone())
}

/// Whether a root holds the folder that no path reaches, known for the folder that the root was when it was last opened.
pub(super) type Holds = Mutex<Option<(Identity, bool)>>;

pub(super) struct OpenRoot {
    folder: Dir,
    /// The folders that no path reaches.
    private: Vec<Identity>,
}

impl OpenRoot {
    /// Opens the root. A root inside the folder that no path reaches is not opened.
    pub(super) fn open(
        root: &Path,
        kept: Option<&PrivateFolder>,
        holds: &Holds,
    ) -> Result<Self, ConnectionError> {
        let unavailable = |error: io::Error| {
            ConnectionError::new(FailureCode::Unavailable, "the folder cannot be opened")
                .details(error)
        };
        let folder = Dir::open_ambient_dir(root, ambient_authority()).map_err(unavailable)?;
        let Some(kept) = kept else {
            return Ok(Self {
                folder,
                private: Vec::new(),
            });
        };
        let own = identity(&folder.dir_metadata().map_err(unavailable)?);
        let mut holds = holds.lock();
        let is_beneath = match *holds {
            Some((of, is_beneath)) if of == own => is_beneath,
            _ => {
                let (root, kept) = (real(root), real(&kept.path));
                if root.starts_with(&kept) {
                    return Err(private());
                }
                let is_beneath = kept.starts_with(&root);
                *holds = Some((own, is_beneath));
                is_beneath
            }
        };
        let private = if is_beneath {
            kept.folders().map_err(unavailable)?
        } else {
            Vec::new()
        };
        Ok(Self { folder, private })
    }

    pub(super) fn metadata(&self, path: &RootedPath) -> Result<Metadata, ConnectionError> {
        if self.private.is_empty() {
            return self.folder.metadata(path.as_path()).map_err(failed);
        }
        let (folder, name) = self.place(path)?;
        let metadata = folder.symlink_metadata(name).map_err(failed)?;
        match metadata.is_symlink() {
            true => Err(failed(ErrorKind::NotFound.into())), // it leads to nothing
            false => Ok(metadata),
        }
    }

    /// Opens a regular file only: a pipe would block, and a device is not a table. If anything else has the name, the file
    /// counts as missing.
    pub(super) fn file(&self, path: &RootedPath) -> Result<File, ConnectionError> {
        if !self.metadata(path)?.is_file() {
            return Err(no_file());
        }
        let file = if self.private.is_empty() {
            open_at_once(&self.folder, path.as_path())
        } else {
            let (folder, name) = self.place(path)?;
            open_itself(&folder, &name)
        };
        let file = file.map_err(failed)?;
        match file.metadata().map_err(failed)?.is_file() {
            true => Ok(file),
            false => Err(no_file()),
        }
    }

    /// Returns the folder the file is really in and its name there: a link to a file remains a link.
    pub(super) fn place(&self, path: &RootedPath) -> Result<(Dir, PathBuf), ConnectionError> {
        let real = match self.folder.canonicalize(path.as_path()) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => path.as_path().to_owned(),
            Err(error) => return Err(failed(error)),
        };
        let name = PathBuf::from(real.file_name().ok_or_else(|| {
            ConnectionError::new(
                FailureCode::InvalidArguments,
                "the path does not name a file",
            )
            .field("path")
        })?);
        let folder = self.folder(real.parent().unwrap_or(Path::new("")))?;
        Ok((folder, name))
    }

    /// Returns the first folder on the way to a file that is not there.
    pub(super) fn missing_folder<'p>(&self, path: &'p RootedPath) -> Option<&'p Path> {
        let mut folders: Vec<&Path> = path.as_path().ancestors().skip(1).collect();
        folders.reverse();
        let is_missing = |folder: &&Path| {
            let opened = self.folder(folder);
            opened.is_err_and(|error| error.code == FailureCode::NotFound)
        };
        folders.into_iter().find(is_missing)
    }

    /// Opens a folder beneath the root; the empty path is the root itself.
    pub(super) fn folder(&self, path: &Path) -> Result<Dir, ConnectionError> {
        if path == Path::new("") {
            return self
                .reached(self.folder.try_clone().map_err(failed)?)?
                .ok_or_else(private);
        }
        if self.private.is_empty() {
            return self.folder.open_dir(path).map_err(failed);
        }
        let real = self.folder.canonicalize(path).map_err(failed)?;
        let begin = self.folder(Path::new(""))?;
        real.iter().try_fold(begin, |folder, name| {
            self.inner(&folder, Path::new(name))?.ok_or_else(private)
        })
    }

    /// Opens a folder in a folder; `None` if no path reaches it.
    pub(super) fn inner(&self, folder: &Dir, name: &Path) -> Result<Option<Dir>, ConnectionError> {
        let inner = folder.open_dir(name).map_err(failed)?;
        if self.private.is_empty() {
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
        if self.private.is_empty() {
            return Ok(Some(folder));
        }
        let found = identity(&folder.dir_metadata().map_err(failed)?);
        Ok((!self.private.contains(&found)).then_some(folder))
    }
}

fn private() -> ConnectionError {
    ConnectionError::new(
        FailureCode::Forbidden,
        "the file may not be reached: Weir's own state is there",
    )
}

fn no_file() -> ConnectionError {
    ConnectionError::new(
        FailureCode::NotFound,
        "there is a folder or a pipe of this name, and no file",
    )
}

/// Opens what has this name for reading, without waiting: a pipe that has just taken the name of a file has no writer.
fn open_at_once(folder: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    match folder.open_with(path, &options) {
        // Another program has a lease on it, which is possible only for regular files, and will release it soon.
        Err(error) if error.kind() == ErrorKind::WouldBlock => folder.open(path),
        opened => opened,
    }
}

/// Opens the file that has this name, and none that a link of this name leads to.
pub(super) fn open_itself(folder: &Dir, name: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS_MAX {
        let file = open_at_once(folder, name)?;
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

#[cfg(test)]
mod tests {
    use std::{process::Command, sync::mpsc, thread, time::Duration};

    use super::*;

    /// A pipe takes the name of a file between the look at it and its opening. Nothing waits for a program that writes to it.
    #[test]
    fn a_pipe_is_opened_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = Command::new("mkfifo")
            .arg(folder.path().join("a.csv"))
            .status();
        assert!(made.expect("mkfifo runs").success());
        let (done, opened) = mpsc::channel();
        thread::spawn(move || {
            let root = Dir::open_ambient_dir(folder.path(), ambient_authority());
            let root = root.expect("a folder");
            let file = open_itself(&root, Path::new("a.csv")).expect("a pipe");
            let _ = done.send(file.metadata().expect("metadata").is_file());
        });
        let is_file = opened.recv_timeout(Duration::from_secs(10));
        assert_eq!(is_file, Ok(false), "the opening waits for a writer");
    }
}
