//! Who calls: an agent, the holder of one key, which belongs to a tenant.

use std::sync::Arc;

/// The resolved identity of one request. Until keys exist, everyone on loopback is the agent `local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub agent: Arc<str>,
    pub tenant: Arc<str>,
}

impl Caller {
    pub fn local() -> Self {
        Self { agent: "local".into(), tenant: "local".into() }
    }
}

/// Who sends this request. Every way in asks here, before any method code; keys will be read here.
pub fn resolve() -> Caller {
    Caller::local()
}
