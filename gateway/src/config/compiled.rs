//! The folder of compiled plugins.

use std::{
    env,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use super::GatewayConfig;

impl GatewayConfig {
    /// Returns the folder of compiled plugins. By default, the gateways of one user share a folder, so that each build is
    /// compiled once. A gateway that starts processes of other servers has its own: code in the folder is run, and such a process
    /// could write to the folder of the user.
    pub fn compiled_folder(&self) -> PathBuf {
        if let Some(configured) = &self.folders.cache {
            return configured.clone();
        }
        let own = self.folders.state.join("plugins");
        let starts_processes = self.upstreams.values().any(|it| !it.command.is_empty());
        match starts_processes || own.exists() {
            true => own,
            false => folder_of_user().unwrap_or(own),
        }
    }
}

/// Returns the folder of compiled plugins in the user's cache; `None` if another user could write to it, or if it cannot be
/// written.
pub(super) fn folder_of_user() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
    folder_in(&cache.filter(|path| path.is_absolute()).or_else(home)?)
}

fn folder_in(cache: &Path) -> Option<PathBuf> {
    // A user without a home has no such folder.
    if !cache.is_absolute() || !cache.parent()?.is_dir() {
        return None;
    }
    let folder = cache.join("weir").join("compiled");
    weir_files::create_folder(&folder, 0o700).ok()?;
    let user = rustix::process::geteuid().as_raw();
    let is_own = |path: &Path, refused: u32| {
        let metadata = path.symlink_metadata().or_else(|_| path.metadata());
        metadata.is_ok_and(|it| it.is_dir() && it.uid() == user && it.mode() & refused == 0)
    };
    let cache = cache.canonicalize().ok()?;
    let is_private = is_own(&cache, 0o022)
        && is_own(folder.parent()?, 0o022)
        && is_own(&folder, 0o077)
        && rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    is_private.then_some(folder)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let cache = home.path().join(".cache");
        let folder = folder_in(&cache).expect("it is made");
        assert_eq!(folder, cache.join("weir/compiled"));
        assert_eq!(folder_in(&cache), Some(folder.clone()), "it is there");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("its own");
        };
        for (path, open, closed) in [
            (&cache, 0o777, 0o700),
            (&cache.join("weir"), 0o770, 0o700),
            (&folder, 0o750, 0o700),
        ] {
            mode(path, open);
            assert_eq!(folder_in(&cache), None, "{}", path.display());
            mode(path, closed);
        }
        fs::remove_dir(&folder).expect("it is empty");
        symlink(home.path(), &folder).expect("a link in its place");
        assert_eq!(folder_in(&cache), None);
        assert_eq!(folder_in(Path::new("/nonexistent/.cache")), None);
        assert_eq!(folder_in(Path::new(".cache")), None);
    }

    #[test]
    fn a_gateway_that_starts_processes_has_a_folder_of_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let read = |text: &str| {
            let config = super::super::read("weir.toml", text, folder.path());
            config.expect("a configuration")
        };
        let own = folder.path().join(".weir/plugins");
        let starts = read("[upstreams.a]\ncommand = [\"a\"]");
        assert_eq!(starts.compiled_folder(), own);
        let asks = read("[upstreams.a]\nurl = \"https://a.example/mcp\"");
        assert_ne!(asks.compiled_folder(), own);
        let named = read("[folders]\ncache = \"there\"\n[upstreams.a]\ncommand = [\"a\"]");
        assert_eq!(named.compiled_folder(), folder.path().join("there"));
        fs::create_dir_all(&own).expect("of an earlier start");
        assert_eq!(asks.compiled_folder(), own);
    }
}
