//! Named doors to outside systems. An operator defines them; contracts and plugins only ever name them.
//!
//! Pools, credentials and caps live here. Nothing in this crate knows plugins, HTTP servers or contracts.

pub mod config;
pub mod error;
pub mod files;
pub mod http;
pub mod sql;

use std::{collections::BTreeMap, path::Path, sync::Arc};

pub use config::ConnectionConfig;
pub use error::ConnectionError;

/// All connections of one configuration, by name. Nothing is dialled until the first use.
#[derive(Default)]
pub struct Connections {
    by_name: BTreeMap<String, Connection>,
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
        let mut by_name = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, config) in configs {
            match Connection::new(config, base) {
                Ok(connection) => {
                    by_name.insert(name.clone(), connection);
                }
                Err(what) => problems.push((name.clone(), what)),
            }
        }
        if problems.is_empty() { Ok(Self { by_name }) } else { Err(problems) }
    }

    pub fn get(&self, name: &str) -> Option<&Connection> {
        self.by_name.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The first connection through which `path` could be read: the gateway refuses one that reaches its own state.
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
        self.by_name.iter().find(|(_, connection)| reaches(connection)).map(|(name, _)| name.as_str())
    }
}

impl Connection {
    fn new(config: &ConnectionConfig, base: &Path) -> Result<Self, String> {
        Ok(match config {
            ConnectionConfig::Sqlite { path, write } => {
                Self::Sql(Arc::new(sql::SqlConnection::sqlite(base.join(path), *write)))
            }
            ConnectionConfig::Postgresql { url, write, pool_max } => {
                let url = config::resolve(url, base)?;
                Self::Sql(Arc::new(sql::SqlConnection::postgresql(&url, *write, *pool_max)?))
            }
            ConnectionConfig::Http { base_url, headers, write, timeout_ms, response_max_bytes } => {
                let base_url = config::resolve(base_url, base)?;
                let headers = headers
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), config::resolve(value, base)?)))
                    .collect::<Result<Vec<_>, String>>()?;
                let limits = http::Limits::new(*timeout_ms, *response_max_bytes);
                Self::Http(Arc::new(http::HttpConnection::new(&base_url, &headers, *write, limits)?))
            }
            ConnectionConfig::Files { path, write } => {
                Self::Files(Arc::new(files::FileRoot::new(base.join(path), *write)))
            }
        })
    }
}

/// The path without links, or as it stands while nothing is there.
fn real(path: &Path) -> std::path::PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
