//! The level of one bucket. Times are seconds, of a clock that the caller chooses.

use std::time::Duration;

/// The tolerance for rounding errors when fractions are added up.
const ROUNDING: f64 = 1e-6;

/// The rate at which tokens are added, and the size of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRate {
    /// Tokens a second.
    pub per_second: f64,
    pub burst: f64,
}

impl TokenRate {
    /// Creates a bucket of this many tokens, which fills up in `period`.
    pub fn new(tokens: u32, period: Duration) -> Self {
        let burst = f64::from(tokens.max(1));
        let seconds = period.as_secs_f64().max(1e-3);
        Self {
            per_second: burst / seconds,
            burst,
        }
    }

    /// Returns a share of the rate.
    pub fn times(self, share: f64) -> Self {
        Self {
            per_second: self.per_second * share,
            burst: self.burst * share,
        }
    }

    /// Returns the seconds until a bucket at this level has a token.
    pub fn wait(self, level: f64) -> f64 {
        match self.per_second > 0.0 {
            true => (1.0 - level).max(0.0) / self.per_second,
            false => f64::INFINITY,
        }
    }
}

/// The tokens of a bucket at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLevel {
    pub level: f64,
    pub at: f64,
}

impl TokenLevel {
    /// Adds what has come since. A clock that goes back adds nothing.
    pub fn refill(&mut self, rate: TokenRate, now: f64) {
        let passed = (now - self.at).max(0.0);
        self.level = (self.level + passed * rate.per_second).min(rate.burst);
        self.at = self.at.max(now);
    }

    /// Takes whole tokens: as many as are wanted and available.
    pub fn take(&mut self, wanted: u32) -> u32 {
        let there = (self.level + ROUNDING).floor().max(0.0);
        let taken = there.min(f64::from(wanted));
        self.level -= taken;
        taken as u32
    }

    /// Puts tokens back.
    pub fn put_back(&mut self, rate: TokenRate, tokens: u32) {
        self.level = (self.level + f64::from(tokens)).min(rate.burst);
    }
}
