//! Bounds how many calls of one plugin or server run at once, in total and for one tenant.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ahash::RandomState;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The time a call waits for its turn before it is refused: long enough for a burst of short calls.
pub const WAIT: Duration = Duration::from_millis(250);
/// The time after which a refused call may try again.
const RETRY_AFTER_MS: u32 = 500;
/// Calls that may wait, for each that may run.
const WAITING_PER_RUNNING: usize = 8;
/// Tenants beyond these are looked through, and the idle ones forgotten.
const TENANTS_KEPT: usize = 1024;

/// Gives out the turns of one plugin or server.
pub struct ConcurrencyLimiter {
    all: Arc<Semaphore>,
    /// The tenants with calls running or waiting, and a few that had some.
    tenants: Mutex<HashMap<Arc<str>, Arc<Semaphore>, RandomState>>,
    tenant_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// The tenant's turn and the one among all, kept while the call runs.
pub struct ConcurrencyPermit {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// The error for a call whose turn did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls in flight")]
pub struct OverloadError {
    pub retry_after_ms: u32,
}

impl OverloadError {
    pub const NOW: Self = Self {
        retry_after_ms: RETRY_AFTER_MS,
    };
}

impl ConcurrencyLimiter {
    /// Creates turns for `max` calls at once, of which one tenant may have `tenant_max`. The number of waiting
    /// calls is bounded too.
    pub fn new(max: usize, tenant_max: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(max)),
            tenants: Mutex::default(),
            tenant_max,
            waiting: AtomicUsize::new(0),
            waiting_max: max.saturating_mul(WAITING_PER_RUNNING),
        }
    }

    /// Takes a turn. The tenant's own comes first, so that one tenant's queue does not delay the others.
    pub async fn take(&self, tenant: &Arc<str>) -> Result<ConcurrencyPermit, OverloadError> {
        let own = {
            let mut tenants = self.tenants.lock();
            if tenants.len() > TENANTS_KEPT {
                // Only the map refers to these: no call runs or waits.
                tenants.retain(|_, own| Arc::strong_count(own) > 1);
            }
            let own = tenants
                .entry(Arc::clone(tenant))
                .or_insert_with(|| Arc::new(Semaphore::new(self.tenant_max)));
            Arc::clone(own)
        };
        let all = Arc::clone(&self.all);
        // If only one of the two is free, it is released immediately: a call that waits must not keep a turn that
        // another could use.
        let both = Arc::clone(&own)
            .try_acquire_owned()
            .ok()
            .zip(Arc::clone(&all).try_acquire_owned().ok());
        let _permits = match both {
            Some(both) => both,
            None => self.wait(own, all).await?,
        };
        Ok(ConcurrencyPermit { _permits })
    }

    async fn wait(
        &self,
        own: Arc<Semaphore>,
        all: Arc<Semaphore>,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), OverloadError> {
        let _waiting =
            WaiterGuard::enter(&self.waiting, self.waiting_max).ok_or(OverloadError::NOW)?;
        let turn = async {
            let own = own.acquire_owned().await;
            let all = all.acquire_owned().await;
            own.ok().zip(all.ok())
        };
        tokio::time::timeout(WAIT, turn)
            .await
            .ok()
            .flatten()
            .ok_or(OverloadError::NOW)
    }
}

struct WaiterGuard<'a>(&'a AtomicUsize);

impl<'a> WaiterGuard<'a> {
    fn enter(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let entered = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) < max {
            Some(entered)
        } else {
            None
        }
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_tenant_cannot_take_every_turn() {
        let turns = Arc::new(ConcurrencyLimiter::new(4, 2));
        let (one, two): (Arc<str>, Arc<str>) = (Arc::from("one"), Arc::from("two"));
        let _held = [
            turns.take(&one).await.unwrap(),
            turns.take(&one).await.unwrap(),
        ];
        assert!(matches!(turns.take(&one).await, Err(OverloadError { .. })));
        turns
            .take(&two)
            .await
            .expect("the other tenant has its own turn");
    }

    #[tokio::test]
    async fn a_waiting_call_takes_the_turn_of_a_finished_one() {
        let turns = Arc::new(ConcurrencyLimiter::new(1, 1));
        let tenant: Arc<str> = Arc::from("one");
        let held = turns.take(&tenant).await.unwrap();
        let waiting = tokio::spawn({
            let (turns, tenant) = (Arc::clone(&turns), Arc::clone(&tenant));
            async move { turns.take(&tenant).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(held);
        waiting.await.unwrap().expect("its turn has come");
    }

    /// A tenant that waits behind another one's call runs when that is over, and its own turn does not block it.
    #[tokio::test]
    async fn a_waiting_call_holds_no_turn() {
        let turns = ConcurrencyLimiter::new(1, 1);
        let held = turns.take(&Arc::from("one")).await.unwrap();
        let two: Arc<str> = Arc::from("two");
        let mut waiting = std::pin::pin!(turns.take(&two));
        assert!(
            tokio::time::timeout(WAIT / 10, waiting.as_mut())
                .await
                .is_err(),
            "it waits"
        );
        drop(held);
        waiting.await.expect("its turn has come");
        let turns = ConcurrencyLimiter::new(2, 1);
        let _held = turns.take(&two).await.unwrap();
        let mut waiting = std::pin::pin!(turns.take(&two));
        assert!(
            tokio::time::timeout(WAIT / 10, waiting.as_mut())
                .await
                .is_err(),
            "it waits for its own turn"
        );
        turns
            .take(&Arc::from("one"))
            .await
            .expect("the other turn is free meanwhile");
    }

    #[tokio::test]
    async fn idle_tenants_are_forgotten() {
        let turns = ConcurrencyLimiter::new(1, 1);
        for number in 0..3 * TENANTS_KEPT {
            turns.take(&Arc::from(number.to_string())).await.unwrap();
        }
        assert!(turns.tenants.lock().len() <= TENANTS_KEPT + 1);
    }
}
