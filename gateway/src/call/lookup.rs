//! Which tool, and may this caller see it.

use std::sync::Arc;

use super::{CallError, CallRequest, record::CallRecord};
use crate::{catalogue::CatalogueTool, identity::Caller};

/// Hidden and unknown are the same answer.
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
