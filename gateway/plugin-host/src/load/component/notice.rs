//! Reports that a plugin is being compiled if that takes long: nothing else is shown in the meantime.

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
    let log = |begun: Instant| {
        tracing::info!(
            target: "weir::compiling",
            plugin = name,
            seconds = begun.elapsed().as_secs(),
            "compiling a plugin to machine code, once for each build"
        );
    };
    report_while(QUIET, log, compile)
}

/// Runs work, and calls `report` after `quiet` and every few seconds from then on, while it runs.
fn report_while<T>(
    quiet: Duration,
    report: impl Fn(Instant) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (over, wait) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (begun, mut pause) = (Instant::now(), quiet);
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                report(begun);
                pause = PAUSE;
            }
        });
        let done = work();
        drop(over);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work ends only once it was reported, and another ends before it would be.
    #[test]
    fn what_takes_long_is_reported_while_it_runs() {
        let (reports, reported) = channel();
        let report = |begun: Instant| reports.send(begun).expect("the work waits");
        report_while(Duration::from_millis(1), report, || {
            reported.recv_timeout(Duration::from_secs(20))
        })
        .expect("it is reported before it ends");
        assert_eq!(
            report_while(PAUSE * 100, |_| panic!("it is short"), || 7),
            7
        );
    }
}
