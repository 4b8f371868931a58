//! Keeps which builds of the plugins that may write have been accepted: another one waits until someone accepts it too.
//!
//! They stand in one small file in the state folder, which all processes on that state share. Whoever may write there
//! may do anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{Grant, PluginConfig};

/// Builds remembered of one plugin; going back to one of them needs nobody.
const BUILDS_MAX: usize = 32;

/// A file's time, inode and length: a time alone is too coarse for two writes in a row.
type Stamp = (SystemTime, u64, u64);

/// sha256 of the builds, by plugin, the newest last.
type Builds = BTreeMap<String, Vec<String>>;

pub(super) struct Accepted {
    /// The file; `None` means that no build is held.
    path: Option<PathBuf>,
    /// Let in by someone, and not loaded yet.
    coming: BTreeSet<String>,
    /// The file at the last look.
    seen: Option<Stamp>,
}

impl Accepted {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        let seen = path.as_deref().and_then(stamp);
        Self {
            path,
            coming: BTreeSet::new(),
            seen,
        }
    }

    /// Returns whether the build waits, or an error if that cannot be told. `serves` is the digest of the build that
    /// serves now.
    pub(super) fn holds(
        &self,
        name: &str,
        config: &PluginConfig,
        digest: &str,
        serves: Option<&str>,
    ) -> Result<bool, String> {
        let Some(path) = self.path.as_deref().filter(|_| is_watched(config)) else {
            return Ok(false);
        };
        // An unreadable file accepts nothing but the build that serves already.
        if self.coming.contains(digest) || serves == Some(digest) {
            return Ok(false);
        }
        let builds = read(path).map_err(|error| unusable(path, &error))?;
        Ok(match builds.get(name) {
            Some(known) => !known.iter().any(|known| known == digest),
            None => serves.is_some(),
        })
    }

    /// Notes that the build was accepted, or is the first.
    pub(super) fn note(
        &mut self,
        name: &str,
        config: &PluginConfig,
        digest: &str,
    ) -> Result<(), String> {
        self.coming.remove(digest);
        let Some(path) = self.path.as_deref().filter(|_| is_watched(config)) else {
            return Ok(());
        };
        let noted = read(path).and_then(|mut builds| {
            let known = builds.entry(name.to_owned()).or_default();
            if known.last().is_some_and(|last| last == digest) {
                return Ok(());
            }
            known.retain(|known| known != digest);
            known.push(digest.to_owned());
            known.drain(..known.len().saturating_sub(BUILDS_MAX));
            let text = serde_json::to_vec_pretty(&builds).expect("plain data");
            weir_files::replace(path, &text, weir_files::Readers::Everyone)
        });
        self.seen = stamp(path);
        noted.map_err(|error| unusable(path, &error))
    }

    /// Allows this build to load from now on.
    pub(super) fn approve(&mut self, digest: &str) {
        self.coming.insert(digest.to_owned());
    }

    /// Returns `true` if another process has accepted something since the last time this was asked.
    pub(super) fn has_changed(&mut self) -> bool {
        let now = self.path.as_deref().and_then(stamp);
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// Returns `true` if the plugin may write, no pin says which file it is, and nobody is developing it.
fn is_watched(config: &PluginConfig) -> bool {
    config.sha256.is_empty()
        && !config.dev
        && config.grants.values().any(|grant| *grant == Grant::Write)
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

fn read(path: &Path) -> io::Result<Builds> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Builds::new()),
        Err(error) => Err(error),
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.ino(), metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_write() -> PluginConfig {
        PluginConfig {
            grants: [("db".to_owned(), Grant::Write)].into(),
            ..PluginConfig::default()
        }
    }

    #[test]
    fn another_build_waits_until_it_is_let_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accepted.json");
        let (mut accepted, config) = (Accepted::new(Some(path.clone())), may_write());
        assert_eq!(
            accepted.holds("sql", &config, "one", None),
            Ok(false),
            "the first is what the operator put there"
        );
        accepted.note("sql", &config, "one").expect("kept");
        assert_eq!(accepted.holds("sql", &config, "two", Some("one")), Ok(true));
        assert_eq!(
            Accepted::new(Some(path.clone())).holds("sql", &config, "two", None),
            Ok(true),
            "whoever looks"
        );
        let mut other = Accepted::new(Some(path.clone()));
        accepted.approve("two");
        assert_eq!(
            accepted.holds("sql", &config, "two", Some("one")),
            Ok(false)
        );
        accepted.note("sql", &config, "two").expect("kept");
        assert!(
            other.has_changed() && !other.has_changed(),
            "another process learns of it"
        );
        assert_eq!(
            other.holds("sql", &config, "one", Some("two")),
            Ok(false),
            "going back needs nobody"
        );
        fs::write(path, "{").expect("written");
        let unsure = other
            .holds("sql", &config, "three", Some("two"))
            .expect_err("what cannot be read lets nothing in");
        assert!(
            unsure.contains("accepted.json") && unsure.contains("move it away"),
            "{unsure}"
        );
        assert_eq!(other.holds("sql", &config, "two", Some("two")), Ok(false));
    }

    #[test]
    fn who_cannot_write_is_pinned_or_being_worked_on_never_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let accepted = Accepted::new(Some(folder.path().join("accepted.json")));
        let read = PluginConfig {
            grants: [("db".to_owned(), Grant::Read)].into(),
            ..PluginConfig::default()
        };
        let pinned = PluginConfig {
            sha256: vec!["two".to_owned()],
            ..may_write()
        };
        let dev = PluginConfig {
            dev: true,
            ..may_write()
        };
        for config in [read, pinned, dev] {
            assert_eq!(
                accepted.holds("sql", &config, "two", Some("one")),
                Ok(false),
                "{config:?}"
            );
        }
    }
}
