//! The contracts folder: which files count, and when one has changed.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::{Path, PathBuf},
    time::SystemTime,
};

use weir_contracts::{FileProblem, form, lock};

/// The suffix of the file name of a lock.
const LOCK: &str = ".lock.json";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceStamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl SourceStamp {
    fn from_metadata(meta: &Metadata) -> Self {
        Self {
            modified: meta.modified().ok(),
            bytes: meta.len(),
        }
    }
}

/// Returns the stamp of a file; `None` if there is no file.
pub(super) fn stamp(path: &Path) -> Option<SourceStamp> {
    Some(SourceStamp::from_metadata(&path.metadata().ok()?))
}

/// Lists `*.yaml`, `*.yml` and `*.json` at the top of the folder, except `*.lock.json`. A folder that does not exist is
/// empty.
pub(super) fn list(folder: &Path) -> Result<BTreeMap<PathBuf, SourceStamp>, FileProblem> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => {
            return Err(FileProblem::new(
                &folder.display().to_string(),
                "",
                format!("cannot be read: {error}"),
            ));
        }
    };
    let mut found = BTreeMap::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let counts = [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| name.ends_with(end));
        if !counts || name.starts_with('.') || name.ends_with(LOCK) {
            continue;
        }
        if let Ok(meta) = path.metadata()
            && meta.is_file()
        {
            found.insert(path, SourceStamp::from_metadata(&meta));
        }
    }
    Ok(found)
}

/// Returns the name of the folder as a contract's owner: with links resolved, so that each folder has one name.
pub(super) fn owner(folder: &Path) -> String {
    let whole = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder));
    whole
        .unwrap_or_else(|_| folder.to_owned())
        .display()
        .to_string()
}

/// Returns the stamp of the lock of a contract file; `None` if there is no lock.
pub(super) fn lock_stamp(path: &Path, name: &str) -> Option<SourceStamp> {
    stamp(&path.with_file_name(format!("{name}{LOCK}")))
}

/// Reads a file that people write: a contract, or the overlay of a server.
pub(super) fn read(path: &Path) -> Result<String, FileProblem> {
    bounded(path, form::FILE_BYTES_MAX)
}

fn bounded(path: &Path, bytes_max: usize) -> Result<String, FileProblem> {
    let problem = |message: String| FileProblem::new(&path.display().to_string(), "", message);
    let unreadable = |error: std::io::Error| problem(format!("cannot be read: {error}"));
    if path.metadata().map_err(unreadable)?.len() > bytes_max as u64 {
        return Err(problem(format!("is larger than {} MiB", bytes_max >> 20)));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Returns the names of the contracts that have a lock in this folder.
pub(super) fn locked(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let name =
        |entry: std::fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(LOCK)?.to_owned());
    entries.filter_map(|entry| name(entry.ok()?)).collect()
}

/// Returns the path of the lock of a contract: `NAME.lock.json`, by the contract's name.
pub fn lock_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{LOCK}"))
}

/// Reads the lock of a contract, if it has one.
pub(super) fn lock_text(
    folder: &Path,
    name: &str,
) -> Option<(PathBuf, Result<String, FileProblem>)> {
    let path = lock_path(folder, name);
    path.exists()
        .then(|| (path.clone(), bounded(&path, lock::FILE_BYTES_MAX)))
}
