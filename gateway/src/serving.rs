//! Holds what all requests share, built in dependency order.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;
use weir_plugin_host::Host;
use weir_upstream::Upstreams;

use crate::{
    accounts::Accounts,
    announcements::Announcements,
    call_history::CallHistory,
    config::Config,
    cursor::Cursors,
    identity::{CallQuota, Identities},
    limits::{Buckets, InFlight, Quotas},
    live_resources::LiveResources,
    node_messages::NodeMessages,
    plans::WritePlans,
    readiness::Readiness,
    session_notes::SessionNotes,
    snapshot::Snapshot,
    source_checks::SourceChecks,
    tasks::Tasks,
    telemetry::{Audit, Metrics, TraceSender},
};

/// The parts of a gateway that its requests share.
pub struct Serving {
    config: ArcSwap<Config>,
    host: Arc<Host>,
    upstreams: Arc<Upstreams>,
    snapshot: ArcSwap<Snapshot>,
    /// The listing generation; streams watch it, so that no client needs a queue.
    listing: watch::Sender<u64>,
    identities: Identities,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    traces: Option<TraceSender>,
    buckets: Buckets,
    quotas: Quotas,
    in_flight: InFlight,
    cursors: Cursors,
    call_history: CallHistory,
    source_checks: SourceChecks,
    live_resources: LiveResources,
    announcements: Arc<Announcements>,
    tasks: Tasks,
    session_notes: Arc<SessionNotes>,
    node_messages: OnceLock<Arc<NodeMessages>>,
    accounts: OnceLock<Arc<Accounts>>,
    plans: OnceLock<WritePlans>,
    readiness: Readiness,
}

impl Serving {
    /// Creates a gateway that serves nothing yet: its snapshot is empty.
    pub fn new(
        config: Config,
        host: Arc<Host>,
        upstreams: Arc<Upstreams>,
        cursors: Cursors,
        identities: Identities,
        audit: Audit,
        metrics: Metrics,
    ) -> Self {
        Self {
            identities,
            audit: Arc::new(audit),
            metrics: Arc::new(metrics),
            traces: None,
            buckets: Buckets::new(config.limits.agent_rate.0),
            quotas: Quotas::new(CallQuota::usual(&config.limits)),
            in_flight: InFlight::new(config.limits.in_flight_max),
            tasks: Tasks::new(config.limits.tasks_max),
            config: ArcSwap::from_pointee(config),
            host,
            upstreams,
            snapshot: ArcSwap::from_pointee(Snapshot::empty()),
            listing: watch::Sender::new(0),
            cursors,
            call_history: CallHistory::default(),
            source_checks: SourceChecks::default(),
            live_resources: LiveResources::default(),
            announcements: Arc::default(),
            session_notes: Arc::default(),
            node_messages: OnceLock::new(),
            accounts: OnceLock::new(),
            plans: OnceLock::new(),
            readiness: Readiness::default(),
        }
    }

    /// Returns whether the gateway is to be sent calls.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Returns the settings of clients' sessions beyond their ids.
    pub fn session_notes(&self) -> &Arc<SessionNotes> {
        &self.session_notes
    }

    /// Makes this process one of several nodes, before anything is served.
    pub fn set_node_messages(&self, messages: Arc<NodeMessages>) {
        let _ = self.node_messages.set(messages); // a process joins once
    }

    /// Returns the messages between the nodes that share the state; `None` where there are no others.
    pub fn node_messages(&self) -> Option<&Arc<NodeMessages>> {
        self.node_messages.get()
    }

    /// Sets what keeps the accounts of callers at other servers, before anything is served.
    pub fn set_accounts(&self, accounts: Arc<Accounts>) {
        let _ = self.accounts.set(accounts); // there is one state in a process
    }

    /// Returns the accounts of callers at other servers.
    pub fn accounts(&self) -> Option<&Arc<Accounts>> {
        self.accounts.get()
    }

    /// Sets where writes wait that a person approves, before anything is served.
    pub fn set_plans(&self, plans: WritePlans) {
        let _ = self.plans.set(plans); // there is one state in a process
    }

    /// Returns the writes that a person approves.
    pub fn plans(&self) -> Option<&WritePlans> {
        self.plans.get()
    }

    /// Traces calls from now on, before the first of them.
    pub fn with_traces(self, traces: Option<TraceSender>) -> Self {
        Self { traces, ..self }
    }

    /// Returns the configuration that is in effect now.
    pub fn config(&self) -> Guard<Arc<Config>> {
        self.config.load()
    }

    /// Takes over what may change while serving.
    pub fn reconfigure(&self, config: Config) {
        self.buckets.set_agent_rate(config.limits.agent_rate.0);
        self.quotas.set_usual(CallQuota::usual(&config.limits));
        self.tasks.set_most(config.limits.tasks_max);
        self.identities.configure(&config.identity, &config.base);
        self.config.store(Arc::new(config));
    }

    /// Returns the host that runs the plugins.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Returns the other servers whose tools are served.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// Returns the snapshot that this request reads from start to end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns what identifies callers by their keys and tokens.
    pub fn identities(&self) -> &Identities {
        &self.identities
    }

    /// Returns the audit trail of this process.
    pub fn audit(&self) -> &Arc<Audit> {
        &self.audit
    }

    /// Returns the counters that calls and listeners add to.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns what sends spans of calls; `None` where calls are not traced.
    pub fn traces(&self) -> Option<&TraceSender> {
        self.traces.as_ref()
    }

    /// Returns the rates of agents and tools.
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// Returns the daily and monthly counts of agents' calls.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the bound on calls that run at once.
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Returns what seals cursors and states of questions.
    pub fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    /// Returns what calls looked like.
    pub fn call_history(&self) -> &CallHistory {
        &self.call_history
    }

    /// Returns the queue for checks of a call's source.
    pub fn source_checks(&self) -> &SourceChecks {
        &self.source_checks
    }

    /// Returns the present resources of servers, as they may be listed.
    pub fn live_resources(&self) -> &LiveResources {
        &self.live_resources
    }

    /// Returns the changes that plugins and servers report.
    pub fn announcements(&self) -> &Arc<Announcements> {
        &self.announcements
    }

    /// Returns the calls that continue after their requests were answered.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Wakes whenever a listing changed.
    pub fn listing_changes(&self) -> watch::Receiver<u64> {
        self.listing.subscribe()
    }

    /// Returns the bound on one call whose tool sets none.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.config.load().limits.timeout_ms)
    }

    /// Swaps in a new generation; wakes the streams only when a listing changed.
    pub fn swap_snapshot(&self, snapshot: Snapshot) {
        let listing = snapshot.listing_generation;
        self.metrics.set_tools(snapshot.catalogue.meters());
        self.snapshot.store(Arc::new(snapshot));
        self.listing
            .send_if_modified(|seen| std::mem::replace(seen, listing) != listing);
    }
}
