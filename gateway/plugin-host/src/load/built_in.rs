//! Plugins that came with the program: they serve where no file and no library stands for them.

use std::sync::{Arc, atomic::Ordering};

use super::{Loader, check_pin, component::Prepared, report};
use crate::{
    LoadReport,
    engine::Size,
    plugin::{About, Code, DeferredCode, Plugin},
};

/// A built-in plugin, whether it serves or a file or library does in its place.
pub(super) struct Inside {
    name: &'static str,
    digest: &'static str,
    component: &'static [u8],
    /// The plugin; `None` if it was refused, or if a file or library has its name or its adapter.
    pub(super) plugin: Option<Arc<Plugin>>,
    /// Whether it was refused: then it is not tried again until refusals are forgotten.
    pub(super) refused: bool,
}

impl Inside {
    pub(super) fn new(
        &(name, digest, component): &(&'static str, &'static str, &'static [u8]),
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
    fn is_claimed_by(&self, about: &About) -> bool {
        about.name == self.name
            || about
                .adapters
                .iter()
                .any(|adapter| adapter.name == self.name)
    }
}

impl Loader {
    /// Loads those that nothing else stands for. One takes over from the plugin of its name among `leaving`, whose file or
    /// library is gone. Contracts are not asked what they need: `unavailable` would be no better for them.
    pub(super) async fn fall_back(&mut self, leaving: &[Arc<Plugin>]) -> Vec<LoadReport> {
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
        name: &str,
        file: (String, &'static [u8]),
        current: Option<Arc<Plugin>>,
    ) -> Result<(Arc<Plugin>, Vec<String>), String> {
        let (prepared, about) = self.prepare_built_in(name, file).await?;
        let notes = prepared.notes.clone();
        let config = self.config.plugin.get(name).cloned().unwrap_or_default();
        let plugin = match current {
            // The file that is gone held the same bytes.
            Some(current) if current.generation.load().digest[..] == prepared.digest[..] => current,
            current => {
                if about.name != name || about.adapters.iter().any(|adapter| adapter.name != name) {
                    return Err(format!(
                        "what is built in as `{name}` must be that, and provide that adapter alone"
                    ));
                }
                check_pin(name, &config, &prepared.digest)?;
                let generation =
                    self.generation(current.as_deref(), about, None, &config, prepared);
                self.swap(current, generation)
            }
        };
        let digest = plugin.generation.load().digest.clone();
        self.accepted.note(name, &config, &digest)?;
        plugin.built_in.store(true, Ordering::Relaxed);
        Ok((plugin, notes))
    }

    /// Prepares a component that is built in, and returns what it says about itself. Once that is kept beside the compiled
    /// code, the code is loaded when a call needs it.
    async fn prepare_built_in(
        &self,
        name: &str,
        file: (String, &'static [u8]),
    ) -> Result<(Prepared, About), String> {
        let digest = file.0.clone();
        if let Some((about, size)) = self.cache.kept_about(&digest)
            && let Ok(about) = About::parse(&about, true)
        {
            let prepared = Prepared {
                digest,
                size,
                code: Arc::new(Code::Deferred(self.deferred(file, size))),
                notes: Vec::new(),
            };
            return Ok((prepared, about));
        }
        let prepared = self.prepare(name.to_owned(), move || Ok(file)).await?;
        let text = self.about_text(&prepared).await?;
        let about = About::parse(&text, prepared.code.has_collections())?;
        let is_adapter = prepared.code.has_collections() && !prepared.code.has_tools();
        if is_adapter && prepared.notes.is_empty() {
            self.cache
                .keep_about(&prepared.digest, &text, prepared.size);
        }
        Ok((prepared, about))
    }

    fn deferred(&self, (digest, bytes): (String, &'static [u8]), size: Size) -> DeferredCode {
        let preparation = self.preparation();
        DeferredCode::new(move || {
            let prepared = preparation.run(bytes, digest.clone())?;
            match Arc::into_inner(prepared.code) {
                Some(Code::Component(code)) if prepared.size == size => Ok(code),
                _ => Err("the compiled code in the cache is of another kind".to_owned()),
            }
        })
    }

    /// Returns the built-in plugin that serves under this name.
    pub(super) fn built_in_named(&self, name: &str) -> Option<Arc<Plugin>> {
        self.built_in
            .iter()
            .find(|inside| inside.name == name)?
            .plugin
            .clone()
    }

    /// Hands over the built-in plugin that serves from these very bytes: now it belongs to a file.
    pub(super) fn take_built_in(&mut self, digest: &str) -> Option<Arc<Plugin>> {
        let serves = |plugin: &Arc<Plugin>| plugin.generation.load().digest[..] == *digest;
        let inside = self
            .built_in
            .iter_mut()
            .find(|inside| inside.plugin.as_ref().is_some_and(serves))?;
        let plugin = inside.plugin.take()?;
        plugin.built_in.store(false, Ordering::Relaxed);
        Some(plugin)
    }

    /// Takes out the built-in plugins that the plugin of a file or library replaces. One that it took over from serves on
    /// as that plugin.
    pub(super) fn displace(&mut self, by: &Arc<Plugin>) {
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

    fn is_claimed(&self, inside: &Inside) -> bool {
        let mut plugins = self.slots().filter_map(|slot| slot.plugin.as_ref());
        plugins.any(|plugin| inside.is_claimed_by(&plugin.generation.load().about))
    }
}
