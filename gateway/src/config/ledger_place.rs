//! The place where the rates of several nodes are counted.

use serde::{Deserialize, Serialize, Serializer};
use weir_ledger::{LedgerEngine, PostgresqlLedger, ValkeyLedger};

use super::GatewayConfig;

/// The value of `[limits] ledger`. URLs are not shown, since they may hold a password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum LedgerPlace {
    /// Each node counts on its own.
    Local,
    /// In the database with the state.
    Postgresql,
    /// The URL of Valkey or Redis, with references in place of its secrets.
    Valkey(String),
}

impl From<String> for LedgerPlace {
    fn from(text: String) -> Self {
        match text.as_str() {
            "local" => Self::Local,
            "postgresql" => Self::Postgresql,
            _ => Self::Valkey(text),
        }
    }
}

impl LedgerPlace {
    fn word(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Postgresql => "postgresql",
            Self::Valkey(_) => "valkey",
        }
    }

    /// Returns the URL as written.
    pub(super) fn url(&self) -> Option<&String> {
        match self {
            Self::Valkey(url) => Some(url),
            Self::Local | Self::Postgresql => None,
        }
    }
}

impl Serialize for LedgerPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl std::fmt::Debug for LedgerPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.word())
    }
}

impl GatewayConfig {
    /// Returns where this process counts together with others; `None` if it counts on its own.
    pub fn open_ledger(&self) -> anyhow::Result<Option<LedgerEngine>> {
        let Some(address) = self.state_address()? else {
            return Ok(None);
        };
        Ok(match &self.limits.ledger {
            Some(LedgerPlace::Local) => None,
            Some(LedgerPlace::Valkey(url)) => {
                let failed = |why| anyhow::anyhow!("`[limits] ledger`: {why}");
                let url = weir_connections::config::resolve_url(url, &self.base).map_err(failed)?;
                weir_connections::http::install_tls();
                let ledger = ValkeyLedger::new(&url);
                let ledger = ledger.map_err(|why| failed(why.to_string()))?;
                Some(LedgerEngine::Valkey(Box::new(ledger)))
            }
            None | Some(LedgerPlace::Postgresql) => Some(LedgerEngine::Postgresql(
                PostgresqlLedger::new(address.servers().to_vec()),
            )),
        })
    }
}

/// Returns the problem of the key: the place, the message and the hint.
pub(super) fn check(config: &GatewayConfig) -> Option<(String, String, &'static str)> {
    const SCHEMES: [&str; 4] = ["valkey://", "valkeys://", "redis://", "rediss://"];
    let ledger = config.limits.ledger.as_ref()?;
    let place = || "/limits/ledger".to_owned();
    if let Some(url) = ledger.url() {
        let starts = |scheme: &&str| url.starts_with(*scheme);
        if !SCHEMES.iter().chain(&["env:", "file:"]).any(starts) {
            let message = "must be \"postgresql\", \"local\", or the URL of Valkey or Redis";
            let hint = "write a URL as \"valkey://:${env:LEDGER_PASSWORD}@valkey.internal\"";
            return Some((place(), message.to_owned(), hint));
        }
    }
    let needs_nodes = !matches!(ledger, LedgerPlace::Local);
    (needs_nodes && config.state.url.is_none()).then(|| {
        let message =
            "rates are counted together by nodes that share a state, and this state is a file";
        let hint = "leave it out, or set `[state] url`";
        (place(), message.to_owned(), hint)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config;

    #[test]
    fn a_ledger_needs_nodes_and_shows_no_password() {
        let read = |text: &str| config::read("weir.toml", text, Path::new("."));
        let state = "[state]\nurl = \"postgresql://db/weir\"\n";
        let valkey = "[limits]\nledger = \"valkey://:hunter2@v/\"\n";
        let config = read(&format!("{state}{valkey}")).expect("valid");
        let sections = serde_json::to_string(&config.sections()).expect("plain data");
        let shown = format!("{config:?}{sections}");
        assert!(!shown.contains("hunter2") && sections.contains("\"ledger\":\"valkey\""));
        for (text, message) in [
            (valkey.to_owned(), "this state is a file"),
            (
                format!("{state}[limits]\nledger = \"hunter2\"\n"),
                "or the URL of Valkey",
            ),
        ] {
            let problems = read(&text).expect_err("refused");
            assert_eq!(
                (problems.len(), problems[0].place.as_str()),
                (1, "/limits/ledger")
            );
            let problem = problems[0].to_string();
            assert!(
                problem.contains(message) && !problem.contains("hunter2"),
                "{problem}"
            );
        }
    }
}
