//! The files in which earlier versions kept what is in the database now. They are taken over in one transaction, and
//! removed after it: a process that is stopped between the two finds them again, and takes them over again.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::{SecretPurpose, StateError};

const SECRETS: [(SecretPurpose, &str); 2] = [
    (SecretPurpose::Cursors, "cursor.key"),
    (SecretPurpose::Arguments, "audit.key"),
];

/// Everything of a state folder that is to be taken over.
pub(crate) struct LegacyFiles {
    pub(crate) secrets: Vec<LegacySecret>,
}

pub(crate) struct LegacySecret {
    pub(crate) purpose: SecretPurpose,
    pub(crate) bytes: [u8; 32],
    path: PathBuf,
}

impl LegacyFiles {
    /// Reads them; `None` if there are none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, StateError> {
        let mut secrets = Vec::new();
        for (purpose, name) in SECRETS {
            secrets.extend(read_secret(purpose, folder.join(name))?);
        }
        let found = Self { secrets };
        Ok((!found.secrets.is_empty()).then_some(found))
    }

    /// Removes what was taken over. What cannot be removed is harmless, and tried again at the next start.
    pub(crate) fn remove(self) {
        for secret in self.secrets {
            remove_file(&secret.path);
        }
    }
}

impl LegacySecret {
    /// Warns of a file whose place another key has taken: it stays where it is.
    pub(crate) fn warn_unused(&self) {
        tracing::warn!(
            path = %self.path.display(),
            "this key is not the one in the state, which is used; remove the file if nothing else needs it"
        );
    }
}

fn read_secret(purpose: SecretPurpose, path: PathBuf) -> Result<Option<LegacySecret>, StateError> {
    let Some(bytes) = found(fs::read(&path), &path)? else {
        return Ok(None);
    };
    let mode = fs::metadata(&path).map_err(|error| unusable(&path, error))?;
    if purpose == SecretPurpose::Arguments && mode.permissions().mode() & 0o077 != 0 {
        let why = "others can read this key; chmod 600 it, or delete it for a new one";
        return Err(unusable(&path, why));
    }
    let bytes = bytes
        .try_into()
        .map_err(|_| unusable(&path, "this is not a key; delete it for a new one"))?;
    Ok(Some(LegacySecret {
        purpose,
        bytes,
        path,
    }))
}

/// Returns `None` where there is no such file or folder.
fn found<T>(read: std::io::Result<T>, path: &Path) -> Result<Option<T>, StateError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, error)),
    }
}

fn unusable(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StateError {
    StateError::Open {
        path: path.to_owned(),
        error: error.into(),
    }
}

fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "this file was taken over into the state and cannot be removed");
    }
}
