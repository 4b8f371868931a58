//! The targets of a tool call: a collection, a plugin or another MCP server. Each has a folder here: `bind` makes its request
//! from checked arguments, `run` sends it, and `shape` checks its answer. The prepared parts of a target are in
//! `catalogue/target/`.

pub(super) mod collection;
pub(super) mod item;
pub(super) mod plugin;
pub(super) mod upstream;

use std::{sync::Arc, time::Instant};

use serde_json::{Map, Value};
use weir_contracts::output::ResultChecker;
use weir_plugin_host::{CallContext, ToolAnswer, ToolInvocation};

use self::{
    collection::{CollectionAnswer, CollectionRequest},
    upstream::{UpstreamAnswer, UpstreamRequest},
};
use super::{
    CallError, CallOutcome, CallRequest, asking::CallerInteraction, error::WriteOutcome,
    heavy::AnswerTurn, limits::CallPermit, record::CallRecord,
};
use crate::{
    catalogue::{CatalogueTool, CollectionTool, PluginTool, ToolTarget, UpstreamTool},
    codes::FailureCode,
    cursor::CursorCipher,
    identity::CallerIdentity,
    memory,
    serving::ServingGateway,
};

/// A call of a tool that its caller may see.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub gateway: &'a ServingGateway,
    pub caller: &'a CallerIdentity,
    pub tool: &'a CatalogueTool,
    pub request: &'a CallRequest<'a>,
}

/// The request to the target of a call.
pub(super) enum TargetRequest<'t> {
    Collection(&'t CollectionTool, CollectionRequest),
    Plugin(&'t PluginTool, Arc<ToolInvocation>),
    Upstream(&'t UpstreamTool, Arc<UpstreamRequest>),
}

/// The answer of a target. It is not checked yet.
pub(super) enum TargetAnswer<'r> {
    Collection(&'r CollectionTool, CollectionAnswer<'r>),
    Plugin(&'r PluginTool, &'r ToolInvocation, ToolAnswer),
    Upstream(&'r UpstreamTool, &'r UpstreamRequest, UpstreamAnswer),
}

impl<'t> TargetRequest<'t> {
    /// Makes the request from arguments that meet the tool's schema.
    pub(super) fn bind(
        cursors: &CursorCipher,
        caller: &CallerIdentity,
        tool: &'t CatalogueTool,
        arguments: Map<String, Value>,
        asking: CallerInteraction<'_>,
    ) -> Result<Self, CallError> {
        Ok(match &tool.target {
            ToolTarget::Collection(target) => Self::Collection(
                target,
                collection::bind(cursors, caller, tool, target, arguments)?,
            ),
            ToolTarget::Plugin(target) => Self::Plugin(
                target,
                plugin::bind(cursors, caller, tool, target, arguments, asking)?.into(),
            ),
            ToolTarget::Upstream(target) => Self::Upstream(
                target,
                upstream::bind(cursors, caller, tool, target, arguments, asking.resumed)?.into(),
            ),
        })
    }

    /// Returns `true` if the target may be changed.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Collection(_, request) => request.writes(),
            Self::Plugin(target, _) => !target.source.read_only,
            Self::Upstream(target, _) => target.writes,
        }
    }

    /// Asks the target, under the deadline of the call. A write handed to a target is never dropped: it runs in its own task.
    pub(super) async fn run<'r>(
        &'r self,
        call: &ToolCall<'_>,
        slot: CallPermit,
        record: &mut CallRecord,
    ) -> Result<TargetAnswer<'r>, CallError> {
        Ok(match self {
            Self::Collection(target, request) => TargetAnswer::Collection(
                target,
                collection::run(call, target, request, slot, record).await?,
            ),
            Self::Plugin(target, invocation) => TargetAnswer::Plugin(
                target,
                invocation,
                plugin::run(call, target, invocation, slot, record).await?,
            ),
            // The future is boxed: otherwise a request over the network would make the future of every call large.
            Self::Upstream(target, request) => TargetAnswer::Upstream(
                target,
                request,
                Box::pin(upstream::run(call, request, slot, record)).await?,
            ),
        })
    }
}

impl TargetAnswer<'_> {
    /// Checks the answer, and makes the outcome of the call from it.
    pub(super) async fn shape(
        self,
        call: &ToolCall<'_>,
        writes: bool,
        asked_at: Instant,
    ) -> Result<CallOutcome, CallError> {
        let size = self.size();
        let answer = (size, self.to_check());
        let turn = AnswerTurn::wait(call.gateway, call.tool, answer, asked_at).await;
        // A write cannot be undone, so the agent must know about it.
        let turn = turn.map_err(|error| match writes {
            true => error.outcome(WriteOutcome::Unknown),
            false => error,
        })?;
        let outcome = turn.run(|| match self {
            Self::Collection(target, answer) => {
                collection::shape(call.gateway.cursors(), target, answer).map(CallOutcome::Complete)
            }
            Self::Plugin(target, invocation, answer) => {
                plugin::shape(call, target, invocation, answer)
            }
            Self::Upstream(target, request, answer) => {
                upstream::shape(call, target, request, &answer)
            }
        });
        // A refused answer is not counted as memory that waits for a client.
        if size >= memory::MUCH_BYTES {
            memory::give_free_blocks_back();
        }
        outcome
    }

    /// Returns the bytes of the answer.
    fn size(&self) -> usize {
        match self {
            Self::Collection(_, answer) => answer.size(),
            Self::Plugin(_, _, answer) => answer.size(),
            Self::Upstream(_, _, answer) => answer.result.get().len(),
        }
    }

    /// Returns the part of the answer that is checked against a schema, and its checker.
    fn to_check(&self) -> Option<(&ResultChecker, &str)> {
        match self {
            Self::Collection(..) => None,
            Self::Plugin(target, _, ToolAnswer::Complete { value, .. }) => {
                Some((target.output()?, value.as_deref().unwrap_or_default()))
            }
            Self::Plugin(_, _, ToolAnswer::InputRequired { .. }) => None,
            Self::Upstream(target, _, answer) => Some((target.output()?, answer.result.get())),
        }
    }
}

impl ToolCall<'_> {
    /// Returns the context of the call for the plugin host.
    pub(super) fn context(&self, record: &CallRecord) -> CallContext {
        CallContext {
            tenant: self.caller.tenant.clone(),
            call_id: record.call_id().clone(),
            deadline: record.asked_at() + self.tool.timeout(self.gateway.timeout()),
            cancel: self.request.cancel.clone(),
            events: self.request.events.clone(),
            trace: record.carried().cloned(),
            ran_on: record.ran_on().clone(),
        }
    }

    /// Explains an answer that may not be passed on, since the source may have changed.
    pub(super) async fn explain(&self, error: CallError) -> CallError {
        if !matches!(
            error.code,
            FailureCode::OutputMismatch | FailureCode::SourceChanged
        ) {
            return error;
        }
        match &self.tool.target {
            ToolTarget::Collection(target) => collection::explain(self, target, error).await,
            ToolTarget::Plugin(_) => error,
            ToolTarget::Upstream(target) => upstream::explain(self, target, error),
        }
    }
}
