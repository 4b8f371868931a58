//! Keys of the users of this API.

use axum::{Json, extract::State as Shared, http::StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;
use weir_state::JoinedRoles;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::admins::{self, AdminView, MadeAdmin},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAdmin {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, `@`, `:`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    name: String,
    role: Role,
    /// Whether they may also decide about writes that wait for a person.
    #[serde(default)]
    approves: bool,
}

/// All admin keys, revoked ones too. Role: operator.
#[utoipa::path(get, path = "/v1/admins", responses(
    (status = 200, body = Vec<AdminView>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<AdminView>>> {
    staff.needs(Role::Operator)?;
    Ok(Json(admins::list(&admin.control).await?))
}

/// Makes an admin key. Role: operator.
#[utoipa::path(post, path = "/v1/admins", request_body = NewAdmin, responses(
    (status = 201, body = MadeAdmin), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem)))]
pub(super) async fn create(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(new): JsonBody<NewAdmin>,
) -> Answer<(StatusCode, Json<MadeAdmin>)> {
    staff.needs(Role::Operator)?;
    let approver = new.approves.then_some(Role::Approver);
    let roles = JoinedRoles::join([new.role].into_iter().chain(approver)).expect("one at least");
    let made = admins::create(&admin.control, new.name, roles, &staff.by()).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes an admin key: the next request with it is refused. Role: operator.
#[utoipa::path(delete, path = "/v1/admins/{id}", params(("id" = String, Path, description = "the key's id")), responses(
    (status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 404, body = AdminProblem),
    (status = 409, body = AdminProblem, description = "it is the last key of an operator")))]
pub(super) async fn revoke(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    admins::revoke(&admin.control, &id, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
