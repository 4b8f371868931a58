//! Waiting until what an endpoint lists has changed.

use std::sync::Arc;

use tokio::sync::watch;

use super::RequestScope;

pub const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Watches the listing generation, so that no client needs a queue: changes while nobody waits become one.
pub struct ListChanges {
    scope: Arc<RequestScope>,
    generations: watch::Receiver<u64>,
    seen: Option<[u8; 32]>,
}

impl ListChanges {
    /// From now on.
    pub fn new(scope: Arc<RequestScope>) -> Self {
        let generations = scope.gateway.listing_changes();
        let seen = digest(&scope);
        Self { scope, generations, seen }
    }

    /// Returns when the endpoint's listing is another than at the last return. May be dropped and called again.
    pub async fn changed(&mut self) {
        loop {
            if self.generations.changed().await.is_err() {
                // The gateway, which we hold, keeps the sender: this cannot be. Waiting is the harmless answer.
                std::future::pending::<()>().await;
            }
            let now = digest(&self.scope);
            if std::mem::replace(&mut self.seen, now) != now {
                return;
            }
        }
    }
}

/// `None` while the endpoint does not exist: a contract that went away is a change too.
fn digest(scope: &RequestScope) -> Option<[u8; 32]> {
    scope.listing().ok().map(|listing| listing.digest())
}
