//! Waits for what comes by itself, and fails with what did not come.

use std::time::{Duration, Instant};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Waits two minutes at most, which a busy machine may take for a start.
pub async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    within(Duration::from_secs(120), what, holds).await;
}

pub async fn within(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
