//! `tools/list`: a slice of the prepared bytes.

use super::{Place, Request};
use crate::{
    catalogue::{ListShape, Listing, ServerInfo},
    wire::{ResultWriter, RpcError, Version, key, raw, write_server_info},
};

pub(super) fn answer(place: &Place, listing: &Listing, request: &Request<'_>) -> Result<Vec<u8>, RpcError> {
    let cursor = match request.params.cursor.map(raw::string) {
        None => None,
        Some(Some(cursor)) => Some(cursor),
        Some(None) => return Err(RpcError::invalid_params("`params.cursor` must be a string")),
    };
    let page = listing
        .page(shape(request.version), cursor.as_deref(), place.gateway.config().http.page_size)
        .map_err(|error| RpcError::invalid_params(format!("`params.cursor`: {error}")))?;
    let mut result = ResultWriter::new(&request.id, page.tools.len() + 384);
    if request.version.is_modern() {
        result.string("resultType", "complete");
    }
    let tools = result.member("tools");
    tools.push(b'[');
    tools.extend_from_slice(page.tools.as_bytes());
    tools.push(b']');
    if let Some(next) = &page.next {
        result.string("nextCursor", next);
    }
    if request.version.is_modern() {
        write_cache(&mut result, place);
        write_server(&mut result, &listing.server);
    }
    Ok(result.finish())
}

/// Everyone sees the same lists until identities narrow them.
pub(super) fn write_cache(result: &mut ResultWriter, place: &Place) {
    result.json("ttlMs", &place.gateway.config().http.list_ttl_ms.to_string()).string("cacheScope", "public");
}

/// `_meta` with the endpoint's `serverInfo`, as on every modern result.
pub(super) fn write_server(result: &mut ResultWriter, server: &ServerInfo) {
    let meta = result.member("_meta");
    meta.extend_from_slice(b"{\"");
    meta.extend_from_slice(key::SERVER_INFO.as_bytes());
    meta.extend_from_slice(b"\":");
    write_server_info(meta, server, true);
    meta.push(b'}');
}

fn shape(version: Version) -> ListShape {
    match version {
        Version::V2026_07_28 => ListShape::Modern,
        Version::V2025_06_18 | Version::V2025_11_25 => ListShape::Structured,
        Version::V2025_03_26 => ListShape::Annotated,
        Version::V2024_11_05 => ListShape::Plain,
    }
}
