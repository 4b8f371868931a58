//! Callers that were refused, with the reasons.

use axum::{Json, extract::State as Shared};

use super::{AdminProblem, Answer, Ask, staff::AdminPrincipal};
use crate::{
    control::{gate::Role, operations::identity},
    identity::IdentityFailure,
};

/// The recent requests without a valid key or token at this process, the newest first, with the reason of each and how often
/// it was repeated; 100 of callers whose credential is genuine and 100 of others. Role: auditor.
#[utoipa::path(get, path = "/v1/identity/failures", responses(
    (status = 200, body = Vec<IdentityFailure>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn failures(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<IdentityFailure>>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(identity::list_failures(&admin.control)))
}
