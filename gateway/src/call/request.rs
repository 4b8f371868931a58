//! Defines the request of a call, and its outcome.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use weir_connections::http::TraceContext;
use weir_plugin_host::CallEvents;

use super::{
    CallerInteraction, CallerResponses, CatalogueEndpoint, InputRequired, MissingCapability,
    ParamHeaders, ToolResult,
};
use crate::{limits::RateCharge, snapshot::CatalogueSnapshot};

/// The extension for calls that outlive their request.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// One call, in the form common to all transports and eras.
#[derive(Clone)]
pub struct CallRequest<'a> {
    /// The generation that the request reads, from its first look to the last byte of its answer.
    pub snapshot: &'a CatalogueSnapshot,
    pub endpoint: &'a CatalogueEndpoint,
    pub tool: &'a str,
    /// The raw text of `arguments`; absent is `{}`.
    pub arguments: Option<&'a str>,
    /// The receiver of messages before the answer. `None`: the caller requests none.
    pub events: Option<Arc<dyn CallEvents>>,
    /// Set when the caller has gone or asked to stop.
    pub cancel: &'a CancellationToken,
    /// The headers that repeat arguments. `None`: the transport has no headers.
    pub param_headers: Option<&'a ParamHeaders>,
    /// W3C `traceparent` of the caller, well-formed.
    pub trace: Option<&'a str>,
    /// The W3C `tracestate` that goes with it, bounded and unchanged.
    pub trace_state: Option<&'a str>,
    /// The trace of the HTTP request, if the message names a different one.
    pub trace_link: Option<&'a str>,
    /// `http`, `stdio`, `rest`, `admin` or `cli`, for the audit trail.
    pub transport: &'static str,
    /// The protocol version spoken, for the audit trail.
    pub protocol: &'static str,
    /// The session of the caller's client, if it has one.
    pub session: Option<u128>,
    /// The charge to the rate of its agent.
    pub charge: RateCharge,
    /// The questions that the caller can be asked while the call is under way, and its answers.
    pub asking: CallerInteraction<'a>,
    /// Whether a write is only previewed, to find out its effect.
    pub is_preview: bool,
    /// The key by which a repeated write is recognised.
    pub idempotency_key: Option<&'a str>,
}

impl<'a> CallRequest<'a> {
    /// Returns the caller's trace, unchanged.
    pub(super) fn trace_context(&self) -> Option<TraceContext> {
        Some(TraceContext {
            parent: self.trace?.into(),
            state: self.trace_state.map(Arc::from),
        })
    }

    /// Returns the call of a tool without arguments, by a caller that can neither be asked nor gets messages before the
    /// answer.
    pub fn new(
        snapshot: &'a CatalogueSnapshot,
        endpoint: &'a CatalogueEndpoint,
        tool: &'a str,
        transport: &'static str,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            snapshot,
            endpoint,
            tool,
            arguments: None,
            events: None,
            cancel,
            param_headers: None,
            trace: None,
            trace_state: None,
            trace_link: None,
            transport,
            protocol: "none",
            session: None,
            charge: RateCharge::Due,
            asking: CallerInteraction::default(),
            is_preview: false,
            idempotency_key: None,
        }
    }

    /// Returns the same call with the answers of its caller, JSON, to the question of that state.
    pub fn resumed<'r>(&'r self, responses: &'r str, state: Option<&'r str>) -> CallRequest<'r> {
        let resumed = Some(CallerResponses {
            responses: Some(responses),
            state,
        });
        CallRequest {
            asking: CallerInteraction {
                resumed,
                ..self.asking
            },
            charge: RateCharge::Due,
            ..self.clone()
        }
    }
}

/// The outcome of a call.
pub enum CallOutcome {
    /// Unknown or hidden: the caller cannot distinguish the two. A protocol error (−32602), not a result. The text is the call's
    /// id.
    UnknownTool(Arc<str>),
    /// The caller's answer belongs to no question of this call, or comes too late (−32602).
    BadState,
    /// A header contradicts an argument (−32020); the text names it.
    HeaderMismatch(String),
    /// The tool asks a question that the client cannot answer (−32021): a JSON object of the required capabilities.
    MissingCapability(MissingCapability),
    Complete(ToolResult),
    /// The tool asks its caller a question first (2026-07-28).
    InputRequired(InputRequired),
}

/// Why a caller that cannot be asked has no result.
pub enum IncompleteCall {
    /// The tool asks its caller a question first.
    Asks,
    /// There is no such tool for the caller.
    NotThere,
}

impl CallOutcome {
    /// Returns the result for a caller that cannot be asked.
    pub fn unasked(self) -> Result<ToolResult, IncompleteCall> {
        match self {
            Self::Complete(result) => Ok(result),
            Self::InputRequired(_) | Self::MissingCapability(_) => Err(IncompleteCall::Asks),
            Self::UnknownTool(_) | Self::BadState | Self::HeaderMismatch(_) => {
                Err(IncompleteCall::NotThere)
            }
        }
    }
}

/// Returns whether a caller declares that it can follow a call that has become a task. `capabilities`: JSON.
pub fn knows_tasks(capabilities: Option<&str>) -> bool {
    let stated = capabilities.filter(|stated| stated.contains(TASKS));
    let stated = stated.and_then(|stated| serde_json::from_str::<Value>(stated).ok());
    stated.is_some_and(|stated| stated["extensions"][TASKS].is_object())
}
