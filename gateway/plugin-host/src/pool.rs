//! Live instances: how many there may be, and the parked ones that the next call can use.
//!
//! A parked instance is only a cache. Whenever a slot or bytes are needed the one unused for longest is removed, so no call
//! waits for a slot that merely keeps an instance warm.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use ahash::RandomState;
use parking_lot::Mutex;
use tokio::sync::Notify;
use weir_admission::{OverloadError, WAIT};

use crate::{
    AdapterFailure, background,
    engine::{EngineSize, INSTANCES_MAX, LARGE_INSTANCES_MAX},
    instance::PluginInstance,
};

/// The memory of an instance that holds more takes milliseconds to give back.
const SMALL_BYTES: usize = 4 << 20;
/// A parked instance is removed when unused for this long.
const IDLE_MAX: Duration = Duration::from_secs(60);

pub(crate) struct InstancePool {
    state: Mutex<PoolState>,
    freed: Notify,
    instances_max: usize,
    parked_bytes_max: usize,
}

/// The callers that may use a parked instance.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct InstanceKey {
    pub(crate) generation: u64,
    /// The tenant; `None` for any caller (`isolation = "shared"`).
    pub(crate) tenant: Option<Arc<str>>,
}

#[derive(Default)]
struct PoolState {
    /// Running and parked.
    live: usize,
    live_large: usize,
    /// The parked instances by age: the smallest stamp has been parked for longest.
    parked: BTreeMap<u64, ParkedInstance>,
    by_key: HashMap<InstanceKey, Vec<u64>, RandomState>,
    parked_bytes: usize,
    stamp: u64,
}

struct ParkedInstance {
    key: InstanceKey,
    since: Instant,
    bytes: usize,
    instance: PluginInstance,
}

/// A slot, and in it an instance or the room for one. Dropping it drops the instance.
pub(crate) struct InstanceLease {
    pool: Arc<InstancePool>,
    size: EngineSize,
    holds_slot: bool,
    pub(crate) instance: Option<PluginInstance>,
}

impl InstancePool {
    pub(crate) fn new(instances_max: usize, parked_bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            freed: Notify::new(),
            instances_max: instances_max.clamp(1, INSTANCES_MAX),
            parked_bytes_max,
        }
    }

    /// Returns a parked instance of `key`, or an empty slot to make one in.
    pub(crate) async fn checkout(
        self: &Arc<Self>,
        key: &InstanceKey,
        size: EngineSize,
    ) -> Result<InstanceLease, AdapterFailure> {
        if let Some(lease) = self.try_checkout(key, size) {
            return Ok(lease);
        }
        tokio::time::timeout(WAIT, async {
            loop {
                let freed = self.freed.notified();
                if let Some(lease) = self.try_checkout(key, size) {
                    return lease;
                }
                freed.await;
            }
        })
        .await
        .map_err(|_| OverloadError::NOW.into())
    }

    /// Forgets the parked instances of a generation that no longer serves.
    pub(crate) fn drop_generation(&self, generation: u64) {
        let dropped: Vec<ParkedInstance> = {
            let mut state = self.state.lock();
            let stamps: Vec<u64> = state
                .parked
                .iter()
                .filter(|(_, p)| p.key.generation == generation)
                .map(|(stamp, _)| *stamp)
                .collect();
            stamps
                .into_iter()
                .filter_map(|stamp| state.take(stamp))
                .collect()
        };
        self.discard(dropped);
    }

    /// Drops instances that were not used for a while.
    pub(crate) fn drop_idle(&self) {
        let mut dropped = Vec::new();
        {
            let mut state = self.state.lock();
            while let Some((stamp, parked)) = state.parked.first_key_value() {
                if parked.since.elapsed() < IDLE_MAX {
                    break;
                }
                let stamp = *stamp;
                dropped.extend(state.take(stamp));
            }
        }
        self.discard(dropped);
    }

    /// Returns how many instances run or are parked, and how many are parked.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.live, state.parked.len())
    }

    /// Returns the linear memory of the parked instances of one generation.
    pub(crate) fn parked_bytes(&self, generation: u64) -> usize {
        let state = self.state.lock();
        state
            .parked
            .values()
            .filter(|parked| parked.key.generation == generation)
            .map(|parked| parked.bytes)
            .sum()
    }

    fn try_checkout(
        self: &Arc<Self>,
        key: &InstanceKey,
        size: EngineSize,
    ) -> Option<InstanceLease> {
        let mut state = self.state.lock();
        let newest = state
            .by_key
            .get(key)
            .and_then(|stamps| stamps.last().copied());
        if let Some(parked) = newest.and_then(|stamp| state.take(stamp)) {
            return Some(self.lease(size, Some(parked.instance)));
        }
        let full = state.live >= self.instances_max;
        let full_large = size == EngineSize::Large && state.live_large >= LARGE_INSTANCES_MAX;
        if full || full_large {
            let oldest = state
                .parked
                .iter()
                .find(|(_, parked)| !full_large || parked.instance.size() == EngineSize::Large)
                .map(|(stamp, _)| *stamp)?;
            let evicted = state.take(oldest)?;
            state.free(evicted.instance.size());
            state.occupy(size);
            drop(state);
            drop(evicted);
            return Some(self.lease(size, None));
        }
        state.occupy(size);
        Some(self.lease(size, None))
    }

    fn lease(
        self: &Arc<Self>,
        size: EngineSize,
        instance: Option<PluginInstance>,
    ) -> InstanceLease {
        InstanceLease {
            pool: Arc::clone(self),
            size,
            holds_slot: true,
            instance,
        }
    }

    fn park(&self, key: InstanceKey, instance: PluginInstance) {
        let bytes = instance.bytes();
        let mut evicted = Vec::new();
        {
            let mut state = self.state.lock();
            state.put(ParkedInstance {
                key,
                since: Instant::now(),
                bytes,
                instance,
            });
            while state.parked_bytes > self.parked_bytes_max {
                let Some(oldest) = state.parked.first_key_value().map(|(stamp, _)| *stamp) else {
                    break;
                };
                evicted.extend(state.take(oldest));
            }
        }
        self.discard(evicted);
        self.freed.notify_one();
    }

    /// Drops instances and gives their slots back.
    fn discard(&self, instances: Vec<ParkedInstance>) {
        if instances.is_empty() {
            return;
        }
        let sizes: Vec<EngineSize> = instances
            .iter()
            .map(|parked| parked.instance.size())
            .collect();
        // Unmapping their memory takes microseconds: not under the lock.
        drop(instances);
        let mut state = self.state.lock();
        for size in sizes {
            state.free(size);
        }
        drop(state);
        self.freed.notify_waiters();
    }

    fn release(&self, size: EngineSize) {
        self.state.lock().free(size);
        self.freed.notify_one();
    }
}

impl InstanceLease {
    /// Parks the instance after a clean call, for the next one.
    pub(crate) fn park(mut self, key: InstanceKey) {
        if let Some(instance) = self.instance.take() {
            // The parked instance keeps the slot.
            self.holds_slot = false;
            self.pool.park(key, instance);
        }
    }
}

impl Drop for InstanceLease {
    fn drop(&mut self) {
        if !self.holds_slot {
            return;
        }
        let (pool, size, instance) = (Arc::clone(&self.pool), self.size, self.instance.take());
        let bytes = instance.as_ref().map_or(0, PluginInstance::bytes);
        let let_go = move || {
            drop(instance);
            pool.release(size);
        };
        // A large instance is dropped in the background, since others wait for this thread.
        if bytes > SMALL_BYTES {
            background::let_go(let_go)
        } else {
            let_go()
        }
    }
}

impl PoolState {
    fn occupy(&mut self, size: EngineSize) {
        self.live += 1;
        self.live_large += usize::from(size == EngineSize::Large);
    }

    fn free(&mut self, size: EngineSize) {
        self.live -= 1;
        self.live_large -= usize::from(size == EngineSize::Large);
    }

    fn put(&mut self, parked: ParkedInstance) {
        self.stamp += 1;
        self.parked_bytes += parked.bytes;
        self.by_key
            .entry(parked.key.clone())
            .or_default()
            .push(self.stamp);
        self.parked.insert(self.stamp, parked);
    }

    fn take(&mut self, stamp: u64) -> Option<ParkedInstance> {
        let parked = self.parked.remove(&stamp)?;
        self.parked_bytes -= parked.bytes;
        if let Some(stamps) = self.by_key.get_mut(&parked.key) {
            stamps.retain(|kept| *kept != stamp);
            if stamps.is_empty() {
                self.by_key.remove(&parked.key);
            }
        }
        Some(parked)
    }
}
