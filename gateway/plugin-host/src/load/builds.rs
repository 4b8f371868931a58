//! Keeps the record of builds: which were accepted, and the builds themselves that published contracts were made from.
//!
//! All processes on one state share it. Whoever may write there may do anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{component, verdict::AcceptanceRecord};
use crate::signature::signature_path;

/// Accepted builds remembered of one plugin; going back to one of them needs no one's consent.
const ACCEPTED_MAX: usize = 32;
/// The bound on kept builds of each plugin; the one that was kept or used longest ago goes.
const KEPT_MAX: usize = 8;

/// What a component's file ends in, and a native library's.
const COMPONENT: &str = "wasm";
const LIBRARY: &str = "so";

/// Where the record is kept. Everything that reads or writes it is a function of this type.
#[derive(Clone)]
pub(super) struct BuildStore {
    /// The file with the digests of accepted builds; `None` means that no build is held.
    accepted: Option<PathBuf>,
    /// The folder of kept builds, `FOLDER/PLUGIN/DEFINITIONS-BUILD.wasm` or `.so`, two digests in hex: several processes
    /// share it, and none keeps a list.
    kept: Option<PathBuf>,
}

/// A file's time, inode and length: a time alone is too coarse for two writes in a row.
type FileStamp = (SystemTime, u64, u64);

/// sha256 of the accepted builds, by plugin, the newest last.
type AcceptedDigests = BTreeMap<String, Vec<String>>;

impl BuildStore {
    pub(super) fn new(accepted: Option<PathBuf>, kept: Option<PathBuf>) -> Self {
        Self { accepted, kept }
    }

    /// Returns the accepted builds of a plugin. The outer `None` means that no record is kept.
    fn accepted_builds(&self, plugin: &str) -> Result<Option<Option<Vec<String>>>, String> {
        let Some(path) = &self.accepted else {
            return Ok(None);
        };
        let mut builds = read_accepted(path).map_err(|error| unusable(path, &error))?;
        Ok(Some(builds.remove(plugin)))
    }

    /// Records an accepted build as the newest of its plugin.
    fn accept(&self, plugin: &str, digest: &str) -> Result<(), String> {
        let Some(path) = &self.accepted else {
            return Ok(());
        };
        let recorded = read_accepted(path).and_then(|mut builds| {
            let known = builds.entry(plugin.to_owned()).or_default();
            if known.last().is_some_and(|last| last == digest) {
                return Ok(());
            }
            known.retain(|known| known != digest);
            known.push(digest.to_owned());
            known.drain(..known.len().saturating_sub(ACCEPTED_MAX));
            let text = serde_json::to_vec_pretty(&builds).expect("plain data");
            weir_files::replace(path, &text, weir_files::Readers::Everyone)
        });
        recorded.map_err(|error| unusable(path, &error))
    }

    /// Tells one state of the accepted builds from the next.
    fn stamp(&self) -> Option<FileStamp> {
        let metadata = fs::metadata(self.accepted.as_deref()?).ok()?;
        Some((metadata.modified().ok()?, metadata.ino(), metadata.len()))
    }

    /// Keeps a build, with its signature beside it if it has one.
    pub(super) fn keep(
        &self,
        plugin: &str,
        definitions: &str,
        build: &KeptBuild<'_>,
    ) -> Result<(), String> {
        let Some(folder) = &self.kept else {
            return Ok(());
        };
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
            for (_, old) in by_age(&folder)?.into_iter().skip(KEPT_MAX) {
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
    pub(super) fn kept_builds(&self, plugin: &str, definitions: &str) -> Vec<PathBuf> {
        let Some(folder) = &self.kept else {
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

/// Which builds of the plugins that may write are accepted: another one waits until someone accepts it too.
pub(super) struct BuildAcceptance {
    store: BuildStore,
    /// Accepted by someone, and not loaded yet.
    coming: BTreeSet<String>,
    /// The record at the last look.
    seen: Option<FileStamp>,
}

impl BuildAcceptance {
    pub(super) fn new(store: BuildStore) -> Self {
        let seen = store.stamp();
        Self {
            store,
            coming: BTreeSet::new(),
            seen,
        }
    }

    /// Returns what the record says of a build, and why it cannot be read. `serves` is the digest of the build that serves
    /// now.
    pub(super) fn look_up(
        &self,
        plugin: &str,
        digest: &str,
        serves: Option<&str>,
    ) -> (AcceptanceRecord, Option<String>) {
        // An unreadable record accepts nothing but the build that serves already.
        if self.coming.contains(digest) || serves == Some(digest) {
            return (AcceptanceRecord::Accepted, None);
        }
        let record = match self.store.accepted_builds(plugin) {
            Ok(None) => AcceptanceRecord::Accepted,
            Ok(Some(Some(known))) if known.iter().any(|known| known == digest) => {
                AcceptanceRecord::Accepted
            }
            Ok(Some(None)) if serves.is_none() => AcceptanceRecord::First,
            Ok(_) => AcceptanceRecord::Other,
            Err(why) => return (AcceptanceRecord::Unreadable, Some(why)),
        };
        (record, None)
    }

    /// Notes that a build serves. It is recorded if another build of its plugin has to be accepted.
    pub(super) fn note(
        &mut self,
        plugin: &str,
        digest: &str,
        needs_acceptance: bool,
    ) -> Result<(), String> {
        self.coming.remove(digest);
        if !needs_acceptance {
            return Ok(());
        }
        let recorded = self.store.accept(plugin, digest);
        self.seen = self.store.stamp();
        recorded
    }

    /// Allows this build to load from now on.
    pub(super) fn approve(&mut self, digest: &str) {
        self.coming.insert(digest.to_owned());
    }

    /// Returns `true` if another process has accepted something since the last time this was asked.
    pub(super) fn has_changed(&mut self) -> bool {
        let now = self.store.stamp();
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// A build to be kept.
pub(super) struct KeptBuild<'a> {
    /// sha256, hex.
    pub(super) digest: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) signature: Option<&'a str>,
    pub(super) is_library: bool,
}

/// Returns the digest that a build was kept as.
pub(super) fn kept_digest(path: &Path) -> Option<&str> {
    Some(path.file_stem()?.to_str()?.rsplit_once('-')?.1)
}

pub(super) fn is_library(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == LIBRARY)
}

/// Returns the build's digest and bytes, if they are still those that were kept.
pub(super) fn read_kept(path: &Path) -> Result<(String, Vec<u8>), String> {
    let bytes =
        fs::read(path).map_err(|error| format!("the kept build cannot be read: {error}"))?;
    let digest = component::digest(&bytes);
    if kept_digest(path) != Some(&digest) {
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

/// Returns what is wrong with the file, and how to go on.
fn unusable(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::InvalidData => format!(
            "which builds were let in stands in {path}, which cannot be read: {error}. Put the file back from a backup, or \
             move it away, after which the first build of each plugin is let in; then `weir plugin reload`"
        ),
        _ => format!(
            "which builds were let in is kept in {path}: {error}. Give the gateway's user access to it and room on its \
             disk; then `weir plugin reload`"
        ),
    }
}

fn read_accepted(path: &Path) -> io::Result<AcceptedDigests> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AcceptedDigests::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eight_are_kept_and_one_that_was_changed_is_not_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = BuildStore::new(None, Some(folder.path().join("builds")));
        let build = |at: usize| format!("build {at}").into_bytes();
        for at in 0..10 {
            let bytes = build(at);
            let digest = component::digest(&bytes);
            let build = KeptBuild {
                digest: &digest,
                bytes: &bytes,
                signature: None,
                is_library: at >= 8,
            };
            kept.keep("p", &format!("definitions{}", at % 2), &build)
                .expect("kept");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let even = kept.kept_builds("p", "definitions0");
        assert_eq!(
            (
                even.len(),
                kept.kept_builds("p", "definitions1").len(),
                kept.kept_builds("q", "definitions0").len()
            ),
            (4, 4, 0)
        );
        assert_eq!(
            read_kept(&even[0]).expect("as it was").1,
            build(8),
            "the newest first"
        );
        fs::write(&even[0], "another").expect("written");
        assert!(
            read_kept(&even[0])
                .expect_err("changed")
                .contains("not what it was kept as")
        );
        remove(&even[0]).expect("it was there");
        remove(&even[0]).expect("another process has removed it");
    }
    #[test]
    fn another_build_waits_until_it_is_accepted() {
        use AcceptanceRecord::{Accepted, First, Other, Unreadable};
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accepted.json");
        let open = || BuildAcceptance::new(BuildStore::new(Some(path.clone()), None));
        let mut accepted = open();
        assert_eq!(
            accepted.look_up("sql", "one", None),
            (First, None),
            "it is what the operator put there"
        );
        assert_eq!(
            accepted.look_up("sql", "one", Some("zero")),
            (Other, None),
            "one serves that was not recorded"
        );
        accepted.note("sql", "one", true).expect("recorded");
        accepted.note("reads", "one", false).expect("not recorded");
        assert_eq!(accepted.look_up("reads", "one", None), (First, None));
        assert_eq!(accepted.look_up("sql", "two", Some("one")), (Other, None));
        assert_eq!(
            open().look_up("sql", "two", None),
            (Other, None),
            "in every process"
        );
        let mut other = open();
        accepted.approve("two");
        assert_eq!(
            accepted.look_up("sql", "two", Some("one")),
            (Accepted, None)
        );
        accepted.note("sql", "two", true).expect("recorded");
        assert!(
            other.has_changed() && !other.has_changed(),
            "another process learns of it"
        );
        assert_eq!(
            other.look_up("sql", "one", Some("two")),
            (Accepted, None),
            "a plugin may go back"
        );
        fs::write(&path, "{").expect("written");
        let (record, why) = other.look_up("sql", "three", Some("two"));
        let why = why.expect("a reason");
        assert_eq!(record, Unreadable);
        assert!(
            why.contains("accepted.json") && why.contains("move it away"),
            "{why}"
        );
        assert_eq!(other.look_up("sql", "two", Some("two")), (Accepted, None));
        let unkept = BuildAcceptance::new(BuildStore::new(None, None));
        assert_eq!(unkept.look_up("sql", "two", Some("one")), (Accepted, None));
    }
}
