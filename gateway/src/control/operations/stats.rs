//! Live figures of calls, from the counters that Prometheus scrapes too.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use utoipa::ToSchema;

use super::{OperationError, OperationResult};
use crate::{
    control::{
        ControlPlane,
        live_figures::{FigureLook, FigureSpan, KEPT},
    },
    identity::now_ms,
    telemetry::metrics::{CallReading, ToolKey, ToolReading},
};

/// The most tools and agents that are listed.
const NAMED_MAX: usize = 10;

/// Counts of calls in a window.
#[derive(Serialize, ToSchema)]
pub struct CallFigures {
    /// The time that was counted, in seconds: more than the window if no reading was taken for a while, less if the process is
    /// younger.
    pub seconds: f64,
    pub calls: u64,
    /// The calls that failed.
    pub errors: u64,
    pub calls_per_second: f64,
    /// Calls by error code; `ok` for those that succeeded.
    pub codes: BTreeMap<&'static str, u64>,
    /// Estimates of total durations, in milliseconds; null if there was no call.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Estimates of the time in the gateway itself.
    pub overhead_p50_ms: Option<f64>,
    pub overhead_p99_ms: Option<f64>,
    /// Calls that are running now.
    pub in_flight: usize,
    /// The tools with the most calls, at most 10.
    pub tools: Vec<ToolFigures>,
    /// The agents with the most calls, at most 10.
    pub agents: Vec<AgentFigures>,
}

/// The calls of one tool, and how many of them failed.
#[derive(Serialize, ToSchema)]
pub struct ToolFigures {
    pub tool: String,
    /// `contract@version`.
    pub contract: String,
    pub calls: u64,
    pub errors: u64,
}

/// The calls of one tool over all its versions, and how many of them failed.
#[derive(Serialize, ToSchema)]
pub struct ToolTotal {
    pub tool: String,
    pub calls: u64,
    pub errors: u64,
}

/// The calls of one agent.
#[derive(Serialize, ToSchema)]
pub struct AgentFigures {
    pub agent: String,
    pub calls: u64,
}

/// The figures of calls over a time, in total and by point.
#[derive(Serialize, ToSchema)]
pub struct StatsView {
    #[serde(flatten)]
    pub figures: CallFigures,
    pub since_start: StartFigures,
    /// The same over time, oldest first.
    pub points: Vec<StatsPoint>,
}

/// The data of the event `stats`.
#[derive(Serialize, ToSchema)]
pub struct StatsEvent {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    #[serde(flatten)]
    pub figures: CallFigures,
    pub since_start: StartFigures,
}

/// What was counted since the process started, and the current values.
#[derive(Serialize, ToSchema)]
pub struct StartFigures {
    /// Calls by error code; `ok` for those that succeeded.
    pub codes: BTreeMap<&'static str, u64>,
    /// Estimates of total durations, in milliseconds; null if there was no call.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// An estimate of the time in the gateway itself.
    pub overhead_p50_ms: Option<f64>,
    /// The tools with the most calls over all their versions, at most 10.
    pub tools: Vec<ToolTotal>,
    /// The agents with the most calls, at most 10.
    pub agents: Vec<AgentFigures>,
    /// Requests that were refused before they became calls, by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// The number of tools that are served now.
    pub served_tools: usize,
    /// Whether the trail cannot be written now, so that calls are refused.
    pub is_audit_failing: bool,
}

/// What was counted up to a moment, since the previous point.
#[derive(Serialize, ToSchema)]
pub struct StatsPoint {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub seconds: f64,
    pub calls: u64,
    pub errors: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// Returns the figures of the last `window` seconds.
pub fn show(control: &ControlPlane, window: u64) -> OperationResult<StatsView> {
    if !(1..=KEPT.as_secs()).contains(&window) {
        let detail = format!("`window` must be 1 to {} seconds", KEPT.as_secs());
        return Err(OperationError::invalid(detail));
    }
    let look = look(control, Duration::from_secs(window));
    let points = look.spans.iter().filter(|span| !span.took.is_zero());
    Ok(StatsView {
        points: points.map(StatsPoint::from).collect(),
        figures: figures(control, &look.spans),
        since_start: start_figures(control, &look.since_start),
    })
}

/// Returns the figures of about the last second.
pub fn show_last(control: &ControlPlane) -> StatsEvent {
    let look = look(control, Duration::from_secs(1));
    StatsEvent {
        at_ms: now_ms(),
        figures: figures(control, &look.spans),
        since_start: start_figures(control, &look.since_start),
    }
}

fn look(control: &ControlPlane, window: Duration) -> FigureLook {
    control
        .live_figures()
        .look(control.gateway().metrics(), window)
}

fn figures(control: &ControlPlane, spans: &[FigureSpan]) -> CallFigures {
    let mut counted = CallReading::default();
    for span in spans {
        counted.merge(&span.counted);
    }
    let seconds: f64 = spans.iter().map(|span| span.took.as_secs_f64()).sum();
    let (calls, errors) = (counted.calls(), counted.errors());
    CallFigures {
        seconds,
        calls,
        errors,
        calls_per_second: if seconds > 0.0 {
            calls as f64 / seconds
        } else {
            0.0
        },
        p50_ms: counted.durations.quantile(0.5).map(milliseconds),
        p99_ms: counted.durations.quantile(0.99).map(milliseconds),
        overhead_p50_ms: counted.overhead.quantile(0.5).map(milliseconds),
        overhead_p99_ms: counted.overhead.quantile(0.99).map(milliseconds),
        in_flight: control.gateway().in_flight().len(),
        tools: busiest_tools(&counted),
        agents: busiest_agents(&counted),
        codes: counted.codes,
    }
}

fn start_figures(control: &ControlPlane, counted: &CallReading) -> StartFigures {
    let gateway = control.gateway();
    let mut refusals = BTreeMap::new();
    for (_, reason, count) in gateway.audit().refusals().filter(|(.., count)| *count > 0) {
        *refusals.entry(reason).or_default() += count;
    }
    let health = gateway.audit().health();
    StartFigures {
        codes: counted.codes.clone(),
        p50_ms: counted.durations.quantile(0.5).map(milliseconds),
        p99_ms: counted.durations.quantile(0.99).map(milliseconds),
        overhead_p50_ms: counted.overhead.quantile(0.5).map(milliseconds),
        tools: total_tools(counted),
        agents: busiest_agents(counted),
        refusals,
        served_tools: gateway.snapshot().catalogue.len(),
        is_audit_failing: health.is_some_and(|health| health.failing),
    }
}

fn busiest_tools(counted: &CallReading) -> Vec<ToolFigures> {
    let busiest = most_called(counted.tools.iter(), |(key, read)| (read.calls, *key));
    let figures = |((tool, contract), read): (&ToolKey, &ToolReading)| ToolFigures {
        tool: tool.to_string(),
        contract: contract.to_string(),
        calls: read.calls,
        errors: read.errors,
    };
    busiest.into_iter().map(figures).collect()
}

/// Returns the tools with the most calls over all their versions.
fn total_tools(counted: &CallReading) -> Vec<ToolTotal> {
    let mut totals: HashMap<&str, ToolReading> = HashMap::new();
    for ((tool, _), read) in &counted.tools {
        let total = totals.entry(tool).or_default();
        total.calls += read.calls;
        total.errors += read.errors;
    }
    let busiest = most_called(totals.into_iter(), |(tool, read)| (read.calls, *tool));
    let total = |(tool, read): (&str, ToolReading)| ToolTotal {
        tool: tool.to_owned(),
        calls: read.calls,
        errors: read.errors,
    };
    busiest.into_iter().map(total).collect()
}

fn busiest_agents(counted: &CallReading) -> Vec<AgentFigures> {
    let busiest = most_called(counted.agents.iter(), |(agent, calls)| (**calls, *agent));
    let figures = |(agent, calls): (&Arc<str>, &u64)| AgentFigures {
        agent: agent.to_string(),
        calls: *calls,
    };
    busiest.into_iter().map(figures).collect()
}

/// Returns the entries with the most calls; those with equally many are ordered by name.
fn most_called<T, N: Ord>(all: impl Iterator<Item = T>, rank: impl Fn(&T) -> (u64, N)) -> Vec<T> {
    let rank = |one: &T| {
        let (calls, name) = rank(one);
        (Reverse(calls), name)
    };
    let mut all: Vec<T> = all.collect();
    // There may be very many entries, of which few are listed.
    if all.len() > NAMED_MAX {
        all.select_nth_unstable_by(NAMED_MAX, |a, b| rank(a).cmp(&rank(b)));
        all.truncate(NAMED_MAX);
    }
    all.sort_by_key(rank);
    all
}

pub(super) fn milliseconds(seconds: f64) -> f64 {
    // Three digits: more would be noise.
    (seconds * 1_000_000.0).round() / 1000.0
}

impl From<&FigureSpan> for StatsPoint {
    fn from(span: &FigureSpan) -> Self {
        let counted = &span.counted;
        Self {
            at_ms: span.ended_ms,
            seconds: span.took.as_secs_f64(),
            calls: counted.calls(),
            errors: counted.errors(),
            p50_ms: counted.durations.quantile(0.5).map(milliseconds),
            p99_ms: counted.durations.quantile(0.99).map(milliseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool with many versions counts as one tool, however few calls each version has.
    #[test]
    fn the_busiest_tools_are_ranked_over_all_their_versions() {
        let mut counted = CallReading::default();
        let mut count = |tool: &str, version: usize, calls| {
            let key = (tool.into(), format!("desk@{version}.0.0").into());
            counted.tools.insert(key, ToolReading { calls, errors: 1 });
        };
        for version in 1..=20 {
            count("find", version, 2);
        }
        for other in 0..NAMED_MAX {
            count(&format!("other{other}"), 1, 3);
        }
        let ranked = total_tools(&counted);
        assert_eq!(ranked.len(), NAMED_MAX);
        let first = &ranked[0];
        assert_eq!((&*first.tool, first.calls, first.errors), ("find", 40, 20));
    }
}
