//! Connections and the sources that they reach, for the author of a contract.

use std::time::Duration;

use axum::{
    Json,
    extract::{Request, State as Shared},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams, QueryParams, arrived_within},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::{
        connections::{self, ConnectionCheck, ConnectionView, SourceList},
        sources::{self, DescribedSource, DraftedSource, SourceRequest, SourceRows},
        uploads::{self, UploadedFile},
    },
};

/// The time within which a file must arrive: links may be slow.
const UPLOAD_MAX: Duration = Duration::from_secs(600);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WantedSources {
    /// A part of the name; upper and lower case are equal.
    #[serde(default)]
    #[param(max_length = 400)]
    q: String,
    /// `next_cursor` of the previous answer.
    #[serde(default)]
    #[param(max_length = 400)]
    cursor: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedSource {
    /// A connection of the configuration.
    connection: String,
    /// A table or file as `GET /v1/connections/{name}/sources` lists it, or a path of a web service.
    #[schema(min_length = 1, max_length = 1024)]
    source: String,
    /// Further settings of the collection, such as `sheet`.
    #[serde(default)]
    #[schema(value_type = Object)]
    settings: Map<String, Value>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedRows {
    /// A connection of the configuration.
    connection: String,
    /// A table or file as `GET /v1/connections/{name}/sources` lists it, or a path of a web service.
    #[schema(min_length = 1, max_length = 1024)]
    source: String,
    /// Further settings of the collection, such as `sheet`.
    #[serde(default)]
    #[schema(value_type = Object)]
    settings: Map<String, Value>,
    /// Rows, 1 to 20; by default 20.
    #[schema(minimum = 1, maximum = 20)]
    limit: Option<u32>,
}

impl From<WantedSource> for SourceRequest {
    fn from(wanted: WantedSource) -> Self {
        Self {
            connection: wanted.connection,
            source: wanted.source,
            settings: wanted.settings,
        }
    }
}

/// The connections of the configuration: what uses them, and which could not be opened. Role: viewer.
#[utoipa::path(get, path = "/v1/connections", responses(
    (status = 200, body = Vec<ConnectionView>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<ConnectionView>>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(connections::list(&admin.control).await?))
}

/// Checks whether the other end answers, for at most 10 seconds. Role: editor.
#[utoipa::path(post, path = "/v1/connections/{name}/check",
    params(("name" = String, Path, description = "the connection's name")),
    responses((status = 200, body = ConnectionCheck), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn check(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<ConnectionCheck>> {
    staff.needs(Role::Editor)?;
    Ok(Json(connections::check(&admin.control, &name).await?))
}

/// The tables or spreadsheets that a connection reaches, 200 at a time. A web service lists none. Role: editor.
#[utoipa::path(get, path = "/v1/connections/{name}/sources",
    params(("name" = String, Path, description = "the connection's name"), WantedSources),
    responses((status = 200, body = SourceList), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 422, body = AdminProblem),
        (status = 503, body = AdminProblem)))]
pub(super) async fn list_sources(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    QueryParams(wanted): QueryParams<WantedSources>,
) -> Answer<Json<SourceList>> {
    staff.needs(Role::Editor)?;
    let listed = connections::sources(&admin.control, &name, &wanted.q, &wanted.cursor);
    Ok(Json(listed.await?))
}

/// Describes a source as it is now, and records this in the trail. Role: editor.
#[utoipa::path(post, path = "/v1/sources/describe", request_body = WantedSource, responses(
    (status = 200, body = DescribedSource), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
    (status = 415, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn describe(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(wanted): JsonBody<WantedSource>,
) -> Answer<Json<DescribedSource>> {
    staff.needs(Role::Editor)?;
    let described = sources::describe(&admin.control, &wanted.into(), &staff.by()).await?;
    Ok(Json(described))
}

/// Drafts a contract over a source, as `weir draft` does; nothing is stored. It is recorded in the trail. Role: editor.
#[utoipa::path(post, path = "/v1/sources/draft", request_body = WantedSource, responses(
    (status = 200, body = DraftedSource), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
    (status = 415, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn draft(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(wanted): JsonBody<WantedSource>,
) -> Answer<Json<DraftedSource>> {
    staff.needs(Role::Editor)?;
    let drafted = sources::draft(&admin.control, &wanted.into(), &staff.by()).await?;
    Ok(Json(drafted))
}

/// The first rows of a source, without the values of columns that are named like secrets. It is recorded in the trail. Role:
/// editor.
#[utoipa::path(post, path = "/v1/sources/rows", request_body = WantedRows, responses(
    (status = 200, body = SourceRows), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
    (status = 415, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn rows(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(wanted): JsonBody<WantedRows>,
) -> Answer<Json<SourceRows>> {
    staff.needs(Role::Editor)?;
    let request = SourceRequest {
        connection: wanted.connection,
        source: wanted.source,
        settings: wanted.settings,
    };
    let rows = sources::rows(&admin.control, &request, wanted.limit, &staff.by()).await?;
    Ok(Json(rows))
}

/// Creates or replaces the file at that path, at most 64 MiB, if the configuration has `uploads = true`. It is recorded in the
/// trail. Role: editor.
#[utoipa::path(put, path = "/v1/files/{connection}/{*path}",
    params(("connection" = String, Path, description = "the connection's name"),
        ("path" = String, Path, description = "the file's path in it, folders parted by `/`")),
    request_body(content_type = "application/octet-stream", content = Vec<u8>),
    responses((status = 200, body = UploadedFile), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 408, body = AdminProblem),
        (status = 409, body = AdminProblem, description = "the connection takes no files"), (status = 413, body = AdminProblem),
        (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn upload(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((connection, path)): PathParams<(String, String)>,
    request: Request,
) -> Answer<Json<UploadedFile>> {
    staff.needs(Role::Editor)?;
    let body = request.into_body().into_data_stream();
    let put = uploads::put(admin.control.clone(), connection, path, body, staff.by());
    Ok(Json(arrived_within(UPLOAD_MAX, put).await??))
}
