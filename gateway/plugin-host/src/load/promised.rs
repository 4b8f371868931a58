//! Keeps what published contracts need when settings change: the earlier builds that must serve, and the settings of the
//! builds that serve on.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use weir_connections::ConnectionRegistry;
use weir_state::{BuildKind, NewBuild};

use super::{
    BrokenPromise, BuildPlace, BuildRefusal, BuildSource, PluginLoader, PluginSlot, PluginStamp,
    PreparedComponent,
    builds::{self, now_ms},
    check_pin,
    component::{self, ComponentBytes},
    folder,
    libraries::{ConfiguredLibrary, TrackedLibrary},
    report,
};
use crate::{
    LoadReport, PluginConfig,
    plugin::{LoadedPlugin, PluginCode, PluginGeneration},
    signature,
};

impl PluginLoader {
    /// Keeps an accepted build, so that it can run again later. The file is read again, and kept only if it is the loaded
    /// one.
    pub(super) async fn keep_build(
        &self,
        new: &PluginGeneration,
        path: &Path,
        stamp: PluginStamp,
    ) -> Result<(), String> {
        let path = path.to_owned();
        self.keep(new, move || {
            Ok((
                folder::read(&path, stamp)?,
                signature::read_signature(&path)?,
            ))
        })
        .await
    }

    /// Keeps a library in the same way: the copy that is run, with the signature that it was checked with.
    pub(super) async fn keep_library(&self, new: &PluginGeneration) -> Result<(), String> {
        let PluginCode::Library(code) = &*new.code else {
            return Ok(());
        };
        let code = Arc::clone(code);
        self.keep(new, move || Ok((code.read()?, code.signature.clone())))
            .await
    }

    /// `read` returns the build's bytes and its signature.
    async fn keep(
        &self,
        new: &PluginGeneration,
        read: impl FnOnce() -> Result<(Vec<u8>, Option<String>), String> + Send + 'static,
    ) -> Result<(), String> {
        let Some(definitions) = new.definitions.clone() else {
            return Ok(());
        };
        let kind = match &*new.code {
            PluginCode::Library(_) => BuildKind::Library,
            PluginCode::Component(_) | PluginCode::Deferred(_) => BuildKind::Component,
        };
        let digest = Arc::clone(&new.digest);
        let checked = move || {
            let (bytes, signature) = read()?;
            match component::digest(&bytes) == *digest {
                true => Ok((bytes, signature)),
                false => Err("the file changed while it was being loaded".to_owned()),
            }
        };
        let (bytes, signature) = tokio::task::spawn_blocking(checked)
            .await
            .map_err(|error| format!("keeping its build failed: {error}"))??;
        let build = NewBuild {
            plugin: new.about.name.clone(),
            definitions: definitions.digest.to_string(),
            digest: new.digest.to_string(),
            kind,
            bytes,
            signature,
            at_ms: now_ms(),
        };
        self.builds.keep(build).await
    }

    /// Returns `true` if the file's build serves already, under the current settings.
    pub(super) fn is_current(&self, plugin: &LoadedPlugin, digest: &str) -> bool {
        let now = plugin.generation.load();
        let config = self.config.plugin.get(&now.about.name);
        *now.digest == *digest
            && (now.definitions.is_none() || *now.profile.settings == *settings(config))
    }

    /// Retries files and libraries whose definitions were published since they were held or refused.
    pub(super) fn look_again_at_published(&mut self) {
        let Some(gate) = self.served.tool_gate.load_full() else {
            return;
        };
        if self.slots().all(|slot| slot.defines.is_none()) {
            return;
        }
        let promised = gate.promised();
        let is_published = |slot: &PluginSlot| {
            slot.defines
                .as_ref()
                .is_some_and(|defines| promised.contains(defines))
        };
        for file in self
            .files
            .values_mut()
            .filter(|file| is_published(&file.slot))
        {
            file.settled = None;
        }
        for library in self
            .libraries
            .values_mut()
            .filter(|library| is_published(&library.slot))
        {
            library.settled = None;
        }
    }

    /// Loads kept builds for contracts that no loaded build serves: after a rollback, or at a start whose file is held.
    pub(super) async fn keep_promises(&mut self) -> Vec<LoadReport> {
        let Some(gate) = self.served.tool_gate.load_full() else {
            return Vec::new();
        };
        let mut reports = Vec::new();
        for (name, definitions) in gate.promised() {
            let Some((file, plugin)) = self.holder_of(&name) else {
                continue;
            };
            if plugin
                .as_ref()
                .is_some_and(|plugin| plugin.defining(&definitions).is_some())
            {
                self.broken_promises.remove(&name);
                continue;
            }
            let kept = self.builds.kept_digests(&name, &definitions).await;
            let is_known = |broken: &BrokenPromise| {
                broken.definitions == definitions
                    && kept.iter().all(|digest| broken.tried.contains(digest))
            };
            if self.broken_promises.get(&name).is_some_and(is_known) {
                continue;
            }
            let place = format!("{name} (kept build)");
            match self.load_kept(&name, &definitions).await {
                Ok(build) => {
                    let digest = Arc::clone(&build.digest);
                    let status = self.serve_kept(&file, plugin, build).status(&self.pool);
                    let notes = vec![format!(
                        "the contract of its tools was made from the kept build {digest}, which runs for it; `{file}` \
                         defines other tools"
                    )];
                    reports.push(LoadReport {
                        notes,
                        ..report(place, Ok(status))
                    });
                }
                Err(reason) => {
                    let tried = kept;
                    let broken = BrokenPromise { definitions, tried };
                    self.broken_promises.insert(name, broken);
                    reports.push(report(place, Err(reason)));
                }
            }
        }
        reports
    }

    /// Returns the library or the file of the plugin, whether it serves or is held.
    fn holder_of(&self, plugin: &str) -> Option<(String, Option<Arc<LoadedPlugin>>)> {
        let holds = |library: &&TrackedLibrary| {
            library.slot.plugin.is_some() || library.slot.defines.is_some()
        };
        if let Some(library) = self.libraries.get(plugin).filter(holds) {
            let named = library
                .settled
                .as_ref()
                .map_or_else(String::new, |named| named.path.display().to_string());
            return Some((named, library.slot.plugin.clone()));
        }
        self.files.iter().find_map(|(file, known)| {
            let PluginSlot {
                plugin: served,
                defines,
                ..
            } = &known.slot;
            let serves = served
                .as_ref()
                .is_some_and(|served| served.generation.load().about.name == plugin);
            let waits = defines.as_ref().is_some_and(|(name, _)| name == plugin);
            (serves || waits).then(|| (file.clone(), served.clone()))
        })
    }

    fn serve_kept(
        &mut self,
        file: &str,
        plugin: Option<Arc<LoadedPlugin>>,
        build: PluginGeneration,
    ) -> Arc<LoadedPlugin> {
        let plugin = match plugin {
            Some(plugin) => {
                self.keep_beside(&plugin, Arc::new(build));
                plugin
            }
            None => {
                let plugin = Arc::new(LoadedPlugin::new(build));
                let name = plugin.generation.load().about.name.clone();
                let slot = match self.files.get_mut(file) {
                    Some(file) => &mut file.slot,
                    None => &mut self.libraries.entry(name).or_default().slot,
                };
                slot.plugin = Some(Arc::clone(&plugin));
                plugin
            }
        };
        self.publish();
        self.say_loaded();
        plugin
    }

    /// Notifies the gate immediately instead of at the gateway's next look: of the earlier builds only the last is
    /// still loaded.
    pub(super) fn say_loaded(&self) {
        if let Some(gate) = self.served.tool_gate.load_full() {
            gate.loaded();
        }
    }

    async fn load_kept(
        &mut self,
        name: &str,
        definitions: &str,
    ) -> Result<PluginGeneration, String> {
        let mut why = format!(
            "no kept build of `{name}` defines its tools as they are published: put such a build into the folder, or \
             publish what the folder's defines"
        );
        for (kept, path) in self.builds.kept_builds(name, definitions).await? {
            match self.load_build(name, definitions, path).await {
                Ok(build) => {
                    self.builds.note_use(&kept).await;
                    return Ok(build);
                }
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    async fn load_build(
        &mut self,
        name: &str,
        definitions: &str,
        path: PathBuf,
    ) -> Result<PluginGeneration, String> {
        let config = self.plugin_config(name);
        let prepared = self.prepare_kept(name, &config, path.clone()).await?;
        let about = self.ask_about(&prepared).await?;
        let current = self.holder_of(name).and_then(|(_, plugin)| plugin);
        let place = BuildPlace::Kept {
            name: name.to_owned(),
            definitions: definitions.to_owned(),
            path,
        };
        let build = self.candidate(BuildSource::Kept, place, current, about, prepared);
        let build = self.judge(build).await;
        build
            .map(|build| build.generation)
            .map_err(|refused| refused.reason)
    }

    /// Prepares a kept build. Nothing of it is opened before its digest is one that it was kept as and that may run.
    async fn prepare_kept(
        &self,
        name: &str,
        config: &PluginConfig,
        path: PathBuf,
    ) -> Result<PreparedComponent, String> {
        let digest = builds::kept_digest(&path).unwrap_or_default();
        if !config.allows(digest) {
            let allowed = config
                .sha256
                .iter()
                .map(|allowed| format!("{allowed:?}"))
                .collect::<Vec<_>>()
                .join(", ");
            return Err(format!(
                "the kept build {digest} defines its tools as they are published, and `[plugins.{name}] sha256` does not allow \
                 it. To run it again write `sha256 = [{allowed}, \"{digest}\"]`, then `weir reload`; or publish what the \
                 build that is allowed defines"
            ));
        }
        let is_library = builds::is_library(&path);
        if is_library && config.native.is_none() {
            return Err(format!(
                "the kept build {digest} is a native library, and `[plugins.{name}] native` names none: nothing else runs it"
            ));
        }
        let read = {
            let path = path.clone();
            move || builds::read_kept(&path)
        };
        if !is_library {
            let read = move || read().map(|(digest, bytes)| (digest, ComponentBytes::Read(bytes)));
            return self.prepare(name.to_owned(), read).await;
        }
        let checked = tokio::task::spawn_blocking(move || read().map(drop)).await;
        checked.map_err(|error| format!("reading the kept build failed: {error}"))??;
        self.prepare_library(name, config, &ConfiguredLibrary::at(path, config))
            .await
    }

    /// Applies other settings and connections for every plugin. Calls in flight end under those they began with; a
    /// plugin that its pin or its signers no longer allow stops, unless the folder holds a file that they allow.
    pub(crate) async fn reconfigure(
        &mut self,
        plugin: BTreeMap<String, PluginConfig>,
        connections: Arc<ConnectionRegistry>,
    ) -> Vec<LoadReport> {
        self.config.plugin = plugin;
        self.connections = connections;
        self.forget_refusals();
        let mut reports = self.look().await;
        let loaded: Vec<_> = self.plugins().cloned().collect();
        for plugin in loaded {
            let now = plugin.generation.load_full();
            let config = self
                .config
                .plugin
                .get(&now.about.name)
                .cloned()
                .unwrap_or_default();
            // Others were loaded by the look.
            if !Arc::ptr_eq(&now.profile.connections, &self.connections) {
                let built_in = plugin.built_in.load(Ordering::Relaxed);
                if let Err(reason) = self.may_serve_on(&plugin, &now, &config).await {
                    reports.push(LoadReport {
                        built_in,
                        ..report(self.place_of(&plugin), Err(reason))
                    });
                    self.stop(&plugin);
                    continue;
                }
                reports.extend(self.renew(&plugin, &now, &config).await);
            }
            self.renew_other(&plugin, &config);
        }
        reports.extend(self.fall_back(&[]).await);
        reports
    }

    /// Checks a build that serves against its pin and its signers, which may be others by now.
    async fn may_serve_on(
        &mut self,
        plugin: &Arc<LoadedPlugin>,
        now: &PluginGeneration,
        config: &PluginConfig,
    ) -> Result<(), String> {
        let name = &now.about.name;
        let of_library = self.library_of(plugin).is_some();
        // The pin of a library determines which build is loaded next. If that one was refused or is held, this one continues
        // to serve.
        if !of_library {
            check_pin(name, config, &now.digest)?;
        }
        match &*now.code {
            // A built-in plugin came with the program and has no separate signature.
            _ if plugin.built_in.load(Ordering::Relaxed) => Ok(()),
            // Its signature is as good as before. A kept component may run where a library is named.
            _ if of_library && self.is_signed(config, &now.digest) => Ok(()),
            PluginCode::Library(code) => self.check_library_signature(name, config, code).await,
            PluginCode::Component(_) | PluginCode::Deferred(_) => {
                let path = self.config.plugins.join(self.place_of(plugin));
                self.check_signature(name, config, path, &now.digest).await
            }
        }
    }

    /// Makes the build that serves again, under other settings and connections. If its tools then differ without an approval,
    /// it keeps the settings it had.
    pub(super) async fn renew(
        &mut self,
        plugin: &Arc<LoadedPlugin>,
        now: &Arc<PluginGeneration>,
        config: &PluginConfig,
    ) -> Option<LoadReport> {
        let place = self.place_of(plugin);
        let (new, refused) = match self.under(plugin, now, config).await {
            Ok(new) => (new, None),
            Err(refused) => (self.with_settings_of(plugin, now, config), Some(refused)),
        };
        self.swap(Some(Arc::clone(plugin)), new);
        let refused = refused?;
        if let Some(slot) = self.slots_mut().find(|slot| slot.serves(plugin)) {
            slot.settle(Some(&refused));
        }
        let BuildRefusal { reason, held, .. } = refused;
        Some(LoadReport {
            held,
            ..report(place, Err(reason))
        })
    }

    /// Does the same for the other build, which is dropped if its pin or its signers no longer allow it.
    pub(super) fn renew_other(&self, plugin: &LoadedPlugin, config: &PluginConfig) {
        plugin.last.store(None);
        let Some(other) = plugin.other.load_full() else {
            return;
        };
        if Arc::ptr_eq(&other.profile.connections, &self.connections) {
            return;
        }
        let allowed = check_pin(&other.about.name, config, &other.digest).is_ok()
            && self.is_signed(config, &other.digest);
        let renewed = allowed.then(|| Arc::new(self.with_settings_of(plugin, &other, config)));
        plugin.other.store(renewed);
        self.retire(&other);
    }

    async fn under(
        &mut self,
        plugin: &Arc<LoadedPlugin>,
        now: &PluginGeneration,
        config: &PluginConfig,
    ) -> Result<PluginGeneration, BuildRefusal> {
        let mut build = self.candidate(
            BuildSource::Reconfigured,
            BuildPlace::Serving,
            Some(Arc::clone(plugin)),
            now.about.clone(),
            prepared_again(now),
        );
        if now.definitions.is_some() && *now.profile.settings != *settings(Some(config)) {
            return Ok(self.judge(build).await?.generation);
        }
        build.generation.definitions.clone_from(&now.definitions);
        Ok(build.generation)
    }

    fn with_settings_of(
        &self,
        plugin: &LoadedPlugin,
        now: &PluginGeneration,
        config: &PluginConfig,
    ) -> PluginGeneration {
        let settings = serde_json::from_str(&now.profile.settings).expect("written here");
        let config = PluginConfig {
            settings,
            ..config.clone()
        };
        self.generation(
            Some(plugin),
            now.about.clone(),
            now.definitions.clone(),
            &config,
            prepared_again(now),
        )
    }
}

fn prepared_again(now: &PluginGeneration) -> PreparedComponent {
    PreparedComponent {
        digest: now.digest.to_string(),
        size: now.size,
        code: Arc::clone(&now.code),
        notes: Vec::new(),
    }
}

fn settings(config: Option<&PluginConfig>) -> String {
    config.map_or_else(
        || "{}".to_owned(),
        |config| serde_json::to_string(&config.settings).expect("plain data"),
    )
}
