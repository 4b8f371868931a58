//! The table of metrics: name, kind, labels and meaning. `docs/metrics.md` is generated from it.

use MetricKind::{Counter, Gauge, Histogram};

/// The kinds of metrics that Prometheus knows.
#[derive(Clone, Copy, Debug)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// Upper bounds of its buckets, in seconds.
    Histogram(&'static [f64]),
}

/// One metric of the table.
pub struct MetricDescriptor {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// The bounds that OpenTelemetry advises for MCP, with finer ones below: many sources answer within a millisecond.
const OPERATION: &[f64] = &[
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];
/// Microseconds to milliseconds: what Weir itself takes.
const FINE: &[f64] = &[
    0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_03, 0.000_05, 0.000_075, 0.000_1, 0.000_15,
    0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0,
];

pub const CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_calls_total",
    kind: Counter,
    labels: &["tool", "contract", "version", "outcome"],
    help: "Calls that ended. `outcome`: `ok`, `unknown_tool`, or a code of docs/errors.md. `_unknown` counts calls \
           that came to no tool, `find_tools` for questions to a view with search, `prompts/get` and `resources/read` for what plugins and other servers are asked beside their tools.",
};
pub const KEPT_CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_kept_version_calls_total",
    kind: Counter,
    labels: &["contract", "version"],
    help: "Calls of versions that are served beside the live one, including those that are refused because the version has ended.",
};
pub const STATE_FAIL_OVERS: MetricDescriptor = MetricDescriptor {
    name: "weir_state_fail_overs_total",
    kind: Counter,
    labels: &[],
    help: "Times that the state was found on another server, or on one that knew less (one fail-over may be both). \
           Everything was read again; where the state is in PostgreSQL, rights that had ended were ended there too.",
};
pub const SUNSETS: MetricDescriptor = MetricDescriptor {
    name: "weir_kept_version_sunset_timestamp_seconds",
    kind: Gauge,
    labels: &["contract", "version"],
    help: "When each version that is served beside the live one ends; a version without an end date is left out.",
};
pub const OPERATIONS: MetricDescriptor = MetricDescriptor {
    name: "mcp_server_operation_duration_seconds",
    kind: Histogram(OPERATION),
    labels: &["mcp_method_name", "gen_ai_tool_name", "error_type"],
    help: "Time from the reading of a request until its answer is recorded: OpenTelemetry's `mcp.server.operation.duration`. The \
           tool is empty for methods that have none; `error_type` is `tool_error` for calls whose result is an error, else \
           empty.",
};
pub const OVERHEAD: MetricDescriptor = MetricDescriptor {
    name: "weir_call_overhead_seconds",
    kind: Histogram(FINE),
    labels: &[],
    help: "What Weir itself adds to a call: its time without that of the adapter.",
};
pub const STAGES: MetricDescriptor = MetricDescriptor {
    name: "weir_call_stage_seconds",
    kind: Histogram(FINE),
    labels: &["stage"],
    help: "Time in each stage of a call: `lookup`, `arguments`, `intent` (a write's announcement in the audit trail), \
           `adapter`, `output`, `record` (log and audit trail).",
};
pub const ADAPTERS: MetricDescriptor = MetricDescriptor {
    name: "weir_adapter_seconds",
    kind: Histogram(OPERATION),
    labels: &["adapter"],
    help: "Time of calls in the adapter, including its source.",
};
pub const INVALID: MetricDescriptor = MetricDescriptor {
    name: "weir_invalid_arguments_total",
    kind: Counter,
    labels: &["reason"],
    help: "Problems found in arguments, by reason (docs/contract-format.md); a call may have several.",
};
pub const AGENTS: MetricDescriptor = MetricDescriptor {
    name: "weir_agent_calls_total",
    kind: Counter,
    labels: &["agent", "result"],
    help: "Calls that ended, by agent, as the audit trail has them: `ok`, `refused` (nothing ran), `failed`, \
           `cancelled`, `unknown` (a write that may have been done).",
};
pub const REQUESTS: MetricDescriptor = MetricDescriptor {
    name: "weir_requests_total",
    kind: Counter,
    labels: &["method", "protocol"],
    help: "MCP requests that passed the checks of their protocol version.",
};
pub const LIMITERS: MetricDescriptor = MetricDescriptor {
    name: "weir_limiter_decisions_total",
    kind: Counter,
    labels: &["limiter", "decision"],
    help: "What the limiters decided: `agent` (everything an agent asks), `tool` (one agent's calls of one tool), `quota` (one agent's calls in a day and in a month), \
           `in_flight` (calls running at once).",
};
pub const LEDGER_TRIPS: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_trips_total",
    kind: Counter,
    labels: &["result"],
    help: "Requests to the ledger of rates, each for many agents and tools: `answered`, or `failed`. There are none if a process counts alone (docs/cluster.md).",
};
pub const LEDGER_SECONDS: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_seconds_total",
    kind: Counter,
    labels: &[],
    help: "Time of those requests.",
};
pub const LEDGER_CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_decisions_total",
    kind: Counter,
    labels: &["decision"],
    help: "What became of agents' requests that waited for the ledger: `granted` or `refused`.",
};
pub const LEDGER_AWAY: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_away",
    kind: Gauge,
    labels: &[],
    help: "1 while the ledger of rates cannot be reached. The node lets its part of each rate pass meanwhile.",
};
pub const LEDGER_OUTAGES: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_outages_total",
    kind: Counter,
    labels: &[],
    help: "How often the ledger of rates became unreachable. Each time, one more burst of each rate may pass.",
};
pub const LEDGER_NODES: MetricDescriptor = MetricDescriptor {
    name: "weir_ledger_nodes",
    kind: Gauge,
    labels: &[],
    help: "The nodes that share the rates, as this one knows them; 0 if a process counts alone.",
};
pub const RPC_ERRORS: MetricDescriptor = MetricDescriptor {
    name: "weir_rpc_errors_total",
    kind: Counter,
    labels: &["code"],
    help: "Requests that were answered with a JSON-RPC error, by its code. A tool that failed is a result, not an error.",
};
pub const REFUSALS: MetricDescriptor = MetricDescriptor {
    name: "weir_refusals_total",
    kind: Counter,
    labels: &["what", "reason"],
    help: "Requests that were refused before they became a call. The reason `admin key` counts those of the admin API.",
};
pub const IN_FLIGHT: MetricDescriptor = MetricDescriptor {
    name: "weir_in_flight_calls",
    kind: Gauge,
    labels: &[],
    help: "Calls running now.",
};
pub const IN_FLIGHT_MAX: MetricDescriptor = MetricDescriptor {
    name: "weir_in_flight_calls_max",
    kind: Gauge,
    labels: &[],
    help: "Calls that may run at once (`[limits] in_flight_max`).",
};
pub const TASKS: MetricDescriptor = MetricDescriptor {
    name: "weir_tasks",
    kind: Gauge,
    labels: &[],
    help: "Calls that continued after their request was answered. They are kept for an hour, ended or not.",
};
pub const SESSIONS: MetricDescriptor = MetricDescriptor {
    name: "weir_sessions",
    kind: Gauge,
    labels: &[],
    help: "Legacy sessions that are open.",
};
pub const STREAMS: MetricDescriptor = MetricDescriptor {
    name: "weir_streams",
    kind: Gauge,
    labels: &[],
    help: "Notification streams that are open.",
};
pub const PLUGIN_CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_calls_total",
    kind: Counter,
    labels: &["plugin"],
    help: "Calls into a plugin, over its generations; describing a source counts too.",
};
pub const PLUGIN_FAILURES: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_failures_total",
    kind: Counter,
    labels: &["plugin", "kind"],
    help: "Calls that a plugin did not answer: `failed` (a trap, or an answer it may not give), `memory` (it ran out), \
           `timeout`, `overloaded` (no turn or no instance was free in time), `backed_off` (not called, since its last \
           calls had all failed).",
};
pub const PLUGIN_SECONDS: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_seconds_total",
    kind: Counter,
    labels: &["plugin"],
    help: "Time of calls in a plugin, including its source and the wait for a turn.",
};
pub const PLUGIN_MEMORY: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_memory_peak_bytes",
    kind: Gauge,
    labels: &["plugin"],
    help: "The most linear memory that one instance has used since the plugin was loaded.",
};
pub const PLUGIN_PARKED: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_parked_bytes",
    kind: Gauge,
    labels: &["plugin"],
    help: "Linear memory of the plugin's instances that wait for the next call.",
};
pub const PLUGIN_BACKING_OFF: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_backing_off",
    kind: Gauge,
    labels: &["plugin"],
    help: "Collections of the plugin that are not called for a while because their last calls all failed, counted per tenant.",
};
pub const PLUGIN_SWAPS: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_swaps_total",
    kind: Counter,
    labels: &["plugin"],
    help: "How often a new build of the plugin took over.",
};
pub const PLUGIN_LOADS: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_loads_total",
    kind: Counter,
    labels: &["result"],
    help: "Plugin files that were `loaded`, `refused`, `removed`, or `held` until an admin accepts them. A refused or held file \
           leaves the old one serving.",
};
pub const PLUGIN_INFO: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_info",
    kind: Gauge,
    labels: &["plugin", "version", "digest"],
    help: "1 for each plugin that serves; the first twelve digits of its file's SHA-256.",
};
pub const UPSTREAM_CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_calls_total",
    kind: Counter,
    labels: &["upstream", "end"],
    help: "Calls of another server's tools: `answered` (an error of the tool is an answer), `refused` (an error of the \
           protocol), `unavailable` (not sent: it is not there, or too many calls or failures), `failed` (it broke off, or \
           answered something that may not be passed on), `timeout`, `cancelled`.",
};
pub const UPSTREAM_SECONDS: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_seconds",
    kind: Histogram(OPERATION),
    labels: &["upstream"],
    help: "Time of calls in another server, including its start and the wait for a turn.",
};
pub const UPSTREAM_ACCOUNTS: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_account_events_total",
    kind: Counter,
    labels: &["upstream", "event"],
    help: "Accounts of callers at other servers: `asked` (a caller got a link), `connected`, `renewed`, `not_renewed` (the \
           issuer did not answer, or failed), `over` (the issuer says that the account has ended), `disconnected`.",
};
pub const UPSTREAM_STATE: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_state",
    kind: Gauge,
    labels: &["upstream", "state"],
    help: "1 for the state of each other server at the last look at its lists: `up`, `down`, or `unknown` before the first. \
           What is published of a server that is down stays listed.",
};
pub const UPSTREAM_DOWN: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_down",
    kind: Gauge,
    labels: &["upstream", "reason"],
    help: "1 for each other server that was down at the last look, by reason: `start`, `unreachable`, `access`, `protocol`, \
           `timeout`, `closed`, `too_large`, or `refused` for lists that cannot be published.",
};
pub const UPSTREAM_SESSIONS: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_sessions",
    kind: Gauge,
    labels: &["upstream"],
    help: "Sessions that are open to another server; of a command, its processes.",
};
pub const UPSTREAM_RESTARTS: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_restarts_total",
    kind: Counter,
    labels: &["upstream"],
    help: "Sessions that were opened again because the previous one had ended on its own or had not started.",
};
pub const UPSTREAM_BACKING_OFF: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_backing_off",
    kind: Gauge,
    labels: &["upstream"],
    help: "Tools of another server that are not called for a while because their last calls all failed, counted per tenant.",
};
pub const UPSTREAM_LEFT_OUT: MetricDescriptor = MetricDescriptor {
    name: "weir_upstream_left_out",
    kind: Gauge,
    labels: &["upstream"],
    help: "Items of another server's lists that cannot be published. `weir upstream show` says why.",
};
pub const INSTANCES: MetricDescriptor = MetricDescriptor {
    name: "weir_plugin_instances",
    kind: Gauge,
    labels: &["state"],
    help: "Plugin instances that are `running` and `parked`.",
};
pub const AUDIT_FAILING: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_failing",
    kind: Gauge,
    labels: &[],
    help: "1 from a failed write or sync of the audit trail until one succeeds. Calls are refused meanwhile, but after a failed sync only with `fsync = \"each\"`.",
};
pub const POLICY_DENIALS: MetricDescriptor = MetricDescriptor {
    name: "weir_policy_denials_total",
    kind: Counter,
    labels: &["decision"],
    help: "Calls that policies denied by their arguments (`denied`), or would have denied and did not, with `mode = \"audit\"` \
           (`audited`). A tool that does not exist for a caller counts as `unknown_tool`.",
};
pub const CONNECTIONS_LOST: MetricDescriptor = MetricDescriptor {
    name: "weir_connections_lost_total",
    kind: Counter,
    labels: &["listener", "reason"],
    help: "Connections that were closed or not accepted. `listener`: `agents` or `admin`. `reason`: `gave_way` to a newer one, \
           `untaken` (the client did not read its answers), or `not_accepted` (no file handle was left).",
};
pub const CONFIG_RELOADS: MetricDescriptor = MetricDescriptor {
    name: "weir_config_reloads_total",
    kind: Counter,
    labels: &["result"],
    help: "Times the configuration was read again while serving: `taken` over, or `refused` as a whole.",
};
pub const AUDIT_FAILURES: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_failures_total",
    kind: Counter,
    labels: &[],
    help: "Writes and syncs of the audit trail that failed.",
};
pub const AUDIT_RECORDS: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_records_total",
    kind: Counter,
    labels: &[],
    help: "Records in this process's chain.",
};
pub const AUDIT_BYTES: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_bytes_total",
    kind: Counter,
    labels: &[],
    help: "Bytes of those records.",
};
pub const AUDIT_UNSYNCED: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_unsynced_records",
    kind: Gauge,
    labels: &[],
    help: "Records that a crash of the machine (not of the process) could still lose.",
};
pub const AUDIT_UNCERTAIN: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_uncertain_records",
    kind: Gauge,
    labels: &[],
    help: "Records since the start that were written before a sync that failed: a crash of the machine could lose them \
           although later syncs succeeded. The trail names them.",
};
pub const AUDIT_UNSHIPPED_SEGMENTS: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_unshipped_segments",
    kind: Gauge,
    labels: &[],
    help: "Segments of this machine's trail with records that are not copied to the bucket, with `[audit] copies`.",
};
pub const AUDIT_UNSHIPPED_BYTES: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_unshipped_bytes",
    kind: Gauge,
    labels: &[],
    help: "Bytes of those records: what the loss of the disk would lose.",
};
pub const AUDIT_UNSHIPPED_AGE: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_unshipped_age_seconds",
    kind: Gauge,
    labels: &[],
    help: "How far the copy is behind: the time since the moment up to which everything is copied; 0 if nothing is missing.",
};
pub const AUDIT_COPY_FAILURES: MetricDescriptor = MetricDescriptor {
    name: "weir_audit_copy_failures_total",
    kind: Counter,
    labels: &[],
    help: "Rounds of copying that failed; each is tried again after 10 s.",
};
pub const CONTRACT_TOOLS: MetricDescriptor = MetricDescriptor {
    name: "weir_contract_tools",
    kind: Gauge,
    labels: &["contract", "version"],
    help: "Tools of each contract that is served, and its version.",
};
pub const DRAFTS: MetricDescriptor = MetricDescriptor {
    name: "weir_drafts_waiting",
    kind: Gauge,
    labels: &["class"],
    help: "Changes that wait for someone to publish or discard them, by their class (docs/change-a-contract.md).",
};
pub const REFUSED: MetricDescriptor = MetricDescriptor {
    name: "weir_refused",
    kind: Gauge,
    labels: &["kind"],
    help: "What is refused now: contract files and their locks (`contract`), published versions that this \
           program cannot read (`version`), plugin files (`plugin`), connections (`connection`), other servers whose secrets \
           are missing (`upstream`). What does not need \
           them is served. `weir contracts list` says why.",
};
pub const DRIFTED: MetricDescriptor = MetricDescriptor {
    name: "weir_drifted_collections",
    kind: Gauge,
    labels: &[],
    help: "Collections whose source, at the last look, no longer served what their contract says.",
};
pub const TOOLS: MetricDescriptor = MetricDescriptor {
    name: "weir_tools",
    kind: Gauge,
    labels: &[],
    help: "Tools that are served.",
};
pub const CONTRACTS: MetricDescriptor = MetricDescriptor {
    name: "weir_contracts",
    kind: Gauge,
    labels: &[],
    help: "Contracts that are served.",
};
pub const GENERATION: MetricDescriptor = MetricDescriptor {
    name: "weir_snapshot_generation",
    kind: Gauge,
    labels: &[],
    help: "Changes whenever what is served changes.",
};
pub const FOLDED: MetricDescriptor = MetricDescriptor {
    name: "weir_series_folded_total",
    kind: Counter,
    labels: &["label"],
    help: "How often a `tool`, `agent`, `adapter` or `contract` got no series of its own, because the bound on series \
           was reached, and was counted under `_other`. Contracts are left out, each once in every scrape.",
};
pub const LOG_LINES_LOST: MetricDescriptor = MetricDescriptor {
    name: "weir_log_lines_lost_total",
    kind: Counter,
    labels: &[],
    help: "Log lines that were lost because stderr was not read. The audit trail has every call all the same.",
};
pub const TRACED_CALLS: MetricDescriptor = MetricDescriptor {
    name: "weir_traced_calls_total",
    kind: Counter,
    labels: &["result"],
    help: "Calls that were traced: `sent` to the collector, `dropped` because too many waited to be sent, `failed` because \
           the collector did not take them. Only if traces are on.",
};
pub const BUILD: MetricDescriptor = MetricDescriptor {
    name: "weir_build_info",
    kind: Gauge,
    labels: &["version"],
    help: "1, with the version of this build.",
};

pub const TABLE: &[&MetricDescriptor] = &[
    &CALLS,
    &KEPT_CALLS,
    &STATE_FAIL_OVERS,
    &SUNSETS,
    &OPERATIONS,
    &OVERHEAD,
    &STAGES,
    &ADAPTERS,
    &INVALID,
    &AGENTS,
    &REQUESTS,
    &LIMITERS,
    &LEDGER_TRIPS,
    &LEDGER_SECONDS,
    &LEDGER_CALLS,
    &LEDGER_AWAY,
    &LEDGER_OUTAGES,
    &LEDGER_NODES,
    &RPC_ERRORS,
    &REFUSALS,
    &IN_FLIGHT,
    &IN_FLIGHT_MAX,
    &TASKS,
    &SESSIONS,
    &STREAMS,
    &POLICY_DENIALS,
    &CONNECTIONS_LOST,
    &PLUGIN_CALLS,
    &PLUGIN_FAILURES,
    &PLUGIN_SECONDS,
    &PLUGIN_MEMORY,
    &PLUGIN_PARKED,
    &PLUGIN_BACKING_OFF,
    &PLUGIN_SWAPS,
    &PLUGIN_LOADS,
    &CONFIG_RELOADS,
    &PLUGIN_INFO,
    &INSTANCES,
    &UPSTREAM_CALLS,
    &UPSTREAM_SECONDS,
    &UPSTREAM_ACCOUNTS,
    &UPSTREAM_STATE,
    &UPSTREAM_DOWN,
    &UPSTREAM_SESSIONS,
    &UPSTREAM_RESTARTS,
    &UPSTREAM_BACKING_OFF,
    &UPSTREAM_LEFT_OUT,
    &AUDIT_FAILING,
    &AUDIT_FAILURES,
    &AUDIT_RECORDS,
    &AUDIT_BYTES,
    &AUDIT_UNSYNCED,
    &AUDIT_UNCERTAIN,
    &AUDIT_UNSHIPPED_SEGMENTS,
    &AUDIT_UNSHIPPED_BYTES,
    &AUDIT_UNSHIPPED_AGE,
    &AUDIT_COPY_FAILURES,
    &CONTRACT_TOOLS,
    &DRAFTS,
    &REFUSED,
    &DRIFTED,
    &TOOLS,
    &CONTRACTS,
    &GENERATION,
    &FOLDED,
    &LOG_LINES_LOST,
    &TRACED_CALLS,
    &BUILD,
];

/// Writes `docs/metrics.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\nGenerated from `gateway/src/telemetry/metrics/table.rs`; `WEIR_BLESS=1 cargo test` writes it \
         anew. How to scrape\nthem, the dashboards and the alerts: [watching.md](watching.md).\n\n\
         No label holds what an agent wrote: a tool that does not exist is `_unknown`. Tools, agents, adapters and\n\
         contracts have series of their own up to a bound: `[metrics] tools_max` for tools and contracts, 500 agents,\n\
         64 adapters. Beyond it they are counted as `_other`; contracts are left out. Counters of published tools start at 0\n\
         when the tools are published. Prometheus' usual `process_*` metrics are there too.\n\n\
         | metric | kind | labels | |\n|---|---|---|---|\n",
    );
    for row in TABLE {
        let kind = match row.kind {
            Counter => "counter",
            Gauge => "gauge",
            Histogram(_) => "histogram",
        };
        let labels: Vec<String> = row
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        page.push_str(&format!(
            "| `{}` | {kind} | {} | {} |\n",
            row.name,
            labels.join(", "),
            row.help
        ));
    }
    page.push_str("\nBuckets, in seconds:\n\n");
    for row in TABLE {
        if let Histogram(bounds) = row.kind {
            let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
            page.push_str(&format!("- `{}`: {}\n", row.name, bounds.join(", ")));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(path, page()).expect("written");
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            page(),
            "run the tests with WEIR_BLESS=1"
        );
    }
}
