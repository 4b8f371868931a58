//! Waits until a list or a resource of an endpoint has changed.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::{RequestScope, SessionClient};
use crate::{announcements::WatchedResources, call, wire::notification};

/// The notifications for changed lists, in the order of [`Listing::digests`](crate::catalogue::CatalogueListing::digests).
const LISTS_CHANGED: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// Watches generations and counters, so that no client needs a queue: changes between two reads become one.
pub struct CatalogueWatcher {
    scope: Arc<RequestScope>,
    resources: Arc<WatchedResources>,
    generations: watch::Receiver<u64>,
    announced: watch::Receiver<u64>,
    seen: Arc<LastSeen>,
}

/// The lists that a client last received.
#[derive(Default)]
pub(super) struct LastSeen(Mutex<SeenDigests>);

/// A change of which a client is notified.
pub struct CatalogueChanges {
    pub(super) lists: [bool; 3],
    /// The URIs of resources with changed contents.
    resources: Vec<Arc<str>>,
}

/// All zeros while the endpoint does not exist: a removed contract is a change too.
#[derive(Clone, Copy, Default)]
struct SeenDigests {
    digests: [[u8; 32]; 3],
    announced: [u64; 3],
}

impl CatalogueWatcher {
    /// From now on. `resources`: those that the client listens for.
    pub fn new(scope: Arc<RequestScope>, resources: Arc<WatchedResources>) -> Self {
        let seen = LastSeen::default();
        seen.look(&scope);
        Self::since(scope, resources, Arc::new(seen))
    }

    /// Starts at the last notification of a legacy session's client, or else at its `initialize`: later changes are sent
    /// immediately.
    pub fn of_client(scope: Arc<RequestScope>, client: &SessionClient) -> Self {
        Self::since(scope, client.watched().clone(), client.last_seen().clone())
    }

    fn since(
        scope: Arc<RequestScope>,
        resources: Arc<WatchedResources>,
        seen: Arc<LastSeen>,
    ) -> Self {
        let mut generations = scope.gateway.listing_changes();
        let announced = scope.gateway.announcements().heard();
        generations.mark_changed();
        Self {
            scope,
            resources,
            generations,
            announced,
            seen,
        }
    }

    /// Waits until a list of the endpoint or a resource has changed since the last return. The future may be dropped and this
    /// called again.
    pub async fn changed(&mut self) -> CatalogueChanges {
        loop {
            let gone = tokio::select! {
                changed = self.generations.changed() => changed.is_err(),
                changed = self.announced.changed() => changed.is_err(),
            };
            if gone {
                // The gateway, which is kept alive here, holds the senders, so this cannot happen. Waiting is harmless.
                std::future::pending::<()>().await;
            }
            let changed = self.now();
            if changed.lists.contains(&true) || !changed.resources.is_empty() {
                return changed;
            }
        }
    }

    fn now(&mut self) -> CatalogueChanges {
        let lists = self.seen.look(&self.scope);
        let mut resources = self.resources.changed();
        if !resources.is_empty() {
            // A caller that may no longer read a resource is not notified of it either.
            let listing = self.scope.listing().ok();
            resources.retain(|uri| {
                listing
                    .as_ref()
                    .is_some_and(|listing| call::has_resource(listing, uri))
            });
        }
        CatalogueChanges { lists, resources }
    }
}

impl CatalogueChanges {
    /// A notification for each kind of list that changed and each resource. `meta` is JSON.
    pub fn messages(&self, meta: Option<&str>) -> Vec<Vec<u8>> {
        let params = meta.map(|meta| format!(r#"{{"_meta":{meta}}}"#));
        let lists = LISTS_CHANGED
            .into_iter()
            .zip(self.lists)
            .filter(|(_, changed)| *changed);
        let lists = lists.map(|(name, _)| notification(name, params.as_deref()));
        let resources = self.resources.iter().map(|uri| {
            let meta = meta
                .map(|meta| format!(r#","_meta":{meta}"#))
                .unwrap_or_default();
            let params = format!(r#"{{"uri":{}{meta}}}"#, json!(uri));
            notification("notifications/resources/updated", Some(&params))
        });
        lists.chain(resources).collect()
    }
}

impl LastSeen {
    /// Reads the current lists, and returns which have changed since the last call.
    pub(super) fn look(&self, scope: &RequestScope) -> [bool; 3] {
        let now = SeenDigests::now(scope);
        let mut seen = self.0.lock();
        let last = std::mem::replace(&mut *seen, now);
        std::array::from_fn(|list| {
            (last.digests[list], last.announced[list]) != (now.digests[list], now.announced[list])
        })
    }
}

impl SeenDigests {
    fn now(scope: &RequestScope) -> Self {
        let Ok(listing) = scope.listing() else {
            return Self::default();
        };
        let announced = scope.gateway.announcements().lists(listing.contracts());
        Self {
            digests: listing.digests(),
            announced,
        }
    }
}
