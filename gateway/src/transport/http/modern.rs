//! Modern requests over HTTP. The response owns the call: closing it cancels the call.

use axum::{http::HeaderMap, response::Response};
use futures::{FutureExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::{HttpServerState, reply, running};
use crate::{
    era::modern,
    methods::{self, ListenSubscription, McpCall, MethodReply, RequestScope},
    wire::{RequestId, RequestParams},
};

pub(super) async fn request(
    server: &HttpServerState,
    scope: RequestScope,
    headers: &HeaderMap,
    id: RequestId<'_>,
    method: &str,
    params: RequestParams<'_>,
) -> Response {
    let answered = modern::admit(id.clone(), method, params, Some(headers))
        .and_then(|request| methods::answer(&scope, &server.subscriptions, request));
    match answered {
        Ok(MethodReply::Answer(body)) => reply::json(200, body),
        // Boxed, since each function that awaits a future moves it: requests other than calls remain small.
        Ok(MethodReply::Call(call)) => Box::pin(run(server, scope, call)).await,
        Ok(MethodReply::Subscribe(subscription)) => listen(subscription),
        Err(error) => reply::error(Some(&id), &error),
    }
}

/// Runs a call in the handler itself: hyper drops it when the client has gone, and the guard cancels the guest. A call that may
/// send messages before its answer runs in a task, because hyper polls a stream only as fast as its client reads. So does a call
/// whose result is kept for a client that asks again.
async fn run(server: &HttpServerState, scope: RequestScope, call: McpCall<'_>) -> Response {
    let cancel = CancellationToken::new();
    let (channel, is_kept) = (call.channel(None, &cancel), call.is_kept(&scope));
    if channel.is_none() && !is_kept {
        let gone = cancel.drop_guard_ref();
        let answer = call.run(&scope, &cancel, None).await;
        gone.disarm();
        return answer.map_or_else(reply::unanswered, |answer| {
            reply::json(answer.status, answer.body)
        });
    }
    let (channel, messages) = channel.unzip();
    let (id, call) = (call.id.clone().into_owned(), call.into_owned());
    let work = {
        let cancel = cancel.clone();
        async move { call.run(&scope, &cancel, channel).await }
    };
    let running = match is_kept {
        true => running::unattended(&server.tasks, work),
        false => running::started(&server.tasks, cancel, work),
    };
    let answer = running.map(move |answer| answer.unwrap_or_else(|| Some(reply::failed(&id))));
    match messages {
        Some(messages) => reply::after_messages(answer.boxed(), messages).await,
        None => answer.await.map_or_else(reply::unanswered, |answer| {
            reply::json(answer.status, answer.body)
        }),
    }
}

fn listen(subscription: ListenSubscription) -> Response {
    let state = (subscription, reply::keep_alive());
    reply::events(stream::unfold(
        state,
        async |(mut subscription, mut keep_alive)| {
            let bytes = tokio::select! {
                biased;
                message = subscription.next() => reply::frame([message?]),
                _ = keep_alive.tick() => reply::comment(),
            };
            Some((Ok(bytes), (subscription, keep_alive)))
        },
    ))
}
