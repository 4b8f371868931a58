//! Keys of agents: made once, shown once, revoked for good.

use axum::{Json, extract::State as Shared, http::StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams, read_nullable_object},
    staff::AdminPrincipal,
};
use crate::{
    control::{
        gate::Role,
        operations::keys::{self, KeyRequest, KeyView, MadeKey},
    },
    identity::{AccessList, KeyLimits},
    wire::raw,
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// The holder: 1 to 64 letters, digits, `-`, `_`, `.`, `@`, `:`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    agent: String,
    /// The tenant of the agent; by default the agent itself.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    tenant: Option<String>,
    /// By default every contract.
    #[serde(default, deserialize_with = "read_nullable_object")]
    access: Option<AccessList>,
    /// The view that it sees at `/mcp`. By default everything that it may use. It does not restrict the agent: `access` does.
    #[schema(max_length = 32, pattern = "^[a-z][a-z0-9-]*$")]
    view: Option<String>,
    #[serde(default, deserialize_with = "raw::object")]
    limits: KeyLimits,
    /// By default it does not expire.
    #[schema(minimum = 1, maximum = 315360000)]
    expires_in_s: Option<i64>,
}

impl From<NewKey> for KeyRequest {
    fn from(new: NewKey) -> Self {
        Self {
            agent: new.agent,
            tenant: new.tenant,
            access: new.access,
            view: new.view,
            limits: new.limits,
            expires_in_s: new.expires_in_s,
        }
    }
}

/// All keys, revoked ones too. Role: viewer.
#[utoipa::path(get, path = "/v1/keys", responses(
    (status = 200, body = Vec<KeyView>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<Vec<KeyView>>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(keys::list(&admin.control).await?))
}

/// Makes a key for an agent, even if it names contracts or tools that do not exist yet. Role: operator.
#[utoipa::path(post, path = "/v1/keys", request_body = NewKey, responses(
    (status = 201, body = MadeKey), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn create(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(new): JsonBody<NewKey>,
) -> Answer<(StatusCode, Json<MadeKey>)> {
    staff.needs(Role::Operator)?;
    let made = keys::create(&admin.control, new.into(), &staff.by()).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes one key: the next call with it is refused, and its open streams and sessions end. Role: operator.
#[utoipa::path(delete, path = "/v1/keys/{id}", params(("id" = String, Path, description = "the key's id")), responses(
    (status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 404, body = AdminProblem)))]
pub(super) async fn revoke(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    keys::revoke(&admin.control, &id, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
