//! `weir.toml`, typed. Unknown keys are refused; all problems are reported at once, each with its place.

pub mod access;
mod compiled;
mod fault_path;
mod issuers;
mod kept;
mod ledger_place;
mod places;
mod plugins;
mod read;
mod sign_in;
mod state_store;
pub mod traces;
mod words;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, Serializer};
use weir_connections::ConnectionConfig;
use weir_plugin_host::{INSTANCES_MAX, PluginConfig};
use weir_policy::DefaultDecision;
use weir_schema::client::ClientProfile;
use weir_upstream::UpstreamConfig;

pub use issuers::{ClaimGrant, EVERY_CONTRACT, IssuerConfig, is_address};
pub use ledger_place::LedgerPlace;
pub use places::{ConfigLines, DEFAULTS};
pub use read::{check, load, read};
pub use sign_in::AdminOidc;
pub use state_store::StateStore;
pub use traces::TraceConfig;

/// A parsed and checked configuration. Each field is a section of `weir.toml`.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    pub folders: FoldersConfig,
    pub state: StateStore,
    pub http: HttpConfig,
    pub identity: IdentityConfig,
    pub admin: AdminConfig,
    pub audit: AuditConfig,
    pub contracts: ContractsConfig,
    pub metrics: MetricsConfig,
    pub traces: TraceConfig,
    pub limits: LimitsConfig,
    pub log: LogConfig,
    pub connections: BTreeMap<String, ConnectionConfig>,
    pub plugins: BTreeMap<String, PluginConfig>,
    /// Other MCP servers whose tools are served.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// The signers that plugins may have.
    pub trust: BTreeMap<String, TrustConfig>,
    pub policy: PolicyConfig,
    /// Parts of the catalogue with their own endpoint.
    pub views: BTreeMap<String, ViewConfig>,
    /// The folder of the file, from which relative paths of connections and upstreams start.
    pub base: PathBuf,
    /// The places of its keys, for problems that are found later.
    pub places: ConfigLines,
}

/// `[folders]`, relative to the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FoldersConfig {
    /// Contract files: `*.yaml`, `*.yml`, `*.json`.
    #[serde(serialize_with = "show_path")]
    pub contracts: PathBuf,
    /// Plugins: `*.wasm`.
    #[serde(serialize_with = "show_path")]
    pub plugins: PathBuf,
    /// The folder of the state: the database, builds, the audit trail and caches.
    #[serde(serialize_with = "show_path")]
    pub state: PathBuf,
    /// The folder of compiled plugins; see [`GatewayConfig::compiled_folder`]. Gateways of one user may share it.
    #[serde(serialize_with = "show_optional_path")]
    pub cache: Option<PathBuf>,
}

impl Default for FoldersConfig {
    fn default() -> Self {
        Self {
            contracts: "contracts".into(),
            plugins: "plugins".into(),
            state: ".weir".into(),
            cache: None,
        }
    }
}

/// Writes a path in readable form: JSON cannot express one that is not UTF-8.
fn show_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

fn show_optional_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(to)
}

/// The section `[trust.NAME]`, with a public key that `[plugins.NAME] signed_by` may name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrustConfig {
    /// The public key, as minisign writes it: `RW…`.
    pub minisign: String,
}

/// The section `[policy]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// The folder of policies: `*.cedar`, relative to the file.
    #[serde(serialize_with = "show_path")]
    pub folder: PathBuf,
    pub mode: PolicyMode,
    /// The decision if no policy applies.
    pub default: PolicyDefault,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            folder: "policies".into(),
            mode: PolicyMode::default(),
            default: PolicyDefault::default(),
        }
    }
}

/// The effect of a denial by policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    #[default]
    Enforce,
    /// The denial is recorded, and the call continues.
    Audit,
}

/// The decision if no policy applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDefault {
    /// Calls are permitted as far as keys and tokens allow.
    #[default]
    Permit,
    Deny,
}

impl From<PolicyDefault> for DefaultDecision {
    fn from(default: PolicyDefault) -> Self {
        match default {
            PolicyDefault::Permit => Self::Permit,
            PolicyDefault::Deny => Self::Deny,
        }
    }
}

/// The section `[views.NAME]`, for tools that are served at `/mcp/view/NAME`. A tool must meet all conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewConfig {
    /// The contracts of its tools; an empty list means every contract.
    pub contracts: Vec<String>,
    /// The names of its tools, where `*` matches any characters and `?` one; an empty list means every name.
    pub tools: Vec<String>,
    /// Whether the view has only tools that are declared as read-only.
    pub read_only: bool,
    /// Whether it lists only two tools: one finds its tools, and one calls them.
    pub search: bool,
    /// The clients for which its schemas are written; by default any that reads JSON Schema.
    pub profile: Option<ClientProfile>,
    /// The names of tools, as in `tools`, that clients of the profile `anthropic` show a model immediately, instead of letting it
    /// search for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always_load: Vec<String>,
    /// Whether results contain the receipt of their call; by default those of a view without a profile do, unless `[audit]`
    /// disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<bool>,
}

/// The section `[http]`: the listener for agents, and the bounds on its clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// The address; without it, `weir serve` uses stdio if its stdin is not a terminal.
    pub listen: Option<SocketAddr>,
    /// Further `Host` values to accept, in addition to loopback names and the listen address.
    pub hosts: Vec<String>,
    /// Origins from which a browser may call, in addition to loopback ones.
    pub origins: Vec<String>,
    /// The URL that clients use behind a proxy.
    pub public_url: Option<String>,
    /// The text that ChatGPT's app registry reads at `/.well-known/openai-apps-challenge` to verify who owns the server.
    pub openai_apps_challenge: Option<String>,
    pub body_max_bytes: usize,
    /// The total number of connections: beyond it, an idle one gives way to a new one, or the new one waits.
    pub connections_max: usize,
    /// Connections from one address without a valid key; beyond it, the oldest is closed.
    pub address_connections_max: usize,
    /// Tools in one page of `tools/list`. Half of the tested clients read only the first page.
    pub page_size: usize,
    /// The time for which clients may keep a listing.
    pub list_ttl_ms: u64,
    /// The total number of legacy sessions.
    pub sessions_max: usize,
    pub session_idle_s: u64,
    /// How long an ending process keeps serving while it reports that it is not ready, so that a load balancer sends calls
    /// elsewhere.
    pub drain_s: u64,
    /// The total number of open notification streams.
    pub streams_max: usize,
    /// Whether tools are also served by plain HTTP, below `/rest/`.
    pub rest: bool,
    /// Whether tools are also served as pages with forms for people, below `/forms/`.
    pub forms: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            public_url: None,
            openai_apps_challenge: None,
            body_max_bytes: 4 << 20,
            connections_max: 10_000,
            address_connections_max: 1000,
            page_size: 1000,
            list_ttl_ms: 30_000,
            sessions_max: 100_000,
            session_idle_s: 1800,
            drain_s: 0,
            streams_max: 1024,
            rest: true,
            forms: false,
        }
    }
}

impl HttpConfig {
    /// Returns the base URL for clients, if one is configured, without the endpoint that some operators append.
    pub fn public_base(&self) -> Option<&str> {
        let url = self.public_url.as_deref()?.trim_end_matches('/');
        Some(url.strip_suffix("/mcp").unwrap_or(url))
    }
}

/// The section `[identity]`: which callers are accepted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentityConfig {
    /// Whether every caller needs a key, even before the first one is made. Addresses other than loopback require this. If it is
    /// false, keys are required once the first one has been made.
    pub required: bool,
    /// The issuers whose access tokens (JWTs) are accepted in addition to keys. With an issuer, every caller needs a key or a
    /// token.
    pub issuers: Vec<IssuerConfig>,
    /// Whether tokens of the issuers must be bound to a key of their holder (DPoP). This does not apply to Weir's own keys.
    pub dpop_bound_access_tokens_required: bool,
}

impl IdentityConfig {
    /// Returns `true` if every caller needs a credential, whether or not there are keys.
    pub fn needs_credential(&self) -> bool {
        self.required || !self.issuers.is_empty()
    }
}

/// The section `[admin]`: the listener of the admin API and the console.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminConfig {
    /// The address of the admin API of `weir serve`; port 0 takes a free one. `None`: [`ADMIN_LISTEN`], or a free port if that is
    /// taken. The address is written to `admin.url` in the state folder, where the command line finds it.
    pub listen: Option<SocketAddr>,
    /// Whether there is an admin API.
    pub enabled: bool,
    /// Further `Host` values to accept there, in addition to loopback names and the listen address.
    pub hosts: Vec<String>,
    /// The provider that signs people in to the console, in addition to admin keys.
    pub oidc: Option<AdminOidc>,
}

/// The default address of the admin API.
pub const ADMIN_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8485);

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            listen: None,
            enabled: true,
            hosts: Vec::new(),
            oidc: None,
        }
    }
}

/// The section `[contracts]`: what is kept and checked of live contracts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContractsConfig {
    /// The time between two descriptions of the sources of live contracts, which detect changes there; 0 disables them.
    pub drift_interval_s: u64,
    /// The days for which profiles of calls are kept (no texts, no free numbers), so that a change is reported with the agents
    /// whose calls it would have refused; 0 keeps nothing.
    pub impact_days: u32,
}

impl Default for ContractsConfig {
    fn default() -> Self {
        Self {
            drift_interval_s: 300,
            impact_days: 0,
        }
    }
}

/// The section `[audit]`, for the trail in `audit/` of the state folder.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// When records are synced so that they survive a crash of the machine; they survive a crash of the process as soon as a call
    /// is answered.
    pub fsync: FsyncSetting,
    /// The time after the answer within which a record is synced, with `fsync = "interval"`.
    pub fsync_interval_ms: u64,
    /// A new segment file is started after this many bytes.
    pub segment_max_bytes: u64,
    /// Segments that ended longer ago are removed; 0 keeps them.
    pub keep_days: u64,
    /// The oldest segments are removed when all together exceed this; 0 keeps them.
    pub keep_max_bytes: u64,
    /// Whether MCP results contain the receipt of their call. A view may override this.
    pub receipts: bool,
    /// What must be in a shared database before it happens.
    pub replicate: AuditReplication,
    /// `s3://BUCKET/PREFIX`: the trail is copied there, and no segment is removed before.
    pub copies: Option<String>,
    /// The server of the bucket, if it is not AWS.
    pub copies_endpoint: Option<String>,
    pub copies_region: Option<String>,
}

/// Which audit records reach another node before a call continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditReplication {
    #[default]
    Off,
    /// The record of a write, before it runs.
    Writes,
}

/// When the system is asked to sync the audit trail to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FsyncSetting {
    #[default]
    Interval,
    /// A sync comes before each call is answered.
    Each,
    /// The system decides when to sync.
    Off,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            fsync: FsyncSetting::Interval,
            fsync_interval_ms: 200,
            segment_max_bytes: 64 << 20,
            keep_days: 90,
            keep_max_bytes: 8 << 30,
            receipts: true,
            replicate: AuditReplication::Off,
            copies: None,
            copies_endpoint: None,
            copies_region: None,
        }
    }
}

/// The section `[metrics]`, for `/metrics` on the admin listener and on that of `[http]`.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// The bearer token that a scraper must send: `env:NAME` or `file:path`. Without it, only loopback may scrape.
    #[serde(skip_serializing)]
    pub token: Option<String>,
    /// The number of tools with their own series; the others share one.
    pub tools_max: usize,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self {
            token: None,
            tools_max: 500,
        }
    }
}

/// Leaves out the token, whether it is a reference or not.
impl std::fmt::Debug for MetricsConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Metrics")
            .field("tools_max", &self.tools_max)
            .finish_non_exhaustive()
    }
}

/// The section `[limits]`: bounds on calls, over all tools and for each agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// The number of concurrent calls, over all tools.
    pub in_flight_max: usize,
    /// The number of live plugin instances, over all plugins: each holds the memory of one call.
    pub instances_max: usize,
    /// The time limit of a call whose tool sets none.
    pub timeout_ms: u64,
    /// The number of kept tasks, including ended ones: calls that continued after their request was answered. With 0, no call
    /// becomes a task.
    pub tasks_max: usize,
    /// The rate of one agent, over all methods and tools: `1000/s`, `600/min`, or `off`.
    pub agent_rate: AgentRate,
    /// Where the nodes that share a state count rates together: by default, in the database with the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerPlace>,
    /// The calls of one agent in a day, UTC, if its key does not set them; 0 means no limit.
    pub agent_quota_day: u32,
    /// Calls of one agent in a month, UTC, in the same way.
    pub agent_quota_month: u32,
    /// The total bytes of bodies that are being read and of answers that clients have not read.
    pub held_max_bytes: usize,
    /// The same for one agent with a key.
    pub agent_held_max_bytes: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            in_flight_max: 512,
            instances_max: INSTANCES_MAX,
            timeout_ms: 30_000,
            tasks_max: 1024,
            agent_rate: AgentRate(Some((1000, 1))),
            ledger: None,
            agent_quota_day: 0,
            agent_quota_month: 0,
            held_max_bytes: 256 << 20,
            agent_held_max_bytes: 64 << 20,
        }
    }
}

/// Calls, and the seconds over which they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentRate(pub Option<(u32, u32)>);

impl From<AgentRate> for String {
    fn from(rate: AgentRate) -> Self {
        rate.0.map_or_else(|| "off".to_owned(), rate_words)
    }
}

/// Returns a rate in the form used in configurations and contracts.
pub fn rate_words((calls, seconds): (u32, u32)) -> String {
    match seconds {
        1 => format!("{calls}/s"),
        60 => format!("{calls}/min"),
        3600 => format!("{calls}/hour"),
        _ => format!("{calls}/day"),
    }
}

/// The message about a wrong rate, which `words` reads again.
const RATE: &str = "must be a rate";

impl TryFrom<String> for AgentRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let rate = weir_contracts::form::rate(&text);
        rate.map(|rate| Self(Some(rate)))
            .ok_or_else(|| RATE.to_owned())
    }
}

/// The section `[log]`: the form and the filter of the log.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    pub format: LogFormat,
    /// The filter, as in `RUST_LOG`.
    pub filter: Option<String>,
}

/// The form of the log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Pretty,
    Json,
}

impl GatewayConfig {
    /// Returns the effective sections that contain no secret.
    pub fn sections(&self) -> serde_json::Map<String, serde_json::Value> {
        let value = |section: serde_json::Result<serde_json::Value>| section.expect("plain values");
        use serde_json::to_value;
        // There is no `..` here: a new section does not compile until it is decided whether it is shown, and compared by a
        // reload. The omitted sections consist of named entries, which a reload compares one by one.
        let Self {
            folders,
            state,
            http,
            identity,
            admin,
            audit,
            contracts,
            metrics,
            traces,
            limits,
            log,
            policy,
            connections: _,
            plugins: _,
            upstreams: _,
            trust: _,
            views: _,
            base: _,
            places: _,
        } = self;
        [
            ("folders", to_value(folders)),
            ("state", to_value(state)),
            ("http", to_value(http)),
            ("identity", to_value(identity)),
            ("admin", to_value(admin)),
            ("audit", to_value(audit)),
            ("contracts", to_value(contracts)),
            ("metrics", to_value(metrics)),
            ("traces", to_value(traces)),
            ("limits", to_value(limits)),
            ("log", to_value(log)),
            ("policy", to_value(policy)),
        ]
        .map(|(name, section)| (name.to_owned(), value(section)))
        .into_iter()
        .collect()
    }

    /// Returns the configuration without a file: no contracts and no connections, plugins and state in the working
    /// folder.
    pub fn bare(base: &Path) -> Self {
        read(DEFAULTS, "", base).expect("the defaults are valid")
    }
}
