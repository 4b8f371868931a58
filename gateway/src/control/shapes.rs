//! Recorded shapes: the descriptions of sources, kept in the state.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_contracts::{CollectionShape, form};
use weir_state::{GatewayState, RecordedShape, StateError};

use crate::config::GatewayConfig;

/// A collection, in a form or published.
#[derive(Clone, Copy)]
pub(super) struct CollectionSettings<'a> {
    pub(super) name: &'a str,
    pub(super) adapter: &'a str,
    pub(super) settings: &'a Value,
}

impl<'a> From<&'a form::FormCollection> for CollectionSettings<'a> {
    fn from(collection: &'a form::FormCollection) -> Self {
        Self {
            name: &collection.name,
            adapter: &collection.adapter,
            settings: &collection.settings,
        }
    }
}

/// Returns the shapes recorded for the collections of a form, by their names. A shape is valid only for the adapter and the
/// settings with which it was described.
pub(super) async fn recorded(
    state: &GatewayState,
    source: &form::ContractSource,
) -> Result<BTreeMap<String, CollectionShape>, StateError> {
    let contract = source.contract.as_deref().unwrap_or_default();
    let recorded = state.shapes(contract).await?;
    let counts = |row: RecordedShape| {
        let named = |collection: &&form::FormCollection| collection.name == row.collection;
        let collection = source.collections.iter().find(named)?;
        let settings: Value = serde_json::from_str(&row.settings).ok()?;
        let same = row.adapter == collection.adapter && settings == collection.settings;
        let shape = same.then(|| serde_json::from_str(&row.shape).ok())??;
        Some((row.collection, shape))
    };
    Ok(recorded.into_iter().filter_map(counts).collect())
}

/// Returns the shapes that a gateway with this configuration recorded for the collections of a form.
pub async fn recorded_shapes(
    config: &GatewayConfig,
    source: &form::ContractSource,
) -> Result<BTreeMap<String, CollectionShape>, StateError> {
    if !config.has_state() {
        return Ok(BTreeMap::new());
    }
    recorded(&config.open_state_to_read().await?, source).await
}

/// Records a shape. If it cannot be recorded, it is described again at the next start.
pub(super) async fn record(
    state: &GatewayState,
    contract: &str,
    collection: CollectionSettings<'_>,
    shape: &CollectionShape,
) {
    let row = RecordedShape {
        contract: contract.to_owned(),
        collection: collection.name.to_owned(),
        adapter: collection.adapter.to_owned(),
        settings: collection.settings.to_string(),
        shape: serde_json::to_string(shape).expect("plain data"),
    };
    if let Err(error) = state.record_shape(&row).await {
        tracing::warn!(contract, collection = collection.name, %error, "the shape could not be recorded");
    }
}
