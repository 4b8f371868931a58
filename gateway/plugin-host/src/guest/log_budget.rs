//! Bounds what one plugin may log, over all its calls: a flood of lines would cost every other call its processor.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering},
};

use governor::{DefaultDirectRateLimiter, Quota};

const BYTES_PER_SECOND: NonZeroU32 = NonZeroU32::new(256 << 10).unwrap();
const BURST_BYTES: NonZeroU32 = NonZeroU32::new(1 << 20).unwrap();

pub(crate) struct LogBudget {
    bytes: DefaultDirectRateLimiter,
    /// Lines dropped since the last report, which comes at most once a second.
    dropped: AtomicU64,
    says: DefaultDirectRateLimiter,
}

/// The bytes that a line costs in addition to its text: an empty one is not free.
pub(crate) const LINE_BYTES: usize = 32;

impl LogBudget {
    /// Returns `true` if a line with a text of this many bytes may be written. The log reports dropped lines.
    pub(crate) fn passes(&self, plugin: &str, bytes: usize) -> bool {
        let (passes, dropped) = self.take(LINE_BYTES.saturating_add(bytes));
        if let Some(lines) = dropped {
            tracing::warn!(target: "weir::plugin", plugin, lines, "lines were dropped: the plugin logs more than 256 KB a second");
        }
        passes
    }

    /// Returns whether a line of this many bytes may be written, and how many lines were dropped before it.
    fn take(&self, bytes: usize) -> (bool, Option<u64>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        let passes = NonZeroU32::new(bytes)
            .is_some_and(|bytes| matches!(self.bytes.check_n(bytes), Ok(Ok(()))));
        if !passes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        let tell = self.dropped.load(Ordering::Relaxed) > 0 && self.says.check().is_ok();
        (
            passes,
            tell.then(|| self.dropped.swap(0, Ordering::Relaxed)),
        )
    }
}

impl Default for LogBudget {
    fn default() -> Self {
        Self {
            bytes: DefaultDirectRateLimiter::direct(
                Quota::per_second(BYTES_PER_SECOND).allow_burst(BURST_BYTES),
            ),
            dropped: AtomicU64::new(0),
            says: DefaultDirectRateLimiter::direct(Quota::per_second(NonZeroU32::MIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_said_once() {
        let budget = LogBudget::default();
        let taken: Vec<_> = (0..10_000).map(|_| budget.take(1_000)).collect();
        let written = taken.iter().filter(|(passes, _)| *passes).count();
        assert!(
            (1_000..2_000).contains(&written),
            "{written} lines of 1,000 bytes were written"
        );
        let counts: Vec<u64> = taken.iter().filter_map(|(_, dropped)| *dropped).collect();
        assert_eq!(
            counts.first(),
            Some(&1),
            "the first dropped line is reported at once"
        );
        assert!(counts.len() < 5, "reported {} times", counts.len());
    }

    #[test]
    fn an_empty_line_costs_too_and_a_vast_one_is_dropped() {
        let budget = LogBudget::default();
        assert!(budget.take(0).0);
        assert!(!budget.take(usize::MAX).0);
    }
}
