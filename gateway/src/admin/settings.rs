//! The effective configuration. Values that may be secret are named, but not shown.

use axum::{Json, extract::State as Shared};
use serde_json::Value;

use super::{AdminProblem, Answer, Ask, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::settings::{self, ReloadedSettings},
};

/// The effective configuration, without secrets: for connections, only their names and what plugins may do with them. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/config", responses(
    (status = 200, body = Object), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn show(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(settings::show(&admin.control)))
}

/// Reads the configuration again, like SIGHUP, and applies everything that may change while serving, or nothing if there is any
/// problem. Role: operator.
#[utoipa::path(post, path = "/v1/config/reload", responses(
    (status = 200, body = ReloadedSettings), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 422, body = AdminProblem)))]
pub(super) async fn reload(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<ReloadedSettings>> {
    staff.needs(Role::Operator)?;
    let by = staff.by();
    let reloaded = settings::reload(&admin.reload, staff.acting(&by)).await?;
    Ok(Json(reloaded))
}
