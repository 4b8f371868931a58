//! Checks whether a new build still has what published contracts were compiled against.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use weir_connections::FailureCode;
use weir_contracts::CollectionShape;

use super::{PluginLoader, checks::BuildCandidate};
use crate::{
    AdapterFailure, CollectionRef, NeededCollection,
    call::{self, GuestReply, GuestRequest},
    guest::{CallPurpose, GuestCall},
    plugin::PluginGeneration,
};

/// The time one describe may take; a slower source is treated as down.
const DESCRIBE_MAX: Duration = Duration::from_secs(5);

impl PluginLoader {
    /// Checks the collections in use. All problems come at once, each with its contract, collection and field.
    pub(super) async fn check_needs(&self, build: &BuildCandidate) -> Result<(), String> {
        let Some(in_use) = self.served.in_use.load_full() else {
            return Ok(());
        };
        let new = &build.generation;
        let old = build
            .current
            .as_ref()
            .map(|plugin| plugin.generation.load_full());
        let mut problems = Vec::new();
        for adapter in old
            .iter()
            .flat_map(|old| &old.about.adapters)
            .filter(|adapter| !new.provides(&adapter.name))
        {
            for needed in in_use(&adapter.name) {
                problems.push(format!(
                    "`{}` uses the adapter `{}`, which is gone",
                    needed.source.key, adapter.name
                ));
            }
        }
        // Contracts often share a source: each is asked once.
        let mut described: HashMap<(Arc<str>, Arc<str>), Result<String, AdapterFailure>> =
            HashMap::new();
        for adapter in &new.about.adapters {
            for needed in in_use(&adapter.name) {
                let source = (
                    Arc::clone(&needed.source.adapter),
                    Arc::clone(&needed.source.settings),
                );
                if !described.contains_key(&source) {
                    described.insert(source.clone(), self.describe(new, &needed.source).await);
                }
                if let Some(live) = described.get(&source) {
                    problems.extend(compare(&needed, live));
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "published contracts need more: {}",
                problems.join("; ")
            ))
        }
    }

    async fn describe(
        &self,
        generation: &PluginGeneration,
        collection: &CollectionRef,
    ) -> Result<String, AdapterFailure> {
        let _running = self.engines.running();
        let call = GuestCall::own(
            &generation.profile,
            CallPurpose::Read,
            Instant::now() + DESCRIBE_MAX,
        );
        let ask = GuestRequest::Describe {
            adapter: Arc::clone(&collection.adapter),
            settings: Arc::clone(&collection.settings),
        };
        match call::run(generation, &mut None, call, ask).await? {
            GuestReply::Text(shape) => Ok(shape),
            GuestReply::Page(_) | GuestReply::Summary(_) | GuestReply::Answer(_) => {
                Err(AdapterFailure::Failed("it answered no shape".into()))
            }
        }
    }
}

fn compare(needed: &NeededCollection, live: &Result<String, AdapterFailure>) -> Vec<String> {
    let key = &needed.source.key;
    let live = match live {
        Ok(live) => live,
        // Such an answer is no evidence about the new build.
        Err(AdapterFailure::Guest(error))
            if FailureCode::of_word(&error.code).is_outside_plugin() =>
        {
            return Vec::new();
        }
        Err(AdapterFailure::Timeout | AdapterFailure::Overloaded { .. }) => return Vec::new(),
        Err(failure) => return vec![format!("`{key}` cannot be described: {failure}")],
    };
    let live: CollectionShape = match serde_json::from_str(live) {
        Ok(live) => live,
        Err(error) => return vec![format!("`{key}`: its shape cannot be read: {error}")],
    };
    let reasons = needed.published.accepts(&live).err().unwrap_or_default();
    reasons
        .into_iter()
        .map(|reason| format!("`{key}`: {reason}"))
        .collect()
}
