//! Keeps the counts of calls in the last 15 minutes. They are readings of the existing counters, taken only while a client asks.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    identity::now_ms,
    telemetry::{
        GatewayMetrics,
        metrics::{CallReading, ToolKey},
    },
};

/// The age of the oldest figures that are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(15 * 60);
/// The least time between two readings that are kept.
const INTERVAL: Duration = Duration::from_millis(900);
/// The period by which calls of tools are counted.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// Hours of a day before the current one.
const HOURS_KEPT: usize = 23;

/// The figures of the last minutes, and the calls of tools of the last day.
pub(crate) struct LiveFigures {
    kept: Mutex<KeptFigures>,
    day: Mutex<DayFigures>,
}

/// The calls of tools, by the hour.
#[derive(Default)]
struct DayFigures {
    /// The counters at the end of the last hour.
    last: HashMap<ToolKey, u64>,
    /// The calls of each hour by tool, over all versions; the oldest first.
    hours: VecDeque<HashMap<Arc<str>, u64>>,
}

struct KeptFigures {
    /// The counters when they were last read.
    last: Arc<CallReading>,
    read: Instant,
    spans: VecDeque<FigureSpan>,
}

/// Counts of calls between two readings.
#[derive(Clone)]
pub(crate) struct FigureSpan {
    ended: Instant,
    pub ended_ms: i64,
    pub took: Duration,
    pub counted: CallReading,
}

/// The counts since the process started, and those in a window up to now.
pub(crate) struct FigureLook {
    pub since_start: Arc<CallReading>,
    /// The oldest first.
    pub spans: Vec<FigureSpan>,
}

impl Default for LiveFigures {
    fn default() -> Self {
        let kept = KeptFigures {
            last: Arc::default(),
            read: Instant::now(),
            spans: VecDeque::new(),
        };
        Self {
            kept: Mutex::new(kept),
            day: Mutex::default(),
        }
    }
}

impl LiveFigures {
    /// Reads the counters, and returns the counts of the window. A span that began before the window is included.
    pub(crate) fn look(&self, metrics: &GatewayMetrics, window: Duration) -> FigureLook {
        let now = Arc::new(metrics.read_calls());
        let at = Instant::now();
        let mut kept = self.kept.lock();
        let newest = FigureSpan {
            ended: at,
            ended_ms: now_ms(),
            took: at.saturating_duration_since(kept.read),
            counted: now.since(&kept.last),
        };
        let is_within =
            |span: &&FigureSpan, age: Duration| at.saturating_duration_since(span.ended) < age;
        let spans = kept.spans.iter().filter(|span| is_within(span, window));
        let spans = spans.cloned().chain([newest.clone()]).collect();
        if newest.took >= INTERVAL {
            kept.spans.retain(|span| is_within(&span, KEPT));
            kept.spans.push_back(newest);
            (kept.last, kept.read) = (now.clone(), at);
        }
        FigureLook {
            since_start: now,
            spans,
        }
    }

    /// Closes the current hour of tool calls.
    pub(crate) fn end_hour(&self, metrics: &GatewayMetrics) {
        self.day.lock().end_hour(metrics.count_tools());
    }

    /// Returns the calls of each tool in the last 24 hours, counted by whole hours of this process.
    pub(crate) fn count_day(&self, metrics: &GatewayMetrics) -> HashMap<Arc<str>, u64> {
        self.day.lock().count(&metrics.count_tools())
    }
}

impl DayFigures {
    fn end_hour(&mut self, now: HashMap<ToolKey, u64>) {
        self.hours.push_back(self.count_hour(&now));
        while self.hours.len() > HOURS_KEPT {
            self.hours.pop_front();
        }
        self.last = now;
    }

    fn count(&self, now: &HashMap<ToolKey, u64>) -> HashMap<Arc<str>, u64> {
        let mut day = self.count_hour(now);
        for (tool, calls) in self.hours.iter().flatten() {
            *day.entry(tool.clone()).or_default() += calls;
        }
        day
    }

    /// Returns the calls since the last hour ended. A series that was dropped meanwhile counts nothing.
    fn count_hour(&self, now: &HashMap<ToolKey, u64>) -> HashMap<Arc<str>, u64> {
        let mut hour: HashMap<Arc<str>, u64> = HashMap::new();
        for (key, calls) in now {
            let new = calls.saturating_sub(self.last.get(key).copied().unwrap_or(0));
            if new > 0 {
                *hour.entry(key.0.clone()).or_default() += new;
            }
        }
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_the_calls_of_all_versions_and_forgets_the_hours_before_it() {
        let counters = |one: u64, two: u64| {
            let key = |version: &str| -> ToolKey { ("find".into(), version.into()) };
            HashMap::from([(key("desk@1.0.0"), one), (key("desk@2.0.0"), two)])
        };
        let mut day = DayFigures::default();
        assert_eq!(day.count(&counters(3, 2))["find"], 5);
        day.end_hour(counters(3, 2));
        assert_eq!(day.count(&counters(3, 6))["find"], 9);
        for _ in 1..HOURS_KEPT {
            day.end_hour(counters(3, 6));
        }
        assert_eq!(day.count(&counters(4, 6))["find"], 10);
        day.end_hour(counters(4, 6));
        assert_eq!(day.count(&counters(4, 6))["find"], 5);
    }
}
