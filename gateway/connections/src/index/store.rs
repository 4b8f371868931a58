//! The files of the indexes: their names, their bound, and what a crash left.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest, Sha256};

use super::IndexName;

/// The ending of an unfinished file's name, and that of a finished one's.
pub(super) const PART: &str = "part";
const DONE: &str = "index";

pub(super) fn path(folder: &Path, name: IndexName<'_>) -> PathBuf {
    folder.join(digest(name.plugin)).join(format!(
        "{}{}.{DONE}",
        of_version(name),
        digest(name.column)
    ))
}

/// Returns the beginning of the names of all indexes of one version of a source.
fn of_version(name: IndexName<'_>) -> String {
    format!("{}-{}-", digest(name.source), digest(name.version))
}

fn digest(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Creates the folder, readable only by its owner, since keys are values of the source.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Gives all indexes of one version to another one: the paths they had and have.
pub(super) fn rename(
    folder: &Path,
    old: IndexName<'_>,
    new: IndexName<'_>,
) -> io::Result<Vec<PathBuf>> {
    let mut renamed = Vec::new();
    let begins = of_version(old);
    for (path, name) in files(&folder.join(digest(old.plugin)))? {
        let Some(column) = name
            .strip_prefix(&begins)
            .filter(|column| column.ends_with(DONE))
        else {
            continue;
        };
        let to = path.with_file_name(format!("{}{column}", of_version(new)));
        match fs::rename(&path, &to) {
            Ok(()) => renamed.extend([path, to]),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(renamed)
}

/// Removes the indexes of other versions of the same source and column.
pub(super) fn drop_others(folder: &Path, name: IndexName<'_>) {
    let own = path(folder, name);
    let (begins, ends) = (
        format!("{}-", digest(name.source)),
        format!("-{}.{DONE}", digest(name.column)),
    );
    for (path, name) in files(&folder.join(digest(name.plugin))).unwrap_or_default() {
        if path != own && name.starts_with(&begins) && name.ends_with(&ends) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the least recently used until a tenth of the bound is free.
pub(super) fn make_room(folder: &Path, plugin: &str, bytes_max: u64) {
    let files = files(&folder.join(digest(plugin))).unwrap_or_default();
    let of = |path: PathBuf| {
        let metadata = fs::metadata(&path).ok()?;
        Some((
            metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            metadata.len(),
            path,
        ))
    };
    let done = files.into_iter().filter(|(_, name)| name.ends_with(DONE));
    let mut done: Vec<_> = done.filter_map(|(path, _)| of(path)).collect();
    done.sort();
    let mut bytes: u64 = done.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, size, path) in done {
        if bytes <= bytes_max - bytes_max / 10 {
            break;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= size;
        }
    }
}

/// Marks the index as used now.
pub(super) fn touch(path: &Path) {
    // A clock that cannot be set makes this one go first, and no more.
    let _ = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes abandoned parts: the lock of their builder went with its process.
pub(super) fn sweep(folder: &Path) {
    let plugins = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    for plugin in plugins.filter(|path| path.is_dir()) {
        for (path, name) in files(&plugin).unwrap_or_default() {
            let Some(stem) = name.strip_suffix(&format!(".{PART}")) else {
                continue;
            };
            // The sorted one has no separate lock.
            let owner = stem
                .strip_suffix(".sorted")
                .map_or(path.clone(), |stem| plugin.join(format!("{stem}.{PART}")));
            let is_free = File::open(owner).map_or(true, |file| file.try_lock().is_ok());
            if is_free {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn files(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let named = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.path(), entry.file_name().into_string().ok()?))
    });
    Ok(named.collect())
}
