//! `resources/list` if some resources change on their own: the pinned ones, and those that servers currently list.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use weir_contracts::listed;

use super::{McpCall, RequestScope, list};
use crate::{
    call::call_owner,
    catalogue::{
        CatalogueListing, CatalogueViewer, ItemSource, ListShape, ListingPage, after, cursor_after,
        write_entry,
    },
    snapshot::CatalogueSnapshot,
    wire::error_answer,
};

/// The time within which a server must list its resources; a later answer is missing only from this list.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn answer(
    call: &McpCall<'_>,
    scope: &RequestScope,
    snapshot: &CatalogueSnapshot,
    cursor: Option<&str>,
) -> Vec<u8> {
    let listing = snapshot
        .catalogue
        .listing(&scope.endpoint, CatalogueViewer::Caller(&scope.caller));
    let listing = listing.unwrap_or_default();
    let last = match cursor.map(after).transpose() {
        Ok(last) => last,
        Err(error) => return error_answer(Some(&call.id), &list::bad_cursor(error)),
    };
    let entries = every(scope, &listing, list::shape(call.version)).await;
    let page = page(
        entries,
        last.as_deref(),
        scope.gateway.config().http.page_size,
    );
    list::write_page(
        scope,
        &listing,
        (&call.id, call.version),
        "resources",
        &page,
    )
}

/// Returns the URI and the entry of every resource, in the order of the URIs; of several with the same URI, one counts.
async fn every(
    scope: &RequestScope,
    listing: &CatalogueListing,
    shape: ListShape,
) -> Vec<(String, String)> {
    let live = join_all(
        listing
            .live()
            .map(|source| now(scope, source.clone(), shape)),
    )
    .await;
    let pinned = listing
        .resources
        .entries()
        .iter()
        .map(|resource| (resource.key.to_string(), resource.entry(shape)));
    let mut entries: Vec<_> = pinned.chain(live.into_iter().flatten()).collect();
    entries.sort();
    entries.dedup_by(|later, first| later.0 == first.0);
    entries
}

/// Returns what one server lists for this caller. A server that does not answer lists nothing, and does not delay others.
async fn now(
    scope: &RequestScope,
    source: Arc<ItemSource>,
    shape: ListShape,
) -> Vec<(String, String)> {
    let gateway = &scope.gateway;
    let upstream = source
        .target
        .upstream()
        .and_then(|upstream| gateway.upstreams().get(upstream));
    let Some(upstream) = upstream else {
        return Vec::new();
    };
    let caller = &scope.caller;
    let resources = upstream
        .resources(&call_owner(caller, scope.session()), PATIENCE)
        .await;
    let resources = match resources {
        Ok(resources) => resources,
        Err(failure) => {
            tracing::warn!(
                upstream = &*upstream.name,
                "its resources are not listed now: {failure}"
            );
            return Vec::new();
        }
    };
    let has_overlay = upstream.config().overlay.is_some();
    let compiled = gateway
        .live_resources()
        .compile(&source, has_overlay, resources)
        .await;
    let entry = |resource: &Arc<weir_contracts::contract::ContractResource>| {
        let serde_json::Value::Object(entry) = listed::resource(Some(&source.contract), resource)
        else {
            return None;
        };
        let uri = entry
            .get("uri")
            .and_then(serde_json::Value::as_str)?
            .to_owned();
        let mut written = String::new();
        write_entry(&entry, source.contract_version(), shape, &mut written);
        Some((uri, written))
    };
    compiled.iter().filter_map(entry).collect()
}

fn page(entries: Vec<(String, String)>, last: Option<&str>, size: usize) -> ListingPage<'static> {
    let start = last.map_or(0, |last| {
        entries.partition_point(|(uri, _)| uri.as_str() <= last)
    });
    let end = entries.len().min(start.saturating_add(size.max(1)));
    let next = (end < entries.len()).then(|| cursor_after(&entries[end - 1].0));
    let shown: Vec<&str> = entries[start..end]
        .iter()
        .map(|(_, entry)| entry.as_str())
        .collect();
    ListingPage {
        entries: shown.join(",").into(),
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_although_the_list_changes_between_them() {
        let entries = |uris: &[&str]| -> Vec<(String, String)> {
            uris.iter()
                .map(|uri| ((*uri).to_owned(), format!("\"{uri}\"")))
                .collect()
        };
        let first = page(entries(&["a", "b", "c"]), None, 2);
        assert_eq!(first.entries, "\"a\",\"b\"");
        let last = after(&first.next.expect("there is more")).expect("a cursor of ours");
        assert_eq!(last, "b");
        let second = page(entries(&["a", "aa", "c"]), Some(&last), 2);
        assert_eq!((&*second.entries, second.next), ("\"c\"", None));
    }
}
