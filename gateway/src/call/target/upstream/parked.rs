//! Calls of other servers that wait for an answer from their caller. A legacy server asks in the middle of a call, so the call is
//! kept open here while its caller is asked, and continues with the answer. Only this process can continue it.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{json, value::RawValue};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use weir_upstream::UpstreamQuestion;

use super::{UpstreamAnswer, bind::raw};
use crate::{
    call::{
        CallError,
        asking::{self, AllowedQuestions},
        error::WriteOutcome,
    },
    codes::FailureCode,
};

/// The time that a caller has for its answer; after that the server gets none.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5 * 60);
const CALLS_MAX: usize = 64;
/// The key of a question that a legacy server asks.
pub(super) const QUESTION: &str = "question";
/// The mark of Weir's own states. A server cannot forge one, since handles cannot be guessed.
const MARK: &str = "weir-parked:";

/// A question of the server, and where its answer goes. If nothing is sent, the caller declined.
pub(super) struct ParkedQuestion {
    pub question: UpstreamQuestion,
    pub answer: oneshot::Sender<Box<RawValue>>,
}

/// A call that is under way. Dropping it cancels the call at its server.
pub(super) struct RunningUpstreamCall {
    task: JoinHandle<Result<UpstreamAnswer, CallError>>,
    /// The server's questions.
    asked: mpsc::UnboundedReceiver<ParkedQuestion>,
    /// The server's name.
    server: Arc<str>,
    writes: bool,
    cancel: CancellationToken,
    /// Cancelled when the call has ended.
    over: CancellationToken,
    /// Cancels the call when the request that brought the last answer is cancelled.
    answering: Option<AbortOnDropHandle<()>>,
}

struct ParkedCall {
    since: Instant,
    running: RunningUpstreamCall,
    answer: oneshot::Sender<Box<RawValue>>,
}

/// A handle is known only to one process and to one caller, in whose sealed state it travels.
static PARKED: LazyLock<Mutex<HashMap<u128, ParkedCall>>> = LazyLock::new(Mutex::default);

impl RunningUpstreamCall {
    /// Starts a call. `asked` are its server's questions, and `cancel` cancels it.
    pub(super) fn new(
        call: impl Future<Output = Result<UpstreamAnswer, CallError>> + Send + 'static,
        server: Arc<str>,
        asked: mpsc::UnboundedReceiver<ParkedQuestion>,
        writes: bool,
        cancel: CancellationToken,
    ) -> Self {
        let over = CancellationToken::new();
        let ends = over.clone().drop_guard();
        let call = async move {
            let _ends = ends;
            call.await
        };
        Self {
            task: tokio::spawn(call),
            asked,
            server,
            writes,
            cancel,
            over,
            answering: None,
        }
    }

    /// Waits for the end of the call, or for a question of the server, which also ends the wait: the call is kept open, and the
    /// request with the answer continues it. A cancelled call is awaited as well: its true outcome counts.
    pub(super) async fn follow(mut self) -> Result<UpstreamAnswer, CallError> {
        let asked = tokio::select! {
            biased;
            ended = &mut self.task => return ended.unwrap_or_else(|error| {
                Err(unfinished(CallError::new(FailureCode::Internal, "The gateway failed.").log(error.to_string()), self.writes))
            }),
            Some(asked) = self.asked.recv() => asked,
        };
        let ParkedQuestion {
            question: UpstreamQuestion { method, params },
            answer,
        } = asked;
        let may_ask = AllowedQuestions {
            server: self.server.clone(),
            capabilities: asking::capability(&method).into_iter().collect(),
        };
        let mut request = json!({ "method": method });
        if let Some(params) = params {
            request["params"] = json!(params);
        }
        let writes = self.writes;
        let Some(handle) = park(self, answer) else {
            let error = CallError::new(
                FailureCode::Overloaded,
                "Too many calls wait for an answer of their callers.",
            );
            return Err(unfinished(error, writes));
        };
        let result = json!({ "resultType": "input_required", "inputRequests": { QUESTION: request }, "requestState": handle });
        Ok(UpstreamAnswer {
            result: raw(&result)?,
            may_ask: Some(may_ask),
        })
    }
}

impl Drop for RunningUpstreamCall {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Returns the error of a call that is no longer awaited, or that broke off: it is unknown what a write has done by then.
pub(super) fn unfinished(error: CallError, writes: bool) -> CallError {
    if writes {
        error.outcome(WriteOutcome::Unknown)
    } else {
        error
    }
}

/// Keeps a call until its caller answers. Returns the handle, or `None` if too many calls wait already.
fn park(running: RunningUpstreamCall, answer: oneshot::Sender<Box<RawValue>>) -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let handle = u128::from_be_bytes(bytes);
    let mut parked = parked();
    // A call that ended without the answer is kept for the caller that brings it, since it has the result.
    parked.retain(|_, call| {
        call.since.elapsed() < ANSWER_WITHIN
            && (!call.answer.is_closed() || call.running.over.is_cancelled())
    });
    if parked.len() >= CALLS_MAX {
        // A call that has ended gives way to an open one.
        let ended = parked
            .iter()
            .filter(|(_, call)| call.running.over.is_cancelled());
        let oldest = ended.min_by_key(|(_, call)| call.since);
        let oldest = oldest.map(|(handle, _)| *handle)?;
        parked.remove(&oldest);
    }
    parked.insert(
        handle,
        ParkedCall {
            since: Instant::now(),
            running,
            answer,
        },
    );
    Some(format!("{MARK}{handle:032x}"))
}

/// Returns whether a state is a handle of [`park`].
pub(super) fn is_handle(state: &str) -> bool {
    state.starts_with(MARK)
}

/// Continues a call. It is cancelled with `cancel`, the token of the request with the answer. `None`: it has ended, or it was
/// made in another process.
pub(super) fn go_on(
    handle: &str,
    answer: Option<Box<RawValue>>,
    cancel: &CancellationToken,
) -> Option<RunningUpstreamCall> {
    let ParkedCall {
        mut running,
        answer: to,
        ..
    } = take(handle)?;
    let (cancel, call) = (cancel.clone(), running.cancel.clone());
    running.answering = Some(AbortOnDropHandle::new(tokio::spawn(async move {
        cancel.cancelled().await;
        call.cancel();
    })));
    if let Some(answer) = answer {
        let _ = to.send(answer); // the call may have ended meanwhile
    }
    Some(running)
}

/// Ends a call, if one is kept, by cancelling it at its server. The caller gets the error instead.
pub(in crate::call) fn give_up(handle: Option<&str>, error: CallError) -> CallError {
    let given_up = handle.and_then(take);
    unfinished(error, given_up.is_some_and(|call| call.running.writes))
}

/// Waits until a kept call has ended, because its server answered without waiting for the caller.
pub(in crate::call) async fn wait_for_end(handle: &str) {
    let over = number(handle).and_then(|handle| Some(parked().get(&handle)?.running.over.clone()));
    match over {
        Some(over) => over.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Returns `true` if a call is still kept under this handle: the request that brought an answer was refused before the answer was
/// passed on.
pub(in crate::call) fn is_kept(handle: &str) -> bool {
    number(handle).is_some_and(|handle| parked().contains_key(&handle))
}

fn take(handle: &str) -> Option<ParkedCall> {
    parked().remove(&number(handle)?)
}

fn number(handle: &str) -> Option<u128> {
    u128::from_str_radix(handle.strip_prefix(MARK)?, 16).ok()
}

/// Cancels every call that waits for its caller, at the end of the process.
pub fn abandon_questions() {
    let waiting = std::mem::take(&mut *parked());
    drop(waiting); // without the lock: each tells its server
}

fn parked() -> MutexGuard<'static, HashMap<u128, ParkedCall>> {
    PARKED.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_write_did_that_broke_off_is_not_known() {
        for (writes, outcome) in [(true, Some(WriteOutcome::Unknown)), (false, None)] {
            #[expect(clippy::disallowed_methods, reason = "nothing is sent")]
            let (_questions, asked) = mpsc::unbounded_channel();
            let call = async { panic!("a call that breaks off") };
            let error =
                RunningUpstreamCall::new(call, "s".into(), asked, writes, CancellationToken::new())
                    .follow()
                    .await
                    .err();
            assert_eq!(
                error.map(|error| (error.code, error.outcome)),
                Some((FailureCode::Internal, outcome))
            );
        }
    }
}
