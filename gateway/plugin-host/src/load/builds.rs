//! Keeps the record of builds: which were accepted, and the builds themselves that published contracts were made from.
//!
//! It is in the state, which all processes of a gateway share.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;
use weir_state::{BuildKind, GatewayState, KeptBuildRow, NewBuild, StateError};

use super::{component, verdict::AcceptanceRecord};
use crate::config::HeldBuilds;

/// The store of the record. Everything that reads or writes it is a function of this type.
#[derive(Clone)]
pub(super) struct BuildStore {
    /// `None` means that nothing is recorded.
    state: Option<Arc<GatewayState>>,
    holds_builds: HeldBuilds,
}

impl BuildStore {
    pub(super) fn new(state: Option<Arc<GatewayState>>, holds_builds: HeldBuilds) -> Self {
        Self {
            state,
            holds_builds,
        }
    }

    /// Returns the feed of changes, each of which is a reason to look at the record again.
    pub(super) fn changes(&self) -> Option<watch::Receiver<i64>> {
        self.state.as_ref().map(|state| state.changes())
    }

    fn acceptances(&self) -> Option<&GatewayState> {
        let state = self.state.as_deref();
        state.filter(|_| self.holds_builds != HeldBuilds::None)
    }

    /// Returns the accepted builds of a plugin, if a record of them is kept.
    async fn accepted_builds(&self, plugin: &str) -> Result<Option<Vec<String>>, String> {
        let Some(state) = self.acceptances() else {
            return Ok(None);
        };
        let builds = state.accepted_builds(plugin).await.map_err(unusable)?;
        Ok(Some(builds.into_iter().map(|build| build.digest).collect()))
    }

    /// Records an accepted build as the newest of its plugin. While a copy of the state is read nothing can be recorded: the next
    /// start does it, unless an admin has just accepted the build, which a later start could not know.
    async fn accept(&self, plugin: &str, digest: &str, by: Option<&str>) -> Result<(), String> {
        let state = self.acceptances();
        let Some(state) = state.filter(|_| self.holds_builds == HeldBuilds::WhileServing) else {
            return Ok(());
        };
        if by.is_none() && state.reads_copy() {
            return Ok(());
        }
        state
            .accept_build(plugin, digest, by, now_ms())
            .await
            .map_err(unusable)
    }

    /// Returns a number that identifies the state of the accepted builds; `None` if it cannot be read now.
    async fn last_acceptance(&self) -> Option<i64> {
        self.acceptances()?.last_acceptance().await.ok()
    }

    /// Keeps a build, with its signature next to it if it has one.
    pub(super) async fn keep(&self, build: NewBuild) -> Result<(), String> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        state.keep_build(build).await.map_err(unusable)
    }

    /// Returns the builds with these definitions and the files of their content, the last used first.
    pub(super) async fn kept_builds(
        &self,
        plugin: &str,
        definitions: &str,
    ) -> Result<Vec<(KeptBuildRow, PathBuf)>, String> {
        let Some(state) = &self.state else {
            return Ok(Vec::new());
        };
        let builds = state.kept_builds(plugin, definitions).await;
        let builds = builds.map_err(unusable)?;
        let mut files = Vec::with_capacity(builds.len());
        for build in builds {
            let path = state.fetch_content(&build).await.map_err(unusable)?;
            files.push((build, path));
        }
        Ok(files)
    }

    /// Returns the digests of the builds with these definitions; none where the state cannot be read.
    pub(super) async fn kept_digests(&self, plugin: &str, definitions: &str) -> Vec<String> {
        let Some(state) = &self.state else {
            return Vec::new();
        };
        let builds = state.kept_builds(plugin, definitions).await;
        let builds = builds.unwrap_or_default().into_iter();
        builds.map(|build| build.digest).collect()
    }

    /// Notes that a kept build is used, so that others make room before it.
    pub(super) async fn note_use(&self, build: &KeptBuildRow) {
        if let Some(state) = &self.state
            && let Err(error) = state.use_build(build, now_ms()).await
        {
            tracing::warn!(plugin = build.plugin, %error, "the use of a kept build is not noted");
        }
    }
}

/// The accepted builds of plugins that may write: another build waits until an admin accepts it too.
pub(super) struct BuildAcceptance {
    store: BuildStore,
    /// The digests of accepted builds that are not loaded yet, with their approvers.
    coming: BTreeMap<String, String>,
    /// The record at the last look.
    seen: Option<i64>,
}

impl BuildAcceptance {
    pub(super) fn new(store: BuildStore) -> Self {
        Self {
            store,
            coming: BTreeMap::new(),
            seen: None,
        }
    }

    /// Returns what is recorded about a build, and why it cannot be read. `serves` is the digest of the build that serves
    /// now.
    pub(super) async fn look_up(
        &self,
        plugin: &str,
        digest: &str,
        serves: Option<&str>,
    ) -> (AcceptanceRecord, Option<String>) {
        // An unreadable record accepts nothing but the build that serves already.
        if self.coming.contains_key(digest) || serves == Some(digest) {
            return (AcceptanceRecord::Accepted, None);
        }
        let record = match self.store.accepted_builds(plugin).await {
            Ok(None) => AcceptanceRecord::Accepted,
            Ok(Some(known)) if known.iter().any(|known| known == digest) => {
                AcceptanceRecord::Accepted
            }
            Ok(Some(known)) if known.is_empty() && serves.is_none() => AcceptanceRecord::First,
            Ok(_) => AcceptanceRecord::Other,
            Err(why) => return (AcceptanceRecord::Unreadable, Some(why)),
        };
        (record, None)
    }

    /// Notes that a build serves. It is recorded if another build of its plugin has to be accepted.
    pub(super) async fn note(
        &mut self,
        plugin: &str,
        digest: &str,
        needs_acceptance: bool,
    ) -> Result<(), String> {
        let by = self.coming.remove(digest);
        if !needs_acceptance {
            return Ok(());
        }
        let before = self.store.last_acceptance().await;
        let recorded = self.store.accept(plugin, digest, by.as_deref()).await;
        // What another process accepted since the last look is still to be looked at.
        if before.is_some() && before == self.seen {
            self.seen = self.store.last_acceptance().await.or(self.seen);
        }
        recorded
    }

    /// Allows this build to load from now on.
    pub(super) fn approve(&mut self, digest: &str, by: &str) {
        self.coming.insert(digest.to_owned(), by.to_owned());
    }

    /// Returns `true` if another process has accepted something since the last time this was asked.
    pub(super) async fn has_changed(&mut self) -> bool {
        let Some(now) = self.store.last_acceptance().await else {
            return false;
        };
        self.seen.replace(now).is_some_and(|before| before != now)
    }
}

/// Returns the digest that a build was kept as.
pub(super) fn kept_digest(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}

pub(super) fn is_library(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == BuildKind::Library.as_str())
}

/// Returns the build's digest and bytes, if they are still those that were kept.
pub(super) fn read_kept(path: &Path) -> Result<(String, Vec<u8>), String> {
    let bytes =
        fs::read(path).map_err(|error| format!("the kept build cannot be read: {error}"))?;
    let digest = component::digest(&bytes);
    if kept_digest(path) != Some(&digest) {
        return Err("the kept build is not what it was kept as".to_owned());
    }
    Ok((digest, bytes))
}

/// Removes a file that another process over the same state may have removed already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_millis() as i64)
}

/// Explains why the state is needed, and the remedy.
fn unusable(error: StateError) -> String {
    format!(
        "accepted builds are recorded in the state, and {error}. Give the gateway's user access to it and room on \
         its disk; then `weir plugin reload`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_build_that_was_changed_is_not_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let digest = component::digest(b"build");
        let path = folder.path().join(format!("{digest}.wasm"));
        fs::write(&path, "build").expect("written");
        assert_eq!(read_kept(&path).expect("as it was").1, b"build");
        fs::write(&path, "another").expect("written");
        let changed = read_kept(&path).expect_err("changed");
        assert!(changed.contains("not what it was kept as"), "{changed}");
        remove(&path).expect("it was there");
        remove(&path).expect("another process has removed it");
    }

    #[tokio::test]
    async fn another_build_waits_until_it_is_accepted() {
        use AcceptanceRecord::{Accepted, First, Other};
        let folder = tempfile::tempdir().expect("a folder");
        let state = GatewayState::open(folder.path()).await.expect("a state");
        let state = Arc::new(state);
        let with = |held| BuildAcceptance::new(BuildStore::new(Some(state.clone()), held));
        let open = || with(HeldBuilds::WhileServing);
        let mut accepted = open();
        assert_eq!(
            accepted.look_up("sql", "one", None).await,
            (First, None),
            "it is what the operator put there"
        );
        assert_eq!(
            accepted.look_up("sql", "one", Some("zero")).await,
            (Other, None),
            "one serves that was not recorded"
        );
        accepted.note("sql", "one", true).await.expect("recorded");
        accepted
            .note("reads", "one", false)
            .await
            .expect("not recorded");
        assert_eq!(accepted.look_up("reads", "one", None).await, (First, None));
        assert_eq!(
            accepted.look_up("sql", "two", Some("one")).await,
            (Other, None)
        );
        let mut other = open();
        assert_eq!(
            other.look_up("sql", "two", None).await,
            (Other, None),
            "in every process"
        );
        assert!(!other.has_changed().await, "the first look");
        accepted.approve("two", "ann");
        assert_eq!(
            accepted.look_up("sql", "two", Some("one")).await,
            (Accepted, None)
        );
        accepted.note("sql", "two", true).await.expect("recorded");
        assert!(
            other.has_changed().await && !other.has_changed().await,
            "another process learns of it"
        );
        assert!(!accepted.has_changed().await, "this one knows");
        assert_eq!(
            other.look_up("sql", "one", Some("two")).await,
            (Accepted, None),
            "a plugin may go back"
        );
        let mut command = with(HeldBuilds::All);
        assert_eq!(command.look_up("sql", "three", None).await, (Other, None));
        assert_eq!(command.look_up("sql", "two", None).await, (Accepted, None));
        for plugin in ["sql", "new"] {
            let noted = command.note(plugin, "three", true).await;
            noted.expect("a command records nothing");
        }
        assert_eq!(command.look_up("new", "four", None).await, (First, None));
        assert_eq!(other.look_up("sql", "three", None).await, (Other, None));
        let builds = state.accepted_builds("sql").await.expect("read");
        assert_eq!(builds[1].accepted_by.as_deref(), Some("ann"));
    }
}
