//! What an operator writes under `[plugins.NAME]` of `weir.toml`, and the host's own bounds.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The watched folder of `.wasm` files.
    pub plugins: PathBuf,
    /// Where compiled plugins are cached; 0700.
    pub cache: PathBuf,
    /// By plugin name.
    pub plugin: BTreeMap<String, PluginConfig>,
    /// Instances in all.
    pub instances_max: usize,
    /// Bytes of parked instances in all.
    pub parked_bytes_max: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginConfig {
    /// Connection name → what the plugin may do with it. Nothing is granted by default.
    pub grants: BTreeMap<String, Grant>,
    /// sha256 of the file, hex; any other file is refused.
    pub sha256: Option<String>,
    pub isolation: Option<Isolation>,
    pub memory_max_mb: Option<u32>,
    pub cpu_max_ms: Option<u64>,
    pub in_flight_max: Option<usize>,
    pub host_calls_max: Option<u32>,
    pub result_max_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    Read,
    /// Reading too.
    Write,
}

/// Who may share one instance over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    Call,
    #[default]
    Tenant,
    Shared,
}
