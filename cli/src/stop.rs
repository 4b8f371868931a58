//! The end of a process that serves. A separate thread, which no call can block, handles signals and time limits.

use std::{
    io, process,
    sync::{Arc, Weak, mpsc},
    thread,
    time::Duration,
};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::{sleep, timeout},
};
use weir::{serving::ServingGateway, telemetry};

/// The longest time that stopping may take, in addition to the longest call and the time for load balancers.
const END_MAX: Duration = Duration::from_secs(60);
/// A terminal and the program that started us may both pass on the same Ctrl-C.
const SAME_MAX: Duration = Duration::from_secs(1);
/// The time to sync the trail of a process that is cut off, and to write its log.
const KEEP_MAX: Duration = Duration::from_secs(5);

/// The exit code of a process that is cut off: by its user, as in shells, or because its time is over.
const INTERRUPTED: i32 = 130;
const OVERDUE: i32 = 1;

/// The signals that end a process.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// Starts to listen for SIGTERM and Ctrl-C. The future waits for one of these signals, after which the gateway drains and
/// stops. The process then ends in time, whatever its other threads do.
pub(super) fn hear(gateway: &Arc<ServingGateway>) -> impl Future<Output = ()> + Send + use<> {
    // The last holder of the gateway closes its trail, which is not this thread's task.
    let gateway = Arc::downgrade(gateway);
    let (heard, stop) = oneshot::channel();
    let (ready, hearing) = mpsc::channel();
    let thread = thread::Builder::new().name("weir-stop".to_owned());
    let started = thread.spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let ended = runtime.and_then(|runtime| runtime.block_on(follow(&gateway, heard, ready)));
        if let Err(error) = ended {
            tracing::error!(%error, "SIGTERM cannot be received");
        }
    });
    match started {
        Ok(_) => {
            // An error means that no signal can be received, which the thread has logged.
            let _ = hearing.recv();
        }
        Err(error) => tracing::error!(%error, "SIGTERM cannot be received"),
    }
    async move {
        if stop.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for a signal, passes it on, and ends the process if it has not ended in its time.
async fn follow(
    gateway: &Weak<ServingGateway>,
    heard: oneshot::Sender<()>,
    ready: mpsc::Sender<()>,
) -> io::Result<()> {
    let mut signals = StopSignals::register()?;
    let _ = ready.send(());
    let signal = signals.next().await;
    tracing::info!(
        signal,
        "stopping: calls in flight run to their end; Ctrl-C ends them at once"
    );
    let _ = heard.send(());
    let time_max = gateway
        .upgrade()
        .map_or(END_MAX, |gateway| end_max(&gateway));
    let again = async {
        sleep(SAME_MAX).await;
        tokio::signal::ctrl_c().await
    };
    let code = match timeout(time_max, again).await {
        Ok(_) => {
            tracing::warn!("stopped at once: calls in flight are cut off");
            INTERRUPTED
        }
        Err(_) => {
            tracing::error!(
                time_s = time_max.as_secs(),
                "stopped, since the time to end has passed: calls in flight are cut off"
            );
            OVERDUE
        }
    };
    keep_records(gateway.upgrade());
    process::exit(code)
}

/// Returns the time from a signal to the end of the process: the time of its drain and of its longest call, plus a minute.
fn end_max(gateway: &ServingGateway) -> Duration {
    let usual = gateway.timeout();
    let snapshot = gateway.snapshot();
    let of_tools = snapshot.catalogue.tools().map(|tool| tool.timeout(usual));
    let config = gateway.config();
    let of_servers = config.upstreams.values().map(|server| server.timeout_ms);
    let longest = of_tools
        .chain(of_servers.map(Duration::from_millis))
        .fold(usual, Duration::max);
    Duration::from_secs(config.http.drain_s) + longest + END_MAX
}

/// Makes the records of the calls so far outlive the machine, and writes the last lines of the log. A disk that hangs does not keep
/// the process, nor a reader of the log.
fn keep_records(gateway: Option<Arc<ServingGateway>>) {
    let (done, kept) = mpsc::channel();
    thread::spawn(move || {
        if let Some(gateway) = gateway
            && let Err(error) = gateway.audit().sync()
        {
            tracing::error!(%error, "the last records may not outlive the machine");
        }
        telemetry::end();
        let _ = done.send(());
    });
    let _ = kept.recv_timeout(KEEP_MAX);
}

impl StopSignals {
    fn register() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of the signals, and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
