//! Makes callers that have seen only failures wait, longer each time, instead of giving them one fresh instance
//! after another, or one more try of a server that is gone.
//!
//! Failures are counted per caller and target: a failing target does not close its neighbours, and a caller who can break it
//! closes nothing for others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The number of failures in a row after which a caller waits.
const FAILURES_MAX: u32 = 5;
/// The first wait; each further failure doubles it, up to [`WAIT_MAX`].
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The bound on counted pairs of caller and target; calls beyond it are never delayed.
const FAILING_MAX: usize = 4_096;

/// The pairs of tenant and target whose last calls failed, and how long each has to wait.
#[derive(Debug, Default)]
pub struct FailureBackoff {
    failing: Mutex<HashMap<BackoffKey, FailureStreak>>,
    /// The number of failing entries: as long as nothing fails, no call takes the lock.
    count: AtomicUsize,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct BackoffKey {
    tenant: Arc<str>,
    called: Arc<str>,
}

#[derive(Debug)]
struct FailureStreak {
    in_a_row: u32,
    last: Instant,
    /// A call is under way that decides whether the wait is over.
    trial: bool,
}

/// The outcome of a call, as far as it shows the state of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Failed,
    Answered,
    /// The call proves nothing.
    Open,
}

/// The target has failed again and again for this caller, and is not called for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the last calls all failed; the next try is in {retry_after_ms} ms")]
pub struct BackedOff {
    pub retry_after_ms: u32,
}

/// A call that may run. Report its end with [`CallAttempt::ended`]; a dropped attempt proves nothing.
pub struct CallAttempt<'a> {
    backoff: &'a FailureBackoff,
    tenant: &'a Arc<str>,
    called: &'a Arc<str>,
    trial: bool,
}

impl FailureBackoff {
    /// Returns whether the call may run now; else how long its caller should wait.
    pub fn attempt<'a>(
        &'a self,
        tenant: &'a Arc<str>,
        called: &'a Arc<str>,
        now: Instant,
    ) -> Result<CallAttempt<'a>, BackedOff> {
        let mut attempt = CallAttempt {
            backoff: self,
            tenant,
            called,
            trial: false,
        };
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(failing) = self.failing.lock().get_mut(&attempt.who())
        {
            let left = failing
                .wait()
                .saturating_sub(now.saturating_duration_since(failing.last));
            if failing.trial || !left.is_zero() {
                return Err(backed_off(left.max(WAIT_MIN)));
            }
            failing.trial = failing.in_a_row >= FAILURES_MAX;
            attempt.trial = failing.trial;
        }
        Ok(attempt)
    }

    /// Returns the number of pairs of caller and target that have to wait.
    pub fn waiting(&self, now: Instant) -> usize {
        let failing = self.failing.lock();
        failing
            .values()
            .filter(|failing| failing.trial || failing.last + failing.wait() > now)
            .count()
    }
}

impl CallAttempt<'_> {
    /// Reports how the call ended. An answer ends the wait of the pair, and a failure makes the next wait longer.
    pub fn ended(self, end: AttemptOutcome, now: Instant) {
        match end {
            AttemptOutcome::Failed => self.failed(now),
            AttemptOutcome::Answered => self.answered(),
            AttemptOutcome::Open => {}
        }
    }

    fn who(&self) -> BackoffKey {
        BackoffKey {
            tenant: Arc::clone(self.tenant),
            called: Arc::clone(self.called),
        }
    }

    fn failed(&self, now: Instant) {
        let who = self.who();
        let mut all = self.backoff.failing.lock();
        if all.len() >= FAILING_MAX && !all.contains_key(&who) {
            all.retain(|_, failing| now.saturating_duration_since(failing.last) < WAIT_MAX * 2);
            if all.len() >= FAILING_MAX {
                return;
            }
        }
        let failing = all.entry(who).or_insert(FailureStreak {
            in_a_row: 0,
            last: now,
            trial: false,
        });
        // A call that ran before the wait began changes nothing.
        if failing.in_a_row < FAILURES_MAX || self.trial {
            failing.in_a_row += 1;
            failing.last = now;
        }
        self.backoff.count.store(all.len(), Ordering::Relaxed);
    }

    fn answered(&self) {
        if self.backoff.count.load(Ordering::Relaxed) > 0 {
            let mut all = self.backoff.failing.lock();
            all.remove(&self.who());
            self.backoff.count.store(all.len(), Ordering::Relaxed);
        }
    }
}

impl Drop for CallAttempt<'_> {
    fn drop(&mut self) {
        if self.trial
            && let Some(failing) = self.backoff.failing.lock().get_mut(&self.who())
        {
            failing.trial = false;
        }
    }
}

impl FailureStreak {
    /// Returns the wait from the last failure on.
    fn wait(&self) -> Duration {
        match self.in_a_row.checked_sub(FAILURES_MAX) {
            None => Duration::ZERO,
            Some(more) => WAIT_MIN.saturating_mul(1 << more.min(16)).min(WAIT_MAX),
        }
    }
}

fn backed_off(wait: Duration) -> BackedOff {
    BackedOff {
        retry_after_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that the test controls, and one caller's calls of one collection.
    struct Calls {
        backoff: FailureBackoff,
        now: Instant,
        /// The names of the caller and of its target.
        names: [Arc<str>; 2],
    }

    impl Calls {
        fn new() -> Self {
            Self {
                backoff: FailureBackoff::default(),
                now: Instant::now(),
                names: [Arc::from("one"), Arc::from("two")],
            }
        }

        fn attempt(&self, tenant: usize, called: usize) -> Result<CallAttempt<'_>, u32> {
            let attempt = self
                .backoff
                .attempt(&self.names[tenant], &self.names[called], self.now);
            attempt.map_err(|wait| wait.retry_after_ms)
        }

        fn fail(&self, times: u32) {
            for _ in 0..times {
                self.end(AttemptOutcome::Failed);
            }
        }

        fn end(&self, end: AttemptOutcome) {
            self.attempt(0, 0).expect("it may run").ended(end, self.now);
        }
    }

    #[test]
    fn each_failed_trial_doubles_the_wait_up_to_a_minute() {
        let mut calls = Calls::new();
        calls.fail(FAILURES_MAX);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(calls.attempt(0, 0).err(), Some(seconds * 1_000));
            calls.now += Duration::from_secs(u64::from(seconds));
            calls.fail(1);
        }
        assert_eq!(calls.backoff.waiting(calls.now), 1);
    }

    #[test]
    fn one_call_at_a_time_tries_again_and_an_answer_ends_the_wait() {
        let mut calls = Calls::new();
        calls.fail(FAILURES_MAX);
        calls.now += WAIT_MIN;
        let trial = calls.attempt(0, 0).expect("the wait is over");
        assert_eq!(calls.attempt(0, 0).err(), Some(1_000), "beside the trial");
        // A caller who goes away proves nothing: the next may try.
        drop(trial);
        calls.end(AttemptOutcome::Answered);
        assert_eq!(calls.backoff.waiting(calls.now), 0);
        calls.fail(FAILURES_MAX - 1);
        calls.attempt(0, 0).expect("counted from nothing");
    }

    #[test]
    fn only_failures_count_and_only_for_their_caller_and_what_is_called() {
        let calls = Calls::new();
        calls.fail(FAILURES_MAX - 1);
        calls.end(AttemptOutcome::Answered);
        calls.fail(FAILURES_MAX - 1);
        for _ in 0..20 {
            calls.end(AttemptOutcome::Open);
        }
        calls.attempt(0, 0).expect("four failures in a row");
        calls.fail(1);
        assert!(calls.attempt(0, 0).is_err());
        calls.attempt(0, 1).expect("another collection");
        calls.attempt(1, 0).expect("another caller");
    }

    #[test]
    fn what_ran_before_the_wait_began_does_not_lengthen_it() {
        let calls = Calls::new();
        let beside: Vec<_> = (0..20)
            .map(|_| calls.attempt(0, 0).expect("nothing has failed"))
            .collect();
        for attempt in beside {
            attempt.ended(AttemptOutcome::Failed, calls.now);
        }
        assert_eq!(calls.attempt(0, 0).err(), Some(1_000));
    }
}
