//! What came of loading a file of the folder, or a library that the configuration names.

use std::sync::Arc;

use super::Loader;
use crate::plugin::Plugin;

/// What serves from a file or a library, and what became of its newest build.
#[derive(Default)]
pub(super) struct Slot {
    /// The plugin that serves. Its build is an earlier one if the newest was refused or is held.
    pub(super) plugin: Option<Arc<Plugin>>,
    /// Whether another try with the same build may succeed once something else has changed.
    pub(super) try_again: bool,
    /// The digest, if the newest build waits until someone accepts it.
    pub(super) held: Option<String>,
    /// The definitions of the newest build, if they have not been approved.
    pub(super) defines: Option<Defines>,
}

impl Slot {
    /// Notes the end of a try: `why` the build does not serve, if it does not.
    pub(super) fn settle(&mut self, why: Option<&Refused>) {
        self.try_again = why.is_some();
        self.held = why.and_then(|why| why.held.clone());
        self.defines = why.and_then(|why| why.defines.clone());
    }

    pub(super) fn serves(&self, plugin: &Arc<Plugin>) -> bool {
        self.plugin
            .as_ref()
            .is_some_and(|served| Arc::ptr_eq(served, plugin))
    }
}

/// A plugin's name, and the digest of the definitions of its tools.
type Defines = (String, Arc<str>);

/// Why a build does not serve.
pub(super) struct Refused {
    pub(super) reason: String,
    /// The digest, if nothing is wrong except that nobody has accepted it.
    pub(super) held: Option<String>,
    /// The definitions, if they have not been approved.
    pub(super) defines: Option<Defines>,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self {
            reason,
            held: None,
            defines: None,
        }
    }
}

impl Loader {
    /// Returns the slots of the files and the libraries. Built-in plugins have none: nobody puts another build there.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        let files = self.files.values().map(|file| &file.slot);
        files.chain(self.libraries.values().map(|library| &library.slot))
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        let files = self.files.values_mut().map(|file| &mut file.slot);
        files.chain(self.libraries.values_mut().map(|library| &mut library.slot))
    }

    /// Returns the plugins that serve, built-in ones too.
    pub(super) fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        let built_in = self
            .built_in
            .iter()
            .filter_map(|inside| inside.plugin.as_ref());
        self.slots()
            .filter_map(|slot| slot.plugin.as_ref())
            .chain(built_in)
    }

    pub(super) fn is_served(&self, plugin: &Arc<Plugin>) -> bool {
        self.plugins().any(|served| Arc::ptr_eq(served, plugin))
    }
}
