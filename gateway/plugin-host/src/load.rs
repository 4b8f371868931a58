//! Turns a file of the plugins folder, a library that the configuration names, or a component inside the program into a
//! plugin that serves: all or nothing, and nothing changes on a failure.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, watch};
use weir_connections::{ConnectionRegistry, index::IndexStore};
use weir_watch::{FileWatcher, LookPace, WatchTarget};

use crate::{
    HostConfig, LoadReport, PluginConfig,
    config::HeldBuilds,
    engine::EnginePair,
    host::ServedPlugins,
    native::NativeRegistry,
    plugin::{LoadedPlugin, PluginGeneration},
    pool::InstancePool,
};

mod builds;
mod checks;
mod component;
mod folder;
mod libraries;
mod needs;
mod promised;
mod serving;
mod verdict;

use builds::{BuildAcceptance, BuildStore};
use checks::{BuildCandidate, BuildPlace, check_pin};
use component::{CompileContext, ComponentBytes, ComponentCache, EngineLinkers, PreparedComponent};
use folder::{FolderEntry, PluginStamp};
use libraries::TrackedLibrary;
use serving::{BuildRefusal, BuiltinPlugin, PluginSlot};
use verdict::BuildSource;

/// The time between two looks at the folder while something changes there. A file counts once two looks agree on it, so a
/// swap is live within a second.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The time that `about` may take on the trial instance.
const TRIAL_MAX: Duration = Duration::from_secs(5);

/// The loader. A look at the folder locks it, one at a time.
pub(crate) struct PluginLoader {
    config: HostConfig,
    connections: Arc<ConnectionRegistry>,
    engines: &'static EnginePair,
    pool: Arc<InstancePool>,
    natives: Arc<NativeRegistry>,
    served: Arc<ServedPlugins>,
    cache: Arc<ComponentCache>,
    acceptance: BuildAcceptance,
    builds: BuildStore,
    linkers: Arc<EngineLinkers>,
    host_turn: Arc<Semaphore>,
    indexes: Option<Arc<IndexStore>>,
    files: BTreeMap<String, TrackedFile>,
    libraries: BTreeMap<String, TrackedLibrary>,
    /// Definitions that no build could be loaded for, by plugin: not tried again until something changes.
    broken_promises: BTreeMap<String, BrokenPromise>,
    built_in: Vec<BuiltinPlugin>,
    /// Digests of builds whose signatures were found good, and the keys they were checked with.
    signed: Vec<(String, BTreeMap<String, String>)>,
    /// Whether everything that was there at the start has been loaded.
    is_serving: bool,
}

/// The loader's knowledge about one file of the folder.
#[derive(Default)]
struct TrackedFile {
    /// The file at the last look; `None` if it was not there.
    looked: Option<PluginStamp>,
    /// The file that was last loaded or refused; `None` if it is still to be tried.
    settled: Option<PluginStamp>,
    /// True once a load or a refusal was reported, so that its removal is reported too.
    reported: bool,
    /// Looks in a row that did not find the file.
    missed: u32,
    slot: PluginSlot,
}

/// Published definitions that no build serves.
struct BrokenPromise {
    definitions: Arc<str>,
    /// The digests of the kept builds that could not be loaded. Another process may keep one later.
    tried: Vec<String>,
}

/// Whether anything is served yet, so that published contracts can be asked for their needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    /// Nothing is served yet, and recorded shapes serve without asking a source.
    Start,
    Running,
}

impl PluginLoader {
    pub(crate) fn new(
        config: HostConfig,
        connections: Arc<ConnectionRegistry>,
        engines: &'static EnginePair,
        pool: Arc<InstancePool>,
        natives: Arc<NativeRegistry>,
        served: Arc<ServedPlugins>,
    ) -> Self {
        let cache = Arc::new(ComponentCache::open(&config.cache, engines.compiler(false)));
        // Busy guests leave one core to other work, if there is more than one.
        let host_turn = Arc::new(Semaphore::new(cores().saturating_sub(1).max(1)));
        let files = BTreeMap::new();
        let builds = BuildStore::new(config.state.clone(), config.holds_builds);
        let indexes = config
            .indexes
            .clone()
            .map(|folder| Arc::new(IndexStore::new(folder)));
        let built_in = config.built_in.iter().map(BuiltinPlugin::new).collect();
        Self {
            config,
            connections,
            engines,
            pool,
            natives,
            served,
            cache,
            acceptance: BuildAcceptance::new(builds.clone()),
            builds,
            linkers: Arc::default(),
            host_turn,
            indexes,
            files,
            libraries: BTreeMap::new(),
            broken_promises: BTreeMap::new(),
            built_in,
            signed: Vec::new(),
            is_serving: false,
        }
    }

    /// Loads the libraries that the configuration names; then every file there is now, in the order of their names;
    /// then the kept builds that published contracts still need; then the built-in plugins that nothing else replaces.
    pub(crate) async fn load_all(&mut self) -> Vec<LoadReport> {
        self.acceptance.has_changed().await; // what is accepted from now on is new
        let mut reports = self.load_libraries(LoadPhase::Start).await;
        reports.extend(self.load_files().await);
        reports.extend(self.keep_promises().await);
        reports.extend(self.fall_back(&[]).await);
        self.is_serving = true;
        reports
    }

    async fn load_files(&mut self) -> Vec<LoadReport> {
        let seen = match folder::look(&self.config.plugins) {
            Ok(seen) => seen,
            Err(reason) => return vec![report(String::new(), Err(reason))],
        };
        if seen
            .values()
            .any(|seen| matches!(seen, FolderEntry::File(stamp) if stamp.is_fresh()))
        {
            // A file may still be being written; those that are not yet whole are left to the watch.
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let again = folder::look(&self.config.plugins).unwrap_or_default();
        let mut reports = Vec::new();
        for (name, seen) in again {
            let file = self.files.entry(name.clone()).or_default();
            if file.settled.is_some() {
                continue;
            }
            match seen {
                FolderEntry::File(stamp) => {
                    file.looked = Some(stamp);
                    reports.extend(self.settle(&name, stamp, LoadPhase::Start).await);
                }
                FolderEntry::Refused(stamp, reason) => {
                    reports.extend(self.refuse(&name, stamp, reason))
                }
            }
        }
        reports
    }

    /// Returns the feed of builds that other processes have accepted.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<i64>> {
        self.builds.changes()
    }

    /// Returns the times at which to look at the folder.
    pub(crate) fn pace(&self, watcher: &FileWatcher) -> LookPace {
        watcher.pace(
            LOOK_INTERVAL,
            vec![WatchTarget::folder(&self.config.plugins)],
        )
    }

    /// Loads files that have changed since the last look and then no longer change, and unloads files that are gone.
    pub(crate) async fn look(&mut self) -> Vec<LoadReport> {
        // A folder that cannot be read now is no evidence about the plugins.
        let Ok(seen) = folder::look(&self.config.plugins) else {
            return Vec::new();
        };
        let mut reports = self.unload_missing(&seen).await;
        if self.acceptance.has_changed().await {
            self.files
                .values_mut()
                .filter(|file| file.slot.held.is_some())
                .for_each(|file| file.settled = None);
        }
        self.look_again_at_published();
        let (left, leaving) = self.leave_libraries();
        reports.extend(left);
        reports.extend(self.load_libraries(LoadPhase::Running).await);
        for (name, seen) in seen {
            let file = self.files.entry(name.clone()).or_default();
            file.missed = 0;
            match seen {
                FolderEntry::File(stamp) => {
                    let still = file.looked.replace(stamp) == Some(stamp);
                    if still && file.settled != Some(stamp) {
                        reports.extend(self.settle(&name, stamp, LoadPhase::Running).await);
                    }
                }
                FolderEntry::Refused(stamp, reason) => {
                    if file.settled != Some(stamp) {
                        reports.extend(self.refuse(&name, stamp, reason));
                    }
                }
            }
        }
        reports.extend(self.keep_promises().await);
        // A file may no longer provide an adapter that is also built in.
        reports.extend(self.fall_back(&leaving).await);
        if !leaving.is_empty() {
            self.publish();
            leaving
                .iter()
                .filter(|plugin| !self.is_served(plugin))
                .for_each(|plugin| self.retire_all(plugin));
        }
        reports
    }

    /// Takes up by now what the folder holds, refused files too if `again`: a file counts once two looks agree on it.
    pub(crate) async fn settle_all(&mut self, again: bool) -> Vec<LoadReport> {
        if again {
            self.forget_refusals();
        }
        let mut reports = self.look().await;
        tokio::time::sleep(LOOK_INTERVAL).await;
        reports.extend(self.look().await);
        reports
    }

    /// Returns the files that serve, by their plugins' names.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let serving = self
            .files
            .iter()
            .filter_map(|(file, known)| Some((file, known.slot.plugin.as_ref()?)));
        serving
            .map(|(file, plugin)| (plugin.generation.load().about.name.clone(), file.clone()))
            .collect()
    }

    pub(crate) fn forget_refusals(&mut self) {
        for file in self.files.values_mut().filter(|file| file.slot.try_again) {
            file.settled = None;
        }
        for library in self
            .libraries
            .values_mut()
            .filter(|library| library.slot.try_again)
        {
            library.settled = None;
        }
        self.broken_promises.clear();
        for inside in &mut self.built_in {
            inside.refused = false;
        }
    }

    /// Lets a build in, whether it waits or is still to come.
    pub(crate) fn approve(&mut self, digest: &str, by: &str) {
        self.acceptance.approve(digest, by);
        let waits = |file: &&mut TrackedFile| file.slot.held.as_deref() == Some(digest);
        self.files
            .values_mut()
            .filter(waits)
            .for_each(|file| file.settled = None);
    }

    /// Returns the plugin's file or library, or the name of a built-in plugin.
    fn place_of(&self, plugin: &Arc<LoadedPlugin>) -> String {
        let file = self
            .files
            .iter()
            .find(|(_, file)| file.slot.serves(plugin))
            .map(|(name, _)| name.clone());
        let library = self
            .library_of(plugin)
            .and_then(|library| library.settled.as_ref());
        let file = file.or_else(|| library.map(|named| named.path.display().to_string()));
        file.unwrap_or_else(|| plugin.generation.load().about.name.clone())
    }

    async fn settle(
        &mut self,
        name: &str,
        stamp: PluginStamp,
        occasion: LoadPhase,
    ) -> Option<LoadReport> {
        let started = Instant::now();
        let loaded = self.load_file(name, stamp, occasion).await;
        let file = self.files.entry(name.to_owned()).or_default();
        file.settled = Some(stamp);
        file.slot.settle(loaded.as_ref().err());
        file.reported = true;
        match loaded {
            Ok(None) => None,
            Ok(Some((plugin, notes))) => {
                let status = plugin.status(&self.pool);
                tracing::debug!(
                    file = name,
                    ms = started.elapsed().as_millis() as u64,
                    "plugin loaded"
                );
                Some(LoadReport {
                    notes,
                    ..report(name.to_owned(), Ok(status))
                })
            }
            Err(BuildRefusal { reason, held, .. }) => Some(LoadReport {
                held,
                ..report(name.to_owned(), Err(reason))
            }),
        }
    }

    fn refuse(&mut self, name: &str, stamp: PluginStamp, reason: String) -> Option<LoadReport> {
        let file = self.files.entry(name.to_owned()).or_default();
        file.settled = Some(stamp);
        // Trying the same file again could not succeed.
        file.slot.try_again = false;
        file.reported = true;
        Some(report(name.to_owned(), Err(reason)))
    }

    /// Returns the plugin that now serves and what an operator should know about it, or `None` if the file contains
    /// what is served already.
    async fn load_file(
        &mut self,
        name: &str,
        stamp: PluginStamp,
        occasion: LoadPhase,
    ) -> Result<Option<(Arc<LoadedPlugin>, Vec<String>)>, BuildRefusal> {
        let path = self.config.plugins.join(name);
        let read = {
            let path = path.clone();
            move || {
                let bytes = folder::read(&path, stamp)?;
                Ok((component::digest(&bytes), ComponentBytes::Read(bytes)))
            }
        };
        let stem = Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        let prepared = self.prepare(stem, read).await?;
        let own = self
            .files
            .get(name)
            .and_then(|file| file.slot.plugin.clone());
        if own
            .as_ref()
            .is_some_and(|own| self.is_current(own, &prepared.digest))
        {
            return Ok(None);
        }
        if own.is_none()
            && let Some(same) = self.take_built_in(&prepared.digest)
        {
            self.files.entry(name.to_owned()).or_default().slot.plugin = Some(same);
            return Ok(None);
        }
        let about = self.ask_about(&prepared).await?;
        let source = match occasion {
            LoadPhase::Running => BuildSource::File,
            LoadPhase::Start if self.config.holds_builds == HeldBuilds::All => {
                BuildSource::FileOfCommand
            }
            LoadPhase::Start => BuildSource::FileAtStart,
        };
        let current = own.or_else(|| self.built_in_named(&about.name));
        let place = BuildPlace::File(name.to_owned());
        let build = self.candidate(source, place, current, about, prepared);
        let build = self.judge(build).await?;
        self.keep_build(&build.generation, &path, stamp).await?;
        self.note_accepted(&build).await?;
        let plugin = self.take_over(build.current, build.generation);
        self.files.entry(name.to_owned()).or_default().slot.plugin = Some(Arc::clone(&plugin));
        self.publish();
        // At a start nothing is served yet.
        if occasion == LoadPhase::Running {
            self.say_loaded();
        }
        Ok(Some((plugin, build.notes)))
    }

    /// Notes that a build serves, for the next one.
    async fn note_accepted(&mut self, build: &BuildCandidate) -> Result<(), String> {
        let PluginGeneration { about, digest, .. } = &build.generation;
        self.acceptance
            .note(&about.name, digest, build.facts.needs_acceptance())
            .await
    }

    /// Returns the configuration of a plugin, which may be empty.
    fn plugin_config(&self, name: &str) -> PluginConfig {
        self.config.plugin.get(name).cloned().unwrap_or_default()
    }

    /// Compiles and links on a separate thread. `name` is the plugin's name in its file; `read` returns the digest and
    /// the bytes.
    async fn prepare(
        &self,
        name: String,
        read: impl FnOnce() -> Result<(String, ComponentBytes), String> + Send + 'static,
    ) -> Result<PreparedComponent, String> {
        let pin = self.config.plugin.get(&name).cloned();
        let preparation = self.preparation();
        tokio::task::spawn_blocking(move || {
            let (digest, bytes) = read()?;
            if let Some(config) = pin {
                // The pin is checked again by the plugin's own name. Checking it here keeps a stranger from even being
                // compiled.
                check_pin(&name, &config, &digest)?;
            }
            preparation.run(&name, &bytes, digest)
        })
        .await
        .map_err(|error| format!("compiling it failed: {error}"))?
    }

    fn preparation(&self) -> CompileContext {
        CompileContext {
            engines: self.engines,
            is_serving: self.is_serving,
            cache: Arc::clone(&self.cache),
            linkers: Arc::clone(&self.linkers),
        }
    }

    async fn unload_missing(&mut self, seen: &BTreeMap<String, FolderEntry>) -> Vec<LoadReport> {
        let mut gone = Vec::new();
        for (name, file) in &mut self.files {
            // A look may fall between a remove and the copy that follows it.
            file.missed = if seen.contains_key(name) {
                0
            } else {
                file.missed + 1
            };
            if file.missed > 0 {
                file.looked = None;
            }
            if file.missed >= 2 {
                gone.push(name.clone());
            }
        }
        let mut reports = Vec::new();
        let mut leaving = Vec::new();
        for name in gone {
            let Some(TrackedFile { slot, reported, .. }) = self.files.remove(&name) else {
                continue;
            };
            let Some(plugin) = slot.plugin else {
                if reported {
                    reports.push(LoadReport {
                        removed: true,
                        ..report(name, Err("it had been refused".into()))
                    });
                }
                continue;
            };
            reports.push(LoadReport {
                removed: true,
                ..report(name, Ok(plugin.status(&self.pool)))
            });
            leaving.push(plugin);
        }
        if leaving.is_empty() {
            return reports;
        }
        // These plugins may have blocked other files. They serve until the built-in ones do.
        self.forget_refusals();
        reports.extend(self.fall_back(&leaving).await);
        self.publish();
        leaving
            .iter()
            .filter(|plugin| !self.is_served(plugin))
            .for_each(|plugin| self.retire_all(plugin));
        reports
    }
}

/// Returns the number of cores. The system is asked once, since that opens three files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn report(file: String, result: Result<crate::PluginStatus, String>) -> LoadReport {
    LoadReport {
        file,
        built_in: false,
        result,
        removed: false,
        held: None,
        notes: Vec::new(),
    }
}
