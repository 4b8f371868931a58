//! `server/discover`: what this endpoint is and which versions it supports, cacheable.

use super::{McpRequest, RequestScope, capabilities, list, meta};
use crate::{
    catalogue::CatalogueListing,
    wire::{ProtocolVersion, ResultWriter},
};

pub(super) fn answer(
    scope: &RequestScope,
    listing: &CatalogueListing,
    request: &McpRequest<'_>,
) -> Vec<u8> {
    let mut result = ResultWriter::new(&request.id, 512);
    result.string("resultType", "complete");
    // Modern versions only: a client that picks one from here will send `_meta` with every request.
    let versions = ProtocolVersion::MODERN
        .map(|version| format!("\"{}\"", version.as_str()))
        .join(",");
    result
        .json("supportedVersions", &format!("[{versions}]"))
        .json("capabilities", &capabilities::stated(scope, listing, true));
    if let Some(instructions) = &listing.server.instructions {
        result.string("instructions", instructions);
    }
    list::write_cache(&mut result, scope);
    meta::write_server(&mut result, &listing.server);
    result.finish()
}
