//! Builds of plugins with tools and what published contracts were promised: which of them may serve, and which must.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Admitted, Loader, PluginConfig, Prepared, Refused, Slot, Stamp, check_pin, component, folder,
    kept,
    libraries::{Library, Named},
    report,
};
use crate::{
    LoadReport,
    plugin::{Code, Generation, Plugin},
    signature,
};

impl Loader {
    /// Asks whether a build may serve. Nobody is asked where no contract comes from code.
    pub(super) async fn admit(&self, new: &Generation) -> Result<(), Refused> {
        let Some(gate) = self.served.tool_gate.load_full() else {
            return Ok(());
        };
        let name = &new.about.name;
        let Some(definitions) = &new.definitions else {
            return match gate.promised().iter().any(|(plugin, _)| plugin == name) {
                true => Err(Refused::from(
                    "a published contract needs its tools, and it has none".to_owned(),
                )),
                false => Ok(()),
            };
        };
        match gate.admit(name, &new.digest, definitions).await {
            Admitted::Yes => Ok(()),
            Admitted::Held(reason) => Err(Refused {
                reason,
                held: Some(new.digest.to_string()),
                defines: Some((name.clone(), Arc::clone(&definitions.digest))),
            }),
            Admitted::Refused(reason) => Err(Refused {
                defines: Some((name.clone(), Arc::clone(&definitions.digest))),
                ..Refused::from(reason)
            }),
        }
    }

    /// Keeps an accepted build, so that it can run again later. The file is read once more: what is kept is what was
    /// loaded, or nothing.
    pub(super) async fn keep_build(
        &self,
        new: &Generation,
        path: &Path,
        stamp: Stamp,
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
    pub(super) async fn keep_library(&self, new: &Generation) -> Result<(), String> {
        let Code::Library(code) = &*new.code else {
            return Ok(());
        };
        let code = Arc::clone(code);
        self.keep(new, move || Ok((code.read()?, code.signature.clone())))
            .await
    }

    /// `read` returns the build's bytes and its signature.
    async fn keep(
        &self,
        new: &Generation,
        read: impl FnOnce() -> Result<(Vec<u8>, Option<String>), String> + Send + 'static,
    ) -> Result<(), String> {
        let Some(definitions) = new.definitions.clone() else {
            return Ok(());
        };
        let is_library = matches!(&*new.code, Code::Library(_));
        let kept = self.kept.clone();
        let (name, digest) = (new.about.name.clone(), Arc::clone(&new.digest));
        let keep = move || {
            let (bytes, signature) = read()?;
            if component::digest(&bytes) != *digest {
                return Err("the file changed while it was being loaded".to_owned());
            }
            let build = kept::Build {
                digest: &digest,
                bytes: &bytes,
                signature: signature.as_deref(),
                is_library,
            };
            kept.keep(&name, &definitions.digest, &build)
        };
        tokio::task::spawn_blocking(keep)
            .await
            .map_err(|error| format!("keeping its build failed: {error}"))?
    }

    /// Returns `true` if the file's build serves already, under the present settings.
    pub(super) fn is_current(&self, plugin: &Plugin, digest: &str) -> bool {
        let now = plugin.generation.load();
        let config = self.config.plugin.get(&now.about.name);
        *now.digest == *digest
            && (now.definitions.is_none() || *now.profile.settings == *settings(config))
    }

    /// Has files and libraries tried again whose definitions were published since they were held or refused.
    pub(super) fn look_again_at_published(&mut self) {
        let Some(gate) = self.served.tool_gate.load_full() else {
            return;
        };
        if self.slots().all(|slot| slot.defines.is_none()) {
            return;
        }
        let promised = gate.promised();
        let is_published = |slot: &Slot| {
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

    /// Loads kept builds for promises that no loaded build keeps: after a rollback, or at a start whose file is held.
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
            if self.broken_promises.get(&name) == Some(&definitions) {
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
                    self.broken_promises.insert(name, definitions);
                    reports.push(report(place, Err(reason)));
                }
            }
        }
        reports
    }

    /// Returns the library or the file that holds the plugin, whether it serves or is held.
    fn holder_of(&self, plugin: &str) -> Option<(String, Option<Arc<Plugin>>)> {
        let holds =
            |library: &&Library| library.slot.plugin.is_some() || library.slot.defines.is_some();
        if let Some(library) = self.libraries.get(plugin).filter(holds) {
            let named = library
                .settled
                .as_ref()
                .map_or_else(String::new, |named| named.path.display().to_string());
            return Some((named, library.slot.plugin.clone()));
        }
        self.files.iter().find_map(|(file, known)| {
            let Slot {
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
        plugin: Option<Arc<Plugin>>,
        build: Generation,
    ) -> Arc<Plugin> {
        let plugin = match plugin {
            Some(plugin) => {
                let leaving = plugin.other.swap(Some(Arc::new(build)));
                leaving.iter().for_each(|leaving| self.retire(leaving));
                plugin
            }
            None => {
                let plugin = Arc::new(Plugin::new(build));
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

    /// Tells the gate at once, and not at the gateway's next look: of the builds before this one only the last is still
    /// loaded.
    pub(super) fn say_loaded(&self) {
        if let Some(gate) = self.served.tool_gate.load_full() {
            gate.loaded();
        }
    }

    async fn load_kept(&mut self, name: &str, definitions: &str) -> Result<Generation, String> {
        let mut why = format!(
            "no kept build of `{name}` defines its tools as they are published: put such a build into the folder, or \
             publish what the folder's defines"
        );
        for path in self.kept.builds(name, definitions) {
            match self.load_build(name, definitions, path).await {
                Ok(build) => return Ok(build),
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
    ) -> Result<Generation, String> {
        let config = self.config.plugin.get(name).cloned().unwrap_or_default();
        let prepared = self.prepare_kept(name, &config, path.clone()).await?;
        let about = self.ask_about(&prepared).await?;
        self.check_signature(name, &config, path, &prepared.digest)
            .await?;
        let defined = self.ask_definitions(name, &config, &prepared).await?;
        if about.name != name
            || defined
                .as_ref()
                .is_none_or(|defined| *defined.digest != *definitions)
        {
            return Err(
                "the kept build defines other tools by now: other settings, perhaps".to_owned(),
            );
        }
        let plugin = self.holder_of(name).and_then(|(_, plugin)| plugin);
        Ok(self.generation(plugin.as_deref(), about, defined, &config, prepared))
    }

    /// Prepares a kept build. Nothing of it is opened before its digest is one that it was kept as and that may run.
    async fn prepare_kept(
        &self,
        name: &str,
        config: &PluginConfig,
        path: PathBuf,
    ) -> Result<Prepared, String> {
        let digest = kept::digest(&path).unwrap_or_default();
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
        let is_library = kept::is_library(&path);
        if is_library && config.native.is_none() {
            return Err(format!(
                "the kept build {digest} is a native library, and `[plugins.{name}] native` names none: nothing else runs it"
            ));
        }
        let read = {
            let path = path.clone();
            move || kept::read(&path)
        };
        if !is_library {
            return self.prepare(name.to_owned(), read).await;
        }
        let checked = tokio::task::spawn_blocking(move || read().map(drop)).await;
        checked.map_err(|error| format!("reading the kept build failed: {error}"))??;
        self.prepare_library(name, config, &Named::at(path, config))
            .await
    }

    /// Makes the build that serves again, under other settings and connections. If its tools then differ, and nobody has
    /// approved those, it keeps the settings it had.
    pub(super) async fn renew(
        &mut self,
        plugin: &Arc<Plugin>,
        now: &Arc<Generation>,
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
        let Refused { reason, held, .. } = refused;
        Some(LoadReport {
            held,
            ..report(place, Err(reason))
        })
    }

    /// Does the same for the build beside the current one, which goes if its pin or its signers no longer allow it.
    pub(super) fn renew_other(&self, plugin: &Plugin, config: &PluginConfig) {
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
        &self,
        plugin: &Plugin,
        now: &Generation,
        config: &PluginConfig,
    ) -> Result<Generation, Refused> {
        let prepared = prepared_again(now);
        if now.definitions.is_none() || *now.profile.settings == *settings(Some(config)) {
            let definitions = now.definitions.clone();
            return Ok(self.generation(
                Some(plugin),
                now.about.clone(),
                definitions,
                config,
                prepared,
            ));
        }
        let definitions = self
            .ask_definitions(&now.about.name, config, &prepared)
            .await?;
        let new = self.generation(
            Some(plugin),
            now.about.clone(),
            definitions,
            config,
            prepared,
        );
        self.admit(&new).await?;
        Ok(new)
    }

    fn with_settings_of(
        &self,
        plugin: &Plugin,
        now: &Generation,
        config: &PluginConfig,
    ) -> Generation {
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

fn prepared_again(now: &Generation) -> Prepared {
    Prepared {
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
