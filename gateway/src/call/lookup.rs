//! Finds the tool, if this caller may see it.

use std::sync::Arc;

use super::{
    CallError, CallRequest, CapabilityFallback, ErrorForm, MissingCapability, knows_tasks,
    record::CallRecord, refusal::AbsentName, versions,
};
use crate::{
    catalogue::{CatalogueTool, CatalogueViewer, TaskSupport},
    codes::FailureCode,
    identity::CallerIdentity,
    telemetry::GatewayMetrics,
};

/// Finds a tool. Hidden and unknown ones get the same answer.
pub(super) fn visible<'a>(
    metrics: &GatewayMetrics,
    caller: &CallerIdentity,
    request: &CallRequest<'a>,
    record: &mut CallRecord,
) -> Result<&'a Arc<CatalogueTool>, CallError> {
    let catalogue = &request.snapshot.catalogue;
    let viewer = CatalogueViewer::Caller(caller);
    let Some(tool) = catalogue.tool(request.endpoint, request.tool, viewer) else {
        // Unknown names are searched for as well, so that hidden ones take no longer.
        let is_hidden = catalogue.is_served(request.endpoint, request.tool, viewer);
        record.absent(AbsentName::new(request.tool, is_hidden));
        return Err(versions::not_there(caller, request));
    };
    record.tool(tool);
    if tool.kept.is_some() {
        versions::admit(metrics, tool)?;
    }
    may_write(caller, tool)?;
    Ok(tool)
}

/// Refuses a tool that writes if the caller's token is only for reading. Calls through a search view are checked here too.
fn may_write(caller: &CallerIdentity, tool: &CatalogueTool) -> Result<(), CallError> {
    match caller.may_write() || !tool.tool.writes() {
        true => Ok(()),
        false => Err(CallError::new(
            FailureCode::Forbidden,
            "The tool writes, and the token has no scope `tools:write`.",
        )),
    }
}

/// Refuses a modern client without support for tasks if the tool runs only as a task.
pub(super) fn may_run(tool: &CatalogueTool, request: &CallRequest<'_>) -> Result<(), CallError> {
    let asking = &request.asking;
    let is_refused =
        tool.tasks == TaskSupport::Required && asking.lacking == CapabilityFallback::ProtocolError;
    if !is_refused || knows_tasks(asking.capabilities) {
        return Ok(());
    }
    let error = CallError::new(
        FailureCode::ToolError,
        "The tool runs only as a task, and this client does not support tasks.",
    );
    Err(CallError {
        form: ErrorForm::MissingCapability(MissingCapability::Tasks),
        ..error
    })
}
