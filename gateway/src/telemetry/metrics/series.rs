//! Series of tools and agents: created once, kept as handles, bounded in number.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec};

use weir_contracts::ContractVersion;

use super::OTHER;
use crate::codes::{FailureCode, TABLE};

/// The number of adapters with their own series.
const ADAPTERS_MAX: usize = 64;
/// The number of agents with their own series.
const AGENTS_MAX: usize = 500;
/// The results of a call in the audit trail.
pub(super) const RESULTS: [&str; 5] = ["ok", "refused", "failed", "cancelled", "unknown"];

/// OpenTelemetry's `error.type` of a call: none, or the one for a result that is an error.
const ERRORS: [&str; 2] = ["", "tool_error"];

/// The series of one tool of one contract version.
pub struct ToolSeries {
    ok: IntCounter,
    /// The counters of codes, in the order of [`TABLE`].
    codes: Vec<IntCounter>,
    /// The durations of successful calls, and of the others.
    pub(super) duration: [Histogram; 2],
    pub(super) adapter: Histogram,
}

/// The meter of a tool. It lives as long as the published tool, and keeps its series once they are found.
pub struct ToolMeter {
    pub tool: Arc<str>,
    pub contract: Arc<str>,
    /// `contract@version`.
    pub contract_version: Arc<str>,
    pub version: ContractVersion,
    /// Its adapter, if it has one.
    pub adapter: Option<Arc<str>>,
    series: OnceLock<Arc<ToolSeries>>,
}

/// Tool, then `contract@version`.
type Key = (Arc<str>, Arc<str>);

pub(super) struct ToolMetrics {
    calls: IntCounterVec,
    durations: HistogramVec,
    adapters: HistogramVec,
    most: usize,
    known: Mutex<KnownSeries>,
    other: Arc<ToolSeries>,
    folded_tools: IntCounter,
    folded_adapters: IntCounter,
}

#[derive(Default)]
struct KnownSeries {
    tools: HashMap<Key, Arc<ToolSeries>>,
    adapters: HashSet<Arc<str>>,
}

pub(super) struct AgentMetrics {
    calls: IntCounterVec,
    known: DashMap<Arc<str>, Arc<AgentSeries>, RandomState>,
    other: AgentSeries,
    folded: IntCounter,
}

/// The counters of an agent, in the order of [`RESULTS`].
struct AgentSeries([IntCounter; 5]);

impl ToolMeter {
    /// Creates the meter of a tool. Its series are created at the first use.
    pub fn new(
        tool: Arc<str>,
        contract: Arc<str>,
        version: ContractVersion,
        adapter: Option<Arc<str>>,
    ) -> Self {
        let contract_version = format!("{contract}@{version}").into();
        Self {
            tool,
            contract,
            contract_version,
            version,
            adapter,
            series: OnceLock::new(),
        }
    }
}

impl ToolSeries {
    /// Returns the counter of a code; `None` means a successful call.
    pub(super) fn outcome(&self, code: Option<FailureCode>) -> &IntCounter {
        code.and_then(|code| self.codes.get(code as usize))
            .unwrap_or(&self.ok)
    }

    /// Returns the successful calls, and then those of each code of [`TABLE`].
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        std::iter::once(&self.ok)
            .chain(&self.codes)
            .map(IntCounter::get)
    }
}

impl ToolMetrics {
    pub(super) fn new(
        calls: IntCounterVec,
        durations: HistogramVec,
        adapters: HistogramVec,
        folded: &IntCounterVec,
        most: usize,
    ) -> Self {
        let other = Arc::new(series(
            &calls,
            &durations,
            &adapters,
            [OTHER, "", ""],
            OTHER,
        ));
        let folded_tools = folded.with_label_values(&["tool"]);
        let folded_adapters = folded.with_label_values(&["adapter"]);
        Self {
            calls,
            durations,
            adapters,
            most,
            known: Mutex::default(),
            other,
            folded_tools,
            folded_adapters,
        }
    }

    /// Visits the series of each tool that has any.
    pub(super) fn each(&self, mut visit: impl FnMut(&Key, &ToolSeries)) {
        for (key, series) in &self.known.lock().tools {
            visit(key, series);
        }
    }

    /// Returns the series of the tools beyond the bound.
    pub(super) fn other(&self) -> &ToolSeries {
        &self.other
    }

    /// Returns series that do not belong to a tool.
    pub(super) fn named(&self, name: &str) -> ToolSeries {
        series(
            &self.calls,
            &self.durations,
            &self.adapters,
            [name, "", ""],
            OTHER,
        )
    }

    /// Returns the series of a tool: looked up once, then kept with it.
    pub(super) fn series_for<'a>(&self, tool: &'a ToolMeter) -> &'a ToolSeries {
        tool.series
            .get_or_init(|| self.find(&mut self.known.lock(), tool))
    }

    /// Takes the tools of a new snapshot, which count from 0. Removed tools keep their series until the room is needed. If more
    /// tools are published than there is room for, those that are called first get it.
    pub(super) fn set<'a>(&self, tools: impl Iterator<Item = &'a ToolMeter>) {
        let tools: Vec<_> = tools.collect();
        let live: HashSet<Key> = tools.iter().map(|tool| key(tool)).collect();
        let mut known = self.known.lock();
        let new = live
            .iter()
            .filter(|key| !known.tools.contains_key(*key))
            .count();
        if known.tools.len() + new > self.most {
            self.forget(&mut known, &live);
        }
        if tools.len() <= self.most {
            for tool in tools {
                self.find(&mut known, tool);
            }
        }
    }

    fn find(&self, known: &mut KnownSeries, tool: &ToolMeter) -> Arc<ToolSeries> {
        let key = key(tool);
        if let Some(series) = known.tools.get(&key) {
            return series.clone();
        }
        if known.tools.len() >= self.most {
            self.folded_tools.inc();
            return self.other.clone();
        }
        let adapter = self.adapter(known, tool.adapter.as_ref());
        let version = tool.version.to_string();
        let labels = [&*tool.tool, &*tool.contract, &version];
        let made = Arc::new(series(
            &self.calls,
            &self.durations,
            &self.adapters,
            labels,
            &adapter,
        ));
        known.tools.insert(key, made.clone());
        made
    }

    fn adapter(&self, known: &mut KnownSeries, adapter: Option<&Arc<str>>) -> Arc<str> {
        let Some(adapter) = adapter else {
            return OTHER.into();
        };
        if known.adapters.contains(adapter) {
            return adapter.clone();
        }
        if known.adapters.len() >= ADAPTERS_MAX {
            self.folded_adapters.inc();
            return OTHER.into();
        }
        known.adapters.insert(adapter.clone());
        adapter.clone()
    }

    fn forget(&self, known: &mut KnownSeries, live: &HashSet<Key>) {
        let names: HashSet<&str> = live.iter().map(|(tool, _)| &**tool).collect();
        known.tools.retain(|key, _| {
            let (tool, contract_version) = key;
            if live.contains(key) {
                return true;
            }
            let (contract, version) = contract_version
                .rsplit_once('@')
                .unwrap_or((contract_version, ""));
            for outcome in outcomes() {
                let _ = self
                    .calls
                    .remove_label_values(&[tool, contract, version, outcome]);
            }
            if !names.contains(&**tool) {
                for error in ERRORS {
                    let _ = self
                        .durations
                        .remove_label_values(&["tools/call", tool, error]);
                }
            }
            false
        });
    }
}

impl AgentMetrics {
    pub(super) fn new(calls: IntCounterVec, folded: &IntCounterVec) -> Self {
        let other = AgentSeries(RESULTS.map(|result| calls.with_label_values(&[OTHER, result])));
        Self {
            calls,
            known: DashMap::default(),
            other,
            folded: folded.with_label_values(&["agent"]),
        }
    }

    /// Visits the number of calls of each agent; `None` means those beyond the bound.
    pub(super) fn each(&self, mut visit: impl FnMut(Option<&Arc<str>>, u64)) {
        let sum = |series: &AgentSeries| series.0.iter().map(IntCounter::get).sum();
        for entry in &self.known {
            visit(Some(entry.key()), sum(entry.value()));
        }
        visit(None, sum(&self.other));
    }

    /// Counts a call of an agent. `result` is one of [`RESULTS`].
    pub(super) fn count(&self, agent: &Arc<str>, result: &str) {
        let at = RESULTS
            .iter()
            .position(|known| *known == result)
            .unwrap_or(RESULTS.len() - 1);
        if let Some(series) = self.known.get(agent) {
            return series.0[at].inc();
        }
        if self.known.len() >= AGENTS_MAX {
            self.folded.inc();
            return self.other.0[at].inc();
        }
        let made =
            AgentSeries(RESULTS.map(|result| self.calls.with_label_values(&[&**agent, result])));
        made.0[at].inc();
        self.known.insert(agent.clone(), Arc::new(made));
    }
}

fn key(tool: &ToolMeter) -> Key {
    (tool.tool.clone(), tool.contract_version.clone())
}

fn outcomes() -> impl Iterator<Item = &'static str> {
    std::iter::once("ok").chain(TABLE.iter().map(|row| row.label))
}

fn series(
    calls: &IntCounterVec,
    durations: &HistogramVec,
    adapters: &HistogramVec,
    [tool, contract, version]: [&str; 3],
    adapter: &str,
) -> ToolSeries {
    let counter = |outcome: &str| calls.with_label_values(&[tool, contract, version, outcome]);
    ToolSeries {
        ok: counter("ok"),
        codes: TABLE.iter().map(|row| counter(row.label)).collect(),
        duration: ERRORS.map(|error| durations.with_label_values(&["tools/call", tool, error])),
        adapter: adapters.with_label_values(&[adapter]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_its_place_in_the_table() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, at, "{}", row.label);
        }
    }
}
