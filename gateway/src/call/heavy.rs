//! Checks that may take long: only a few run at once, and not on the threads that serve other requests.

use std::{sync::LazyLock, time::Instant};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Semaphore, SemaphorePermit},
    task::block_in_place,
    time::timeout_at,
};
use weir_admission::{ApartTurn, LARGE_BYTES, long_work_turns};
use weir_contracts::output::ResultChecker;

use super::CallError;
use crate::{catalogue::CatalogueTool, codes::FailureCode, memory, serving::ServingGateway};

static TURNS: LazyLock<Semaphore> = LazyLock::new(long_work_turns);

/// The number of values that are checked at once, over all answers. Checking a value takes up to half a kilobyte of memory, and
/// an answer of 7 MB holds millions: a check of more values than this runs on its own.
const CHECKED_VALUES_MAX: usize = 1_000_000;
/// An answer with fewer values does not wait for others.
const CHECKED_VALUES_MIN: usize = 100_000;
static CHECKED_VALUES: Semaphore = Semaphore::const_new(CHECKED_VALUES_MAX);

/// The right to check an answer now.
pub(super) struct AnswerTurn {
    turn: CheckTurn,
    /// The room for its values, if there are many.
    room: Option<SemaphorePermit<'static>>,
}

impl AnswerTurn {
    /// Waits for a turn if the answer may take long to check: its bytes, and a text of it with its check.
    pub(super) async fn wait(
        gateway: &ServingGateway,
        tool: &CatalogueTool,
        answer: (usize, Option<(&ResultChecker, &str)>),
        since: Instant,
    ) -> Result<Self, CallError> {
        let room = match answer.1 {
            Some((_, text)) if text.len() >= CHECKED_VALUES_MIN => wait_for_room(text).await,
            _ => None,
        };
        let turn = CheckTurn::for_answer(gateway, tool, answer, since).await?;
        Ok(Self { turn, room })
    }

    /// Runs the check as [`CheckTurn::run`] does. The memory of many values is returned before another answer gets their room.
    pub(super) fn run<T: Send>(self, check: impl FnOnce() -> T + Send) -> T {
        let has_room = self.room.is_some();
        self.turn.run(move || {
            let done = check();
            if has_room {
                memory::give_free_blocks_back_now();
            }
            done
        })
    }
}

/// Waits until there is room for the values of a text, if there are many. It waits without a deadline, as for large answers.
async fn wait_for_room(text: &str) -> Option<SemaphorePermit<'static>> {
    // Each value and each name follows one of these.
    let begins = |byte: &&u8| matches!(**byte, b'{' | b'[' | b',' | b':');
    let values = text.as_bytes().iter().filter(begins).count();
    if values < CHECKED_VALUES_MIN {
        return None;
    }
    let room = u32::try_from(values.min(CHECKED_VALUES_MAX)).ok()?;
    CHECKED_VALUES.acquire_many(room).await.ok()
}

/// The right to check something now.
pub(super) enum CheckTurn {
    /// It takes a negligible time.
    Light,
    /// It may take long, and others wait for the turn.
    Heavy(Option<SemaphorePermit<'static>>),
    /// Its time depends on the number of bytes.
    Large(ApartTurn),
}

impl CheckTurn {
    /// Waits for a turn if the arguments may take long to check.
    pub(super) async fn for_arguments(
        gateway: &ServingGateway,
        tool: &CatalogueTool,
        arguments: Option<&str>,
        since: Instant,
    ) -> Result<Self, CallError> {
        let raw = arguments.unwrap_or_default();
        let is_heavy_for = |tool: &CatalogueTool| {
            let checks = tool.checks();
            checks
                .arguments()
                .is_some_and(|arguments| arguments.is_heavy(raw))
        };
        // The arguments of a kept version are also checked as those of the live version.
        let runs = tool.shim().map(|(_, runs)| runs);
        let is_heavy = is_heavy_for(tool) || runs.is_some_and(is_heavy_for);
        Self::wait(is_heavy, gateway, tool, since).await
    }

    /// Waits for a turn if the answer may take long to check: its bytes, and a text of it with its check.
    async fn for_answer(
        gateway: &ServingGateway,
        tool: &CatalogueTool,
        (size, checked): (usize, Option<(&ResultChecker, &str)>),
        since: Instant,
    ) -> Result<Self, CallError> {
        let is_heavy = checked.is_some_and(|(checker, text)| checker.is_heavy(text));
        // The bytes are bounded, and a server may have been given more time than the tool, so this waits without a deadline.
        if !is_heavy && size > LARGE_BYTES {
            return Ok(Self::Large(ApartTurn::wait().await));
        }
        Self::wait(is_heavy, gateway, tool, since).await
    }

    /// Waits for a turn if what follows may take long.
    pub(super) async fn wait(
        is_heavy: bool,
        gateway: &ServingGateway,
        tool: &CatalogueTool,
        since: Instant,
    ) -> Result<Self, CallError> {
        if !is_heavy {
            return Ok(Self::Light);
        }
        let deadline = since + tool.timeout(gateway.timeout());
        match timeout_at(deadline.into(), TURNS.acquire()).await {
            Ok(turn) => Ok(Self::Heavy(turn.ok())),
            Err(_) => Err(CallError::new(
                FailureCode::Timeout,
                "The call took longer than it may.",
            )),
        }
    }

    /// Runs the check; if it may take long, other requests of this thread run meanwhile.
    pub(super) fn run<T: Send>(self, check: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Light => check(),
            Self::Heavy(_turn) if others_can_run() => block_in_place(check),
            Self::Heavy(_turn) => check(),
            Self::Large(turn) => turn.run(check),
        }
    }
}

/// Returns `true` on a thread whose other requests another thread can take over.
fn others_can_run() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use futures::FutureExt as _;

    use super::*;

    /// Sixteen checks of a large answer at once took two gigabytes.
    #[test]
    fn answers_with_very_many_values_are_checked_one_after_another() {
        let of = |count: usize| format!("[{}]", vec![r#"{"a":{}}"#; count].join(","));
        let (wide, small) = (of(870_000), of(20_000));
        let room = |text: &str| wait_for_room(text).now_or_never();
        let first = room(&wide).expect("no other one is checked");
        assert!(first.is_some());
        assert!(room(&wide).is_none(), "it waits for the first");
        assert!(room(&of(30_000)).is_none(), "so does a smaller one");
        assert!(room(&small).is_some_and(|room| room.is_none()));
        drop(first);
        assert!(room(&of(30_000)).is_some_and(|room| room.is_some()));
    }

    /// With one thread for all requests, the check ends only if another request is answered meanwhile.
    #[test]
    fn other_requests_go_on_during_a_heavy_check() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let (answered, answer) = mpsc::channel();
        let (began, begin) = tokio::sync::oneshot::channel();
        let check = runtime.spawn(async move {
            let turn = CheckTurn::Heavy(TURNS.acquire().await.ok());
            turn.run(move || {
                began.send(()).expect("the other request waits");
                answer.recv_timeout(Duration::from_secs(20))
            })
        });
        let other = runtime.spawn(async move {
            begin.await.expect("the check begins");
            answered.send(()).expect("the check waits");
        });
        runtime.block_on(async move {
            check
                .await
                .expect("it ends")
                .expect("the other was answered");
            other.await.expect("it ends");
        });
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_large_is_read_in_a_thread_of_its_own() {
        let thread = || thread::current().id();
        let task = tokio::spawn(async move {
            let large = CheckTurn::Large(ApartTurn::wait().await).run(thread);
            (thread(), CheckTurn::Light.run(thread), large)
        });
        let (here, light, large) = task.await.expect("it ends");
        assert_eq!(light, here);
        assert_ne!(large, here);
    }
}
