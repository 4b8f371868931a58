//! From a file in the plugins folder to a plugin that serves: all or nothing, and nothing changes on a failure.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use weir_connections::Connections;

use crate::{
    HostConfig, LoadReport, PluginConfig,
    admission::Admission,
    config::Limits,
    engine::{Engines, Size},
    guest::{Call, Guest, Profile, Purpose},
    host::Served,
    imports,
    instance::Instance,
    plugin::{About, Generation, Plugin},
    pool::Pool,
};

mod cache;
mod component;
mod folder;
mod in_use;

use cache::Cache;
use component::Prepared;
use folder::{Seen, Stamp};

/// Between two looks at the folder. A file counts once two looks agree on it, so a swap is live within a second.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// What `about` may take on the trial instance.
const TRIAL_MAX: Duration = Duration::from_secs(5);

/// One at a time: held by whoever looks at the folder.
pub(crate) struct Loader {
    config: HostConfig,
    connections: Arc<Connections>,
    engines: &'static Engines,
    pool: Arc<Pool>,
    served: Arc<Served>,
    cache: Arc<Cache>,
    small: Arc<Linker<Guest>>,
    large: Arc<Linker<Guest>>,
    host_turn: Arc<Semaphore>,
    files: BTreeMap<String, File>,
}

/// What is known of one file of the folder.
#[derive(Default)]
struct File {
    /// At the last look; none: it was not there.
    looked: Option<Stamp>,
    /// What was last loaded or refused.
    settled: Option<Stamp>,
    refused: bool,
    /// Looks in a row that did not find the file.
    missed: u32,
    plugin: Option<Arc<Plugin>>,
}

/// Whether published contracts are asked what they need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// Nothing is served yet, and recorded shapes serve without asking a source.
    Start,
    Running,
}

impl Loader {
    pub(crate) fn new(
        config: HostConfig,
        connections: Arc<Connections>,
        engines: &'static Engines,
        pool: Arc<Pool>,
        served: Arc<Served>,
    ) -> anyhow::Result<Self> {
        let cache = Arc::new(Cache::open(&config.cache, engines.get(Size::Small)));
        let linker = |size| {
            let linker = imports::linker(engines, size);
            linker.map(Arc::new).map_err(|error| anyhow::anyhow!("linking what plugins import: {error:#}"))
        };
        let (small, large) = (linker(Size::Small)?, linker(Size::Large)?);
        // Busy guests leave one core to everybody else, where there is more than one.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let host_turn = Arc::new(Semaphore::new(cores.saturating_sub(1).max(1)));
        let files = BTreeMap::new();
        Ok(Self { config, connections, engines, pool, served, cache, small, large, host_turn, files })
    }

    /// Every file there is now, in the order of their names.
    pub(crate) async fn load_all(&mut self) -> Vec<LoadReport> {
        let seen = match folder::look(&self.config.plugins) {
            Ok(seen) => seen,
            Err(reason) => return vec![report(String::new(), Err(reason))],
        };
        if seen.values().any(|seen| matches!(seen, Seen::File(stamp) if stamp.is_fresh())) {
            // It may still be being written; those that are not yet whole are left to the watch.
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
                Seen::File(stamp) => {
                    file.looked = Some(stamp);
                    reports.extend(self.settle(&name, stamp, Occasion::Start).await);
                }
                Seen::Refused(stamp, reason) => reports.extend(self.refuse(&name, stamp, reason)),
            }
        }
        reports
    }

    /// What has changed since the last look and then stayed still, and what is gone.
    pub(crate) async fn look(&mut self) -> Vec<LoadReport> {
        // A folder that cannot be read now says nothing about the plugins.
        let Ok(seen) = folder::look(&self.config.plugins) else { return Vec::new() };
        let mut reports = self.unload_missing(&seen);
        for (name, seen) in seen {
            let file = self.files.entry(name.clone()).or_default();
            file.missed = 0;
            match seen {
                Seen::File(stamp) => {
                    let still = file.looked.replace(stamp) == Some(stamp);
                    if still && file.settled != Some(stamp) {
                        reports.extend(self.settle(&name, stamp, Occasion::Running).await);
                    }
                }
                Seen::Refused(stamp, reason) => {
                    if file.settled != Some(stamp) {
                        reports.extend(self.refuse(&name, stamp, reason));
                    }
                }
            }
        }
        reports
    }

    pub(crate) fn forget_refusals(&mut self) {
        for file in self.files.values_mut().filter(|file| file.refused) {
            file.settled = None;
            file.refused = false;
        }
    }

    async fn settle(&mut self, name: &str, stamp: Stamp, occasion: Occasion) -> Option<LoadReport> {
        let started = Instant::now();
        let loaded = self.load(name, stamp, occasion).await;
        let file = self.files.entry(name.to_owned()).or_default();
        file.settled = Some(stamp);
        file.refused = loaded.is_err();
        match loaded {
            Ok(None) => None,
            Ok(Some((plugin, notes))) => {
                let status = plugin.status(&self.pool);
                tracing::debug!(file = name, ms = started.elapsed().as_millis() as u64, "plugin loaded");
                Some(LoadReport { notes, ..report(name.to_owned(), Ok(status)) })
            }
            Err(reason) => Some(report(name.to_owned(), Err(reason))),
        }
    }

    fn refuse(&mut self, name: &str, stamp: Stamp, reason: String) -> Option<LoadReport> {
        let file = self.files.entry(name.to_owned()).or_default();
        file.settled = Some(stamp);
        // Nothing that the same file could be tried again for.
        file.refused = false;
        Some(report(name.to_owned(), Err(reason)))
    }

    /// The plugin that now serves, or none when the file holds what is served already.
    async fn load(
        &mut self,
        name: &str,
        stamp: Stamp,
        occasion: Occasion,
    ) -> Result<Option<(Arc<Plugin>, Vec<String>)>, String> {
        let prepared = self.prepare(name, stamp).await?;
        let current = self.files.get(name).and_then(|file| file.plugin.clone());
        if current.as_ref().is_some_and(|current| current.generation.load().digest == prepared.digest) {
            return Ok(None);
        }
        let about = self.ask_about(&prepared).await?;
        let config = self.config.plugin.get(&about.name).cloned().unwrap_or_default();
        check_pin(&about.name, &config, &prepared.digest)?;
        self.check_names(name, &about)?;
        let notes = prepared.notes.clone();
        let generation = self.generation(current.as_deref(), about, &config, prepared);
        if let (Occasion::Running, Some(in_use)) = (occasion, self.served.in_use.load_full()) {
            let old = current.as_ref().map(|plugin| plugin.generation.load_full());
            in_use::check(&generation, old.as_deref(), &in_use, self.engines).await?;
        }
        Ok(Some((self.serve(name, current, generation), notes)))
    }

    /// Reads, hashes, compiles and links, on a thread of its own.
    async fn prepare(&self, name: &str, stamp: Stamp) -> Result<Prepared, String> {
        let path = self.config.plugins.join(name);
        let pin = Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| Some((stem.to_owned(), self.config.plugin.get(stem)?.clone())));
        let cache = Arc::clone(&self.cache);
        let engines = self.engines;
        let (small, large) = (Arc::clone(&self.small), Arc::clone(&self.large));
        tokio::task::spawn_blocking(move || {
            let bytes = folder::read(&path, stamp)?;
            let digest = component::digest(&bytes);
            if let Some((name, config)) = pin {
                // Asked again by the plugin's own name; here a stranger is not even compiled.
                check_pin(&name, &config, &digest)?;
            }
            component::prepare(&bytes, digest, engines, &cache, |size| match size {
                Size::Small => Linker::clone(&small),
                Size::Large => Linker::clone(&large),
            })
        })
        .await
        .map_err(|error| format!("compiling it failed: {error}"))?
    }

    /// What the plugin says of itself, asked on an instance that nothing is granted to.
    async fn ask_about(&self, prepared: &Prepared) -> Result<About, String> {
        let profile = self.profile("trial", &PluginConfig::default(), prepared.size);
        let _running = self.engines.running();
        let trial = async {
            let call = Call::new(&profile, Purpose::Trial, Instant::now() + TRIAL_MAX);
            let mut instance = Instance::new(&prepared.code, prepared.size, &profile, call).await?;
            let about = instance.about().await;
            let memory_refused = instance.memory_refused();
            about.map_err(|error| {
                wasmtime::Error::msg(crate::call::reason(&error, memory_refused, profile.limits.memory_max))
            })
        };
        let about = tokio::time::timeout(TRIAL_MAX, trial)
            .await
            .map_err(|_| format!("`about` did not answer within {} s", TRIAL_MAX.as_secs()))?
            .map_err(|error| format!("the trial run failed: {error:#}"))?;
        About::parse(&about)
    }

    fn generation(
        &self,
        current: Option<&Plugin>,
        about: About,
        config: &PluginConfig,
        prepared: Prepared,
    ) -> Generation {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let Prepared { digest, size, code, .. } = prepared;
        let profile = self.profile(&about.name, config, size);
        let admission = Admission::new(profile.limits.in_flight_max, profile.limits.tenant_in_flight_max);
        Generation {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            number: current.map_or(1, |plugin| plugin.generation.load().number + 1),
            digest,
            about,
            size,
            profile,
            admission: Arc::new(admission),
            code,
            retired: AtomicBool::new(false),
        }
    }

    fn profile(&self, name: &str, config: &PluginConfig, size: Size) -> Arc<Profile> {
        Arc::new(Profile {
            name: Arc::from(name),
            grants: config.grants.clone(),
            limits: Limits::new(config, size),
            plugin_turn: Arc::new(Semaphore::new(1)),
            host_turn: Arc::clone(&self.host_turn),
            connections: Arc::clone(&self.connections),
        })
    }

    /// The first file with a name keeps it: a later one cannot take over its grants or its adapters.
    fn check_names(&self, name: &str, about: &About) -> Result<(), String> {
        for (file, plugin) in self.files.iter().filter(|(file, _)| *file != name) {
            let Some(plugin) = &file_plugin(plugin) else { continue };
            let other = plugin.generation.load();
            if let Some(adapter) = about.adapters.iter().find(|adapter| other.provides(&adapter.name)) {
                return Err(format!("the adapter `{}` is already provided by `{file}`, which stays", adapter.name));
            }
            if other.about.name == about.name {
                return Err(format!("a plugin named `{}` is already loaded from `{file}`, which stays", about.name));
            }
        }
        Ok(())
    }

    /// The swap. Calls in flight finish on the generation they began with.
    fn serve(&mut self, name: &str, current: Option<Arc<Plugin>>, generation: Generation) -> Arc<Plugin> {
        let plugin = match current {
            Some(plugin) => {
                let old = plugin.generation.swap(Arc::new(generation));
                plugin.counters.swaps.fetch_add(1, Ordering::Relaxed);
                self.retire(&old);
                plugin
            }
            None => Arc::new(Plugin::new(name.to_owned(), generation)),
        };
        self.files.entry(name.to_owned()).or_default().plugin = Some(Arc::clone(&plugin));
        self.publish();
        plugin
    }

    fn unload_missing(&mut self, seen: &BTreeMap<String, Seen>) -> Vec<LoadReport> {
        let mut gone = Vec::new();
        for (name, file) in &mut self.files {
            // One look may fall between a remove and the copy that follows it.
            file.missed = if seen.contains_key(name) { 0 } else { file.missed + 1 };
            if file.missed > 0 {
                file.looked = None;
            }
            if file.missed >= 2 {
                gone.push(name.clone());
            }
        }
        let mut reports = Vec::new();
        for name in gone {
            let Some(plugin) = self.files.remove(&name).and_then(|file| file.plugin) else { continue };
            self.publish();
            self.retire(&plugin.generation.load());
            reports.push(LoadReport { removed: true, ..report(name, Ok(plugin.status(&self.pool))) });
            // It may have been in the way of another file.
            self.forget_refusals();
        }
        reports
    }

    fn retire(&self, generation: &Generation) {
        generation.retired.store(true, Ordering::Release);
        self.pool.drop_generation(generation.id);
    }

    fn publish(&self) {
        let mut by_adapter = HashMap::new();
        for plugin in self.files.values().filter_map(file_plugin) {
            for adapter in &plugin.generation.load().about.adapters {
                by_adapter.insert(adapter.name.clone(), Arc::clone(&plugin));
            }
        }
        self.served.by_adapter.store(Arc::new(by_adapter));
    }
}

fn file_plugin(file: &File) -> Option<Arc<Plugin>> {
    file.plugin.clone()
}

fn check_pin(name: &str, config: &PluginConfig, digest: &str) -> Result<(), String> {
    match &config.sha256 {
        Some(pin) if !pin.trim().eq_ignore_ascii_case(digest) => Err(format!(
            "its sha256 is {digest}, and `[plugins.{name}] sha256` allows only {}",
            pin.chars().take(64).collect::<String>()
        )),
        _ => Ok(()),
    }
}

fn report(file: String, result: Result<crate::PluginStatus, String>) -> LoadReport {
    LoadReport { file, result, removed: false, notes: Vec::new() }
}
