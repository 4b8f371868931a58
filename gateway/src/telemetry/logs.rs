//! Logs on stderr: one line per call, JSON or pretty.

use std::{
    io::BufWriter,
    sync::{Mutex, OnceLock, PoisonError},
};

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, Registry, fmt, prelude::*, reload};

use crate::config::{Log, LogFormat};

/// What one call's line says. No argument and no value is among it.
pub struct Call<'a> {
    pub call_id: &'a str,
    pub agent: &'a str,
    /// `None` when no such tool exists: the name is the caller's, not ours to repeat.
    pub tool: Option<&'a str>,
    pub contract: Option<&'a str>,
    pub outcome: &'a str,
    pub milliseconds: f64,
    pub trace: Option<&'a str>,
    pub detail: Option<&'a str>,
}

pub fn call(call: &Call<'_>) {
    tracing::info!(
        target: "weir::call",
        call_id = call.call_id,
        agent = call.agent,
        tool = call.tool.unwrap_or("_unknown"),
        contract = call.contract,
        outcome = call.outcome,
        ms = (call.milliseconds * 1000.0).round() / 1000.0,
        traceparent = call.trace,
        detail = call.detail,
        "call"
    );
}

/// The filter in effect, to be set anew.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// The writing thread, and what it could not write.
static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);
static LOST: OnceLock<ErrorCounter> = OnceLock::new();
/// Lines that may wait.
const LINES_MAX: usize = 8192;
/// Written at once where so much waits.
const BUFFER_BYTES: usize = 32 << 10;

/// Once per process; a second start (in tests) keeps the first.
pub fn start(log: &Log) {
    let (filter, handle) = reload::Layer::new(filter(log));
    let registry = tracing_subscriber::registry().with(filter);
    // A reader of stderr that stalls holds up no call: beyond the bound lines are lost, and counted.
    let stderr = BufWriter::with_capacity(BUFFER_BYTES, std::io::stderr());
    let (writer, guard) = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_MAX).finish(stderr);
    let lost = writer.error_counter();
    let lines = fmt::layer().with_writer(writer);
    let started = match log.format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Pretty => {
            registry.with(lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))).try_init()
        }
    };
    if started.is_ok() {
        let _ = FILTER.set(handle);
        let _ = LOST.set(lost);
        *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    }
}

/// What waits to be written is written: the last act of a process.
pub fn end() {
    drop(WRITER.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Lines that were lost because nobody took them from stderr.
pub fn lines_lost() -> usize {
    LOST.get().map_or(0, ErrorCounter::dropped_lines)
}

/// From the next line on.
pub fn set_filter(log: &Log) {
    if let Some(handle) = FILTER.get() {
        let _ = handle.reload(filter(log));
    }
}

/// The environment's, the configuration's, or the default.
fn filter(log: &Log) -> EnvFilter {
    let configured = log.filter.as_deref().unwrap_or("info,wasmtime=warn,sqlx=warn,hyper=warn");
    let filter = EnvFilter::try_from_env("WEIR_LOG").or_else(|_| EnvFilter::try_new(configured));
    filter.unwrap_or_else(|_| EnvFilter::new("info"))
}
