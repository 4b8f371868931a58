//! The tasks that one subscription listens for.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use super::{RequestScope, tasks};

/// More ids in one request are left out.
const IDS_MAX: usize = 1024;

/// Remembers the stage that its client was told last, so that nothing is queued: stages while nobody waits become one.
pub(super) struct FollowedTasks {
    scope: Arc<RequestScope>,
    heard: watch::Receiver<u64>,
    /// By the task's id, the number of that stage.
    told: BTreeMap<String, u64>,
}

impl FollowedTasks {
    /// Follows those of the tasks that this caller may look at. Each is told of at once: it may have changed before its client
    /// listened.
    pub(super) fn new(scope: Arc<RequestScope>, ids: Vec<String>) -> Self {
        let mut heard = scope.gateway.tasks().heard();
        heard.mark_changed();
        let is_there = |id: &String| scope.task(id).is_some();
        let told = ids
            .into_iter()
            .take(IDS_MAX)
            .filter(is_there)
            .map(|id| (id, 0))
            .collect();
        Self { scope, heard, told }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    pub(super) fn ids(&self) -> Vec<&String> {
        self.told.keys().collect()
    }

    /// Returns a notification for each task that has entered another stage since the last return, at least one. `meta` is JSON. It
    /// may be dropped and called again.
    pub(super) async fn changed(&mut self, meta: &str) -> Vec<Vec<u8>> {
        loop {
            if self.told.is_empty() || self.heard.changed().await.is_err() {
                // Nothing is followed. The gateway, which we hold, keeps the sender.
                std::future::pending::<()>().await;
            }
            let now = self.now(meta);
            if !now.is_empty() {
                return now;
            }
        }
    }

    fn now(&mut self, meta: &str) -> Vec<Vec<u8>> {
        let scope = &self.scope;
        let mut messages = Vec::new();
        for (id, told) in &mut self.told {
            // Whoever may no longer look at a task is not told of it either.
            let Some(task) = scope.task(id) else {
                continue;
            };
            let seen = task.tell();
            if seen.entered != *told {
                *told = seen.entered;
                messages.push(tasks::notification(&task, &seen, meta));
            }
        }
        messages
    }
}
