//! The call into the adapter. A write handed to a source is never dropped: it runs in its own task.

use std::{sync::Arc, time::Instant};

use weir_plugin_host::{
    CallContext, Change, CollectionRef, Host, Invocation, Page, ToolAnswer, ToolRef, WriteFailure,
};

use super::{
    CallError, CallRequest,
    arguments::{Ask, Input},
    code,
    error::WriteOutcome,
    foreign,
    limits::Slot,
    record::CallRecord,
};
use crate::{
    catalogue::{BoundCollection, CatalogueTool, CodeTool, ForeignTool},
    gateway::Gateway,
    identity::Caller,
};

/// The target's answer, which is not checked yet.
pub(super) enum Answer<'t> {
    Page(&'t BoundCollection, Page),
    Record(&'t BoundCollection, String),
    Tool(&'t CodeTool, ToolAnswer),
    Foreign(&'t ForeignTool, foreign::Answered),
}

pub(super) async fn run<'t>(
    gateway: &Gateway,
    slot: Slot,
    caller: &Caller,
    tool: &CatalogueTool,
    input: &Input<'t>,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<Answer<'t>, CallError> {
    let timeout = tool
        .tool
        .limits
        .timeout_ms
        .map_or(gateway.timeout(), std::time::Duration::from_millis);
    let asked = record.asked().unwrap_or_else(Instant::now);
    let context = CallContext {
        tenant: caller.tenant.clone(),
        call_id: record.call_id().clone(),
        deadline: asked + timeout,
        cancel: request.cancel.clone(),
        events: request.events.clone(),
        ran_on: record.ran_on().clone(),
    };
    match &input.ask {
        Ask::Read(bound, query) => {
            let page = gateway.host().read(&context, &bound.source, query).await;
            drop(slot);
            record.answered();
            Ok(Answer::Page(bound, page.map_err(CallError::from)?))
        }
        Ask::Write(bound, change) => {
            let task = write(
                gateway.host().clone(),
                slot,
                context,
                bound.source.clone(),
                change.clone(),
            );
            Ok(Answer::Record(bound, record.wait_for_write(task).await?))
        }
        Ask::Code(code, invocation) if code.source.read_only => {
            let answer = gateway
                .host()
                .call_tool(&context, &code.source, invocation)
                .await;
            drop(slot);
            record.answered();
            Ok(Answer::Tool(
                code,
                answer.map_err(|failure| code::failed(failure, false))?,
            ))
        }
        Ask::Code(code, invocation) => {
            let task = call(
                gateway.host().clone(),
                slot,
                context,
                code.source.clone(),
                invocation.clone(),
            );
            Ok(Answer::Tool(code, record.wait_for_write(task).await?))
        }
        Ask::Foreign(foreign, sent) => {
            let (timeout_ms, writes) = (tool.tool.limits.timeout_ms, foreign.writes);
            let upstream = &foreign.upstream;
            let from = foreign::Origin {
                gateway,
                caller,
                upstream,
                timeout_ms,
                writes,
                request,
                asked,
            };
            // The future is boxed: what a request over the network takes would make the future of every call large.
            let answer = Box::pin(foreign::answer(&from, slot, sent, record)).await?;
            Ok(Answer::Foreign(foreign, answer))
        }
    }
}

async fn write(
    host: Arc<Host>,
    slot: Slot,
    context: CallContext,
    collection: CollectionRef,
    change: Arc<Change>,
) -> Result<String, CallError> {
    let written = host.write(&context, &collection, &change).await;
    drop(slot);
    written.map_err(write_failed)
}

/// Returns the error of a failed write. An adapter may write more than once: what it says of its last write tells nothing
/// of those that a source has taken before.
fn write_failed(failure: WriteFailure) -> CallError {
    let error = CallError::from(failure.failure);
    match error.code {
        _ if failure.handed_over => error.outcome(WriteOutcome::Unknown),
        // A source that answered "no" has said so: nothing was written.
        code if code.nothing_changed() => error,
        _ => error.outcome(WriteOutcome::None),
    }
}

async fn call(
    host: Arc<Host>,
    slot: Slot,
    context: CallContext,
    tool: ToolRef,
    invocation: Arc<Invocation>,
) -> Result<ToolAnswer, CallError> {
    let answer = host.call_tool(&context, &tool, &invocation).await;
    drop(slot);
    answer.map_err(|failure| code::failed(failure, true))
}

#[cfg(test)]
mod tests {
    use weir_plugin_host::{AdapterFailure, GuestError};

    use super::*;

    #[test]
    fn a_write_that_a_source_has_taken_is_told_whatever_the_adapter_says() {
        for (code, handed_over, outcome) in [
            ("conflict", true, Some(WriteOutcome::Unknown)),
            ("conflict", false, None),
            ("unavailable", true, Some(WriteOutcome::Unknown)),
            ("unavailable", false, Some(WriteOutcome::None)),
        ] {
            let error = GuestError {
                code: code.to_owned(),
                message: "No.".to_owned(),
                field: None,
                retry_after_ms: Some(7),
                details: None,
            };
            let error = write_failed(WriteFailure {
                failure: AdapterFailure::Guest(error),
                handed_over,
            });
            assert_eq!(error.outcome, outcome, "{code} {handed_over}");
            assert_eq!(
                error.retry_after_ms.is_none(),
                handed_over,
                "{code}: an agent looks before it repeats"
            );
        }
    }
}
