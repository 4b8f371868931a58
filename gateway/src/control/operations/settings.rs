//! The configuration as it is in effect. What may hold a secret is named, not shown.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::control::Control;

/// Returns the effective configuration, without secrets: of connections their names and what plugins may do with them.
pub(crate) fn show(control: &Control) -> Value {
    let config = control.gateway().config();
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
    shown.into()
}
