//! Logs on stderr: one line per call, JSON or pretty.

mod lines;

use std::{
    cell::RefCell,
    fmt::Display,
    io::{IsTerminal as _, Write as _},
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use tracing::Level;
use tracing_subscriber::{EnvFilter, Registry, fmt, prelude::*, reload};
use weir_connections::mask::mask;
use weir_contracts::name;

use self::lines::{LogMakeWriter, LogQueue, LogWriter};
use crate::config::{LogConfig, LogFormat};

/// The variable whose filter takes precedence over that of the configuration.
const FILTER_VARIABLE: &str = "WEIR_LOG";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The parts of one call's line, without any argument or value.
pub struct LoggedCall<'a> {
    pub call_id: &'a str,
    pub agent: &'a str,
    /// `None` if no such tool exists: the name is the caller's text, and is not repeated.
    pub tool: Option<&'a str>,
    pub contract: Option<&'a str>,
    /// The word that the audit trail uses.
    pub outcome: &'static str,
    /// The code of the error.
    pub code: Option<&'a str>,
    /// The fields that were refused and why, or the limit that was reached, as in the audit trail.
    pub reason: Option<&'a str>,
    pub milliseconds: f64,
    pub trace: Option<&'a str>,
    pub detail: Option<&'a str>,
}

/// Logs a call. The line is written here unless stderr is a terminal: through `tracing` it costs several times as much.
pub fn call(call: &LoggedCall<'_>) {
    let detail = call.detail.map(mask);
    let call = &LoggedCall {
        detail: detail.as_deref(),
        ..*call
    };
    let Some((lines, format)) = CALLS.get() else {
        return traced(call);
    };
    if !tracing::enabled!(target: "weir::call", Level::INFO) {
        return;
    }
    thread_local!(static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    LINE.with_borrow_mut(|line| {
        line.clear();
        match format {
            LogFormat::Json => call.json(line),
            LogFormat::Pretty => call.pretty(line),
        }
        line.push(b'\n');
        lines.put(line);
    });
}

/// Logs the first failure of a repeated write, and the end of failures: a disk that is full for an hour is one line.
pub fn note_written(is_failing: &mut bool, written: &Result<(), impl Display>, what: &str) {
    match (written, *is_failing) {
        (Err(error), false) => tracing::error!(%error, "{what} cannot be written to the state"),
        (Ok(()), true) => tracing::info!("{what} can be written to the state again"),
        _ => {}
    }
    *is_failing = written.is_err();
}

fn traced(call: &LoggedCall<'_>) {
    tracing::info!(
        target: "weir::call",
        call_id = call.call_id,
        agent = call.agent,
        tool = call.tool(),
        contract = call.contract,
        outcome = call.outcome,
        code = call.code,
        reason = call.reason,
        ms = call.milliseconds,
        traceparent = call.trace,
        detail = call.detail,
        "call"
    );
}

impl LoggedCall<'_> {
    fn tool(&self) -> &str {
        self.tool.unwrap_or("_unknown")
    }

    fn json(&self, line: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct CallLogLine<'a> {
            #[serde(serialize_with = "microseconds")]
            timestamp: Timestamp,
            level: &'static str,
            message: &'static str,
            call_id: &'a str,
            agent: &'a str,
            tool: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            contract: Option<&'a str>,
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            ms: f64,
            #[serde(skip_serializing_if = "Option::is_none")]
            traceparent: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<&'a str>,
            target: &'static str,
        }
        let written = CallLogLine {
            timestamp: Timestamp::now(),
            level: "INFO",
            message: "call",
            call_id: self.call_id,
            agent: self.agent,
            tool: self.tool(),
            contract: self.contract,
            outcome: self.outcome,
            code: self.code,
            reason: self.reason,
            ms: self.milliseconds,
            traceparent: self.trace,
            detail: self.detail,
            target: "weir::call",
        };
        serde_json::to_writer(line, &written).expect("memory can be written");
    }

    fn pretty(&self, line: &mut Vec<u8>) {
        write!(line, "{:.6}  INFO weir::call: call", Timestamp::now())
            .expect("memory can be written");
        field(line, "call_id", self.call_id);
        field(line, "agent", self.agent);
        field(line, "tool", self.tool());
        self.contract
            .inspect(|contract| field(line, "contract", contract));
        field(line, "outcome", self.outcome);
        self.code.inspect(|code| field(line, "code", code));
        self.reason.inspect(|reason| field(line, "reason", reason));
        write!(line, " ms={}", self.milliseconds).expect("memory can be written");
        self.trace
            .inspect(|trace| field(line, "traceparent", trace));
        self.detail.inspect(|detail| field(line, "detail", detail));
    }
}

/// Writes a field like `{:?}`; a value that needs no escapes is copied.
fn field(line: &mut Vec<u8>, name: &str, value: &str) {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    line.push(b' ');
    line.extend_from_slice(name.as_bytes());
    match value.as_bytes().iter().all(plain) {
        true => [b"=\"", value.as_bytes(), b"\""]
            .iter()
            .for_each(|part| line.extend_from_slice(part)),
        false => write!(line, "={value:?}").expect("memory can be written"),
    }
}

fn microseconds<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{time:.6}"))
}

/// The handle for replacing the filter in effect.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// The queue to which calls write their lines directly, and the format of these lines.
static CALLS: OnceLock<(Arc<LogQueue>, LogFormat)> = OnceLock::new();
static LINES: OnceLock<Arc<LogQueue>> = OnceLock::new();
static WRITER: Mutex<Option<LogWriter>> = Mutex::new(None);

/// Starts logging, once per process; a second start (in tests) keeps the first.
pub fn start(log: &LogConfig) -> std::io::Result<()> {
    let (filter, handle) = reload::Layer::new(filter(log));
    let registry = tracing_subscriber::registry().with(filter);
    let terminal = std::io::stderr().is_terminal();
    let (lines, writer) = LogQueue::start(std::io::stderr())?;
    let layer = fmt::layer().with_writer(LogMakeWriter(lines.clone()));
    let started = match log.format {
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        LogFormat::Pretty => registry.with(layer.with_ansi(terminal)).try_init(),
    };
    if started.is_ok() {
        let _ = FILTER.set(handle);
        let _ = LINES.set(lines.clone());
        if !terminal {
            let _ = CALLS.set((lines, log.format));
        }
        *WRITER.lock() = Some(writer);
    }
    Ok(())
}

/// Writes all pending lines, as the last act of a process.
pub(super) fn end() {
    let writer = WRITER.lock().take();
    if let Some(writer) = writer {
        writer.end();
    }
}

/// Returns how many lines were lost because stderr was not read.
pub fn lines_lost() -> usize {
    LINES.get().map_or(0, |lines| lines.lost())
}

/// Sets the filter from the next line on.
pub fn set_filter(log: &LogConfig) {
    if let Some(handle) = FILTER.get() {
        let _ = handle.reload(filter(log));
    }
}

/// Returns `true` for a filter that can be read. A single word that is nearly a level is a misspelt one: as the name of a part,
/// it would turn off all others.
pub fn is_filter(text: &str) -> bool {
    let is_misspelt = |word: &str| {
        !LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
            && name::nearest(word, LEVELS).is_some()
    };
    let mut words = text.split(',').map(str::trim);
    EnvFilter::try_new(text).is_ok()
        && !words.any(|word| !word.contains(['=', ':', '[']) && is_misspelt(word))
}

/// Refuses an unreadable filter from the environment.
pub fn check_variable() -> anyhow::Result<()> {
    let set = std::env::var_os(FILTER_VARIABLE);
    anyhow::ensure!(
        set.is_none_or(|text| text.to_str().is_some_and(is_filter)),
        "the variable {FILTER_VARIABLE} must be a filter of log lines: write a level as info, or with levels of parts as \
         info,weir=debug"
    );
    Ok(())
}

/// Returns the environment's filter unless it is empty, the configuration's, or the default.
fn filter(log: &LogConfig) -> EnvFilter {
    let set = std::env::var(FILTER_VARIABLE).ok();
    let set = set.filter(|text| !text.is_empty());
    let configured = log
        .filter
        .as_deref()
        .unwrap_or("info,wasmtime=warn,sqlx=warn,hyper=warn");
    let filter = EnvFilter::try_new(set.as_deref().unwrap_or(configured));
    filter.unwrap_or_else(|_| EnvFilter::new("info"))
}
