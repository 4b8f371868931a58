//! A session with one server: requests and their answers, calls with progress and cancellation.

mod asked;
mod failures;
mod requests;
mod subscriptions;
mod tasks;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout, timeout_at},
};

pub use self::asked::{CallResumption, UpstreamCall, UpstreamOperation};
pub(crate) use self::requests::{OutgoingMeta, SessionCore, SessionRequest};
use self::{
    asked::OutgoingOperation,
    failures::{cancelled, given_up, is_session_over, timed_out},
    subscriptions::SubscriptionState,
    tasks::ServerTask,
};
use crate::{
    error::{RequestError, UpstreamFailure, UpstreamFailureKind},
    handshake::{DeclaredCapabilities, HandshakeResult, agree},
    inbox::{Answer, InboxCaller, ServerRequest as ServerAsked, UpstreamInbox},
    link::{REPLY_MAX, UpstreamLink},
    listener::UpstreamListener,
    message::{self, OutgoingMessage},
    settings::{
        ClientCapability, EraPreference, UpstreamSettings, UpstreamTarget, UpstreamTransport,
    },
};

/// How long to wait for the true outcome of a call after it was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// The time that a server has to take a log level. Its calls do not wait longer for a word about their log messages.
const LEVEL_MAX: Duration = Duration::from_secs(2);

/// A question of the server that its caller has not answered yet.
struct OpenQuestion {
    id: Box<RawValue>,
    method: String,
}

/// A session with a server, which several calls may use at once.
pub struct UpstreamSession {
    pub(crate) core: SessionCore,
    agreed: RwLock<Arc<HandshakeResult>>,
    /// Locked while an ended session is reopened.
    renewing: tokio::sync::Mutex<()>,
    /// The log level that the server got last.
    level: Mutex<Option<&'static str>>,
    /// Locked while a call runs that the server may ask something about, if only the order of messages shows to which call a
    /// question belongs.
    one_asked: tokio::sync::Mutex<()>,
    /// The resources for which the server announces changes.
    subscribed: tokio::sync::Mutex<SubscriptionState>,
}

impl UpstreamSession {
    /// Starts or reaches the server and agrees with it on an era.
    pub async fn open(
        target: &UpstreamTarget,
        settings: UpstreamSettings,
    ) -> Result<Self, UpstreamFailure> {
        let deadline = Instant::now() + settings.start;
        let mut transport = match target {
            UpstreamTarget::Url(url) => url.transport,
            UpstreamTarget::Command(_) => UpstreamTransport::Either,
        };
        let mut era = if transport == UpstreamTransport::Sse {
            EraPreference::Legacy
        } else {
            settings.era
        };
        // There are at most two tries: as asked for, and another way to ask if the first one cannot have been
        // understood.
        let mut retried = false;
        loop {
            let opened = Self::attempt(target, transport, era, &settings, deadline).await;
            let failure = match opened {
                Ok(session) => return Ok(session),
                Err(failure) => failure,
            };
            match (target, failure.kind) {
                (UpstreamTarget::Url(_), UpstreamFailureKind::NotHere)
                    if transport == UpstreamTransport::Either && era != EraPreference::Modern =>
                {
                    (transport, era) = (UpstreamTransport::Sse, EraPreference::Legacy);
                    let before = failure;
                    return Self::attempt(target, transport, era, &settings, deadline)
                        .await
                        .map_err(|failure| {
                            if failure.kind == UpstreamFailureKind::NotHere {
                                before
                            } else {
                                failure
                            }
                        });
                }
                // The server ended because of the question for its era: some end at unknown messages.
                (UpstreamTarget::Command(_), UpstreamFailureKind::Closed)
                    if era == EraPreference::Either && !retried =>
                {
                    (era, retried) = (EraPreference::Legacy, true);
                }
                _ => return Err(failure),
            }
        }
    }

    async fn attempt(
        target: &UpstreamTarget,
        transport: UpstreamTransport,
        era: EraPreference,
        settings: &UpstreamSettings,
        deadline: Instant,
    ) -> Result<Self, UpstreamFailure> {
        let inbox = UpstreamInbox::new(settings);
        let link = UpstreamLink::open(target, transport, settings, &inbox).await?;
        let core = SessionCore {
            link,
            inbox,
            settings: settings.clone(),
        };
        let probe = matches!(target, UpstreamTarget::Command(_)).then_some(settings.probe);
        let agreed = timeout_at(deadline, agree(&core, era, probe)).await.unwrap_or_else(|_| {
            let cause = format!("it answered nothing within {} s", settings.start.as_secs_f64());
            Err(UpstreamFailure::new(UpstreamFailureKind::Timeout, "the server to start and answer", cause)
                .stderr(&core.link.stderr())
                .step("run the command in a terminal: it should wait for input, and print nothing")
                .step("give it more time where it has to be downloaded first, such as `--timeout 180`"))
        });
        match agreed {
            Ok(agreed) => Ok(Self {
                core,
                agreed: RwLock::new(Arc::new(agreed)),
                renewing: tokio::sync::Mutex::default(),
                level: Mutex::default(),
                one_asked: tokio::sync::Mutex::default(),
                subscribed: tokio::sync::Mutex::default(),
            }),
            Err(failure) => {
                core.link.close().await;
                Err(failure)
            }
        }
    }

    /// Ends the session and waits until it is completely gone, with no child and no child's child.
    pub async fn close(&self) {
        self.core.link.close().await;
    }

    /// Returns the result of `server/discover` or `initialize`, as the server wrote it.
    pub fn about(&self) -> Box<RawValue> {
        self.agreed().about.clone()
    }

    /// Returns the revision of the protocol that was agreed on.
    pub fn version(&self) -> &'static str {
        self.agreed().version
    }

    /// Returns `true` if that revision has no handshake and no sessions.
    pub fn is_modern(&self) -> bool {
        self.agreed().is_modern()
    }

    /// Returns `true` once no more requests are possible: the child ended, or its stream did.
    pub fn is_closed(&self) -> bool {
        self.core.inbox.is_closed()
    }

    /// Returns `true` while requests are possible: the session is not closed, and the server knows it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_closed() && !self.core.inbox.forgotten().is_cancelled()
    }

    /// Returns why no more requests are possible, once that is so.
    pub(crate) fn over(&self) -> Option<UpstreamFailure> {
        self.core.inbox.over()
    }

    /// Returns how often the server announced that a list changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.core.inbox.changes()
    }

    pub(crate) fn resource_news(&self) -> Arc<AtomicBool> {
        self.core.inbox.resource_news()
    }

    /// Returns what a child wrote to stderr last.
    pub fn stderr(&self) -> String {
        self.core.link.stderr()
    }

    /// Returns the number of invalid messages, and of unexpected answers.
    pub fn skipped(&self) -> (u64, u64) {
        (
            self.core.inbox.rubbish.load(Ordering::Relaxed),
            self.core.inbox.strays.load(Ordering::Relaxed),
        )
    }

    /// Returns `true` if the server declares the capability, with any value but `null` and `false`.
    pub fn advertises(&self, capability: &str) -> bool {
        self.agreed().declares(&[capability])
    }

    /// Returns what the server declares beside its lists.
    pub(crate) fn declared(&self) -> DeclaredCapabilities {
        self.agreed().declared()
    }

    /// Calls a tool and returns the raw result. It is sent once: only where the session was over before, or nothing of
    /// it can have arrived, it is sent again.
    pub async fn call(&self, call: UpstreamCall<'_>) -> Result<Box<RawValue>, RequestError> {
        let deadline = Instant::now() + call.timeout;
        let _one = self.one_asked(&call, deadline).await?;
        let (sending, agreed) = (OutgoingOperation::Asked(call.asked), self.agreed());
        let result = match self.call_once(&call, &sending, &agreed, deadline).await {
            Err(error) if is_session_over(&error, self.keeps_session(&agreed)) => {
                // Rare work is boxed: it would make the future of every call large.
                Box::pin(async {
                    call.prepare(deadline, self.renew(&agreed)).await??;
                    self.call_once(&call, &sending, &self.agreed(), deadline)
                        .await
                })
                .await
            }
            result => result,
        }?;
        match ServerTask::read(&call, &result, self.is_modern()) {
            Some(task) => Box::pin(self.follow(&task, &call, deadline)).await,
            None => Ok(result),
        }
    }

    /// Waits until this call is the only one that the server may ask about, if that is required: over a pipe a question
    /// names no call. It remains the only one until the call has ended, including its task.
    async fn one_asked(
        &self,
        call: &UpstreamCall<'_>,
        deadline: Instant,
    ) -> Result<Option<tokio::sync::MutexGuard<'_, ()>>, UpstreamFailure> {
        let is_asked_alone = !self.is_modern() && !matches!(self.core.link, UpstreamLink::Http(_));
        if !is_asked_alone
            || self
                .core
                .ask()
                .iter()
                .all(|ask| *ask == ClientCapability::Ui)
        {
            return Ok(None);
        }
        Box::pin(call.prepare(deadline, self.one_asked.lock()))
            .await
            .map(Some)
    }

    async fn call_once(
        &self,
        call: &UpstreamCall<'_>,
        sending: &OutgoingOperation<'_>,
        agreed: &HandshakeResult,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        let listener = call.listener.as_ref();
        let level = listener.and_then(|listener| listener.log_level());
        if let Some(level) = level.filter(|_| !agreed.is_modern()) {
            Box::pin(call.prepare(deadline, self.set_level(level, agreed.version, deadline)))
                .await?;
        }
        let id = self.core.id();
        let token = listener
            .is_some_and(|listener| listener.wants_progress())
            .then_some(id);
        let meta = match agreed.is_modern() || token.is_some() || call.trace.is_some() {
            true => Some(self.core.meta(
                agreed.version,
                &OutgoingMeta {
                    progress: token,
                    trace: call.trace,
                    level,
                    knows_tasks: matches!(
                        sending,
                        OutgoingOperation::Asked(UpstreamOperation::Tool { .. })
                    ),
                },
            )),
            false => None,
        };
        let name = sending.name().map(message::text);
        let mut params = sending.params(name.as_deref().unwrap_or_default());
        if matches!(
            sending,
            OutgoingOperation::Asked(UpstreamOperation::Tool { as_task: true, .. })
        ) && !agreed.is_modern()
        {
            params.push(("task", "{}"));
        }
        // A legacy server that refused until its caller had opened a URL is simply asked again.
        if let Some(resumed) = call.resumed.filter(|_| agreed.is_modern()) {
            params.push(("inputResponses", resumed.responses.get()));
            params.extend(
                resumed
                    .state
                    .iter()
                    .map(|state| ("requestState", state.get())),
            );
        }
        params.extend(meta.iter().map(|meta| ("_meta", meta.as_str())));
        let request = OutgoingMessage {
            text: message::request(id, sending.method(), &message::object(&params)),
            id: Some(id),
            method: sending.method(),
            name: sending.name().map(str::to_owned),
            headers: call.headers.to_vec(),
            version: Some(agreed.version),
        };
        if call.cancel.is_cancelled() {
            return Err(cancelled().before_sending().into());
        }
        if Instant::now() >= deadline {
            return Err(timed_out(sending.method(), call.timeout)
                .before_sending()
                .into());
        }
        let (caller, mut asked) = InboxCaller::new(listener);
        let mut open = None;
        let mut wait = self.core.inbox.expect(id, Some(caller))?;
        let mut answer = std::pin::pin!(async {
            self.core.link.exchange(request).await?;
            (&mut wait.answer)
                .await
                .unwrap_or_else(|_| Err(given_up().into()))
        });
        let ended = tokio::select! {
            biased; // what waits for the answer sends the request, which has to be there to be cancelled
            answer = self.answered(answer.as_mut(), asked.as_mut().zip(listener), &mut open, deadline, agreed.version) => match answer {
                Some(answer) => return answer,
                None => timed_out(sending.method(), call.timeout),
            },
            () = call.cancel.cancelled() => cancelled(),
        };
        Box::pin(self.cancel(id, agreed)).await;
        if let Some(asked) = asked {
            let decline = Box::pin(self.decline(open, asked, agreed.version));
            let _ = timeout(CANCEL_GRACE, decline).await; // a server that does not read has to do without
        }
        // The call may have been carried out anyway, and then its true outcome is worth a short wait.
        let may_answer = !agreed.is_modern() || !matches!(self.core.link, UpstreamLink::Http(_));
        if may_answer && let Ok(answer) = timeout(CANCEL_GRACE, answer).await {
            return answer;
        }
        Err(ended.into())
    }

    /// Waits for the answer, and in the meantime lets the caller answer the server's questions: that time does not count.
    /// `None`: the deadline has passed.
    async fn answered(
        &self,
        mut answer: Pin<&mut impl Future<Output = Answer>>,
        asked: Option<(&mut mpsc::Receiver<ServerAsked>, &Arc<dyn UpstreamListener>)>,
        open: &mut Option<OpenQuestion>,
        mut deadline: Instant,
        version: &'static str,
    ) -> Option<Answer> {
        let Some((asked, listener)) = asked else {
            return timeout_at(deadline, answer).await.ok();
        };
        loop {
            let question = tokio::select! {
                biased;
                answer = timeout_at(deadline, answer.as_mut()) => return answer.ok(),
                question = asked.recv() => question,
            };
            let Some(ServerAsked { id, question }) = question else {
                return timeout_at(deadline, answer).await.ok();
            };
            let began = Instant::now();
            let method = question.method.clone();
            let OpenQuestion { id, method } = open.insert(OpenQuestion { id, method });
            let result = tokio::select! {
                result = listener.ask(question) => result,
                // The server has done without.
                answer = answer.as_mut() => return Some(answer),
            };
            deadline += began.elapsed();
            let text = match result {
                Some(result) => message::result(id, &result),
                None => self.core.inbox.answer_to(id, method),
            };
            *open = None;
            tokio::select! {
                biased;
                answer = timeout_at(deadline, answer.as_mut()) => return answer.ok(),
                // A server that does not read the reply to its question does not get one.
                _ = timeout(REPLY_MAX, Box::pin(self.core.reply(text, version))) => {}
            }
        }
    }

    /// Declines the questions of an abandoned call: the server may wait for their answers, and others for the server.
    async fn decline(
        &self,
        mut next: Option<OpenQuestion>,
        mut asked: mpsc::Receiver<ServerAsked>,
        version: &'static str,
    ) {
        while let Some(OpenQuestion { id, method }) = next {
            let text = self.core.inbox.answer_to(&id, &method);
            let _ = self.core.reply(text, version).await; // it asked; the answer is its own affair
            next = asked.try_recv().ok().map(|asked| OpenQuestion {
                id: asked.id,
                method: asked.question.method,
            });
        }
    }

    /// Tells the server which log messages are wanted, if it has any. A server that does not answer in time costs no later call
    /// that time again.
    async fn set_level(&self, level: &'static str, version: &'static str, deadline: Instant) {
        let is_told = *self.level.lock() == Some(level);
        if is_told || !self.advertises("logging") {
            return;
        }
        let params = message::object(&[("level", &message::text(level))]);
        let request = SessionRequest::new("logging/setLevel", params, version);
        let patience = LEVEL_MAX.min(deadline.saturating_duration_since(Instant::now()) / 2);
        let answer = timeout(patience, self.core.request(request)).await;
        let is_mute = match &answer {
            Ok(Err(RequestError::Failed(failure))) => failure.kind == UpstreamFailureKind::Timeout,
            Ok(_) => false,
            Err(_) => true,
        };
        if is_mute || matches!(answer, Ok(Ok(_))) {
            *self.level.lock() = Some(level);
        }
    }

    async fn cancel(&self, id: u64, agreed: &HandshakeResult) {
        if agreed.is_modern() && matches!(self.core.link, UpstreamLink::Http(_)) {
            return self.core.link.hang_up(id);
        }
        let params = message::object(&[
            ("requestId", &id.to_string()),
            ("reason", "\"cancelled by the caller\""),
        ]);
        let tell = self
            .core
            .notify("notifications/cancelled", params, agreed.version);
        let _ = timeout(CANCEL_GRACE, tell).await; // it ends for us either way
    }

    /// Makes any other request. An ended session is reopened, once.
    pub(crate) async fn request(
        &self,
        request: SessionRequest,
    ) -> Result<Box<RawValue>, RequestError> {
        let again = SessionRequest {
            method: request.method,
            params: request.params.clone(),
            version: request.version,
            name: request.name.clone(),
            headers: Vec::new(),
        };
        let agreed = self.agreed();
        match self.core.request(request).await {
            Err(error) if is_session_over(&error, self.keeps_session(&agreed)) => {
                self.renew(&agreed).await?;
                self.core.request(again).await
            }
            answer => answer,
        }
    }

    /// Reopens a session that was over for a request. `before` is the agreement at the time of the request. If it cannot
    /// be opened, no further request is made in it.
    async fn renew(&self, before: &Arc<HandshakeResult>) -> Result<(), UpstreamFailure> {
        let _renewing = self.renewing.lock().await;
        let forgotten = self.core.inbox.forgotten();
        if forgotten.is_cancelled() {
            let cause = "it opened no other in its place";
            return Err(UpstreamFailure::new(
                UpstreamFailureKind::Closed,
                "the server to know the session",
                cause,
            )
            .before_sending());
        }
        // Another request may have done it before, or while this one waited.
        if !Arc::ptr_eq(before, &self.agreed()) {
            return Ok(());
        }
        // The caller that renews it may leave in between.
        let unfinished = forgotten.clone().drop_guard();
        let start = self.core.settings.start;
        let agreed = timeout(start, agree(&self.core, EraPreference::Legacy, None)).await;
        let agreed = agreed.unwrap_or_else(|_| Err(timed_out("initialize", start)));
        let agreed = agreed.map_err(|failure| {
            UpstreamFailure {
                kind: UpstreamFailureKind::Closed,
                ..failure
            }
            .before_sending()
        })?;
        *self.agreed.write() = Arc::new(agreed);
        self.core.inbox.begin_anew();
        // The new session has no log level yet.
        *self.level.lock() = None;
        *self.subscribed.lock().await = SubscriptionState::default();
        unfinished.disarm();
        Ok(())
    }

    /// Returns `true` if a server over HTTP may forget what was agreed with it.
    fn keeps_session(&self, agreed: &HandshakeResult) -> bool {
        !agreed.is_modern() && matches!(self.core.link, UpstreamLink::Http(_))
    }

    fn agreed(&self) -> Arc<HandshakeResult> {
        self.agreed.read().clone()
    }
}
