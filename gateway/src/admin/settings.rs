//! The configuration as it is in effect. What may hold a secret is named, not shown.

use std::collections::BTreeMap;

use axum::{Json, extract::State as Shared};
use serde_json::{Value, json};

use super::{Answer, Ask, Refusal, staff::Staff};
use crate::registry::gate::Role;

/// The effective configuration, without secrets: of connections their names and what plugins may do with them. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/config", responses(
    (status = 200, body = Object), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn show(Shared(admin): Ask, staff: Staff) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    let config = admin.gateway.config();
    let grants = |settings: &weir_plugin_host::PluginConfig| {
        let word = |grant: &weir_plugin_host::Grant| format!("{grant:?}").to_lowercase();
        settings.grants.iter().map(|(name, grant)| (name.clone(), word(grant))).collect::<BTreeMap<_, _>>()
    };
    let plugins: BTreeMap<&str, Value> =
        config.plugins.iter().map(|(name, settings)| (name.as_str(), json!({ "grants": grants(settings) }))).collect();
    Ok(Json(json!({
        "folders": config.folders,
        "http": config.http,
        "identity": config.identity,
        "admin": config.admin,
        "audit": config.audit,
        "metrics": config.metrics,
        "limits": config.limits,
        "log": config.log,
        "connections": config.connections.keys().collect::<Vec<_>>(),
        "plugins": plugins,
    })))
}
