//! `/v1/policy`: the policies in force, their Cedar schema, and a table of cases.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Answer, Ask, Shared,
    problem::{AdminProblem, JsonBody},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::policies::{self, PolicyCase, PolicyCaseResult, PolicyStatus},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyCases {
    cases: Vec<PolicyCase>,
}

/// The Cedar schema, as a file for editors and for `cedar`.
#[derive(Serialize, ToSchema)]
pub(super) struct PolicySchema {
    schema: String,
}

/// Returns the policies in force, and the problems of the files of their folder. Role: viewer.
#[utoipa::path(get, path = "/v1/policy", responses(
    (status = 200, body = PolicyStatus), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn show_policy(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<PolicyStatus>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(policies::status(&admin.control)))
}

/// Returns the Cedar schema of the contracts that are served. Role: viewer.
#[utoipa::path(get, path = "/v1/policy/schema", responses(
    (status = 200, body = PolicySchema), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn policy_schema(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<PolicySchema>> {
    staff.needs(Role::Viewer)?;
    let schema = policies::schema(&admin.control);
    Ok(Json(PolicySchema { schema }))
}

/// Returns the decision of the policies in force on each case. No tool is called. Role: viewer.
#[utoipa::path(post, path = "/v1/policy/test", request_body = PolicyCases, responses(
    (status = 200, body = Vec<PolicyCaseResult>), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem)))]
pub(super) async fn test_policy(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(table): JsonBody<PolicyCases>,
) -> Answer<Json<Vec<PolicyCaseResult>>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(policies::test(&admin.control, &table.cases)?))
}
