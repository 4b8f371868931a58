//! The configuration as it is in effect. What may hold a secret is named, not shown.

use std::collections::BTreeMap;

use axum::{Json, extract::State as Shared};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Answer, Ask, Refusal, staff::Staff};
use crate::control::gate::Role;

/// The effective configuration, without secrets: of connections their names and what plugins may do with them. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/config", responses(
    (status = 200, body = Object), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn show(Shared(admin): Ask, staff: Staff) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    let config = admin.gateway.config();
    let grants = |settings: &weir_plugin_host::PluginConfig| {
        let word = |grant: &weir_plugin_host::Grant| grant.word().to_owned();
        settings
            .grants
            .iter()
            .map(|(name, grant)| (name.clone(), word(grant)))
            .collect::<BTreeMap<_, _>>()
    };
    let plugins: BTreeMap<&str, Value> = config
        .plugins
        .iter()
        .map(|(name, settings)| (name.as_str(), json!({ "grants": grants(settings) })))
        .collect();
    let mut shown = config.sections();
    shown.insert(
        "connections".to_owned(),
        json!(config.connections.keys().collect::<Vec<_>>()),
    );
    shown.insert("plugins".to_owned(), json!(plugins));
    shown.insert("views".to_owned(), json!(config.views));
    shown.insert(
        "upstreams".to_owned(),
        json!(config.upstreams.keys().collect::<Vec<_>>()),
    );
    Ok(Json(shown.into()))
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
        Refusal::problems(
            "the configuration is refused, and nothing was changed",
            &problems,
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
