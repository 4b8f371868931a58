//! Returns the entries that connect clients.

use axum::{Json, extract::State as Shared};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{AdminProblem, Answer, Ask, problem::QueryParams, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::snippets::{self, ClientSnippet},
};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WantedSnippets {
    /// Only this client, by its name in `weir connect`.
    client: Option<String>,
    /// The agent whose key the client is given.
    agent: Option<String>,
}

/// Lists the entries by which clients connect, without a key in them. Role: viewer.
#[utoipa::path(get, path = "/v1/snippets", params(WantedSnippets), responses(
    (status = 200, body = Vec<ClientSnippet>), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem, description = "there is no such client, or no such agent"),
    (status = 409, body = AdminProblem, description = "HTTP is not served at a configured address")))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(wanted): QueryParams<WantedSnippets>,
) -> Answer<Json<Vec<ClientSnippet>>> {
    staff.needs(Role::Viewer)?;
    let (client, agent) = (wanted.client.as_deref(), wanted.agent.as_deref());
    Ok(Json(snippets::list(&admin.control, client, agent)?))
}
