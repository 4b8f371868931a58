//! Events for watchers of the gateway. While there is no subscriber, no event is made.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde::Serialize;
use tokio::sync::broadcast;

/// Events that wait for a slow subscriber; beyond it the subscriber loses the oldest.
const WAITING_MAX: usize = 256;

/// An event: its name, and its data as JSON.
#[derive(Clone, Debug)]
pub struct LiveEvent {
    pub name: &'static str,
    pub data: Arc<str>,
}

impl LiveEvent {
    /// Creates an event whose data is JSON.
    ///
    /// # Panics
    ///
    /// Panics if `data` has no JSON form.
    pub fn new(name: &'static str, data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).expect("plain data");
        Self {
            name,
            data: data.into(),
        }
    }
}

/// A call that has ended.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EndedCall<'a> {
    pub call_id: &'a str,
    pub agent: &'a str,
    /// Null: the agent sees no such tool.
    pub tool: Option<&'a str>,
    /// `contract@version`; null where the tool belongs to no contract.
    pub contract: Option<&'a str>,
    /// ok, refused, failed, cancelled or unknown.
    pub outcome: &'static str,
    /// The error code; null where it went well.
    pub code: Option<&'static str>,
    pub ms: f64,
}

/// Sends events to all subscribers.
pub struct EventFeed {
    sender: broadcast::Sender<LiveEvent>,
    /// Calls that may be sent until the next [`allow_calls`](Self::allow_calls): 0 while there is no subscriber.
    calls_left: AtomicU32,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(WAITING_MAX),
            calls_left: AtomicU32::new(0),
        }
    }
}

impl EventFeed {
    /// Returns a receiver of the events from now on. One that is too slow loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<LiveEvent> {
        self.sender.subscribe()
    }

    /// Returns `true` if an event would reach a receiver.
    pub fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Sends an event; without a subscriber it is dropped.
    pub fn send(&self, event: LiveEvent) {
        let _ = self.sender.send(event);
    }

    /// Sets how many calls are sent from now on.
    pub fn allow_calls(&self, count: u32) {
        self.calls_left.store(count, Ordering::Relaxed);
    }

    /// Sends a call, as long as calls are allowed.
    pub(super) fn call<'a>(&self, call: impl FnOnce() -> EndedCall<'a>) {
        let left = &self.calls_left;
        if left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        if taken.is_ok() {
            self.send(LiveEvent::new("call", &call()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> EndedCall<'static> {
        EndedCall {
            call_id: "c_1",
            agent: "ann",
            tool: None,
            contract: None,
            outcome: "ok",
            code: None,
            ms: 1.0,
        }
    }

    #[test]
    fn no_more_calls_are_sent_than_allowed() {
        let feed = EventFeed::default();
        feed.call(|| unreachable!("without a subscriber no event is made"));
        let mut subscriber = feed.subscribe();
        feed.allow_calls(2);
        for _ in 0..5 {
            feed.call(call);
        }
        for _ in 0..2 {
            assert_eq!(subscriber.try_recv().expect("a call").name, "call");
        }
        assert!(subscriber.try_recv().is_err());
    }
}
