//! Keys of those who use this API.

use axum::{Json, extract::State as Shared, http::StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_state::AdminRow;

use super::{
    Answer, Ask, Refusal,
    keys::name,
    problem::{At, Body},
    staff::Staff,
};
use crate::{
    control::gate::Role,
    identity::{Kind, Minted, now_ms},
};

/// An admin key, without its secret.
#[derive(Serialize, ToSchema)]
pub(super) struct AdminView {
    id: String,
    name: String,
    role: Role,
    /// Milliseconds since 1970, as all times.
    created_ms: i64,
    created_by: String,
    revoked_ms: Option<i64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAdmin {
    /// 1 to 64 letters, digits, `-`, `_`, `.`, `@`, `:`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    name: String,
    role: Role,
}

#[derive(Serialize, ToSchema)]
pub(super) struct MadeAdmin {
    #[serde(flatten)]
    view: AdminView,
    /// The key. It is shown now and never again.
    key: String,
}

impl From<AdminRow> for AdminView {
    fn from(row: AdminRow) -> Self {
        let AdminRow {
            id,
            name,
            role,
            created_ms,
            created_by,
            revoked_ms,
            ..
        } = row;
        Self {
            id,
            name,
            role,
            created_ms,
            created_by,
            revoked_ms,
        }
    }
}

/// All admin keys that ever were. Role: operator.
#[utoipa::path(get, path = "/v1/admins", responses(
    (status = 200, body = Vec<AdminView>), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<Vec<AdminView>>> {
    staff.needs(Role::Operator)?;
    Ok(Json(
        admin
            .state
            .admins()
            .await?
            .into_iter()
            .map(AdminView::from)
            .collect(),
    ))
}

/// Makes an admin key. Role: operator.
#[utoipa::path(post, path = "/v1/admins", request_body = NewAdmin, responses(
    (status = 201, body = MadeAdmin), (status = 400, body = Refusal), (status = 401, body = Refusal),
    (status = 403, body = Refusal), (status = 413, body = Refusal), (status = 415, body = Refusal),
    (status = 422, body = Refusal)))]
pub(super) async fn create(
    Shared(admin): Ask,
    staff: Staff,
    Body(new): Body<NewAdmin>,
) -> Answer<(StatusCode, Json<MadeAdmin>)> {
    staff.needs(Role::Operator)?;
    name("name", &new.name)?;
    let minted = Minted::new(Kind::Admin)
        .map_err(|_| Refusal::unavailable("no random number could be had"))?;
    let row = AdminRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        name: new.name,
        role: new.role,
        created_ms: now_ms(),
        created_by: staff.by(),
        revoked_ms: None,
    };
    let detail = serde_json::Map::from_iter([("admin".to_owned(), row.name.clone().into())]);
    admin.gateway.audit().admin(
        AdminAct::KeyCreate,
        &row.id,
        None,
        &staff.by(),
        Some(&detail),
    )?;
    admin.state.add_admin(&row).await?;
    Ok((
        StatusCode::CREATED,
        Json(MadeAdmin {
            view: row.into(),
            key: minted.text,
        }),
    ))
}

/// Revokes an admin key: the next request with it is refused. Role: operator.
#[utoipa::path(delete, path = "/v1/admins/{id}", params(("id" = String, Path, description = "the key's id")), responses(
    (status = 204), (status = 401, body = Refusal), (status = 403, body = Refusal), (status = 404, body = Refusal)))]
pub(super) async fn revoke(
    Shared(admin): Ask,
    staff: Staff,
    At(id): At<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    let admins = admin.state.admins().await?;
    let key = admins.iter().find(|key| key.id == id).ok_or_else(|| {
        Refusal::not_found("admin key", &id).see("an id is wanted, as GET /v1/admins shows it")
    })?;
    if key.revoked_ms.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    admin
        .gateway
        .audit()
        .admin(AdminAct::KeyRevoke, &id, None, &staff.by(), None)?;
    admin.state.revoke_admin(&id, now_ms()).await?;
    Ok(StatusCode::NO_CONTENT)
}
