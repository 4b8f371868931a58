//! Waiting until what an endpoint lists, or a resource of it, has changed.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::watch;

use super::RequestScope;
use crate::{announcements::WatchedResources, call, wire::notification};

/// The notifications for changed lists, in the order of [`Listing::digests`](crate::catalogue::Listing::digests).
const LISTS_CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// Watches generations and counts, so that no client needs a queue: changes while nobody waits become one.
pub struct Changes {
    scope: Arc<RequestScope>,
    resources: Arc<WatchedResources>,
    generations: watch::Receiver<u64>,
    announced: watch::Receiver<u64>,
    seen: Option<Seen>,
}

/// What has changed.
pub struct Changed {
    pub(super) lists: [bool; 3],
    /// The URIs of resources that hold something else.
    resources: Vec<Arc<str>>,
}

#[derive(PartialEq)]
struct Seen {
    digests: [[u8; 32]; 3],
    announced: [u64; 3],
}

impl Changes {
    /// From now on. `resources`: those that the client listens for.
    pub fn new(scope: Arc<RequestScope>, resources: Arc<WatchedResources>) -> Self {
        let generations = scope.gateway.listing_changes();
        let announced = scope.gateway.announcements().heard();
        let seen = seen(&scope);
        Self { scope, resources, generations, announced, seen }
    }

    /// Returns when a list of the endpoint is another than at the last return, or a resource holds something else. It may be
    /// dropped and called again.
    pub async fn changed(&mut self) -> Changed {
        loop {
            let gone = tokio::select! {
                changed = self.generations.changed() => changed.is_err(),
                changed = self.announced.changed() => changed.is_err(),
            };
            if gone {
                // The gateway, which we hold, keeps the senders: this cannot be. Waiting is the harmless answer.
                std::future::pending::<()>().await;
            }
            let changed = self.now();
            if changed.lists.contains(&true) || !changed.resources.is_empty() {
                return changed;
            }
        }
    }

    fn now(&mut self) -> Changed {
        let now = seen(&self.scope);
        let is_other = |list: usize| {
            let part = |seen: &Option<Seen>| seen.as_ref().map(|seen| (seen.digests[list], seen.announced[list]));
            part(&self.seen) != part(&now)
        };
        let lists = [is_other(0), is_other(1), is_other(2)];
        self.seen = now;
        let mut resources = self.resources.changed();
        if !resources.is_empty() {
            // Whoever may no longer read a resource is not told of it either.
            let listing = self.scope.listing().ok();
            resources.retain(|uri| listing.as_ref().is_some_and(|listing| call::has_resource(listing, uri)));
        }
        Changed { lists, resources }
    }
}

impl Changed {
    /// A notification for each kind of list that changed and each resource. `meta` is JSON.
    pub fn messages(&self, meta: Option<&str>) -> Vec<Vec<u8>> {
        let params = meta.map(|meta| format!(r#"{{"_meta":{meta}}}"#));
        let lists = LISTS_CHANGED.into_iter().zip(self.lists).filter(|(_, changed)| *changed);
        let lists = lists.map(|(name, _)| notification(name, params.as_deref()));
        let resources = self.resources.iter().map(|uri| {
            let meta = meta.map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
            let params = format!(r#"{{"uri":{}{meta}}}"#, json!(uri));
            notification("notifications/resources/updated", Some(&params))
        });
        lists.chain(resources).collect()
    }
}

/// `None` while the endpoint does not exist: a contract that went away is a change too.
fn seen(scope: &RequestScope) -> Option<Seen> {
    let listing = scope.listing().ok()?;
    let mut announced = [0; 3];
    for contract in listing.contracts() {
        let lists = scope.gateway.announcements().lists(contract);
        announced.iter_mut().zip(lists).for_each(|(sum, count)| *sum += count);
    }
    Some(Seen { digests: listing.digests(), announced })
}
