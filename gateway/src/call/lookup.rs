//! Finds the tool, if this caller may see it.

use std::sync::Arc;

use super::{CallError, CallRequest, record::CallRecord};
use crate::{catalogue::CatalogueTool, identity::Caller};

/// Finds a tool. Hidden and unknown ones get the same answer.
pub(super) fn visible<'a>(
    caller: &Caller,
    request: &CallRequest<'a>,
    record: &mut CallRecord,
) -> Result<&'a Arc<CatalogueTool>, CallError> {
    let catalogue = &request.snapshot.catalogue;
    let tool = catalogue.tool(request.endpoint, request.tool, caller.access()).ok_or_else(CallError::unknown_tool)?;
    record.tool(tool);
    Ok(tool)
}
