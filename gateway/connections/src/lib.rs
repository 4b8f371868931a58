//! Provides named doors to outside systems. An operator defines them; contracts and plugins only ever name them.
//!
//! Pools, credentials and caps live here. Nothing in this crate knows plugins, HTTP servers or contracts.

pub mod code;
pub mod config;
pub mod error;
pub mod files;
pub mod http;
pub mod index;
pub mod sql;

use std::{collections::BTreeMap, path::Path, sync::Arc};

pub use code::Code;
pub use config::ConnectionConfig;
pub use error::ConnectionError;

/// All connections of one configuration, by name. Nothing is dialled until the first use.
#[derive(Default)]
pub struct Connections {
    by_name: BTreeMap<String, Open>,
}

struct Open {
    /// The configuration it was made from, with paths and secrets filled in.
    config: ConnectionConfig,
    connection: Connection,
}

#[derive(Clone)]
pub enum Connection {
    Sql(Arc<sql::SqlConnection>),
    Http(Arc<http::HttpConnection>),
    Files(Arc<files::FileRoot>),
}

impl Connections {
    /// Checks each configuration and resolves its secrets; relative paths are taken from `base`, the folder of the
    /// config file. `(connection name, what is wrong)` for every problem.
    pub fn new(configs: &BTreeMap<String, ConnectionConfig>, base: &Path) -> Result<Self, Vec<(String, String)>> {
        match Self::default().renewed(configs, base) {
            (connections, problems) if problems.is_empty() => Ok(connections),
            (_, problems) => Err(problems),
        }
    }

    /// Does the same where others are open already: those that stay as they were, secrets included, keep their pools.
    /// A connection with a problem is left out, and the others are opened.
    pub fn renewed(&self, configs: &BTreeMap<String, ConnectionConfig>, base: &Path) -> (Self, Vec<(String, String)>) {
        let mut by_name = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, config) in configs {
            let open = config.resolved(base).and_then(|config| {
                let same = self.by_name.get(name).filter(|open| open.config == config);
                let connection = same.map_or_else(|| Connection::new(&config), |open| Ok(open.connection.clone()))?;
                Ok(Open { config, connection })
            });
            match open {
                Ok(open) => {
                    by_name.insert(name.clone(), open);
                }
                Err(what) => problems.push((name.clone(), what)),
            }
        }
        (Self { by_name }, problems)
    }

    pub fn get(&self, name: &str) -> Option<&Connection> {
        self.by_name.get(name).map(|open| &open.connection)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns the first connection through which `path` could be read: the gateway refuses one that reaches its own
    /// state.
    pub fn reaching(&self, path: &Path) -> Option<&str> {
        let path = real(path);
        let reaches = |connection: &Connection| match connection {
            Connection::Sql(sql) => sql.file().is_some_and(|file| real(file).starts_with(&path)),
            Connection::Files(files) => {
                let root = real(files.root());
                path.starts_with(&root) || root.starts_with(&path)
            }
            Connection::Http(_) => false,
        };
        self.by_name.iter().find(|(_, open)| reaches(&open.connection)).map(|(name, _)| name.as_str())
    }
}

impl Connection {
    /// Creates a connection from a resolved configuration.
    fn new(config: &ConnectionConfig) -> Result<Self, String> {
        Ok(match config {
            ConnectionConfig::Sqlite { path, write } => {
                Self::Sql(Arc::new(sql::SqlConnection::sqlite(path.clone(), *write)))
            }
            ConnectionConfig::Postgresql { url, write, pool_max } => {
                Self::Sql(Arc::new(sql::SqlConnection::postgresql(url, *write, *pool_max)?))
            }
            ConnectionConfig::Http { base_url, headers, ca, write, timeout_ms, response_max_bytes } => {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let limits = http::Limits::new(*timeout_ms, *response_max_bytes);
                Self::Http(Arc::new(http::HttpConnection::new(base_url, &headers, ca.as_deref(), *write, limits)?))
            }
            ConnectionConfig::Files { path, write } => {
                Self::Files(Arc::new(files::FileRoot::new(path.clone(), *write)))
            }
        })
    }
}

/// Returns the path without links, or as it stands while nothing is there.
fn real(path: &Path) -> std::path::PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
