//! The time of the database with the state, which all nodes have in common: the clock of a machine may be set while it serves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use super::GatewayState;

/// The most that the clock of a node may be off that of the database.
pub(super) const CLOCK_OFFSET_MAX_MS: i64 = 2_000;
/// An answer that took longer is too imprecise about the time.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// The time for which an answer counts. The monotonic clock does not advance while a machine sleeps.
const ANSWER_KEPT_MS: i64 = 5_000;
/// Before the first answer.
const UNKNOWN: i64 = i64::MIN;

/// The time of the database, counted on by a clock that is never set.
#[derive(Debug)]
pub struct SharedClock {
    begun: Instant,
    /// What the database had when this clock began, in milliseconds since 1970.
    begun_ms: AtomicI64,
    /// How long after its begin this clock had its last answer, in milliseconds.
    noted_ms: AtomicI64,
    is_off: AtomicBool,
}

impl Default for SharedClock {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            begun_ms: AtomicI64::new(UNKNOWN),
            noted_ms: AtomicI64::new(0),
            is_off: AtomicBool::new(false),
        }
    }
}

impl SharedClock {
    /// Returns the time in milliseconds since 1970: that of this machine, or that of the database if it is reachable and the two
    /// are further apart than is allowed for a machine that joins.
    pub fn now_ms(&self) -> i64 {
        let here = local_ms();
        match self.server_ms() {
            Some(there) if is_off(here, there) => there,
            _ => here,
        }
    }

    /// Notes the time that the database gave when it was asked at `asked`.
    pub(super) fn note(&self, asked: Instant, there_ms: i64) {
        if asked.elapsed() > ANSWER_MAX {
            return;
        }
        let counted_ms = self.counted_ms();
        self.begun_ms
            .store(there_ms.saturating_sub(counted_ms), Relaxed);
        self.noted_ms.store(counted_ms, Relaxed);
        let here_ms = local_ms();
        let is_off = is_off(here_ms, there_ms);
        if self.is_off.swap(is_off, Relaxed) != is_off {
            let ahead_ms = here_ms.saturating_sub(there_ms);
            match is_off {
                true => tracing::error!(
                    ahead_ms,
                    "the clock of this machine is another one than that of the database, whose time counts: set both by NTP"
                ),
                false => {
                    tracing::info!("the clock of this machine agrees with that of the database");
                }
            }
        }
    }

    fn server_ms(&self) -> Option<i64> {
        let (begun_ms, counted_ms) = (self.begun_ms.load(Relaxed), self.counted_ms());
        let is_known = begun_ms != UNKNOWN
            && counted_ms.saturating_sub(self.noted_ms.load(Relaxed)) <= ANSWER_KEPT_MS;
        is_known.then(|| begun_ms.saturating_add(counted_ms))
    }

    fn counted_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl GatewayState {
    /// Returns the clock of the database, if several machines may share this state.
    pub fn shared_clock(&self) -> Option<Arc<SharedClock>> {
        self.is_shared().then(|| self.node.clock.clone())
    }
}

fn is_off(here_ms: i64, there_ms: i64) -> bool {
    here_ms.abs_diff(there_ms) > CLOCK_OFFSET_MAX_MS.unsigned_abs()
}

/// Returns the time of this machine, in milliseconds since 1970.
pub(super) fn local_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn the_time_of_the_database_counts_where_the_clocks_are_apart() {
        let clock = SharedClock::default();
        let ahead_ms = || clock.now_ms() - local_ms();
        assert!(ahead_ms().abs() < 1_000, "nothing is known yet");
        clock.note(Instant::now(), local_ms() + 1_000);
        assert!(ahead_ms().abs() < 1_000, "they are near enough");
        for apart_ms in [HOUR_MS, -HOUR_MS] {
            clock.note(Instant::now(), local_ms() + apart_ms);
            assert!((ahead_ms() - apart_ms).abs() < 1_000);
        }
        clock.note(Instant::now(), local_ms());
        assert!(ahead_ms().abs() < 1_000, "they agree again");
    }

    #[test]
    fn the_time_of_the_machine_counts_while_the_database_is_away() {
        let clock = SharedClock::default();
        clock.note(Instant::now(), local_ms() + HOUR_MS);
        clock.noted_ms.fetch_sub(ANSWER_KEPT_MS * 2, Relaxed);
        assert!((clock.now_ms() - local_ms()).abs() < 1_000);
    }

    #[test]
    fn an_answer_that_took_long_says_nothing() {
        let clock = SharedClock::default();
        let asked = Instant::now()
            .checked_sub(ANSWER_MAX * 2)
            .expect("the machine has run for a second");
        clock.note(asked, local_ms() + HOUR_MS);
        assert!((clock.now_ms() - local_ms()).abs() < 1_000);
    }
}
