//! Carries what a guest reports on its way, from its thread to the stream of its call.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;
use weir_plugin_host::Progress;

use crate::wire::{notification, write_string};

/// Updates waiting for a slow reader; beyond it the newest replaces the one before.
const WAITING_MAX: usize = 16;
const MESSAGE_MAX_CHARS: usize = 512;

/// Returns the guest's end and the stream's end for one call. `token` is JSON.
pub fn progress(token: &str) -> (Arc<dyn Progress>, ProgressUpdates) {
    channel(Some(token.into()))
}

/// Returns both ends for a caller that speaks no MCP: each update is the object `{progress, total?, message?}` alone.
pub fn bare_progress() -> (Arc<dyn Progress>, ProgressUpdates) {
    channel(None)
}

fn channel(token: Option<Box<str>>) -> (Arc<dyn Progress>, ProgressUpdates) {
    let shared = Arc::new(Shared::default());
    (Arc::new(Reporter(shared.clone())), ProgressUpdates { shared, token })
}

/// The notifications that are due.
pub struct ProgressUpdates {
    shared: Arc<Shared>,
    /// The token as JSON; `None` if the updates are no notifications of MCP.
    token: Option<Box<str>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    updates: VecDeque<Update>,
    last: Option<f64>,
}

struct Update {
    done: f64,
    total: Option<f64>,
    message: String,
}

struct Reporter(Arc<Shared>);

impl Progress for Reporter {
    /// Reports progress, and never blocks. A number that does not increase is dropped, since the protocol wants
    /// strictly increasing ones.
    fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let mut waiting = self.0.lock();
        if !done.is_finite() || waiting.last.is_some_and(|last| done <= last) {
            return;
        }
        waiting.last = Some(done);
        if waiting.updates.len() == WAITING_MAX {
            waiting.updates.pop_back();
        }
        let message = message.chars().take(MESSAGE_MAX_CHARS).collect();
        waiting.updates.push_back(Update { done, total: total.filter(|total| total.is_finite()), message });
        drop(waiting);
        self.0.arrived.notify_one();
    }
}

impl ProgressUpdates {
    /// Returns when there is something to take. May be dropped and called again.
    pub async fn arrived(&self) {
        while self.shared.lock().updates.is_empty() {
            self.shared.arrived.notified().await;
        }
    }

    /// Returns the notifications reported since the last time, in order.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let updates = std::mem::take(&mut self.shared.lock().updates);
        updates.into_iter().map(|update| self.notification(&update)).collect()
    }

    fn notification(&self, update: &Update) -> Vec<u8> {
        let mut params = vec![b'{'];
        if let Some(token) = &self.token {
            params.extend_from_slice(format!(r#""progressToken":{token},"#).as_bytes());
        }
        params.extend_from_slice(format!(r#""progress":{}"#, update.done).as_bytes());
        if let Some(total) = update.total {
            params.extend_from_slice(format!(r#","total":{total}"#).as_bytes());
        }
        if !update.message.is_empty() {
            params.extend_from_slice(br#","message":"#);
            write_string(&mut params, &update.message);
        }
        params.push(b'}');
        if self.token.is_none() {
            return params;
        }
        let params = String::from_utf8(params).expect("made of JSON text");
        notification("notifications/progress", Some(&params))
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(updates: &ProgressUpdates) -> Vec<serde_json::Value> {
        let params = |bytes: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["params"].take();
        updates.take().into_iter().map(params).collect()
    }

    #[tokio::test]
    async fn only_what_increases_is_sent() {
        let (guest, updates) = progress("\"p\"");
        for done in [0.0, 0.0, f64::NAN, 2.5, 1.0, f64::INFINITY, 1e21] {
            guest.report(done, Some(100.0), "");
        }
        updates.arrived().await;
        let sent = taken(&updates);
        assert_eq!(
            sent.iter().map(|update| update["progress"].as_f64().unwrap()).collect::<Vec<_>>(),
            [0.0, 2.5, 1e21]
        );
        assert_eq!(sent[0], serde_json::json!({ "progressToken": "p", "progress": 0, "total": 100 }));
    }

    #[tokio::test]
    async fn a_guest_that_reports_without_end_fills_no_memory() {
        let (guest, updates) = progress("7");
        for done in 0..10_000 {
            guest.report(done.into(), None, &"é".repeat(10_000));
        }
        let sent = taken(&updates);
        assert_eq!(sent.len(), WAITING_MAX);
        assert_eq!(sent[WAITING_MAX - 1]["progress"], 9_999);
        assert_eq!(sent[0]["message"].as_str().unwrap().chars().count(), MESSAGE_MAX_CHARS);
        assert!(taken(&updates).is_empty());
    }
}
