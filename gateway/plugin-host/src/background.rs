//! Where calls go on that take long: threads that the scheduler puts behind those that answer.

use std::{future::Future, sync::OnceLock};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use crate::engine::INSTANCES_MAX;

/// How much they give way, as `nice` counts it: a tenth of a core where others want all of it.
#[cfg(target_os = "linux")]
const GIVES_WAY: i32 = 10;

/// Runs a future to its end, or until whoever waits for it goes. None: it panicked.
pub(crate) async fn run<F>(future: F) -> Option<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let gone = CancellationToken::new();
    let _waits = gone.clone().drop_guard();
    let here = Handle::current();
    // Its timers and sockets stay with the runtime that serves.
    let ran = threads().spawn_blocking(move || here.block_on(gone.run_until_cancelled_owned(future)));
    ran.await.ok().flatten()
}

/// Lets go of what takes long to let go of.
pub(crate) fn let_go(what: impl FnOnce() + Send + 'static) {
    threads().spawn_blocking(what);
}

/// One set for the whole process; a thread ends when nothing was to do for ten seconds.
fn threads() -> &'static Handle {
    static THREADS: OnceLock<Runtime> = OnceLock::new();
    let runtime = THREADS.get_or_init(|| {
        let mut threads = Builder::new_current_thread();
        threads.thread_name("weir-background").max_blocking_threads(INSTANCES_MAX).on_thread_start(give_way);
        threads.build().expect("a runtime without drivers needs nothing")
    });
    runtime.handle()
}

fn give_way() {
    // Of this thread alone, which only Linux can.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(GIVES_WAY) {
        tracing::warn!(%error, "threads for long calls have the priority of all others");
    }
}
