//! MCP over stdio: one message per line, the era chosen by each message, answers in the order in which they are ready.

mod heard;
mod lines;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    heard::{heard, is_sent},
    lines::{StdinLine, StdinLines},
};
use crate::{
    era::{
        RequestEra,
        batch::RpcBatch,
        cancellations::CancellationTable,
        legacy::{self, LegacyNotification},
        modern,
    },
    identity::{CallerIdentity, RequestCredential},
    limits::RateCharge,
    methods::{
        self, CatalogueEndpoint, CatalogueWatcher, ListenSubscription, McpCall, MethodReply,
        RequestScope, SessionClient, StreamLimiter,
    },
    serving::ServingGateway,
    wire::{
        GivenParams, MalformedMessage, MessageBody, ProtocolVersion, RequestId, RpcError,
        RpcMessage, RpcMethod, RpcResponse, error_answer,
    },
};

/// The number of concurrent requests, including open subscriptions.
const RUNNING_MAX: usize = 2048;
/// The number of answers that may wait for a slow reader; beyond it, no further input is read.
const WAITING_MAX: usize = 64;
/// The time for calls to finish after the end of input; clients kill a process that they launched after two seconds.
const GRACE: Duration = Duration::from_millis(1500);
/// The time after that for writing the remaining answers.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Serves until the end of `stdin` or `shutdown`. Calls in flight then have a moment to finish before they are cancelled; writes
/// that have reached a source run to their end. `key` is the key of these messages, and is looked up for each one. `endpoint` is
/// the endpoint that they use.
pub async fn serve(
    gateway: Arc<ServingGateway>,
    key: Option<String>,
    endpoint: CatalogueEndpoint,
    stdin: impl AsyncRead + Unpin,
    stdout: impl AsyncWrite + Unpin + Send + 'static,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let caller = gateway.identities().resolve(credential(key.as_deref()));
    let caller = caller.map_err(|refused| anyhow::anyhow!("{}", refused.message()))?;
    let mut shutdown = std::pin::pin!(shutdown);
    let (out, messages) = mpsc::channel(WAITING_MAX);
    let gone = CancellationToken::new();
    let writer = {
        let gone = gone.clone();
        tokio::spawn(async move {
            let written = write(stdout, messages).await;
            gone.cancel();
            written
        })
    };
    let ending = CancellationToken::new();
    let mut lines = StdinLines::new(stdin, || gateway.config().http.body_max_bytes);
    let mut connection = StdioConnection {
        subscriptions: StreamLimiter::new(gateway.config().http.streams_max, ending.clone()),
        scope: RequestScope {
            gateway: gateway.clone(),
            endpoint: endpoint.for_caller(&caller),
            caller,
            transport: "stdio",
            client: Some(Arc::new(SessionClient::new(0, gateway.announcements()))),
            charge: RateCharge::Due,
        },
        key,
        calls: CancellationTable::default(),
        tasks: TaskTracker::new(),
        gone: gone.clone(),
        out,
        version: ProtocolVersion::LEGACY_LATEST,
        watching: WatchPhase::No,
    };
    let read = loop {
        let line = tokio::select! {
            biased;
            () = gone.cancelled() => break Ok(()),
            () = &mut shutdown => break Ok(()),
            line = lines.next() => line,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        // An answer waits for a client that does not read, but the end of the process does not.
        tokio::select! {
            biased;
            () = gone.cancelled() => break Ok(()),
            () = &mut shutdown => break Ok(()),
            () = connection.line(line) => {}
        }
    };
    gateway.tasks().keep_no_more();
    ending.cancel();
    connection.end().await;
    if tokio::time::timeout(FLUSH_MAX, writer).await.is_err() {
        tracing::warn!("the client does not read; its last answers are lost");
    }
    gateway.tasks().end_all().await;
    crate::call::abandon_questions();
    gateway.in_flight().drained().await;
    Ok(read?)
}

/// Writes the messages. There is one writer, so that lines never mix.
async fn write(
    mut stdout: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(mut message) = messages.recv().await {
        message.push(b'\n');
        while let Ok(next) = messages.try_recv() {
            message.extend_from_slice(&next);
            message.push(b'\n');
        }
        stdout.write_all(&message).await?;
        stdout.flush().await?;
    }
    Ok(())
}

fn credential(key: Option<&str>) -> RequestCredential<'_> {
    key.map_or(RequestCredential::None, RequestCredential::Key)
}

struct StdioConnection {
    scope: RequestScope,
    key: Option<String>,
    calls: CancellationTable<Box<str>>,
    subscriptions: StreamLimiter,
    tasks: TaskTracker,
    /// The token that is cancelled when the client no longer reads our answers.
    gone: CancellationToken,
    out: mpsc::Sender<Vec<u8>>,
    /// The version of legacy requests, which the last `initialize` agreed on.
    version: ProtocolVersion,
    watching: WatchPhase,
}

/// Whether a legacy client gets notifications of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchPhase {
    No,
    /// The client gets them once its `initialize` has been answered.
    Due,
    Yes,
}

impl StdioConnection {
    async fn line(&mut self, line: StdinLine<'_>) {
        let line = match line {
            StdinLine::Message(line) => line,
            StdinLine::TooLong(bytes_max) => return self.too_long(bytes_max).await,
        };
        match MessageBody::read(line) {
            Ok(MessageBody::One(message)) => self.message(message).await,
            Ok(MessageBody::Batch(elements)) => self.batch(&elements).await,
            Err(MalformedMessage { id, error }) => {
                self.send(error_answer(id.as_ref(), &error)).await
            }
        }
    }

    async fn too_long(&self, bytes_max: usize) {
        let message = format!("the line is longer than {bytes_max} bytes ([http] body_max_bytes)");
        self.send(error_answer(None, &RpcError::invalid_request(message)))
            .await;
    }

    async fn message(&mut self, message: RpcMessage<'_>) {
        if matches!(message, RpcMessage::Request { .. }) {
            self.charge().await;
        }
        match message {
            RpcMessage::Request { id, method, params } => match self.reply(&id, &method, params) {
                Ok(MethodReply::Answer(body)) => {
                    self.send(body).await;
                    self.watch();
                }
                Ok(MethodReply::Call(_) | MethodReply::Subscribe(_))
                    if self.tasks.len() >= RUNNING_MAX =>
                {
                    self.send(error_answer(
                        Some(&id),
                        &RpcError::internal("too many requests are running"),
                    ))
                    .await;
                }
                Ok(MethodReply::Call(call)) => self.start(call.into_owned()),
                Ok(MethodReply::Subscribe(subscription)) => self.subscribe(subscription),
                Err(error) => self.send(error_answer(Some(&id), &error)).await,
            },
            RpcMessage::Notification { method, params } => self.notice(&method, params),
            RpcMessage::Response(response) => self.answered(&response),
        }
    }

    fn reply<'a>(
        &mut self,
        id: &RequestId<'a>,
        method: &str,
        params: GivenParams<'a>,
    ) -> Result<MethodReply<'a>, RpcError> {
        self.scope.caller = self.caller()?;
        let params = params.read()?;
        let request = match RequestEra::detect(method, &params.meta, None)? {
            RequestEra::Modern => modern::admit(id.clone(), method, params, None)?,
            RequestEra::Legacy => legacy::admit(id.clone(), method, params, self.version, None)?,
        };
        if request.method == RpcMethod::Initialize {
            self.version = request.version;
            if self.watching == WatchPhase::No {
                self.watching = WatchPhase::Due;
            }
        }
        methods::answer(&self.scope, &self.subscriptions, request)
    }

    /// Charges a message to the agent's rate. Where nodes count it together, this may have to wait for a share of the rate.
    async fn charge(&mut self) {
        if let Ok(caller) = self.caller() {
            let buckets = self.scope.gateway.buckets();
            let charge = buckets.charge_further(&caller, Instant::now()).await;
            self.scope.charge = charge;
        }
    }

    /// Returns the caller of the current key, which may have been revoked since the last message.
    fn caller(&self) -> Result<CallerIdentity, RpcError> {
        if self.scope.gateway.readiness().is_stale() {
            return Err(RpcError::no_room(503, super::STALE));
        }
        let resolved = self
            .scope
            .gateway
            .identities()
            .resolve(credential(self.key.as_deref()));
        resolved.map_err(RpcError::from)
    }

    /// Passes on a client's answer to a question of one of its calls.
    fn answered(&self, response: &RpcResponse<'_>) {
        if let Some(client) = &self.scope.client {
            client.answered(response);
        }
    }

    /// `notifications/cancelled` belongs to both eras here: it ends calls and subscriptions.
    fn notice(&self, method: &str, params: GivenParams<'_>) {
        if let LegacyNotification::Cancelled(request) = LegacyNotification::read(method, params) {
            self.calls.cancel(&request);
        }
    }

    fn start(&self, call: McpCall<'static>) {
        let in_flight = self.calls.open(call.id.key(), &self.gone);
        let (scope, out) = (self.scope.clone(), self.out.clone());
        self.tasks.spawn(async move {
            if let Some(body) = run(&call, &scope, in_flight.token(), &out).await {
                let _ = out.send(body).await;
            }
        });
    }

    fn subscribe(&self, mut subscription: ListenSubscription) {
        let in_flight = self.calls.open(subscription.id().key(), &self.gone);
        let out = self.out.clone();
        self.tasks.spawn(async move {
            loop {
                let message = tokio::select! {
                    biased;
                    () = in_flight.token().cancelled() => break,
                    message = subscription.next() => message,
                };
                let Some(message) = message else { break };
                if !is_sent(&out, message, in_flight.token()).await {
                    break;
                }
            }
        });
    }

    fn watch(&mut self) {
        if self.watching != WatchPhase::Due {
            return;
        }
        self.watching = WatchPhase::Yes;
        let Some(client) = &self.scope.client else {
            return;
        };
        let mut changes = CatalogueWatcher::of_client(Arc::new(self.scope.clone()), client);
        let (out, ending) = (self.out.clone(), self.subscriptions.ending().clone());
        let caller = self.scope.caller.clone();
        self.tasks.spawn(async move {
            loop {
                let changed = tokio::select! {
                    biased;
                    () = ending.cancelled() => break,
                    () = caller.ended() => break,
                    changed = changes.changed() => changed,
                };
                for message in changed.messages(None) {
                    if out.send(message).await.is_err() {
                        return;
                    }
                }
            }
        });
    }

    async fn batch(&mut self, elements: &[&RawValue]) {
        let messages: Vec<_> = elements
            .iter()
            .map(|element| RpcMessage::read(element.get()))
            .collect();
        let refused = if messages
            .iter()
            .any(|message| message.as_ref().is_ok_and(is_not_for_batches))
        {
            Some("`initialize` and messages of 2026-07-28 must not be part of a batch".to_owned())
        } else if !self.version.has_batches() {
            Some(format!("{} has no batches", self.version.as_str()))
        } else if self.tasks.len() >= RUNNING_MAX {
            Some("too many requests are running".to_owned())
        } else {
            None
        };
        if let Some(message) = refused {
            return self
                .send(error_answer(None, &RpcError::invalid_request(message)))
                .await;
        }
        let mut batch = RpcBatch::default();
        for message in messages {
            match message {
                Ok(RpcMessage::Request { id, method, params }) => {
                    self.charge().await;
                    let reply = batch.room().and_then(|()| self.reply(&id, &method, params));
                    self.in_batch(&mut batch, &id, &method, reply);
                }
                Ok(RpcMessage::Notification { method, params }) => self.notice(&method, params),
                Ok(RpcMessage::Response(response)) => self.answered(&response),
                Err(MalformedMessage { id, error }) => {
                    batch.answer(error_answer(id.as_ref(), &error))
                }
            }
        }
        if batch.is_empty() {
            return;
        }
        let out = self.out.clone();
        self.tasks.spawn(async move {
            if let Some(message) = batch.message().await {
                let _ = out.send(message).await;
            }
        });
    }

    fn in_batch(
        &self,
        batch: &mut RpcBatch,
        id: &RequestId<'_>,
        method: &str,
        reply: Result<MethodReply<'_>, RpcError>,
    ) {
        match reply {
            Ok(MethodReply::Call(call)) => {
                let call = call.into_owned();
                let in_flight = self.calls.open(call.id.key(), &self.gone);
                let scope = self.scope.clone();
                let run =
                    async move { Some(call.run(&scope, in_flight.token(), None).await?.body) };
                batch.later(run.boxed());
            }
            Ok(MethodReply::Answer(body)) => batch.answer(body),
            Ok(MethodReply::Subscribe(_)) => batch.answer(error_answer(
                Some(id),
                &RpcError::unknown_method(method, false),
            )),
            Err(error) => batch.answer(error_answer(Some(id), &error)),
        }
    }

    async fn send(&self, message: Vec<u8>) {
        // A failed send is ignored: `gone` reports that the client no longer reads.
        let _ = self.out.send(message).await;
    }

    async fn end(self) {
        self.tasks.close();
        if tokio::time::timeout(GRACE, self.tasks.wait())
            .await
            .is_err()
        {
            self.gone.cancel();
            let _ = tokio::time::timeout(FLUSH_MAX, self.tasks.wait()).await;
        }
    }
}

/// Runs one call and sends its messages before its answer. It continues even if its client does not read.
async fn run(
    call: &McpCall<'static>,
    scope: &RequestScope,
    cancel: &CancellationToken,
    out: &mpsc::Sender<Vec<u8>>,
) -> Option<Vec<u8>> {
    let Some((channel, messages)) = call.channel(scope.client.as_ref(), cancel) else {
        return Some(call.run(scope, cancel, None).await?.body);
    };
    let running = call.run(scope, cancel, Some(channel));
    Some(heard(running, &messages, out, cancel).await?.body)
}

fn is_not_for_batches(message: &RpcMessage<'_>) -> bool {
    match message {
        RpcMessage::Request { method, params, .. }
        | RpcMessage::Notification { method, params } => {
            method == "initialize" || params.claim_modern()
        }
        RpcMessage::Response(_) => false,
    }
}

#[cfg(test)]
mod tests;
