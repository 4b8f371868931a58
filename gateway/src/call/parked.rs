//! Calls of other servers that wait for an answer of their caller. A server of the legacy era asks in the middle of a call,
//! so the call stays open here while its caller is asked, and goes on with the answer. Only this process can go on with it.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::DropGuard;
use weir_upstream::Question;

use super::{CallError, error::WriteOutcome, foreign::Answered};

/// The time that a caller has for its answer; after that the server is told that there is none.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5 * 60);
const CALLS_MAX: usize = 64;
/// What marks a state as one of ours: a server's own is never taken for it, since no handle can be guessed.
const MARK: &str = "weir-parked:";

/// A question of the server, and where its answer goes. Nothing sent means that the caller declined.
pub(super) struct Asked {
    pub question: Question,
    pub answer: oneshot::Sender<Box<RawValue>>,
}

/// A call that is under way.
pub(super) struct Running {
    pub task: JoinHandle<Result<Answered, CallError>>,
    /// The server's questions.
    pub asked: mpsc::UnboundedReceiver<Asked>,
    pub writes: bool,
    /// Tells the server when nobody waits for the call any more.
    pub _gone: DropGuard,
}

struct Parked {
    since: Instant,
    running: Running,
    answer: oneshot::Sender<Box<RawValue>>,
}

/// A handle is known to one process and to one caller, in whose sealed state it travels.
static PARKED: LazyLock<Mutex<HashMap<u128, Parked>>> = LazyLock::new(Mutex::default);

/// Keeps a call until its caller answers. Returns the handle, or `None` if too many calls wait already.
pub(super) fn park(running: Running, answer: oneshot::Sender<Box<RawValue>>) -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let handle = u128::from_be_bytes(bytes);
    let mut parked = parked();
    parked.retain(|_, call| call.since.elapsed() < ANSWER_WITHIN && !call.answer.is_closed());
    if parked.len() >= CALLS_MAX {
        return None;
    }
    parked.insert(handle, Parked { since: Instant::now(), running, answer });
    Some(format!("{MARK}{handle:032x}"))
}

/// Returns whether a state is a handle of [`park`].
pub(super) fn is_handle(state: &str) -> bool {
    state.starts_with(MARK)
}

/// Goes on with a call. `None`: it has ended, or it was made in another process.
pub(super) fn go_on(handle: &str, answer: Option<Box<RawValue>>) -> Option<Running> {
    let handle = u128::from_str_radix(handle.strip_prefix(MARK)?, 16).ok()?;
    let Parked { running, answer: to, .. } = parked().remove(&handle)?;
    if let Some(answer) = answer {
        let _ = to.send(answer); // the call may have ended meanwhile
    }
    Some(running)
}

/// Gives up a call, if one is kept, whose caller gets the error instead. Its server is told; what a write did by then is not
/// known.
pub(super) fn give_up(handle: Option<&str>, error: CallError) -> CallError {
    let running = handle.and_then(|handle| go_on(handle, None));
    match running.is_some_and(|running| running.writes) {
        true => error.outcome(WriteOutcome::Unknown),
        false => error,
    }
}

/// Returns `true` if a call is still kept under this handle: whoever brought an answer was refused before it could be given.
pub(super) fn is_kept(handle: &str) -> bool {
    let handle = handle.strip_prefix(MARK).and_then(|handle| u128::from_str_radix(handle, 16).ok());
    handle.is_some_and(|handle| parked().contains_key(&handle))
}

/// Gives up every call that waits for its caller, at the end of the process.
pub fn abandon_questions() {
    let waiting = std::mem::take(&mut *parked());
    drop(waiting); // without the lock: each tells its server
}

fn parked() -> MutexGuard<'static, HashMap<u128, Parked>> {
    PARKED.lock().unwrap_or_else(PoisonError::into_inner)
}
