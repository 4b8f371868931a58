//! Finds out, before a change is published, its effect on the calls that were kept.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_contracts::{
    CompiledContract,
    impact::{ImpactVerdict, judge},
};
use weir_state::{GatewayState, ProfileRow, StateError};

use crate::{serving::ServingGateway, telemetry::note_written};

const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// Reasons that are listed for one agent and tool.
const REASONS_MAX: usize = 3;

/// Writes pending profiles to the state at intervals, until the task ends.
pub async fn keep(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let mut is_failing = false;
    loop {
        tokio::time::sleep(WRITE_INTERVAL).await;
        let days = gateway.config().contracts.impact_days;
        let written = gateway.call_history().write(&state, days).await;
        note_written(&mut is_failing, &written, "profiles of calls");
    }
}

/// The effect that a change would have had on past calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct Impact {
    /// The number of days for which calls are kept.
    days: u32,
    /// Calls that were judged.
    calls: i64,
    /// Agents and tools with calls that would have failed or that cannot be judged; all other calls would have passed.
    agents: Vec<AgentImpact>,
}

/// The effect that a change would have had on the past calls of one agent to one tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentImpact {
    agent: String,
    tool: String,
    calls: i64,
    fail: i64,
    /// The number of calls that the kept profiles cannot decide.
    cannot_tell: i64,
    /// The first few reasons.
    reasons: Vec<String>,
}

/// The input schemas that a contract's tools would have, by name.
pub type Inputs = BTreeMap<String, Value>;

/// Returns the input schemas of a contract's tools. `None` means a retired contract, which has no tools.
pub fn inputs(contract: Option<&CompiledContract>) -> Inputs {
    let tools = contract.into_iter().flat_map(|contract| &contract.tools);
    tools
        .map(|tool| (tool.name.clone(), tool.input_schema.value()))
        .collect()
}

/// Judges the past calls of a contract by its new tools. `None` if no calls are kept.
pub async fn impact(
    gateway: &ServingGateway,
    state: &GatewayState,
    contract: &str,
    new: &Inputs,
) -> Result<Option<Impact>, StateError> {
    let days = gateway.config().contracts.impact_days;
    if days == 0 {
        return Ok(None);
    }
    // If the last calls cannot be written, those written before are judged.
    let _ = gateway.call_history().write(state, days).await;
    let rows = state.profiles(contract).await?;
    let mut found: BTreeMap<(String, String), AgentImpact> = BTreeMap::new();
    let mut calls = 0;
    for row in rows {
        calls += row.calls;
        let verdict = verdict(new, &row);
        let (agent, tool) = (row.agent.clone(), row.tool.clone());
        let entry = found
            .entry((row.agent, row.tool))
            .or_insert_with(|| AgentImpact {
                agent,
                tool,
                calls: 0,
                fail: 0,
                cannot_tell: 0,
                reasons: Vec::new(),
            });
        entry.calls += row.calls;
        let why = match verdict {
            ImpactVerdict::Passes => continue,
            ImpactVerdict::Fails { why } => {
                entry.fail += row.calls;
                why
            }
            ImpactVerdict::CannotTell { why } => {
                entry.cannot_tell += row.calls;
                why
            }
        };
        if entry.reasons.len() < REASONS_MAX && !entry.reasons.contains(&why) {
            entry.reasons.push(why);
        }
    }
    let agents = found
        .into_values()
        .filter(|agent| agent.fail + agent.cannot_tell > 0)
        .collect();
    Ok(Some(Impact {
        days,
        calls,
        agents,
    }))
}

fn verdict(new: &Inputs, row: &ProfileRow) -> ImpactVerdict {
    let Some(schema) = new.get(&row.tool) else {
        return ImpactVerdict::Fails {
            why: "the tool is gone".to_owned(),
        };
    };
    match serde_json::from_str(&row.profile) {
        Ok(profile) => judge(schema, &profile),
        Err(_) => ImpactVerdict::CannotTell {
            why: "what is kept of the call cannot be read".to_owned(),
        },
    }
}
