//! The host: loaded plugins by adapter, and the calls into them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use weir_admission::AttemptOutcome;
use weir_connections::ConnectionRegistry;
use weir_contracts::contract::ContractCollection;
use weir_watch::FileWatcher;

use crate::{
    AdapterChange, AdapterFailure, AdapterPage, AdapterQuery, AdapterSummaryPage,
    AdapterSummaryQuery, CallContext, CollectionRef, GuestError, HostConfig, PluginConfig,
    PluginIsolation, ToolAnswer, ToolDefinitions, ToolGate, ToolInvocation, ToolRef, WriteFailure,
    call::{self, GuestReply, GuestRequest},
    engine::EnginePair,
    guest::{CallPurpose, GuestCall, WriteTracker},
    later::BackgroundQueue,
    load::PluginLoader,
    native::NativeRegistry,
    plugin::{LoadedPlugin, PluginCounters, PluginGeneration},
    pool::{InstanceKey, InstancePool},
    tools::{Gate, context_json},
};

/// The time a describe may take if no deadline is set.
const DESCRIBE_MAX: Duration = Duration::from_secs(10);
/// Settings, shape and arguments of one call, together.
const ARGUMENT_MAX_BYTES: usize = 1 << 20;

/// Runs the plugins of a gateway. Each call has its own instance, within bounds on time and memory.
pub struct PluginHost {
    engines: &'static EnginePair,
    pool: Arc<InstancePool>,
    natives: Arc<NativeRegistry>,
    pub(crate) served: Arc<ServedPlugins>,
    pub(crate) loader: tokio::sync::Mutex<PluginLoader>,
    pub(crate) later: BackgroundQueue,
    /// Wakes the watch of the folder: a refused or held file may load by now.
    look_due: Notify,
}

/// The plugins that serve now, by adapter and by name, and the contracts that need them.
#[derive(Default)]
pub(crate) struct ServedPlugins {
    pub(crate) by_adapter: ArcSwap<HashMap<String, Arc<LoadedPlugin>>>,
    pub(crate) by_name: ArcSwap<BTreeMap<String, Arc<LoadedPlugin>>>,
    pub(crate) in_use: ArcSwapOption<Arc<InUse>>,
    pub(crate) tool_gate: Gate,
}

/// The outcome of loading one file.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The file's name in the folder; of a library, its path; of a built-in plugin, its own name.
    pub file: String,
    pub built_in: bool,
    pub result: Result<PluginStatus, String>,
    /// The file is gone; its adapters answer `unavailable` unless they are built in, which is then the next report.
    pub removed: bool,
    /// The digest, if the file only waits until it is accepted.
    pub held: Option<String>,
    /// What an operator should know although the plugin loaded.
    pub notes: Vec<String>,
}

/// A loaded plugin, and the counts of its calls.
#[derive(Clone, Debug)]
pub struct PluginStatus {
    pub name: String,
    pub version: String,
    /// sha256 of the file, hex.
    pub digest: String,
    pub adapters: Vec<String>,
    /// The sha256 of its tool definitions, in hex; none without tools.
    pub definitions: Option<String>,
    /// Whether the plugin came with the program and not from the folder.
    pub built_in: bool,
    pub runs: PluginRuntime,
    pub generation: u64,
    /// The outcomes of the last calls of this build.
    pub recent: RecentCalls,
    /// The number of calls since the plugin was loaded, over its generations.
    pub calls: u64,
    /// Calls that ended in a trap, a bound or a timeout.
    pub failures: u64,
    /// Calls that were not answered, by what ended them.
    pub ends: FailureCounts,
    /// The time that all calls took together, including their sources and their waiting for a turn.
    pub busy: Duration,
    /// The most linear memory that one instance has used.
    pub memory_peak_bytes: usize,
    /// Linear memory of the instances that wait for the next call.
    pub parked_bytes: usize,
    /// Collections that are not called for a while because their last calls all failed, counted per caller.
    pub backing_off: usize,
    pub swaps: u64,
}

/// The place where a plugin's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginRuntime {
    /// The code runs in the sandbox of the gateway.
    Component,
    /// Native code, in a separate process for each instance.
    Process,
}

impl PluginStatus {
    /// Returns the origin of the build and the way it runs, in a word of the admin API.
    pub fn origin(&self) -> &'static str {
        match self.runs {
            PluginRuntime::Component if self.built_in => "built-in",
            PluginRuntime::Component => "folder",
            PluginRuntime::Process => "native",
        }
    }
}

/// The last calls that reached the plugin, at most 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentCalls {
    pub calls: u32,
    /// The calls that ended in a trap, at a bound or in a timeout.
    pub failed: u32,
}

/// The numbers of calls of a plugin that ended in each kind of failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct FailureCounts {
    /// A trap, or an answer that it may not give.
    pub failed: u64,
    /// The calls that ran out of memory.
    pub memory: u64,
    pub timeout: u64,
    /// The calls for which no turn or no instance was free in time.
    pub overloaded: u64,
    /// The plugin was not called: it had failed again and again.
    pub backed_off: u64,
}

/// A collection that a published contract reaches.
#[derive(Clone, Debug)]
pub struct NeededCollection {
    pub source: CollectionRef,
    /// The contract's collection. The source must conform to the contract's columns and cells.
    pub published: ContractCollection,
}

/// Answers the collections that published contracts reach through an adapter.
pub type InUse = dyn Fn(&str) -> Vec<NeededCollection> + Send + Sync;

impl PluginHost {
    /// Creates a host. No plugin is loaded yet. `Err` means that the engine of WebAssembly cannot be made.
    pub fn new(config: HostConfig, connections: Arc<ConnectionRegistry>) -> anyhow::Result<Self> {
        let engines = EnginePair::shared()?;
        let pool = Arc::new(InstancePool::new(
            config.instances_max,
            config.parked_bytes_max,
        ));
        let served = Arc::<ServedPlugins>::default();
        let natives = Arc::new(NativeRegistry::installed(&config));
        let loader = PluginLoader::new(
            config,
            connections,
            engines,
            Arc::clone(&pool),
            Arc::clone(&natives),
            Arc::clone(&served),
        );
        Ok(Self {
            engines,
            pool,
            natives,
            served,
            loader: tokio::sync::Mutex::new(loader),
            later: BackgroundQueue::default(),
            look_due: Notify::new(),
        })
    }

    /// Sets the collections in use. They are looked up before a new build of a plugin goes live, which must still
    /// provide each of them.
    pub fn set_in_use(&self, in_use: Arc<InUse>) {
        self.served.in_use.store(Some(Arc::new(in_use)));
    }

    /// Sets the gate that is asked before a build with tools goes live.
    pub fn set_tool_gate(&self, gate: Arc<dyn ToolGate>) {
        self.served.tool_gate.store(Some(Arc::new(gate)));
    }

    /// Returns `true` if a build is loaded that defines the plugin's tools like this.
    pub fn has_build(&self, plugin: &str, definitions: &str) -> bool {
        self.served
            .by_name
            .load()
            .get(plugin)
            .is_some_and(|plugin| plugin.defining(definitions).is_some())
    }

    /// Returns the tools that the newest build of each plugin defines, by the plugin's name.
    pub fn defined(&self) -> Vec<(String, Arc<ToolDefinitions>)> {
        let by_name = self.served.by_name.load();
        let defined = by_name
            .iter()
            .map(|(name, plugin)| (name, plugin.generation.load().definitions.clone()));
        defined
            .filter_map(|(name, definitions)| Some((name.clone(), definitions?)))
            .collect()
    }

    /// Loads every file of the folder once, and built-in plugins for the rest; used at start. Sources are not asked.
    pub async fn load_all(&self) -> Vec<LoadReport> {
        self.loader.lock().await.load_all().await
    }

    /// Watches the folder until the task is aborted; each change is reported.
    pub async fn watch(
        self: Arc<Self>,
        watcher: FileWatcher,
        report: impl Fn(LoadReport) + Send + 'static,
    ) {
        let (mut pace, mut changes) = {
            let loader = self.loader.lock().await;
            (loader.pace(&watcher), loader.changes())
        };
        loop {
            for change in self.loader.lock().await.look().await {
                report(change);
            }
            self.pool.drop_idle();
            tokio::select! {
                () = pace.next_look() => {}
                // Two looks in a row need time between them, since together they decide whether a file is complete or gone.
                () = async {
                    tokio::select! {
                        () = self.look_due.notified() => {}
                        () = next_change(&mut changes) => {}
                    }
                    tokio::time::sleep(crate::load::LOOK_INTERVAL).await;
                } => {}
            }
        }
    }

    /// Tries refused files again, for instance after a contract that was in their way has changed.
    pub async fn retry_refused(&self) {
        self.loader.lock().await.forget_refusals();
        self.look_due.notify_one();
    }

    /// Loads the files of the folder now, and with `again` retries refused files; returns the outcomes.
    pub async fn settle_all(&self, again: bool) -> Vec<LoadReport> {
        self.loader.lock().await.settle_all(again).await
    }

    /// Returns the files that serve, by their plugins' names. A built-in plugin has none.
    pub async fn files(&self) -> BTreeMap<String, String> {
        self.loader.lock().await.files()
    }

    /// Accepts a build, whether it waits or is still to come: by its sha256, in hex. `by` is the admin that accepted it.
    pub async fn approve(&self, digest: &str, by: &str) {
        self.loader.lock().await.approve(digest, by);
        self.look_due.notify_one();
    }

    /// Applies other settings and connections, from the next call on. The reports list the resulting loads, swaps and
    /// refusals.
    pub async fn reconfigure(
        &self,
        plugin: BTreeMap<String, PluginConfig>,
        connections: Arc<ConnectionRegistry>,
    ) -> Vec<LoadReport> {
        self.loader
            .lock()
            .await
            .reconfigure(plugin, connections)
            .await
    }

    /// Returns the name that the native library of `[plugins.NAME]` gives itself, or why it cannot be run.
    pub async fn library_name(&self, config: &PluginConfig) -> Result<String, String> {
        self.loader.lock().await.library_name(config).await
    }

    /// Returns the status of all loaded plugins, in the order of their names.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.served
            .by_name
            .load()
            .values()
            .map(|plugin| plugin.status(&self.pool))
            .collect()
    }

    /// Returns how many instances exist, and how many of them are parked.
    pub fn instances(&self) -> (usize, usize) {
        self.pool.counts()
    }

    /// Returns the shape, as JSON, of the collection that these settings reach.
    pub async fn describe(&self, adapter: &str, settings: &str) -> Result<String, AdapterFailure> {
        let context = CallContext {
            tenant: Arc::from(""),
            call_id: Arc::from(""),
            deadline: Instant::now() + DESCRIBE_MAX,
            cancel: CancellationToken::new(),
            events: None,
            trace: None,
            ran_on: Arc::default(),
        };
        let ask = GuestRequest::Describe {
            adapter: adapter.into(),
            settings: settings.into(),
        };
        match self
            .run(&context, adapter, CallPurpose::Read, ask, &Arc::default())
            .await?
        {
            GuestReply::Text(shape) => Ok(shape),
            _ => Err(AdapterFailure::Failed("it answered no shape".into())),
        }
    }

    /// Reads one page of a collection. The deadline and the cancellation are those of `context`.
    pub async fn read(
        &self,
        context: &CallContext,
        collection: &CollectionRef,
        query: &Arc<AdapterQuery>,
    ) -> Result<AdapterPage, AdapterFailure> {
        let ask = GuestRequest::Read {
            collection: collection.clone(),
            query: Arc::clone(query),
        };
        match self.run_read(context, collection, ask).await? {
            GuestReply::Page(page) => Ok(page),
            _ => Err(AdapterFailure::Failed("it answered no page".into())),
        }
    }

    /// Counts or summarizes records.
    pub async fn summarize(
        &self,
        context: &CallContext,
        collection: &CollectionRef,
        query: &Arc<AdapterSummaryQuery>,
    ) -> Result<AdapterSummaryPage, AdapterFailure> {
        let ask = GuestRequest::Summarize {
            collection: collection.clone(),
            query: Arc::clone(query),
        };
        match self.run_read(context, collection, ask).await? {
            GuestReply::Summary(page) => Ok(page),
            _ => Err(AdapterFailure::Failed("it answered no summary".into())),
        }
    }

    /// Asks an adapter what changes nothing. Work that it leaves behind is done later.
    async fn run_read(
        &self,
        context: &CallContext,
        collection: &CollectionRef,
        ask: GuestRequest,
    ) -> Result<GuestReply, AdapterFailure> {
        let left = Arc::<WriteTracker>::default();
        let reply = self
            .run(context, &collection.adapter, CallPurpose::Read, ask, &left)
            .await;
        self.later.take(&left, context, collection);
        reply
    }

    /// Makes a change and returns the record that the source now holds, as JSON. Once the write has been handed to the
    /// source, a cancelled caller no longer ends the call: it runs to its end or its deadline, and its true outcome is
    /// returned.
    pub async fn write(
        &self,
        context: &CallContext,
        collection: &CollectionRef,
        change: &Arc<AdapterChange>,
    ) -> Result<String, WriteFailure> {
        let writes = Arc::<WriteTracker>::default();
        let ask = GuestRequest::Write {
            collection: collection.clone(),
            change: Arc::clone(change),
        };
        let result = self
            .run(
                context,
                &collection.adapter,
                CallPurpose::Write,
                ask,
                &writes,
            )
            .await;
        self.later.take(&writes, context, collection);
        let failure = match result {
            Ok(GuestReply::Text(record)) => return Ok(record),
            Ok(_) => AdapterFailure::Failed("it answered no record".into()),
            Err(failure) => failure,
        };
        Err(WriteFailure {
            failure,
            handed_over: writes.handed_over(),
        })
    }

    /// Calls a tool, on the build that defines it as it was published. A write continues here as in [`Self::write`]. A tool
    /// that was published as read-only, and tried to write, is `denied` even if it ignores the refusal.
    pub async fn call_tool(
        &self,
        context: &CallContext,
        tool: &ToolRef,
        invocation: &Arc<ToolInvocation>,
    ) -> Result<ToolAnswer, WriteFailure> {
        let writes = Arc::<WriteTracker>::default();
        let purpose = if tool.read_only {
            CallPurpose::Read
        } else {
            CallPurpose::Write
        };
        let result = self
            .run_tool(context, tool, purpose, invocation, &writes)
            .await;
        if writes.refused() {
            tracing::warn!(
                target: "weir::plugin",
                plugin = &*tool.plugin,
                tool = &*tool.tool,
                call = &*context.call_id,
                "the tool is published as read-only and tried to write: nothing was written"
            );
            return Err(WriteFailure {
                failure: AdapterFailure::Guest(wrote_while_reading()),
                handed_over: false,
            });
        }
        let failure = match result {
            Ok(GuestReply::Answer(answer)) => return Ok(answer),
            Ok(_) => AdapterFailure::Failed("it answered no tool's answer".into()),
            Err(failure) => failure,
        };
        Err(WriteFailure {
            failure,
            handed_over: writes.handed_over(),
        })
    }

    async fn run_tool(
        &self,
        context: &CallContext,
        tool: &ToolRef,
        purpose: CallPurpose,
        invocation: &Arc<ToolInvocation>,
        writes: &Arc<WriteTracker>,
    ) -> Result<GuestReply, AdapterFailure> {
        let ask = GuestRequest::Call {
            tool: tool.clone(),
            invocation: Arc::clone(invocation),
            context: context_json(context, tool, invocation),
        };
        check_size(&ask)?;
        let plugin = self.served.by_name.load().get(&*tool.plugin).cloned();
        let build = plugin.and_then(|plugin| {
            plugin
                .defining(&tool.definitions)
                .map(|build| (plugin, build))
        });
        let (plugin, build) =
            build.ok_or_else(|| AdapterFailure::NoBuild(tool.plugin.to_string()))?;
        self.run_build(&plugin, &build, context, purpose, ask, writes)
            .await
    }

    pub(crate) async fn run(
        &self,
        context: &CallContext,
        adapter: &str,
        purpose: CallPurpose,
        ask: GuestRequest,
        writes: &Arc<WriteTracker>,
    ) -> Result<GuestReply, AdapterFailure> {
        check_size(&ask)?;
        if let Some(native) = self.natives.get(adapter) {
            return native.run(context, ask, writes).await;
        }
        let plugin = self.served.by_adapter.load().get(adapter).cloned();
        let plugin = plugin.ok_or_else(|| AdapterFailure::Unavailable(adapter.to_owned()))?;
        let generation = plugin.generation.load_full();
        self.run_build(&plugin, &generation, context, purpose, ask, writes)
            .await
    }

    async fn run_build(
        &self,
        plugin: &LoadedPlugin,
        generation: &Arc<PluginGeneration>,
        context: &CallContext,
        purpose: CallPurpose,
        ask: GuestRequest,
        writes: &Arc<WriteTracker>,
    ) -> Result<GuestReply, AdapterFailure> {
        let counters = &plugin.counters;
        counters.calls.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let result = self
            .run_on(generation, context, purpose, ask, writes, counters)
            .await;
        counters.ended(&result, began.elapsed());
        generation.latest.ended(&result);
        result
    }

    async fn run_on(
        &self,
        generation: &Arc<PluginGeneration>,
        context: &CallContext,
        purpose: CallPurpose,
        ask: GuestRequest,
        writes: &Arc<WriteTracker>,
        counters: &PluginCounters,
    ) -> Result<GuestReply, AdapterFailure> {
        // A describe is tried however often it has failed. Work for later calls is in no caller's way.
        let counted = ask
            .key()
            .filter(|_| purpose != CallPurpose::Later)
            .map(Arc::clone);
        let attempt = match &counted {
            Some(key) => Some(
                generation
                    .backoff
                    .attempt(&context.tenant, key, Instant::now())?,
            ),
            None => None,
        };
        let _ = context.ran_on.set(Arc::clone(&generation.digest));
        let _turn = generation.turns.take(&context.tenant).await?;
        let key = InstanceKey {
            generation: generation.id,
            tenant: (generation.profile.limits.isolation != PluginIsolation::Shared)
                .then(|| Arc::clone(&context.tenant)),
        };
        let mut lease = self.pool.checkout(&key, generation.size).await?;
        let _running = self.engines.running();
        let call = GuestCall::new(&generation.profile, purpose, context, writes);
        let kept =
            generation.profile.limits.isolation != PluginIsolation::Call && !ask.is_describe();
        let result = call::run(generation, &mut lease.instance, call, ask).await;
        counters.used(lease.instance.as_ref(), &result);
        if let Some(attempt) = attempt {
            attempt.ended(end(&result), Instant::now());
        }
        // Any other end of the call leaves an instance in an unknown state.
        let clean = matches!(result, Ok(_) | Err(AdapterFailure::Guest(_)));
        let reusable = lease
            .instance
            .as_ref()
            .is_some_and(|instance| instance.reusable());
        if clean && reusable && kept && !generation.retired.load(Ordering::Acquire) {
            lease.park(key);
            // A swap between the look and the parking has already dropped the instances that were parked before.
            if generation.retired.load(Ordering::Acquire) {
                self.pool.drop_generation(generation.id);
            }
        }
        result
    }
}

/// Returns what the outcome proves. An error of the guest's own is an answer. A deadline may be the source's fault, and
/// a call that found no room met no guest: these prove nothing.
fn end<T>(result: &Result<T, AdapterFailure>) -> AttemptOutcome {
    match result {
        Err(AdapterFailure::Failed(_) | AdapterFailure::OverLimit(_)) => AttemptOutcome::Failed,
        Ok(_) | Err(AdapterFailure::Guest(_)) => AttemptOutcome::Answered,
        Err(_) => AttemptOutcome::Open,
    }
}

fn check_size(ask: &GuestRequest) -> Result<(), AdapterFailure> {
    if ask.size() > ARGUMENT_MAX_BYTES {
        return Err(AdapterFailure::Failed(format!(
            "the arguments take more than {ARGUMENT_MAX_BYTES} bytes"
        )));
    }
    Ok(())
}

fn wrote_while_reading() -> GuestError {
    GuestError {
        code: weir_connections::FailureCode::Forbidden.word().into(),
        message:
            "The tool is published as read-only and tried to change something; nothing was changed."
                .into(),
        field: None,
        retry_after_ms: None,
        details: None,
    }
}

/// Returns when the state has changed; never if there is no state.
async fn next_change(changes: &mut Option<watch::Receiver<i64>>) {
    if let Some(feed) = changes
        && feed.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
