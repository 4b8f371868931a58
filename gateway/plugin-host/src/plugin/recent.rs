//! Keeps how the last calls of one build ended: whether it fails now, not whether it ever did.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{AdapterFailure, RecentCalls};

/// One bit for each call, the latest lowest, set if it failed; a further bit above them says where they begin.
#[derive(Debug)]
pub(crate) struct OutcomeWindow(AtomicU64);

const FULL: u64 = 1 << 63;

impl Default for OutcomeWindow {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl OutcomeWindow {
    /// Counts a call that has come back. Calls in which the plugin had no part do not count.
    pub(crate) fn ended<T>(&self, result: &Result<T, AdapterFailure>) {
        let failed = match result {
            Ok(_) | Err(AdapterFailure::Guest(_)) => 0,
            Err(
                AdapterFailure::Failed(_) | AdapterFailure::OverLimit(_) | AdapterFailure::Timeout,
            ) => 1,
            Err(_) => return,
        };
        let next = |bits: u64| Some((bits << 1) | failed | (bits & FULL));
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    pub(crate) fn counted(&self) -> RecentCalls {
        let bits = self.0.load(Ordering::Relaxed);
        RecentCalls {
            calls: bits.ilog2(),
            failed: bits.count_ones() - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixty_three_are_counted() {
        let latest = OutcomeWindow::default();
        let counted = || (latest.counted().calls, latest.counted().failed);
        assert_eq!(counted(), (0, 0));
        for _ in 0..40 {
            latest.ended::<()>(&Err(AdapterFailure::Timeout));
        }
        latest.ended::<()>(&Err(AdapterFailure::Cancelled));
        assert_eq!(counted(), (40, 40));
        for _ in 0..40 {
            latest.ended(&Ok(()));
        }
        assert_eq!(counted(), (63, 23));
        for _ in 0..40 {
            latest.ended(&Ok(()));
        }
        assert_eq!(counted(), (63, 0));
    }
}
