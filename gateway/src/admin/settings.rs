//! The configuration as it is in effect. What may hold a secret is named, not shown.

use axum::{Json, extract::State as Shared};
use serde_json::Value;

use super::{AdminProblem, Answer, Ask, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::settings::{self, ReloadedSettings},
};

/// The effective configuration, without secrets: of connections their names and what plugins may do with them. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/config", responses(
    (status = 200, body = Object), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn show(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(settings::show(&admin.control)))
}

/// Reads the configuration again, as SIGHUP does: all of what may change while serving, or, where anything is wrong,
/// nothing. Role: operator.
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
