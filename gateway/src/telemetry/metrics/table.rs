//! The table of metrics: name, kind, labels and meaning. `docs/metrics.md` is generated from it.

use MetricKind::{Counter, Gauge, Histogram};

/// The kinds of metrics that Prometheus has.
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

/// The bounds that OpenTelemetry recommends for MCP, with finer ones below: many sources answer within a millisecond.
const OPERATION: &[f64] = &[
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];
/// Microseconds to milliseconds: the range of Weir's own time.
const FINE: &[f64] = &[
    0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_03, 0.000_05, 0.000_075, 0.000_1, 0.000_15,
    0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0,
];

/// Makes a constant of each row, and a table of all rows.
macro_rules! metrics {
    ($($constant:ident $kind:expr, $name:literal $labels:tt $help:literal;)*) => {
        $(pub const $constant: MetricDescriptor =
            MetricDescriptor { name: $name, kind: $kind, labels: &$labels, help: $help };)*
        pub const TABLE: &[&MetricDescriptor] = &[$(&$constant),*];
    };
}

#[rustfmt::skip]
metrics! {
    CALLS Counter, "weir_calls_total" ["tool", "contract", "version", "outcome"]
        "Calls that ended. `outcome`: `ok`, `unknown_tool`, or a code of docs/errors.md. `_unknown` counts calls \
         that came to no tool, `find_tools` for questions to a view with search, `prompts/get` and `resources/read` for what plugins and other servers are asked beside their tools.";
    KEPT_CALLS Counter, "weir_kept_version_calls_total" ["contract", "version"]
        "Calls of versions that are served beside the live one, including those that are refused because the version has ended.";
    STATE_FAIL_OVERS Counter, "weir_state_fail_overs_total" []
        "Times that the state was found on another server, or on one that knew less (one fail-over may be both). \
         Everything was read again; where the state is in PostgreSQL, rights that had ended were ended there too.";
    SUNSETS Gauge, "weir_kept_version_sunset_timestamp_seconds" ["contract", "version"]
        "When each version that is served beside the live one ends; a version without an end date is left out.";
    OPERATIONS Histogram(OPERATION), "mcp_server_operation_duration_seconds" ["mcp_method_name", "gen_ai_tool_name", "error_type"]
        "Time from the reading of a request until its answer is recorded: OpenTelemetry's `mcp.server.operation.duration`. The \
         tool is empty for methods that have none; `error_type` is `tool_error` for calls whose result is an error, else \
         empty.";
    OVERHEAD Histogram(FINE), "weir_call_overhead_seconds" []
        "What Weir itself adds to a call: its time without that of the adapter.";
    STAGES Histogram(FINE), "weir_call_stage_seconds" ["stage"]
        "Time in each stage of a call: `lookup`, `arguments`, `intent` (a write's announcement in the audit trail), \
         `adapter`, `output`, `record` (log and audit trail).";
    ADAPTERS Histogram(OPERATION), "weir_adapter_seconds" ["adapter"]
        "Time of calls in the adapter, including its source.";
    INVALID Counter, "weir_invalid_arguments_total" ["reason"]
        "Problems found in arguments, by reason (docs/contract-format.md); a call may have several.";
    AGENTS Counter, "weir_agent_calls_total" ["agent", "result"]
        "Calls that ended, by agent, as the audit trail has them: `ok`, `refused` (nothing ran), `failed`, \
         `cancelled`, `unknown` (a write that may have been done).";
    REQUESTS Counter, "weir_requests_total" ["method", "protocol"]
        "MCP requests that passed the checks of their protocol version.";
    LIMITERS Counter, "weir_limiter_decisions_total" ["limiter", "decision"]
        "What the limiters decided: `agent` (everything an agent asks), `tool` (one agent's calls of one tool), `quota` (one agent's calls in a day and in a month), \
         `in_flight` (calls running at once).";
    LEDGER_TRIPS Counter, "weir_ledger_trips_total" ["result"]
        "Requests to the ledger of rates, each for many agents and tools: `answered`, or `failed`. There are none if a process counts alone (docs/cluster.md).";
    LEDGER_SECONDS Counter, "weir_ledger_seconds_total" []
        "Time of those requests.";
    LEDGER_CALLS Counter, "weir_ledger_decisions_total" ["decision"]
        "What became of agents' requests that waited for the ledger: `granted` or `refused`.";
    LEDGER_AWAY Gauge, "weir_ledger_away" []
        "1 while the ledger of rates cannot be reached. The node lets its part of each rate pass meanwhile.";
    LEDGER_OUTAGES Counter, "weir_ledger_outages_total" []
        "How often the ledger of rates became unreachable. Each time, one more burst of each rate may pass.";
    LEDGER_NODES Gauge, "weir_ledger_nodes" []
        "The nodes that share the rates, as this one knows them; 0 if a process counts alone.";
    RPC_ERRORS Counter, "weir_rpc_errors_total" ["code"]
        "Requests that were answered with a JSON-RPC error, by its code. A tool that failed is a result, not an error.";
    REFUSALS Counter, "weir_refusals_total" ["what", "reason"]
        "Requests that were refused before they became a call. The reason `admin key` counts those of the admin API.";
    IN_FLIGHT Gauge, "weir_in_flight_calls" []
        "Calls running now.";
    IN_FLIGHT_MAX Gauge, "weir_in_flight_calls_max" []
        "Calls that may run at once (`[limits] in_flight_max`).";
    TASKS Gauge, "weir_tasks" []
        "Calls that continued after their request was answered. They are kept for an hour, ended or not.";
    SESSIONS Gauge, "weir_sessions" []
        "Legacy sessions that are open.";
    STREAMS Gauge, "weir_streams" []
        "Notification streams that are open.";
    POLICY_DENIALS Counter, "weir_policy_denials_total" ["decision"]
        "Calls that policies denied by their arguments (`denied`), or would have denied and did not, with `mode = \"audit\"` \
         (`audited`). A tool that does not exist for a caller counts as `unknown_tool`.";
    CONNECTIONS_LOST Counter, "weir_connections_lost_total" ["listener", "reason"]
        "Connections that were closed or not accepted. `listener`: `agents` or `admin`. `reason`: `gave_way` to a newer one, \
         `untaken` (the client did not read its answers), or `not_accepted` (no file handle was left).";
    PLUGIN_CALLS Counter, "weir_plugin_calls_total" ["plugin"]
        "Calls into a plugin, over its generations; describing a source counts too.";
    PLUGIN_FAILURES Counter, "weir_plugin_failures_total" ["plugin", "kind"]
        "Calls that a plugin did not answer: `failed` (a trap, or an answer it may not give), `memory` (it ran out), \
         `timeout`, `overloaded` (no turn or no instance was free in time), `backed_off` (not called, since its last \
         calls had all failed).";
    PLUGIN_SECONDS Counter, "weir_plugin_seconds_total" ["plugin"]
        "Time of calls in a plugin, including its source and the wait for a turn.";
    PLUGIN_MEMORY Gauge, "weir_plugin_memory_peak_bytes" ["plugin"]
        "The most linear memory that one instance has used since the plugin was loaded.";
    PLUGIN_PARKED Gauge, "weir_plugin_parked_bytes" ["plugin"]
        "Linear memory of the plugin's instances that wait for the next call.";
    PLUGIN_BACKING_OFF Gauge, "weir_plugin_backing_off" ["plugin"]
        "Collections of the plugin that are not called for a while because their last calls all failed, counted per tenant.";
    PLUGIN_SWAPS Counter, "weir_plugin_swaps_total" ["plugin"]
        "How often a new build of the plugin took over.";
    PLUGIN_LOADS Counter, "weir_plugin_loads_total" ["result"]
        "Plugin files that were `loaded`, `refused`, `removed`, or `held` until an admin accepts them. A refused or held file \
         leaves the old one serving.";
    CONFIG_RELOADS Counter, "weir_config_reloads_total" ["result"]
        "Times the configuration was read again while serving: `taken` over, or `refused` as a whole.";
    PLUGIN_INFO Gauge, "weir_plugin_info" ["plugin", "version", "digest"]
        "1 for each plugin that serves; the first twelve digits of its file's SHA-256.";
    INSTANCES Gauge, "weir_plugin_instances" ["state"]
        "Plugin instances that are `running` and `parked`.";
    UPSTREAM_CALLS Counter, "weir_upstream_calls_total" ["upstream", "end"]
        "Calls of another server's tools: `answered` (an error of the tool is an answer), `refused` (an error of the \
         protocol), `unavailable` (not sent: it is not there, or too many calls or failures), `failed` (it broke off, or \
         answered something that may not be passed on), `timeout`, `cancelled`.";
    UPSTREAM_SECONDS Histogram(OPERATION), "weir_upstream_seconds" ["upstream"]
        "Time of calls in another server, including its start and the wait for a turn.";
    UPSTREAM_ACCOUNTS Counter, "weir_upstream_account_events_total" ["upstream", "event"]
        "Accounts of callers at other servers: `asked` (a caller got a link), `connected`, `renewed`, `not_renewed` (the \
         issuer did not answer, or failed), `over` (the issuer says that the account has ended), `disconnected`.";
    UPSTREAM_STATE Gauge, "weir_upstream_state" ["upstream", "state"]
        "1 for the state of each other server at the last look at its lists: `up`, `down`, or `unknown` before the first. \
         What is published of a server that is down stays listed.";
    UPSTREAM_DOWN Gauge, "weir_upstream_down" ["upstream", "reason"]
        "1 for each other server that was down at the last look, by reason: `start`, `unreachable`, `access`, `protocol`, \
         `timeout`, `closed`, `too_large`, or `refused` for lists that cannot be published.";
    UPSTREAM_SESSIONS Gauge, "weir_upstream_sessions" ["upstream"]
        "Sessions that are open to another server; of a command, its processes.";
    UPSTREAM_RESTARTS Counter, "weir_upstream_restarts_total" ["upstream"]
        "Sessions that were opened again because the previous one had ended on its own or had not started.";
    UPSTREAM_BACKING_OFF Gauge, "weir_upstream_backing_off" ["upstream"]
        "Tools of another server that are not called for a while because their last calls all failed, counted per tenant.";
    UPSTREAM_LEFT_OUT Gauge, "weir_upstream_left_out" ["upstream"]
        "Items of another server's lists that cannot be published. `weir upstream show` says why.";
    AUDIT_FAILING Gauge, "weir_audit_failing" []
        "1 from a failed write or sync of the audit trail until one succeeds. Calls are refused meanwhile, but after a failed sync only with `fsync = \"each\"`.";
    AUDIT_FAILURES Counter, "weir_audit_failures_total" []
        "Writes and syncs of the audit trail that failed.";
    AUDIT_RECORDS Counter, "weir_audit_records_total" []
        "Records in this process's chain.";
    AUDIT_BYTES Counter, "weir_audit_bytes_total" []
        "Bytes of those records.";
    AUDIT_UNSYNCED Gauge, "weir_audit_unsynced_records" []
        "Records that a crash of the machine (not of the process) could still lose.";
    AUDIT_UNCERTAIN Gauge, "weir_audit_uncertain_records" []
        "Records since the start that were written before a sync that failed: a crash of the machine could lose them \
         although later syncs succeeded. The trail names them.";
    AUDIT_UNSHIPPED_SEGMENTS Gauge, "weir_audit_unshipped_segments" []
        "Segments of this machine's trail with records that are not copied to the bucket, with `[audit] copies`.";
    AUDIT_UNSHIPPED_BYTES Gauge, "weir_audit_unshipped_bytes" []
        "Bytes of those records: what the loss of the disk would lose.";
    AUDIT_UNSHIPPED_AGE Gauge, "weir_audit_unshipped_age_seconds" []
        "How far the copy is behind: the time since the moment up to which everything is copied; 0 if nothing is missing.";
    AUDIT_COPY_FAILURES Counter, "weir_audit_copy_failures_total" []
        "Rounds of copying that failed; each is tried again after 10 s.";
    CONTRACT_TOOLS Gauge, "weir_contract_tools" ["contract", "version"]
        "Tools of each contract that is served, and its version.";
    DRAFTS Gauge, "weir_drafts_waiting" ["class"]
        "Changes that wait for someone to publish or discard them, by their class (docs/change-a-contract.md).";
    REFUSED Gauge, "weir_refused" ["kind"]
        "What is refused now: contract files and their locks (`contract`), published versions that this \
         program cannot read (`version`), plugin files (`plugin`), connections (`connection`), other servers whose secrets \
         are missing (`upstream`). What does not need \
         them is served. `weir contracts list` says why.";
    DRIFTED Gauge, "weir_drifted_collections" []
        "Collections whose source, at the last look, no longer served what their contract says.";
    TOOLS Gauge, "weir_tools" []
        "Tools that are served.";
    CONTRACTS Gauge, "weir_contracts" []
        "Contracts that are served.";
    GENERATION Gauge, "weir_snapshot_generation" []
        "Changes whenever what is served changes.";
    FOLDED Counter, "weir_series_folded_total" ["label"]
        "How often a `tool`, `agent`, `adapter` or `contract` got no series of its own, because the bound on series \
         was reached, and was counted under `_other`. Contracts are left out, each once in every scrape.";
    LOG_LINES_LOST Counter, "weir_log_lines_lost_total" []
        "Log lines that were lost because stderr was not read. The audit trail has every call all the same.";
    TRACED_CALLS Counter, "weir_traced_calls_total" ["result"]
        "Calls that were traced: `sent` to the collector, `dropped` because too many waited to be sent, `failed` because \
         the collector did not take them. Only if traces are on.";
    BUILD Gauge, "weir_build_info" ["version"]
        "1, with the version of this build.";
}

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
