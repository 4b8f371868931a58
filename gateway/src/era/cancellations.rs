//! Calls in flight that a notification may cancel, by the id of their request.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

/// `K` is the id, with the scope in which ids are unique: the session over HTTP, the process on stdio.
pub struct CancellationTable<K: Eq + Hash>(Arc<DashMap<K, CancellationEntry>>);

struct CancellationEntry {
    /// Distinguishes this entry from a later one under the same key.
    serial: u64,
    token: CancellationToken,
    calls: usize,
}

/// A call in flight; it is removed when dropped.
pub struct CancellableCall<K: Eq + Hash> {
    cancellations: Arc<DashMap<K, CancellationEntry>>,
    key: K,
    serial: u64,
    token: CancellationToken,
}

impl<K: Eq + Hash + Clone> CancellationTable<K> {
    /// Opens a call whose token is set by [`Self::cancel`], or together with `scope`. Ids should not be in use twice at the same
    /// time; calls with the same id are cancelled together.
    pub fn open(&self, key: K, scope: &CancellationToken) -> CancellableCall<K> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let mut entry = self
            .0
            .entry(key.clone())
            .or_insert_with(|| CancellationEntry {
                serial: SERIAL.fetch_add(1, Ordering::Relaxed),
                token: scope.child_token(),
                calls: 0,
            });
        entry.calls += 1;
        CancellableCall {
            cancellations: self.0.clone(),
            key,
            serial: entry.serial,
            token: entry.token.clone(),
        }
    }

    /// Cancels a call. Returns `false` if none is in flight: it may have ended already, so this is not an error.
    pub fn cancel(&self, key: &K) -> bool {
        // The entry is removed before the token is set: a new call with the same id must not start cancelled.
        let entry = self.0.remove(key);
        if let Some((_, entry)) = &entry {
            entry.token.cancel();
        }
        entry.is_some()
    }

    /// Returns `true` if a call with this id is in flight.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the number of ids with calls in flight.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if no call is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Eq + Hash> Default for CancellationTable<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> CancellableCall<K> {
    /// Returns the token that is set when the call is cancelled.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl<K: Eq + Hash> Drop for CancellableCall<K> {
    fn drop(&mut self) {
        self.cancellations.remove_if_mut(&self.key, |_, entry| {
            if entry.serial != self.serial {
                return false;
            }
            entry.calls -= 1;
            entry.calls == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_cancelled_by_its_own_id_alone() {
        let calls = CancellationTable::default();
        let scope = CancellationToken::new();
        let (one, text) = (calls.open("1", &scope), calls.open("\"1\"", &scope));
        assert!(calls.cancel(&"\"1\"") && !calls.cancel(&"\"1\"") && !calls.cancel(&"2"));
        assert!(text.token().is_cancelled() && !one.token().is_cancelled());
        let again = calls.open("\"1\"", &scope);
        assert!(!again.token().is_cancelled());
        drop(text);
        assert!(calls.cancel(&"\"1\"") && again.token().is_cancelled());
        drop(again);
        scope.cancel();
        assert!(one.token().is_cancelled());
        drop(one);
        assert!(calls.is_empty());
    }

    #[test]
    fn an_id_used_twice_leaves_nothing_behind() {
        let calls = CancellationTable::default();
        let scope = CancellationToken::new();
        let (first, second) = (calls.open(1, &scope), calls.open(1, &scope));
        drop(first);
        assert!(calls.contains(&1));
        drop(second);
        assert!(calls.is_empty());
    }
}
