//! Collections: what each live contract reaches, and whether its source still is what was published.

use std::sync::Arc;

use axum::{Json, extract::State as Shared};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{Answer, Ask, Refusal, problem::At, staff::Staff};
use crate::control::{Describe, Drift, gate::Role};

#[derive(Serialize, ToSchema)]
pub(super) struct CollectionView {
    contract: String,
    collection: String,
    adapter: String,
    /// The columns that may ever leave the source.
    published: Vec<String>,
    write: bool,
    #[serde(flatten)]
    drift: DriftView,
}

/// How the source was found to differ from the recorded shape, at the last look.
#[derive(Serialize, ToSchema)]
pub(super) struct DriftView {
    /// One sentence for each column; empty: it serves.
    drift: Vec<String>,
    /// What agents would get of it, as a difference of results: `{class, breaking, fingerprint, items}`. They get
    /// `source_changed`.
    #[schema(value_type = Option<Object>)]
    difference: Option<Value>,
    /// The draft that would publish the contract over the source as it is now, where its form fits that unchanged.
    draft: Option<String>,
    /// Otherwise what to edit in the form, one sentence for each place.
    edits: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Described {
    /// As the source describes itself now.
    #[schema(value_type = Object)]
    shape: Value,
    #[serde(flatten)]
    drift: DriftView,
}

impl From<Option<Arc<Drift>>> for DriftView {
    fn from(drift: Option<Arc<Drift>>) -> Self {
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

/// The collections of all live contracts. Role: viewer.
#[utoipa::path(get, path = "/v1/collections", responses(
    (status = 200, body = Vec<CollectionView>), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<Vec<CollectionView>>> {
    staff.needs(Role::Viewer)?;
    admin.control.gate().refresh().await?;
    let mut views = Vec::new();
    for (name, live) in admin.control.gate().live() {
        for collection in &live.contract.collections {
            views.push(CollectionView {
                contract: name.clone(),
                collection: collection.name.clone(),
                adapter: collection.adapter.clone(),
                published: collection.published.clone(),
                write: collection.write,
                drift: admin.control.drift().known(&live, &collection.name).into(),
            });
        }
    }
    Ok(Json(views))
}

/// Asks the source now. Role: editor.
#[utoipa::path(post, path = "/v1/collections/{contract}/{collection}/describe",
    params(("contract" = String, Path, description = "the contract's name"),
        ("collection" = String, Path, description = "the collection's name in it")),
    responses((status = 200, body = Described), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal), (status = 422, body = Refusal), (status = 503, body = Refusal)))]
pub(super) async fn describe(
    Shared(admin): Ask,
    staff: Staff,
    At((contract, collection)): At<(String, String)>,
) -> Answer<Json<Described>> {
    staff.needs(Role::Editor)?;
    admin.control.gate().refresh().await?;
    let live = admin.control.gate().live().get(&contract).cloned();
    let live = live.ok_or_else(|| Refusal::not_found("live contract", &contract))?;
    let found = live.contract.collection(&collection);
    let collection = found.ok_or_else(|| Refusal::not_found("collection", &collection))?;
    let (shape, drift) = admin
        .control
        .drift()
        .look(&live, collection)
        .await
        .map_err(|error| match error {
            Describe::Later(away) => Refusal::unavailable(away.why),
            Describe::Refused(problem) => {
                Refusal::problems("the source cannot be described", &[problem])
            }
        })?;
    Ok(Json(Described {
        shape: serde_json::to_value(shape).expect("plain data"),
        drift: drift.into(),
    }))
}
