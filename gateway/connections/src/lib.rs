//! Named doors to outside systems. An operator defines them; contracts and plugins only ever name them.
//!
//! Pools, credentials and caps live here. Nothing in this crate knows plugins, HTTP servers or contracts.

pub mod config;
pub mod error;
pub mod files;
pub mod http;
pub mod sql;

use std::{collections::BTreeMap, sync::Arc};

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
    /// Checks and resolves each configuration. `(connection name, what is wrong)` for every problem.
    pub fn new(configs: &BTreeMap<String, ConnectionConfig>) -> Result<Self, Vec<(String, String)>> {
        let _ = configs;
        Ok(Self::default())
    }

    pub fn get(&self, name: &str) -> Option<&Connection> {
        self.by_name.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}
