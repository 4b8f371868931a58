//! Idempotent retries: a POST that is sent again with the same `Idempotency-Key` gets the first answer again, and nothing is done
//! twice, even if both arrive at the same moment. A refused request had no effect, so it is not kept.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequestParts as _, Request, State as Shared},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http_body_util::BodyExt as _;
use sha2::{Digest, Sha256};
use weir_state::{GatewayState, IdempotencyState, ReplyRow, StateError};

use super::{AdminContext, AdminProblem, contracts, problem::arrived, staff::AdminPrincipal};
use crate::{
    control::gate::Role,
    identity::now_ms,
    transport::http::connections::{self, ClientConnection},
    wire::is_idempotency_key,
};

const HEADER: &str = "idempotency-key";
const WRONG_KEY: &str =
    "an Idempotency-Key is 1 to 128 visible ASCII characters without spaces, given once";
/// The bound on the body of a request with a key: the longest is a submitted contract.
const BODY_MAX_BYTES: usize = contracts::SUBMITTED_MAX_BYTES;
/// The bound on the bodies of those who may not submit contracts: a decision is short.
const SHORT_BODY_MAX_BYTES: usize = 64 << 10;
/// The bound on an answer that is kept.
const KEPT_MAX_BYTES: usize = 2 << 20;
/// How long a retry waits for the first request to end.
const WAIT_MAX: Duration = Duration::from_secs(10);
const WAIT_INTERVAL: Duration = Duration::from_millis(20);
/// How long storing an answer is attempted, and the time between two attempts.
const KEEP_MAX: Duration = Duration::from_secs(10 * 60);
const KEEP_INTERVAL: Duration = Duration::from_secs(1);
const UNDER_WAY: &str = "the first request with this Idempotency-Key has not ended: ask again. If its gateway was stopped \
                         meanwhile, look whether it was done, and use another key";
const NOT_TAKEN: &str =
    "no Idempotency-Key is accepted here: the answer contains a secret and is not kept";
/// The routes whose answers are shown once and not stored.
pub(super) const SECRET: [&str; 6] = [
    "/v1/keys",
    "/v1/admins",
    "/v1/session",
    "/v1/session/link",
    "/v1/session/oidc",
    "/v1/session/oidc/answer",
];

pub(super) async fn answer(
    Shared(admin): Shared<Arc<AdminContext>>,
    request: Request,
    next: Next,
) -> Response {
    let has_key = request.headers().contains_key(HEADER);
    if !has_key || *request.method() != Method::POST {
        return next.run(request).await;
    }
    // A person who signs in has no key yet, so this comes before the caller is identified.
    if SECRET.contains(&request.uri().path()) {
        return AdminProblem::new(StatusCode::BAD_REQUEST, NOT_TAKEN).into_response();
    }
    let (mut head, body) = request.into_parts();
    let staff = match AdminPrincipal::from_request_parts(&mut head, &admin).await {
        Ok(staff) => staff,
        Err(refusal) => return refusal.into_response(),
    };
    let Some(key) = read_key(&head.headers) else {
        return AdminProblem::new(StatusCode::BAD_REQUEST, WRONG_KEY).into_response();
    };
    let request = Request::from_parts(head, body);
    // A viewer changes nothing, so nothing could be done twice.
    if !staff.key.roles().changes_things() {
        return next.run(request).await;
    }
    once(admin, staff, &key, request, next)
        .await
        .unwrap_or_else(AdminProblem::into_response)
}

/// Returns the key of a request; `None` if it is invalid, or if there are several.
fn read_key(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(HEADER).iter();
    let (key, None) = (given.next()?, given.next()) else {
        return None;
    };
    let key = key.to_str().ok().filter(|key| is_idempotency_key(key));
    key.map(str::to_owned)
}

async fn once(
    admin: Arc<AdminContext>,
    staff: AdminPrincipal,
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response, AdminProblem> {
    let bad = |detail: &str| AdminProblem::new(StatusCode::BAD_REQUEST, detail);
    let (head, body) = request.into_parts();
    let too_large = || AdminProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    let body_max = match staff.key.role {
        Role::Approver => SHORT_BODY_MAX_BYTES,
        _ => BODY_MAX_BYTES,
    };
    if body.size_hint().lower() > body_max as u64 {
        return Err(too_large());
    }
    let body = arrived(axum::body::to_bytes(body, body_max)).await?;
    let body = body.map_err(|_| too_large())?;
    let asked = digest(head.uri.path(), &body);
    let another = || bad("the Idempotency-Key was used for another request");
    let waited = Instant::now();
    let begun_ms = loop {
        let begun_ms = now_ms();
        match admin
            .state
            .begin_reply(&staff.key.id, key, &asked, begun_ms)
            .await?
        {
            IdempotencyState::First => break begun_ms,
            IdempotencyState::Answered(reply) if reply.request == asked => return Ok(again(reply)),
            IdempotencyState::Pending(request) if request == asked => {}
            IdempotencyState::Answered(_) | IdempotencyState::Pending(_) => return Err(another()),
        }
        if waited.elapsed() > WAIT_MAX {
            return Err(AdminProblem::new(StatusCode::CONFLICT, UNDER_WAY));
        }
        tokio::time::sleep(WAIT_INTERVAL).await;
    };
    // The work has a separate task: it runs to its end, and its answer is kept, even if the client has gone.
    let begun = BegunRequest {
        state: admin.state.clone(),
        admin: staff.key.id.clone(),
        key: key.to_owned(),
        begun_ms,
    };
    let work = run(begun, Request::from_parts(head, Body::from(body)), next);
    let run = connections::within(ClientConnection::current(), work);
    tokio::spawn(run)
        .await
        .map_err(|_| AdminProblem::unavailable("the request broke off"))?
}

/// The first request with its key.
struct BegunRequest {
    state: Arc<GatewayState>,
    admin: String,
    key: String,
    begun_ms: i64,
}

async fn run(begun: BegunRequest, request: Request, next: Next) -> Result<Response, AdminProblem> {
    let response = next.run(request).await;
    let (head, body) = response.into_parts();
    let collected = body
        .collect()
        .await
        .map_err(|_| AdminProblem::unavailable("the answer was lost"))?;
    let body: Bytes = collected.to_bytes();
    let kept = (head.status.is_success() && body.len() <= KEPT_MAX_BYTES)
        .then(|| (head.status.as_u16().into(), body.clone()));
    begun.end(kept).await;
    Ok(Response::from_parts(head, Body::from(body)))
}

impl BegunRequest {
    /// Keeps the answer for retries; without an answer, the next request runs again. If the state cannot be changed now, this is
    /// retried for a while: the request has ended, and its answer is valid.
    async fn end(self, answer: Option<(i64, Bytes)>) {
        let Err(error) = self.write(answer.as_ref()).await else {
            return;
        };
        tracing::warn!(%error, "the answer to an admin request could not be kept for retries yet");
        tokio::spawn(async move {
            let tried = Instant::now();
            while tried.elapsed() < KEEP_MAX {
                tokio::time::sleep(KEEP_INTERVAL).await;
                if self.write(answer.as_ref()).await.is_ok() {
                    return;
                }
            }
        });
    }

    async fn write(&self, answer: Option<&(i64, Bytes)>) -> Result<(), StateError> {
        let text = answer.map(|(status, body)| (*status, String::from_utf8_lossy(body)));
        let answer = text.as_ref().map(|(status, body)| (*status, &**body));
        self.state
            .end_reply(&self.admin, &self.key, self.begun_ms, answer)
            .await
    }
}

fn again(reply: ReplyRow) -> Response {
    let status = u16::try_from(reply.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, reply.body).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
        .headers_mut()
        .insert("idempotent-replayed", HeaderValue::from_static("true"));
    response
}

fn digest(path: &str, body: &[u8]) -> String {
    hex::encode(
        Sha256::new()
            .chain_update(path)
            .chain_update([0])
            .chain_update(body)
            .finalize(),
    )
}
