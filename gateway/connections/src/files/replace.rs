//! Replacing a file whole.
//!
//! The lock is `flock` on the file's folder: it leaves no litter behind, holds between threads and processes, and is
//! gone with the process that held it. Under it the temporary file has one fixed name, so that what a crash left
//! behind is swept by the next writer.

use std::{
    fs::TryLockError,
    io::{ErrorKind, Write},
    os::unix::fs::{MetadataExt, fchown},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use cap_std::fs::{Dir, OpenOptions};

use super::{
    failed,
    path::RootedPath,
    version::{self, Versions},
};
use crate::{Code, ConnectionError};

const TEMPORARY: &str = ".weir-replace.tmp";
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

pub(super) fn replace(
    root: &Dir,
    versions: &Versions,
    path: &RootedPath,
    if_version: Option<&str>,
    content: &[u8],
) -> Result<String, ConnectionError> {
    let (folder, name) = place(root, path)?;
    let _lock = lock(&folder)?;
    if let Some(expected) = if_version {
        let current = match versions.info(root, path) {
            Ok(info) => Some(info.version),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error),
        };
        if current.as_deref() != Some(expected) {
            return Err(ConnectionError::new(Code::Conflict, "the file has changed since it was read"));
        }
    }
    let written = write_beside(&folder, &name, content);
    if written.is_err() {
        let _ = folder.remove_file(TEMPORARY);
    }
    written?;
    Ok(version::of(content))
}

/// The folder the file really lies in and its name there: a link to a file stays a link.
fn place(root: &Dir, path: &RootedPath) -> Result<(Dir, PathBuf), ConnectionError> {
    let real = match root.canonicalize(path.as_path()) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => path.as_path().to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let name =
        PathBuf::from(real.file_name().ok_or_else(|| {
            ConnectionError::new(Code::InvalidArguments, "the path does not name a file").field("path")
        })?);
    let folder = match real.parent() {
        Some(parent) if parent != Path::new("") => root.open_dir(parent),
        _ => root.try_clone(),
    };
    let folder = folder.map_err(failed)?;
    match folder.metadata(&name) {
        Ok(metadata) if !metadata.is_file() => {
            Err(ConnectionError::new(Code::InvalidArguments, "the path does not name a file").field("path"))
        }
        _ => Ok((folder, name)),
    }
}

/// Waits its turn. The lock goes with the returned file.
fn lock(folder: &Dir) -> Result<std::fs::File, ConnectionError> {
    let file = folder.open(".").map_err(failed)?.into_std();
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_WAIT_MAX => thread::sleep(Duration::from_millis(2)),
            Err(TryLockError::WouldBlock) => {
                return Err(ConnectionError::new(Code::Unavailable, "other writers keep the file busy"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

fn write_beside(folder: &Dir, name: &Path, content: &[u8]) -> Result<(), ConnectionError> {
    match folder.remove_file(TEMPORARY) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut temporary =
        folder.open_with(TEMPORARY, OpenOptions::new().write(true).create_new(true)).map_err(failed)?.into_std();
    if let Ok(old) = folder.open(name) {
        keep_owner(&old.into_std(), &temporary)?;
    }
    temporary.write_all(content).map_err(failed)?;
    temporary.sync_all().map_err(failed)?;
    folder.rename(TEMPORARY, folder, name).map_err(failed)?;
    // Without it a crash of the machine may bring the old name back.
    folder.open(".").map_err(failed)?.into_std().sync_all().map_err(failed)
}

/// The new file is used by whoever used the old one. Giving it away is only possible for root, and then needed.
fn keep_owner(old: &std::fs::File, new: &std::fs::File) -> Result<(), ConnectionError> {
    let (old_metadata, new_metadata) = (old.metadata().map_err(failed)?, new.metadata().map_err(failed)?);
    if (old_metadata.uid(), old_metadata.gid()) != (new_metadata.uid(), new_metadata.gid()) {
        let _ = fchown(new, Some(old_metadata.uid()), Some(old_metadata.gid()));
    }
    new.set_permissions(old_metadata.permissions()).map_err(failed)
}
