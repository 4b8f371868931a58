//! The effective configuration, and its reload. Values that may be secret are named, but not shown.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use weir_plugin_host::LoadReport;

use super::{ActingAdmin, OperationError, OperationResult};
use crate::control::{ControlPlane, gate::Role, reload::ConfigReloader};

/// The result of a reload.
#[derive(Serialize, ToSchema)]
#[schema(as = Reloaded)]
pub struct ReloadedSettings {
    /// Places in the configuration that are in effect now, such as `/limits/timeout_ms`.
    pub changed: Vec<String>,
    /// Places that changed in the file and take effect at the next start of the gateway.
    pub needs_restart: Vec<String>,
    /// Plugins that the reload loaded or refused.
    pub plugins: Vec<String>,
}

/// Returns the effective configuration, without secrets: for connections, only their names and what plugins may do with them.
pub fn show(control: &ControlPlane) -> Value {
    let config = control.gateway().config();
    let grants = |settings: &weir_plugin_host::PluginConfig| {
        let word = |grant: &weir_plugin_host::ConnectionGrant| grant.word().to_owned();
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
    shown.into()
}

/// Reads the configuration again, and applies everything that may change while serving, or nothing if there is any problem.
pub async fn reload(
    reload: &ConfigReloader,
    admin: ActingAdmin<'_>,
) -> OperationResult<ReloadedSettings> {
    admin.needs(Role::Operator)?;
    let taken = reload.run(admin.by).await.map_err(|problems| {
        OperationError::problems(
            "the configuration is refused, and nothing was changed",
            problems,
        )
    })?;
    let plugin = |report: &LoadReport| match &report.result {
        Ok(plugin) => format!("{}: generation {}", report.file, plugin.generation),
        Err(why) => format!("{}: {why}", report.file),
    };
    Ok(ReloadedSettings {
        changed: taken.changed,
        needs_restart: taken.needs_restart,
        plugins: taken.plugins.iter().map(plugin).collect(),
    })
}
