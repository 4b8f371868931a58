//! Waits for a condition, and fails with its name if it is never met.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// The time between two beats of a [`StallMeter`].
const BEAT: Duration = Duration::from_millis(10);
/// A beat that comes this long after the previous one shows that the machine stopped.
const STALL_MIN: Duration = Duration::from_millis(100);

/// Measures the time in which this machine ran. A shared machine may stop for seconds, and what a test waits for stops too.
pub struct StallMeter {
    began: Instant,
    beats: Arc<Mutex<MeterBeats>>,
}

struct MeterBeats {
    last: Instant,
    stalled: Duration,
}

impl MeterBeats {
    /// Returns for how long the machine has stopped since the last beat.
    fn stall(&self) -> Duration {
        let since = self.last.elapsed();
        if since < STALL_MIN {
            return Duration::ZERO;
        }
        since - BEAT
    }
}

impl StallMeter {
    /// Starts to measure, in a separate thread.
    pub fn start() -> Self {
        let began = Instant::now();
        let beats = Arc::new(Mutex::new(MeterBeats {
            last: began,
            stalled: Duration::ZERO,
        }));
        let measured = Arc::downgrade(&beats);
        thread::spawn(move || {
            while let Some(beats) = measured.upgrade() {
                let mut beat = beats.lock();
                let stall = beat.stall();
                beat.stalled += stall;
                beat.last = Instant::now();
                drop(beat);
                drop(beats);
                thread::sleep(BEAT);
            }
        });
        Self { began, beats }
    }

    /// Returns the time since the start, without that in which the machine stopped.
    pub fn running(&self) -> Duration {
        let stalled = self.stalled();
        self.began.elapsed().saturating_sub(stalled)
    }

    /// Returns the time since the start in which the machine stopped.
    pub fn stalled(&self) -> Duration {
        let beats = self.beats.lock();
        beats.stalled + beats.stall()
    }
}

/// Waits two minutes at most, which a busy machine may need for a start.
pub async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    within(Duration::from_secs(120), what, holds).await;
}

/// Waits for the given time at most, not counting the time in which the machine stopped.
pub async fn within(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let meter = StallMeter::start();
    while !holds().await {
        assert!(meter.running() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
