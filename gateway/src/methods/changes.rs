//! Waiting until what an endpoint lists has changed.

use std::sync::Arc;

use tokio::sync::watch;

use super::RequestScope;
use crate::wire::notification;

/// The notifications for changed lists, in the order of [`Listing::digests`](crate::catalogue::Listing::digests).
const LISTS_CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// Watches the listing generation, so that no client needs a queue: changes while nobody waits become one.
pub struct ListChanges {
    scope: Arc<RequestScope>,
    generations: watch::Receiver<u64>,
    seen: Option<[[u8; 32]; 3]>,
}

impl ListChanges {
    /// Watches the lists from now on.
    pub fn new(scope: Arc<RequestScope>) -> Self {
        let generations = scope.gateway.listing_changes();
        let seen = digests(&scope);
        Self { scope, generations, seen }
    }

    /// Returns when a list of the endpoint is another than at the last return, with which of them are. May be dropped and
    /// called again.
    pub async fn changed(&mut self) -> [bool; 3] {
        loop {
            if self.generations.changed().await.is_err() {
                // The gateway, which we hold, keeps the sender: this cannot be. Waiting is the harmless answer.
                std::future::pending::<()>().await;
            }
            let now = digests(&self.scope);
            let before = std::mem::replace(&mut self.seen, now);
            if before != now {
                let is_other = |kind: usize| before.map(|before| before[kind]) != now.map(|now| now[kind]);
                return [is_other(0), is_other(1), is_other(2)];
            }
        }
    }
}

/// Returns a notification for each kind of list that changed. `params` is JSON.
pub fn list_changes(changed: [bool; 3], params: Option<&str>) -> Vec<Vec<u8>> {
    let named = LISTS_CHANGED.into_iter().zip(changed).filter(|(_, changed)| *changed);
    named.map(|(name, _)| notification(name, params)).collect()
}

/// Returns the digests; `None` while the endpoint does not exist, since a contract that went away is a change too.
fn digests(scope: &RequestScope) -> Option<[[u8; 32]; 3]> {
    scope.listing().ok().map(|listing| listing.digests())
}
