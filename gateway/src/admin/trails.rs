//! Answers the requests that `weir audit collect` sends to each machine.

use axum::{
    Json,
    extract::State as Shared,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use utoipa::IntoParams;
use weir_audit::{ChainFiles, CollectedHeads};

use super::{
    AdminProblem, Answer, Ask,
    problem::{PathParams, QueryParams},
    staff::AdminPrincipal,
};
use crate::control::{gate::Role, operations::trails};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LineRange {
    /// The byte of the segment to begin with; by default its first.
    #[serde(default)]
    from: u64,
}

/// The last record of each chain: of all machines that share the state, else only of this one. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/heads", responses(
    (status = 200, body = CollectedHeads), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn heads(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<CollectedHeads>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(trails::heads(&admin.control).await?))
}

/// The chains of this machine with their segments. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/chains", responses(
    (status = 200, body = Vec<ChainFiles>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn chains(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<ChainFiles>>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(trails::chains(&admin.control).await?))
}

/// Whole lines of a segment, as they were written, at most 4 MiB: continue from where they end, until there are none.
/// Role: auditor.
#[utoipa::path(get, path = "/v1/audit/chains/{chain}/{segment}",
    params(LineRange, ("chain" = String, Path, description = "a chain of this machine"),
        ("segment" = u32, Path, description = "the number of one of its segments")),
    responses((status = 200, content_type = "application/jsonl", body = String), (status = 400, body = AdminProblem),
        (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 404, body = AdminProblem),
        (status = 503, body = AdminProblem)))]
pub(super) async fn lines(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((chain, segment)): PathParams<(String, u32)>,
    QueryParams(range): QueryParams<LineRange>,
) -> Answer<Response> {
    staff.needs(Role::Auditor)?;
    let lines = trails::lines(&admin.control, &chain, segment, range.from).await?;
    let content_type = HeaderValue::from_static("application/jsonl");
    Ok(([(header::CONTENT_TYPE, content_type)], lines).into_response())
}
