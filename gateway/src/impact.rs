//! Which agents' calls of the past a change would have refused.
//!
//! Kept where `[contracts] impact_days` says so: of each valid call what its arguments looked like (see
//! [`weir_contracts::impact`]: no text, no free number), counted by day. Counts wait in memory and are written down every
//! few seconds; a process that is killed loses those of its last seconds, which no receipt speaks of.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use dashmap::DashMap;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_contracts::{
    Contract,
    impact::{Profile, Verdict, judge},
};
use weir_state::{ProfileRow, State, StateError};

use crate::{catalogue::CatalogueTool, gateway::Gateway, identity::now_ms};

const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// Different calls that may wait to be written down; further ones are not kept.
const WAITING_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// Reasons that are named for one agent and tool.
const REASONS_MAX: usize = 3;

/// What is not written down yet.
#[derive(Default)]
pub struct Past {
    waiting: DashMap<Seen, i64>,
}

#[derive(PartialEq, Eq, Hash)]
struct Seen {
    contract: Arc<str>,
    tool: Arc<str>,
    agent: Arc<str>,
    profile: String,
}

impl Past {
    pub fn note(&self, tool: &CatalogueTool, agent: &Arc<str>, profile: &Profile) {
        let profile = serde_json::to_string(profile).expect("a profile is plain data");
        let seen = Seen { contract: tool.contract.clone(), tool: tool.name.clone(), agent: agent.clone(), profile };
        if self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&seen) {
            *self.waiting.entry(seen).or_default() += 1;
        }
    }

    fn take(&self) -> Vec<ProfileRow> {
        let mut rows = Vec::new();
        self.waiting.retain(|seen, calls| {
            rows.push(ProfileRow {
                contract: seen.contract.to_string(),
                tool: seen.tool.to_string(),
                agent: seen.agent.to_string(),
                profile: seen.profile.clone(),
                calls: *calls,
            });
            false
        });
        rows
    }

    /// Writes down what waits.
    pub async fn write(&self, state: &State, days: u32) {
        let rows = self.take();
        if rows.is_empty() {
            return;
        }
        let today = now_ms() / DAY_MS;
        if let Err(error) = state.keep_profiles(today, today - i64::from(days), &rows).await {
            tracing::error!(%error, "what calls looked like could not be kept");
        }
    }
}

/// Writes down what waits, again and again, until the task ends.
pub async fn keep(gateway: Arc<Gateway>, state: Arc<State>) {
    loop {
        tokio::time::sleep(WRITE_INTERVAL).await;
        gateway.past().write(&state, gateway.config().contracts.impact_days).await;
    }
}

/// What a change would have meant for the calls of the past.
#[derive(Debug, Serialize, ToSchema)]
pub struct Impact {
    /// How many days back calls are kept.
    days: u32,
    /// Calls that were judged.
    calls: i64,
    /// Agents and tools with calls that would have failed or cannot be told; the others' calls would all have passed.
    agents: Vec<AgentImpact>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AgentImpact {
    agent: String,
    tool: String,
    calls: i64,
    fail: i64,
    /// What is kept of them does not tell.
    cannot_tell: i64,
    /// Why, the first few.
    reasons: Vec<String>,
}

/// The input schemas that a contract's tools would have, by name.
pub type Inputs = BTreeMap<String, Value>;

/// Of a contract; `None`: retired, it has no tools.
pub fn inputs(contract: Option<&Contract>) -> Inputs {
    let tools = contract.into_iter().flat_map(|contract| &contract.tools);
    tools.map(|tool| (tool.name.clone(), tool.input_schema.clone())).collect()
}

/// Judges the calls of a contract by what its tools would become. `None` where no calls are kept.
pub async fn impact(
    gateway: &Gateway,
    state: &State,
    contract: &str,
    new: &Inputs,
) -> Result<Option<Impact>, StateError> {
    let days = gateway.config().contracts.impact_days;
    if days == 0 {
        return Ok(None);
    }
    gateway.past().write(state, days).await;
    let rows = state.profiles(contract).await?;
    let mut found: BTreeMap<(String, String), AgentImpact> = BTreeMap::new();
    let mut calls = 0;
    for row in rows {
        calls += row.calls;
        let verdict = verdict(new, &row);
        let (agent, tool) = (row.agent.clone(), row.tool.clone());
        let entry = found.entry((row.agent, row.tool)).or_insert_with(|| AgentImpact {
            agent,
            tool,
            calls: 0,
            fail: 0,
            cannot_tell: 0,
            reasons: Vec::new(),
        });
        entry.calls += row.calls;
        let why = match verdict {
            Verdict::Passes => continue,
            Verdict::Fails { why } => {
                entry.fail += row.calls;
                why
            }
            Verdict::CannotTell { why } => {
                entry.cannot_tell += row.calls;
                why
            }
        };
        if entry.reasons.len() < REASONS_MAX && !entry.reasons.contains(&why) {
            entry.reasons.push(why);
        }
    }
    let agents = found.into_values().filter(|agent| agent.fail + agent.cannot_tell > 0).collect();
    Ok(Some(Impact { days, calls, agents }))
}

fn verdict(new: &Inputs, row: &ProfileRow) -> Verdict {
    let Some(schema) = new.get(&row.tool) else {
        return Verdict::Fails { why: "the tool is gone".to_owned() };
    };
    match serde_json::from_str(&row.profile) {
        Ok(profile) => judge(schema, &profile),
        Err(_) => Verdict::CannotTell { why: "what is kept of the call cannot be read".to_owned() },
    }
}
