//! Other servers: the health of each, which of its lists are published, and a look at one now.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State as Shared,
    http::{HeaderName, HeaderValue, StatusCode},
};
use serde::Deserialize;
use utoipa::ToSchema;
use weir_text::shorten;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, NAME_MAX_CHARS, PathParams},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::{
        accounts::{self, AccountView},
        upstream_looks::{self, UpstreamLook, UpstreamOffer},
        upstreams::{self, UpstreamView, UpstreamsView},
    },
};

/// The name of the route that looks at a server.
const LOOK: &str = "look";

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedLook {
    /// The name that the server would get.
    #[schema(max_length = 32, pattern = "^[a-z][a-z0-9-]*$")]
    name: String,
    /// Its endpoint.
    url: String,
    /// Headers for this look only, such as `Authorization`; they are not stored.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The text of an overlay file, which selects and renames its tools: the answer shows what would be published with it.
    overlay: Option<String>,
}

/// All servers, as of the last look at each. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams", responses(
    (status = 200, body = UpstreamsView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<UpstreamsView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(upstreams::list(&admin.control)))
}

/// One server. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams/{name}", params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(upstreams::show(&admin.control, &name)?))
}

/// Looks at the lists of a server now, and returns the findings. Role: editor.
#[utoipa::path(post, path = "/v1/upstreams/{name}/look",
    params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn look(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Editor)?;
    Ok(Json(upstreams::look(&admin.control, &name).await?))
}

/// Lists the accounts that callers have connected at a server, without their secrets. Role: operator.
#[utoipa::path(get, path = "/v1/upstreams/{name}/accounts",
    params(("name" = String, Path, description = "as it is configured, or was")),
    responses((status = 200, body = Vec<AccountView>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list_accounts(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<Vec<AccountView>>> {
    staff.needs(Role::Operator)?;
    Ok(Json(accounts::list(&admin.control, &name).await?))
}

/// Removes an account, and revokes it at its issuer where possible: the next call of its owner asks for a sign-in again. Role:
/// operator.
#[utoipa::path(delete, path = "/v1/upstreams/{name}/accounts/{number}",
    params(("name" = String, Path, description = "as it is configured, or was"),
        ("number" = i64, Path, description = "the account's number")),
    responses((status = 204), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn disconnect(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((name, number)): PathParams<(String, i64)>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    accounts::disconnect(&admin.control, &name, number, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Looks at a server that is not in the configuration: its offer, lint, and cost. Nothing is added, and no command is
/// started. Role: operator.
#[utoipa::path(post, path = "/v1/upstreams/look", request_body = WantedLook, responses(
    (status = 200, body = UpstreamOffer), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn look_at(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(wanted): JsonBody<WantedLook>,
) -> Answer<Json<UpstreamOffer>> {
    staff.needs(Role::Operator)?;
    check_headers(&wanted.headers)?;
    let wanted = UpstreamLook {
        name: wanted.name,
        url: wanted.url,
        headers: wanted.headers,
        overlay: wanted.overlay,
    };
    let offer = upstream_looks::look_at(&admin.control, wanted, &staff.by()).await?;
    Ok(Json(offer))
}

/// Refuses headers that no request can carry: another attempt would not help.
fn check_headers(headers: &BTreeMap<String, String>) -> Answer<()> {
    for (name, value) in headers {
        let shown = shorten(name, NAME_MAX_CHARS);
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            let detail = format!("`headers`: `{shown}` is not the name of a header");
            return Err(AdminProblem::invalid(detail));
        }
        if HeaderValue::from_str(value).is_err() {
            let detail =
                format!("`headers`: the value of `{shown}` holds characters that no header may");
            return Err(AdminProblem::invalid(detail));
        }
    }
    Ok(())
}

/// Shows the server of that name, which is also that of a route.
pub(super) async fn show_look(admin: Ask, staff: AdminPrincipal) -> Answer<Json<UpstreamView>> {
    show(admin, staff, PathParams(LOOK.to_owned())).await
}
