//! The place of the state: a file of the state folder, or a PostgreSQL database that several gateways share.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_state::{GatewayState, ServerAddress, StateError};

use super::{AuditReplication, GatewayConfig};

/// The section `[state]`.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateStore {
    /// The database: `postgresql://…`, whose password may be a reference (`${env:NAME}`, `${file:path}`). Without it, the state
    /// is a file in the state folder.
    #[serde(skip_serializing)]
    pub url: Option<String>,
    /// How long agents are served with the last known state while the database cannot be reached.
    pub stale_max_s: u32,
}

impl Default for StateStore {
    fn default() -> Self {
        Self {
            url: None,
            stale_max_s: 300,
        }
    }
}

impl StateStore {
    /// Returns the time without the state after which agents are no longer served.
    pub fn stale_max(&self) -> Duration {
        Duration::from_secs(self.stale_max_s.into())
    }
}

/// Leaves out the URL, which may hold a password.
impl std::fmt::Debug for StateStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("StateStore");
        out.field("is_shared", &self.url.is_some())
            .field("stale_max_s", &self.stale_max_s)
            .finish_non_exhaustive()
    }
}

impl GatewayConfig {
    /// Returns the address of the database with the state, with its secrets filled in; `None` if the state is a file.
    pub fn state_address(&self) -> Result<Option<ServerAddress>, StateError> {
        let Some(url) = &self.state.url else {
            return Ok(None);
        };
        let resolved = weir_connections::config::resolve_url(url, &self.base);
        let address = resolved.and_then(|url| ServerAddress::parse(&url));
        address.map(Some).map_err(|why| StateError::Connect {
            address: "`[state] url`".to_owned(),
            why,
            is_away: false,
        })
    }

    /// Opens the state, or creates it.
    pub async fn open_state(&self) -> Result<GatewayState, StateError> {
        match self.state_address()? {
            Some(address) => GatewayState::connect(&address, &self.folders.state).await,
            None => GatewayState::open(&self.folders.state).await,
        }
    }

    /// Opens the state for a process that serves: without the database, from this machine's copy of it, if that is recent enough.
    pub async fn open_state_to_serve(&self) -> Result<GatewayState, StateError> {
        let folder = &self.folders.state;
        match self.state_address()? {
            Some(address) => {
                GatewayState::connect_to_serve(&address, folder, self.state.stale_max()).await
            }
            None => GatewayState::open(folder).await,
        }
    }

    /// Opens an existing state without changing it.
    pub async fn open_state_to_read(&self) -> Result<GatewayState, StateError> {
        match self.state_address()? {
            Some(address) => GatewayState::connect_to_read(&address, &self.folders.state).await,
            None => GatewayState::open_to_read(&self.folders.state).await,
        }
    }

    /// Returns `true` if there is a state to read.
    pub fn has_state(&self) -> bool {
        self.state.url.is_some() || self.folders.state.join(weir_state::FILE).exists()
    }
}

/// Returns the problems of the section: the place, the message and the hint.
pub(super) fn check(config: &GatewayConfig) -> Vec<(String, String, &'static str)> {
    let mut problems = Vec::new();
    if config.audit.replicate == AuditReplication::Writes && config.state.url.is_none() {
        problems.push((
            "/audit/replicate".to_owned(),
            "records go to the database of a shared state, and this state is a file".to_owned(),
            "leave it out, or set `[state] url`",
        ));
    }
    if let Some(url) = &config.state.url {
        let is_reference = url.starts_with("env:") || url.starts_with("file:");
        if !is_reference && !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
            problems.push((
                "/state/url".to_owned(),
                "must begin with postgresql://".to_owned(),
                "write it as \"postgresql://weir:${env:STATE_PASSWORD}@db.internal/weir\"",
            ));
        }
        if config.places.has("/folders/contracts") {
            problems.push((
                "/folders/contracts".to_owned(),
                "a gateway that shares its state reads no contract files: the folder of one machine would undo what another one published"
                    .to_owned(),
                "leave it out, and submit the files with `weir contracts apply DIR`",
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config;

    #[test]
    fn a_shared_state_takes_no_folder_of_contracts_and_shows_no_password() {
        let read = |text: &str| config::read("weir.toml", text, Path::new("."));
        let shared = "[state]\nurl = \"postgresql://weir:hunter2@db/weir\"\n";
        let config = read(shared).expect("valid");
        assert!(!format!("{config:?}").contains("hunter2"));
        let sections = serde_json::to_string(&config.sections()).expect("plain data");
        assert!(!sections.contains("hunter2"));
        let address = config.state_address().expect("read").expect("an address");
        assert_eq!(address.to_string(), "postgresql://weir@db:5432/weir");
        let folder = format!("{shared}[folders]\ncontracts = \"contracts\"\n");
        let problems = read(&folder).expect_err("refused");
        assert_eq!(
            (problems.len(), problems[0].place.as_str()),
            (1, "/folders/contracts")
        );
        let hint = problems[0].hint.as_deref().unwrap_or_default();
        assert!(hint.contains("weir contracts apply DIR"), "{hint}");
        let problems = read("[state]\nurl = \"mysql://hunter2@db/weir\"\n").expect_err("refused");
        assert_eq!(problems[0].place, "/state/url");
        assert!(!problems[0].to_string().contains("hunter2"));
    }

    /// A setting that promises something about writes is refused if it would have no effect.
    #[test]
    fn records_are_replicated_by_a_shared_state_alone() {
        let read = |text: &str| config::read("weir.toml", text, Path::new("."));
        let alone = "[audit]\nreplicate = \"writes\"\n";
        let problems = read(alone).expect_err("refused");
        assert_eq!(problems[0].place, "/audit/replicate");
        assert_eq!(problems[0].line, Some(2));
        let shared = format!("{alone}[state]\nurl = \"postgresql://db/weir\"\n");
        read(&shared).expect("valid");
    }
}
