//! Receives messages of a server: answers go to their requests, and the server's own requests are answered.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::{
    sync::{
        broadcast,
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use weir_admission::{ApartTurn, LARGE_BYTES};
use weir_connections::mask::mask;

use crate::{
    auth::TokenSource,
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, one_line},
    listener::{UpstreamListener, UpstreamQuestion},
    message::{
        IncomingMessage, LogParams, ProgressParams, UpdatedParams, own_id, read_refusal,
        without_mark,
    },
    settings::{ClientCapability, UpstreamSettings},
    unreadable::{answered_id, id_behind_text, messages_in_row},
};

/// Lines of a child's stdout that are not messages; a child that prints more has mistaken its stdout for a log.
const RUBBISH_MAX: u64 = 10_000;
/// The unsolicited messages that a server may send within a span of time; a large one counts as this many. A server that sends
/// more is read slowly, so that it waits, and does not take processor time from the others.
const UNASKED_MAX: u64 = 1_000;
const UNASKED_SPAN: Duration = Duration::from_millis(100);
/// The time to wait for a separate answer after one was found behind other text: servers log what they are about to answer.
const LOGGED_WAIT: Duration = Duration::from_secs(2);
/// The number of resource changes that may wait for a slow reader.
const UPDATED_MAX: usize = 256;
/// The questions of the server that wait for the caller of one call. Each may be as large as a message.
const QUESTIONS_MAX: usize = 16;
/// The abandoned calls that may still run at the server. At this number, it is no longer noted which of them end.
const GIVEN_UP_MAX: usize = 1_024;

pub(crate) type Answer = Result<Box<RawValue>, RequestError>;

pub(crate) struct UpstreamInbox {
    /// The name of the server in the log.
    name: Arc<str>,
    waiting: Mutex<InboxState>,
    /// Cancelled when the server no longer knows the session, or it is no longer clear what its questions are about: open
    /// requests may finish, but no new one is begun.
    forgotten: CancellationToken,
    ask: Vec<ClientCapability>,
    /// Whether callers that must not see each other's messages share the session.
    is_shared: bool,
    /// The tokens that requests carry, which are masked in what the server sends.
    tokens: Option<TokenSource>,
    /// The number of times that a list changed, or that the session ended.
    changes: watch::Sender<u64>,
    /// Set when the list of resources is among them, until it is passed on.
    resource_news: Arc<AtomicBool>,
    /// The URIs of resources that the server says have changed.
    updated: broadcast::Sender<String>,
    pub(crate) rubbish: AtomicU64,
    /// The last request that was sent.
    last: AtomicU64,
    /// Answers without a request. One that comes too late does not count.
    pub(crate) strays: AtomicU64,
    /// The unsolicited messages: how many have come, how many of these before the current span of time, and when it began.
    unasked: AtomicU64,
    span: Mutex<(u64, Instant)>,
}

#[derive(Default)]
struct InboxState {
    by_id: HashMap<u64, PendingRequest>,
    /// The calls whose answers are no longer awaited and did not come: a message that names no call may be about one of these.
    /// Kept if the session is shared by callers that must not see each other's messages.
    given_up: HashSet<u64>,
    /// Why no more messages come.
    over: Option<UpstreamFailure>,
    has_answered: bool,
}

struct PendingRequest {
    answer: oneshot::Sender<Answer>,
    /// `None` for a request of Weir's own.
    caller: Option<InboxCaller>,
}

/// The caller of a call that is under way.
#[derive(Clone)]
pub(crate) enum InboxCaller {
    /// The caller gets no messages before the answer, and cannot be asked.
    Silent,
    Listening {
        listener: Arc<dyn UpstreamListener>,
        questions: mpsc::Sender<ServerRequest>,
    },
}

impl InboxCaller {
    /// Returns the caller, and the receiver of the server's questions to it.
    pub(crate) fn new(
        listener: Option<&Arc<dyn UpstreamListener>>,
    ) -> (Self, Option<mpsc::Receiver<ServerRequest>>) {
        let Some(listener) = listener.cloned() else {
            return (Self::Silent, None);
        };
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        (
            Self::Listening {
                listener,
                questions,
            },
            Some(asked),
        )
    }
}

/// A request of the server, and its id there.
pub(crate) struct ServerRequest {
    pub(crate) id: Box<RawValue>,
    pub(crate) question: UpstreamQuestion,
}

/// Forgets the request when its answer is no longer awaited.
pub(crate) struct AnswerWaiter {
    inbox: Arc<UpstreamInbox>,
    id: u64,
    pub(crate) answer: oneshot::Receiver<Answer>,
}

impl Drop for AnswerWaiter {
    fn drop(&mut self) {
        let mut waiting = self.inbox.waiting.lock();
        if let Some(request) = waiting.by_id.remove(&self.id)
            && self.inbox.is_shared
        {
            waiting.give_up(self.id, &request);
        }
    }
}

impl InboxState {
    fn give_up(&mut self, id: u64, request: &PendingRequest) {
        if request.caller.is_some() && self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.insert(id);
        }
    }

    /// Notes that an abandoned call has ended.
    fn end(&mut self, id: u64) {
        if self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.remove(&id);
        }
    }
}

impl UpstreamInbox {
    pub(crate) fn new(settings: &UpstreamSettings) -> Arc<Self> {
        Arc::new(Self {
            name: settings.name.clone(),
            waiting: Mutex::default(),
            forgotten: CancellationToken::new(),
            ask: settings.ask.clone(),
            tokens: settings.tokens.clone(),
            is_shared: settings.is_shared,
            changes: watch::Sender::new(0),
            resource_news: Arc::default(),
            updated: broadcast::Sender::new(UPDATED_MAX),
            rubbish: AtomicU64::new(0),
            last: AtomicU64::new(0),
            strays: AtomicU64::new(0),
            unasked: AtomicU64::new(0),
            span: Mutex::new((0, Instant::now())),
        })
    }

    pub(crate) fn expect(
        self: &Arc<Self>,
        id: u64,
        caller: Option<InboxCaller>,
    ) -> Result<AnswerWaiter, UpstreamFailure> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if let Some(over) = &waiting.over {
            return Err(over.clone().before_sending());
        }
        waiting.by_id.insert(
            id,
            PendingRequest {
                answer: sender,
                caller,
            },
        );
        self.last.fetch_max(id, Ordering::Relaxed);
        drop(waiting);
        Ok(AnswerWaiter {
            inbox: self.clone(),
            id,
            answer,
        })
    }

    pub(crate) fn is_awaited(&self, id: u64) -> bool {
        self.waiting.lock().by_id.contains_key(&id)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn resource_news(&self) -> Arc<AtomicBool> {
        self.resource_news.clone()
    }

    pub(crate) fn updated(&self) -> broadcast::Receiver<String> {
        self.updated.subscribe()
    }

    /// Returns the callers that a message of the server may belong to: that of the request whose stream it came on, or else
    /// all with an open call, including those that cannot receive it.
    fn callers(&self, of: Option<u64>) -> Vec<InboxCaller> {
        let waiting = self.waiting.lock();
        let caller = |awaited: &PendingRequest| awaited.caller.clone();
        match of {
            Some(of) => waiting
                .by_id
                .get(&of)
                .and_then(caller)
                .into_iter()
                .collect(),
            None => waiting.by_id.values().filter_map(caller).collect(),
        }
    }

    /// Returns `true` if a message that names no call may be about an abandoned one, whose caller is gone.
    fn may_be_of_another(&self, of: Option<u64>) -> bool {
        of.is_none() && !self.waiting.lock().given_up.is_empty()
    }

    /// Forgets the calls of a session that was reopened.
    pub(crate) fn begin_anew(&self) {
        self.waiting.lock().given_up.clear();
    }

    /// Takes one message, or several if the server batches. Returns the messages to send back. While a large one is read, the
    /// calls of other servers continue.
    pub(crate) async fn receive(&self, text: &str, of: Option<u64>) -> Vec<String> {
        match text.len() > LARGE_BYTES {
            true => ApartTurn::wait().await.run(|| self.read(text, of)),
            false => self.read(text, of),
        }
    }

    /// Reads what was received. Secrets that the server repeats are masked first, in every kind of message.
    fn read(&self, text: &str, of: Option<u64>) -> Vec<String> {
        let text = mask(text);
        let text = match &self.tokens {
            Some(tokens) => tokens.mask(&text),
            None => text,
        };
        let text = without_mark(&text);
        if text.starts_with('[') {
            let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text) else {
                self.note_rubbish(text);
                return Vec::new();
            };
            return self.receive_each(&batch, of);
        }
        let error = match serde_json::from_str(text) {
            Ok(message) => return self.receive_one(message, text, of).into_iter().collect(),
            Err(error) => error,
        };
        let messages = messages_in_row(text);
        if messages.len() > 1 {
            return self.receive_each(&messages, of);
        }
        self.receive_unreadable(text, &error);
        Vec::new()
    }

    fn receive_each(&self, messages: &[&RawValue], of: Option<u64>) -> Vec<String> {
        let receive = |message: &&RawValue| match serde_json::from_str(message.get()) {
            Ok(read) => self.receive_one(read, message.get(), of),
            Err(error) => {
                self.receive_unreadable(message.get(), &error);
                None
            }
        };
        messages.iter().filter_map(receive).collect()
    }

    /// Counts something that the server sends and that answers nothing.
    pub(crate) fn count_unasked(&self, bytes: usize) {
        let count = if bytes > LARGE_BYTES { UNASKED_MAX } else { 1 };
        self.unasked.fetch_add(count, Ordering::Relaxed);
    }

    /// Waits if the server has sent more than it may in a span of time. The reader of its messages calls this in between.
    pub(crate) async fn pace(&self) {
        let unasked = self.unasked.load(Ordering::Relaxed);
        let next = {
            let mut span = self.span.lock();
            if unasked < span.0 + UNASKED_MAX {
                return;
            }
            let next = (span.1 + UNASKED_SPAN).max(Instant::now());
            *span = (unasked, next);
            next
        };
        sleep_until(next).await;
    }

    /// Ends a request without an answer.
    pub(crate) fn fail(&self, id: u64, error: RequestError) {
        let mut waiting = self.waiting.lock();
        let Some(awaited) = waiting.by_id.remove(&id) else {
            return;
        };
        // The call may continue although its connection broke.
        let is_cut = matches!(&error, RequestError::Failed(failure) if failure.kind == UpstreamFailureKind::Closed);
        if is_cut && self.is_shared {
            waiting.give_up(id, &awaited);
        }
        drop(waiting);
        let _ = awaited.answer.send(Err(error)); // the receiver may be gone
    }

    /// Ends the session. The first reason is kept.
    pub(crate) fn close(&self, failure: UpstreamFailure) {
        let mut waiting = self.waiting.lock();
        let failure = waiting.over.get_or_insert(failure).clone();
        for (_, awaited) in waiting.by_id.drain() {
            let _ = awaited.answer.send(Err(failure.clone().into()));
        }
        drop(waiting);
        // A reader of its lists has to look for another session.
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Logs that the server's process ended unexpectedly. If it never answered, the caller that started it gets the error
    /// instead.
    pub(crate) fn log_end(&self, how: &str, stderr: &str) {
        if self.waiting.lock().has_answered {
            let (upstream, stderr) = (
                &*self.name,
                one_line(stderr.trim_end().lines().last().unwrap_or_default(), 200),
            );
            tracing::warn!(
                upstream,
                how,
                stderr,
                "the server's process has ended; the next call starts it again"
            );
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waiting.lock().over.is_some()
    }

    /// Cancelled once the server no longer knows the session.
    pub(crate) fn forgotten(&self) -> &CancellationToken {
        &self.forgotten
    }

    /// Returns why no more messages come, once that is so.
    pub(crate) fn over(&self) -> Option<UpstreamFailure> {
        self.waiting.lock().over.clone()
    }

    fn receive_one(
        &self,
        message: IncomingMessage<'_>,
        text: &str,
        of: Option<u64>,
    ) -> Option<String> {
        let method = message.method();
        if method.is_some() {
            self.count_unasked(text.len());
        }
        match (message.id, method) {
            (Some(id), Some(method)) => {
                if self.may_ask(method) {
                    match &self.callers(of)[..] {
                        [] | [InboxCaller::Silent] => {}
                        // The next calls get a session in which it is clear again what a question is about.
                        [InboxCaller::Listening { .. }] if self.may_be_of_another(of) => {
                            self.forgotten.cancel();
                            return Some(refusal(
                                id,
                                -1,
                                "the request names no call, and an abandoned one may have made it",
                            ));
                        }
                        [InboxCaller::Listening { questions, .. }] => {
                            let params = message.params.map(ToOwned::to_owned);
                            let question = UpstreamQuestion {
                                method: method.to_owned(),
                                params,
                            };
                            return match questions.try_send(ServerRequest {
                                id: id.to_owned(),
                                question,
                            }) {
                                Err(TrySendError::Full(_)) => {
                                    Some(refusal(id, -1, "too many requests wait for an answer"))
                                }
                                Ok(()) => None,
                                // Its call has just been abandoned.
                                Err(TrySendError::Closed(_)) => Some(self.answer_to(id, method)),
                            };
                        }
                        // Another caller must not answer this question.
                        _ => {
                            return Some(refusal(
                                id,
                                -1,
                                "the request names no call, and several are open",
                            ));
                        }
                    }
                }
                return Some(self.answer_to(id, method));
            }
            (None, Some(method)) => self.notified(method, message.params, of),
            (id, None) => {
                let own = id.and_then(own_id);
                let is_refusal = message.result.is_none() && message.error.is_some();
                if id.is_none() && !is_refusal {
                    self.note_rubbish(text);
                    return None;
                }
                let answer = match (message.result, message.error) {
                    (Some(result), None) => Ok(result.to_owned()),
                    (_, Some(error)) => Err(RequestError::Refused(read_refusal(error))),
                    (None, None) => Err(RequestError::Failed(UpstreamFailure::new(
                        UpstreamFailureKind::Protocol,
                        "an answer with a result or an error",
                        "the server sent one that has neither",
                    ))),
                };
                // A server that cannot read a request refuses it without its id.
                let own = own.or_else(|| {
                    is_refusal
                        .then(|| of.or_else(|| self.first_request()))
                        .flatten()
                });
                self.answered(own, answer);
            }
        }
        None
    }

    /// Fails the request of an answer that has other text before it on its line, unless the answer soon comes on its own line.
    pub(crate) async fn fail_behind_text(self: &Arc<Self>, text: &str) {
        let find = || id_behind_text(without_mark(text));
        let id = match text.len() > LARGE_BYTES {
            true => ApartTurn::wait().await.run(find),
            false => find(),
        };
        let id = id.filter(|id| self.is_awaited(*id));
        let Some(id) = id else { return };
        let inbox = self.clone();
        tokio::spawn(async move {
            sleep(LOGGED_WAIT).await;
            let failure = UpstreamFailure::new(
                UpstreamFailureKind::Protocol,
                "an answer that is JSON",
                "its answer is not valid JSON: its line begins with other text",
            )
            .step("let the server write its log to stderr");
            inbox.fail(id, failure.into());
        });
    }

    /// Fails the request of an answer that is not JSON: the answer is not read, but its caller need not wait.
    fn receive_unreadable(&self, text: &str, error: &serde_json::Error) {
        let id = answered_id(text).filter(|id| self.is_awaited(*id));
        let Some(id) = id else {
            return self.note_rubbish(text);
        };
        self.count_unasked(text.len());
        let cause = format!("its answer is not valid JSON: {error}");
        let failure = UpstreamFailure::new(
            UpstreamFailureKind::Protocol,
            "an answer that is JSON",
            cause,
        )
        .step("report it to the server's author; NaN and Infinity are not numbers of JSON");
        self.fail(id, failure.into());
    }

    /// Returns the request that was sent first, while it is the only one and nothing was answered yet.
    fn first_request(&self) -> Option<u64> {
        let waiting = self.waiting.lock();
        let is_first = !waiting.has_answered && waiting.by_id.len() == 1;
        waiting.by_id.keys().copied().next().filter(|_| is_first)
    }

    fn answered(&self, id: Option<u64>, answer: Answer) {
        let length = answer.as_ref().map_or(0, |result| result.get().len());
        let awaited = {
            let mut waiting = self.waiting.lock();
            let awaited = id.and_then(|id| waiting.by_id.remove(&id));
            waiting.has_answered |= awaited.is_some();
            if let (None, Some(id)) = (&awaited, id) {
                waiting.end(id);
            }
            awaited
        };
        match awaited {
            Some(awaited) => {
                let _ = awaited.answer.send(answer); // the receiver may be gone
            }
            None => {
                self.count_unasked(length);
                if id.is_some_and(|id| id <= self.last.load(Ordering::Relaxed)) {
                    return; // it comes too late
                }
                if self.strays.fetch_add(1, Ordering::Relaxed) == 0 {
                    let upstream = &*self.name;
                    tracing::warn!(
                        upstream,
                        "the server answers requests that it was not sent; these answers are skipped"
                    );
                }
            }
        }
    }

    fn notified(&self, method: &str, params: Option<&RawValue>, of: Option<u64>) {
        match method {
            "notifications/progress" => {
                let params = params.and_then(|params| {
                    serde_json::from_str::<ProgressParams<'_>>(params.get()).ok()
                });
                let Some(params) = params else { return };
                let Some(token) = own_id(params.progress_token) else {
                    return;
                };
                let caller = self
                    .waiting
                    .lock()
                    .by_id
                    .get(&token)
                    .and_then(|it| it.caller.clone());
                if let Some(InboxCaller::Listening { listener, .. }) = caller {
                    listener.progress(params.progress);
                }
            }
            "notifications/message" => {
                let params = params
                    .and_then(|params| serde_json::from_str::<LogParams<'_>>(params.get()).ok());
                let Some(LogParams {
                    level,
                    logger,
                    data,
                }) = params
                else {
                    return;
                };
                // One that names no call belongs to the session, and so to all its callers.
                let callers = self.callers(of);
                if self.is_shared && (callers.len() > 1 || self.may_be_of_another(of)) {
                    return;
                }
                for caller in callers {
                    if let InboxCaller::Listening { listener, .. } = caller {
                        listener.log(&level, logger.as_deref().unwrap_or_default(), data);
                    }
                }
            }
            "notifications/resources/updated" => {
                let params = params
                    .and_then(|params| serde_json::from_str::<UpdatedParams>(params.get()).ok());
                if let Some(UpdatedParams { uri }) = params {
                    let _ = self.updated.send(uri); // the receiver may be gone
                }
            }
            "notifications/resources/list_changed" => {
                self.resource_news.store(true, Ordering::Relaxed);
                self.changes.send_modify(|changes| *changes += 1);
            }
            "notifications/tools/list_changed" | "notifications/prompts/list_changed" => {
                self.changes.send_modify(|changes| *changes += 1)
            }
            _ => {}
        }
    }

    /// Returns whether callers may be asked this.
    pub(crate) fn may_ask(&self, method: &str) -> bool {
        let needed = match method {
            "roots/list" => ClientCapability::Roots,
            "elicitation/create" => ClientCapability::Elicitation,
            "sampling/createMessage" => ClientCapability::Sampling,
            _ => return false,
        };
        self.ask.contains(&needed)
    }

    /// Returns the answer to a request of the server. No user can be asked through this client, so the answer is a refusal.
    pub(crate) fn answer_to(&self, id: &RawValue, method: &str) -> String {
        let result = match method {
            "ping" => "{}",
            "roots/list" if self.ask.contains(&ClientCapability::Roots) => r#"{"roots":[]}"#,
            "elicitation/create" if self.ask.contains(&ClientCapability::Elicitation) => {
                r#"{"action":"decline"}"#
            }
            "sampling/createMessage" if self.ask.contains(&ClientCapability::Sampling) => {
                return refusal(id, -1, "the request was declined");
            }
            "roots/list" | "elicitation/create" | "sampling/createMessage" => {
                let message = format!("the client does not offer {method}");
                return refusal(id, -32601, &message);
            }
            _ => return refusal(id, -32601, "the client does not offer this method"),
        };
        let id = bounded(id);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }

    fn note_rubbish(&self, text: &str) {
        self.count_unasked(text.len());
        let before = self.rubbish.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            let (upstream, began) = (&*self.name, one_line(text, 80));
            tracing::warn!(
                upstream,
                began,
                "the server sends something that is not an MCP message, which is skipped"
            );
        }
        if before >= RUBBISH_MAX {
            let cause = format!("it sent more than {RUBBISH_MAX} messages that are not MCP");
            self.close(
                UpstreamFailure::new(
                    UpstreamFailureKind::Protocol,
                    "the server to send MCP messages and nothing else",
                    cause,
                )
                .step("let the server write its log to stderr"),
            );
        }
    }
}

/// Returns an error as the answer to a request of the server.
fn refusal(id: &RawValue, code: i64, message: &str) -> String {
    let id = bounded(id);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

/// Returns an id that is repeated to the server, if it has a sensible length.
fn bounded(id: &RawValue) -> &str {
    if id.get().len() <= 256 {
        id.get()
    } else {
        "null"
    }
}
