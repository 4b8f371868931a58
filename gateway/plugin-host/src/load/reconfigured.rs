//! Other settings and connections for the plugins that serve, and what they no longer allow.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use weir_connections::Connections;

use super::{Loader, check_pin, report};
use crate::{
    LoadReport, PluginConfig,
    plugin::{Code, Generation, Plugin},
};

impl Loader {
    /// Takes over other settings and connections for every plugin. Calls in flight end under those they began with; a
    /// plugin that its pin or its signers no longer allow stops, unless the folder holds a file that they allow.
    pub(crate) async fn reconfigure(
        &mut self,
        plugin: BTreeMap<String, PluginConfig>,
        connections: Arc<Connections>,
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
        plugin: &Arc<Plugin>,
        now: &Generation,
        config: &PluginConfig,
    ) -> Result<(), String> {
        let name = &now.about.name;
        let of_library = self.library_of(plugin).is_some();
        // The pin of a library says which build is loaded next. If that one was refused or is held, this one serves on.
        if !of_library {
            check_pin(name, config, &now.digest)?;
        }
        match &*now.code {
            // A built-in plugin came with the program and has no signature of its own.
            _ if plugin.built_in.load(Ordering::Relaxed) => Ok(()),
            // Its signature is as good as before. A kept component may run where a library is named.
            _ if of_library && self.is_signed(config, &now.digest) => Ok(()),
            Code::Library(code) => self.check_library_signature(name, config, code).await,
            Code::Component(_) | Code::Deferred(_) => {
                let path = self.config.plugins.join(self.place_of(plugin));
                self.check_signature(name, config, path, &now.digest).await
            }
        }
    }
}
