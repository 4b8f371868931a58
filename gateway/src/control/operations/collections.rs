//! Collections: the source of each, and whether it still is as it was published.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{OperationError, OperationResult};
use crate::control::{ContractDrift, ControlPlane, ShapeFailure};

/// A collection of a live contract, and how its source had changed at the last check.
#[derive(Serialize, ToSchema)]
pub struct CollectionView {
    pub contract: String,
    pub collection: String,
    pub adapter: String,
    /// The only columns that may leave the source.
    pub published: Vec<String>,
    pub write: bool,
    #[serde(flatten)]
    pub drift: DriftView,
}

/// The difference between the source and the recorded shape, as of the last check.
#[derive(Serialize, ToSchema)]
pub struct DriftView {
    /// One sentence for each column; empty if the collection is served.
    pub drift: Vec<String>,
    /// What agents would notice of it, as a difference of results: `{class, breaking, fingerprint, items}`. They get
    /// `source_changed`.
    #[schema(value_type = Option<Object>)]
    pub difference: Option<Value>,
    /// The draft that would publish the contract over the source as it is now, if its form fits the source unchanged.
    pub draft: Option<String>,
    /// Otherwise what to edit in the form, one sentence for each place.
    pub edits: Vec<String>,
}

/// A source as it is now, next to the published shape.
#[derive(Serialize, ToSchema)]
pub struct Described {
    /// The source's current description of itself.
    #[schema(value_type = Object)]
    pub shape: Value,
    #[serde(flatten)]
    pub drift: DriftView,
}

impl From<Option<Arc<ContractDrift>>> for DriftView {
    fn from(drift: Option<Arc<ContractDrift>>) -> Self {
        let drift = drift.as_ref();
        Self {
            drift: drift.map_or_else(Vec::new, |drift| drift.reasons.clone()),
            difference: drift
                .map(|drift| serde_json::to_value(&drift.difference).expect("plain data")),
            draft: drift.and_then(|drift| drift.draft.clone()),
            edits: drift.map_or_else(Vec::new, |drift| drift.edits.clone()),
        }
    }
}

/// Returns the collections of all live contracts.
pub async fn list(control: &ControlPlane) -> OperationResult<Vec<CollectionView>> {
    control.gate().refresh().await?;
    let mut views = Vec::new();
    for (name, live) in control.gate().live() {
        for collection in &live.contract.collections {
            views.push(CollectionView {
                contract: name.clone(),
                collection: collection.name.clone(),
                adapter: collection.adapter.clone(),
                published: collection.published.clone(),
                write: collection.write,
                drift: control.drift().known(&live, &collection.name).into(),
            });
        }
    }
    Ok(views)
}

/// Asks the source now.
pub async fn describe(
    control: &ControlPlane,
    contract: &str,
    collection: &str,
) -> OperationResult<Described> {
    control.gate().refresh().await?;
    let live = control.gate().live().get(contract).cloned();
    let live = live.ok_or_else(|| OperationError::not_found("live contract", contract))?;
    let found = live.contract.collection(collection);
    let collection = found.ok_or_else(|| OperationError::not_found("collection", collection))?;
    let (shape, drift) =
        control
            .drift()
            .look(&live, collection)
            .await
            .map_err(|error| match error {
                ShapeFailure::Later(away) => OperationError::unavailable(away.why),
                ShapeFailure::Refused(source) => {
                    let problems = vec![source.problem];
                    OperationError::problems("the source cannot be described", problems)
                }
            })?;
    Ok(Described {
        shape: serde_json::to_value(shape).expect("plain data"),
        drift: drift.into(),
    })
}
