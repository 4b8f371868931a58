//! Holds what an operator writes under `[plugins.NAME]` of `weir.toml`, and the host's own bounds.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};
use weir_files::embedded::EmbeddedFile;
use weir_state::GatewayState;

use crate::engine::{EngineSize, LARGE_INSTANCES_MAX, MEMORY_MAX};

/// Components that travel inside the program: a plugin's name, the sha256 of its file in hex, and the file. A plugin named
/// so provides the adapter of that name. The digest is not checked: with a cached compilation the file is never read.
pub type BuiltIn = &'static [(&'static str, &'static str, EmbeddedFile)];

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The watched folder of `.wasm` files.
    pub plugins: PathBuf,
    /// The plugins inside the program, which serve if the folder has no other for them.
    pub built_in: BuiltIn,
    /// The folder of compiled plugins; its mode is 0700.
    pub cache: PathBuf,
    /// The configuration of each plugin, by its name.
    pub plugin: BTreeMap<String, PluginConfig>,
    /// The state, with the record of builds: those that were accepted, and those that are kept so that they can run again.
    pub state: Option<Arc<GatewayState>>,
    /// Which builds of plugins that may write wait until they are accepted.
    pub holds_builds: HeldBuilds,
    /// The folder for indexes of large sources; without it no plugin has any.
    pub indexes: Option<PathBuf>,
    /// How native libraries are run; `None` means that native plugins are refused.
    pub libraries: Option<LibraryConfig>,
    /// Instances in total.
    pub instances_max: usize,
    /// Bytes of parked instances in total.
    pub parked_bytes_max: usize,
}

/// Which new builds of plugins that may write wait until they are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBuilds {
    /// None does, and none is recorded.
    None,
    /// Those that appear while serving. What is in the folder at a start was put there by the operator.
    WhileServing,
    /// All builds, without recording any: for a command, which accepts nothing on behalf of an operator.
    All,
}

/// The settings for running native libraries.
#[derive(Clone, Debug)]
pub struct LibraryConfig {
    /// The folder for the checked copies; its mode is 0700.
    pub folder: PathBuf,
    /// The words of a command that does what [`crate::library::serve`] does: `--processor-ms`, `--memory-bytes`,
    /// `--sha256` and the path of the library follow.
    pub runner: Vec<OsString>,
}

/// The settings of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginConfig {
    /// Connection name → what the plugin may do with it. Nothing is granted by default.
    pub grants: BTreeMap<String, ConnectionGrant>,
    /// sha256, hex, of the builds that may run, `"…"` or a list; any other file is refused. Empty: any may.
    #[serde(deserialize_with = "digests")]
    pub sha256: Vec<String>,
    /// The plugin is this native library and no file of the plugins folder; `sha256` must name its build.
    pub native: Option<PathBuf>,
    /// No longer accepted as `true`; it is read so that the refusal can say what to write instead.
    pub in_process: Option<bool>,
    /// Names from `[trust]`: the file must be signed by one of these, or it is refused.
    pub signed_by: Vec<String>,
    /// The public keys of these names, filled in from the configuration: name → minisign's own form of a key.
    #[serde(skip)]
    pub trusted: BTreeMap<String, String>,
    /// The settings that the plugin's tools get. Of adapters, each collection has its own.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The contract that its tools are published as; by default one with the plugin's name.
    pub contract: Option<String>,
    /// The text in front of every tool's name, joined by `_`.
    pub prefix: Option<String>,
    /// The tools that are published, by the plugin's names for them; by default all.
    pub tools: Option<Vec<String>>,
    /// The limits of each of its tools, as a contract writes them.
    pub limits: ToolLimits,
    pub audit: ToolAudit,
    /// The tools whose calls a person approves, by the plugin's names for them.
    pub approval: Vec<String>,
    /// Whether the plugin is being developed: another build of it goes live at once, even if it may write, and whatever
    /// it changes about its tools.
    pub dev: bool,
    pub isolation: Option<PluginIsolation>,
    pub memory_max_mb: Option<u32>,
    pub cpu_max_ms: Option<u64>,
    pub in_flight_max: Option<usize>,
    pub host_calls_max: Option<u32>,
    pub result_max_bytes: Option<usize>,
    /// Room on disk for indexes of its sources; 0: none.
    pub index_max_mb: Option<u64>,
}

impl PluginConfig {
    /// Whether `sha256` lets the build run.
    pub fn allows(&self, digest: &str) -> bool {
        self.sha256.is_empty()
            || self
                .sha256
                .iter()
                .any(|allowed| allowed.trim().eq_ignore_ascii_case(digest))
    }
}

/// A list that is empty is refused: it would allow every build, and reads as if it allowed none.
fn digests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "the sha256 of a file, or a list of them that is not empty"
    )]
    enum DigestList {
        One(String),
        Several(Vec<String>),
    }
    match DigestList::deserialize(deserializer)? {
        DigestList::One(digest) => Ok(vec![digest]),
        DigestList::Several(digests) if digests.is_empty() => Err(D::Error::custom(
            "a list of builds that may run names at least one",
        )),
        DigestList::Several(digests) => Ok(digests),
    }
}

/// The bounds on each tool of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimits {
    /// `10/s`, `60/min`, per agent.
    pub rate: Option<String>,
    pub timeout_ms: Option<u64>,
}

/// What is recorded of the arguments of a plugin's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolAudit {
    /// Arguments that are recorded in clear; of all others a digest is.
    pub clear: Vec<String>,
}

/// What a plugin may do with a connection. Each grant includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionGrant {
    Read,
    /// Reading too.
    Write,
    /// Writing too, also by statements that the author of a contract wrote.
    Statements,
}

impl ConnectionGrant {
    /// Returns `true` if the plugin may change the source.
    pub fn may_write(self) -> bool {
        self != Self::Read
    }

    /// Returns the word that the configuration has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Statements => "statements",
        }
    }
}

/// The calls that may share one instance over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginIsolation {
    Call,
    #[default]
    Tenant,
    Shared,
}

/// A description may read a whole source, and no caller waits for it: it may use this many times the processor time of a call.
pub(crate) const DESCRIBE_TIMES: u32 = 5;

/// The bounds of one plugin: the configured ones, and the defaults for the rest.
#[derive(Clone, Debug)]
pub(crate) struct PluginLimits {
    /// Bytes, over all memories of one instance.
    pub(crate) memory_max: usize,
    /// Processor time of one call.
    pub(crate) cpu_max: Duration,
    pub(crate) in_flight_max: usize,
    pub(crate) tenant_in_flight_max: usize,
    /// Calls of one call into a source.
    pub(crate) host_calls_max: u32,
    pub(crate) result_max_bytes: usize,
    pub(crate) isolation: PluginIsolation,
    /// Bytes of all its indexes.
    pub(crate) index_max: u64,
}

/// Calls in flight of a plugin whose instances are large, whatever is configured: one plugin cannot take the instances
/// of all others.
const LARGE_IN_FLIGHT_MAX: usize = LARGE_INSTANCES_MAX / 2;

impl PluginLimits {
    pub(crate) fn new(config: &PluginConfig, size: EngineSize) -> Self {
        let (memory_mb, in_flight_most) = match size {
            EngineSize::Small => (64, usize::MAX),
            EngineSize::Large => (256, LARGE_IN_FLIGHT_MAX),
        };
        let memory_mb = config.memory_max_mb.unwrap_or(memory_mb);
        let in_flight_max = config.in_flight_max.unwrap_or(32).clamp(1, in_flight_most);
        Self {
            memory_max: (memory_mb as usize).saturating_mul(1 << 20).min(MEMORY_MAX),
            cpu_max: Duration::from_millis(config.cpu_max_ms.unwrap_or(2_000)),
            in_flight_max,
            tenant_in_flight_max: in_flight_max.div_ceil(2),
            host_calls_max: config.host_calls_max.unwrap_or(1_000),
            result_max_bytes: config.result_max_bytes.unwrap_or(8 << 20),
            isolation: config.isolation.unwrap_or_default(),
            index_max: config.index_max_mb.unwrap_or(1_024).saturating_mul(1 << 20),
        }
    }
}
