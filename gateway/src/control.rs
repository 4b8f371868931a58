//! Control: decides which contracts are served. Sources submit contracts, the gate judges them, and the publisher serves the live
//! ones.
//!
//! The served contracts are the live ones of the state. A file that does not compile, or whose change is held at the gate, leaves
//! the live version unchanged. A contract whose source cannot be described yet waits and is tried again; one that was published
//! before is loaded from the state, without touching the source.

mod background;
mod compiler;
mod describe;
mod drift;
mod format_trial;
pub mod gate;
pub mod impact;
mod live_events;
pub(crate) mod live_figures;
pub mod operations;
pub mod policies;
mod publisher;
pub mod refused;
pub mod reload;
mod report;
mod shapes;
pub mod sources;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, watch};
use weir_connections::ConnectionRegistry;
use weir_contracts::FileProblem;
use weir_state::GatewayState;
use weir_watch::{FileWatcher, WatchTarget};

pub use self::shapes::recorded_shapes;
pub use self::{
    compiler::{CompileFailure, FormCompiler},
    describe::{RefusedSource, ShapeFailure, UnavailableDependency, describe_all},
    drift::{ContractDrift, SourceDrift},
    format_trial::{FormatTrial, try_formats},
    live_events::EventSubscription,
    publisher::{SnapshotPublisher, in_use},
    report::FolderReport,
    sources::{
        files::{UnservedFile, contract_files},
        plugins::PluginSource,
        upstreams::UpstreamSource,
    },
};
use self::{
    gate::Gate,
    live_events::LiveWatch,
    live_figures::LiveFigures,
    policies::PolicySource,
    report::ReportLog,
    sources::{
        files::{FileSource, folder_problem},
        locks,
    },
};
use crate::{config::GatewayConfig, plugin_files::PluginFiles, serving::ServingGateway};

/// The time between two scans of the folder while it is changing.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// The longest pause between two checks for changes.
const SETTLE_MAX: Duration = Duration::from_millis(50);

/// Decides which contracts are served, and watches what they depend on.
pub struct ControlPlane {
    gateway: Arc<ServingGateway>,
    publisher: Arc<SnapshotPublisher>,
    compiler: Arc<FormCompiler>,
    files: FileSource,
    plugins: Arc<PluginSource>,
    upstreams: Arc<UpstreamSource>,
    drift: SourceDrift,
    /// The configuration under which the sources were read. The lock allows one scan at a time.
    read_under: Mutex<Option<Arc<GatewayConfig>>>,
    log: ReportLog,
    plugin_files: PluginFiles,
    refused_connections: ArcSwap<Vec<FileProblem>>,
    /// Counts changes that the background loops must apply, other than those of the state and of files.
    background: watch::Sender<u64>,
    connections: ArcSwap<ConnectionRegistry>,
    live_figures: LiveFigures,
    live_watch: LiveWatch,
}

impl ControlPlane {
    /// Creates the control of a gateway. Nothing is read or published until it runs.
    pub fn new(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) -> Self {
        let policies = Arc::new(PolicySource::default());
        let gate = Gate::new(state.clone(), gateway.audit().clone(), policies);
        let publisher = Arc::new(SnapshotPublisher::new(gateway.clone(), gate));
        let compiler = Arc::new(FormCompiler::new(gateway.clone(), state));
        Self {
            files: FileSource::new(publisher.clone(), compiler.clone()),
            plugins: Arc::new(PluginSource::new(gateway.clone(), publisher.clone())),
            upstreams: Arc::new(UpstreamSource::new(gateway.clone(), publisher.clone())),
            drift: SourceDrift::new(gateway.clone(), publisher.clone(), compiler.clone()),
            gateway,
            publisher,
            compiler,
            read_under: Mutex::default(),
            log: ReportLog::default(),
            plugin_files: PluginFiles::default(),
            refused_connections: ArcSwap::default(),
            background: watch::Sender::new(0),
            connections: ArcSwap::default(),
            live_figures: LiveFigures::default(),
            live_watch: LiveWatch::default(),
        }
    }

    /// Returns the gate, which judges submissions.
    pub fn gate(&self) -> &Gate {
        self.publisher.gate()
    }

    /// Returns the policies in force.
    pub fn policies(&self) -> &PolicySource {
        self.gate().policies()
    }

    /// Returns the parts that all requests share.
    pub fn gateway(&self) -> &Arc<ServingGateway> {
        &self.gateway
    }

    /// Returns the state that all processes of this gateway share.
    pub fn state(&self) -> &Arc<GatewayState> {
        self.gate().state()
    }

    /// Returns the publisher, which swaps snapshots.
    pub fn publisher(&self) -> &SnapshotPublisher {
        &self.publisher
    }

    /// Returns the compiler of forms.
    pub fn compiler(&self) -> &FormCompiler {
        &self.compiler
    }

    /// Returns the source that submits the tools of plugins.
    pub fn plugins(&self) -> &Arc<PluginSource> {
        &self.plugins
    }

    /// Returns the source that submits the lists of other servers.
    pub fn upstreams(&self) -> &Arc<UpstreamSource> {
        &self.upstreams
    }

    /// Returns the monitor that checks the sources of live contracts.
    pub fn drift(&self) -> &SourceDrift {
        &self.drift
    }

    /// Returns the connections that are in effect.
    pub fn connections(&self) -> Arc<ConnectionRegistry> {
        self.connections.load_full()
    }

    /// Puts new connections into effect.
    pub fn set_connections(&self, connections: Arc<ConnectionRegistry>) {
        self.connections.store(connections);
    }

    /// Returns the figures of the last minutes.
    pub(crate) fn live_figures(&self) -> &LiveFigures {
        &self.live_figures
    }

    /// Counts the calls of tools by the hour, until the task ends.
    pub async fn count_hours(&self) {
        loop {
            tokio::time::sleep(live_figures::HOUR).await;
            self.live_figures.end_hour(self.gateway.metrics());
        }
    }

    fn live_watch(&self) -> &LiveWatch {
        &self.live_watch
    }

    /// Returns the file of each contract of the contracts folder.
    pub fn contract_files(&self) -> BTreeMap<String, PathBuf> {
        self.files.files()
    }

    /// Returns the contract files that were refused or wait for their source, at the last scan.
    pub fn unserved(&self) -> Vec<UnservedFile> {
        self.files.unserved()
    }

    /// Reads new and changed contract files and state rows, and serves what is live. Called at start and by `watch`.
    pub async fn load(&self) -> FolderReport {
        let mut read_under = self.read_under.lock().await;
        let mut report = FolderReport::default();
        let config = Arc::clone(&self.gateway.config());
        let has_other_policies = self
            .policies()
            .read(&config.policy.folder, config.policy.default.into());
        let folder = &config.folders.contracts;
        if read_under
            .replace(config.clone())
            .is_some_and(|before| has_other_policies || !Arc::ptr_eq(&before, &config))
        {
            self.files.retry_refused().await;
            self.plugins.submit_all(&mut report).await;
        }
        if let Err(error) = self.gate().follow().await {
            report.problems.push(folder_problem(folder, &error));
            return report;
        }
        // Policies are checked against the previously live versions first, so that a start does not serve a change that breaks
        // one.
        self.policies().judge(&self.publisher.servable_contracts());
        report
            .problems
            .extend(locks::restore_upstreams(self.gate(), &config).await);
        // The folder of one machine must not undo what another machine published.
        if config.state.url.is_none() {
            self.files.submit_folder(folder, &mut report).await;
        }
        self.publisher.serve_live();
        self.gate().note_taken();
        report.problems.extend(self.policies().problems());
        report
    }

    /// Logs the new entries of a report.
    pub fn log(&self, report: &FolderReport) {
        self.log.write(report);
    }

    /// Watches the folder and what other processes publish, until the task ends.
    pub async fn watch(&self, watcher: &FileWatcher) {
        let config = Arc::clone(&self.gateway.config());
        let folders = [&config.folders.contracts, &config.policy.folder];
        let folders = folders.map(|folder| WatchTarget::folder(folder)).into();
        let mut pace = watcher.pace(WATCH_INTERVAL, folders);
        let mut live = self.gate().state().changes();
        let mut background = self.background_changes();
        loop {
            tokio::select! {
                () = pace.next_look() => {}
                Ok(()) = live.changed() => {}
                Ok(()) = background.changed() => {}
                () = self.publisher.next_sunset() => {}
            }
            let began = Instant::now();
            let report = self.load().await;
            self.log(&report);
            // Admins wait until every node has a change, so the next one is not delayed for long; many changes at once use at
            // most half of a core.
            tokio::time::sleep(began.elapsed().min(SETTLE_MAX)).await;
        }
    }
}
