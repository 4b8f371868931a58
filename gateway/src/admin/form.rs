//! The vocabulary of contract files, and their JSON Schema.

use axum::{
    Json,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use weir_contracts::vocabulary;

use super::{AdminProblem, Answer, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::form::{self, FormView},
};

/// Returns the vocabulary of contract files: field types with their keys, matches, verbs. Role: viewer.
#[utoipa::path(get, path = "/v1/form", responses(
    (status = 200, body = FormView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn show(staff: AdminPrincipal) -> Answer<Json<FormView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(form::describe()))
}

/// The JSON Schema 2020-12 of a contract file, for editors. Role: viewer.
#[utoipa::path(get, path = "/v1/form/schema", responses(
    (status = 200, body = Object, content_type = "application/schema+json"),
    (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn schema(staff: AdminPrincipal) -> Answer<Response> {
    staff.needs(Role::Viewer)?;
    let kind = [(CONTENT_TYPE, "application/schema+json")];
    Ok((kind, vocabulary::file_schema().to_string()).into_response())
}
