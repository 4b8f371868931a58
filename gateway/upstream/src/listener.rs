//! Defines the messages and questions that a caller gets before the answer.

use std::{future::Future, pin::Pin};

use serde_json::value::RawValue;

use crate::message::UpstreamProgress;

/// Receives a server's messages while it answers one call. It must not block.
pub trait UpstreamListener: Send + Sync {
    /// Whether progress is asked for.
    fn wants_progress(&self) -> bool;

    fn progress(&self, progress: UpstreamProgress);

    /// Returns the least grave log messages that are asked for, as MCP names them.
    fn log_level(&self) -> Option<&'static str>;

    /// Takes a log message; `data` is any JSON.
    fn log(&self, level: &str, logger: &str, data: &RawValue);

    /// Answers a question of the server with the result of its request. `None` declines.
    fn ask(&self, question: UpstreamQuestion) -> Answering;
}

/// A request of the server to its client.
#[derive(Debug)]
pub struct UpstreamQuestion {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

/// The answer of a caller to a question of the server, once it is available.
pub type Answering = Pin<Box<dyn Future<Output = Option<Box<RawValue>>> + Send>>;
