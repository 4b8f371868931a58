//! Other servers: how each fares, what of its lists is published, and a look at one now. Which there are is said in the
//! configuration alone: nobody starts a command through this API.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{Json, extract::State as Shared};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_upstream::{Called, Upstream};

use super::{Admin, Answer, Ask, Refusal, problem::At, staff::Staff};
use crate::control::gate::Role;

#[derive(Serialize, ToSchema)]
pub(super) struct UpstreamsView {
    upstreams: Vec<UpstreamView>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct UpstreamView {
    name: String,
    /// The contract that its tools are published as.
    contract: String,
    /// The live version of that; null where nothing of it is published.
    version: Option<String>,
    /// At the last look: `up`, `down`, or `unknown` before the first.
    state: &'static str,
    /// Why it is down, or why nothing of it can be published.
    reason: Option<String>,
    looked_ms: Option<u64>,
    /// What it says it is; null before it was looked at.
    #[schema(value_type = Option<Object>)]
    server: Value,
    /// Tools that it lists and that can be published.
    tools: usize,
    /// Items that cannot be published, and why.
    left_out: Vec<String>,
    /// What is published otherwise than it wrote it.
    notes: Vec<String>,
    /// The draft that waits for someone.
    draft: Option<String>,
    sessions: usize,
    restarts: u64,
    /// Calls, of them those that were not answered.
    calls: u64,
    failures: u64,
    /// Tools that are not called for a while because their last calls all failed, counted per tenant.
    backing_off: usize,
    /// What a command wrote to stderr last.
    stderr: String,
}

/// All of them, as the last look found each. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams", responses(
    (status = 200, body = UpstreamsView), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<UpstreamsView>> {
    staff.needs(Role::Viewer)?;
    let all = admin.gateway.upstreams().all();
    Ok(Json(UpstreamsView {
        upstreams: all.iter().map(|upstream| view(&admin, upstream)).collect(),
    }))
}

/// One of them. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams/{name}", params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(view(&admin, &*find(&admin, &name)?)))
}

/// Looks at its lists now, and answers what was found. Role: editor.
#[utoipa::path(post, path = "/v1/upstreams/{name}/look",
    params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal)))]
pub(super) async fn look(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Editor)?;
    let upstream = find(&admin, &name)?;
    admin.control.upstreams().look_at(&upstream).await;
    Ok(Json(view(&admin, &upstream)))
}

fn find(admin: &Admin, name: &str) -> Result<Arc<Upstream>, Refusal> {
    admin.gateway.upstreams().get(name).ok_or_else(|| {
        Refusal::not_found("upstream", name)
            .see("GET /v1/upstreams and `weir upstream list` name those that there are")
    })
}

fn view(admin: &Admin, upstream: &Upstream) -> UpstreamView {
    let seen = upstream.seen();
    let contract = if seen.contract.is_empty() {
        upstream.contract()
    } else {
        &seen.contract
    }
    .to_owned();
    let live = admin.control.gate().live();
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
