//! The slots of files, libraries and built-in plugins that serve, and the swap of one build for another.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::sync::Semaphore;
use weir_admission::{ConcurrencyLimiter, FailureBackoff};
use weir_files::embedded::EmbeddedFile;

use super::{
    PluginLoader, PreparedComponent, checks::BuildPlace, component::ComponentBytes, cores, report,
    verdict::BuildSource,
};
use crate::{
    LoadReport, PluginConfig,
    config::PluginLimits,
    engine::EngineSize,
    guest::{GuestProfile, LogBudget},
    plugin::{
        DeferredCode, LoadedPlugin, OutcomeWindow, PluginCode, PluginDescription, PluginGeneration,
    },
    tools::ToolDefinitions,
};

/// The plugin that serves from a file or a library, and the outcome of its newest build.
#[derive(Default)]
pub(super) struct PluginSlot {
    /// The plugin that serves. Its build is an earlier one if the newest was refused or is held.
    pub(super) plugin: Option<Arc<LoadedPlugin>>,
    /// Whether another try with the same build may succeed once something else has changed.
    pub(super) try_again: bool,
    /// The digest, if the newest build waits to be accepted.
    pub(super) held: Option<String>,
    /// The definitions of the newest build, if they have not been approved.
    pub(super) defines: Option<Defines>,
}

impl PluginSlot {
    /// Notes the end of a try: `why` the build does not serve, if it does not.
    pub(super) fn settle(&mut self, why: Option<&BuildRefusal>) {
        self.try_again = why.is_some();
        self.held = why.and_then(|why| why.held.clone());
        self.defines = why.and_then(|why| why.defines.clone());
    }

    pub(super) fn serves(&self, plugin: &Arc<LoadedPlugin>) -> bool {
        self.plugin
            .as_ref()
            .is_some_and(|served| Arc::ptr_eq(served, plugin))
    }
}

/// A plugin's name, and the digest of the definitions of its tools.
type Defines = (String, Arc<str>);

/// Why a build does not serve.
pub(super) struct BuildRefusal {
    pub(super) reason: String,
    /// The digest, if the build has no fault but is not accepted yet.
    pub(super) held: Option<String>,
    /// The definitions, if they have not been approved.
    pub(super) defines: Option<Defines>,
}

impl From<String> for BuildRefusal {
    fn from(reason: String) -> Self {
        Self {
            reason,
            held: None,
            defines: None,
        }
    }
}

/// A built-in plugin, whether it serves or a file or library does in its place.
pub(super) struct BuiltinPlugin {
    name: &'static str,
    digest: &'static str,
    component: EmbeddedFile,
    /// The plugin; `None` if it was refused, or if a file or library has its name or its adapter.
    pub(super) plugin: Option<Arc<LoadedPlugin>>,
    /// Whether it was refused: then it is not tried again until refusals are forgotten.
    pub(super) refused: bool,
}

impl BuiltinPlugin {
    pub(super) fn new(
        &(name, digest, component): &(&'static str, &'static str, EmbeddedFile),
    ) -> Self {
        Self {
            name,
            digest,
            component,
            plugin: None,
            refused: false,
        }
    }

    /// Returns `true` if a file or library with this plugin replaces the built-in one.
    fn is_claimed_by(&self, about: &PluginDescription) -> bool {
        about.name == self.name
            || about
                .adapters
                .iter()
                .any(|adapter| adapter.name == self.name)
    }
}

impl PluginLoader {
    /// Returns the slots of the files and the libraries. Built-in plugins have none: their builds are never replaced.
    pub(super) fn slots(&self) -> impl Iterator<Item = &PluginSlot> {
        let files = self.files.values().map(|file| &file.slot);
        files.chain(self.libraries.values().map(|library| &library.slot))
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut PluginSlot> {
        let files = self.files.values_mut().map(|file| &mut file.slot);
        files.chain(self.libraries.values_mut().map(|library| &mut library.slot))
    }

    /// Returns the plugins that serve, built-in ones too.
    pub(super) fn plugins(&self) -> impl Iterator<Item = &Arc<LoadedPlugin>> {
        let built_in = self
            .built_in
            .iter()
            .filter_map(|inside| inside.plugin.as_ref());
        self.slots()
            .filter_map(|slot| slot.plugin.as_ref())
            .chain(built_in)
    }

    pub(super) fn is_served(&self, plugin: &Arc<LoadedPlugin>) -> bool {
        self.plugins().any(|served| Arc::ptr_eq(served, plugin))
    }

    /// Loads the built-in plugins that no file or library replaces. Each replaces the plugin of its name among `leaving`,
    /// whose file or library is gone. The needs of contracts are not checked: `unavailable` would be no better for them.
    pub(super) async fn fall_back(&mut self, leaving: &[Arc<LoadedPlugin>]) -> Vec<LoadReport> {
        let mut reports = Vec::new();
        for at in 0..self.built_in.len() {
            let inside = &self.built_in[at];
            if inside.plugin.is_some() || inside.refused || self.is_claimed(inside) {
                continue;
            }
            let (name, file) = (inside.name, (inside.digest.to_owned(), inside.component));
            let current = leaving
                .iter()
                .find(|plugin| plugin.generation.load().about.name == name)
                .cloned();
            let result = self.load_built_in(name, file, current).await;
            let notes = result
                .as_ref()
                .map_or_else(|_| Vec::new(), |(_, notes)| notes.clone());
            let plugin = result.map(|(plugin, _)| plugin);
            self.built_in[at].refused = plugin.is_err();
            self.built_in[at].plugin = plugin.as_ref().ok().cloned();
            let status = plugin.map(|plugin| plugin.status(&self.pool));
            reports.push(LoadReport {
                built_in: true,
                notes,
                ..report(name.to_owned(), status)
            });
        }
        if !reports.is_empty() {
            self.publish();
        }
        reports
    }

    async fn load_built_in(
        &mut self,
        name: &'static str,
        file: (String, EmbeddedFile),
        current: Option<Arc<LoadedPlugin>>,
    ) -> Result<(Arc<LoadedPlugin>, Vec<String>), String> {
        let (prepared, about) = self.prepare_built_in(name, file).await?;
        let place = BuildPlace::BuiltIn(name);
        let mut build = self.candidate(
            BuildSource::BuiltIn,
            place,
            current.clone(),
            about,
            prepared,
        );
        let same =
            |plugin: &Arc<LoadedPlugin>| plugin.generation.load().digest == build.generation.digest;
        let plugin = match current.filter(same) {
            // The file that is gone had the same bytes.
            Some(same) => {
                self.note_accepted(&build).await?;
                same
            }
            None => {
                build = self.judge(build).await.map_err(|refused| refused.reason)?;
                self.note_accepted(&build).await?;
                self.swap(build.current, build.generation)
            }
        };
        plugin.built_in.store(true, Ordering::Relaxed);
        Ok((plugin, build.notes))
    }

    /// Prepares a built-in component, and returns its `about`. Once that is kept next to the compiled code, the code is
    /// loaded when a call needs it.
    async fn prepare_built_in(
        &self,
        name: &str,
        file: (String, EmbeddedFile),
    ) -> Result<(PreparedComponent, PluginDescription), String> {
        let digest = file.0.clone();
        if let Some((about, size)) = self.cache.kept_about(&digest)
            && let Ok(about) = PluginDescription::parse(&about, true)
        {
            let prepared = PreparedComponent {
                digest,
                size,
                code: Arc::new(PluginCode::Deferred(self.deferred(name, file, size))),
                notes: Vec::new(),
            };
            return Ok((prepared, about));
        }
        let prepared = self
            .prepare(name.to_owned(), move || {
                Ok((file.0, ComponentBytes::Embedded(file.1)))
            })
            .await?;
        let text = self.about_text(&prepared).await?;
        let about = PluginDescription::parse(&text, prepared.code.has_collections())?;
        let is_adapter = prepared.code.has_collections() && !prepared.code.has_tools();
        if is_adapter && prepared.notes.is_empty() {
            self.cache
                .keep_about(&prepared.digest, &text, prepared.size);
        }
        Ok((prepared, about))
    }

    fn deferred(
        &self,
        name: &str,
        (digest, bytes): (String, EmbeddedFile),
        size: EngineSize,
    ) -> DeferredCode {
        let (preparation, name) = (self.preparation(), name.to_owned());
        DeferredCode::new(move || {
            let prepared =
                preparation.run(&name, &ComponentBytes::Embedded(bytes), digest.clone())?;
            match Arc::into_inner(prepared.code) {
                Some(PluginCode::Component(code)) if prepared.size == size => Ok(code),
                _ => Err("the compiled code in the cache is of another kind".to_owned()),
            }
        })
    }

    /// Returns the built-in plugin that serves under this name.
    pub(super) fn built_in_named(&self, name: &str) -> Option<Arc<LoadedPlugin>> {
        self.built_in
            .iter()
            .find(|inside| inside.name == name)?
            .plugin
            .clone()
    }

    /// Hands over the built-in plugin that serves from these very bytes: now it belongs to a file.
    pub(super) fn take_built_in(&mut self, digest: &str) -> Option<Arc<LoadedPlugin>> {
        let serves = |plugin: &Arc<LoadedPlugin>| plugin.generation.load().digest[..] == *digest;
        let inside = self
            .built_in
            .iter_mut()
            .find(|inside| inside.plugin.as_ref().is_some_and(serves))?;
        let plugin = inside.plugin.take()?;
        plugin.built_in.store(false, Ordering::Relaxed);
        Some(plugin)
    }

    /// Takes out the built-in plugins that the plugin of a file or library replaces. A built-in plugin that became `by`
    /// itself continues to serve.
    pub(super) fn displace(&mut self, by: &Arc<LoadedPlugin>) {
        let about = by.generation.load();
        let mut displaced = Vec::new();
        for inside in self
            .built_in
            .iter_mut()
            .filter(|inside| inside.is_claimed_by(&about.about))
        {
            inside.refused = false;
            displaced.extend(inside.plugin.take());
        }
        for plugin in displaced.iter().filter(|plugin| !Arc::ptr_eq(plugin, by)) {
            self.retire_all(plugin);
        }
    }

    fn is_claimed(&self, inside: &BuiltinPlugin) -> bool {
        let mut plugins = self.slots().filter_map(|slot| slot.plugin.as_ref());
        plugins.any(|plugin| inside.is_claimed_by(&plugin.generation.load().about))
    }

    pub(super) fn generation(
        &self,
        current: Option<&LoadedPlugin>,
        about: PluginDescription,
        definitions: Option<Arc<ToolDefinitions>>,
        config: &PluginConfig,
        prepared: PreparedComponent,
    ) -> PluginGeneration {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let PreparedComponent {
            digest, size, code, ..
        } = prepared;
        let profile = self.profile(&about.name, config, size);
        let turns = ConcurrencyLimiter::new(
            profile.limits.in_flight_max,
            profile.limits.tenant_in_flight_max,
        );
        PluginGeneration {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            number: current.map_or(1, |plugin| plugin.generation.load().number + 1),
            digest: digest.into(),
            about,
            definitions,
            size,
            profile,
            turns: Arc::new(turns),
            backoff: FailureBackoff::default(),
            code,
            latest: OutcomeWindow::default(),
            retired: AtomicBool::new(false),
        }
    }

    pub(super) fn profile(
        &self,
        name: &str,
        config: &PluginConfig,
        size: EngineSize,
    ) -> Arc<GuestProfile> {
        Arc::new(GuestProfile {
            name: Arc::from(name),
            grants: config.grants.clone(),
            limits: PluginLimits::new(config, size),
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

    /// Puts in a build of a file or a library that was checked. Built-in plugins that it replaces go.
    pub(super) fn take_over(
        &mut self,
        current: Option<Arc<LoadedPlugin>>,
        generation: PluginGeneration,
    ) -> Arc<LoadedPlugin> {
        let plugin = self.swap(current, generation);
        plugin.built_in.store(false, Ordering::Relaxed);
        self.displace(&plugin);
        plugin
    }

    /// Swaps the generation. Calls in flight finish on the one they began with.
    pub(super) fn swap(
        &self,
        current: Option<Arc<LoadedPlugin>>,
        generation: PluginGeneration,
    ) -> Arc<LoadedPlugin> {
        let Some(plugin) = current else {
            return Arc::new(LoadedPlugin::new(generation));
        };
        let old = plugin.generation.swap(Arc::new(generation));
        plugin.counters.swaps.fetch_add(1, Ordering::Relaxed);
        let definitions = |of: &PluginGeneration| {
            of.definitions
                .as_ref()
                .map(|definitions| Arc::clone(&definitions.digest))
        };
        // Until the contract of the new definitions is published, calls continue on the build with the old ones.
        let promised = definitions(&old).is_some()
            && definitions(&old) != definitions(&plugin.generation.load());
        match promised {
            true => self.keep_beside(&plugin, old),
            false => self.retire(&old),
        }
        plugin
    }

    /// Keeps a build for the calls that were promised its definitions. The one that was kept until now answers calls until
    /// another takes its place, since the contract is swapped a moment later.
    pub(super) fn keep_beside(&self, plugin: &LoadedPlugin, build: Arc<PluginGeneration>) {
        if let Some(leaving) = plugin.other.swap(Some(build)) {
            self.retire(&leaving);
            plugin.last.store(Some(leaving));
        }
    }

    pub(super) fn retire(&self, generation: &PluginGeneration) {
        generation.retired.store(true, Ordering::Release);
        self.pool.drop_generation(generation.id);
    }

    pub(super) fn retire_all(&self, plugin: &LoadedPlugin) {
        self.retire(&plugin.generation.load());
        plugin.last.store(None);
        plugin
            .other
            .swap(None)
            .iter()
            .for_each(|other| self.retire(other));
    }

    pub(super) fn publish(&self) {
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

    /// Stops a plugin. Its adapters answer `unavailable` until something else provides them.
    pub(super) fn stop(&mut self, plugin: &Arc<LoadedPlugin>) {
        for slot in self.slots_mut().filter(|slot| slot.serves(plugin)) {
            (slot.plugin, slot.try_again) = (None, true);
        }
        let is_it = |inside: &&mut BuiltinPlugin| {
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
}
