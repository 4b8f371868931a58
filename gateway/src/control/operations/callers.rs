//! The callers of a contract, according to the calls that are kept.

use serde::Serialize;
use utoipa::ToSchema;
use weir_state::CallerRow;

use super::{OperationError, OperationResult};
use crate::control::ControlPlane;

/// Callers in one answer.
const CALLERS_MAX: i64 = 500;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The agents that called the tools of a contract.
#[derive(Serialize, ToSchema)]
pub struct CallersView {
    /// The number of days for which calls are kept. With 0, no calls are kept and the list is empty.
    pub days: u32,
    /// By agent and tool, the most calls first, at most 500.
    pub callers: Vec<CallerView>,
}

/// The calls of one agent to one tool.
#[derive(Serialize, ToSchema)]
pub struct CallerView {
    pub agent: String,
    pub tool: String,
    /// Valid calls within the days that are kept.
    pub calls: i64,
    /// The beginning of the last day with a call, in milliseconds since 1970.
    pub last_day_ms: i64,
}

/// Returns the agents whose calls are kept.
pub async fn list(control: &ControlPlane, contract: &str) -> OperationResult<CallersView> {
    let (gateway, state) = (control.gateway(), control.state());
    if state.head(contract).await?.is_none() {
        let next = "GET /v1/contracts and `weir contracts list` list the contracts";
        return Err(OperationError::not_found("contract", contract).see(next));
    }
    let days = gateway.config().contracts.impact_days;
    if days == 0 {
        return Ok(CallersView {
            days,
            callers: Vec::new(),
        });
    }
    // If this fails, only callers of the last seconds are missing.
    let _ = gateway.call_history().write(state, days).await;
    let view = |row: CallerRow| CallerView {
        agent: row.agent,
        tool: row.tool,
        calls: row.calls,
        last_day_ms: row.last_day * DAY_MS,
    };
    let rows = state.callers(contract, CALLERS_MAX).await?;
    Ok(CallersView {
        days,
        callers: rows.into_iter().map(view).collect(),
    })
}
