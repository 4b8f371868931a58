//! Native libraries: only those that the configuration names, each with its digest.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use super::{
    BuildPlace, BuildRefusal, BuildSource, LoadPhase, LoadReport, PluginLoader, PluginSlot,
    PreparedComponent, builds, check_pin, component, report,
};
use crate::{
    LibraryConfig, PluginConfig,
    engine::EngineSize,
    library::LibraryCode,
    plugin::{LoadedPlugin, PluginCode, PluginDescription},
    signature,
};

/// A larger file is refused unread.
const FILE_MAX_BYTES: u64 = 256 << 20;
/// The bound on copies. Those that were loaded last are kept, since children of other processes over this state may
/// still start from theirs. Copies that this process runs are kept whatever their age.
const COPIES_MAX: usize = 16;
/// The extension of copies. Other files in the folder are left alone.
const COPY: &str = "so";

/// The loader's knowledge about one library of the configuration, by the plugin's name.
#[derive(Default)]
pub(super) struct TrackedLibrary {
    /// The library that was last loaded or refused; `None` if it is still to be tried.
    pub(super) settled: Option<ConfiguredLibrary>,
    pub(super) slot: PluginSlot,
}

/// A library as `[plugins.NAME]` names it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ConfiguredLibrary {
    pub(super) path: PathBuf,
    sha256: Vec<String>,
    signed_by: Vec<String>,
    trusted: BTreeMap<String, String>,
}

impl ConfiguredLibrary {
    fn from_config(config: &PluginConfig) -> Option<Self> {
        Some(Self::at(config.native.clone()?, config))
    }

    /// A library, run as the one is that is named now.
    pub(super) fn at(path: PathBuf, config: &PluginConfig) -> Self {
        let PluginConfig {
            sha256,
            signed_by,
            trusted,
            ..
        } = config.clone();
        Self {
            path,
            sha256,
            signed_by,
            trusted,
        }
    }
}

impl PluginLoader {
    /// Loads those that the configuration has begun to name, or names differently.
    pub(super) async fn load_libraries(&mut self, occasion: LoadPhase) -> Vec<LoadReport> {
        let named = self.config.plugin.iter().filter_map(|(name, config)| {
            Some((name.clone(), ConfiguredLibrary::from_config(config)?))
        });
        let mut reports = Vec::new();
        for (name, named) in named.collect::<Vec<_>>() {
            if self
                .libraries
                .entry(name.clone())
                .or_default()
                .settled
                .as_ref()
                == Some(&named)
            {
                continue;
            }
            let place = named.path.display().to_string();
            let loaded = self.load_library(&name, &named, occasion).await;
            let library = self.libraries.entry(name).or_default();
            library.settled = Some(named);
            library.slot.settle(loaded.as_ref().err());
            reports.push(match loaded {
                Ok(plugin) => report(place, Ok(plugin.status(&self.pool))),
                Err(BuildRefusal { reason, held, .. }) => LoadReport {
                    held,
                    ..report(place, Err(reason))
                },
            });
        }
        reports
    }

    /// Takes out the libraries that the configuration no longer names. They serve until their replacement does.
    pub(super) fn leave_libraries(&mut self) -> (Vec<LoadReport>, Vec<Arc<LoadedPlugin>>) {
        let is_named = |name: &String| {
            self.config
                .plugin
                .get(name)
                .is_some_and(|config| config.native.is_some())
        };
        let gone: Vec<String> = self
            .libraries
            .keys()
            .filter(|name| !is_named(name))
            .cloned()
            .collect();
        let (mut reports, mut leaving) = (Vec::new(), Vec::new());
        for name in gone {
            let Some(library) = self.libraries.remove(&name) else {
                continue;
            };
            let place = library
                .settled
                .map_or(name, |named| named.path.display().to_string());
            let status = library
                .slot
                .plugin
                .as_ref()
                .map(|plugin| plugin.status(&self.pool));
            let result = status.ok_or_else(|| "it had been refused".to_owned());
            reports.push(LoadReport {
                removed: true,
                ..report(place, result)
            });
            leaving.extend(library.slot.plugin);
        }
        if !reports.is_empty() {
            // These libraries may have blocked files in the folder.
            self.forget_refusals();
        }
        (reports, leaving)
    }

    pub(crate) async fn library_name(&self, config: &PluginConfig) -> Result<String, String> {
        let named = ConfiguredLibrary::from_config(config).ok_or("no library is named")?;
        let prepared = self.prepare_library("NAME", config, &named).await?;
        Ok(self.ask_about(&prepared).await?.name)
    }

    /// Returns the library that a plugin serves from.
    pub(super) fn library_of(&self, plugin: &Arc<LoadedPlugin>) -> Option<&TrackedLibrary> {
        self.libraries
            .values()
            .find(|library| library.slot.serves(plugin))
    }

    async fn load_library(
        &mut self,
        name: &str,
        named: &ConfiguredLibrary,
        occasion: LoadPhase,
    ) -> Result<Arc<LoadedPlugin>, BuildRefusal> {
        let config = self.plugin_config(name);
        let prepared = self.prepare_library(name, &config, named).await?;
        let about = self.ask_about(&prepared).await?;
        self.note_signature(&config, &prepared.digest);
        let file = self.file_named(name);
        let of_file = file
            .as_ref()
            .and_then(|file| self.files.get(file)?.slot.plugin.clone());
        let own = self
            .libraries
            .get(name)
            .and_then(|library| library.slot.plugin.clone());
        let current = own.or(of_file).or_else(|| self.built_in_named(name));
        let source = match occasion {
            LoadPhase::Start => BuildSource::LibraryAtStart,
            LoadPhase::Running => BuildSource::Library,
        };
        let place = BuildPlace::Library {
            name: name.to_owned(),
            file: file.clone(),
        };
        let build = self.candidate(source, place, current, about, prepared);
        let build = self.judge(build).await?;
        self.keep_library(&build.generation).await?;
        let plugin = self.take_over(build.current, build.generation);
        // The file is looked at again, and refused with its reason.
        if let Some(file) = file.and_then(|file| self.files.get_mut(&file)) {
            (file.slot.plugin, file.settled) = (None, None);
        }
        self.libraries
            .entry(name.to_owned())
            .or_default()
            .slot
            .plugin = Some(Arc::clone(&plugin));
        self.publish();
        if occasion == LoadPhase::Running {
            self.say_loaded();
        }
        Ok(plugin)
    }

    /// Checks digest and signature, and makes the copy that runs. Nothing of the library is opened before.
    pub(super) async fn prepare_library(
        &self,
        name: &str,
        config: &PluginConfig,
        named: &ConfiguredLibrary,
    ) -> Result<PreparedComponent, String> {
        let libraries = self
            .config
            .libraries
            .clone()
            .ok_or("this program runs no native plugins")?;
        let (name, config, named) = (name.to_owned(), config.clone(), named.clone());
        let running = self.running_copies();
        let copied = move || {
            let CopiedLibrary {
                digest,
                path,
                signature,
            } = copy(&name, &config, &named.path, &libraries, &running)?;
            let code = LibraryCode {
                path,
                digest: digest.clone(),
                signature,
                runner: libraries.runner,
                interfaces: OnceLock::new(),
            };
            let code = Arc::new(PluginCode::Library(Arc::new(code)));
            Ok(PreparedComponent {
                digest,
                size: EngineSize::Small,
                code,
                notes: Vec::new(),
            })
        };
        tokio::task::spawn_blocking(copied)
            .await
            .map_err(|error| format!("loading it failed: {error}"))?
    }

    /// Returns the digests of the libraries that plugins run: their children start from these copies.
    fn running_copies(&self) -> HashSet<String> {
        let builds = |plugin: &Arc<LoadedPlugin>| {
            [
                Some(plugin.generation.load_full()),
                plugin.other.load_full(),
                plugin.last.load_full(),
            ]
        };
        let builds = self.plugins().flat_map(builds).flatten();
        builds
            .filter(|build| matches!(&*build.code, PluginCode::Library(_)))
            .map(|build| build.digest.to_string())
            .collect()
    }

    /// Returns the file of the folder that serves a plugin of this name.
    fn file_named(&self, name: &str) -> Option<String> {
        let serves = |plugin: &Arc<LoadedPlugin>| plugin.generation.load().about.name == name;
        let found = self
            .files
            .iter()
            .find(|(_, file)| file.slot.plugin.as_ref().is_some_and(serves));
        found.map(|(file, _)| file.clone())
    }

    /// Checks that no library has the name of another plugin.
    pub(super) fn check_libraries(&self, about: &PluginDescription) -> Result<(), String> {
        for (name, library) in self
            .libraries
            .iter()
            .filter(|(name, _)| **name != about.name)
        {
            let Some(plugin) = &library.slot.plugin else {
                continue;
            };
            let other = plugin.generation.load();
            if let Some(adapter) = about
                .adapters
                .iter()
                .find(|adapter| other.provides(&adapter.name))
            {
                return Err(format!(
                    "the adapter `{}` is already provided by the library of `[plugins.{name}] native`, which is kept",
                    adapter.name
                ));
            }
        }
        Ok(())
    }
}

/// A library that was checked and copied.
struct CopiedLibrary {
    digest: String,
    /// The path of the copy.
    path: PathBuf,
    signature: Option<String>,
}

/// Checks and copies a library. The copies that run now are kept next to it.
fn copy(
    name: &str,
    config: &PluginConfig,
    path: &Path,
    to: &LibraryConfig,
    running: &HashSet<String>,
) -> Result<CopiedLibrary, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > FILE_MAX_BYTES {
        return Err(format!(
            "it is not a file of at most {FILE_MAX_BYTES} bytes"
        ));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let digest = component::digest(&bytes);
    if config.sha256.is_empty() {
        return Err(format!(
            "which build it may be is not stated: its sha256 is {digest}, to be written as `[plugins.{name}] sha256`"
        ));
    }
    check_pin(name, config, &digest)?;
    let signature = signature::read_signature(path)?;
    signature::signer(name, config, &bytes, signature.as_deref())?;
    let copy = to.folder.join(format!("{digest}.{COPY}"));
    let kept = || {
        weir_files::create_folder(&to.folder, 0o700)?;
        // A folder that was there before us may be open to others.
        fs::set_permissions(&to.folder, fs::Permissions::from_mode(0o700))?;
        weir_files::replace(&copy, &bytes, weir_files::FilePermission::Owner)?;
        prune(&to.folder, |kept| kept == digest || running.contains(kept))?;
        fs::read(&copy)
    };
    let kept = kept()
        .map_err(|error| format!("its copy {} cannot be written: {error}", copy.display()))?;
    if component::digest(&kept) != digest {
        return Err(format!(
            "its copy {} is not what was written",
            copy.display()
        ));
    }
    // Children look for the copy from another folder.
    let path = fs::canonicalize(&copy).map_err(unreadable)?;
    Ok(CopiedLibrary {
        digest,
        path,
        signature,
    })
}

/// Removes the oldest copies beyond the bound, but none whose digest `runs`.
fn prune(folder: &Path, runs: impl Fn(&str) -> bool) -> io::Result<()> {
    weir_files::remove_left_over(folder);
    let mut copies: Vec<_> = fs::read_dir(folder)?
        .filter_map(|entry| age(entry.ok()?.path()))
        .collect();
    copies.sort_by(|a, b| b.cmp(a));
    let runs = |copy: &Path| {
        copy.file_stem()
            .and_then(|stem| stem.to_str())
            .is_some_and(&runs)
    };
    let mut surplus = copies
        .iter()
        .skip(COPIES_MAX)
        .map(|(_, copy)| copy)
        .filter(|copy| !runs(copy));
    surplus.try_for_each(|old| builds::remove(old))
}

/// Returns when a copy was made; `None` if the file is not a copy.
fn age(file: PathBuf) -> Option<(SystemTime, PathBuf)> {
    let made = fs::metadata(&file)
        .and_then(|metadata| metadata.modified())
        .ok()?;
    file.extension()
        .is_some_and(|ending| ending == COPY)
        .then_some((made, file))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_copies_go_but_none_that_runs_and_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let begin = SystemTime::now() - Duration::from_secs(1_000);
        let copy = |at: usize| format!("{at:02}.{COPY}");
        let made = |name: &str, second: u64| {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            file.set_modified(begin + Duration::from_secs(second))
                .expect("its time");
        };
        made("notes.txt", 0);
        for at in 0..COPIES_MAX + 3 {
            made(&copy(at), 1 + at as u64);
        }
        prune(folder.path(), |digest| digest == "01").expect("removed");
        assert!(folder.path().join("notes.txt").exists(), "it is no copy");
        let left: Vec<_> = (0..COPIES_MAX + 3)
            .filter(|at| folder.path().join(copy(*at)).exists())
            .collect();
        assert_eq!(
            left,
            [1].into_iter().chain(3..COPIES_MAX + 3).collect::<Vec<_>>()
        );
    }
}
