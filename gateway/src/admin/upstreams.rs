//! Other servers: the health of each, what of its lists is published, and a look at one now.

use axum::{Json, extract::State as Shared};

use super::{Answer, Ask, Refusal, problem::At, staff::Staff};
use crate::control::{
    gate::Role,
    operations::upstreams::{self, UpstreamView, UpstreamsView},
};

/// All of them, as the last look found each. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams", responses(
    (status = 200, body = UpstreamsView), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<UpstreamsView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(upstreams::list(&admin.control)))
}

/// One of them. Role: viewer.
#[utoipa::path(get, path = "/v1/upstreams/{name}", params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(upstreams::show(&admin.control, &name)?))
}

/// Looks at its lists now, and answers what was found. Role: editor.
#[utoipa::path(post, path = "/v1/upstreams/{name}/look",
    params(("name" = String, Path, description = "as it is configured")),
    responses((status = 200, body = UpstreamView), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal)))]
pub(super) async fn look(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<Json<UpstreamView>> {
    staff.needs(Role::Editor)?;
    Ok(Json(upstreams::look(&admin.control, &name).await?))
}
