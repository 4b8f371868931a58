//! Decides which calls are traced.

use std::{num::NonZeroU32, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota};

use crate::config::AgentRate;

/// The share of calls that are traced, and how far callers decide.
pub(super) struct TraceSampler {
    ratio: f64,
    /// Bounds the calls that are traced because their callers are. `None`: callers have no influence.
    callers: Option<DefaultDirectRateLimiter>,
}

impl TraceSampler {
    pub(super) fn new(ratio: f64, caller_rate: AgentRate) -> Self {
        Self {
            ratio,
            callers: caller_rate.0.map(limiter),
        }
    }

    /// Decides on one call. `parent`: whether the trace of its caller is sampled, if it has one. The ratio is applied to Weir's
    /// own random bits and not to the trace's id, which callers choose.
    pub(super) fn takes(&self, parent: Option<bool>, bits: impl FnOnce() -> u64) -> bool {
        match (&self.callers, parent) {
            (Some(_), Some(false)) => false,
            (Some(limiter), Some(true)) if limiter.check().is_ok() => true,
            _ if self.ratio >= 1.0 => true,
            _ if self.ratio <= 0.0 => false,
            _ => (bits() as f64) < self.ratio * u64::MAX as f64,
        }
    }
}

fn limiter((calls, seconds): (u32, u32)) -> DefaultDirectRateLimiter {
    let calls = NonZeroU32::new(calls).unwrap_or(NonZeroU32::MIN);
    let period = Duration::from_secs(seconds.max(1).into()) / calls.get();
    let quota =
        Quota::with_period(period.max(Duration::from_nanos(1))).expect("a period above zero");
    DefaultDirectRateLimiter::direct(quota.allow_burst(calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_decide_within_their_rate() {
        let bits = || u64::MAX;
        let sampling = TraceSampler::new(0.5, AgentRate(Some((2, 86_400))));
        assert!(!sampling.takes(Some(false), || 0), "a caller keeps it out");
        let taken = [(); 4].map(|()| sampling.takes(Some(true), bits));
        assert_eq!(taken, [true, true, false, false]);
        assert!(sampling.takes(Some(true), || 0), "as one in two is");
        let closed = TraceSampler::new(0.0, AgentRate(None));
        assert!(!closed.takes(Some(true), || 0));
        let all = TraceSampler::new(1.0, AgentRate(None));
        assert!(all.takes(Some(false), bits) && all.takes(None, bits));
    }

    #[test]
    fn a_ratio_is_of_all_bits() {
        let sampling = TraceSampler::new(0.25, AgentRate(None));
        assert!(sampling.takes(None, || u64::MAX / 5));
        assert!(!sampling.takes(None, || u64::MAX / 3));
    }
}
