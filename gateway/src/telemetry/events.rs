//! Events for watchers of the gateway. Events are made only while there is a subscriber.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde::Serialize;
use tokio::sync::broadcast;

/// The most events that wait for a slow subscriber; beyond it, the subscriber loses the oldest.
const WAITING_MAX: usize = 256;
/// The most calls that are sent in a second.
const CALLS_MAX: u32 = 50;

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
    /// Null if the agent sees no such tool.
    pub tool: Option<&'a str>,
    /// `contract@version`; null if the tool does not belong to a contract.
    pub contract: Option<&'a str>,
    /// ok, refused, failed, cancelled or unknown.
    pub outcome: &'static str,
    /// The error code; null for a success.
    pub code: Option<&'static str>,
    pub ms: f64,
}

/// Sends events to all subscribers.
pub struct EventFeed {
    sender: broadcast::Sender<LiveEvent>,
    /// Calls have a separate channel, so that subscribers without calls are not woken.
    calls: broadcast::Sender<LiveEvent>,
    /// Calls that may be sent until the next [`renew_calls`](Self::renew_calls): 0 while there is no subscriber to calls.
    calls_left: AtomicU32,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(WAITING_MAX),
            calls: broadcast::Sender::new(WAITING_MAX),
            calls_left: AtomicU32::new(0),
        }
    }
}

impl EventFeed {
    /// Returns a receiver of the events from now on. One that is too slow loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<LiveEvent> {
        self.sender.subscribe()
    }

    /// Subscribes to calls that end. The first subscriber receives them immediately.
    pub fn subscribe_to_calls(&self) -> broadcast::Receiver<LiveEvent> {
        let subscriber = self.calls.subscribe();
        if self.calls.receiver_count() == 1 {
            self.renew_calls();
        }
        subscriber
    }

    /// Returns `true` if a stream takes these events.
    pub fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Sends an event, or drops it if there is no subscriber.
    pub fn send(&self, event: LiveEvent) {
        let _ = self.sender.send(event);
    }

    /// Allows the calls of a second, or none if no one subscribes to them.
    pub fn renew_calls(&self) {
        let count = match self.calls.receiver_count() {
            0 => 0,
            _ => CALLS_MAX,
        };
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
            let _ = self.calls.send(LiveEvent::new("call", &call()));
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
        let mut subscriber = feed.subscribe_to_calls();
        for _ in 0..CALLS_MAX {
            feed.call(call);
        }
        feed.call(|| unreachable!("no event is made that is not sent"));
        for _ in 0..CALLS_MAX {
            assert_eq!(subscriber.try_recv().expect("a call").name, "call");
        }
        assert!(subscriber.try_recv().is_err());
    }

    #[test]
    fn calls_are_made_events_for_those_alone_who_want_them() {
        let feed = EventFeed::default();
        let mut subscriber = feed.subscribe();
        feed.renew_calls();
        feed.call(|| unreachable!("no one wants calls"));
        let wanting = feed.subscribe_to_calls();
        feed.call(call);
        assert!(subscriber.try_recv().is_err());
        drop(wanting);
        feed.renew_calls();
        feed.call(|| unreachable!("the one who wanted calls is gone"));
    }
}
