//! Replacing a file whole.
//!
//! The lock is `flock` on the file's folder: it leaves no file behind, works between threads and processes, and ends with its
//! process. Under it the temporary file has one fixed name, so that the next writer removes what a crash left behind.
//!
//! Programs that people use do not take the lock. So the new file and the old one exchange their names, and the file that
//! comes out is checked: if it is not the one that was read, it is put back, and the change is made again on it (`exchange`).

use std::{
    fs::TryLockError,
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::{MetadataExt, fchown},
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime},
};

use cap_std::fs::{Dir, OpenOptions};
use rustix::{
    fs::{
        XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr,
        fsetxattr,
    },
    path::Arg,
};

use super::{
    exchange::{self, ExchangeOutcome},
    failed,
    path::RootedPath,
    root::{OpenRoot, open_itself},
    version::{self, FileStamp, VersionCache},
};
use crate::{ConnectionError, FailureCode};

pub(super) const TEMPORARY: &str = ".weir-replace.tmp";
const COPY_BYTES: usize = 256 << 10;
/// The attribute in which Linux keeps the access control list of a file.
const ACCESS_LIST: &str = "system.posix_acl_access";
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// A program that saves may write in several steps: a file that was changed so recently is left to it.
const QUIET_AFTER: Duration = Duration::from_millis(100);
/// The longest wait for a file that changes again and again.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);
/// A program that has the file open for writing, and wrote to it so recently, is still saving it.
const STEP_MAX: Duration = Duration::from_secs(1);
/// The longest wait for such a program.
const SAVE_WAIT_MAX: Duration = Duration::from_secs(3);
const SAVE_LOOK_EVERY: Duration = Duration::from_millis(10);
/// The time after which a file that is in use may be free.
const BUSY_RETRY_AFTER_MS: u32 = 1_000;

pub(super) fn replace(
    root: &OpenRoot,
    versions: &VersionCache,
    path: &RootedPath,
    if_version: Option<&str>,
    content: FileContent<'_>,
) -> Result<String, ConnectionError> {
    let (folder, name) = root
        .place(path)
        .map_err(|error| name_folder(root, path, error))?;
    if folder
        .metadata(&name)
        .is_ok_and(|metadata| !metadata.is_file())
    {
        return Err(ConnectionError::new(
            FailureCode::InvalidArguments,
            "the path does not name a file",
        )
        .field("path"));
    }
    if if_version.is_some() {
        wait_until_quiet(&folder, &name)?;
    }
    let _lock = lock(&folder)?;
    let mut expected = None;
    if let Some(version) = if_version {
        // Before the content is looked at: a change from here on shows in the stamp.
        expected = exchange::stamp(&folder, &name);
        let current = match versions.info(root, path) {
            Ok(info) => Some(info.version),
            Err(error) if error.code == FailureCode::NotFound => None,
            Err(error) => return Err(error),
        };
        if current.as_deref() != Some(version) {
            return Err(changed());
        }
    }
    let written = write_beside(&folder, &name, content, versions, |stamp| {
        if_version.filter(|version| versions.remembered(path, stamp).as_deref() == Some(*version))
    });
    let placed =
        written.and_then(|written| put_in_place(&folder, &name, expected).map(|()| written));
    // The old file, if they were exchanged, or the rest of a new one.
    let _ = folder.remove_file(TEMPORARY);
    let WrittenFile {
        version,
        file,
        modified,
    } = placed?;
    // Without this a crash of the machine may bring the old name back.
    folder
        .open(".")
        .map_err(failed)?
        .into_std()
        .sync_all()
        .map_err(failed)?;
    if let Some(modified) = modified {
        versions.written(path, file, modified, &version);
    }
    Ok(version)
}

/// Names the folder that is not there: the file itself may be new.
fn name_folder(root: &OpenRoot, path: &RootedPath, error: ConnectionError) -> ConnectionError {
    let Some(folder) = root.missing_folder(path) else {
        return error;
    };
    let message = format!(
        "there is no folder `{}`, and it is not created",
        folder.display()
    );
    ConnectionError { message, ..error }
}

fn changed() -> ConnectionError {
    ConnectionError::new(
        FailureCode::Conflict,
        "the file has changed since it was read",
    )
}

/// Waits while another program has just changed the file, or is still saving it. The error is about a program that goes on
/// writing: what it writes after an exchange would be lost.
fn wait_until_quiet(folder: &Dir, name: &Path) -> Result<(), ConnectionError> {
    let begin = Instant::now();
    loop {
        let stamp = exchange::stamp(folder, name).filter(|stamp| !stamp.is_own());
        let Some(age) = stamp.and_then(|stamp| stamp.age()) else {
            return Ok(());
        };
        let is_saved = age < STEP_MAX && exchange::has_writer(folder, name);
        let (pause, wait_max) = match QUIET_AFTER.checked_sub(age) {
            _ if is_saved => (SAVE_LOOK_EVERY, SAVE_WAIT_MAX),
            Some(left) => (left.max(Duration::from_millis(1)), QUIET_WAIT_MAX),
            None => return Ok(()),
        };
        if begin.elapsed() >= wait_max {
            return match is_saved {
                true => Err(busy("another program is still writing to the file")),
                false => Ok(()),
            };
        }
        thread::sleep(pause);
    }
}

/// Returns the error for a file that is in use. Nothing has been written.
fn busy(message: &str) -> ConnectionError {
    let error = ConnectionError::new(FailureCode::Unavailable, message).nothing_changed();
    ConnectionError {
        retry_after_ms: Some(BUSY_RETRY_AFTER_MS),
        ..error
    }
}

/// Gives the temporary file the name. `expected` is the stamp of the file that the change was made on; without it whatever is
/// there is replaced.
fn put_in_place(
    folder: &Dir,
    name: &Path,
    expected: Option<FileStamp>,
) -> Result<(), ConnectionError> {
    let Some(expected) = expected else {
        return folder.rename(TEMPORARY, folder, name).map_err(failed);
    };
    match exchange::exchange(folder, name, expected).map_err(failed)? {
        ExchangeOutcome::Done => Ok(()),
        ExchangeOutcome::Changed => Err(changed()),
    }
}

/// A file that was just written.
struct WrittenFile {
    version: String,
    file: std::fs::File,
    /// The time that the file was given; `None` where the system does not let it be set.
    modified: Option<SystemTime>,
}

/// The new content of the file.
#[derive(Clone, Copy)]
pub(super) enum FileContent<'c> {
    Whole(&'c [u8]),
    /// The rest of a file that is still to be read.
    Copied(&'c std::fs::File),
    /// The old content, except for these edits.
    Edited(&'c [Edit]),
}

/// The position, the number of bytes that go, and the bytes that take their place.
type Edit = (u64, u64, Vec<u8>);

/// Waits its turn. The lock ends with the returned file.
fn lock(folder: &Dir) -> Result<std::fs::File, ConnectionError> {
    let file = folder.open(".").map_err(failed)?.into_std();
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_WAIT_MAX => {
                thread::sleep(Duration::from_millis(2))
            }
            Err(TryLockError::WouldBlock) => {
                return Err(busy("other writers keep the file busy"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Writes the temporary file. `known` finds the version of a file with these metadata, if it is
/// the one meant.
fn write_beside<'v>(
    folder: &Dir,
    name: &Path,
    content: FileContent<'_>,
    versions: &VersionCache,
    known: impl Fn(FileStamp) -> Option<&'v str>,
) -> Result<WrittenFile, ConnectionError> {
    match folder.remove_file(TEMPORARY) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut temporary = folder
        .open_with(TEMPORARY, OpenOptions::new().write(true).create_new(true))
        .map_err(failed)?
        .into_std();
    let old = open_itself(folder, name);
    if let Ok(old) = &old {
        keep_owner(&old.try_clone().map_err(failed)?.into_std(), &temporary)?;
    }
    let version = match content {
        FileContent::Whole(content) => {
            temporary.write_all(content).map_err(failed)?;
            version::digest_content(content)
        }
        FileContent::Copied(mut content) => {
            let mut out = version::DigestWriter::new(&mut temporary);
            std::io::copy(&mut content, &mut out).map_err(failed)?;
            out.version(versions)
        }
        FileContent::Edited(edits) => {
            let old = old.map_err(failed)?;
            match write_appended(&old, edits, &mut temporary, versions, known)? {
                Some(version) => version,
                None => write_edited(&old.into_std(), edits, &mut temporary, versions)?,
            }
        }
    };
    let now = version::own_time(SystemTime::now());
    let modified = temporary.set_modified(now).is_ok().then_some(now);
    temporary.sync_all().map_err(failed)?;
    Ok(WrittenFile {
        version,
        file: temporary,
        modified,
    })
}

/// Writes the old bytes, copied by the system, and more after them: their digest is known and is continued. Returns
/// `None` if it is not known, or if something else is to be written.
fn write_appended<'v>(
    old: &cap_std::fs::File,
    edits: &[Edit],
    new: &mut std::fs::File,
    versions: &VersionCache,
    known: impl Fn(FileStamp) -> Option<&'v str>,
) -> Result<Option<String>, ConnectionError> {
    let before = old.metadata().map_err(failed)?;
    let (size, stamp) = (before.len(), FileStamp::from_metadata(&before));
    // The times of a file show another change only if it was not just changed; the digest of a file that was just
    // changed is unknown.
    if edits
        .iter()
        .any(|(at, length, _)| (*at, *length) != (size, 0))
    {
        return Ok(None);
    }
    let more: Vec<&[u8]> = edits
        .iter()
        .map(|(.., content)| content.as_slice())
        .collect();
    let appended = known(stamp).and_then(|version| versions.appended(version, size, &more));
    let Some(appended) = appended else {
        return Ok(None);
    };
    let file = old.try_clone().map_err(failed)?.into_std();
    let copied = std::io::copy(&mut file.take(size), new).map_err(failed)?;
    if copied != size || FileStamp::from_metadata(&old.metadata().map_err(failed)?) != stamp {
        return Err(changed());
    }
    more.iter()
        .try_for_each(|more| new.write_all(more))
        .map_err(failed)?;
    Ok(Some(appended))
}

/// Writes the old bytes except for the edits; they are read, digested and written once.
fn write_edited(
    mut old: &std::fs::File,
    edits: &[Edit],
    new: &mut std::fs::File,
    versions: &VersionCache,
) -> Result<String, ConnectionError> {
    let size = old.metadata().map_err(failed)?.len();
    let mut out = version::DigestWriter::new(new);
    let mut at = 0;
    for (from, length, content) in edits {
        let apart = *from >= at && from.checked_add(*length).is_some_and(|end| end <= size);
        if !apart {
            return Err(ConnectionError::new(
                FailureCode::InvalidArguments,
                "the edits are not in order, or not within the file",
            ));
        }
        copy(&mut old, from - at, &mut out)?;
        out.write_all(content).map_err(failed)?;
        old.seek_relative(
            i64::try_from(*length).map_err(|_| failed(ErrorKind::InvalidInput.into()))?,
        )
        .map_err(failed)?;
        at = from + length;
    }
    copy(&mut old, size - at, &mut out)?;
    Ok(out.version(versions))
}

fn copy(
    old: &mut &std::fs::File,
    mut length: u64,
    out: &mut version::DigestWriter<'_>,
) -> Result<(), ConnectionError> {
    let mut chunk = vec![0; COPY_BYTES.min(length as usize)];
    while length > 0 {
        let wanted = COPY_BYTES.min(usize::try_from(length).unwrap_or(COPY_BYTES));
        old.read_exact(&mut chunk[..wanted]).map_err(failed)?;
        out.write_all(&chunk[..wanted]).map_err(failed)?;
        length -= wanted as u64;
    }
    Ok(())
}

/// Keeps the owner and the rights, so that the users of the old file, and no others, can use the new one. Only root can give a
/// file away, and only root needs to.
fn keep_owner(old: &std::fs::File, new: &std::fs::File) -> Result<(), ConnectionError> {
    let (old_metadata, new_metadata) = (
        old.metadata().map_err(failed)?,
        new.metadata().map_err(failed)?,
    );
    if (old_metadata.uid(), old_metadata.gid()) != (new_metadata.uid(), new_metadata.gid()) {
        let _ = fchown(new, Some(old_metadata.uid()), Some(old_metadata.gid()));
    }
    new.set_permissions(old_metadata.permissions())
        .map_err(failed)?;
    keep_attributes(old, new)
}

/// Keeps the access control list and the attributes that users set. Without its list a file shows the list's mask as the rights
/// of its group, and would give the group more than it had.
fn keep_attributes(old: &std::fs::File, new: &std::fs::File) -> Result<(), ConnectionError> {
    match attribute(old, ACCESS_LIST) {
        Some(list) => fsetxattr(new, ACCESS_LIST, &list, XattrFlags::empty())
            .map_err(|error| failed(error.into()))?,
        // The folder may give new files a list that the old file does not have.
        None => {
            let _ = fremovexattr(new, ACCESS_LIST);
        }
    }
    let mut names = vec![0_u8; flistxattr_query(old).unwrap_or(0)];
    let length = flistxattr(old, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|byte| *byte == 0);
    for name in names.filter(|name| name.starts_with(b"user.")) {
        if let Some(value) = attribute(old, name) {
            // What the file system has no room for costs the attribute and not the change.
            let _ = fsetxattr(new, name, &value, XattrFlags::empty());
        }
    }
    Ok(())
}

/// Returns an extended attribute; `None` if the file has none of this name.
fn attribute<N: Arg + Copy>(file: &std::fs::File, name: N) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; fgetxattr_query(file, name).ok()?];
    let length = fgetxattr(file, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}
