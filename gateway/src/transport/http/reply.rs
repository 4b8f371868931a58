//! Answers as HTTP responses: one JSON object, nothing, or a stream of events.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use futures::{Stream, StreamExt as _, future::BoxFuture, stream};
use hyper::ext::ReasonPhrase;
use tokio::time::{Instant, Interval, MissedTickBehavior, sleep};

use crate::{
    identity::AuthenticationError,
    methods::{CallMessages, McpAnswer},
    transport::front_door::{self, RefusedBody, ScopeNeeded, close_if_unread},
    wire::{RequestId, RpcError, error_answer, error_without_id, request_id, sse},
};

/// The interval of keep-alive comments on a silent stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The refusal of a sign-in, as OAuth writes an error (RFC 6749, section 5.2).
const NO_SIGN_IN: &str = concat!(
    r#"{"error":"access_denied","error_description":"There is no sign-in (OAuth) at this server: a key is needed. "#,
    r#"Send it with each request as the header `Authorization: Bearer weir_...`. "#,
    r#"The operator of the server makes a key with `weir keys create`."}"#
);

/// The same, if other issuers are configured.
const ELSEWHERE: &str = concat!(
    r#"{"error":"access_denied","error_description":"This server has no sign-in. The servers that do are named at "#,
    r#"/.well-known/oauth-protected-resource."}"#
);

pub(super) fn json(status: u16, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Returns an error in answer to a message.
pub(super) fn error(id: Option<&RequestId<'_>>, error: &RpcError) -> Response {
    of_error(error, error_answer(id, error))
}

fn of_error(error: &RpcError, body: Vec<u8>) -> Response {
    let mut response = json(error.status, body);
    if error.needs_scope() {
        response.extensions_mut().insert(ScopeNeeded);
    }
    if let Some(seconds) = error.retry_after_s {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns an error for a request without a readable message.
pub(super) fn refusal(error: &RpcError) -> Response {
    closing(error, error_without_id(error))
}

/// Returns an error in answer to a refused body, with the id of its request if that could be read.
pub(super) fn refused_body(refused: &RefusedBody) -> Response {
    match refused.read.as_deref().and_then(request_id) {
        Some(id) => unread(Some(&id), &refused.error),
        None => refusal(&refused.error),
    }
}

/// Returns the error for a message of which perhaps only the id was read.
pub(super) fn unread(id: Option<&RequestId<'_>>, error: &RpcError) -> Response {
    closing(error, error_answer(id, error))
}

fn closing(error: &RpcError, body: Vec<u8>) -> Response {
    close_if_unread(error, of_error(error, body))
}

/// Returns the answer to a missing or unknown key. Clients show the message only if the answer is a whole JSON-RPC response,
/// `id` included.
pub(super) fn unauthorized(refused: AuthenticationError, id: Option<&RequestId<'_>>) -> Response {
    let mut response = unread(id, &RpcError::from(refused));
    challenge(&mut response, refused);
    response
}

/// Gives the reason in each place that some client shows: the challenge, and the reason phrase of the status.
pub(super) fn challenge(response: &mut Response, refused: AuthenticationError) {
    if refused.is_temporary() {
        return;
    }
    response.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(refused.challenge()),
    );
    response
        .extensions_mut()
        .insert(ReasonPhrase::from_static(refused.phrase().as_bytes()));
}

/// Answers the steps of OAuth. Clients that meet a 401 try them, and show `error_description`.
pub(super) fn no_sign_in(status: u16, takes_tokens: bool) -> Response {
    let body = if takes_tokens { ELSEWHERE } else { NO_SIGN_IN };
    json(status, body.as_bytes().to_vec())
}

pub(super) fn not_allowed(allow: &'static str) -> Response {
    front_door::not_allowed(allow, refusal)
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Returns the answer of a call that panicked.
pub(super) fn failed(id: &RequestId<'_>) -> McpAnswer {
    error_answer(Some(id), &RpcError::internal("the gateway failed")).into()
}

/// The answer of a call that may send messages first. It is JSON unless a message comes before the result: the form is chosen as
/// late as possible, because a stream fixes the status. After a silence, a comment starts the stream: proxies and clients cut off
/// an answer without bytes, many after a minute.
pub(super) async fn after_messages(
    mut running: BoxFuture<'static, Option<McpAnswer>>,
    messages: CallMessages,
) -> Response {
    let result = tokio::select! {
        biased;
        result = &mut running => Some(result),
        () = messages.arrived() => None,
        () = sleep(KEEP_ALIVE) => None,
    };
    let before = messages.take();
    match result {
        Some(Some(answer)) if before.is_empty() => json(answer.status, answer.body),
        Some(result) => {
            let result = result.map(|answer| answer.body);
            events(stream::iter([Ok(frame(before.into_iter().chain(result)))]))
        }
        None => {
            let first = match before.is_empty() {
                true => comment(),
                false => frame(before),
            };
            let first = stream::iter([Ok(first)]);
            events(first.chain(rest(running, messages)))
        }
    }
}

/// Returns the answer of a cancelled call. MCP sends none, but HTTP requires one, so it is a stream without a message.
pub(super) fn unanswered() -> Response {
    events(stream::empty())
}

/// Returns a stream of events. `X-Accel-Buffering` keeps proxies from holding events back.
pub(super) fn events(
    stream: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Writes messages as events: those that are ready together in one write. Some clients skip an event without a name, although the
/// standard defines a default.
pub(super) fn frame(messages: impl IntoIterator<Item = Vec<u8>>) -> Bytes {
    let mut bytes = Vec::new();
    for message in messages {
        sse::write_event(&mut bytes, "message", &message);
    }
    bytes.into()
}

/// Returns a comment, which clients skip.
pub(super) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

pub(super) fn keep_alive() -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The messages after the first: further ones, then the result. Dropping it drops the call.
fn rest(
    running: BoxFuture<'static, Option<McpAnswer>>,
    messages: CallMessages,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(Some((running, messages, keep_alive())), async |state| {
        let (mut running, messages, mut keep_alive) = state?;
        tokio::select! {
            biased;
            result = &mut running => {
                let result = result.map(|answer| answer.body);
                Some((Ok(frame(messages.take().into_iter().chain(result))), None))
            }
            () = messages.arrived() => Some((Ok(frame(messages.take())), Some((running, messages, keep_alive)))),
            _ = keep_alive.tick() => Some((Ok(comment()), Some((running, messages, keep_alive)))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_an_event_with_its_name() {
        let written = frame([b"{}".to_vec(), b"[]".to_vec()]);
        let expected = "event: message\ndata: {}\n\nevent: message\ndata: []\n\n";
        assert_eq!(written, expected);
    }
}
