//! Holds the host's side of one instance: its identity, its grants, and the bounds of its call.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::{ResourceLimiter, UpdateDeadline};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use weir_connections::{
    ConnectionHandle, ConnectionRegistry, http::TraceContext, index::IndexStore, mask,
};

use crate::{CallContext, CallEvents, ConnectionGrant, config::PluginLimits, tools::Gate};

mod log_budget;
mod meter;

pub(crate) use log_budget::{LINE_BYTES, LogBudget};
pub(crate) use meter::GuestMeter;

/// Works that one call may ask for, and the length of each.
const LATER_MAX: usize = 4;
const LATER_BYTES_MAX: usize = 4_096;
/// The bound on streams and clocks of WASI's that an instance may have open, since they take the host's memory.
const RESOURCES_MAX: usize = 10_000;
/// The bound on the elements of one table of an instance.
const TABLE_ELEMENTS_MAX: usize = 40_000;

/// The state that all instances of one plugin share. Grants are data: every host function begins by checking them.
pub(crate) struct GuestProfile {
    pub(crate) name: Arc<str>,
    pub(crate) grants: BTreeMap<String, ConnectionGrant>,
    pub(crate) limits: PluginLimits,
    /// The settings that the plugin's tools get, as JSON.
    pub(crate) settings: Arc<str>,
    /// A busy guest waits here first, behind the other busy calls of its own plugin.
    pub(crate) plugin_turn: Arc<Semaphore>,
    /// A busy guest then waits here, so that busy guests never hold every core.
    pub(crate) host_turn: Arc<Semaphore>,
    pub(crate) log: LogBudget,
    /// The receiver of changes.
    pub(crate) gate: Gate,
    pub(crate) connections: Arc<ConnectionRegistry>,
    /// The indexes; `None` means that the plugin gets no room for any.
    pub(crate) indexes: Option<Arc<IndexStore>>,
}

impl GuestProfile {
    /// Masks secrets in a text of the plugin, if it reaches a web service: the text may contain credentials that such a
    /// service repeated.
    pub(crate) fn masked(&self, text: String) -> String {
        let mut granted = self
            .grants
            .keys()
            .filter_map(|name| self.connections.get(name));
        match granted.any(|connection| matches!(connection, ConnectionHandle::Http(_))) {
            true => mask::masked(text),
            false => text,
        }
    }
}

/// The data of one store.
pub(crate) struct GuestState {
    pub(crate) profile: Arc<GuestProfile>,
    pub(crate) memory: MemoryLimit,
    pub(crate) call: GuestCall,
    wasi: Option<Box<WasiWorld>>,
}

/// One call into the guest, as the host sees it.
pub(crate) struct GuestCall {
    pub(crate) id: Arc<str>,
    pub(crate) purpose: CallPurpose,
    pub(crate) deadline: Instant,
    /// The token that cancels the call; `None` means that it cannot be cancelled.
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) events: Option<Arc<dyn CallEvents>>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) meter: Arc<GuestMeter>,
    pub(crate) cpu_max: Duration,
    pub(crate) writes: Arc<WriteTracker>,
    pub(crate) source_calls: u32,
    pub(crate) other_calls: u32,
    pub(crate) log_bytes: usize,
    pub(crate) progress_last: Option<(f64, Instant)>,
    /// The newest report that came too soon after the last one.
    pub(crate) progress_held: Option<GuestProgress>,
}

/// The progress of a call, in the guest's words.
pub(crate) struct GuestProgress {
    pub(crate) done: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: String,
}

/// The purpose of a call. Only a write may write: an adapter that changes its source while listing is refused like one
/// without the grant, and so is a tool that was published as one that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// Loading a plugin: nothing is granted yet.
    Trial,
    Read,
    Write,
    /// Work that an earlier call asked for, in the background.
    Later,
}

/// The writes that a call has handed to a source, and the work it asked for. They live on when the call is dropped.
#[derive(Debug, Default)]
pub(crate) struct WriteTracker {
    under_way: AtomicU32,
    done: AtomicU32,
    /// A write was tried where nothing may be written.
    refused: AtomicBool,
    later: Mutex<Vec<String>>,
}

impl WriteTracker {
    pub(crate) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a write. `changed` is false only if the source is certainly unchanged.
    pub(crate) fn end(&self, changed: bool) {
        if changed {
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::SeqCst);
    }

    pub(crate) fn refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// Keeps a few texts of moderate length; further requests of an adapter are ignored.
    pub(crate) fn ask_later(&self, work: String) {
        let mut later = self.later.lock();
        if later.len() < LATER_MAX && work.len() <= LATER_BYTES_MAX && !later.contains(&work) {
            later.push(work);
        }
    }

    pub(crate) fn asked_later(&self) -> Vec<String> {
        std::mem::take(&mut *self.later.lock())
    }

    /// Returns `true` once a source may have been changed.
    pub(crate) fn handed_over(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0 || self.done.load(Ordering::SeqCst) > 0
    }
}

/// Why the host ended a guest. Travels through wasmtime as the error of the call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuestStop {
    #[error("it used more than {0} ms of processor time")]
    Processor(u128),
    #[error("it made more than {0} host calls in one call")]
    HostCalls(u32),
    #[error("it asked for {0} random bytes at once")]
    Random(u32),
}

impl GuestStop {
    /// Returns the key of `[plugins.NAME]` that sets the bound, if one does.
    pub(crate) fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Processor(_) => Some("cpu_max_ms"),
            Self::HostCalls(_) => Some("host_calls_max"),
            Self::Random(_) => None,
        }
    }
}

impl GuestState {
    pub(crate) fn new(profile: Arc<GuestProfile>, call: GuestCall) -> Self {
        let memory = MemoryLimit::new(profile.limits.memory_max);
        Self {
            profile,
            memory,
            call,
            wasi: None,
        }
    }

    /// Runs at every tick of the clock while the guest runs.
    pub(crate) fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        let used = self.call.meter.tick();
        if used > self.call.cpu_max {
            return Err(wasmtime::Error::new(GuestStop::Processor(
                self.call.cpu_max.as_millis(),
            )));
        }
        Ok(UpdateDeadline::YieldCustom(
            1,
            Box::pin(Arc::clone(&self.call.meter).next_turn(used)),
        ))
    }
}

impl GuestCall {
    /// Returns a call by the host itself.
    pub(crate) fn own(profile: &GuestProfile, purpose: CallPurpose, deadline: Instant) -> Self {
        Self::begun(profile, purpose, deadline, Arc::from(""), Arc::default())
    }

    pub(crate) fn new(
        profile: &GuestProfile,
        purpose: CallPurpose,
        context: &CallContext,
        writes: &Arc<WriteTracker>,
    ) -> Self {
        Self {
            cancel: Some(context.cancel.clone()),
            events: context.events.clone(),
            trace: context.trace.clone(),
            ..Self::begun(
                profile,
                purpose,
                context.deadline,
                Arc::clone(&context.call_id),
                Arc::clone(writes),
            )
        }
    }

    fn begun(
        profile: &GuestProfile,
        purpose: CallPurpose,
        deadline: Instant,
        id: Arc<str>,
        writes: Arc<WriteTracker>,
    ) -> Self {
        Self {
            id,
            purpose,
            deadline,
            cancel: None,
            events: None,
            trace: None,
            meter: Arc::new(GuestMeter::new(profile)),
            cpu_max: profile.limits.cpu_max,
            writes,
            source_calls: 0,
            other_calls: 0,
            log_bytes: 0,
            progress_last: None,
            progress_held: None,
        }
    }
}

impl GuestCall {
    /// Lets go of the caller, once the guest has answered. A delayed report is sent first.
    pub(crate) fn end(&mut self) {
        let events = self.events.take();
        if let Some((events, report)) = events.zip(self.progress_held.take()) {
            events.progress(report.done, report.total, &report.message);
        }
        self.cancel = None;
    }
}

/// Bounds the memory of one instance, over all its memories and tables.
pub(crate) struct MemoryLimit {
    max: usize,
    used: usize,
    refused: bool,
}

impl MemoryLimit {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            used: 0,
            refused: false,
        }
    }

    /// Returns the bytes of linear memory that the instance holds.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns `true` once the guest was refused more memory: a trap after that most likely comes from it.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.max {
            self.refused = true;
            return Ok(false);
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}

/// An empty world for components whose toolchain brings WASI along: no files, environment, arguments or network.
/// Built at the first WASI call, since most guests make none.
struct WasiWorld {
    context: WasiCtx,
    table: ResourceTable,
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(|| {
            let context = WasiCtxBuilder::new().max_random_size(64 << 10).build();
            let mut table = ResourceTable::new();
            table.set_max_capacity(RESOURCES_MAX);
            Box::new(WasiWorld { context, table })
        });
        WasiCtxView {
            ctx: &mut wasi.context,
            table: &mut wasi.table,
        }
    }
}
