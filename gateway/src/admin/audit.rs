//! The audit trail of this state folder, all processes together.

use axum::{Json, extract::State as Shared};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;
use weir_audit::{Filter, parse_time};

use super::{Answer, Ask, Refusal, problem::Asked, staff::Staff};
use crate::control::{gate::Role, operations::audit};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// RFC 3339, a date, or 90s, 15m, 2h, 7d ago; those of that time are among the records.
    since: Option<String>,
    /// As `since`; those of that time are not. The time of the first record of one answer asks for what is before it.
    until: Option<String>,
    /// call, intent, refused, admin or chain.
    kind: Option<String>,
    agent: Option<String>,
    tenant: Option<String>,
    tool: Option<String>,
    contract: Option<String>,
    /// ok, refused, failed, cancelled or unknown.
    outcome: Option<String>,
    call_id: Option<String>,
    /// The newest so many of those that match, 1 to 1000; by default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// The newest records that match, oldest first. Role: viewer.
#[utoipa::path(get, path = "/v1/audit", params(Wanted), responses(
    (status = 200, body = Vec<Object>), (status = 400, body = Refusal), (status = 401, body = Refusal),
    (status = 403, body = Refusal), (status = 422, body = Refusal), (status = 503, body = Refusal)))]
pub(super) async fn query(
    Shared(admin): Ask,
    staff: Staff,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Json<Vec<Value>>> {
    staff.needs(Role::Viewer)?;
    let time = |text: Option<String>| {
        let parsed = text.as_deref().map(parse_time).transpose();
        parsed.map_err(|error| Refusal::invalid(error.to_string()))
    };
    let filter = Filter {
        since: time(wanted.since)?,
        until: time(wanted.until)?,
        kinds: wanted.kind.into_iter().collect(),
        agent: wanted.agent,
        tenant: wanted.tenant,
        tool: wanted.tool,
        contract: wanted.contract,
        outcome: wanted.outcome,
        call_id: wanted.call_id,
        text: None,
        limit: None,
    };
    Ok(Json(
        audit::query(&admin.control, filter, wanted.limit).await?,
    ))
}

/// Whether any record was changed, deleted, moved or cut. Role: viewer.
#[utoipa::path(get, path = "/v1/audit/verify", responses(
    (status = 200, body = Object), (status = 401, body = Refusal), (status = 403, body = Refusal),
    (status = 503, body = Refusal)))]
pub(super) async fn verify(Shared(admin): Ask, staff: Staff) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(audit::verify(&admin.control).await?))
}
