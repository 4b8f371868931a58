//! Sends changes to subscribers, and each second the counts of calls. It runs only while there is a subscriber.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    ControlPlane,
    operations::{plugins, stats},
};
use crate::{
    config::GatewayConfig,
    telemetry::events::{EventFeed, LiveEvent},
};

/// The maximum number of streams.
const STREAMS_MAX: usize = 16;
const INTERVAL: Duration = Duration::from_secs(1);

/// The subscribers of one gateway.
#[derive(Default)]
pub(crate) struct LiveWatch {
    /// Oldest first.
    streams: Mutex<Vec<Arc<AdminStream>>>,
    is_looking: Mutex<bool>,
}

/// A stream that occupies a place.
struct AdminStream {
    /// The id of the admin key whose stream it is.
    admin: String,
    displaced: CancellationToken,
}

/// A subscription, which ends when it is dropped.
pub struct EventSubscription {
    pub events: broadcast::Receiver<LiveEvent>,
    /// Calls that ended; `None` if they were not requested.
    pub calls: Option<broadcast::Receiver<LiveEvent>>,
    /// Cancelled when the stream must give its place to one of another admin.
    pub displaced: CancellationToken,
    stream: Arc<AdminStream>,
    control: Arc<ControlPlane>,
}

/// What may have changed since the last check.
#[derive(PartialEq)]
struct SeenState {
    drafts: Vec<String>,
    /// The generation of the snapshot, the revisions of the live versions, and what is refused or waits.
    contracts: (u64, Vec<i64>, String),
    drifted: usize,
    plugins: BTreeMap<String, String>,
    upstreams: BTreeMap<String, String>,
    keys: i64,
}

#[derive(Serialize)]
struct ChangeCount {
    count: usize,
}

#[derive(Serialize)]
struct NoMore {}

impl LiveWatch {
    /// Gives a place to a stream of this admin. If none is free, the admin with the most streams loses the oldest one, provided
    /// that the newcomer then has no more streams than that admin has left; otherwise returns `None`.
    fn enter(&self, admin: &str) -> Option<Arc<AdminStream>> {
        let mut streams = self.streams.lock();
        let count = |admin: &str| streams.iter().filter(|open| open.admin == admin).count();
        if streams.len() >= STREAMS_MAX {
            let counts = streams.iter().map(|open| count(&open.admin));
            // Of equal ones, `max_by_key` returns the last, which is the oldest here.
            let (place, most) = counts.enumerate().rev().max_by_key(|(_, count)| *count)?;
            if most <= count(admin) + 1 {
                return None;
            }
            streams.remove(place).displaced.cancel();
        }
        let stream = Arc::new(AdminStream {
            admin: admin.to_owned(),
            displaced: CancellationToken::new(),
        });
        streams.push(stream.clone());
        Some(stream)
    }

    fn leave(&self, stream: &Arc<AdminStream>) {
        let mut streams = self.streams.lock();
        streams.retain(|open| !Arc::ptr_eq(open, stream));
    }
}

impl ControlPlane {
    /// Subscribes an admin to events, and to calls if requested; `None` if there is no place for another stream of this admin.
    pub fn subscribe(
        self: &Arc<Self>,
        admin: &str,
        wants_calls: bool,
    ) -> Option<EventSubscription> {
        let watch = self.live_watch();
        let stream = watch.enter(admin)?;
        let subscription = EventSubscription {
            events: self.feed().subscribe(),
            calls: wants_calls.then(|| self.feed().subscribe_to_calls()),
            displaced: stream.displaced.clone(),
            stream,
            control: self.clone(),
        };
        let mut is_looking = watch.is_looking.lock();
        if !std::mem::replace(&mut *is_looking, true) {
            tokio::spawn(look_on(Arc::downgrade(self)));
        }
        drop(is_looking);
        Some(subscription)
    }

    fn feed(&self) -> &EventFeed {
        self.gateway().metrics().events()
    }

    /// Returns `true` if no subscriber is left; the next one starts the loop again.
    fn is_unwatched(&self) -> bool {
        let looking = &self.live_watch().is_looking;
        let mut is_looking = looking.lock();
        if self.feed().has_subscribers() {
            return false;
        }
        self.feed().renew_calls();
        *is_looking = false;
        true
    }
}

impl Drop for EventSubscription {
    fn drop(&mut self) {
        self.control.live_watch().leave(&self.stream);
    }
}

/// Checks each second, until no subscriber is left.
async fn look_on(control: Weak<ControlPlane>) {
    let mut seen: Option<(SeenState, Arc<GatewayConfig>)> = None;
    loop {
        let Some(control) = control.upgrade() else {
            return;
        };
        if control.is_unwatched() {
            return;
        }
        let config = Arc::clone(&control.gateway().config());
        // An unreadable state is already logged.
        if let Ok(now) = SeenState::read(&control).await {
            if let Some((before, under)) = &seen {
                now.tell(before, control.feed());
                if !Arc::ptr_eq(under, &config) {
                    control.feed().send(LiveEvent::new("config", &NoMore {}));
                }
            }
            seen = Some((now, config));
        }
        let figures = stats::show_last(&control);
        control.feed().send(LiveEvent::new("stats", &figures));
        control.feed().renew_calls();
        drop(control);
        tokio::time::sleep(INTERVAL).await;
    }
}

impl SeenState {
    async fn read(control: &ControlPlane) -> Result<Self, weir_state::StateError> {
        let gateway = control.gateway();
        let drafts = control.state().pending(None).await?;
        let mut plugins: BTreeMap<String, String> = gateway
            .host()
            .plugins()
            .into_iter()
            .map(|plugin| {
                let known = format!("{} {}", plugin.digest, plugins::is_failing(plugin.recent));
                (plugin.name.to_string(), known)
            })
            .collect();
        let refused = control.plugin_files().refused().into_iter();
        plugins.extend(refused.map(|refused| (refused.file, refused.reason)));
        let upstreams = gateway.upstreams().all().into_iter().map(|upstream| {
            let seen = upstream.seen();
            let (state, draft) = (seen.state(), seen.draft.unwrap_or_default());
            let reason = seen.failure.unwrap_or_default();
            let known = format!("{state} {} {draft} {reason}", seen.tools);
            (upstream.name.to_string(), known)
        });
        let live = control.gate().live();
        let revisions = live.values().map(|live| live.revision).collect();
        let unserved = format!("{:?} {:?}", control.refused(), control.unserved());
        Ok(Self {
            drafts: drafts.into_iter().map(|draft| draft.id).collect(),
            contracts: (gateway.snapshot().generation, revisions, unserved),
            drifted: control.drift().count(),
            plugins,
            upstreams: upstreams.collect(),
            keys: gateway.identities().last_change(),
        })
    }

    /// Sends an event for each thing that has changed.
    fn tell(&self, before: &Self, feed: &EventFeed) {
        let changed = [
            ("draft", self.drafts != before.drafts, self.drafts.len()),
            ("drift", self.drifted != before.drifted, self.drifted),
            ("plugin", self.plugins != before.plugins, self.plugins.len()),
            (
                "upstream",
                self.upstreams != before.upstreams,
                self.upstreams.len(),
            ),
        ];
        for (name, _, count) in changed.into_iter().filter(|(_, changed, _)| *changed) {
            feed.send(LiveEvent::new(name, &ChangeCount { count }));
        }
        if self.keys != before.keys {
            feed.send(LiveEvent::new("key", &NoMore {}));
        }
        if self.contracts != before.contracts {
            feed.send(LiveEvent::new("contract", &NoMore {}));
        }
    }
}
