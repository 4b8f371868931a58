//! `weir.toml`, typed. Unknown keys are refused; all problems are reported at once, each with its place.

mod read;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use weir_connections::ConnectionConfig;
use weir_plugin_host::PluginConfig;

pub use read::{check, load, read};

#[derive(Clone, Debug)]
pub struct Config {
    pub folders: Folders,
    pub http: Http,
    pub limits: Limits,
    pub log: Log,
    pub connections: BTreeMap<String, ConnectionConfig>,
    pub plugins: BTreeMap<String, PluginConfig>,
    /// The folder of the file: what relative paths of connections start from.
    pub base: PathBuf,
}

/// `[folders]`, relative to the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Folders {
    /// Contract files: `*.yaml`, `*.yml`, `*.json`.
    pub contracts: PathBuf,
    /// Plugins: `*.wasm`.
    pub plugins: PathBuf,
    /// Recorded shapes and the key that seals cursors.
    pub state: PathBuf,
    /// Compiled plugins; `plugins` in the state folder by default. Gateways of one user may share it.
    pub cache: Option<PathBuf>,
}

impl Default for Folders {
    fn default() -> Self {
        Self { contracts: "contracts".into(), plugins: "plugins".into(), state: ".weir".into(), cache: None }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Without it `weir serve` speaks stdio when its stdin is not a terminal.
    pub listen: Option<SocketAddr>,
    /// Further `Host` values to accept, beside loopback names and the listen address.
    pub hosts: Vec<String>,
    /// Origins a browser may call from, beside loopback ones.
    pub origins: Vec<String>,
    /// The URL clients use, where a proxy stands in front.
    pub public_url: Option<String>,
    pub body_max_bytes: usize,
    /// Connections in all; further ones wait.
    pub connections_max: usize,
    /// Tools in one page of `tools/list`.
    pub page_size: usize,
    /// How long clients may keep a listing.
    pub list_ttl_ms: u64,
    /// Legacy sessions in all.
    pub sessions_max: usize,
    pub session_idle_s: u64,
    /// Open notification streams in all.
    pub streams_max: usize,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            public_url: None,
            body_max_bytes: 4 << 20,
            connections_max: 10_000,
            page_size: 100,
            list_ttl_ms: 30_000,
            sessions_max: 100_000,
            session_idle_s: 1800,
            streams_max: 1024,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Calls running at once, over all tools.
    pub in_flight_max: usize,
    /// The bound on one call where its tool sets none.
    pub timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_flight_max: 512, timeout_ms: 30_000 }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub format: LogFormat,
    /// As in `RUST_LOG`.
    pub filter: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Pretty,
    Json,
}

impl Config {
    /// Without a file: no contracts and no connections, plugins and state in the working folder.
    pub fn bare(base: &Path) -> Self {
        read("(defaults)", "", base).expect("the defaults are valid")
    }
}
