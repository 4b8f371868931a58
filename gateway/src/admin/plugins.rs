//! Plugins: list, upload and remove them.

use std::time::Duration;

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest as _, Request, State as Shared},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody as Read, PathParams, arrived_within},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::plugins::{self, FileOutcome, PluginFile, PluginView, PluginsView},
};

/// The time within which a plugin must arrive: some are tens of megabytes, and links may be slow.
const UPLOAD_MAX: Duration = Duration::from_secs(600);

/// A plugin is a few megabytes; a component in another language may be tens.
pub(super) const BODY_MAX_BYTES: usize = 64 << 20;

/// The name of the route that loads the files of the folder.
const RELOAD: &str = "reload";

/// The build to accept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Accept {
    /// The sha256 of the waiting file, in hex: it names the build that the admin reviewed.
    sha256: String,
}

/// Lists plugins that run and files that were refused. Role: viewer.
#[utoipa::path(get, path = "/v1/plugins", responses(
    (status = 200, body = PluginsView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<PluginsView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(plugins::list(&admin.control)))
}

/// Puts a component into the plugins folder and waits until it runs or is refused. A refused one is removed again, one that must
/// be accepted first is kept, and the present build keeps running. Role: operator.
#[utoipa::path(put, path = "/v1/plugins/{name}",
    params(("name" = String, Path, description = "the file's name without `.wasm`")),
    request_body(content_type = "application/wasm", content = Vec<u8>),
    responses((status = 200, body = PluginView), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 413, body = AdminProblem),
        (status = 422, body = AdminProblem, description = "the file is not a plugin for this gateway"),
        (status = 503, body = AdminProblem)))]
pub(super) async fn upload(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    request: Request,
) -> Answer<Json<PluginView>> {
    staff.needs(Role::Operator)?;
    let plugin = PluginFile::named(name)?;
    let bytes = arrived_within(UPLOAD_MAX, Bytes::from_request(request, &()))
        .await?
        .map_err(|rejection| AdminProblem::new(rejection.status(), rejection.body_text()))?;
    let uploaded = plugins::upload(admin.control.clone(), plugin, bytes, staff.by());
    Ok(Json(uploaded.await?))
}

/// Uploads the plugin of that name, which is also that of a route.
pub(super) async fn upload_reload(
    admin: Ask,
    staff: AdminPrincipal,
    request: Request,
) -> Answer<Json<PluginView>> {
    upload(admin, staff, PathParams(RELOAD.to_owned()), request).await
}

/// Removes the plugin of that name.
pub(super) async fn remove_reload(
    admin: Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<FileOutcome>>> {
    remove(admin, staff, PathParams(RELOAD.to_owned())).await
}

/// Accepts a file that is held because its plugin may write, and waits until it runs or is refused. Role: operator.
#[utoipa::path(post, path = "/v1/plugins/{name}/accept",
    params(("name" = String, Path, description = "the file's name without `.wasm`")),
    request_body = Accept,
    responses((status = 200, body = PluginView), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem, description = "no file of that name and digest waits"),
        (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
        (status = 422, body = AdminProblem, description = "it does not load all the same"),
        (status = 503, body = AdminProblem)))]
pub(super) async fn accept(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    Read(accept): Read<Accept>,
) -> Answer<Json<PluginView>> {
    staff.needs(Role::Operator)?;
    let plugin = PluginFile::named(name)?;
    let accepted = plugins::accept(admin.control.clone(), plugin, &accept.sha256, staff.by());
    Ok(Json(accepted.await?))
}

/// Removes a plugin's file: a built-in plugin serves instead, or its tools answer `unavailable`. Role: operator.
#[utoipa::path(delete, path = "/v1/plugins/{name}",
    params(("name" = String, Path, description = "the file's name, with or without `.wasm`, or the plugin's")),
    responses((status = 200, body = Vec<FileOutcome>), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem),
        (status = 409, body = AdminProblem, description = "it is built in: there is no file to remove"),
        (status = 503, body = AdminProblem)))]
pub(super) async fn remove(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<Vec<FileOutcome>>> {
    staff.needs(Role::Operator)?;
    let removed = plugins::remove(admin.control.clone(), name, staff.by());
    Ok(Json(removed.await?))
}

/// Loads the files of the folder, and retries files that were refused or are held. Role: operator.
#[utoipa::path(post, path = "/v1/plugins/reload", responses(
    (status = 200, body = Vec<FileOutcome>, description = "one for each file, and for each plugin that is built in"),
    (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn reload(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<FileOutcome>>> {
    staff.needs(Role::Operator)?;
    Ok(Json(plugins::reload(&admin.control).await))
}
