//! Listing the files under a root.

use std::path::Path;

use cap_std::fs::Dir;

use super::{
    FileListing, failed,
    path::{PathPrefix, hidden},
    root::OpenRoot,
};
use crate::{ConnectionError, FailureCode};

const PAGE_MAX: usize = 1000;
const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 16;

pub(super) fn list(
    root: &OpenRoot,
    prefix: &PathPrefix,
    cursor: Option<&str>,
) -> Result<FileListing, ConnectionError> {
    let mut walk = FolderWalk {
        root,
        prefix: &prefix.text,
        paths: Vec::new(),
        entries: 0,
    };
    let base = if prefix.folder.is_empty() {
        String::new()
    } else {
        format!("{}/", prefix.folder)
    };
    walk.folder(&root.folder(Path::new(&prefix.folder))?, &base, 0)?;
    let mut paths = walk.paths;
    paths.sort_unstable();
    if let Some(cursor) = cursor {
        paths.retain(|path| path.as_str() > cursor);
    }
    let next = (paths.len() > PAGE_MAX).then(|| paths[PAGE_MAX - 1].clone());
    paths.truncate(PAGE_MAX);
    Ok(FileListing { paths, next })
}

struct FolderWalk<'a> {
    root: &'a OpenRoot,
    prefix: &'a str,
    paths: Vec<String>,
    entries: usize,
}

impl FolderWalk<'_> {
    fn folder(&mut self, folder: &Dir, base: &str, depth: usize) -> Result<(), ConnectionError> {
        for entry in folder.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(ConnectionError::new(
                    FailureCode::TooLarge,
                    "the folder contains more than 100,000 entries",
                ));
            }
            // A name that is not Unicode cannot be asked for, so it is not offered.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{base}{name}");
            let on_the_way = path.starts_with(self.prefix) || self.prefix.starts_with(&path);
            if hidden(&name)
                || name.contains('\\')
                || name.chars().any(char::is_control)
                || !on_the_way
            {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && depth < DEPTH_MAX {
                if let Some(inner) = self.root.inner(folder, Path::new(&name))? {
                    self.folder(&inner, &format!("{path}/"), depth + 1)?;
                }
            } else if path.starts_with(self.prefix)
                && (kind.is_file() || (kind.is_symlink() && folder.is_file(&name)))
            {
                self.paths.push(path);
            }
        }
        Ok(())
    }
}
