//! A folder that is kept open: reads and writes never leave it, even if its path is replaced in the meantime.

use std::{
    fs::{File, Permissions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawMode, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

use crate::{FRESH, FilePermission, hand_over_as};

/// The number of names that are tried for a file that is being written.
const ATTEMPTS_MAX: u32 = 100;

/// No function of this follows a link.
#[derive(Debug)]
pub struct HeldFolder(File);

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct HeldText {
    pub text: String,
    /// Its permission bits.
    pub bits: u32,
}

impl HeldFolder {
    /// Opens a folder by its path. Links on the way to it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = File::open(path)?;
        match folder.metadata()?.is_dir() {
            true => Ok(Self(folder)),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a folder in this one.
    pub fn inner(&self, name: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.open_at(name, flags, Mode::empty()) {
            // A link is refused as something else than a folder, or as a link.
            Err(error) if self.is_link(name) => Err(link(&error)),
            opened => Ok(Self(opened?)),
        }
    }

    /// Opens a folder in this one, and creates it if it does not exist.
    pub fn make_inner(&self, name: &Path, bits: u32) -> io::Result<Self> {
        match mkdirat(&self.0, plain(name)?, mode(bits)) {
            Err(Errno::EXIST) => self.inner(name),
            Err(error) => Err(error.into()),
            Ok(()) => {
                let inner = self.inner(name)?;
                hand_over_as(&inner.0, &self.0.metadata()?);
                Ok(inner)
            }
        }
    }

    /// Reads a regular file as text; `None` if it does not exist.
    pub fn read(&self, name: &Path, max_bytes: u64) -> io::Result<Option<HeldText>> {
        // Opening a pipe would wait.
        let file = match self.open_at(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if self.is_link(name) => return Err(link(&error)),
            opened => opened?,
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut text = String::new();
        (&file).take(max_bytes + 1).read_to_string(&mut text)?;
        if text.len() as u64 > max_bytes {
            return Err(io::Error::other(format!(
                "it has more than {max_bytes} bytes"
            )));
        }
        let bits = about.mode() & 0o777;
        Ok(Some(HeldText { text, bits }))
    }

    /// Puts `bytes` in the place of whatever has this name, whole or not at all. A link is replaced, not followed.
    pub fn replace(&self, name: &Path, bytes: &[u8], readers: FilePermission) -> io::Result<()> {
        let name = plain(name)?;
        let (fresh, mut file) = self.create(readers)?;
        let written = (|| {
            if let FilePermission::Bits(bits) = readers {
                file.set_permissions(Permissions::from_mode(bits & 0o777))?;
            }
            hand_over_as(&file, &self.0.metadata()?);
            file.write_all(bytes)?;
            file.sync_all()?;
            renameat(&self.0, &*fresh, &self.0, name)?;
            self.0.sync_all()
        })();
        if written.is_err() {
            let _ = unlinkat(&self.0, &*fresh, AtFlags::empty()); // may be renamed already
        }
        written
    }

    /// Opens a file, creating it if necessary, and waits until no other process has it locked. The lock ends when it is closed.
    pub fn lock(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = match self.open_at(name, flags, mode(0o600)) {
            Err(error) if self.is_link(name) => return Err(link(&error)),
            opened => opened?,
        };
        hand_over_as(&file, &self.0.metadata()?);
        file.lock()?;
        Ok(file)
    }

    /// Removes a file, or a link.
    pub fn remove(&self, name: &Path) -> io::Result<()> {
        unlinkat(&self.0, plain(name)?, AtFlags::empty())?;
        self.0.sync_all()
    }

    /// Makes a file under a name that nothing has.
    fn create(&self, readers: FilePermission) -> io::Result<(String, File)> {
        let bits = if readers == FilePermission::Everyone {
            0o666
        } else {
            0o600
        };
        for attempt in 0..ATTEMPTS_MAX {
            let name = format!("{FRESH}{}-{attempt}", std::process::id());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            match self.open_at(Path::new(&name), flags, mode(bits)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok((name, opened?)),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn open_at(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.0.as_fd(), plain(name)?, flags, mode)?.into())
    }

    fn is_link(&self, name: &Path) -> bool {
        let about =
            plain(name).and_then(|name| Ok(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?));
        about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Symlink)
    }
}

/// Returns the name if it is one name, and no way out of the folder.
fn plain(name: &Path) -> io::Result<&Path> {
    use std::path::Component;
    let mut components = name.components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(_)), None) => Ok(name),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as RawMode)
}

fn link(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), "it is a link, which is not followed")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn no_link_is_followed() {
        let outside = tempfile::tempdir().expect("a folder");
        let inside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("secret"), "s").expect("written");
        symlink(outside.path().join("secret"), inside.path().join("file")).expect("a link");
        symlink(outside.path(), inside.path().join("folder")).expect("a link");
        let held = HeldFolder::open(inside.path()).expect("there");
        for refused in [
            held.read(Path::new("file"), 10).map(drop),
            held.inner(Path::new("folder")).map(drop),
            held.make_inner(Path::new("folder"), 0o700).map(drop),
            held.lock(Path::new("file")).map(drop),
        ] {
            let error = refused.expect_err("a link").to_string();
            assert_eq!(error, "it is a link, which is not followed");
        }
        for way_out in ["..", "folder/secret", "/etc/passwd", ""] {
            let error = held.read(Path::new(way_out), 10).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{way_out}");
        }
        held.replace(Path::new("file"), b"new", FilePermission::Owner)
            .expect("replaced");
        let read = |path: &Path| fs::read_to_string(path).expect("read");
        assert_eq!(read(&outside.path().join("secret")), "s");
        assert_eq!(read(&inside.path().join("file")), "new");
        assert_eq!(
            fs::read_dir(inside.path()).expect("read").count(),
            2,
            "nothing is left"
        );
    }

    #[test]
    fn a_file_is_read_within_its_bound_and_keeps_its_bits() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = HeldFolder::open(folder.path()).expect("there");
        let inner = held.make_inner(Path::new("a"), 0o700).expect("made");
        let name = Path::new("file");
        assert_eq!(inner.read(name, 10).expect("asked"), None);
        inner
            .replace(name, b"text", FilePermission::Bits(0o640))
            .expect("written");
        let read = inner.read(name, 4).expect("read").expect("there");
        assert_eq!((&*read.text, read.bits), ("text", 0o640));
        assert!(inner.read(name, 3).is_err(), "it is too large");
        assert!(held.read(Path::new("a"), 9).is_err(), "it is a folder");
        inner.remove(name).expect("removed");
        assert_eq!(inner.read(name, 10).expect("asked"), None);
        assert!(HeldFolder::open(&folder.path().join("a/b")).is_err());
    }
}
