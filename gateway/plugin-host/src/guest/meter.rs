//! Measures how long a guest has run, and decides whose turn it is.
//!
//! Only the time in which the guest itself runs is counted, without its waits. A guest yields at every tick; one that has run
//! for long is busy: from then on it runs in the background and only in its turn, busy calls of one plugin on half of the
//! cores and all of them never on every core at once, so that short calls of others find a free one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::guest::GuestProfile;

/// The time a call may run before it is busy.
const BUSY_AFTER: Duration = Duration::from_millis(2);
/// The most that counts of a span in which a guest was not busy. It reaches a tick each millisecond: for the rest of a longer
/// span its thread did not run, since the whole machine may have stopped.
const BEGAN_MAX: Duration = Duration::from_millis(20);
/// The length of a turn: shorter ones would move from thread to thread more often than they run.
const TURN: Duration = Duration::from_millis(20);

pub(crate) struct GuestMeter {
    state: Mutex<MeterState>,
    busy: AtomicBool,
    plugin_turn: Arc<Semaphore>,
    host_turn: Arc<Semaphore>,
}

#[derive(Default)]
struct MeterState {
    used: Duration,
    since: Option<MeterStart>,
    turn: Option<ProcessorTurn>,
}

struct ProcessorTurn {
    /// The end of the turn, in time used.
    ends: Duration,
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// The time when the guest resumed, by the fastest clock that is exact.
enum MeterStart {
    /// A short call is hardly ever interrupted.
    Began(Instant),
    /// A thread in the background is interrupted by others: its own processor time counts.
    Thread(Duration),
}

impl GuestMeter {
    pub(crate) fn new(profile: &GuestProfile) -> Self {
        Self {
            state: Mutex::default(),
            busy: AtomicBool::new(false),
            plugin_turn: Arc::clone(&profile.plugin_turn),
            host_turn: Arc::clone(&profile.host_turn),
        }
    }

    pub(crate) fn resume(&self) {
        let since = if self.is_busy() {
            MeterStart::Thread(thread_time())
        } else {
            MeterStart::Began(Instant::now())
        };
        self.state.lock().since = Some(since);
    }

    /// Stops the guest's time, and ends its turn.
    pub(crate) fn pause(&self) {
        let mut state = self.state.lock();
        state.stop();
        state.turn = None;
    }

    /// Returns `true` if the guest has neither paused nor reached a tick: it waits for something else, such as a clock
    /// of WASI.
    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().since.is_some()
    }

    /// Stops the guest's time at a tick, and returns the time so far.
    pub(crate) fn tick(&self) -> Duration {
        let mut state = self.state.lock();
        state.stop();
        state.used
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Lets others run, then waits until a busy guest may continue.
    pub(crate) async fn next_turn(self: Arc<Self>, used: Duration) {
        let busy = used > BUSY_AFTER;
        self.busy.store(busy, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if busy && !self.has_turn(used) {
            let plugin = Arc::clone(&self.plugin_turn).acquire_owned().await;
            let host = Arc::clone(&self.host_turn).acquire_owned().await;
            self.state.lock().turn = plugin.ok().zip(host.ok()).map(|permits| ProcessorTurn {
                ends: used + TURN,
                _permits: permits,
            });
        }
        self.resume();
    }

    /// Ends a turn that has lasted long enough.
    fn has_turn(&self, used: Duration) -> bool {
        let mut state = self.state.lock();
        state.turn.take_if(|turn| turn.ends <= used);
        state.turn.is_some()
    }
}

impl MeterState {
    fn stop(&mut self) {
        if let Some(since) = self.since.take() {
            self.used += since.elapsed();
        }
    }
}

impl MeterStart {
    fn elapsed(&self) -> Duration {
        match self {
            Self::Began(began) => began.elapsed().min(BEGAN_MAX),
            Self::Thread(then) => thread_time().saturating_sub(*then),
        }
    }
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that sleeps is not run, as where all of the machine stops.
    #[test]
    fn a_time_in_which_its_thread_was_not_run_is_none_of_a_guest() {
        let turn = || Arc::new(Semaphore::new(1));
        let meter = GuestMeter {
            state: Mutex::default(),
            busy: AtomicBool::new(false),
            plugin_turn: turn(),
            host_turn: turn(),
        };
        let mut used = Duration::ZERO;
        for is_busy in [false, true] {
            meter.busy.store(is_busy, Ordering::Relaxed);
            meter.resume();
            std::thread::sleep(Duration::from_millis(300));
            let more = meter.tick() - used;
            assert!(more < Duration::from_millis(100), "{is_busy}: {more:?}");
            used += more;
        }
    }
}
