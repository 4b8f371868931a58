//! The call path: one tool call, top to bottom. Knows no HTTP, no JSON-RPC and no WebAssembly.

mod arguments;
mod asking;
mod blocks;
mod code;
mod complete;
mod dispatch;
pub mod error;
mod foreign;
mod headers;
mod item;
mod limits;
mod lookup;
mod outliving;
mod output;
mod own_item;
mod parked;
mod record;
mod records;
mod result;
mod search;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use weir_plugin_host::CallEvents;

pub use self::asking::{Asking, Lacking, Resumed, TASKS, knows_tasks};
pub use self::complete::complete;
pub use self::error::{CallError, ErrorForm, MissingCapability};
pub(crate) use self::foreign::theirs;
pub use self::headers::{ParamHeaders, decoded};
pub use self::item::{ItemOutcome, ask_item, has_resource};
pub use self::parked::abandon_questions;
use self::record::CallRecord;
pub use self::record::Proof;
pub use self::result::{Content, InputRequired, RECEIPT, ToolResult};
pub use self::search::{Searched, searched, unknown};
pub use crate::catalogue::Endpoint;
use crate::{catalogue::CatalogueTool, gateway::Gateway, identity::Caller, snapshot::Snapshot};

/// One call as any transport and any era asks for it.
#[derive(Clone)]
pub struct CallRequest<'a> {
    /// The generation that the request reads, from its first look to the last byte of its answer.
    pub snapshot: &'a Snapshot,
    pub endpoint: &'a Endpoint,
    pub tool: &'a str,
    /// The raw text of `arguments`; absent is `{}`.
    pub arguments: Option<&'a str>,
    /// Where the call says what its caller wants to hear before the answer. `None`: it wants to hear nothing.
    pub events: Option<Arc<dyn CallEvents>>,
    /// Set when the caller has gone or asked to stop.
    pub cancel: &'a CancellationToken,
    /// The headers that repeat arguments. `None`: the transport has no headers.
    pub param_headers: Option<&'a ParamHeaders>,
    /// W3C `traceparent` of the caller, for the log.
    pub trace: Option<&'a str>,
    /// `http`, `stdio` or `cli`, for the audit trail.
    pub transport: &'static str,
    /// The protocol version spoken, for the audit trail.
    pub protocol: &'static str,
    /// A shorter deadline than the tool's own.
    pub timeout: Option<Duration>,
    /// The session of the caller's client, where it has one.
    pub session: Option<u128>,
    /// The questions that the caller can be asked while the call is under way, and its answers.
    pub asking: Asking<'a>,
}

impl CallRequest<'_> {
    /// Returns the same call with the answers of its caller, JSON, to the question of that state.
    pub fn resumed<'r>(&'r self, responses: &'r str, state: Option<&'r str>) -> CallRequest<'r> {
        let resumed = Some(Resumed { responses: Some(responses), state });
        CallRequest { asking: Asking { resumed, ..self.asking }, ..self.clone() }
    }
}

/// The outcome of a call.
pub enum CallOutcome {
    /// Unknown or hidden: the caller cannot tell. A protocol error (−32602), not a result. The text is the call's id.
    UnknownTool(Arc<str>),
    /// The caller's answer belongs to no question of this call, or comes too late (−32602).
    BadState,
    /// A header does not say what an argument says (−32020); the text says which.
    HeaderMismatch(String),
    /// The tool asks what the client cannot answer (−32021): a JSON object of the capabilities that it needs.
    MissingCapability(MissingCapability),
    Complete(ToolResult),
    /// The tool asks its caller something before it goes on (2026-07-28).
    InputRequired(InputRequired),
}

pub async fn call_tool(gateway: &Gateway, caller: &Caller, request: &CallRequest<'_>) -> CallOutcome {
    let mut record = CallRecord::open(gateway, caller, request); // dropped unclosed = "cancelled", recorded all the same
    let stages = AssertUnwindSafe(stages(gateway, caller, request, &mut record)).catch_unwind().await;
    let outcome = stages.unwrap_or_else(|panic| Err(record.panicked(&*panic))); // this call failed, and no other
    record.close(outcome).await
}

/// Checks whether these arguments would reach the adapter of this tool: nothing is asked and nothing recorded.
pub fn check(gateway: &Gateway, caller: &Caller, tool: &CatalogueTool, arguments: &str) -> ToolResult {
    match arguments::bind(gateway.cursors(), caller, tool, Some(arguments), Asking::default(), false) {
        Ok(_) => ToolResult::new("The arguments are valid.".to_owned(), r#"{"valid":true}"#.to_owned(), false),
        Err(error) => error.into_result("none"),
    }
}

async fn stages(
    gateway: &Gateway,
    caller: &Caller,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<CallOutcome, CallError> {
    limits::admit(gateway.buckets(), caller, record.opened())?;
    let tool = lookup::visible(caller, request, record)?; // hidden and unknown cannot differ
    headers::check(tool, request)?;
    lookup::may_run(tool, request)?;
    let slot = limits::acquire(gateway.in_flight(), gateway.buckets(), caller, tool, record.opened())?;
    let keep_profile = gateway.config().contracts.impact_days > 0;
    let input = arguments::bind(gateway.cursors(), caller, tool, request.arguments, request.asking, keep_profile)?;
    if let Some(profile) = &input.profile {
        gateway.call_history().note(tool, &caller.agent, profile);
    }
    record.intent(&input)?; // a write is recorded before it runs
    let answer = dispatch::run(gateway, slot, caller, tool, &input, request, record).await;
    match answer.and_then(|answer| output::shape(gateway.cursors(), caller, tool, &input, request, answer)) {
        Err(error) => Err(Box::pin(output::explain(gateway, tool, error)).await), // the source may have changed
        shaped => shaped,
    }
}
