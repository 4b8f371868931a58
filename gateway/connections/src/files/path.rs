//! Decides which texts name a file under a root.

use std::path::Path;

use crate::{ConnectionError, FailureCode};

const LENGTH_MAX_BYTES: usize = 1024;

/// A relative path of plain names. Whether it leaves the root through links is decided when it is opened.
#[derive(Clone, Debug)]
pub(super) struct RootedPath(String);

/// The beginning of paths: empty, `folder/`, or `folder/begin`.
#[derive(Clone, Debug)]
pub(super) struct PathPrefix {
    /// The folder to look in, empty for the root itself.
    pub(super) folder: String,
    pub(super) text: String,
}

impl RootedPath {
    pub(super) fn parse(path: &str) -> Result<Self, ConnectionError> {
        if path.is_empty() {
            return Err(refused("the path is empty"));
        }
        check(path)?;
        path.split('/').try_for_each(check_name)?;
        Ok(Self(path.to_owned()))
    }

    pub(super) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl PathPrefix {
    pub(super) fn parse(prefix: &str) -> Result<Self, ConnectionError> {
        check(prefix)?;
        let folder = match prefix.rsplit_once('/') {
            Some((folder, _)) => {
                folder.split('/').try_for_each(check_name)?;
                folder
            }
            None => "",
        };
        let begin = prefix.rsplit('/').next().unwrap_or_default();
        if !begin.is_empty() {
            check_name(begin)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            text: prefix.to_owned(),
        })
    }
}

/// Returns `true` for names that are neither listed nor opened: hidden files tend to hold credentials, and Weir's own
/// temporary file is hidden too.
pub(super) fn hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn check(path: &str) -> Result<(), ConnectionError> {
    if path.len() > LENGTH_MAX_BYTES {
        return Err(refused("the path is longer than 1,024 bytes"));
    }
    if path.starts_with('/') {
        return Err(refused(
            "the path must be relative to the folder of the connection",
        ));
    }
    if path.contains('\\') {
        return Err(refused("the path contains a backslash"));
    }
    if path.chars().any(char::is_control) {
        return Err(refused("the path contains a control character"));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), ConnectionError> {
    match name {
        "" => Err(refused("the path contains an empty name")),
        ".." | "." => Err(refused(
            "the path may not leave the folder of the connection",
        )),
        name if hidden(name) => Err(refused("hidden files are not reached")),
        _ => Ok(()),
    }
}

fn refused(message: &str) -> ConnectionError {
    ConnectionError::new(FailureCode::InvalidArguments, message).field("path")
}
