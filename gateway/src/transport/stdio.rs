//! Speaks over stdio: one message per line, both eras by message, answers in the order they are ready.

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
    lines::{Line, Lines},
};
use crate::{
    era::{
        Era,
        batch::Batch,
        cancellations::Cancellations,
        legacy::{self, Notice},
        modern,
    },
    identity::{Caller, Credential},
    limits::RateCharge,
    methods::{
        self, Changes, Client, Endpoint, McpCall, Reply, RequestScope, Subscription, Subscriptions,
    },
    serving::Serving,
    wire::{
        Body, GivenParams, Id, Malformed, Message, Method, Response, RpcError, Version,
        error_answer,
    },
};

/// Requests that run at once, open subscriptions among them.
const RUNNING_MAX: usize = 2048;
/// Answers waiting for a slow reader; beyond it nothing more is read.
const WAITING_MAX: usize = 64;
/// The time for calls to finish after the end of input; a client that launched us kills us after two seconds.
const GRACE: Duration = Duration::from_millis(1500);
/// The time after that for writing the rest.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Serves until the end of `stdin` or `shutdown`. Calls in flight then have a moment to finish and are cancelled after it;
/// writes that have reached a source run to their end. `key` is the key of these messages, and is looked up anew for each.
/// `endpoint` is the endpoint that they ask.
pub async fn serve(
    gateway: Arc<Serving>,
    key: Option<String>,
    endpoint: Endpoint,
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
    let mut lines = Lines::new(stdin, || gateway.config().http.body_max_bytes);
    let mut connection = Connection {
        subscriptions: Subscriptions::new(gateway.config().http.streams_max, ending.clone()),
        scope: RequestScope {
            gateway: gateway.clone(),
            endpoint: endpoint.of(&caller),
            caller,
            transport: "stdio",
            client: Some(Arc::new(Client::new(0, gateway.announcements()))),
            charge: RateCharge::Due,
        },
        key,
        calls: Cancellations::default(),
        tasks: TaskTracker::new(),
        gone: gone.clone(),
        out,
        version: Version::LEGACY_LATEST,
        watching: Watching::No,
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
        // An answer waits for a client that does not read, and the end does not.
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

fn credential(key: Option<&str>) -> Credential<'_> {
    key.map_or(Credential::None, Credential::Key)
}

struct Connection {
    scope: RequestScope,
    key: Option<String>,
    calls: Cancellations<Box<str>>,
    subscriptions: Subscriptions,
    tasks: TaskTracker,
    /// The token that is cancelled when the client no longer reads our answers.
    gone: CancellationToken,
    out: mpsc::Sender<Vec<u8>>,
    /// The version of legacy requests, which the last `initialize` agreed on.
    version: Version,
    watching: Watching,
}

/// Whether a legacy client gets notifications of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watching {
    No,
    /// The client gets them from its `initialize` on, once that is answered.
    Due,
    Yes,
}

impl Connection {
    async fn line(&mut self, line: Line<'_>) {
        let line = match line {
            Line::Message(line) => line,
            Line::TooLong(bytes_max) => return self.too_long(bytes_max).await,
        };
        match Body::read(line) {
            Ok(Body::One(message)) => self.message(message).await,
            Ok(Body::Batch(elements)) => self.batch(&elements).await,
            Err(Malformed { id, error }) => self.send(error_answer(id.as_ref(), &error)).await,
        }
    }

    async fn too_long(&self, bytes_max: usize) {
        let message = format!("the line is longer than {bytes_max} bytes ([http] body_max_bytes)");
        self.send(error_answer(None, &RpcError::invalid_request(message)))
            .await;
    }

    async fn message(&mut self, message: Message<'_>) {
        if matches!(message, Message::Request { .. }) {
            self.charge().await;
        }
        match message {
            Message::Request { id, method, params } => match self.reply(&id, &method, params) {
                Ok(Reply::Answer(body)) => {
                    self.send(body).await;
                    self.watch();
                }
                Ok(Reply::Call(_) | Reply::Subscribe(_)) if self.tasks.len() >= RUNNING_MAX => {
                    self.send(error_answer(
                        Some(&id),
                        &RpcError::internal("too many requests are running"),
                    ))
                    .await;
                }
                Ok(Reply::Call(call)) => self.start(call.into_owned()),
                Ok(Reply::Subscribe(subscription)) => self.subscribe(subscription),
                Err(error) => self.send(error_answer(Some(&id), &error)).await,
            },
            Message::Notification { method, params } => self.notice(&method, params),
            Message::Response(response) => self.answered(&response),
        }
    }

    fn reply<'a>(
        &mut self,
        id: &Id<'a>,
        method: &str,
        params: GivenParams<'a>,
    ) -> Result<Reply<'a>, RpcError> {
        self.scope.caller = self.caller()?;
        let params = params.read()?;
        let request = match Era::of(method, &params.meta, None)? {
            Era::Modern => modern::admit(id.clone(), method, params, None)?,
            Era::Legacy => legacy::admit(id.clone(), method, params, self.version, None)?,
        };
        if request.method == Method::Initialize {
            self.version = request.version;
            if self.watching == Watching::No {
                self.watching = Watching::Due;
            }
        }
        methods::answer(&self.scope, &self.subscriptions, request)
    }

    /// Returns the caller as the key is now: it may have been revoked since the last message.
    /// Takes from the agent's rate where nodes count it together, which may have to be asked for.
    async fn charge(&mut self) {
        if let Ok(caller) = self.caller() {
            let buckets = self.scope.gateway.buckets();
            let charge = buckets.charge_further(&caller, Instant::now()).await;
            self.scope.charge = charge;
        }
    }

    fn caller(&self) -> Result<Caller, RpcError> {
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

    /// Takes a client's answer to a question of one of its calls.
    fn answered(&self, response: &Response<'_>) {
        if let Some(client) = &self.scope.client {
            client.answered(response);
        }
    }

    /// `notifications/cancelled` is of both eras here: it ends calls and subscriptions.
    fn notice(&self, method: &str, params: GivenParams<'_>) {
        if let Notice::Cancelled(request) = Notice::read(method, params) {
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

    fn subscribe(&self, mut subscription: Subscription) {
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
        if self.watching != Watching::Due {
            return;
        }
        self.watching = Watching::Yes;
        let Some(client) = &self.scope.client else {
            return;
        };
        let mut changes = Changes::of_client(Arc::new(self.scope.clone()), client);
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
            .map(|element| Message::read(element.get()))
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
        let mut batch = Batch::default();
        for message in messages {
            match message {
                Ok(Message::Request { id, method, params }) => {
                    self.charge().await;
                    let reply = batch.room().and_then(|()| self.reply(&id, &method, params));
                    self.in_batch(&mut batch, &id, &method, reply);
                }
                Ok(Message::Notification { method, params }) => self.notice(&method, params),
                Ok(Message::Response(response)) => self.answered(&response),
                Err(Malformed { id, error }) => batch.answer(error_answer(id.as_ref(), &error)),
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
        batch: &mut Batch,
        id: &Id<'_>,
        method: &str,
        reply: Result<Reply<'_>, RpcError>,
    ) {
        match reply {
            Ok(Reply::Call(call)) => {
                let call = call.into_owned();
                let in_flight = self.calls.open(call.id.key(), &self.gone);
                let scope = self.scope.clone();
                let run =
                    async move { Some(call.run(&scope, in_flight.token(), None).await?.body) };
                batch.later(run.boxed());
            }
            Ok(Reply::Answer(body)) => batch.answer(body),
            Ok(Reply::Subscribe(_)) => batch.answer(error_answer(
                Some(id),
                &RpcError::unknown_method(method, false),
            )),
            Err(error) => batch.answer(error_answer(Some(id), &error)),
        }
    }

    async fn send(&self, message: Vec<u8>) {
        // If the client no longer reads, `gone` informs everyone.
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

fn is_not_for_batches(message: &Message<'_>) -> bool {
    match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            method == "initialize" || params.claim_modern()
        }
        Message::Response(_) => false,
    }
}

#[cfg(test)]
mod tests;
