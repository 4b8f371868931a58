//! How long a guest has run, and whose turn it is.
//!
//! Only the time in which the guest itself runs is counted, not what it waits for. A guest that is still running
//! after its first tick is busy: from then on it runs only in its turn, one busy call per plugin and never on every
//! core at once, so that short calls of others find a free one.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{engine::TICK, guest::Profile};

pub(crate) struct Meter {
    state: Mutex<State>,
    plugin_turn: Arc<Semaphore>,
    host_turn: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    used: Duration,
    since: Option<Instant>,
    turn: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Meter {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            state: Mutex::default(),
            plugin_turn: Arc::clone(&profile.plugin_turn),
            host_turn: Arc::clone(&profile.host_turn),
        }
    }

    pub(crate) fn resume(&self) {
        self.lock().since = Some(Instant::now());
    }

    /// The guest stops running: its time so far. Gives up its turn.
    pub(crate) fn pause(&self) -> Duration {
        let mut state = self.lock();
        if let Some(since) = state.since.take() {
            state.used += since.elapsed();
        }
        state.turn = None;
        state.used
    }

    /// Lets others run, then waits until a busy guest may go on.
    pub(crate) async fn next_turn(self: Arc<Self>, used: Duration) {
        tokio::task::yield_now().await;
        if used > TICK {
            let plugin = Arc::clone(&self.plugin_turn).acquire_owned().await;
            let host = Arc::clone(&self.host_turn).acquire_owned().await;
            self.lock().turn = plugin.ok().zip(host.ok());
        }
        self.resume();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
