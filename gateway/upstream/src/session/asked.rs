//! What a caller requests of a server, and the members of its request.

use std::{future::Future, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use weir_connections::http::TraceContext;

use super::{cancelled, timed_out};
use crate::{error::UpstreamFailure, listener::UpstreamListener};

/// A request for a caller: a call of a tool, or anything else that is asked of a server.
pub struct UpstreamCall<'c> {
    pub asked: &'c UpstreamOperation,
    /// The caller's answers to what the server asked before.
    pub resumed: Option<&'c CallResumption>,
    /// Receives the server's messages before its answer.
    pub listener: Option<Arc<dyn UpstreamListener>>,
    /// Arguments that a header repeats: its name after `Mcp-Param-`, and the value.
    pub headers: &'c [(String, String)],
    pub cancel: &'c CancellationToken,
    pub timeout: Duration,
    /// The trace that the call belongs to.
    pub trace: Option<&'c TraceContext>,
}

/// The question to a server. Every text in it is JSON, except names and URIs.
#[derive(Clone, Debug)]
pub enum UpstreamOperation {
    /// A call of a tool. `arguments` is an object, as it is to be sent. `as_task`: a server of 2025-11-25 requires that
    /// it begins as a task.
    Tool {
        name: Arc<str>,
        arguments: Option<Box<RawValue>>,
        as_task: bool,
    },
    Prompt {
        name: Arc<str>,
        arguments: Option<Box<RawValue>>,
    },
    Resource {
        uri: Arc<str>,
    },
    /// `reference`, `argument`, `context`: objects, as they are to be sent.
    Completion {
        reference: Box<RawValue>,
        argument: Box<RawValue>,
        context: Option<Box<RawValue>>,
    },
}

/// The messages that are sent for a call.
pub(super) enum OutgoingOperation<'c> {
    Asked(&'c UpstreamOperation),
    /// The question for the result of a task of 2025-11-25, which comes when the task has ended. The id is a JSON string.
    TaskResult(&'c str),
}

/// The answers to what a tool asked its caller, and the state that came with the questions; JSON.
#[derive(Clone, Debug)]
pub struct CallResumption {
    pub responses: Box<RawValue>,
    pub state: Option<Box<RawValue>>,
}

impl UpstreamCall<'_> {
    /// Waits for a precondition before the request is sent, as long as the caller waits.
    pub(super) async fn prepare<T>(
        &self,
        deadline: Instant,
        ready: impl Future<Output = T>,
    ) -> Result<T, UpstreamFailure> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled().before_sending()),
            ready = timeout_at(deadline, ready) => {
                ready.map_err(|_| timed_out(self.asked.method(), self.timeout).before_sending())
            }
        }
    }
}

impl UpstreamOperation {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tool { .. } => "tools/call",
            Self::Prompt { .. } => "prompts/get",
            Self::Resource { .. } => "resources/read",
            Self::Completion { .. } => "completion/complete",
        }
    }

    /// Returns the value of the header `Mcp-Name`.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => Some(name),
            Self::Resource { uri } => Some(uri),
            Self::Completion { .. } => None,
        }
    }

    /// Returns the members of the parameters. `name` is JSON.
    fn params<'p>(&'p self, name: &'p str) -> Vec<(&'static str, &'p str)> {
        match self {
            Self::Tool { arguments, .. } | Self::Prompt { arguments, .. } => {
                let arguments = arguments
                    .iter()
                    .map(|arguments| ("arguments", arguments.get()));
                [("name", name)].into_iter().chain(arguments).collect()
            }
            Self::Resource { .. } => vec![("uri", name)],
            Self::Completion {
                reference,
                argument,
                context,
            } => {
                let context = context.iter().map(|context| ("context", context.get()));
                [("ref", reference.get()), ("argument", argument.get())]
                    .into_iter()
                    .chain(context)
                    .collect()
            }
        }
    }
}

impl OutgoingOperation<'_> {
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Asked(asked) => asked.method(),
            Self::TaskResult(_) => "tasks/result",
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Asked(asked) => asked.name(),
            Self::TaskResult(_) => None,
        }
    }

    pub(super) fn params<'p>(&'p self, name: &'p str) -> Vec<(&'static str, &'p str)> {
        match self {
            Self::Asked(asked) => asked.params(name),
            Self::TaskResult(id) => vec![("taskId", id)],
        }
    }
}
