//! Defines which endpoint a client uses: everything, one contract as a separate server, or a view.

use std::{fmt, sync::Arc};

use crate::identity::CallerIdentity;

/// Displayed as its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogueEndpoint {
    /// The endpoint `/mcp`, with every contract.
    All,
    /// `/mcp/<contract>`, whether or not the contract exists.
    Contract(Arc<str>),
    /// `/mcp/view/<view>`, whether or not the view exists.
    View(Arc<str>),
    /// `/mcp/<contract>@<major>`, whether or not the version exists.
    Version(Arc<str>, u32),
}

impl CatalogueEndpoint {
    /// Returns the endpoint of a contract, or of one of its versions if the name ends in `@` and a major version.
    pub fn contract(name: &str) -> Self {
        let version = name.split_once('@').and_then(|(contract, major)| {
            let number: u32 = major.parse().ok()?;
            (number.to_string() == major).then(|| Self::Version(contract.into(), number))
        });
        version.unwrap_or_else(|| Self::Contract(name.into()))
    }

    /// Returns the endpoint for this caller: one that asks for everything gets the default view of its key, if there is one.
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
