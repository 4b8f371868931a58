//! A loaded plugin: one file, what it says of itself, and the generation that serves now.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use wasmtime::component::InstancePre;

use crate::{
    PluginStatus,
    admission::Admission,
    bindings::v0_1::exports::weir::plugin::{about, collections},
    engine::Size,
    guest::{Guest, Profile},
};

pub(crate) mod about_text;

pub(crate) use about_text::About;

/// The slot of one file. Its generation is swapped whole; calls in flight keep the one they began with.
pub(crate) struct Plugin {
    pub(crate) file: String,
    pub(crate) generation: ArcSwap<Generation>,
    pub(crate) counters: Counters,
}

/// One build of a plugin, ready to be instantiated.
pub(crate) struct Generation {
    /// Unique in this process.
    pub(crate) id: u64,
    /// Counted per file, for people.
    pub(crate) number: u64,
    pub(crate) digest: String,
    pub(crate) about: About,
    pub(crate) size: Size,
    pub(crate) profile: Arc<Profile>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) code: Code,
    /// Another generation serves now: instances of this one are not kept.
    pub(crate) retired: AtomicBool,
}

/// The compiled component with its imports linked, and where its exports are.
pub(crate) struct Code {
    pub(crate) component: InstancePre<Guest>,
    pub(crate) about: about::GuestIndices,
    pub(crate) collections: collections::GuestIndices,
}

/// Since the plugin was loaded, over its generations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) swaps: AtomicU64,
}

impl Plugin {
    pub(crate) fn new(file: String, generation: Generation) -> Self {
        Self { file, generation: ArcSwap::from_pointee(generation), counters: Counters::default() }
    }

    pub(crate) fn status(&self) -> PluginStatus {
        let mut status = self.generation.load().status();
        status.calls = self.counters.calls.load(Ordering::Relaxed);
        status.failures = self.counters.failures.load(Ordering::Relaxed);
        status.swaps = self.counters.swaps.load(Ordering::Relaxed);
        status
    }
}

impl Generation {
    pub(crate) fn status(&self) -> PluginStatus {
        PluginStatus {
            name: self.about.name.clone(),
            version: self.about.version.clone(),
            digest: self.digest.clone(),
            adapters: self.about.adapters.iter().map(|adapter| adapter.name.clone()).collect(),
            generation: self.number,
            calls: 0,
            failures: 0,
            swaps: 0,
        }
    }

    pub(crate) fn provides(&self, adapter: &str) -> bool {
        self.about.adapters.iter().any(|provided| provided.name == adapter)
    }
}
