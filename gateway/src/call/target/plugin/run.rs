//! Calls a plugin's function, and reads how a call failed.

use std::sync::Arc;

use weir_plugin_host::{
    AdapterFailure, CallContext, GuestError, PluginHost, ToolAnswer, ToolInvocation, ToolRef,
    WriteFailure,
};

use crate::{
    call::{
        CallError, error::WriteOutcome, limits::CallPermit, record::CallRecord, target::ToolCall,
    },
    catalogue::PluginTool,
    codes::FailureCode,
};

/// The bound on a tool's own reason for a refusal.
const REASON_MAX: usize = 64;

/// Calls the function. A function that may change something continues when its caller leaves, like every write.
pub(in crate::call::target) async fn run(
    call: &ToolCall<'_>,
    target: &PluginTool,
    invocation: &Arc<ToolInvocation>,
    slot: CallPermit,
    record: &mut CallRecord,
) -> Result<ToolAnswer, CallError> {
    let context = call.context(record);
    let host = call.gateway.host();
    if !target.source.read_only {
        let (host, source, invocation) = (host.clone(), target.source.clone(), invocation.clone());
        return record
            .wait_for_write(write(host, slot, context, source, invocation))
            .await;
    }
    let answer = host.call_tool(&context, &target.source, invocation).await;
    drop(slot);
    record.answered();
    answer.map_err(|failure| failed(failure, false))
}

async fn write(
    host: Arc<PluginHost>,
    slot: CallPermit,
    context: CallContext,
    source: ToolRef,
    invocation: Arc<ToolInvocation>,
) -> Result<ToolAnswer, CallError> {
    let answer = host.call_tool(&context, &source, &invocation).await;
    drop(slot);
    answer.map_err(|failure| failed(failure, true))
}

/// Returns the error of a failed call. Only the host knows whether the plugin was asked to change something, and how far it got.
pub(super) fn failed(failure: WriteFailure, writes: bool) -> CallError {
    let error = match failure.failure {
        AdapterFailure::Guest(error) => refused(error),
        failure => CallError::of_tool(failure),
    };
    match error.code {
        _ if !writes => error,
        _ if failure.handed_over => error.outcome(WriteOutcome::Unknown),
        FailureCode::Timeout
        | FailureCode::Cancelled
        | FailureCode::PluginFailed
        | FailureCode::Internal => error.outcome(WriteOutcome::None),
        // The tool has refused in its own words.
        _ => error,
    }
}

/// Reads the plugin's own error. A code of Weir's has its usual meaning; any other is the tool's reason.
fn refused(error: GuestError) -> CallError {
    let reason: String = error
        .code
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c))
        .collect();
    let error = CallError::from(error);
    if error.code != FailureCode::UpstreamError
        || reason == FailureCode::UpstreamError.label()
        || reason.is_empty()
    {
        return error;
    }
    CallError {
        code: FailureCode::ToolError,
        reason: Some(reason.chars().take(REASON_MAX).collect()),
        ..error
    }
}
