//! Waiting until what an endpoint lists has changed.

use std::sync::Arc;

use tokio::sync::watch;

use super::Place;

pub const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Watches the listing generation, so that no client needs a queue: changes while nobody waits become one.
pub struct ListChanges {
    place: Arc<Place>,
    generations: watch::Receiver<u64>,
    seen: Option<[u8; 32]>,
}

impl ListChanges {
    /// From now on.
    pub fn new(place: Arc<Place>) -> Self {
        let generations = place.gateway.listing_changes();
        let seen = digest(&place);
        Self { place, generations, seen }
    }

    /// Returns when the endpoint's listing is another than at the last return. May be dropped and called again.
    pub async fn changed(&mut self) {
        loop {
            if self.generations.changed().await.is_err() {
                // The gateway, which we hold, keeps the sender: this cannot be. Waiting is the harmless answer.
                std::future::pending::<()>().await;
            }
            let now = digest(&self.place);
            if std::mem::replace(&mut self.seen, now) != now {
                return;
            }
        }
    }
}

/// `None` while the endpoint does not exist: a contract that went away is a change too.
fn digest(place: &Place) -> Option<[u8; 32]> {
    place.listing().ok().map(|listing| listing.digest())
}
