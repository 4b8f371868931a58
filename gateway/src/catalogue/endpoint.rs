//! Where a client asks: everything, or one contract as a server of its own.

use std::{fmt, sync::Arc};

/// Shown as its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/mcp`: every contract.
    All,
    /// `/mcp/<contract>`, whether there is such a contract or not.
    Contract(Arc<str>),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("/mcp"),
            Self::Contract(contract) => write!(formatter, "/mcp/{contract}"),
        }
    }
}
