//! Readiness: whether the state can be read, and the process is not about to end. A state that several machines share may be
//! unavailable for a while: the last known one is served meanwhile.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Mutex;
use weir_state::GatewayState;

/// The time for which an answer of the state is kept, since anyone may ask.
const LOOK_MAX_AGE: Duration = Duration::from_millis(500);

/// Whether the gateway is to be sent calls.
#[derive(Default)]
pub struct GatewayReadiness {
    state: OnceLock<Arc<GatewayState>>,
    looked: Mutex<Option<(Instant, bool)>>,
    is_ending: AtomicBool,
    is_stale: AtomicBool,
}

impl GatewayReadiness {
    /// Sets the state to check. Only the first call has an effect.
    pub fn set_state(&self, state: Arc<GatewayState>) {
        let _ = self.state.set(state); // there is one in a process
    }

    /// Notes that the process is about to end: it keeps serving for a while, but calls should go to others.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Returns `true` once the end of the process has been announced.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Returns `true` while the state has been unreachable for too long: agents are then not served.
    pub fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// Sets whether the state has been unreachable for too long; returns the previous value.
    pub(crate) fn set_stale(&self, is_stale: bool) -> bool {
        self.is_stale.swap(is_stale, Ordering::Relaxed)
    }

    /// Returns why no calls should be sent, as far as the state and the end of the process are concerned.
    pub async fn fault(&self) -> Option<&'static str> {
        if self.is_ending() {
            return Some("the gateway is about to end");
        }
        if self.is_stale() {
            return Some("the state could not be reached for too long");
        }
        let state = self.state.get().filter(|state| !state.is_shared())?;
        let mut looked = self.looked.lock().await;
        let known = looked.filter(|(at, _)| at.elapsed() < LOOK_MAX_AGE);
        let is_healthy = match known {
            Some((_, is_healthy)) => is_healthy,
            None => {
                let is_healthy = state.is_healthy().await;
                *looked = Some((Instant::now(), is_healthy));
                is_healthy
            }
        };
        (!is_healthy).then_some("the state cannot be read")
    }
}
