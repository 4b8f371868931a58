//! Collections: the source of each, and whether it still is as it was published.

use axum::{Json, extract::State as Shared};

use super::{AdminProblem, Answer, Ask, problem::PathParams, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::collections::{self, CollectionView, Described},
};

/// The collections of all live contracts. Role: viewer.
#[utoipa::path(get, path = "/v1/collections", responses(
    (status = 200, body = Vec<CollectionView>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<CollectionView>>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(collections::list(&admin.control).await?))
}

/// Asks the source now. Role: editor.
#[utoipa::path(post, path = "/v1/collections/{contract}/{collection}/describe",
    params(("contract" = String, Path, description = "the contract's name"),
        ("collection" = String, Path, description = "the collection's name in it")),
    responses((status = 200, body = Described), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn describe(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((contract, collection)): PathParams<(String, String)>,
) -> Answer<Json<Described>> {
    staff.needs(Role::Editor)?;
    Ok(Json(
        collections::describe(&admin.control, &contract, &collection).await?,
    ))
}
