//! The file of a client's configuration, and the links on the way to it: which ones are followed, and where to.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use weir_files::{FilePermission, HeldFolder, HeldText};
use weir_upstream::{UpstreamFailure, UpstreamFailureKind};

use super::{TEXT_MAX_BYTES, home, set};

/// A file below a folder. No link is followed from that folder on.
pub(crate) struct ClientFile {
    /// The path for messages.
    shown: PathBuf,
    /// The folder, without links.
    base: PathBuf,
    /// The way from there to the file.
    below: PathBuf,
    /// The path was a link, or led through one.
    is_linked: bool,
}

impl ClientFile {
    /// Finds the file of the project in the working folder. The project may come from elsewhere, with links in it.
    pub(crate) fn in_project(file: &Path) -> Result<Self, UpstreamFailure> {
        let base = std::env::current_dir()
            .and_then(fs::canonicalize)
            .map_err(|error| unreadable(file, &error.to_string()))?;
        Ok(Self {
            shown: file.to_owned(),
            base,
            below: file.to_owned(),
            is_linked: false,
        })
    }

    /// Finds the file of the user. A link, such as programs for dotfiles make, is followed to a file of the user's own below
    /// home.
    pub(crate) fn of_user(file: &Path) -> Result<Self, UpstreamFailure> {
        let home = home()?;
        let failed = |error: io::Error| unreadable(file, &error.to_string());
        let shown = std::path::absolute(file).map_err(failed)?;
        let real = real(&shown).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refused(file, "it is a link that leads to nothing"),
            _ => failed(error),
        })?;
        let real_home = home.canonicalize().unwrap_or_else(|_| home.clone());
        let is_linked = match shown.strip_prefix(&home) {
            Ok(below) => real_home.join(below) != real,
            Err(_) => shown != real,
        };
        let (base, _) = split_at_last_there(real.parent().unwrap_or(&real));
        let below = real.strip_prefix(base).unwrap_or(&real);
        if is_linked {
            let owner = fs::metadata(&real).or_else(|_| fs::metadata(base));
            let owner = owner.map_err(failed)?.uid();
            let home_owner = fs::metadata(&real_home).map_err(failed)?.uid();
            let user = rustix::process::geteuid().as_raw();
            if !real.starts_with(&real_home) || (owner != user && owner != home_owner) {
                let where_to = format!(
                    "it leads to {}, which is not a file of yours below {}",
                    real.display(),
                    home.display()
                );
                return Err(refused(file, &where_to));
            }
        }
        Ok(Self {
            shown,
            base: base.to_owned(),
            below: below.to_owned(),
            is_linked,
        })
    }

    /// Finds the backup of the file in the user's state folder.
    pub(crate) fn backup(&self, ending: &str) -> Result<Self, UpstreamFailure> {
        let path = self.real_path();
        let digest = hex::encode(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..8]);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self::of_user(&state_folder()?.join(format!("{digest}-{name}{ending}")))
    }

    /// Waits until no other command of the user edits a client's file. The turn ends when the returned value is dropped.
    pub(crate) fn take_turn() -> Result<File, UpstreamFailure> {
        let file = Self::of_user(&state_folder()?.join("lock"))?;
        let lock = || {
            let (folder, name) = file.folder(HeldFolder::make_inner)?;
            folder.lock(&name)
        };
        lock().map_err(|error: io::Error| file.unwritten(&error))
    }

    /// The path for messages.
    pub(crate) fn display(&self) -> std::path::Display<'_> {
        self.shown.display()
    }

    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Returns the path of the file itself, without links.
    pub(crate) fn real_path(&self) -> PathBuf {
        self.base.join(&self.below)
    }

    /// Returns the text; `None` if the file does not exist.
    pub(crate) fn text(&self) -> Result<Option<String>, UpstreamFailure> {
        let read = self.read().map_err(|error| match error.kind() {
            ErrorKind::InvalidData => unreadable(&self.shown, "it is not UTF-8"),
            _ => unreadable(&self.shown, &error.to_string()),
        });
        Ok(read?.map(|read| read.text))
    }

    /// Writes the file whole or not at all. It keeps its permissions. Only the user may read a new file: it may hold a
    /// key.
    pub(crate) fn write(&self, text: &str) -> Result<(), UpstreamFailure> {
        let write = || {
            let bits = self.read()?.map(|read| read.bits);
            let readers = bits.map_or(FilePermission::Owner, FilePermission::Bits);
            let (folder, name) = self.folder(HeldFolder::make_inner)?;
            folder.replace(&name, text.as_bytes(), readers)
        };
        write().map_err(|error: io::Error| self.unwritten(&error))
    }

    /// Removes the file, if there is one.
    pub(crate) fn remove(&self) -> Result<(), UpstreamFailure> {
        let remove = || {
            let (folder, name) = self.folder(|folder, name, _| folder.inner(name))?;
            folder.remove(&name)
        };
        match remove() {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.unwritten(&error)),
            _ => Ok(()),
        }
    }

    fn read(&self) -> io::Result<Option<HeldText>> {
        match self.folder(|folder, name, _| folder.inner(name)) {
            Ok((folder, name)) => folder.read(&name, TEXT_MAX_BYTES),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the folder of the file, each one on the way by `open`. Returns it with the file's name.
    fn folder(
        &self,
        open: impl Fn(&HeldFolder, &Path, u32) -> io::Result<HeldFolder>,
    ) -> io::Result<(HeldFolder, PathBuf)> {
        let name = self.below.file_name().ok_or(ErrorKind::InvalidInput)?;
        let mut folder = HeldFolder::open(&self.base)?;
        for part in self.below.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = part else {
                return Err(ErrorKind::InvalidInput.into());
            };
            let named = |error: io::Error| {
                let part = Path::new(part).display();
                io::Error::new(error.kind(), format!("`{part}`: {error}"))
            };
            folder = open(&folder, Path::new(part), 0o700).map_err(named)?;
        }
        Ok((folder, name.into()))
    }

    fn unwritten(&self, error: &io::Error) -> UpstreamFailure {
        UpstreamFailure::new(
            UpstreamFailureKind::Start,
            format!("{} to be writable", self.shown.display()),
            error.to_string(),
        )
    }
}

/// Returns the folder of what is kept of clients' files.
fn state_folder() -> Result<PathBuf, UpstreamFailure> {
    let folder = match set("XDG_STATE_HOME") {
        Some(folder) if folder.is_absolute() => folder,
        _ => home()?.join(".local/state"),
    };
    Ok(folder.join("weir/clients"))
}

/// Returns the path without links; a part that does not exist yet is kept as it is written. A link that leads to nothing
/// is an error.
fn real(path: &Path) -> io::Result<PathBuf> {
    let (there, below) = split_at_last_there(path);
    let real = there.canonicalize()?;
    Ok(match below.as_os_str().is_empty() {
        true => real,
        false => real.join(below),
    })
}

/// Splits a path after the last of its names that exists.
fn split_at_last_there(path: &Path) -> (&Path, &Path) {
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let there = path.ancestors().find(is_there).unwrap_or(Path::new("/"));
    (there, path.strip_prefix(there).unwrap_or(path))
}

pub(super) fn unreadable(file: &Path, cause: &str) -> UpstreamFailure {
    let expected = format!("{} to be readable", file.display());
    UpstreamFailure::new(UpstreamFailureKind::Start, expected, cause)
}

fn refused(file: &Path, cause: &str) -> UpstreamFailure {
    let expected = format!(
        "{} to be a file, or a link to one of yours below your home folder",
        file.display()
    );
    UpstreamFailure::new(UpstreamFailureKind::Start, expected, cause)
        .step("put the file itself there")
}
