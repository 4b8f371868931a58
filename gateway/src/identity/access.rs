//! Decides what a key may see and call. Anything else is not there for it: hidden and unknown are the same.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The access to everything, or to the union of whole contracts and single tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueAccess(Option<Arc<RestrictedAccess>>);

/// An access to less than everything.
#[derive(Debug, PartialEq, Eq)]
struct RestrictedAccess {
    list: AccessList,
    digest: [u8; 32],
}

/// The contracts and tools that a key may see and call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccessList {
    /// Contracts, whole: tools they get later included.
    pub contracts: BTreeSet<String>,
    /// Single tools, by name.
    pub tools: BTreeSet<String>,
}

impl CatalogueAccess {
    pub const EVERYTHING: Self = Self(None);

    /// Allows the contracts and tools of the list alone.
    pub fn to(list: AccessList) -> Self {
        let digest = Sha256::digest(serde_json::to_vec(&list).expect("plain data")).into();
        Self(Some(Arc::new(RestrictedAccess { list, digest })))
    }

    /// Returns `true` if the whole contract or this tool of it is allowed.
    pub fn allows(&self, contract: &str, tool: &str) -> bool {
        let allows =
            |list: &AccessList| list.contracts.contains(contract) || list.tools.contains(tool);
        self.0.as_ref().is_none_or(|narrow| allows(&narrow.list))
    }

    /// Returns `true` if all of the contract is allowed, tools and all else.
    pub fn allows_contract(&self, contract: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|narrow| narrow.list.contracts.contains(contract))
    }

    /// Names the list: equal lists have the same digest, and others another one. `None` for everything. It is made once,
    /// so that a request does not read a list of thousands of names.
    pub fn digest(&self) -> Option<&[u8; 32]> {
        self.0.as_ref().map(|narrow| &narrow.digest)
    }
}
