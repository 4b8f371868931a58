//! Versions that are served in addition to the live ones, and the agents that are pinned to them.

use axum::{Json, extract::State as Shared, http::StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::versions::{self, VersionsView},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LastDay {
    /// A day, which lasts until midnight UTC, a time in RFC 3339, or `now`. Null: until an operator ends it.
    sunset: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PinnedVersion {
    /// The major version of the agent.
    major: u32,
}

/// The versions that are served in addition to live ones, and the agents that are pinned. Role: viewer.
#[utoipa::path(get, path = "/v1/versions", responses(
    (status = 200, body = VersionsView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<VersionsView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(versions::list(&admin.control).await?))
}

/// Moves the last day of a version that is served in addition to the live one. Role: operator.
#[utoipa::path(put, path = "/v1/versions/{contract}/{major}", request_body = LastDay,
    params(("contract" = String, Path, description = "the contract's name"),
        ("major" = u32, Path, description = "the major version")),
    responses((status = 204), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
        (status = 415, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn set_sunset(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((contract, major)): PathParams<(String, u32)>,
    JsonBody(last): JsonBody<LastDay>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    let sunset = last.sunset.as_deref();
    versions::set_sunset(&admin.control, &contract, major, sunset, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pins an agent to a major version of a contract: it keeps that version, whatever becomes live. Role: operator.
#[utoipa::path(put, path = "/v1/pins/{agent}/{contract}", request_body = PinnedVersion,
    params(("agent" = String, Path, description = "who calls"),
        ("contract" = String, Path, description = "the contract's name")),
    responses((status = 204), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 409, body = AdminProblem),
        (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem),
        (status = 503, body = AdminProblem)))]
pub(super) async fn pin(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((agent, contract)): PathParams<(String, String)>,
    JsonBody(pinned): JsonBody<PinnedVersion>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    let by = staff.by();
    versions::pin(&admin.control, &agent, &contract, pinned.major, &by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives an agent the live version of a contract. Role: operator.
#[utoipa::path(delete, path = "/v1/pins/{agent}/{contract}",
    params(("agent" = String, Path, description = "who calls"),
        ("contract" = String, Path, description = "the contract's name")),
    responses((status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn unpin(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((agent, contract)): PathParams<(String, String)>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    versions::unpin(&admin.control, &agent, &contract, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
