//! Callers that were refused, with the reasons.

use axum::{Json, extract::State as Shared};

use super::{AdminProblem, Answer, Ask, staff::AdminPrincipal};
use crate::{
    control::{gate::Role, operations::identity},
    identity::IdentityFailure,
};

/// The recent requests without a valid key or token at this process, newest first, with the reason and the number of repeats; 100
/// from callers with a genuine credential and 100 from others. Role: auditor.
#[utoipa::path(get, path = "/v1/identity/failures", responses(
    (status = 200, body = Vec<IdentityFailure>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn failures(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<IdentityFailure>>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(identity::list_failures(&admin.control)))
}
