//! Roots in memory, with versions, and a second writer on demand.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::files::{Info, Listing, READ_MAX};

type Path = (String, String);
type OtherWriter = Box<dyn FnMut()>;

#[derive(Default)]
struct Roots {
    files: BTreeMap<Path, (u64, Vec<u8>)>,
    writes: u64,
    reads: u64,
    before_replace: Option<OtherWriter>,
    before_read: Option<OtherWriter>,
}

thread_local! { static ROOTS: RefCell<Roots> = RefCell::default(); }

/// Puts a file there, as another program would.
pub fn put(root: &str, path: &str, content: impl Into<Vec<u8>>) {
    ROOTS.with_borrow_mut(|roots| {
        roots.writes += 1;
        let version = roots.writes;
        roots.files.insert(
            (root.to_owned(), path.to_owned()),
            (version, content.into()),
        );
    });
}

/// Removes a file, as another program would.
pub fn remove(root: &str, path: &str) {
    ROOTS.with_borrow_mut(|roots| roots.files.remove(&(root.to_owned(), path.to_owned())));
}

/// Returns what a file holds now.
pub fn content(root: &str, path: &str) -> Option<Vec<u8>> {
    ROOTS.with_borrow(|roots| {
        roots
            .files
            .get(&(root.to_owned(), path.to_owned()))
            .map(|(_, content)| content.clone())
    })
}

/// Returns the number of reads, to see what a cache saved.
pub fn reads() -> u64 {
    ROOTS.with_borrow(|roots| roots.reads)
}

/// Runs before each `replace`: here a test lets another writer come first.
pub fn before_replace(act: impl FnMut() + 'static) {
    ROOTS.with_borrow_mut(|roots| roots.before_replace = Some(Box::new(act)));
}

/// Runs before each `read`: here a test lets another writer work in the meantime.
pub fn before_read(act: impl FnMut() + 'static) {
    ROOTS.with_borrow_mut(|roots| roots.before_read = Some(Box::new(act)));
}

/// Answers [`crate::files::stat`].
pub fn stat(root: &str, path: &str) -> Result<Info> {
    with_file(root, path, |version, content| Info {
        version: version.to_string(),
        size: content.len() as u64,
    })
}

/// Answers [`crate::files::read`].
pub fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
    if let Some(mut act) = ROOTS.with_borrow_mut(|roots| roots.before_read.take()) {
        act();
        ROOTS.with_borrow_mut(|roots| roots.before_read = Some(act));
    }
    ROOTS.with_borrow_mut(|roots| roots.reads += 1);
    with_file(root, path, |_, content| {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(content.len());
        let end = start
            .saturating_add(length.min(READ_MAX) as usize)
            .min(content.len());
        content[start..end].to_vec()
    })
}

/// Answers [`crate::files::replace`].
pub fn replace(root: &str, path: &str, if_version: Option<&str>, content: &[u8]) -> Result<String> {
    // The action is taken out while it runs, so that it may write files itself.
    if let Some(mut act) = ROOTS.with_borrow_mut(|roots| roots.before_replace.take()) {
        act();
        ROOTS.with_borrow_mut(|roots| roots.before_replace = Some(act));
    }
    if let Some(expected) = if_version {
        let current = stat(root, path).ok().map(|info| info.version);
        if current.as_deref() != Some(expected) {
            return Err(Error::conflict(format!("{path} has changed.")));
        }
    }
    put(root, path, content);
    Ok(stat(root, path)?.version)
}

/// Answers [`crate::files::list`].
pub fn list(root: &str, prefix: &str, _cursor: Option<&str>) -> Result<Listing> {
    let paths = ROOTS.with_borrow(|roots| {
        let of_root = roots
            .files
            .keys()
            .filter(|(of, path)| of == root && path.starts_with(prefix));
        of_root.map(|(_, path)| path.clone()).collect()
    });
    Ok(Listing { paths, next: None })
}

/// Parts of the same files.
pub(crate) mod parts {
    use super::{Result, content, read_whole};
    use crate::files::{Edit, PARTS_MAX, Part};

    pub(crate) fn read(root: &str, path: &str, parts: &[Part]) -> Result<Vec<Vec<u8>>> {
        assert!(
            parts.iter().map(|part| part.length as usize).sum::<usize>() <= PARTS_MAX,
            "too much at once"
        );
        let whole = read_whole(root, path)?;
        let part = |part: &Part| {
            let start = usize::try_from(part.at)
                .unwrap_or(usize::MAX)
                .min(whole.len());
            whole[start..start.saturating_add(part.length as usize).min(whole.len())].to_vec()
        };
        Ok(parts.iter().map(part).collect())
    }

    pub(crate) fn replace(
        root: &str,
        path: &str,
        if_version: &str,
        edits: &[Edit],
    ) -> Result<String> {
        let old = content(root, path).unwrap_or_default();
        let (mut new, mut at) = (Vec::new(), 0);
        for edit in edits {
            new.extend_from_slice(&old[at..edit.at as usize]);
            new.extend_from_slice(&edit.content);
            at = (edit.at + edit.length) as usize;
        }
        new.extend_from_slice(&old[at..]);
        super::replace(root, path, Some(if_version), &new)
    }
}

fn read_whole(root: &str, path: &str) -> Result<Vec<u8>> {
    ROOTS.with_borrow_mut(|roots| roots.reads += 1);
    with_file(root, path, |_, content| content.to_vec())
}

fn with_file<T>(root: &str, path: &str, act: impl FnOnce(u64, &[u8]) -> T) -> Result<T> {
    ROOTS.with_borrow(
        |roots| match roots.files.get(&(root.to_owned(), path.to_owned())) {
            Some((version, content)) => Ok(act(*version, content)),
            None if roots.files.keys().any(|(of, _)| of == root) => {
                Err(Error::not_found(format!("There is no {path}.")))
            }
            None => Err(Error::denied(format!(
                "The files of {root:?} are not granted."
            ))),
        },
    )
}

pub(super) fn reset() {
    // Versions keep counting: an adapter's cache outlives a reset, and must not take a new file for an old one.
    ROOTS.with_borrow_mut(|roots| {
        *roots = Roots {
            writes: roots.writes,
            ..Roots::default()
        }
    });
}
