//! The numbered feed of changes: what any process changes, and the others must take over, has a number, and a process waits
//! for the next one in one place.

use std::time::Duration;

use tokio::sync::watch;
use weir_watch::{LookPace, Place, Watcher};

use super::State;
use crate::{
    StateError,
    engine::{StateEngine, sql},
    server::ServerPace,
};

/// The time between two looks for changes while something is written. Another process has 50 ms until a key that was revoked
/// works nowhere, and takes the change over within them.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The pause after the state could not be read.
const RETRY: Duration = Duration::from_millis(250);

/// Before the first look.
const UNKNOWN: i64 = i64::MIN;

/// The number of the last change that this process knows of.
pub(crate) struct Changes(watch::Sender<i64>);

impl Default for Changes {
    fn default() -> Self {
        Self(watch::Sender::new(UNKNOWN))
    }
}

impl State {
    /// Returns the number of the last change, by whichever process.
    pub async fn generation(&self) -> Result<i64, StateError> {
        sql("SELECT n FROM generation")
            .fetch_value(&self.engine)
            .await
    }

    /// Returns the feed: the number of the last change. It moves while [`follow`](Self::follow) runs.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.changes.0.subscribe()
    }

    /// Keeps the feed moving, until the task ends. All that waits for changes waits for this one look.
    pub async fn follow(&self, watcher: &Watcher) {
        let mut pace = self.pace(watcher);
        let mut failing = false;
        loop {
            match self.look().await {
                Ok(now) => {
                    failing = false;
                    let changes = &self.changes.0;
                    changes.send_if_modified(|known| std::mem::replace(known, now) != now);
                }
                Err(error) => {
                    if !failing {
                        tracing::error!(%error, "the state cannot be read: what was read before stays as it was");
                    }
                    failing = true;
                    if let FeedPace::Server(pace) = &mut pace {
                        pace.forget_connection();
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
            tokio::select! {
                () = pace.next_look() => {}
                () = self.node.moved.notified(), if self.node_id().is_some() => {}
            }
        }
    }

    fn pace(&self, watcher: &Watcher) -> FeedPace {
        match &self.engine {
            // A change is written to the log beside the database first.
            StateEngine::Sqlite(_) => {
                let path = self.path();
                let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                let places = vec![Place::file(&path), Place::file(&real)];
                FeedPace::File(watcher.pace(LOOK_INTERVAL, places))
            }
            StateEngine::Postgresql(pool) => FeedPace::Server(ServerPace::new(pool.clone())),
        }
    }
}

/// Says when to look for changes.
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
