//! What a key may see and call. What it may not is not there for it: hidden and unknown are the same.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

/// Everything, or the union of whole contracts and single tools.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access(Option<Arc<AccessList>>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccessList {
    /// Contracts, whole: tools they get later included.
    pub contracts: BTreeSet<String>,
    /// Single tools, by name.
    pub tools: BTreeSet<String>,
}

impl Access {
    pub const EVERYTHING: Self = Self(None);

    pub fn to(list: AccessList) -> Self {
        Self(Some(Arc::new(list)))
    }

    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    pub fn allows(&self, contract: &str, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|list| list.contracts.contains(contract) || list.tools.contains(tool))
    }
}
