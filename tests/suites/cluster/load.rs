//! Clients that call a fleet all the time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use weir_tests::{Modern, StallMeter};

/// Clients that call at once.
pub(super) const CALLERS: usize = 8;
/// The time after which a caller repeats a call. By then the system has closed the connections of a killed node, which takes a
/// while if processors are busy, and HAProxy has checked each node once more.
const PAUSE: Duration = Duration::from_secs(2);
/// HAProxy considers a node lost that does not answer a check within a second, and none does if the whole machine stops.
const STALL_MAX: Duration = Duration::from_millis(500);

/// Clients that look airports up, and repeat a call whose answer was lost.
pub(super) struct Load {
    callers: Vec<tokio::task::JoinHandle<Vec<String>>>,
    ending: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    repeated: Arc<AtomicUsize>,
    kills: Arc<AtomicUsize>,
}

impl Load {
    pub(super) fn start(url: &str, key: &str) -> Self {
        let mut load = Self {
            callers: Vec::new(),
            ending: Arc::default(),
            answered: Arc::default(),
            repeated: Arc::default(),
            kills: Arc::default(),
        };
        let meter = Arc::new(StallMeter::start());
        for _ in 0..CALLERS {
            let (client, meter) = (Modern::with_key(url, key), meter.clone());
            let (ending, kills) = (load.ending.clone(), load.kills.clone());
            let (answered, repeated) = (load.answered.clone(), load.repeated.clone());
            load.callers.push(tokio::spawn(async move {
                let mut failed = Vec::new();
                while !ending.load(Ordering::Relaxed) {
                    let mut result = look_up(&client).await;
                    if result.is_err() && meter.stalled() < STALL_MAX {
                        repeated.fetch_add(1, Ordering::Relaxed);
                    }
                    // A repeat that the next kill hits is repeated too.
                    while result.is_err() {
                        let before = kills.load(Ordering::Relaxed);
                        tokio::time::sleep(PAUSE).await;
                        result = look_up(&client).await;
                        if kills.load(Ordering::Relaxed) == before {
                            break;
                        }
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                    failed.extend(result.err());
                }
                failed
            }));
        }
        load
    }

    /// Counts a node that is about to be killed.
    pub(super) fn note_kill(&self) {
        self.kills.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the given number of further calls is answered.
    pub(super) async fn wait_for(&self, more: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        let reached = async {
            while self.answered.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let limit = Duration::from_secs(120);
        tokio::time::timeout(limit, reached)
            .await
            .expect("calls are answered");
    }

    /// Returns how many calls were answered and repeated, and what failed though it was repeated.
    pub(super) async fn end(self) -> (usize, usize, Vec<String>) {
        self.ending.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        for caller in self.callers {
            failed.extend(caller.await.expect("a caller ends"));
        }
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.answered), count(&self.repeated), failed)
    }
}

/// Looks an airport up; the error says what came instead.
async fn look_up(client: &Modern) -> Result<(), String> {
    let arguments = json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    let answer = client.request("tools/call", arguments).send().await;
    let answer = answer.map_err(|error| format!("{error:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
    match text.contains("Oslo Gardermoen Airport") {
        true => Ok(()),
        false => Err(format!("{status}: {text}")),
    }
}
