//! Keeps the counts of calls in the last 15 minutes. They are readings of the existing counters, made only while a client
//! asks.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    identity::now_ms,
    telemetry::{GatewayMetrics, metrics::CallReading},
};

/// The age of the oldest figures that are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(15 * 60);
/// Readings are kept no more often.
const INTERVAL: Duration = Duration::from_millis(900);

/// The figures of the last minutes.
pub(crate) struct LiveFigures {
    kept: Mutex<KeptFigures>,
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

/// What was counted since the process started, and in a window up to now.
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
        }
    }
}

impl LiveFigures {
    /// Reads the counters, and returns what is known of the window. A span that began before the window is part of it.
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
}
