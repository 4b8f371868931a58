//! Tells which database it is.

use weir_plugin_sdk::{Error, sql};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgresql,
}

impl Dialect {
    pub(crate) fn of(connection: &str) -> Result<Self, Error> {
        match sql::dialect(connection)?.as_str() {
            "sqlite" => Ok(Self::Sqlite),
            "postgresql" => Ok(Self::Postgresql),
            other => Err(Error::unsupported(format!(
                "Databases of the kind {other} are not supported."
            ))),
        }
    }
}
