//! Says that a plugin is compiled, where that takes long: nothing else is seen meanwhile.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// Compilations up to this time are not logged.
const QUIET: Duration = Duration::from_secs(1);
/// The pause between two lines.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs a compilation, and logs it every few seconds while it runs.
pub(super) fn compile<T>(name: &str, compile: impl FnOnce() -> T) -> T {
    let (over, wait) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (begun, mut pause) = (Instant::now(), QUIET);
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                tracing::info!(
                    target: "weir::compiling",
                    plugin = name,
                    seconds = begun.elapsed().as_secs(),
                    "compiling a plugin to machine code, once for each build"
                );
                pause = PAUSE;
            }
        });
        let compiled = compile();
        drop(over);
        compiled
    })
}
