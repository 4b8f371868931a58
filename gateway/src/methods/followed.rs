//! The tasks for which one subscription listens.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{
    RequestScope,
    tasks::{self, LookedTask},
};
use crate::tasks::TaskPlace;

/// The most task ids in one request; further ones are ignored.
const IDS_MAX: usize = 1024;
/// The same for tasks of other nodes.
const ELSEWHERE_MAX: usize = 64;
/// The time between two checks of those.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Remembers the stage that its client last received, so that nothing is queued: stages between two reads become one.
pub(super) struct FollowedTasks {
    scope: Arc<RequestScope>,
    heard: watch::Receiver<u64>,
    /// The number of that stage, by the task's id.
    reported: BTreeMap<String, u64>,
    /// The same for tasks of other nodes.
    elsewhere: BTreeMap<String, (TaskPlace, u64)>,
    looks: Interval,
}

impl FollowedTasks {
    /// Follows those of the tasks that this caller may see. Each is reported immediately, since it may have changed before its
    /// client listened.
    pub(super) fn new(scope: Arc<RequestScope>, ids: Vec<String>) -> Self {
        let mut heard = scope.gateway.tasks().heard();
        heard.mark_changed();
        let (mut reported, mut elsewhere) = (BTreeMap::new(), BTreeMap::new());
        for id in ids.into_iter().take(IDS_MAX) {
            if scope.task(&id).is_some() {
                reported.insert(id, 0);
            } else if elsewhere.len() < ELSEWHERE_MAX
                && let Some(place) = tasks::place(&scope, &id)
            {
                elsewhere.insert(id, (place, 0));
            }
        }
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            scope,
            heard,
            reported,
            elsewhere,
            looks,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reported.is_empty() && self.elsewhere.is_empty()
    }

    pub(super) fn ids(&self) -> Vec<&String> {
        let mut ids: Vec<&String> = self.reported.keys().chain(self.elsewhere.keys()).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns a notification for each task that has entered another stage since the last return, and at least one. `meta` is
    /// JSON. The future may be dropped and this called again.
    pub(super) async fn changed(&mut self, meta: &str) -> Vec<Vec<u8>> {
        loop {
            let now = tokio::select! {
                changed = self.heard.changed(), if !self.reported.is_empty() => match changed {
                    Ok(()) => self.now(meta),
                    // The gateway, which is kept alive here, holds the sender.
                    Err(_) => std::future::pending().await,
                },
                _ = self.looks.tick(), if !self.elsewhere.is_empty() => {
                    if let Some(messages) = self.scope.gateway.node_messages() {
                        self.looks.reset_at(messages.next_look(LOOK_INTERVAL));
                    }
                    self.now_elsewhere(meta).await
                }
                else => std::future::pending().await, // nothing is followed
            };
            if !now.is_empty() {
                return now;
            }
        }
    }

    fn now(&mut self, meta: &str) -> Vec<Vec<u8>> {
        let scope = &self.scope;
        let mut messages = Vec::new();
        self.reported
            .retain(|id, _| scope.gateway.tasks().keeps(id));
        for (id, last) in &mut self.reported {
            // A caller that may no longer see a task is not notified of it either.
            let Some(task) = scope.task(id) else {
                continue;
            };
            let seen = task.tell();
            if seen.entered != *last {
                *last = seen.entered;
                messages.push(tasks::notification(id, &seen, meta));
            }
        }
        messages
    }

    /// Checks the tasks of other nodes. A task that has ended or is no longer kept is not checked again. Nothing changes before
    /// all have answered, so that no stage is lost if this is dropped.
    async fn now_elsewhere(&mut self, meta: &str) -> Vec<Vec<u8>> {
        let scope = &self.scope;
        let looks = self.elsewhere.iter().map(async |(id, (place, _))| {
            let seen = tasks::look_elsewhere(scope, place).await;
            (id.clone(), seen)
        });
        let mut messages = Vec::new();
        for (id, seen) in join_all(looks).await {
            let seen = match seen {
                Ok(LookedTask::Found(seen)) => seen,
                Ok(LookedTask::Forgotten) => {
                    self.elsewhere.remove(&id);
                    continue;
                }
                // A node that does not answer now may answer the next time.
                Ok(LookedTask::Hidden) | Err(_) => continue,
            };
            let Some((place, last)) = self.elsewhere.get_mut(&id) else {
                continue;
            };
            if seen.entered == *last {
                continue;
            }
            *last = seen.entered;
            messages.push(tasks::notification(&id, &seen, meta));
            tasks::note_delivered(scope, place, &seen);
            if seen.stage.has_ended() {
                self.elsewhere.remove(&id);
            }
        }
        messages
    }
}
