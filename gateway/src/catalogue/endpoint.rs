//! Defines where a client asks: everything, one contract as a server of its own, or a view.

use std::{fmt, sync::Arc};

use crate::identity::Caller;

/// Shown as its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The endpoint `/mcp`, with every contract.
    All,
    /// `/mcp/<contract>`, whether there is such a contract or not.
    Contract(Arc<str>),
    /// `/mcp/view/<view>`, whether there is such a view or not.
    View(Arc<str>),
}

impl Endpoint {
    /// Returns the endpoint that this caller is led to: one that asks for everything gets the default view of its key,
    /// if there is one.
    pub fn of(self, caller: &Caller) -> Self {
        match (self, caller.view()) {
            (Self::All, Some(view)) => Self::View(view.clone()),
            (asked, _) => asked,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("/mcp"),
            Self::Contract(contract) => write!(formatter, "/mcp/{contract}"),
            Self::View(view) => write!(formatter, "/mcp/view/{view}"),
        }
    }
}
