//! Legacy requests over HTTP: with or without a session, singly or (2025-03-26) in a batch.
//!
//! A disconnect cancels nothing here: calls run in their own tasks until they end or reach their deadline.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{HttpServerState, elsewhere, reply};
use crate::{
    era::{
        batch::RpcBatch,
        legacy::{self, LegacyNotification},
        names_modern,
        sessions::{ClientSession, NamedSession, SessionId},
    },
    limits::{RateCharge, UNCOUNTED_MAX_BYTES},
    methods::{
        self, CallChannel, CatalogueEndpoint, CatalogueWatcher, McpAnswer, McpCall, MethodReply,
        RequestScope, SessionClient,
    },
    node_messages::NodeMessage,
    session_notes::SessionNote,
    transport::front_door::AdmittedCaller,
    wire::{
        self, GivenParams, MalformedMessage, ProtocolVersion, RequestId, RequestParams, RpcError,
        RpcMessage, error_answer,
    },
};

const SESSION_HEADER: &str = "mcp-session-id";

pub(super) async fn request(
    server: &Arc<HttpServerState>,
    scope: RequestScope,
    headers: &HeaderMap,
    id: RequestId<'_>,
    method: &str,
    params: RequestParams<'_>,
) -> Response {
    if method == "initialize" {
        return initialize(server, scope, headers, id, params);
    }
    let context = match LegacyContext::from_headers(server, &scope, headers) {
        Ok(context) => context,
        Err(error) => return reply::error(Some(&id), &error),
    };
    let scope = RequestScope {
        client: context.client().cloned(),
        ..scope
    };
    let answered = legacy::admit(id.clone(), method, params, context.version, Some(headers))
        .and_then(|request| methods::answer(&scope, &server.subscriptions, request));
    match answered {
        Ok(MethodReply::Answer(body)) => {
            context.note_wishes(server, method);
            reply::json(200, body)
        }
        Ok(MethodReply::Call(call)) => {
            let (channel, messages) = call
                .channel(context.client(), server.subscriptions.ending())
                .unzip();
            let running = start(server, scope, &context, call.into_owned(), channel);
            match messages {
                None => running.await.map_or_else(reply::unanswered, |answer| {
                    reply::json(answer.status, answer.body)
                }),
                Some(messages) => reply::after_messages(running, messages).await,
            }
        }
        Ok(MethodReply::Subscribe(_)) => {
            reply::error(Some(&id), &RpcError::unknown_method(method, false))
        }
        Err(error) => reply::error(Some(&id), &error),
    }
}

/// Notifications are accepted; a cancellation reaches only calls of its own session.
pub(super) async fn notification(
    server: &HttpServerState,
    scope: &RequestScope,
    headers: &HeaderMap,
    method: &str,
    params: GivenParams<'_>,
) -> Response {
    match LegacyContext::from_headers(server, scope, headers) {
        Ok(context) => match context.notice(server, scope, method, params).await {
            Ok(()) => reply::accepted(),
            Err(error) => reply::refusal(&error),
        },
        Err(error) => reply::refusal(&error),
    }
}

/// Passes on a client's answer to a question of one of its calls. Without a session there are no questions.
pub(super) async fn response(
    server: &HttpServerState,
    scope: &RequestScope,
    headers: &HeaderMap,
    response: &wire::RpcResponse<'_>,
) -> Response {
    match LegacyContext::from_headers(server, scope, headers) {
        Ok(LegacyContext {
            session: Some(session),
            ..
        }) => match elsewhere::take_answer(server, scope, &session, response).await {
            Ok(()) => reply::accepted(),
            Err(error) => reply::refusal(&error),
        },
        Ok(_) => reply::error(
            None,
            &RpcError::invalid_request("nothing was asked that this could answer"),
        ),
        Err(error) => reply::refusal(&error),
    }
}

pub(super) async fn batch(
    server: &Arc<HttpServerState>,
    scope: RequestScope,
    headers: &HeaderMap,
    elements: &[&RawValue],
) -> Response {
    let context = match LegacyContext::from_headers(server, &scope, headers) {
        Ok(context) => context,
        Err(error) => return reply::refusal(&error),
    };
    let scope = RequestScope {
        client: context.client().cloned(),
        ..scope
    };
    if !context.version.has_batches() {
        let version = context.version.as_str();
        return reply::error(
            None,
            &RpcError::invalid_request(format!("{version} has no batches")),
        );
    }
    let messages: Vec<_> = elements
        .iter()
        .map(|element| RpcMessage::read(element.get()))
        .collect();
    let initializes = |message: &Result<RpcMessage<'_>, _>| matches!(message, Ok(RpcMessage::Request { method, .. } | RpcMessage::Notification { method, .. }) if method == "initialize");
    if messages.iter().any(initializes) {
        return reply::error(
            None,
            &RpcError::invalid_request("`initialize` must not be part of a batch"),
        );
    }
    let (mut batch, mut charge) = (RpcBatch::default(), scope.charge);
    for message in messages {
        match message {
            Ok(RpcMessage::Request { id, method, params }) => {
                // The charge at the head is for the first request.
                let charge = match std::mem::replace(&mut charge, RateCharge::Due) {
                    RateCharge::Due => server.door.charge_further(&scope.caller).await,
                    first => first,
                };
                let scope = RequestScope {
                    charge,
                    ..scope.clone()
                };
                in_batch(
                    &mut batch, server, scope, headers, &context, id, &method, params,
                );
            }
            // Neither gets an answer, even if another node cannot be reached.
            Ok(RpcMessage::Notification { method, params }) => {
                let _ = context.notice(server, &scope, &method, params).await;
            }
            Ok(RpcMessage::Response(response)) => {
                if let Some(session) = &context.session {
                    let _ = elsewhere::take_answer(server, &scope, session, &response).await;
                }
            }
            Err(MalformedMessage { id, error }) => batch.answer(error_answer(id.as_ref(), &error)),
        }
    }
    if batch.is_empty() {
        // Small notifications and answers cost nothing, as when they are sent singly.
        let length: usize = elements.iter().map(|element| element.get().len()).sum();
        if length <= UNCOUNTED_MAX_BYTES {
            server.door.give_back(charge, &scope.caller);
        }
        return reply::accepted();
    }
    batch
        .message()
        .await
        .map_or_else(reply::unanswered, |message| reply::json(200, message))
}

/// Returns the stream of a session's notifications. Without a session there is nothing to stream, and clients expect this.
pub(super) async fn get(
    server: &Arc<HttpServerState>,
    admitted: AdmittedCaller<'_>,
    endpoint: &CatalogueEndpoint,
    headers: &HeaderMap,
) -> Response {
    if names_modern(headers) || !headers.contains_key(SESSION_HEADER) {
        return reply::not_allowed("POST");
    }
    let scope = admitted.into_scope(endpoint.clone());
    let session = match LegacyContext::from_headers(server, &scope, headers) {
        Ok(LegacyContext {
            session: Some(session),
            ..
        }) => session,
        Ok(_) => return reply::not_allowed("POST"),
        Err(error) => return reply::refusal(&error),
    };
    let place = format!("GET {}", scope.endpoint);
    if let Err(error) = server.door.within_rate(&scope.caller, &place).await {
        return reply::refusal(&error);
    }
    let stream = match session.take_stream(|| server.subscriptions.admit(&scope.caller)) {
        Ok(taken) => taken,
        Err(error) => {
            return reply::refusal(&RpcError {
                status: 503,
                ..error
            });
        }
    };
    if let Some(messages) = server.gateway.node_messages() {
        let (session, stream) = (session.id.number(), stream.number);
        messages.send(None, &NodeMessage::StreamOpened { session, stream });
    }
    let caller = scope.caller.clone();
    let changes = CatalogueWatcher::of_client(Arc::new(scope), &session.client);
    let state = (
        server.clone(),
        session,
        changes,
        (stream.ending, caller),
        reply::keep_alive(),
        stream.room,
    );
    // The comment sends the headers on their way.
    let opening = stream::iter([Ok(reply::comment())]);
    reply::events(opening.chain(stream::unfold(state, async |mut state| {
        let (server, session, changes, (ended, caller), keep_alive, _) = &mut state;
        let bytes = tokio::select! {
            biased;
            () = ended.cancelled() => return None,
            () = caller.ended() => return None,
            () = server.subscriptions.ending().cancelled() => return None,
            changed = changes.changed() => reply::frame(changed.messages(None)),
            _ = keep_alive.tick() => reply::comment(),
        };
        server.sessions.touch(session);
        Some((Ok(bytes), state))
    })))
}

pub(super) fn delete(
    server: &HttpServerState,
    scope: &RequestScope,
    headers: &HeaderMap,
) -> Response {
    if names_modern(headers) || !headers.contains_key(SESSION_HEADER) {
        return reply::not_allowed("POST");
    }
    match LegacyContext::from_headers(server, scope, headers) {
        Ok(LegacyContext {
            session: Some(session),
            ..
        }) => {
            server.sessions.end(&session);
            let ended = SessionNote {
                ended: true,
                ..SessionNote::default()
            };
            server
                .gateway
                .session_notes()
                .add(session.id.number(), ended);
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(_) => reply::not_allowed("POST"),
        Err(error) => reply::refusal(&error),
    }
}

/// The context of a legacy request: its session's version, or, without a session, the version in its header.
struct LegacyContext {
    session: Option<Arc<ClientSession>>,
    version: ProtocolVersion,
}

impl LegacyContext {
    fn from_headers(
        server: &HttpServerState,
        scope: &RequestScope,
        headers: &HeaderMap,
    ) -> Result<Self, RpcError> {
        scope.exists()?;
        let named = legacy::header_version(headers)?;
        let mut ids = headers.get_all(SESSION_HEADER).iter();
        let Some(id) = ids.next() else {
            return Ok(Self {
                session: None,
                version: named.unwrap_or(ProtocolVersion::LEGACY_ASSUMED),
            });
        };
        if ids.next().is_some() {
            return Err(RpcError::invalid_request(
                "the Mcp-Session-Id header is given more than once",
            ));
        }
        let session = id
            .to_str()
            .ok()
            .and_then(NamedSession::parse)
            .and_then(|named| {
                let (sessions, gateway) = (&server.sessions, &server.gateway);
                sessions.find(gateway, &named, &scope.caller, &scope.endpoint)
            })
            .ok_or_else(|| {
                RpcError::refused(
                    404,
                    "there is no such session, or it has ended: initialize again",
                )
            })?;
        Ok(Self {
            version: session.version,
            session: Some(session),
        })
    }

    fn client(&self) -> Option<&Arc<SessionClient>> {
        self.session.as_ref().map(|session| &session.client)
    }

    /// Records what the client requested for its session, if the method requests something.
    fn note_wishes(&self, server: &HttpServerState, method: &str) {
        let asks = matches!(
            method,
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
        );
        if let (Some(session), true) = (&self.session, asks) {
            let notes = server.gateway.session_notes();
            notes.add(session.id.number(), session.client.note());
        }
    }

    /// Handles a notification. A call that does not run here may run on another node.
    async fn notice(
        &self,
        server: &HttpServerState,
        scope: &RequestScope,
        method: &str,
        params: GivenParams<'_>,
    ) -> Result<(), RpcError> {
        let (Some(session), LegacyNotification::Cancelled(request)) =
            (&self.session, LegacyNotification::read(method, params))
        else {
            return Ok(());
        };
        let call = (session.id, request);
        if server.calls.cancel(&call) {
            return Ok(());
        }
        elsewhere::hand_on(server, scope, || {
            NodeMessage::cancel(call.0.number(), call.1)
        })
        .await
    }
}

fn initialize(
    server: &HttpServerState,
    scope: RequestScope,
    headers: &HeaderMap,
    id: RequestId<'_>,
    params: RequestParams<'_>,
) -> Response {
    let session = match SessionId::random() {
        Ok(session) => session,
        Err(_) => {
            return reply::error(
                Some(&id),
                &RpcError::internal("no random number could be generated"),
            );
        }
    };
    let client = Arc::new(SessionClient::new(
        session.number(),
        scope.gateway.announcements(),
    ));
    if scope.gateway.node_messages().is_some() {
        client.number_questions_apart();
    }
    let scope = RequestScope {
        client: Some(client.clone()),
        ..scope
    };
    let answered = legacy::admit(
        id.clone(),
        "initialize",
        params,
        ProtocolVersion::LEGACY_LATEST,
        Some(headers),
    )
    .and_then(|request| {
        let version = request.version;
        match methods::answer(&scope, &server.subscriptions, request)? {
            MethodReply::Answer(body) => Ok((body, version)),
            MethodReply::Call(_) | MethodReply::Subscribe(_) => {
                Err(RpcError::internal("initialize is answered at once"))
            }
        }
    });
    let (body, version) = match answered {
        Ok(answered) => answered,
        Err(error) => return reply::error(Some(&id), &error),
    };
    let session = server
        .sessions
        .open(session, client, scope.caller, scope.endpoint, version);
    let mut response = reply::json(200, body);
    let header = HeaderValue::from_str(&session.name(&server.gateway)).expect("letters and digits");
    response.headers_mut().insert(SESSION_HEADER, header);
    response
}

/// A batch has no messages before its answer, which is a single array.
#[expect(
    clippy::too_many_arguments,
    reason = "a request and where it came from"
)]
fn in_batch(
    batch: &mut RpcBatch,
    server: &Arc<HttpServerState>,
    scope: RequestScope,
    headers: &HeaderMap,
    context: &LegacyContext,
    id: RequestId<'_>,
    method: &str,
    params: GivenParams<'_>,
) {
    let answered = batch
        .room()
        .and_then(|()| params.read())
        .and_then(|params| {
            let request =
                legacy::admit(id.clone(), method, params, context.version, Some(headers))?;
            methods::answer(&scope, &server.subscriptions, request)
        });
    match answered {
        Ok(MethodReply::Call(call)) => {
            let running = start(server, scope, context, call.into_owned(), None);
            batch.later(
                running
                    .map(|answer| answer.map(|answer| answer.body))
                    .boxed(),
            );
        }
        Ok(MethodReply::Answer(body)) => {
            context.note_wishes(server, method);
            batch.answer(body);
        }
        Ok(MethodReply::Subscribe(_)) => batch.answer(error_answer(
            Some(&id),
            &RpcError::unknown_method(method, false),
        )),
        Err(error) => batch.answer(error_answer(Some(&id), &error)),
    }
}

/// Starts a call in its own task, where its session can find and cancel it.
fn start(
    server: &HttpServerState,
    scope: RequestScope,
    context: &LegacyContext,
    call: McpCall<'static>,
    channel: Option<Arc<CallChannel>>,
) -> BoxFuture<'static, Option<McpAnswer>> {
    let in_flight = context.session.as_ref().map(|session| {
        server
            .calls
            .open((session.id, call.id.key()), session.ended())
    });
    let cancel = in_flight
        .as_ref()
        .map_or_else(CancellationToken::new, |call| call.token().clone());
    let id = call.id.clone();
    let task = server.tasks.spawn(async move {
        let _in_flight = in_flight;
        call.run(&scope, &cancel, channel).await
    });
    task.map(move |answer| answer.unwrap_or_else(|_| Some(reply::failed(&id))))
        .boxed()
}
