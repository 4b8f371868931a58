//! Turns a file of the plugins folder, a library that the configuration names, or a component inside the program into a
//! plugin that serves: all or nothing, and nothing changes on a failure.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use weir_admission::{Backoff, Turns};
use weir_connections::{Connections, index::Indexes};
use weir_watch::{LookPace, Place, Watcher};

use crate::{
    HostConfig, LoadReport, PluginConfig,
    config::Limits,
    engine::{Engines, Size},
    guest::{Call, Guest, LogBudget, Profile, Purpose},
    host::Served,
    imports,
    instance::Instance,
    native::Natives,
    plugin::{About, Generation, Latest, Plugin},
    pool::Pool,
    tools::{Admitted, Definitions},
};

mod accepted;
mod built_in;
mod cache;
mod component;
mod definitions;
mod folder;
mod in_use;
mod kept;
mod libraries;
mod promised;
mod reconfigured;
mod signed;
mod slot;

use accepted::Accepted;
use built_in::Inside;
use cache::Cache;
use component::Prepared;
use folder::{Seen, Stamp};
use kept::Kept;
use libraries::Library;
use slot::{Refused, Slot};

/// The time between two looks at the folder while something changes there. A file counts once two looks agree on it, so a
/// swap is live within a second.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The time that `about` may take on the trial instance.
const TRIAL_MAX: Duration = Duration::from_secs(5);

/// The loader. Whoever looks at the folder holds it, one at a time.
pub(crate) struct Loader {
    config: HostConfig,
    connections: Arc<Connections>,
    engines: &'static Engines,
    pool: Arc<Pool>,
    natives: Arc<Natives>,
    served: Arc<Served>,
    cache: Arc<Cache>,
    accepted: Accepted,
    kept: Kept,
    linkers: Arc<Linkers>,
    host_turn: Arc<Semaphore>,
    indexes: Option<Arc<Indexes>>,
    files: BTreeMap<String, File>,
    libraries: BTreeMap<String, Library>,
    /// Definitions that no build could be loaded for, by plugin: not tried again until something changes.
    broken_promises: BTreeMap<String, Arc<str>>,
    built_in: Vec<Inside>,
    /// Digests of builds whose signatures were found good, and the keys they were checked with.
    signed: Vec<(String, BTreeMap<String, String>)>,
    /// Whether everything that was there at the start has been loaded.
    is_serving: bool,
}

/// The loader's knowledge about one file of the folder.
#[derive(Default)]
struct File {
    /// The file at the last look; `None` if it was not there.
    looked: Option<Stamp>,
    /// The file that was last loaded or refused; `None` if it is still to be tried.
    settled: Option<Stamp>,
    /// Whether it was loaded or refused at some time: whoever was told should hear of its end.
    reported: bool,
    /// Looks in a row that did not find the file.
    missed: u32,
    slot: Slot,
}

/// What a component is compiled and linked with.
struct Preparation {
    engines: &'static Engines,
    is_serving: bool,
    cache: Arc<Cache>,
    linkers: Arc<Linkers>,
}

/// What plugins import, for each engine. It is made when a component needs it.
#[derive(Default)]
struct Linkers {
    small: OnceLock<Result<Linker<Guest>, String>>,
    large: OnceLock<Result<Linker<Guest>, String>>,
}

impl Linkers {
    fn get(&self, engines: &Engines, size: Size) -> Result<Linker<Guest>, String> {
        let made = match size {
            Size::Small => &self.small,
            Size::Large => &self.large,
        };
        let make = || {
            imports::linker(engines, size)
                .map_err(|error| format!("linking what plugins import: {error:#}"))
        };
        made.get_or_init(make).clone()
    }
}

impl Preparation {
    fn run(&self, bytes: &[u8], digest: String) -> Result<Prepared, String> {
        component::prepare(
            bytes,
            digest,
            self.engines,
            self.engines.compiler(self.is_serving),
            &self.cache,
            |size| self.linkers.get(self.engines, size),
        )
    }
}

/// Whether anything is served yet, so that published contracts can be asked what they need.
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
        natives: Arc<Natives>,
        served: Arc<Served>,
    ) -> Self {
        let cache = Arc::new(Cache::open(&config.cache, engines.compiler(false)));
        // Busy guests leave one core to everybody else, where there is more than one.
        let host_turn = Arc::new(Semaphore::new(cores().saturating_sub(1).max(1)));
        let files = BTreeMap::new();
        let accepted = Accepted::new(config.accepted.clone());
        let kept = Kept::new(config.builds.clone());
        let indexes = config
            .indexes
            .clone()
            .map(|folder| Arc::new(Indexes::new(folder)));
        let built_in = config.built_in.iter().map(Inside::new).collect();
        Self {
            config,
            connections,
            engines,
            pool,
            natives,
            served,
            cache,
            accepted,
            kept,
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
        let mut reports = self.load_libraries(Occasion::Start).await;
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
            .any(|seen| matches!(seen, Seen::File(stamp) if stamp.is_fresh()))
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
                Seen::File(stamp) => {
                    file.looked = Some(stamp);
                    reports.extend(self.settle(&name, stamp, Occasion::Start).await);
                }
                Seen::Refused(stamp, reason) => reports.extend(self.refuse(&name, stamp, reason)),
            }
        }
        reports
    }

    /// Returns the times at which to look: at changes in the folder, and of the file by which other processes say what they
    /// have accepted.
    pub(crate) fn pace(&self, watcher: &Watcher) -> LookPace {
        let accepted = self.config.accepted.as_deref().map(Place::file);
        let places = std::iter::once(Place::folder(&self.config.plugins)).chain(accepted);
        watcher.pace(LOOK_INTERVAL, places.collect())
    }

    /// Loads what has changed since the last look and then stayed still, and unloads what is gone.
    pub(crate) async fn look(&mut self) -> Vec<LoadReport> {
        // A folder that cannot be read now says nothing about the plugins.
        let Ok(seen) = folder::look(&self.config.plugins) else {
            return Vec::new();
        };
        let mut reports = self.unload_missing(&seen).await;
        if self.accepted.has_changed() {
            self.files
                .values_mut()
                .filter(|file| file.slot.held.is_some())
                .for_each(|file| file.settled = None);
        }
        self.look_again_at_published();
        let (left, leaving) = self.leave_libraries();
        reports.extend(left);
        reports.extend(self.load_libraries(Occasion::Running).await);
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
        reports.extend(self.keep_promises().await);
        // A file may have given up an adapter that is built in too.
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
    pub(crate) fn approve(&mut self, digest: &str) {
        self.accepted.approve(digest);
        let waits = |file: &&mut File| file.slot.held.as_deref() == Some(digest);
        self.files
            .values_mut()
            .filter(waits)
            .for_each(|file| file.settled = None);
    }

    /// Returns the plugin's file or library, or the name of what is built in.
    fn place_of(&self, plugin: &Arc<Plugin>) -> String {
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

    /// Stops a plugin. Its adapters answer `unavailable` until something else provides them.
    fn stop(&mut self, plugin: &Arc<Plugin>) {
        for slot in self.slots_mut().filter(|slot| slot.serves(plugin)) {
            (slot.plugin, slot.try_again) = (None, true);
        }
        let is_it = |inside: &&mut Inside| {
            inside
                .plugin
                .as_ref()
                .is_some_and(|served| Arc::ptr_eq(served, plugin))
        };
        for inside in self.built_in.iter_mut().filter(is_it) {
            (inside.plugin, inside.refused) = (None, true);
        }
        self.publish();
        self.retire_all(plugin);
    }

    async fn settle(&mut self, name: &str, stamp: Stamp, occasion: Occasion) -> Option<LoadReport> {
        let started = Instant::now();
        let loaded = self.load(name, stamp, occasion).await;
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
            Err(Refused { reason, held, .. }) => Some(LoadReport {
                held,
                ..report(name.to_owned(), Err(reason))
            }),
        }
    }

    fn refuse(&mut self, name: &str, stamp: Stamp, reason: String) -> Option<LoadReport> {
        let file = self.files.entry(name.to_owned()).or_default();
        file.settled = Some(stamp);
        // Trying the same file again could not succeed.
        file.slot.try_again = false;
        file.reported = true;
        Some(report(name.to_owned(), Err(reason)))
    }

    /// Returns the plugin that now serves and what an operator should know of it, or `None` if the file holds what is
    /// served already.
    async fn load(
        &mut self,
        name: &str,
        stamp: Stamp,
        occasion: Occasion,
    ) -> Result<Option<(Arc<Plugin>, Vec<String>)>, Refused> {
        let path = self.config.plugins.join(name);
        let read = {
            let path = path.clone();
            move || folder::read(&path, stamp).map(|bytes| (component::digest(&bytes), bytes))
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
        let config = self
            .config
            .plugin
            .get(&about.name)
            .cloned()
            .unwrap_or_default();
        check_pin(&about.name, &config, &prepared.digest)?;
        self.check_signature(&about.name, &config, path.clone(), &prepared.digest)
            .await?;
        self.check_names(name, &about)?;
        let notes = prepared.notes.clone();
        let current = own.or_else(|| self.built_in_named(&about.name));
        // At a start, the files in the folder are those that the operator put there.
        if occasion == Occasion::Running {
            self.check_accepted(
                name,
                &about.name,
                &config,
                &prepared.digest,
                current.as_deref(),
            )?;
        }
        let generation = self
            .check_build(current.as_deref(), about, &config, prepared, occasion)
            .await?;
        self.keep_build(&generation, &path, stamp).await?;
        self.accepted
            .note(&generation.about.name, &config, &generation.digest)?;
        let plugin = self.take_over(current, generation);
        self.files.entry(name.to_owned()).or_default().slot.plugin = Some(Arc::clone(&plugin));
        self.publish();
        // At a start nothing is served yet.
        if occasion == Occasion::Running {
            self.say_loaded();
        }
        Ok(Some((plugin, notes)))
    }

    /// Compiles and links, on a thread of its own. `name` is what the plugin's file calls it; `read` returns the digest
    /// and the bytes.
    async fn prepare<B: AsRef<[u8]>>(
        &self,
        name: String,
        read: impl FnOnce() -> Result<(String, B), String> + Send + 'static,
    ) -> Result<Prepared, String> {
        let pin = self.config.plugin.get(&name).cloned();
        let preparation = self.preparation();
        tokio::task::spawn_blocking(move || {
            let (digest, bytes) = read()?;
            if let Some(config) = pin {
                // The pin is checked again by the plugin's own name. Checking it here keeps a stranger from even being
                // compiled.
                check_pin(&name, &config, &digest)?;
            }
            preparation.run(bytes.as_ref(), digest)
        })
        .await
        .map_err(|error| format!("compiling it failed: {error}"))?
    }

    fn preparation(&self) -> Preparation {
        Preparation {
            engines: self.engines,
            is_serving: self.is_serving,
            cache: Arc::clone(&self.cache),
            linkers: Arc::clone(&self.linkers),
        }
    }

    async fn ask_about(&self, prepared: &Prepared) -> Result<About, String> {
        let about = self.about_text(prepared).await?;
        About::parse(&about, prepared.code.has_collections())
    }

    /// Returns what the plugin says about itself, asked on an instance that has no grants.
    async fn about_text(&self, prepared: &Prepared) -> Result<String, String> {
        let profile = self.profile("trial", &PluginConfig::default(), prepared.size);
        let _running = self.engines.running();
        let trial = async {
            let call = Call::own(&profile, Purpose::Trial, Instant::now() + TRIAL_MAX);
            let mut instance = Instance::new(&prepared.code, prepared.size, &profile, call).await?;
            let about = instance.about().await;
            let memory_refused = instance.memory_refused();
            about.map_err(|error| {
                wasmtime::Error::msg(crate::call::reason(
                    &error,
                    memory_refused,
                    profile.limits.memory_max,
                ))
            })
        };
        tokio::time::timeout(TRIAL_MAX, trial)
            .await
            .map_err(|_| format!("`about` did not answer within {} s", TRIAL_MAX.as_secs()))?
            .map_err(|error| format!("the trial run failed: {error:#}"))
    }

    /// Checks that the file's build does not wait for someone to accept it. `current` is the plugin that serves now.
    fn check_accepted(
        &self,
        file: &str,
        name: &str,
        config: &PluginConfig,
        digest: &str,
        current: Option<&Plugin>,
    ) -> Result<(), Refused> {
        let serves = current.map(|plugin| Arc::clone(&plugin.generation.load().digest));
        match self.accepted.holds(name, config, digest, serves.as_deref()) {
            Ok(false) => Ok(()),
            Ok(true) => Err(held(file, name, digest.to_owned())),
            Err(reason) => Err(Refused {
                held: Some(digest.to_owned()),
                ..Refused::from(reason)
            }),
        }
    }

    /// Makes the next generation of a plugin from a prepared build, if that still has what published contracts need and
    /// the gate admits its tools.
    async fn check_build(
        &self,
        current: Option<&Plugin>,
        about: About,
        config: &PluginConfig,
        prepared: Prepared,
        occasion: Occasion,
    ) -> Result<Generation, Refused> {
        let definitions = self.ask_definitions(&about.name, config, &prepared).await?;
        let generation = self.generation(current, about, definitions, config, prepared);
        if let (Occasion::Running, Some(in_use)) = (occasion, self.served.in_use.load_full()) {
            let old = current.map(|plugin| plugin.generation.load_full());
            in_use::check(&generation, old.as_deref(), &in_use, self.engines).await?;
        }
        self.admit(&generation).await?;
        Ok(generation)
    }

    fn generation(
        &self,
        current: Option<&Plugin>,
        about: About,
        definitions: Option<Arc<Definitions>>,
        config: &PluginConfig,
        prepared: Prepared,
    ) -> Generation {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let Prepared {
            digest, size, code, ..
        } = prepared;
        let profile = self.profile(&about.name, config, size);
        let turns = Turns::new(
            profile.limits.in_flight_max,
            profile.limits.tenant_in_flight_max,
        );
        Generation {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            number: current.map_or(1, |plugin| plugin.generation.load().number + 1),
            digest: digest.into(),
            about,
            definitions,
            size,
            profile,
            turns: Arc::new(turns),
            backoff: Backoff::default(),
            code,
            latest: Latest::default(),
            retired: AtomicBool::new(false),
        }
    }

    fn profile(&self, name: &str, config: &PluginConfig, size: Size) -> Arc<Profile> {
        Arc::new(Profile {
            name: Arc::from(name),
            grants: config.grants.clone(),
            limits: Limits::new(config, size),
            settings: serde_json::to_string(&config.settings)
                .expect("plain data")
                .into(),
            plugin_turn: Arc::new(Semaphore::new((cores() / 2).max(1))),
            log: LogBudget::default(),
            gate: Arc::clone(&self.served.tool_gate),
            host_turn: Arc::clone(&self.host_turn),
            connections: Arc::clone(&self.connections),
            indexes: self
                .indexes
                .clone()
                .filter(|_| config.index_max_mb != Some(0)),
        })
    }

    /// Checks the plugin's names. The first file with a name keeps it: a later one cannot take over its grants or its
    /// adapters.
    fn check_names(&self, name: &str, about: &About) -> Result<(), String> {
        if let Some(adapter) = about
            .adapters
            .iter()
            .find(|adapter| self.natives.get(&adapter.name).is_some())
        {
            return Err(format!(
                "the adapter `{}` is part of this program, which keeps it",
                adapter.name
            ));
        }
        self.check_libraries(about)?;
        for (file, known) in self.files.iter().filter(|(file, _)| *file != name) {
            let Some(plugin) = &known.slot.plugin else {
                continue;
            };
            let other = plugin.generation.load();
            if let Some(adapter) = about
                .adapters
                .iter()
                .find(|adapter| other.provides(&adapter.name))
            {
                return Err(format!(
                    "the adapter `{}` is already provided by `{file}`, which stays",
                    adapter.name
                ));
            }
            if other.about.name == about.name {
                return Err(format!(
                    "a plugin named `{}` is already loaded from `{file}`, which stays",
                    about.name
                ));
            }
        }
        Ok(())
    }

    /// Puts in a build of a file or a library that was checked. Built-in plugins that it replaces go.
    fn take_over(&mut self, current: Option<Arc<Plugin>>, generation: Generation) -> Arc<Plugin> {
        let plugin = self.swap(current, generation);
        plugin.built_in.store(false, Ordering::Relaxed);
        self.displace(&plugin);
        plugin
    }

    /// Swaps the generation. Calls in flight finish on the one they began with.
    fn swap(&self, current: Option<Arc<Plugin>>, generation: Generation) -> Arc<Plugin> {
        let Some(plugin) = current else {
            return Arc::new(Plugin::new(generation));
        };
        let old = plugin.generation.swap(Arc::new(generation));
        plugin.counters.swaps.fetch_add(1, Ordering::Relaxed);
        let definitions = |of: &Generation| {
            of.definitions
                .as_ref()
                .map(|definitions| Arc::clone(&definitions.digest))
        };
        // Until the contract of the new definitions is published, calls go on that were promised the old ones.
        let promised = definitions(&old).is_some()
            && definitions(&old) != definitions(&plugin.generation.load());
        let leaving = if promised {
            plugin.other.swap(Some(old))
        } else {
            Some(old)
        };
        leaving.iter().for_each(|leaving| self.retire(leaving));
        plugin
    }

    async fn unload_missing(&mut self, seen: &BTreeMap<String, Seen>) -> Vec<LoadReport> {
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
            let Some(File { slot, reported, .. }) = self.files.remove(&name) else {
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
        // These plugins may have been in the way of other files. They serve until the built-in ones do.
        self.forget_refusals();
        reports.extend(self.fall_back(&leaving).await);
        self.publish();
        leaving
            .iter()
            .filter(|plugin| !self.is_served(plugin))
            .for_each(|plugin| self.retire_all(plugin));
        reports
    }

    fn retire(&self, generation: &Generation) {
        generation.retired.store(true, Ordering::Release);
        self.pool.drop_generation(generation.id);
    }

    fn retire_all(&self, plugin: &Plugin) {
        self.retire(&plugin.generation.load());
        plugin
            .other
            .swap(None)
            .iter()
            .for_each(|other| self.retire(other));
    }

    fn publish(&self) {
        let mut by_adapter = HashMap::new();
        let mut by_name = BTreeMap::new();
        for plugin in self.plugins() {
            let about = &plugin.generation.load().about;
            by_name.insert(about.name.clone(), Arc::clone(plugin));
            for adapter in &about.adapters {
                by_adapter.insert(adapter.name.clone(), Arc::clone(plugin));
            }
        }
        self.served.by_adapter.store(Arc::new(by_adapter));
        self.served.by_name.store(Arc::new(by_name));
    }
}

/// Returns the number of cores. The system is asked once, since that opens three files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn check_pin(name: &str, config: &PluginConfig, digest: &str) -> Result<(), String> {
    if config.allows(digest) {
        return Ok(());
    }
    Err(format!(
        "its sha256 is {digest}, and `[plugins.{name}] sha256` allows only {}",
        config.sha256.join(", ")
    ))
}

fn held(file: &str, name: &str, digest: String) -> Refused {
    let stem = Path::new(file)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(file);
    let reason = format!(
        "held: `{name}` may write, and this is not a build of it that was let in. Let it in with `weir plugin accept \
         {stem} --sha256 {digest}`, or pin it: `[plugins.{name}] sha256`"
    );
    Refused {
        held: Some(digest),
        ..Refused::from(reason)
    }
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
