//! Provides named doors to outside systems. An operator defines them; contracts and plugins only ever name them.
//!
//! Pools, credentials and caps live here. Nothing in this crate depends on plugins, HTTP servers or contracts.

pub mod browse;
pub mod code;
pub mod config;
pub mod error;
pub mod files;
pub mod http;
pub mod index;
pub mod mask;
pub mod sql;

use std::{collections::BTreeMap, path::Path, sync::Arc};

pub use code::FailureCode;
pub use config::ConnectionConfig;
pub use error::ConnectionError;
use files::{PrivateFolder, real};

/// All connections of one configuration, by name. Nothing is dialled until the first use.
#[derive(Default)]
pub struct ConnectionRegistry {
    by_name: BTreeMap<String, OpenConnection>,
    /// The folder that no connection reaches: Weir's own state.
    private: Option<Arc<PrivateFolder>>,
}

struct OpenConnection {
    /// The configuration it was made from, with paths and secrets filled in.
    config: ConnectionConfig,
    connection: ConnectionHandle,
}

/// An open connection of any kind.
#[derive(Clone)]
pub enum ConnectionHandle {
    Sql(Arc<sql::SqlConnection>),
    Http(Arc<http::HttpConnection>),
    Files(Arc<files::FileRoot>),
}

impl ConnectionRegistry {
    /// Returns no connections yet. Those that are opened from here on do not reach `folder`, which is Weir's own state.
    pub fn apart_from(folder: &Path) -> Self {
        Self {
            by_name: BTreeMap::new(),
            private: Some(Arc::new(PrivateFolder::new(folder.to_owned()))),
        }
    }

    /// Checks each configuration and resolves its secrets; relative paths are taken from `base`, the folder of the config
    /// file. Returns `(connection name, problem)` for every problem.
    pub fn new(
        configs: &BTreeMap<String, ConnectionConfig>,
        base: &Path,
    ) -> Result<Self, Vec<(String, String)>> {
        match Self::default().renewed(configs, base) {
            (connections, problems) if problems.is_empty() => Ok(connections),
            (_, problems) => Err(problems),
        }
    }

    /// Does the same when others are open already: unchanged connections, secrets included, keep their pools.
    /// A connection with a problem is left out, and the others are opened. A connection that leads straight into Weir's own
    /// state is such a problem; files above that are opened, and the state beneath them is out of reach.
    pub fn renewed(
        &self,
        configs: &BTreeMap<String, ConnectionConfig>,
        base: &Path,
    ) -> (Self, Vec<(String, String)>) {
        let mut by_name = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, config) in configs {
            let open = config.resolved(base).and_then(|config| {
                self.leads_elsewhere(&config)?;
                let same = self.by_name.get(name).filter(|open| open.config == config);
                let connection = same.map_or_else(
                    || self.connection(&config),
                    |open| Ok(open.connection.clone()),
                )?;
                Ok(OpenConnection { config, connection })
            });
            match open {
                Ok(open) => {
                    by_name.insert(name.clone(), open);
                }
                Err(what) => problems.push((name.clone(), what)),
            }
        }
        (
            Self {
                by_name,
                private: self.private.clone(),
            },
            problems,
        )
    }

    /// Returns the connection of that name in the configuration, if it is open.
    pub fn get(&self, name: &str) -> Option<&ConnectionHandle> {
        self.by_name.get(name).map(|open| &open.connection)
    }

    /// Returns the names of all open connections, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Opens a connection of a resolved configuration.
    fn connection(&self, config: &ConnectionConfig) -> Result<ConnectionHandle, String> {
        Ok(match config {
            ConnectionConfig::Sqlite { path, write } => {
                ConnectionHandle::Sql(Arc::new(sql::SqlConnection::sqlite(path.clone(), *write)))
            }
            ConnectionConfig::Postgresql {
                url,
                write,
                pool_max,
            } => ConnectionHandle::Sql(Arc::new(sql::SqlConnection::postgresql(
                url, *write, *pool_max,
            )?)),
            ConnectionConfig::Mysql {
                url,
                write,
                pool_max,
            } => {
                ConnectionHandle::Sql(Arc::new(sql::SqlConnection::mysql(url, *write, *pool_max)?))
            }
            ConnectionConfig::Http {
                base_url,
                headers,
                ca,
                write,
                timeout_ms,
                response_max_bytes,
            } => {
                let headers: Vec<_> = headers
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                let limits = http::HttpLimits::new(*timeout_ms, *response_max_bytes);
                ConnectionHandle::Http(Arc::new(http::HttpConnection::new(
                    base_url,
                    &headers,
                    ca.as_deref(),
                    *write,
                    limits,
                )?))
            }
            ConnectionConfig::Files {
                path,
                write,
                uploads,
            } => ConnectionHandle::Files(Arc::new(files::FileRoot::new(
                path.clone(),
                *write,
                *uploads,
                self.private.clone(),
            ))),
        })
    }

    /// Refuses a file or folder in the folder that no connection reaches.
    fn leads_elsewhere(&self, config: &ConnectionConfig) -> Result<(), String> {
        let (ConnectionConfig::Sqlite { path, .. } | ConnectionConfig::Files { path, .. }) = config
        else {
            return Ok(());
        };
        match &self.private {
            Some(private) if real(path).starts_with(real(private.path())) => Err(format!(
                "leads into Weir's own state, {}: keep data and `[folders] state` apart",
                private.path().display()
            )),
            _ => Ok(()),
        }
    }
}
