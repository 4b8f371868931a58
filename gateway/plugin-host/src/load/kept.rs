//! Builds that were let in, kept beside the state: what a published contract was promised can be run again, after a
//! rollback and at a start that finds another build in the folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::component;
use crate::signature::signature_path;

/// The bound on builds of each plugin; the one that was kept or used longest ago goes.
const BUILDS_MAX: usize = 8;

/// What a component's file ends in, and a native library's.
const COMPONENT: &str = "wasm";
const LIBRARY: &str = "so";

/// `FOLDER/PLUGIN/DEFINITIONS-BUILD.wasm` or `.so`, two digests in hex: several processes share it, and none keeps a list.
#[derive(Clone)]
pub(super) struct Kept(Option<PathBuf>);

impl Kept {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// Keeps a build, with its signature beside it if it has one.
    pub(super) fn keep(
        &self,
        plugin: &str,
        definitions: &str,
        build: &Build<'_>,
    ) -> Result<(), String> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let folder = folder.join(plugin);
        let kind = if build.is_library { LIBRARY } else { COMPONENT };
        let path = folder.join(format!("{definitions}-{}.{kind}", build.digest));
        let kept = || {
            weir_files::create_folder(&folder, 0o700)?;
            if let Some(signature) = build.signature {
                weir_files::replace(
                    &signature_path(&path),
                    signature.as_bytes(),
                    weir_files::Readers::Owner,
                )?;
            }
            if path.exists() {
                return touch(&path);
            }
            weir_files::replace(&path, build.bytes, weir_files::Readers::Owner)?;
            for (_, old) in by_age(&folder)?.into_iter().skip(BUILDS_MAX) {
                let _ = fs::remove_file(signature_path(&old)); // most have none
                remove(&old)?;
            }
            Ok(())
        };
        kept().map_err(|error: io::Error| {
            format!(
                "builds that were let in are kept in {}: {error}. Give the gateway's user access to it and room on its \
                 disk; then `weir plugin reload`",
                folder.display()
            )
        })
    }

    /// Returns the builds with these definitions, the newest first.
    pub(super) fn builds(&self, plugin: &str, definitions: &str) -> Vec<PathBuf> {
        let Some(folder) = &self.0 else {
            return Vec::new();
        };
        let begins = format!("{definitions}-");
        let of_these = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&begins))
        };
        let all = by_age(&folder.join(plugin)).unwrap_or_default();
        all.into_iter()
            .map(|(_, path)| path)
            .filter(of_these)
            .collect()
    }
}

/// A build to be kept.
pub(super) struct Build<'a> {
    /// sha256, hex.
    pub(super) digest: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) signature: Option<&'a str>,
    pub(super) is_library: bool,
}

/// Returns the digest that a build was kept as.
pub(super) fn digest(path: &Path) -> Option<&str> {
    Some(path.file_stem()?.to_str()?.rsplit_once('-')?.1)
}

pub(super) fn is_library(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == LIBRARY)
}

/// Returns the build's digest and bytes, if they are still those that were kept.
pub(super) fn read(path: &Path) -> Result<(String, Vec<u8>), String> {
    let bytes =
        fs::read(path).map_err(|error| format!("the kept build cannot be read: {error}"))?;
    let digest = component::digest(&bytes);
    if self::digest(path) != Some(&digest) {
        return Err("the kept build is not what it was kept as".to_owned());
    }
    touch(path).map_err(|error| format!("the kept build: {error}"))?;
    Ok((digest, bytes))
}

/// Removes a file that another process over the same state may have removed already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn touch(path: &Path) -> io::Result<()> {
    fs::File::options()
        .append(true)
        .open(path)?
        .set_modified(SystemTime::now())
}

/// Returns the builds, the newest first.
fn by_age(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == COMPONENT || extension == LIBRARY)
        {
            // Another process may be removing it.
            found.extend(
                fs::metadata(&path)
                    .and_then(|metadata| metadata.modified())
                    .map(|at| (at, path)),
            );
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eight_are_kept_and_one_that_was_changed_is_not_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::new(Some(folder.path().join("builds")));
        let build = |at: usize| format!("build {at}").into_bytes();
        for at in 0..10 {
            let bytes = build(at);
            let digest = component::digest(&bytes);
            let build = Build {
                digest: &digest,
                bytes: &bytes,
                signature: None,
                is_library: at >= 8,
            };
            kept.keep("p", &format!("definitions{}", at % 2), &build)
                .expect("kept");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let even = kept.builds("p", "definitions0");
        assert_eq!(
            (
                even.len(),
                kept.builds("p", "definitions1").len(),
                kept.builds("q", "definitions0").len()
            ),
            (4, 4, 0)
        );
        assert_eq!(
            read(&even[0]).expect("as it was").1,
            build(8),
            "the newest first"
        );
        fs::write(&even[0], "another").expect("written");
        assert!(
            read(&even[0])
                .expect_err("changed")
                .contains("not what it was kept as")
        );
        remove(&even[0]).expect("it was there");
        remove(&even[0]).expect("another process has removed it");
    }
}
