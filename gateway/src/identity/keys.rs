//! All keys, ready to look up.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use ahash::RandomState;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use weir_contracts::form;
use weir_state::KeyRow;

use super::{
    Access, AccessList, Credential, Refused,
    secret::{Kind, Parts},
};

/// Calls, and the seconds they are counted over.
type Rate = (u32, u32);

#[derive(Debug)]
pub struct Key {
    pub id: Box<str>,
    pub agent: Arc<str>,
    pub tenant: Arc<str>,
    pub access: Access,
    /// Over all methods and tools, where the key has one of its own.
    pub rate: Option<Rate>,
    /// By tool name.
    pub tool_rates: HashMap<Box<str>, Rate>,
    pub revoked: CancellationToken,
    expires_ms: Option<i64>,
}

/// What a key says over the configured limits. Rates read `60/min`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(utoipa::ToSchema)]
pub struct KeyLimits {
    /// Over all methods and tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// By tool name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
}

#[derive(Default)]
pub(super) struct Keys {
    by_id: HashMap<Box<str>, Entry, RandomState>,
}

struct Entry {
    row: KeyRow,
    key: Arc<Key>,
}

impl Keys {
    pub(super) fn new(rows: &[KeyRow], old: Option<&Keys>) -> Self {
        let by_id = rows.iter().map(|row| {
            let kept = old.and_then(|old| old.by_id.get(row.id.as_str()));
            let key = match kept {
                Some(kept) if same(&kept.row, row) => kept.key.clone(),
                // Another access or another limit is another key: sessions and streams of the old one end.
                Some(kept) => {
                    kept.key.revoked.cancel();
                    Key::new(row)
                }
                None => Key::new(row),
            };
            if row.revoked_ms.is_some() {
                key.revoked.cancel();
            }
            (row.id.as_str().into(), Entry { row: row.clone(), key })
        });
        Self { by_id: by_id.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn find(&self, credential: Credential<'_>, now_ms: impl FnOnce() -> i64) -> Result<Arc<Key>, Refused> {
        let text = match credential {
            Credential::None => return Err(Refused::Missing),
            Credential::Malformed => return Err(Refused::Malformed),
            Credential::Key(text) => text,
        };
        let parts = Parts::read(text, Kind::Agent).ok_or(Refused::Malformed)?;
        let entry = self.by_id.get(parts.id);
        // A hash nobody has: an unknown id takes as long as a wrong secret.
        let matches = parts.matches(&entry.map_or([0; 32], |entry| entry.hash()));
        let entry = entry.filter(|_| matches).ok_or(Refused::Unknown)?;
        entry.state(now_ms).map(|()| entry.key.clone())
    }

    /// A valid key of that agent, the newest.
    pub(super) fn of_agent(&self, agent: &str, now_ms: i64) -> Option<Arc<Key>> {
        let of_agent = self.by_id.values().filter(|entry| *entry.key.agent == *agent && entry.state(|| now_ms).is_ok());
        of_agent.max_by_key(|entry| entry.row.created_ms).map(|entry| entry.key.clone())
    }
}

impl Entry {
    /// A row that holds no hash matches nothing that anyone could send.
    fn hash(&self) -> [u8; 32] {
        self.row.secret_hash.as_slice().try_into().unwrap_or_default()
    }

    /// The clock is asked where the key can expire.
    fn state(&self, now_ms: impl FnOnce() -> i64) -> Result<(), Refused> {
        if self.row.revoked_ms.is_some() {
            return Err(Refused::Revoked);
        }
        match self.key.expires_ms {
            Some(expires) if expires <= now_ms() => Err(Refused::Expired),
            _ => Ok(()),
        }
    }
}

impl Key {
    fn new(row: &KeyRow) -> Arc<Self> {
        // What cannot be read allows nothing: the row was not written by us.
        let access = match row.access.as_deref().map(serde_json::from_str::<AccessList>) {
            None => Access::EVERYTHING,
            Some(list) => Access::to(list.unwrap_or_default()),
        };
        let limits = row.limits.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let KeyLimits { rate, tools } = limits.unwrap_or_default();
        let tool_rates = tools.iter().filter_map(|(tool, rate)| Some((tool.as_str().into(), form::rate(rate)?)));
        Arc::new(Self {
            id: row.id.as_str().into(),
            agent: row.agent.as_str().into(),
            tenant: row.tenant.as_str().into(),
            access,
            rate: rate.as_deref().and_then(form::rate),
            tool_rates: tool_rates.collect(),
            revoked: CancellationToken::new(),
            expires_ms: row.expires_ms,
        })
    }
}

fn same(a: &KeyRow, b: &KeyRow) -> bool {
    a.secret_hash == b.secret_hash
        && a.agent == b.agent
        && a.tenant == b.tenant
        && a.access == b.access
        && a.limits == b.limits
        && a.expires_ms == b.expires_ms
}
