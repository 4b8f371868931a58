//! Holds what all requests share, built in dependency order.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;
use weir_plugin_host::PluginHost;
use weir_upstream::UpstreamRegistry;

use crate::{
    accounts::AccountRegistry,
    announcements::ChangeNotifier,
    call_history::CallHistory,
    config::GatewayConfig,
    cursor::CursorCipher,
    identity::{CallQuota, IdentityRegistry},
    limits::{AgentQuotas, InFlightLimit, RateBuckets},
    live_resources::LiveResourceCache,
    node_messages::NodeMessages,
    plans::WritePlans,
    readiness::GatewayReadiness,
    session_notes::SessionNotes,
    snapshot::CatalogueSnapshot,
    source_checks::SourceChecks,
    tasks::TaskRegistry,
    telemetry::{AuditRecorder, GatewayMetrics, TraceSender},
};

/// The parts of a gateway that its requests share.
pub struct ServingGateway {
    config: ArcSwap<GatewayConfig>,
    host: Arc<PluginHost>,
    upstreams: Arc<UpstreamRegistry>,
    snapshot: ArcSwap<CatalogueSnapshot>,
    /// The listing generation; streams watch it, so that no client needs a queue.
    listing: watch::Sender<u64>,
    identities: IdentityRegistry,
    audit: Arc<AuditRecorder>,
    metrics: Arc<GatewayMetrics>,
    traces: Option<TraceSender>,
    buckets: RateBuckets,
    quotas: AgentQuotas,
    in_flight: InFlightLimit,
    cursors: CursorCipher,
    call_history: CallHistory,
    source_checks: SourceChecks,
    live_resources: LiveResourceCache,
    announcements: Arc<ChangeNotifier>,
    tasks: TaskRegistry,
    session_notes: Arc<SessionNotes>,
    node_messages: OnceLock<Arc<NodeMessages>>,
    accounts: OnceLock<Arc<AccountRegistry>>,
    plans: OnceLock<WritePlans>,
    readiness: GatewayReadiness,
}

impl ServingGateway {
    /// Creates a gateway that serves nothing yet: its snapshot is empty.
    pub fn new(
        config: GatewayConfig,
        host: Arc<PluginHost>,
        upstreams: Arc<UpstreamRegistry>,
        cursors: CursorCipher,
        identities: IdentityRegistry,
        audit: AuditRecorder,
        metrics: GatewayMetrics,
    ) -> Self {
        Self {
            identities,
            audit: Arc::new(audit),
            metrics: Arc::new(metrics),
            traces: None,
            buckets: RateBuckets::new(config.limits.agent_rate.0),
            quotas: AgentQuotas::new(CallQuota::usual(&config.limits)),
            in_flight: InFlightLimit::new(config.limits.in_flight_max),
            tasks: TaskRegistry::new(config.limits.tasks_max),
            config: ArcSwap::from_pointee(config),
            host,
            upstreams,
            snapshot: ArcSwap::from_pointee(CatalogueSnapshot::empty()),
            listing: watch::Sender::new(0),
            cursors,
            call_history: CallHistory::default(),
            source_checks: SourceChecks::default(),
            live_resources: LiveResourceCache::default(),
            announcements: Arc::default(),
            session_notes: Arc::default(),
            node_messages: OnceLock::new(),
            accounts: OnceLock::new(),
            plans: OnceLock::new(),
            readiness: GatewayReadiness::default(),
        }
    }

    /// Returns whether calls should be sent to the gateway.
    pub fn readiness(&self) -> &GatewayReadiness {
        &self.readiness
    }

    /// Returns why no calls should be sent to this process. While its audit trail cannot be written, it refuses every call.
    pub async fn fault(&self) -> Option<&'static str> {
        match self.readiness.fault().await {
            None => self
                .audit
                .is_refusing()
                .then_some("the audit trail cannot be written"),
            fault => fault,
        }
    }

    /// Returns the settings of clients' sessions beyond their ids.
    pub fn session_notes(&self) -> &Arc<SessionNotes> {
        &self.session_notes
    }

    /// Makes this process one of several nodes, before anything is served.
    pub fn set_node_messages(&self, messages: Arc<NodeMessages>) {
        let _ = self.node_messages.set(messages); // a process joins once
    }

    /// Returns the messages between the nodes that share the state; `None` if there are no others.
    pub fn node_messages(&self) -> Option<&Arc<NodeMessages>> {
        self.node_messages.get()
    }

    /// Sets the accounts of callers at other servers, before anything is served.
    pub fn set_accounts(&self, accounts: Arc<AccountRegistry>) {
        let _ = self.accounts.set(accounts); // there is one state in a process
    }

    /// Returns the accounts of callers at other servers.
    pub fn accounts(&self) -> Option<&Arc<AccountRegistry>> {
        self.accounts.get()
    }

    /// Sets the plans for writes that a person approves, before anything is served.
    pub fn set_plans(&self, plans: WritePlans) {
        let _ = self.plans.set(plans); // there is one state in a process
    }

    /// Returns the writes that a person approves.
    pub fn plans(&self) -> Option<&WritePlans> {
        self.plans.get()
    }

    /// Traces calls from now on. Called before the first call.
    pub fn with_traces(self, traces: Option<TraceSender>) -> Self {
        Self { traces, ..self }
    }

    /// Returns the configuration in effect.
    pub fn config(&self) -> Guard<Arc<GatewayConfig>> {
        self.config.load()
    }

    /// Applies the parts of a configuration that may change while serving.
    pub fn reconfigure(&self, config: GatewayConfig) {
        self.buckets.set_agent_rate(config.limits.agent_rate.0);
        self.quotas.set_usual(CallQuota::usual(&config.limits));
        self.tasks.set_most(config.limits.tasks_max);
        self.identities.configure(&config.identity, &config.base);
        self.config.store(Arc::new(config));
    }

    /// Returns the host that runs the plugins.
    pub fn host(&self) -> &Arc<PluginHost> {
        &self.host
    }

    /// Returns the other servers whose tools are served.
    pub fn upstreams(&self) -> &Arc<UpstreamRegistry> {
        &self.upstreams
    }

    /// Returns the snapshot that this request reads from start to end.
    pub fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        self.snapshot.load_full()
    }

    /// Returns the registry that identifies callers by their keys and tokens.
    pub fn identities(&self) -> &IdentityRegistry {
        &self.identities
    }

    /// Returns the audit trail of this process.
    pub fn audit(&self) -> &Arc<AuditRecorder> {
        &self.audit
    }

    /// Returns the counters that calls and listeners add to.
    pub fn metrics(&self) -> &Arc<GatewayMetrics> {
        &self.metrics
    }

    /// Returns the sender of spans of calls; `None` if calls are not traced.
    pub fn traces(&self) -> Option<&TraceSender> {
        self.traces.as_ref()
    }

    /// Returns the rates of agents and tools.
    pub fn buckets(&self) -> &RateBuckets {
        &self.buckets
    }

    /// Returns the daily and monthly counts of agents' calls.
    pub fn quotas(&self) -> &AgentQuotas {
        &self.quotas
    }

    /// Returns the bound on concurrent calls.
    pub fn in_flight(&self) -> &InFlightLimit {
        &self.in_flight
    }

    /// Returns the cipher for cursors and states of questions.
    pub fn cursors(&self) -> &CursorCipher {
        &self.cursors
    }

    /// Returns the profiles of past calls.
    pub fn call_history(&self) -> &CallHistory {
        &self.call_history
    }

    /// Returns the queue for checks of a call's source.
    pub fn source_checks(&self) -> &SourceChecks {
        &self.source_checks
    }

    /// Returns the current resources of servers, in the form that may be listed.
    pub fn live_resources(&self) -> &LiveResourceCache {
        &self.live_resources
    }

    /// Returns the changes that plugins and servers report.
    pub fn announcements(&self) -> &Arc<ChangeNotifier> {
        &self.announcements
    }

    /// Returns the calls that continue after their requests were answered.
    pub fn tasks(&self) -> &TaskRegistry {
        &self.tasks
    }

    /// Wakes whenever a listing changed.
    pub fn listing_changes(&self) -> watch::Receiver<u64> {
        self.listing.subscribe()
    }

    /// Returns the time limit of a call whose tool sets none.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.config.load().limits.timeout_ms)
    }

    /// Swaps in a new generation; wakes the streams only if a listing changed.
    pub fn swap_snapshot(&self, snapshot: CatalogueSnapshot) {
        let listing = snapshot.listing_generation;
        self.metrics.set_tools(snapshot.catalogue.meters());
        self.snapshot.store(Arc::new(snapshot));
        self.listing
            .send_if_modified(|seen| std::mem::replace(seen, listing) != listing);
    }
}
