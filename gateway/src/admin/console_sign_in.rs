//! Signing in by an issuer of OpenID Connect. These routes require no key, since people use them to get a session.

use axum::{
    Json,
    extract::State as Shared,
    http::{HeaderMap, StatusCode, header},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AdminProblem, Answer, Ask, problem::JsonBody};
use crate::{
    control::operations::{
        console_sign_in::{self, SignInProvider, StartedSignIn},
        sessions::SignInLink,
    },
    identity::RequestCredential,
};

const PLACE: &str = "/v1/session/oidc";

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedSignIn {
    /// A secret of the tab, which is also required to end the sign-in.
    #[schema(min_length = 32, max_length = 128)]
    tab: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnsweredSignIn {
    /// The query with which the browser returned.
    #[schema(max_length = 16384)]
    query: String,
    /// The secret of the tab.
    tab: String,
}

/// Returns the provider that signs people in to the console. No credential is needed.
#[utoipa::path(get, path = "/v1/session/oidc", security(()), responses(
    (status = 200, body = SignInProvider),
    (status = 404, body = AdminProblem, description = "only admin keys sign in")))]
pub(super) async fn show(Shared(admin): Ask) -> Answer<Json<SignInProvider>> {
    Ok(Json(console_sign_in::provider(&admin.control)?))
}

/// Begins a sign-in at the issuer, from a page of this address. No credential is needed.
#[utoipa::path(post, path = "/v1/session/oidc", request_body = WantedSignIn, security(()), responses(
    (status = 201, body = StartedSignIn), (status = 400, body = AdminProblem), (status = 404, body = AdminProblem),
    (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn begin(
    Shared(admin): Ask,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<WantedSignIn>,
) -> Answer<(StatusCode, Json<StartedSignIn>)> {
    let origin = own_origin(&headers).ok_or_else(|| {
        let detail = "a sign-in begins on a page of this address, whose browser sends `Origin`";
        AdminProblem::new(StatusCode::BAD_REQUEST, detail)
    })?;
    let begun =
        console_sign_in::begin(&admin.control, &admin.sign_ins, origin, &wanted.tab).await?;
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Ends a sign-in. The link can be used once, within a minute, for `POST /v1/session`. Only the browser that began a sign-in can
/// end it.
#[utoipa::path(post, path = "/v1/session/oidc/answer", request_body = AnsweredSignIn, security(()), responses(
    (status = 201, body = SignInLink), (status = 400, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 404, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn finish(
    Shared(admin): Ask,
    JsonBody(answered): JsonBody<AnsweredSignIn>,
) -> Answer<(StatusCode, Json<SignInLink>)> {
    let AnsweredSignIn { query, tab } = answered;
    let ended = console_sign_in::finish(&admin.control, &admin.sign_ins, &query, &tab).await;
    let link = ended.inspect_err(|refused| {
        let (door, reason) = (&admin.door, refused.to_string());
        door.record_unknown_admin(PLACE, RequestCredential::None, "console sign-in", &reason);
    })?;
    Ok((StatusCode::CREATED, Json(link)))
}

/// Returns the origin of the page, if it is exactly this address: the door admits every page of this machine.
fn own_origin(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name)?.to_str().ok();
    let origin = text(header::ORIGIN)?;
    let (_, authority) = origin.split_once("://")?;
    text(header::HOST)
        .is_some_and(|host| host.eq_ignore_ascii_case(authority))
        .then_some(origin)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_page_of_another_port_is_not_this_one() {
        let origin = |origin: &'static str| {
            let headers = HeaderMap::from_iter([
                (header::HOST, HeaderValue::from_static("127.0.0.1:8485")),
                (header::ORIGIN, HeaderValue::from_static(origin)),
            ]);
            own_origin(&headers).is_some()
        };
        assert!(origin("http://127.0.0.1:8485") && origin("https://127.0.0.1:8485"));
        assert!(!origin("http://127.0.0.1:9000") && !origin("null"));
        assert!(own_origin(&HeaderMap::new()).is_none());
    }
}
