//! `logging/setLevel`: the level from which a legacy client receives the log messages of its calls.

use super::{McpRequest, RequestScope};
use crate::wire::{ResultWriter, RpcError, log_level};

pub(super) fn answer(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    let level = request
        .params
        .level
        .ok_or_else(|| RpcError::invalid_params("`params.level` is missing"))?;
    let level = log_level(level, "params.level")?;
    let Some(client) = &scope.client else {
        return Err(RpcError::invalid_request(
            "a log level is kept for a session, and this request has none",
        ));
    };
    client.set_log_level(level);
    Ok(ResultWriter::new(&request.id, 64).finish())
}
