//! Signs people in, and returns the present session.

use axum::{Json, extract::State as Shared, http::StatusCode};

use super::{
    AdminProblem, Answer, Ask,
    problem::PathParams,
    staff::{AdminPrincipal, SignInPrincipal},
};
use crate::control::{
    gate::Role,
    operations::sessions::{self, NewSession, OpenSession, SessionView, SignInLink},
};

const KEY_ALONE: &str = "a session makes no other one: sign in with the admin key or a link";

/// Begins a session, with an admin key or a link from `POST /v1/session/link` as the bearer token. Its own token is accepted like
/// the key for 12 hours, or until it has not been used for an hour. Role: any.
#[utoipa::path(post, path = "/v1/session", responses(
    (status = 201, body = NewSession), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn begin(
    Shared(admin): Ask,
    SignInPrincipal(staff): SignInPrincipal,
) -> Answer<(StatusCode, Json<NewSession>)> {
    staff.needs(Role::Approver)?;
    require_key(&staff)?;
    let made = sessions::begin(&admin.control, &staff.key).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Returns the caller: role, version of the program, address for clients. Role: any.
#[utoipa::path(get, path = "/v1/session", responses(
    (status = 200, body = SessionView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn show(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<SessionView>> {
    staff.needs(Role::Approver)?;
    let expires_ms = staff.session.as_ref().map(|session| session.expires_ms);
    Ok(Json(sessions::show(&admin.control, &staff.key, expires_ms)))
}

/// Ends the session that the request came with. Role: any.
#[utoipa::path(delete, path = "/v1/session", responses(
    (status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 409, body = AdminProblem, description = "the request came with an admin key")))]
pub(super) async fn end(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<StatusCode> {
    staff.needs(Role::Approver)?;
    let session = staff.session.as_ref().map(|session| session.id.as_str());
    sessions::end(&admin.control, session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The sessions of all admin keys that have not ended, newest first, at most 1000. Role: operator.
#[utoipa::path(get, path = "/v1/sessions", responses(
    (status = 200, body = Vec<OpenSession>), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<Json<Vec<OpenSession>>> {
    staff.needs(Role::Operator)?;
    let own = staff.session.as_ref().map(|session| session.id.as_str());
    Ok(Json(sessions::list(&admin.control, own).await?))
}

/// Ends a session: the next request with it is refused. Role: operator.
#[utoipa::path(delete, path = "/v1/sessions/{id}", params(("id" = String, Path, description = "the session's id")), responses(
    (status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 404, body = AdminProblem)))]
pub(super) async fn end_one(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    sessions::end_one(&admin.control, &id, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a link that begins one session of the same admin key, once, within 60 seconds. Role: any.
#[utoipa::path(post, path = "/v1/session/link", responses(
    (status = 201, body = SignInLink), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn link(
    Shared(admin): Ask,
    staff: AdminPrincipal,
) -> Answer<(StatusCode, Json<SignInLink>)> {
    staff.needs(Role::Approver)?;
    require_key(&staff)?;
    let made = sessions::make_link(&admin.state, &staff.key.id).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Refuses a session any request that would let it outlive its own end.
fn require_key(staff: &AdminPrincipal) -> Result<(), AdminProblem> {
    match staff.session {
        None => Ok(()),
        Some(_) => Err(AdminProblem::new(StatusCode::FORBIDDEN, KEY_ALONE)),
    }
}
