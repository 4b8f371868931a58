//! The gateway's own files: written next to their place and moved there, so that no reader ever sees half of one.
//!
//! Files that these functions have written outlive the machine when they return: the bytes are synced before the move,
//! and the folder after it. They wait for the disk, so that a large file is written on a thread that may wait.

pub mod embedded;
mod held_folder;

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
    },
    path::Path,
    time::Duration,
};

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile};

pub use self::held_folder::{HeldFolder, HeldText};

/// The users that may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePermission {
    Owner,
    /// The users that the umask of the process allows.
    Everyone,
    /// The permission bits of the file that the new one replaces.
    Bits(u32),
}

/// Replaces whatever is at `path` by `bytes`, completely or not at all. The folder is created if it does not exist.
pub fn replace(path: &Path, bytes: &[u8], readers: FilePermission) -> io::Result<()> {
    let fresh = write(path, bytes, readers)?;
    fresh.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Puts a whole file in the place of whatever is at `path`. Both are on one file system.
pub fn move_over(file: &Path, path: &Path) -> io::Result<()> {
    fs::rename(file, path)?;
    sync_folder(path)
}

/// Puts `bytes` at `path` if nothing is there yet. If several processes do so at once, one succeeds, and the others
/// get `false`.
pub fn create_once(path: &Path, bytes: &[u8], readers: FilePermission) -> io::Result<bool> {
    let fresh = write(path, bytes, readers)?;
    match fresh.persist_noclobber(path) {
        Ok(_) => sync_folder(path).map(|()| true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// Makes the file `old` available as `new` too, if nothing is there yet: a link, or a copy if the file system has no links.
pub fn link_once(old: &Path, new: &Path) -> io::Result<()> {
    match fs::hard_link(old, new) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(_) => create_once(new, &fs::read(old)?, FilePermission::Owner).map(drop),
        Ok(()) => sync_folder(new),
    }
}

/// Like [`replace`], and holds the file: until the returned file is closed, [`read_held`] can tell that the process that
/// wrote it is running.
pub fn replace_held(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let fresh = write(path, bytes, FilePermission::Everyone)?;
    fresh.as_file().lock()?;
    let file = fresh.persist(path).map_err(|error| error.error)?;
    sync_folder(path)?;
    Ok(file)
}

/// Returns the text of a file that a living process holds. `None`: the process that wrote it has ended.
pub fn read_held(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok(Some(text))
        }
    }
}

/// Makes a folder with these permission bits, and those above it that are missing.
pub fn create_folder(path: &Path, bits: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = folder(path);
    create_folder(above, bits)?;
    match DirBuilder::new().mode(bits).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        made => made?,
    }
    // A link that replaced it in the meantime is not followed.
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    hand_over(
        &OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?,
        above,
    );
    Ok(())
}

/// Gives a file or folder that was just made in `folder` to the owner of that folder. A gateway that runs as another user can
/// then read and remove what root made for it. Only root can do this, and only root needs to; if root may not, the file
/// remains root's.
pub fn hand_over(made: &File, folder: &Path) {
    if let Ok(owner) = fs::metadata(folder) {
        hand_over_as(made, &owner);
    }
}

fn hand_over_as(made: &File, owner: &fs::Metadata) {
    let Ok(made_by) = made.metadata() else {
        return;
    };
    if made_by.uid() == 0 && owner.uid() != 0 {
        let _ = fchown(made, Some(owner.uid()), Some(owner.gid()));
    }
}

/// The beginning of the name of a file that is being written.
const FRESH: &str = ".new-";
/// A file that is being written is in its place long before.
const LEFT_AFTER: Duration = Duration::from_secs(3600);

/// Removes the files that processes which were killed left half-written in a folder.
pub fn remove_left_over(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let age = || {
            entry
                .metadata()
                .and_then(|file| file.modified())
                .ok()?
                .elapsed()
                .ok()
        };
        if entry.file_name().to_string_lossy().starts_with(FRESH)
            && age().is_some_and(|age| age > LEFT_AFTER)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes a file next to its place. Its name starts with a dot: no folder of the gateway looks at such files. It is removed
/// if it is dropped before it was moved to its place.
fn write(path: &Path, bytes: &[u8], readers: FilePermission) -> io::Result<NamedTempFile> {
    let folder = folder(path);
    create_folder(folder, 0o777)?;
    let mode = if readers == FilePermission::Everyone {
        0o666
    } else {
        0o600
    };
    let mut fresh = Builder::new()
        .prefix(FRESH)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    if let FilePermission::Bits(bits) = readers {
        // The umask does not hold here: these bits were given once already.
        fresh
            .as_file()
            .set_permissions(Permissions::from_mode(bits & 0o777))?;
    }
    hand_over(fresh.as_file(), folder);
    fresh.write_all(bytes)?;
    fresh.as_file().sync_all()?;
    Ok(fresh)
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/file");
        replace(&path, b"one", FilePermission::Everyone).expect("written");
        replace(&path, b"two", FilePermission::Owner).expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"two");
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o600
        );
        replace(&path, b"three", FilePermission::Bits(0o664)).expect("written");
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o664,
            "as they were"
        );
        fs::create_dir(folder.path().join("b")).expect("made");
        assert!(
            replace(&folder.path().join("b"), b"x", FilePermission::Owner).is_err(),
            "a folder is no file"
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("read").count(),
            2,
            "nothing is left"
        );
    }

    #[test]
    fn a_held_file_is_known_as_that_of_a_living_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("address");
        let first = replace_held(&path, b"one").expect("written");
        let second = replace_held(&path, b"two").expect("written");
        assert_eq!(read_held(&path).expect("read").as_deref(), Some("two"));
        drop(first);
        assert_eq!(read_held(&path).expect("read").as_deref(), Some("two"));
        drop(second);
        assert_eq!(read_held(&path).expect("read"), None);
        assert!(read_held(&folder.path().join("b")).is_err());
    }

    #[test]
    fn of_many_at_once_one_makes_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let made = std::thread::scope(|scope| {
            let (path, threads) = (&path, 0..8u8);
            let make = |byte: u8| {
                scope.spawn(move || {
                    create_once(path, &[byte], FilePermission::Owner).expect("asked")
                })
            };
            let threads: Vec<_> = threads.map(make).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect::<Vec<_>>()
        });
        let winner = made.iter().position(|made| *made).expect("one made it");
        assert_eq!(made.iter().filter(|made| **made).count(), 1);
        assert_eq!(
            fs::read(&path).expect("there"),
            [u8::try_from(winner).expect("few")]
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("read").count(),
            1,
            "nothing is left"
        );
    }
}
