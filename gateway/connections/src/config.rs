//! What an operator writes under `[connections.NAME]` of `weir.toml`.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

/// Values that hold secrets may be references: `env:NAME` or `file:path`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ConnectionConfig {
    Sqlite {
        path: PathBuf,
        #[serde(default)]
        write: bool,
    },
    Postgresql {
        url: String,
        #[serde(default)]
        write: bool,
        #[serde(default)]
        pool_max: Option<u32>,
    },
    Http {
        base_url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        write: bool,
        #[serde(default)]
        timeout_ms: Option<u64>,
        #[serde(default)]
        response_max_bytes: Option<u64>,
    },
    Files {
        path: PathBuf,
        #[serde(default)]
        write: bool,
    },
}
