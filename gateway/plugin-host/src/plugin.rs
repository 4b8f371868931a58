//! A loaded plugin: its origin, its `about`, and the generation that serves now.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use wasmtime::component::InstancePre;
use weir_admission::{ConcurrencyLimiter, FailureBackoff};

use crate::{
    AdapterFailure, FailureCounts, PluginRuntime, PluginStatus, RecentCalls, ToolDefinitions,
    bindings::v0_1::exports::weir::plugin::{about, collections, items, summaries, tools},
    engine::EngineSize,
    guest::{GuestProfile, GuestState},
    instance::PluginInstance,
    library::LibraryCode,
    pool::InstancePool,
};

pub(crate) mod about_text;
mod deferred;

pub(crate) use about_text::PluginDescription;
pub(crate) use deferred::DeferredCode;

/// The highest bit of an [`OutcomeWindow`], which remains set once that many calls have ended.
const WINDOW_FULL: u64 = 1 << 63;

/// One plugin over its builds. Its generation is swapped whole; calls in flight keep the one they began with.
pub(crate) struct LoadedPlugin {
    /// Whether the build that serves came with the program and not from the folder.
    pub(crate) built_in: AtomicBool,
    pub(crate) generation: ArcSwap<PluginGeneration>,
    /// A build with other definitions of its tools: for the calls that were promised those.
    pub(crate) other: ArcSwapOption<PluginGeneration>,
    /// The build that was the other one until the last swap: for the calls that began before their contract was swapped too.
    pub(crate) last: ArcSwapOption<PluginGeneration>,
    pub(crate) counters: PluginCounters,
}

/// One build of a plugin, ready to be instantiated.
pub(crate) struct PluginGeneration {
    /// Unique in this process.
    pub(crate) id: u64,
    /// The number of the build, counted per plugin, for people.
    pub(crate) number: u64,
    pub(crate) digest: Arc<str>,
    pub(crate) about: PluginDescription,
    /// The definitions; `None` if it has no tools.
    pub(crate) definitions: Option<Arc<ToolDefinitions>>,
    pub(crate) size: EngineSize,
    pub(crate) profile: Arc<GuestProfile>,
    pub(crate) turns: Arc<ConcurrencyLimiter>,
    pub(crate) backoff: FailureBackoff,
    pub(crate) code: Arc<PluginCode>,
    pub(crate) latest: OutcomeWindow,
    /// Others serve now: instances of this one are not kept.
    pub(crate) retired: AtomicBool,
}

/// The code that runs, of one of two kinds.
pub(crate) enum PluginCode {
    Component(ComponentCode),
    /// A component with collections and nothing else, which is loaded when an instance is needed.
    Deferred(DeferredCode),
    Library(Arc<LibraryCode>),
}

/// The compiled component with its imports linked, and where its exports are.
pub(crate) struct ComponentCode {
    pub(crate) component: InstancePre<GuestState>,
    pub(crate) about: about::GuestIndices,
    pub(crate) collections: Option<collections::GuestIndices>,
    pub(crate) summaries: Option<summaries::GuestIndices>,
    pub(crate) tools: Option<tools::GuestIndices>,
    pub(crate) items: Option<items::GuestIndices>,
}

impl PluginCode {
    pub(crate) fn has_collections(&self) -> bool {
        match self {
            Self::Component(code) => code.collections.is_some(),
            Self::Deferred(_) => true,
            Self::Library(code) => code
                .interfaces
                .get()
                .is_some_and(|interfaces| interfaces.collections),
        }
    }

    fn runs(&self) -> PluginRuntime {
        match self {
            Self::Component(_) | Self::Deferred(_) => PluginRuntime::Component,
            Self::Library(_) => PluginRuntime::Process,
        }
    }

    pub(crate) fn has_tools(&self) -> bool {
        match self {
            Self::Component(code) => code.tools.is_some(),
            Self::Deferred(_) => false,
            Self::Library(code) => code
                .interfaces
                .get()
                .is_some_and(|interfaces| interfaces.tools),
        }
    }

    pub(crate) fn has_items(&self) -> bool {
        match self {
            Self::Component(code) => code.items.is_some(),
            Self::Deferred(_) => false,
            Self::Library(code) => code
                .interfaces
                .get()
                .is_some_and(|interfaces| interfaces.items),
        }
    }
}

/// The counts since the plugin was loaded, over its generations.
#[derive(Debug, Default)]
pub(crate) struct PluginCounters {
    pub(crate) calls: AtomicU64,
    pub(crate) swaps: AtomicU64,
    failed: AtomicU64,
    memory: AtomicU64,
    timeout: AtomicU64,
    overloaded: AtomicU64,
    backed_off: AtomicU64,
    busy_nanoseconds: AtomicU64,
    memory_peak_bytes: AtomicUsize,
}

/// How the last calls of one build ended: whether it fails now, not whether it ever did. One bit for each call, the latest
/// lowest, set if it failed; a further bit above these marks where they begin.
#[derive(Debug)]
pub(crate) struct OutcomeWindow(AtomicU64);

impl LoadedPlugin {
    pub(crate) fn new(generation: PluginGeneration) -> Self {
        Self {
            built_in: AtomicBool::new(false),
            generation: ArcSwap::from_pointee(generation),
            other: ArcSwapOption::empty(),
            last: ArcSwapOption::empty(),
            counters: PluginCounters::default(),
        }
    }

    /// Returns the build that defines its tools like this.
    pub(crate) fn defining(&self, definitions: &str) -> Option<Arc<PluginGeneration>> {
        let defines = |generation: &Arc<PluginGeneration>| generation.defines(definitions);
        Some(self.generation.load_full())
            .filter(defines)
            .or_else(|| self.other.load_full().filter(defines))
            .or_else(|| self.last.load_full().filter(defines))
    }

    pub(crate) fn status(&self, pool: &InstancePool) -> PluginStatus {
        let generation = self.generation.load();
        let mut status = generation.status();
        let counters = &self.counters;
        status.built_in = self.built_in.load(Ordering::Relaxed);
        status.calls = counters.calls.load(Ordering::Relaxed);
        status.ends = counters.ends();
        status.failures = status.ends.failed + status.ends.memory + status.ends.timeout;
        status.busy = Duration::from_nanos(counters.busy_nanoseconds.load(Ordering::Relaxed));
        status.memory_peak_bytes = counters.memory_peak_bytes.load(Ordering::Relaxed);
        status.parked_bytes = pool.parked_bytes(generation.id);
        status.backing_off = generation.backoff.waiting(Instant::now());
        status.swaps = counters.swaps.load(Ordering::Relaxed);
        status
    }
}

impl PluginCounters {
    /// Counts a call that has returned.
    pub(crate) fn ended<T>(&self, result: &Result<T, AdapterFailure>, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanoseconds
            .fetch_add(nanoseconds, Ordering::Relaxed);
        let count = match result {
            Err(AdapterFailure::Failed(_) | AdapterFailure::OverLimit(_)) => &self.failed,
            Err(AdapterFailure::Timeout) => &self.timeout,
            Err(AdapterFailure::Overloaded { .. }) => &self.overloaded,
            Err(AdapterFailure::BackedOff { .. }) => &self.backed_off,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the memory in which a call has left its instance.
    pub(crate) fn used<T>(
        &self,
        instance: Option<&PluginInstance>,
        result: &Result<T, AdapterFailure>,
    ) {
        let Some(instance) = instance else { return };
        self.memory_peak_bytes
            .fetch_max(instance.bytes(), Ordering::Relaxed);
        if instance.memory_refused() && matches!(result, Err(AdapterFailure::OverLimit(_))) {
            self.memory.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ends(&self) -> FailureCounts {
        let memory = self.memory.load(Ordering::Relaxed);
        FailureCounts {
            // The calls that ran out of memory are counted among the failed ones.
            failed: self.failed.load(Ordering::Relaxed).saturating_sub(memory),
            memory,
            timeout: self.timeout.load(Ordering::Relaxed),
            overloaded: self.overloaded.load(Ordering::Relaxed),
            backed_off: self.backed_off.load(Ordering::Relaxed),
        }
    }
}

impl Default for OutcomeWindow {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl OutcomeWindow {
    /// Counts a call that has returned. Calls in which the plugin had no part do not count.
    pub(crate) fn ended<T>(&self, result: &Result<T, AdapterFailure>) {
        let failed = match result {
            Ok(_) | Err(AdapterFailure::Guest(_)) => 0,
            Err(
                AdapterFailure::Failed(_) | AdapterFailure::OverLimit(_) | AdapterFailure::Timeout,
            ) => 1,
            Err(_) => return,
        };
        let next = |bits: u64| Some((bits << 1) | failed | (bits & WINDOW_FULL));
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    pub(crate) fn counted(&self) -> RecentCalls {
        let bits = self.0.load(Ordering::Relaxed);
        RecentCalls {
            calls: bits.ilog2(),
            failed: bits.count_ones() - 1,
        }
    }
}

impl PluginGeneration {
    pub(crate) fn status(&self) -> PluginStatus {
        PluginStatus {
            name: self.about.name.clone(),
            version: self.about.version.clone(),
            digest: self.digest.to_string(),
            adapters: self
                .about
                .adapters
                .iter()
                .map(|adapter| adapter.name.clone())
                .collect(),
            definitions: self
                .definitions
                .as_ref()
                .map(|definitions| definitions.digest.to_string()),
            built_in: false,
            runs: self.code.runs(),
            generation: self.number,
            recent: self.latest.counted(),
            calls: 0,
            failures: 0,
            ends: FailureCounts::default(),
            busy: Duration::ZERO,
            memory_peak_bytes: 0,
            parked_bytes: 0,
            backing_off: 0,
            swaps: 0,
        }
    }

    pub(crate) fn defines(&self, definitions: &str) -> bool {
        self.definitions
            .as_ref()
            .is_some_and(|own| *own.digest == *definitions)
    }

    pub(crate) fn provides(&self, adapter: &str) -> bool {
        self.about
            .adapters
            .iter()
            .any(|provided| provided.name == adapter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixty_three_are_counted() {
        let latest = OutcomeWindow::default();
        let counted = || (latest.counted().calls, latest.counted().failed);
        assert_eq!(counted(), (0, 0));
        for _ in 0..40 {
            latest.ended::<()>(&Err(AdapterFailure::Timeout));
        }
        latest.ended::<()>(&Err(AdapterFailure::Cancelled));
        assert_eq!(counted(), (40, 40));
        for _ in 0..40 {
            latest.ended(&Ok(()));
        }
        assert_eq!(counted(), (63, 23));
        for _ in 0..40 {
            latest.ended(&Ok(()));
        }
        assert_eq!(counted(), (63, 0));
    }
}
