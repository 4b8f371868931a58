//! `initialize`: the legacy handshake.

use super::{McpRequest, RequestScope, capabilities, meta::write_server_info};
use crate::{
    catalogue::CatalogueListing,
    wire::{ProtocolVersion, RequestParams, ResultWriter, RpcError, raw},
};

pub(super) fn answer(
    scope: &RequestScope,
    listing: &CatalogueListing,
    request: &McpRequest<'_>,
) -> Result<Vec<u8>, RpcError> {
    let version = negotiate(&request.params)?;
    if let Some(client) = &scope.client {
        client.agreed(request.params.capabilities);
        client.last_seen().look(scope);
    }
    let mut result = ResultWriter::new(&request.id, 512);
    result
        .string("protocolVersion", version.as_str())
        .json("capabilities", &capabilities::stated(scope, listing, false));
    write_server_info(
        result.member("serverInfo"),
        &listing.server,
        version.is_structured(),
    );
    if let Some(instructions) = &listing.server.instructions {
        result.string("instructions", instructions);
    }
    Ok(result.finish())
}

/// Returns the requested version if it is supported, else the latest legacy one: the client decides whether it can continue.
pub fn negotiate(params: &RequestParams<'_>) -> Result<ProtocolVersion, RpcError> {
    let Some(asked) = params.protocol_version.and_then(raw::string) else {
        return Err(RpcError::invalid_params(
            "`params.protocolVersion` must be a string",
        ));
    };
    Ok(ProtocolVersion::legacy(&asked).unwrap_or(ProtocolVersion::LEGACY_LATEST))
}
