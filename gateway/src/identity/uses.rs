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
    /// Counts a call; returns `true` for the first one that waits to be written down.
    fn add(&self, at_ms: i64) -> bool {
        self.last_ms.fetch_max(at_ms, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed) == 0
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
        if grant.uses().is_some_and(|count| count.add(at_ms)) {
            self.waiting.lock().push(Arc::clone(grant));
            self.any.notify_one();
        }
    }

    /// Waits until a key was used.
    pub(super) async fn used(&self) {
        self.any.notified().await;
    }

    /// Takes the counts since the last time.
    pub(super) fn take(&self) -> Vec<KeyUseRow> {
        let waiting = mem::take(&mut *self.waiting.lock());
        let row = |grant: &Arc<dyn CallerGrant>| {
            let (calls, last_ms) = grant.uses()?.take();
            Some(KeyUseRow {
                key: grant.id().to_owned(),
                calls: i64::from(calls),
                last_ms,
            })
        };
        waiting.iter().filter_map(row).collect()
    }
}
