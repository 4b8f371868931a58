//! Checks that may take long: few at once, and not on the threads that other requests wait for.

use std::{num::NonZero, sync::LazyLock, thread, time::Instant};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout_at,
};
use weir_admission::run_apart;
use weir_contracts::output::ResultChecker;

use super::CallError;
use crate::{catalogue::CatalogueTool, codes::FailureCode, serving::ServingGateway};

/// The bytes of an answer above which it takes long to read and to write, whatever is checked: a megabyte takes milliseconds.
pub(super) const LARGE_BYTES: usize = 256 << 10;

/// Half of the processors, so that there are always some for the other calls.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Semaphore::new((processors / 2).max(1))
});

/// The right to check something now.
pub(super) enum CheckTurn {
    Here,
    /// In a thread of its own, since it may take long.
    Apart(Option<SemaphorePermit<'static>>),
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
        // Those of a kept version are checked as the live version's too.
        let runs = tool.shim().map(|(_, runs)| runs);
        let is_heavy = is_heavy_for(tool) || runs.is_some_and(is_heavy_for);
        Self::wait(is_heavy, gateway, tool, since).await
    }

    /// Waits for a turn if the answer may take long to check: its bytes, and a text of it with its check.
    pub(super) async fn for_answer(
        gateway: &ServingGateway,
        tool: &CatalogueTool,
        (size, checked): (usize, Option<(&ResultChecker, &str)>),
        since: Instant,
    ) -> Result<Self, CallError> {
        let is_heavy = checked.is_some_and(|(checker, text)| checker.is_heavy(text));
        // Its cost is that of its bytes, which are bounded. A server may have had more time than the tool: no turn would come.
        if !is_heavy && size > LARGE_BYTES {
            return Ok(Self::Apart(None));
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
            return Ok(Self::Here);
        }
        let deadline = since + tool.timeout(gateway.timeout());
        match timeout_at(deadline.into(), TURNS.acquire()).await {
            Ok(turn) => Ok(Self::Apart(turn.ok())),
            Err(_) => Err(CallError::new(
                FailureCode::Timeout,
                "The call took longer than it may.",
            )),
        }
    }

    /// Runs the check; if it may take long, other requests of this thread run meanwhile, and before it.
    pub(super) fn run<T: Send>(self, check: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Here => check(),
            Self::Apart(_turn) => run_apart(check),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_may_take_long_runs_in_a_thread_of_its_own() {
        let thread = || thread::current().id();
        let task = tokio::spawn(async move {
            let turn = TURNS.acquire().await.ok();
            let light = CheckTurn::Here.run(thread);
            let heavy = CheckTurn::Apart(turn).run(thread);
            (thread(), light, heavy)
        });
        let (here, light, heavy) = task.await.expect("it ends");
        assert_eq!(light, here);
        assert_ne!(heavy, here);
    }
}
