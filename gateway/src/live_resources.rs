//! Resources that change on their own, in the form that may be listed: a server's list is checked by the same rules as a pinned
//! one, once for each different list.

use std::{collections::BTreeMap, sync::Arc};

use ahash::RandomState;
use parking_lot::RwLock;
use quick_cache::sync::Cache;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use weir_contracts::{
    contract::ContractResource,
    offer::{self, ServerLists},
    upstream::{self, UpstreamOptions, UpstreamOverlay},
};

use crate::catalogue::ItemSource;

/// The most lists that are kept.
const LISTS_MAX: usize = 256;

/// The resources of one server, compiled.
pub type Resources = Arc<[Arc<ContractResource>]>;

/// The compiled lists of servers' resources, and the overlays that are applied to them.
pub struct LiveResourceCache {
    /// The overlays of operators, by the server's name, as of the last look at the server.
    overlays: RwLock<BTreeMap<String, Arc<UpstreamOverlay>>>,
    /// The compiled resources, by the digest of the list and of its owner.
    known: Cache<[u8; 32], Resources, quick_cache::UnitWeighter, RandomState>,
}

impl LiveResourceCache {
    /// Sets the overlay; `None` means that there is none.
    pub fn set_overlay(&self, upstream: &str, overlay: Option<UpstreamOverlay>) {
        let mut overlays = self.overlays.write();
        match overlay {
            Some(overlay) => drop(overlays.insert(upstream.to_owned(), Arc::new(overlay))),
            None => drop(overlays.remove(upstream)),
        }
    }

    /// Returns the operator's overlay of a server, if there is one and it has been read.
    pub fn overlay(&self, upstream: &str) -> Option<Arc<UpstreamOverlay>> {
        self.overlays.read().get(upstream).cloned()
    }

    /// Returns the resources that may be listed. There are none if an overlay exists that has not been read yet.
    pub async fn compile(
        &self,
        source: &ItemSource,
        has_overlay: bool,
        raws: Vec<Box<RawValue>>,
    ) -> Resources {
        let Some(name) = source.target.upstream().cloned() else {
            return Resources::default();
        };
        let overlay = self.overlay(&name);
        if has_overlay && overlay.is_none() {
            return Resources::default();
        }
        let mut digest = Sha256::new_with_prefix(source.contract_version());
        if let Some(overlay) = &overlay {
            digest.update(format!("{:?} {:?}", overlay.take, overlay.leave));
        }
        for raw in &raws {
            digest.update(raw.get());
            digest.update([0]);
        }
        let digest = digest.finalize().into();
        if let Some(known) = self.known.get(&digest) {
            return known;
        }
        let contract = source.contract.clone();
        let compile = move || compile(&name, &contract, overlay.as_deref(), raws);
        let compiled: Resources = tokio::task::spawn_blocking(compile)
            .await
            .unwrap_or_default();
        self.known.insert(digest, compiled.clone());
        compiled
    }
}

impl Default for LiveResourceCache {
    fn default() -> Self {
        let (most, hasher) = (LISTS_MAX, RandomState::new());
        let known = Cache::with(
            most,
            most as u64,
            quick_cache::UnitWeighter,
            hasher,
            Default::default(),
        );
        Self {
            overlays: RwLock::default(),
            known,
        }
    }
}

fn compile(
    name: &str,
    contract: &str,
    overlay: Option<&UpstreamOverlay>,
    raws: Vec<Box<RawValue>>,
) -> Resources {
    let lists = ServerLists {
        resources: Some(raws),
        ..ServerLists::default()
    };
    let document = offer::compose(name, &lists).document.pinned();
    let with = UpstreamOptions {
        name,
        contract,
        overlay,
        ..UpstreamOptions::default()
    };
    match upstream::resources(&with, &document) {
        Ok(live) => {
            for left_out in &live.left_out {
                tracing::warn!(upstream = name, "a resource is not listed: {left_out}");
            }
            live.resources.into()
        }
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            tracing::warn!(
                upstream = name,
                "its resources are not listed: {}",
                problems.join("; ")
            );
            Resources::default()
        }
    }
}
