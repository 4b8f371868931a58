//! Defines where a client asks: everything, one contract as a server of its own, or a view.

use std::{fmt, sync::Arc};

use crate::identity::CallerIdentity;

/// Shown as its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogueEndpoint {
    /// The endpoint `/mcp`, with every contract.
    All,
    /// `/mcp/<contract>`, whether there is such a contract or not.
    Contract(Arc<str>),
    /// `/mcp/view/<view>`, whether there is such a view or not.
    View(Arc<str>),
    /// `/mcp/<contract>@<major>`, whether there is such a version or not.
    Version(Arc<str>, u32),
}

impl CatalogueEndpoint {
    /// Returns the endpoint of a contract, or of one of its versions where the name ends in `@` and a major version.
    pub fn contract(name: &str) -> Self {
        let version = name.split_once('@').and_then(|(contract, major)| {
            let number: u32 = major.parse().ok()?;
            (number.to_string() == major).then(|| Self::Version(contract.into(), number))
        });
        version.unwrap_or_else(|| Self::Contract(name.into()))
    }

    /// Returns the endpoint that this caller is led to: one that asks for everything gets the default view of its key,
    /// if there is one.
    pub fn for_caller(self, caller: &CallerIdentity) -> Self {
        match (self, caller.view()) {
            (Self::All, Some(view)) => Self::View(view.clone()),
            (asked, _) => asked,
        }
    }
}

impl fmt::Display for CatalogueEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("/mcp"),
            Self::Contract(contract) => write!(formatter, "/mcp/{contract}"),
            Self::View(view) => write!(formatter, "/mcp/view/{view}"),
            Self::Version(contract, major) => write!(formatter, "/mcp/{contract}@{major}"),
        }
    }
}
