//! Logs on stderr: one line per call, JSON or pretty.

use tracing_subscriber::{EnvFilter, fmt, prelude::*};

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

/// Once per process; a second start (in tests) keeps the first.
pub fn start(log: &Log) {
    let filter = log.filter.as_deref().unwrap_or("info,wasmtime=warn,sqlx=warn,hyper=warn");
    let filter = EnvFilter::try_from_env("WEIR_LOG").or_else(|_| EnvFilter::try_new(filter));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Pretty => {
            registry.with(lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))).try_init()
        }
    };
    drop(started);
}
