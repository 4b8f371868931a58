//! Keeps all keys, ready to look up, and counts their calls until they are written into the state.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    },
};

use ahash::RandomState;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use weir_contracts::form;
use weir_state::{KeyRow, KeyUseRow};

use super::{
    AccessList, AuthenticationError, CallQuota, CallerGrant, CatalogueAccess, Rate,
    RequestCredential,
    secret::{SecretKind, SecretParts},
};

/// A key. It is kept small, since there may be a million of them.
#[derive(Debug)]
pub(super) struct AgentKey {
    id: Box<str>,
    pub(super) agent: Arc<str>,
    pub(super) tenant: Arc<str>,
    access: CatalogueAccess,
    /// The view that the key gets in place of everything, if it has one.
    view: Option<Arc<str>>,
    /// The rate over all methods and tools, if the key sets one.
    rate: Option<Rate>,
    /// The limits that few keys have.
    rare: Option<Box<RareLimits>>,
    secret_hash: [u8; 32],
    created_ms: i64,
    expires_ms: Option<i64>,
    is_revoked: AtomicBool,
    /// The token for the end of the key, created for the first task that waits for it.
    revoked: OnceLock<CancellationToken>,
    uses: UseCount,
}

/// Limits that most keys do not have; there may be a million keys.
#[derive(Debug, Default, PartialEq, Eq)]
struct RareLimits {
    /// The rates by tool name.
    tool_rates: HashMap<Box<str>, Rate>,
    quota: CallQuota,
}

/// The limits of a key, which override the configured ones. Rates read `60/min`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(utoipa::ToSchema)]
pub struct KeyLimits {
    /// Over all methods and tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Calls in a day, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_day: Option<u32>,
    /// Calls in a month, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_month: Option<u32>,
    /// By tool name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
}

/// Tables with separate locks: a change of one key delays the readers of a few others only for the time of one entry.
const SHARDS: usize = 64;
/// The most tenants, views and access lists that keys share; beyond it, keys hold their own.
const SHARED_MAX: usize = 4096;

/// All keys. The cost of a change does not depend on their number.
pub(super) struct KeyTable {
    shards: [RwLock<HashSet<ById, RandomState>>; SHARDS],
    by: RandomState,
    any: AtomicBool,
    shared: Mutex<KeyInterner>,
}

/// A key that is found by its id, which is stored once.
struct ById(Arc<AgentKey>);

/// The values that many keys share, stored once.
#[derive(Default)]
struct KeyInterner {
    names: HashSet<Arc<str>>,
    access: HashMap<Box<str>, CatalogueAccess>,
}

impl Default for KeyTable {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            by: RandomState::new(),
            any: AtomicBool::new(false),
            shared: Mutex::default(),
        }
    }
}

impl KeyTable {
    /// Applies one row. A key that did not change remains the same object, with its open work. A revoked key remains revoked,
    /// whatever the row contains.
    pub(super) fn apply(&self, row: &KeyRow) {
        let new = AgentKey::new(row, &mut self.shared.lock());
        let mut shard = self.shard(&row.id).write();
        let known = shard.get(row.id.as_str());
        let was_revoked = known.is_some_and(|ById(known)| known.is_revoked());
        let key = match known {
            Some(ById(known)) if known.is_same(&new) => Arc::clone(known),
            // A different access or limit makes a new key: sessions and streams of the old one end.
            known => {
                if let Some(ById(known)) = known {
                    known.revoke();
                }
                let new = Arc::new(new);
                shard.replace(ById(Arc::clone(&new)));
                new
            }
        };
        drop(shard);
        if was_revoked || row.revoked_ms.is_some() {
            key.revoke();
        }
        self.any.store(true, Ordering::Release);
    }

    /// Drops the keys that the database lacks.
    pub(super) fn keep_only(&self, there: &HashSet<String>) {
        for shard in &self.shards {
            shard.write().retain(|ById(key)| {
                let is_there = there.contains(&*key.id);
                if !is_there {
                    key.revoke();
                }
                is_there
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn find(
        &self,
        credential: RequestCredential<'_>,
        now_ms: impl FnOnce() -> i64,
    ) -> Result<Arc<AgentKey>, AuthenticationError> {
        let text = match credential {
            RequestCredential::None => return Err(AuthenticationError::Missing),
            RequestCredential::Malformed | RequestCredential::Bound(_) => {
                return Err(AuthenticationError::Malformed);
            }
            RequestCredential::Key(text) => text,
        };
        let parts =
            SecretParts::read(text, SecretKind::Agent).ok_or(AuthenticationError::Malformed)?;
        let shard = self.shard(parts.id).read();
        let key = shard.get(parts.id).map(|ById(key)| Arc::clone(key));
        drop(shard);
        // A hash that no key has: an unknown id takes as long as a wrong secret.
        let matches = parts.matches(key.as_ref().map_or(&[0; 32], |key| &key.secret_hash));
        let key = key
            .filter(|_| matches)
            .ok_or(AuthenticationError::Unknown)?;
        key.state(now_ms).map(|()| key)
    }

    /// Returns the newest valid key of that agent.
    pub(super) fn of_agent(&self, agent: &str, now_ms: i64) -> Option<Arc<AgentKey>> {
        let mut newest: Option<Arc<AgentKey>> = None;
        for shard in &self.shards {
            let shard = shard.read();
            let of_agent = shard.iter().map(|ById(key)| key);
            let of_agent =
                of_agent.filter(|key| *key.agent == *agent && key.state(|| now_ms).is_ok());
            newest = of_agent
                .chain(newest.as_ref())
                .max_by_key(|key| key.created_ms)
                .cloned();
        }
        newest
    }

    fn shard(&self, id: &str) -> &RwLock<HashSet<ById, RandomState>> {
        let at = usize::try_from(self.by.hash_one(id) % SHARDS as u64).expect("a small number");
        &self.shards[at]
    }
}

impl std::borrow::Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl std::hash::Hash for ById {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

impl KeyInterner {
    /// Returns the shared name of a tenant or a view.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        if self.names.len() < SHARED_MAX {
            self.names.insert(name.clone());
        }
        name
    }

    /// Reads an access. An unreadable one allows nothing, since Weir did not write that row.
    fn access(&mut self, text: &str) -> CatalogueAccess {
        if let Some(known) = self.access.get(text) {
            return known.clone();
        }
        let access =
            CatalogueAccess::to(serde_json::from_str::<AccessList>(text).unwrap_or_default());
        if self.access.len() < SHARED_MAX {
            self.access.insert(text.into(), access.clone());
        }
        access
    }
}

impl AgentKey {
    fn new(row: &KeyRow, shared: &mut KeyInterner) -> Self {
        let limits = row
            .limits
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        let KeyLimits {
            rate,
            quota_day,
            quota_month,
            tools,
        } = limits.unwrap_or_default();
        let tool_rates = tools
            .iter()
            .filter_map(|(tool, rate)| Some((tool.as_str().into(), form::rate(rate)?)));
        let rare = RareLimits {
            tool_rates: tool_rates.collect(),
            quota: CallQuota {
                day: quota_day,
                month: quota_month,
            },
        };
        let agent: Arc<str> = row.agent.as_str().into();
        Self {
            id: row.id.as_str().into(),
            tenant: if row.tenant == row.agent {
                agent.clone()
            } else {
                shared.name(&row.tenant)
            },
            agent,
            access: row
                .access
                .as_deref()
                .map_or(CatalogueAccess::EVERYTHING, |text| shared.access(text)),
            view: row.view.as_deref().map(|view| shared.name(view)),
            rate: rate.as_deref().and_then(form::rate),
            rare: (rare != RareLimits::default()).then(|| Box::new(rare)),
            // A row without a hash matches no credential.
            secret_hash: row.secret_hash.as_slice().try_into().unwrap_or_default(),
            created_ms: row.created_ms,
            expires_ms: row.expires_ms,
            is_revoked: AtomicBool::new(false),
            revoked: OnceLock::new(),
            uses: UseCount::default(),
        }
    }

    fn revoke(&self) {
        self.is_revoked.store(true, Ordering::SeqCst);
        if let Some(token) = self.revoked.get() {
            token.cancel();
        }
    }

    fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::SeqCst)
    }

    /// Returns whether the key is valid. The clock is read only if the key can expire.
    fn state(&self, now_ms: impl FnOnce() -> i64) -> Result<(), AuthenticationError> {
        if self.is_revoked.load(Ordering::SeqCst) {
            return Err(AuthenticationError::Revoked);
        }
        match self.expires_ms {
            Some(expires) if expires <= now_ms() => Err(AuthenticationError::Expired),
            _ => Ok(()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.secret_hash == other.secret_hash
            && self.agent == other.agent
            && self.tenant == other.tenant
            && self.access == other.access
            && self.view == other.view
            && self.rate == other.rate
            && self.rare == other.rare
            && self.expires_ms == other.expires_ms
    }
}

impl CallerGrant for AgentKey {
    fn id(&self) -> &str {
        &self.id
    }

    fn access(&self) -> &CatalogueAccess {
        &self.access
    }

    fn view(&self) -> Option<&Arc<str>> {
        self.view.as_ref()
    }

    fn rate(&self) -> Option<Rate> {
        self.rate
    }

    fn quota(&self) -> CallQuota {
        self.rare
            .as_ref()
            .map_or_else(CallQuota::default, |rare| rare.quota)
    }

    fn tool_rate(&self, tool: &str) -> Option<Rate> {
        self.rare.as_ref()?.tool_rates.get(tool).copied()
    }

    fn expires_ms(&self) -> Option<i64> {
        self.expires_ms
    }

    fn uses(&self) -> Option<&UseCount> {
        Some(&self.uses)
    }

    fn revoked(&self) -> CancellationToken {
        let token = self.revoked.get_or_init(CancellationToken::new).clone();
        // This is checked after the token exists: a revocation sets the flag first, and then cancels the token.
        if self.is_revoked.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }
}

/// The calls of one key that are not yet in the state.
#[derive(Debug, Default)]
pub struct UseCount {
    calls: AtomicU32,
    last_ms: AtomicI64,
}

/// The keys with calls that are not yet in the state.
#[derive(Default)]
pub(super) struct UsedKeys {
    waiting: Mutex<Vec<Arc<dyn CallerGrant>>>,
    any: Notify,
}

impl UseCount {
    /// Counts calls; returns `true` for the first ones that wait to be written.
    fn add(&self, calls: u32, at_ms: i64) -> bool {
        self.last_ms.fetch_max(at_ms, Ordering::Relaxed);
        self.calls.fetch_add(calls, Ordering::Relaxed) == 0
    }

    /// Takes the counts: the number of calls, and the time of the last one.
    fn take(&self) -> (u32, i64) {
        let calls = self.calls.swap(0, Ordering::Relaxed);
        (calls, self.last_ms.load(Ordering::Relaxed))
    }
}

impl UsedKeys {
    /// Counts a call of a key; other grants are not counted.
    pub(super) fn note(&self, grant: &Arc<dyn CallerGrant>, at_ms: i64) {
        if grant.uses().is_some_and(|count| count.add(1, at_ms)) {
            self.waiting.lock().push(Arc::clone(grant));
            self.any.notify_one();
        }
    }

    /// Waits until a key was used.
    pub(super) async fn used(&self) {
        self.any.notified().await;
    }

    /// Takes the counts since the last time, with the grants that they belong to.
    pub(super) fn take(&self) -> (Vec<Arc<dyn CallerGrant>>, Vec<KeyUseRow>) {
        let waiting = mem::take(&mut *self.waiting.lock());
        let taken = |grant: Arc<dyn CallerGrant>| {
            let (calls, last_ms) = grant.uses()?.take();
            let row = KeyUseRow {
                key: grant.id().to_owned(),
                calls: i64::from(calls),
                last_ms,
            };
            Some((grant, row))
        };
        waiting.into_iter().filter_map(taken).unzip()
    }

    /// Adds back counts that could not be written.
    pub(super) fn give_back(&self, grants: Vec<Arc<dyn CallerGrant>>, rows: &[KeyUseRow]) {
        for (grant, row) in grants.into_iter().zip(rows) {
            let calls = u32::try_from(row.calls).unwrap_or(u32::MAX);
            if grant
                .uses()
                .is_some_and(|count| count.add(calls, row.last_ms))
            {
                self.waiting.lock().push(grant);
            }
        }
        self.any.notify_one();
    }
}
