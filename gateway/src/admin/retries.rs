//! Idempotent retries: who sends a POST again with the same `Idempotency-Key` gets the first answer again, and nothing is
//! done twice.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::{FromRequestParts as _, Request, State as Shared},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http_body_util::BodyExt as _;
use sha2::{Digest, Sha256};
use weir_state::ReplyRow;

use super::{Admin, Refusal, staff::Staff};
use crate::identity::now_ms;

const HEADER: &str = "idempotency-key";
const KEY_MAX_BYTES: usize = 128;
/// Of a request with a key, and of an answer that is kept.
const BODY_MAX_BYTES: usize = 2 << 20;
/// What these answer is shown once and kept nowhere.
const SECRET: [&str; 2] = ["/v1/keys", "/v1/admins"];

pub(super) async fn answer(Shared(admin): Shared<Arc<Admin>>, request: Request, next: Next) -> Response {
    let key = request.headers().get(HEADER).filter(|_| *request.method() == Method::POST).cloned();
    let Some(key) = key else { return next.run(request).await };
    let (mut head, body) = request.into_parts();
    match Staff::from_request_parts(&mut head, &admin).await {
        Ok(staff) => once(&admin, &staff, &key, Request::from_parts(head, body), next)
            .await
            .unwrap_or_else(Refusal::into_response),
        Err(refusal) => refusal.into_response(),
    }
}

async fn once(
    admin: &Admin,
    staff: &Staff,
    key: &HeaderValue,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let bad = |detail: &str| Refusal::new(StatusCode::BAD_REQUEST, detail);
    let key = key.to_str().ok().filter(|key| (1..=KEY_MAX_BYTES).contains(&key.len()));
    let key = key.ok_or_else(|| bad("an Idempotency-Key is 1 to 128 visible characters"))?;
    if SECRET.contains(&request.uri().path()) {
        return Err(bad("no Idempotency-Key is taken here: the answer holds a secret and is kept nowhere"));
    }
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_MAX_BYTES).await;
    let body = body.map_err(|_| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))?;
    let asked = digest(head.uri.path(), &body);
    if let Some(reply) = admin.state.reply(&staff.id, key, now_ms()).await? {
        return match reply.request == asked {
            true => Ok(again(reply)),
            false => Err(bad("the Idempotency-Key was used for another request")),
        };
    }
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
    let (head, body) = response.into_parts();
    let collected = body.collect().await.map_err(|_| Refusal::unavailable("the answer was lost"))?;
    let body: Bytes = collected.to_bytes();
    // What failed for a reason of the moment may succeed next time.
    let of_the_moment = head.status.is_server_error() || head.status == StatusCode::PRECONDITION_FAILED;
    if !of_the_moment && body.len() <= BODY_MAX_BYTES {
        let reply = ReplyRow {
            admin: staff.id.clone(),
            key: key.to_owned(),
            request: asked,
            status: head.status.as_u16().into(),
            body: String::from_utf8_lossy(&body).into_owned(),
            created_ms: now_ms(),
        };
        admin.state.keep_reply(&reply).await?;
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

fn again(reply: ReplyRow) -> Response {
    let status = u16::try_from(reply.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media = if status.is_success() { "application/json" } else { "application/problem+json" };
    let mut response = (status, reply.body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    response
}

fn digest(path: &str, body: &[u8]) -> String {
    hex::encode(Sha256::new().chain_update(path).chain_update([0]).chain_update(body).finalize())
}
