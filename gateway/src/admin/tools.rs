//! The catalogue of tools.

use axum::{Json, extract::State as Shared};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{AdminProblem, Answer, Ask, problem::QueryParams, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::tools::{self, ToolsPage, ToolsQuery},
};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WantedTools {
    /// The agent whose tools are listed: those that its key allows, in its view at `/mcp`. By default every tool.
    agent: Option<String>,
    /// Words that must all occur in the name, the title or the description.
    #[serde(default)]
    #[param(max_length = 400)]
    q: String,
    /// `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// The tools that are served, with their cost, 200 at a time. Role: viewer.
#[utoipa::path(get, path = "/v1/tools", params(WantedTools), responses(
    (status = 200, body = ToolsPage), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem, description = "there is no such agent"),
    (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(wanted): QueryParams<WantedTools>,
) -> Answer<Json<ToolsPage>> {
    staff.needs(Role::Viewer)?;
    let query = ToolsQuery {
        agent: wanted.agent.as_deref(),
        words: &wanted.q,
        cursor: wanted.cursor.as_deref(),
    };
    Ok(Json(tools::list(&admin.control, query).await?))
}
