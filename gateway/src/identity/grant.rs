//! Defines what a caller may do, whatever the source of the grant. A key is one source.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use weir_oauth::SecretText;

use super::{TokenHolder, UseCount};
use crate::config::LimitsConfig;

/// A number of calls, and the seconds over which they are counted.
pub type Rate = (u32, u32);

/// Calls in a day and in a month, UTC; `None`: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallQuota {
    pub day: Option<u32>,
    pub month: Option<u32>,
}

impl CallQuota {
    /// Returns the quota of agents whose grant sets none.
    pub fn usual(limits: &LimitsConfig) -> Self {
        let calls = |calls: u32| (calls > 0).then_some(calls);
        Self {
            day: calls(limits.agent_quota_day),
            month: calls(limits.agent_quota_month),
        }
    }

    /// Returns `true` if calls are not limited, neither for a day nor for a month.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The permissions of a caller, their rates, and their end.
pub trait CallerGrant: fmt::Debug + Send + Sync {
    /// Identifies the grant among all others, and never equals that of another holder.
    fn id(&self) -> &str;

    /// Returns the part of the catalogue that the caller may see and call.
    fn access(&self) -> &CatalogueAccess;

    /// Returns the view that the caller is shown when it asks for everything, if it has one.
    fn view(&self) -> Option<&Arc<str>>;

    /// Returns the rate over all methods and tools, if the grant sets one.
    fn rate(&self) -> Option<Rate>;

    /// Returns the rate of one tool, if the grant sets one.
    fn tool_rate(&self, tool: &str) -> Option<Rate>;

    /// Returns how many calls the grant allows in a day and in a month, if it sets them.
    fn quota(&self) -> CallQuota {
        CallQuota::default()
    }

    /// Returns when the grant expires, in milliseconds since the Unix epoch, if it does.
    fn expires_ms(&self) -> Option<i64>;

    /// Returns a token that is cancelled when the grant ends earlier: the caller's open work ends with it.
    fn revoked(&self) -> CancellationToken;

    /// Returns the person to whom the grant was given, if the agent's name alone is not enough: two issuers of tokens may
    /// give the same name.
    fn holder(&self) -> Option<&TokenHolder> {
        None
    }

    /// Returns the groups of the caller, as policies see them.
    fn groups(&self) -> Arc<[Arc<str>]> {
        Arc::from([])
    }

    /// Returns the caller's token itself, if it comes from an issuer.
    fn token(&self) -> Option<&SecretText> {
        None
    }

    /// Returns where the uses of the grant are counted, if they are counted.
    fn uses(&self) -> Option<&UseCount> {
        None
    }

    /// Returns `true` if the caller may call writing tools, provided that its access covers them.
    fn may_write(&self) -> bool {
        true
    }
}

/// What a key may see and call: everything, or the union of whole contracts and single tools. Anything else does not exist for
/// it: hidden and unknown are the same.
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
    /// Whole contracts, including tools that they get later.
    pub contracts: BTreeSet<String>,
    /// Single tools, by name.
    pub tools: BTreeSet<String>,
}

impl CatalogueAccess {
    pub const EVERYTHING: Self = Self(None);

    /// Allows only the contracts and tools of the list.
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

    /// Returns `true` if the whole contract is allowed, not only its tools.
    pub fn allows_contract(&self, contract: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|narrow| narrow.list.contracts.contains(contract))
    }

    /// Returns the digest of the list: equal lists have the same digest, others a different one. `None` for everything. It is
    /// computed once, so that a request does not read a list of thousands of names.
    pub fn digest(&self) -> Option<&[u8; 32]> {
        self.0.as_ref().map(|narrow| &narrow.digest)
    }
}
