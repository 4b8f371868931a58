//! Other servers: the health of each, what of its lists is published, and a look at one now. Which there are is said in the
//! configuration alone: nobody starts a command through an operation.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_upstream::{Called, Upstream};

use super::{OperationError, OperationResult};
use crate::control::Control;

#[derive(Serialize, ToSchema)]
pub(crate) struct UpstreamsView {
    pub upstreams: Vec<UpstreamView>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct UpstreamView {
    pub name: String,
    /// The contract that its tools are published as.
    pub contract: String,
    /// The live version of that; null where nothing of it is published.
    pub version: Option<String>,
    /// At the last look: `up`, `down`, or `unknown` before the first.
    pub state: &'static str,
    /// Why it is down, or why nothing of it can be published.
    pub reason: Option<String>,
    pub looked_ms: Option<u64>,
    /// What it says it is; null before it was looked at.
    #[schema(value_type = Option<Object>)]
    pub server: Value,
    /// Tools that it lists and that can be published.
    pub tools: usize,
    /// Items that cannot be published, and why.
    pub left_out: Vec<String>,
    /// What is published otherwise than it wrote it.
    pub notes: Vec<String>,
    /// The draft that waits for someone.
    pub draft: Option<String>,
    pub sessions: usize,
    pub restarts: u64,
    /// Calls, of them those that were not answered.
    pub calls: u64,
    pub failures: u64,
    /// Tools that are not called for a while because their last calls all failed, counted per tenant.
    pub backing_off: usize,
    /// What a command wrote to stderr last.
    pub stderr: String,
}

/// Returns all of them, as the last look found each.
pub(crate) fn list(control: &Control) -> UpstreamsView {
    let all = control.gateway().upstreams().all();
    UpstreamsView {
        upstreams: all.iter().map(|upstream| view(control, upstream)).collect(),
    }
}

/// Returns one of them.
pub(crate) fn show(control: &Control, name: &str) -> OperationResult<UpstreamView> {
    Ok(view(control, &*find(control, name)?))
}

/// Looks at its lists now, and returns what was found.
pub(crate) async fn look(control: &Control, name: &str) -> OperationResult<UpstreamView> {
    let upstream = find(control, name)?;
    control.upstreams().look_at(&upstream).await;
    Ok(view(control, &upstream))
}

fn find(control: &Control, name: &str) -> OperationResult<Arc<Upstream>> {
    control.gateway().upstreams().get(name).ok_or_else(|| {
        OperationError::not_found("upstream", name)
            .see("GET /v1/upstreams and `weir upstream list` name those that there are")
    })
}

fn view(control: &Control, upstream: &Upstream) -> UpstreamView {
    let seen = upstream.seen();
    let contract = if seen.contract.is_empty() {
        upstream.contract()
    } else {
        &seen.contract
    }
    .to_owned();
    let live = control.gate().live();
    let since = |at: SystemTime| {
        at.duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis())
    };
    let count = |called: &Called| upstream.calls(*called);
    UpstreamView {
        name: upstream.name.to_string(),
        version: live
            .get(&contract)
            .map(|live| live.contract.version.to_string()),
        contract,
        state: seen.state(),
        reason: seen.failure,
        looked_ms: seen
            .at
            .map(|at| u64::try_from(since(at)).unwrap_or(u64::MAX)),
        server: serde_json::from_str(&seen.server).unwrap_or_default(),
        tools: seen.tools,
        left_out: seen.left_out,
        notes: seen.notes,
        draft: seen.draft,
        sessions: upstream.sessions(),
        restarts: upstream.restarts(),
        calls: Called::ALL.iter().map(count).sum(),
        failures: Called::ALL
            .iter()
            .filter(|called| !matches!(called, Called::Answered | Called::Cancelled))
            .map(count)
            .sum(),
        backing_off: upstream.backing_off(),
        stderr: upstream.stderr(),
    }
}
