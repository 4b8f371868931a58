//! Counts the calls of keys, until they are written into the state.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use weir_state::KeyUseRow;

use super::CallerGrant;

/// The calls of one key that are not written down yet.
#[derive(Debug, Default)]
pub struct UseCount {
    calls: AtomicU32,
    last_ms: AtomicI64,
}

/// The keys that have calls which are not written down yet.
#[derive(Default)]
pub(super) struct UsedKeys {
    waiting: Mutex<Vec<Arc<dyn CallerGrant>>>,
    any: Notify,
}

impl UseCount {
    /// Counts calls; returns `true` for the first ones that wait to be written down.
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

    /// Takes the counts since the last time, with the grants that they are of.
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

    /// Counts again what could not be written.
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
