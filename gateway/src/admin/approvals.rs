//! Writes that wait for a person.

use axum::{Json, extract::State as Shared};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams},
    staff::AdminPrincipal,
};
use crate::control::operations::approvals::{self, PlanView};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgreedPlan {
    /// The fingerprint of the plan as it was read.
    fingerprint: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectedPlan {
    /// The reason, in a sentence that the agent reads.
    reason: Option<String>,
}

/// Writes that wait for a person, then those of the last day that no longer wait, newest first. Role: approver or operator.
#[utoipa::path(get, path = "/v1/approvals", responses((status = 200, body = Vec<PlanView>),
    (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<Vec<PlanView>>> {
    staff.needs_approver()?;
    Ok(Json(approvals::list(&admin.control).await?))
}

/// Returns a plan with the change that it would make. Role: approver or operator.
#[utoipa::path(get, path = "/v1/approvals/{id}", params(("id" = String, Path, description = "the plan's id")), responses(
    (status = 200, body = PlanView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 404, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<Json<PlanView>> {
    staff.needs_approver()?;
    Ok(Json(approvals::show(&admin.control, &id).await?))
}

/// Allows the agent to make the write, once and before the plan expires. Role: approver or operator.
#[utoipa::path(post, path = "/v1/approvals/{id}/approve", request_body = AgreedPlan,
    params(("id" = String, Path, description = "the plan's id")),
    responses((status = 200, body = PlanView), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem, description = "another role is needed, or the admin asked for the write"),
        (status = 404, body = AdminProblem), (status = 409, body = AdminProblem), (status = 413, body = AdminProblem),
        (status = 415, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn approve(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
    JsonBody(agreed): JsonBody<AgreedPlan>,
) -> Answer<Json<PlanView>> {
    staff.needs_approver()?;
    let by = staff.by();
    let approved = approvals::approve(&admin.control, &id, &agreed.fingerprint, staff.acting(&by));
    Ok(Json(approved.await?))
}

/// Rejects the write; the agent reads the reason. Role: approver or operator.
#[utoipa::path(post, path = "/v1/approvals/{id}/reject", request_body = RejectedPlan,
    params(("id" = String, Path, description = "the plan's id")),
    responses((status = 200, body = PlanView), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 409, body = AdminProblem),
        (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem),
        (status = 503, body = AdminProblem)))]
pub(super) async fn reject(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
    JsonBody(rejected): JsonBody<RejectedPlan>,
) -> Answer<Json<PlanView>> {
    staff.needs_approver()?;
    let reason = rejected.reason.as_deref();
    let rejected = approvals::reject(&admin.control, &id, reason, &staff.by()).await?;
    Ok(Json(rejected))
}
