//! Metrics: counted where things happen, read by Prometheus. No label contains text from an agent.

mod readings;
mod series;
pub mod table;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
    proto::MetricFamily,
};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use weir_audit::AuditOutcome;
use weir_schema::validate::{InvalidArguments, REASONS};

pub use self::{
    readings::{BucketReading, CallReading, ToolKey, ToolReading},
    series::{ToolMeter, ToolSeries},
};
use self::{
    series::{AgentMetrics, ToolMetrics},
    table::{MetricDescriptor, MetricKind},
};
use super::events::{EndedCall, EventFeed};
use crate::{
    codes::FailureCode,
    identity::RequestCredential,
    wire::{ProtocolVersion, RpcMethod},
};

/// The label of calls that reached no tool.
const UNKNOWN: &str = "_unknown";
/// The label of everything beyond the bound on series.
const OTHER: &str = "_other";
/// The stages of a call, in their order.
pub const STAGES: [&str; 6] = [
    "lookup",
    "arguments",
    "intent",
    "adapter",
    "output",
    "record",
];
/// The place of `adapter` among them.
const ADAPTER: usize = 3;
const LOADS: [&str; 4] = ["loaded", "refused", "removed", "held"];
const LISTENERS: [&str; 2] = ["agents", "admin"];
const RELOADS: [&str; 2] = ["taken", "refused"];

/// The time of each stage; `None` if it was not reached.
pub type Stages = [Option<Duration>; STAGES.len()];

/// Why a listener lost a connection.
#[derive(Clone, Copy, Debug)]
pub enum LossReason {
    /// A newer connection took its place.
    GaveWay,
    /// Its client did not read the answers, and there was no room for more.
    Untaken,
    /// There was no file handle left for it.
    NotAccepted,
}

impl LossReason {
    const ALL: [Self; 3] = [Self::GaveWay, Self::Untaken, Self::NotAccepted];

    fn word(self) -> &'static str {
        match self {
            Self::GaveWay => "gave_way",
            Self::Untaken => "untaken",
            Self::NotAccepted => "not_accepted",
        }
    }
}

/// A number that lives elsewhere, read when it is scraped.
type Reading = Box<dyn Fn() -> usize + Send + Sync>;
/// A reading of one number for each word.
type Counts<N> = Box<dyn Fn() -> Vec<(&'static str, N)> + Send + Sync>;

/// The metrics of one gateway.
pub struct GatewayMetrics {
    registry: Registry,
    tools: ToolMetrics,
    agents: AgentMetrics,
    unknown: ToolSeries,
    /// Created by the first request to a view with search.
    finding: OnceLock<ToolSeries>,
    unknown_tool: IntCounter,
    overhead: Histogram,
    stages: [Histogram; STAGES.len()],
    /// The counters of reasons, in the order of [`REASONS`].
    reasons: Vec<IntCounter>,
    requests: Vec<[IntCounter; ProtocolVersion::ALL.len()]>,
    durations: Vec<Histogram>,
    loads: [IntCounter; LOADS.len()],
    upstreams: HistogramVec,
    account_events: IntCounterVec,
    reloads: [IntCounter; RELOADS.len()],
    connections_lost: IntCounterVec,
    policy_denials: IntCounterVec,
    kept_calls: IntCounterVec,
    state_fail_overs: IntCounterVec,
    folded_contracts: IntCounter,
    tools_max: usize,
    sessions: OnceLock<Reading>,
    streams: OnceLock<Reading>,
    drafts: OnceLock<Counts<u32>>,
    drifted: OnceLock<Reading>,
    refused: OnceLock<Counts<usize>>,
    /// SHA-256 of the token that a scraper must send.
    token: ArcSwapOption<[u8; 32]>,
    events: EventFeed,
}

/// The times at which one stage of a call was followed by the next; a stage that was not reached is `None`.
#[derive(Clone, Copy, Default)]
pub struct StageTimes {
    pub found: Option<Instant>,
    pub bound: Option<Instant>,
    pub asked: Option<Instant>,
    pub answered: Option<Instant>,
}

/// A call that has ended and been recorded.
pub struct MeasuredCall<'a> {
    pub call_id: &'a str,
    /// The name of the tool, if the caller sees a tool of that name.
    pub name: Option<&'a str>,
    pub tool: Option<&'a ToolMeter>,
    /// The search tool of a view, if that was called; it does not belong to a contract.
    pub finds: Option<&'static str>,
    pub agent: &'a Arc<str>,
    /// The caller asked for a tool that it cannot see.
    pub unknown_tool: bool,
    /// The call did not succeed.
    pub failed: bool,
    /// The faults of the arguments.
    pub invalid: Option<&'a InvalidArguments>,
    /// The code that the caller gets; it differs from the error's if the call could not be recorded.
    pub code: Option<FailureCode>,
    pub outcome: AuditOutcome,
    pub opened: Instant,
    pub marks: StageTimes,
    /// The end of the last stage before the record.
    pub closed: Instant,
}

impl GatewayMetrics {
    /// Creates the metrics. `tools_max` is the number of tools with their own series; `token` is the token that a scraper must
    /// send.
    pub fn new(tools_max: usize, token: Option<&str>) -> Self {
        let registry = Registry::new();
        #[cfg(target_os = "linux")]
        register(
            &registry,
            prometheus::process_collector::ProcessCollector::for_self(),
        );
        let folded = counters(&registry, &table::FOLDED);
        let calls = counters(&registry, &table::CALLS);
        let operations = histograms(&registry, &table::OPERATIONS);
        let adapters = histograms(&registry, &table::ADAPTERS);
        let agents = AgentMetrics::new(counters(&registry, &table::AGENTS), &folded);
        let invalid = counters(&registry, &table::INVALID);
        let requests = counters(&registry, &table::REQUESTS);
        let stages = histograms(&registry, &table::STAGES);
        let loads = counters(&registry, &table::PLUGIN_LOADS);
        let reloads = counters(&registry, &table::CONFIG_RELOADS);
        let policy_denials = counters(&registry, &table::POLICY_DENIALS);
        for decision in ["denied", "audited"] {
            policy_denials.with_label_values(&[decision]);
        }
        let connections_lost = counters(&registry, &table::CONNECTIONS_LOST);
        for (listener, lost) in LISTENERS
            .iter()
            .flat_map(|listener| LossReason::ALL.map(|lost| (listener, lost)))
        {
            connections_lost.with_label_values(&[*listener, lost.word()]);
        }
        let by_version = |method: &RpcMethod| {
            ProtocolVersion::ALL
                .map(|version| requests.with_label_values(&[method.name(), version.as_str()]))
        };
        let tools = ToolMetrics::new(
            calls.clone(),
            operations.clone(),
            adapters,
            &folded,
            tools_max,
        );
        Self {
            unknown: tools.named(UNKNOWN),
            finding: OnceLock::new(),
            unknown_tool: calls.with_label_values(&[UNKNOWN, "", "", "unknown_tool"]),
            overhead: histograms(&registry, &table::OVERHEAD).with_label_values::<&str>(&[]),
            stages: STAGES.map(|stage| stages.with_label_values(&[stage])),
            reasons: REASONS
                .iter()
                .map(|(reason, _)| invalid.with_label_values(&[reason]))
                .collect(),
            requests: RpcMethod::ALL.iter().map(by_version).collect(),
            durations: RpcMethod::ALL
                .iter()
                .map(|method| operations.with_label_values(&[method.name(), "", ""]))
                .collect(),
            upstreams: histograms(&registry, &table::UPSTREAM_SECONDS),
            account_events: counters(&registry, &table::UPSTREAM_ACCOUNTS),
            loads: LOADS.map(|result| loads.with_label_values(&[result])),
            connections_lost,
            policy_denials,
            kept_calls: counters(&registry, &table::KEPT_CALLS),
            state_fail_overs: counters(&registry, &table::STATE_FAIL_OVERS),
            reloads: RELOADS.map(|result| reloads.with_label_values(&[result])),
            folded_contracts: folded.with_label_values(&["contract"]),
            tools_max,
            sessions: OnceLock::new(),
            streams: OnceLock::new(),
            drafts: OnceLock::new(),
            drifted: OnceLock::new(),
            refused: OnceLock::new(),
            token: ArcSwapOption::from_pointee(token.map(digest)),
            events: EventFeed::default(),
            registry,
            tools,
            agents,
        }
    }

    /// Sets the token that a scraper must send, from the next scrape on.
    pub fn set_token(&self, token: Option<&str>) {
        self.token.store(token.map(digest).map(Arc::new));
    }

    /// Returns `true` if a scraper must send a token.
    pub fn are_guarded(&self) -> bool {
        self.token.load().is_some()
    }

    /// Returns `true` if the scraper has sent the required token.
    pub fn admit(&self, credential: RequestCredential<'_>) -> bool {
        match (self.token.load().as_deref(), credential) {
            (None, _) => true,
            (Some(token), RequestCredential::Key(shown)) => digest(shown).ct_eq(token).into(),
            (Some(_), _) => false,
        }
    }

    /// Prepares series for a new snapshot that is about to be served.
    pub fn set_tools<'a>(&self, tools: impl Iterator<Item = &'a ToolMeter>) {
        self.tools.set(tools);
    }

    /// Counts a call that has ended, and returns the time of each stage.
    pub fn call(&self, call: &MeasuredCall<'_>) -> Stages {
        let end = Instant::now();
        let total = end - call.opened;
        let series = match (call.tool, call.finds) {
            (Some(tool), _) => self.tools.series_for(tool),
            (None, Some(finds)) => self.finding.get_or_init(|| self.tools.named(finds)),
            (None, None) => &self.unknown,
        };
        match call.unknown_tool {
            true => self.unknown_tool.inc(),
            false => series.outcome(call.code).inc(),
        }
        series.duration[usize::from(call.failed)].observe(total.as_secs_f64());
        let stages = call.marks.stages(call.opened, call.closed, end);
        for (at, took) in stages.iter().enumerate() {
            if let Some(took) = took {
                self.stages[at].observe(took.as_secs_f64());
            }
        }
        let in_adapter = stages[ADAPTER];
        if let Some(in_adapter) = in_adapter {
            series.adapter.observe(in_adapter.as_secs_f64());
        }
        self.overhead.observe(
            total
                .saturating_sub(in_adapter.unwrap_or_default())
                .as_secs_f64(),
        );
        self.agents.count(call.agent, call.outcome.word());
        for problem in call.invalid.iter().flat_map(|invalid| &invalid.errors) {
            if let Some(at) = REASONS
                .iter()
                .position(|(reason, _)| *reason == problem.reason)
            {
                self.reasons[at].inc();
            }
        }
        self.events.call(|| EndedCall {
            call_id: call.call_id,
            agent: call.agent,
            tool: call.name,
            contract: call.tool.map(|tool| &*tool.contract_version),
            outcome: call.outcome.word(),
            code: call.code.map(FailureCode::label),
            ms: total.as_micros() as f64 / 1000.0,
        });
        stages
    }

    /// Returns the feed of events.
    pub fn events(&self) -> &EventFeed {
        &self.events
    }

    /// Counts a request of any method, with the time it took if it was answered immediately.
    pub fn request(&self, method: RpcMethod, version: ProtocolVersion, took: Option<Duration>) {
        self.requests[method as usize][version as usize].inc();
        if let Some(took) = took {
            self.durations[method as usize].observe(took.as_secs_f64());
        }
    }

    /// Counts the load of a plugin: loaded, refused, removed, or waiting for approval.
    pub fn plugin_load(&self, report: &weir_plugin_host::LoadReport) {
        let at = match &report.result {
            _ if report.removed => 2,
            Err(_) if report.held.is_some() => 3,
            Ok(_) => 0,
            Err(_) => 1,
        };
        self.loads[at].inc();
    }

    /// Counts a call of another server, including the server's start and the wait for a turn.
    pub fn upstream(&self, name: &str, took: Duration) {
        self.upstreams
            .with_label_values(&[name])
            .observe(took.as_secs_f64());
    }

    /// Counts the events of an account at another server.
    pub fn account_event(&self, upstream: &str, event: &str) {
        self.account_events
            .with_label_values(&[upstream, event])
            .inc();
    }

    /// Counts a reload of the configuration, applied or refused.
    pub fn config_reload(&self, taken: bool) {
        self.reloads[usize::from(!taken)].inc();
    }

    /// Counts a call that policies denied, or would have denied.
    pub fn policy_denial(&self, decision: &str) {
        self.policy_denials.with_label_values(&[decision]).inc();
    }

    /// Counts a call of a version other than the live one.
    pub fn count_kept_call(&self, contract: &str, version: weir_contracts::ContractVersion) {
        self.kept_calls
            .with_label_values(&[contract, &version.to_string()])
            .inc();
    }

    /// Counts connections that a listener closed or did not accept. `listener` is `agents` or `admin`.
    pub fn connections_lost(&self, listener: &str, lost: LossReason, count: usize) {
        self.connections_lost
            .with_label_values(&[listener, lost.word()])
            .inc_by(count as u64);
    }

    /// Sets how a scrape reads the number of waiting drafts by class, of drifted collections, and of refused things by
    /// kind.
    pub fn watch_control(
        &self,
        drafts: impl Fn() -> Vec<(&'static str, u32)> + Send + Sync + 'static,
        drifted: impl Fn() -> usize + Send + Sync + 'static,
        refused: impl Fn() -> Vec<(&'static str, usize)> + Send + Sync + 'static,
    ) {
        let _ = self.drafts.set(Box::new(drafts));
        let _ = self.drifted.set(Box::new(drifted));
        let _ = self.refused.set(Box::new(refused));
    }

    /// Sets how a scrape reads what the HTTP transport has open.
    pub fn watch_http(
        &self,
        sessions: impl Fn() -> usize + Send + Sync + 'static,
        streams: impl Fn() -> usize + Send + Sync + 'static,
    ) {
        let _ = self.sessions.set(Box::new(sessions));
        let _ = self.streams.set(Box::new(streams));
    }
}

impl GatewayMetrics {
    /// Counts how often the state was found on another server.
    pub fn count_fail_overs(&self, count: u64) {
        self.state_fail_overs
            .with_label_values::<&str>(&[])
            .inc_by(count);
    }
}

/// These functions return what a scrape reads in addition to the series.
impl GatewayMetrics {
    /// Returns all series that are registered, for the text of a scrape.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// Returns the number of open legacy sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.get().map_or(0, |read| read())
    }

    /// Returns the number of open streams of notifications.
    pub fn streams(&self) -> usize {
        self.streams.get().map_or(0, |read| read())
    }

    /// Returns the number of waiting drafts, by class.
    pub fn drafts(&self) -> Vec<(&'static str, u32)> {
        self.drafts.get().map(|read| read()).unwrap_or_default()
    }

    /// Returns the number of collections whose source differs from what was published.
    pub fn drifted(&self) -> usize {
        self.drifted.get().map_or(0, |read| read())
    }

    /// Returns the number of refused things, by kind.
    pub fn refused(&self) -> Vec<(&'static str, usize)> {
        self.refused.get().map(|read| read()).unwrap_or_default()
    }

    /// Returns how many contracts may have their own series.
    pub fn contracts_max(&self) -> usize {
        self.tools_max
    }

    /// Counts contracts for whose own series there was no room.
    pub fn folded_contracts(&self, count: usize) {
        self.folded_contracts.inc_by(count as u64);
    }
}

impl StageTimes {
    fn stages(self, opened: Instant, closed: Instant, end: Instant) -> Stages {
        let begins = [
            Some(opened),
            self.found,
            self.bound,
            self.asked,
            self.answered,
            Some(closed),
        ];
        let mut stages = Stages::default();
        let mut until = end;
        for (stage, began) in stages.iter_mut().zip(begins).rev() {
            let Some(began) = began else { continue };
            *stage = Some(until.saturating_duration_since(began));
            until = began;
        }
        stages
    }
}

fn digest(token: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn counters(registry: &Registry, row: &MetricDescriptor) -> IntCounterVec {
    let made = IntCounterVec::new(Opts::new(row.name, row.help), row.labels)
        .expect("a row of the table is valid");
    register(registry, made.clone());
    made
}

fn histograms(registry: &Registry, row: &MetricDescriptor) -> HistogramVec {
    let MetricKind::Histogram(bounds) = row.kind else {
        unreachable!("{} is not a histogram", row.name)
    };
    let options = HistogramOpts::new(row.name, row.help).buckets(bounds.to_vec());
    let made = HistogramVec::new(options, row.labels).expect("a row of the table is valid");
    register(registry, made.clone());
    made
}

fn register(registry: &Registry, collector: impl prometheus::core::Collector + 'static) {
    registry
        .register(Box::new(collector))
        .expect("each name is registered once");
}

#[cfg(test)]
mod tests;
