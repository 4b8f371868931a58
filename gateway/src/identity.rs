//! Who calls: an agent, the holder of one key, which belongs to a tenant. Asked before any tool code.

mod access;
mod keys;
mod secret;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use weir_state::KeyRow;

pub use access::{Access, AccessList};
pub use keys::{Key, KeyLimits};
pub use secret::{Credential, Kind, Minted, admin_matches};

use self::keys::Keys;

/// The resolved identity of one request.
#[derive(Clone, Debug)]
pub struct Caller {
    pub agent: Arc<str>,
    pub tenant: Arc<str>,
    /// `None`: no key is defined, and everyone on loopback is the agent `local`.
    pub key: Option<Arc<Key>>,
}

/// Why nobody is known. The caller reads [`Refused::message`]; which of them it was is for log and audit alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("missing")]
    Missing,
    #[error("malformed")]
    Malformed,
    #[error("unknown")]
    Unknown,
    #[error("expired")]
    Expired,
    #[error("revoked")]
    Revoked,
}

/// The keys as they are now. Read by every request, replaced when one changes.
pub struct Identities {
    keys: ArcSwap<Keys>,
    /// `[identity] required`: closed even before the first key.
    required: AtomicBool,
}

impl Caller {
    pub fn local() -> Self {
        Self { agent: "local".into(), tenant: "local".into(), key: None }
    }

    /// What of the catalogue this caller may see and call.
    pub fn access(&self) -> &Access {
        self.key.as_ref().map_or(&Access::EVERYTHING, |key| &key.access)
    }

    /// Cancelled when the caller's key is revoked: what it left open ends.
    pub fn revoked(&self) -> CancellationToken {
        self.key.as_ref().map_or_else(CancellationToken::new, |key| key.revoked.clone())
    }

    fn key_id(&self) -> Option<&str> {
        self.key.as_ref().map(|key| &*key.id)
    }
}

/// The same key, not merely the same name.
impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        self.agent == other.agent && self.tenant == other.tenant && self.key_id() == other.key_id()
    }
}

impl Refused {
    /// Unknown, expired and revoked look the same from outside.
    pub fn message(self) -> &'static str {
        match self {
            Self::Missing => "a key is needed: send `Authorization: Bearer weir_…` (on stdio: set WEIR_KEY)",
            _ => "the key is not valid",
        }
    }
}

impl Identities {
    /// Open to everyone: until keys are defined, or for a process without state.
    pub fn open() -> Self {
        Self { keys: ArcSwap::from_pointee(Keys::default()), required: AtomicBool::new(false) }
    }

    pub fn new(rows: &[KeyRow], required: bool) -> Self {
        Self { keys: ArcSwap::from_pointee(Keys::new(rows, None)), required: AtomicBool::new(required) }
    }

    /// Takes over what changed. A key that did not change stays the same object, with what it has open.
    pub fn replace(&self, rows: &[KeyRow]) {
        let old = self.keys.load();
        self.keys.store(Arc::new(Keys::new(rows, Some(&old))));
    }

    /// `[identity] required`, from the next request on.
    pub fn require(&self, required: bool) {
        self.required.store(required, Ordering::Relaxed);
    }

    /// True once a key is needed. It stays so when the last one is revoked.
    pub fn are_required(&self) -> bool {
        self.required.load(Ordering::Relaxed) || !self.keys.load().is_empty()
    }

    pub fn resolve(&self, credential: Credential<'_>) -> Result<Caller, Refused> {
        let keys = self.keys.load();
        if !self.required.load(Ordering::Relaxed) && keys.is_empty() {
            return Ok(Caller::local());
        }
        let key = keys.find(credential, now_ms)?;
        Ok(Caller { agent: key.agent.clone(), tenant: key.tenant.clone(), key: Some(key) })
    }

    /// Any agent by name, for an operator's trial call.
    pub fn agent(&self, name: &str) -> Option<Caller> {
        let keys = self.keys.load();
        if !self.required.load(Ordering::Relaxed) && keys.is_empty() && name == "local" {
            return Some(Caller::local());
        }
        let key = keys.of_agent(name, now_ms())?;
        Some(Caller { agent: key.agent.clone(), tenant: key.tenant.clone(), key: Some(key) })
    }
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
