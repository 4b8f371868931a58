//! The numbered feed of changes: every change that other processes must apply has a number, and a process waits for the
//! next one in one place.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Notify, watch};
use weir_watch::{FileWatcher, LookPace, WatchTarget};

use super::{GatewayState, messages::MESSAGES_PAGE};
use crate::{
    MessageRow, StateError,
    engine::{StateEngine, sql},
    server::ServerPace,
};

/// The time between two looks for changes while something is written. Another process has 50 ms until a key that was revoked
/// works nowhere, and takes the change over within them.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The time after which a notification of a change has a node renew its lease as well.
const LEASE_INTERVAL: Duration = Duration::from_millis(900);
/// The pause after the state could not be read.
const RETRY: Duration = Duration::from_millis(250);

/// The time between two looks for messages without a notification.
const MESSAGES_INTERVAL: Duration = Duration::from_secs(1);

/// Before the first look.
const UNKNOWN: i64 = i64::MIN;

/// The numbers of the last changes that this process has seen.
pub(crate) struct ChangeFeed {
    all: watch::Sender<i64>,
    /// The changes of clients' sessions, which have separate numbers.
    sessions: watch::Sender<i64>,
    /// Wakes the look for messages and for changes of clients' sessions, if they are in a database.
    nudge: Arc<Notify>,
}

impl Default for ChangeFeed {
    fn default() -> Self {
        let [all, sessions] = std::array::from_fn(|_| watch::Sender::new(UNKNOWN));
        Self {
            all,
            sessions,
            nudge: Arc::default(),
        }
    }
}

impl GatewayState {
    /// Returns the number of the last change by any process.
    pub async fn generation(&self) -> Result<i64, StateError> {
        sql("SELECT n FROM generation")
            .fetch_value(&self.engine)
            .await
    }

    /// Returns the feed: the number of the last change. It moves while [`follow`](Self::follow) runs.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.changes.all.subscribe()
    }

    /// Returns the number of the last note of a client's session by any process.
    pub async fn session_number(&self) -> Result<i64, StateError> {
        sql("SELECT n FROM session_changes")
            .fetch_value(&self.engine)
            .await
    }

    /// Returns the feed of notes of clients' sessions. It moves while [`follow`](Self::follow) runs.
    pub fn session_changes(&self) -> watch::Receiver<i64> {
        self.changes.sessions.subscribe()
    }

    /// Keeps the feed moving, until the task ends. All that waits for changes waits for this one look.
    pub async fn follow(&self, watcher: &FileWatcher) {
        let mut pace = self.pace(watcher);
        let (mut failing, mut moves) = (false, self.fail_overs());
        let mut is_nudged = false;
        loop {
            let looked = match is_nudged && self.since_look() < LEASE_INTERVAL {
                true => self.look_again().await,
                false => self.look().await,
            };
            match looked {
                Ok(now) => {
                    failing = false;
                    let is_other = std::mem::replace(&mut moves, self.fail_overs()) != moves;
                    if is_other {
                        tracing::error!(
                            "another server has the state, or an older copy of it: it is read again"
                        );
                        // The number of the notes may be the same.
                        self.changes.sessions.send_if_modified(|_| true);
                    }
                    move_to(&self.changes.all, now, is_other);
                }
                Err(error) => {
                    if !failing {
                        tracing::error!(%error, "the state cannot be read: what was read before is kept");
                    }
                    failing = true;
                    if let FeedPace::Server(pace) = &mut pace {
                        pace.recover().await;
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
            is_nudged = tokio::select! {
                () = pace.next_look() => self.is_shared() && !failing,
                () = self.node.moved.notified(), if self.node_id().is_some() => false,
            };
        }
    }

    /// Moves the feed of clients' sessions.
    pub(super) async fn look_at_sessions(&self) -> Result<(), StateError> {
        move_to(&self.changes.sessions, self.session_number().await?, false);
        Ok(())
    }

    /// Receives the messages of other nodes and of this one, until the task ends. A process that is not a node receives none.
    pub async fn follow_messages(&self, heard: impl Fn(MessageRow)) {
        let Some(node) = self.node_id() else {
            return;
        };
        let mut seen = None;
        loop {
            if self
                .look_for_messages(node, &mut seen, &heard)
                .await
                .is_err()
            {
                // The task that follows the changes logs that the state cannot be read.
                tokio::time::sleep(RETRY).await;
            }
            let nudged = self.changes.nudge.notified();
            let _ = tokio::time::timeout(MESSAGES_INTERVAL, nudged).await; // a notification may be lost
        }
    }

    async fn look_for_messages(
        &self,
        node: &str,
        seen: &mut Option<i64>,
        heard: &impl Fn(MessageRow),
    ) -> Result<(), StateError> {
        let numbers = "SELECT (SELECT n FROM session_changes), (SELECT n FROM message_numbers)";
        let (sessions, last): (i64, i64) = sql(numbers).fetch_one(&self.engine).await?;
        move_to(&self.changes.sessions, sessions, false);
        // Messages from before this process listened are not for it. After a fail-over the database may be behind.
        let after = seen.get_or_insert(last);
        if last < *after {
            *after = 0;
        }
        while last > *after {
            let messages = self.take_messages(node, *after).await?;
            let newest = messages.iter().map(|message| message.number).max();
            *after = newest.unwrap_or(last).max(*after);
            let is_all = messages.len() < MESSAGES_PAGE;
            messages.into_iter().for_each(heard);
            if is_all {
                *after = last.max(*after);
            }
        }
        Ok(())
    }

    fn pace(&self, watcher: &FileWatcher) -> FeedPace {
        match &self.engine {
            // A change is first written to the log next to the database.
            StateEngine::Sqlite(_) => {
                let path = self.path();
                let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                let places = vec![WatchTarget::file(&path), WatchTarget::file(&real)];
                FeedPace::File(watcher.pace(LOOK_INTERVAL, places))
            }
            StateEngine::Postgresql(server) => {
                let (address, nudge) = (self.address.clone(), self.changes.nudge.clone());
                FeedPace::Server(ServerPace::new(server.pool.clone(), address, nudge))
            }
        }
    }
}

fn move_to(feed: &watch::Sender<i64>, now: i64, is_other: bool) {
    feed.send_if_modified(|known| std::mem::replace(known, now) != now || is_other);
}

/// Decides when to look for changes.
enum FeedPace {
    File(LookPace),
    Server(ServerPace),
}

impl FeedPace {
    async fn next_look(&mut self) {
        match self {
            Self::File(pace) => pace.next_look().await,
            Self::Server(pace) => pace.next_look().await,
        }
    }
}
