//! Runs long calls in threads to which the scheduler prefers those that answer.

use std::{future::Future, sync::OnceLock};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use crate::engine::INSTANCES_MAX;

/// Runs a future to its end, or until its caller is gone. `None` means that it panicked or was abandoned.
pub(crate) async fn run<F>(future: F) -> Option<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let gone = CancellationToken::new();
    let _waits = gone.clone().drop_guard();
    let here = Handle::current();
    // The future's timers and sockets remain with the serving runtime.
    let ran =
        threads().spawn_blocking(move || here.block_on(gone.run_until_cancelled_owned(future)));
    ran.await.ok().flatten()
}

/// Drops a value that takes long to drop.
pub(crate) fn let_go(what: impl FnOnce() + Send + 'static) {
    threads().spawn_blocking(what);
}

/// Returns the threads, one set for the whole process. A thread ends after ten seconds without work.
fn threads() -> &'static Handle {
    static THREADS: OnceLock<Runtime> = OnceLock::new();
    let runtime = THREADS.get_or_init(|| {
        let mut threads = Builder::new_current_thread();
        threads
            .thread_name("weir-background")
            .max_blocking_threads(INSTANCES_MAX)
            .on_thread_start(give_way);
        threads
            .build()
            .expect("a runtime without drivers needs nothing")
    });
    runtime.handle()
}

fn give_way() {
    if let Err(error) = weir_admission::give_way() {
        tracing::warn!(%error, "threads for long calls have the priority of all others");
    }
}
