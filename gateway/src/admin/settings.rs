//! The configuration as it is in effect. What may hold a secret is named, not shown.

use axum::{Json, extract::State as Shared};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{Answer, Ask, Refusal, staff::Staff};
use crate::control::{
    gate::Role,
    operations::{OperationError, settings},
};

/// The effective configuration, without secrets: of connections their names and what plugins may do with them. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/config", responses(
    (status = 200, body = Object), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn show(Shared(admin): Ask, staff: Staff) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(settings::show(&admin.control)))
}

/// What a reload did.
#[derive(Serialize, ToSchema)]
pub(super) struct Reloaded {
    /// Places in the configuration that are in effect now, such as `/limits/timeout_ms`.
    changed: Vec<String>,
    /// Places that changed in the file and take effect when the gateway starts again.
    needs_restart: Vec<String>,
    /// Plugins that were loaded or refused by it.
    plugins: Vec<String>,
}

/// Reads the configuration again, as SIGHUP does: all of what may change while serving, or, where anything is wrong,
/// nothing. Role: operator.
#[utoipa::path(post, path = "/v1/config/reload", responses(
    (status = 200, body = Reloaded), (status = 401, body = Refusal), (status = 403, body = Refusal),
    (status = 422, body = Refusal)))]
pub(super) async fn reload(Shared(admin): Ask, staff: Staff) -> Answer<Json<Reloaded>> {
    staff.needs(Role::Operator)?;
    let taken = admin.reload.run(&staff.by()).await.map_err(|problems| {
        OperationError::problems(
            "the configuration is refused, and nothing was changed",
            problems,
        )
    })?;
    let plugin = |report: &weir_plugin_host::LoadReport| match &report.result {
        Ok(plugin) => format!("{}: generation {}", report.file, plugin.generation),
        Err(why) => format!("{}: {why}", report.file),
    };
    let plugins = taken.plugins.iter().map(plugin).collect();
    Ok(Json(Reloaded {
        changed: taken.changed,
        needs_restart: taken.needs_restart,
        plugins,
    }))
}
