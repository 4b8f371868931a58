//! `tools/list`: a slice of the prepared bytes.

use super::{Request, RequestScope};
use crate::{
    catalogue::{ListShape, Listing, ServerInfo},
    wire::{ResultWriter, RpcError, Version, key, raw, write_string},
};

pub(super) fn answer(scope: &RequestScope, listing: &Listing, request: &Request<'_>) -> Result<Vec<u8>, RpcError> {
    let cursor = match request.params.cursor.map(raw::string) {
        None => None,
        Some(Some(cursor)) => Some(cursor),
        Some(None) => return Err(RpcError::invalid_params("`params.cursor` must be a string")),
    };
    let page = listing
        .page(shape(request.version), cursor.as_deref(), scope.gateway.config().http.page_size)
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
        write_cache(&mut result, scope);
        write_server(&mut result, &listing.server);
    }
    Ok(result.finish())
}

/// What a key shows is for its agent alone.
pub(super) fn write_cache(result: &mut ResultWriter, scope: &RequestScope) {
    let cache_scope = if scope.caller.key.is_some() { "private" } else { "public" };
    result.json("ttlMs", &scope.gateway.config().http.list_ttl_ms.to_string()).string("cacheScope", cache_scope);
}

/// `_meta` with the endpoint's `serverInfo`, as on every modern result.
pub(super) fn write_server(result: &mut ResultWriter, server: &ServerInfo) {
    let meta = result.member("_meta");
    meta.push(b'{');
    write_server_member(meta, server);
    meta.push(b'}');
}

/// The one member of it, for a `_meta` that has others.
pub(super) fn write_server_member(meta: &mut Vec<u8>, server: &ServerInfo) {
    meta.push(b'"');
    meta.extend_from_slice(key::SERVER_INFO.as_bytes());
    meta.extend_from_slice(b"\":");
    write_server_info(meta, server, true);
}

/// Older clients know no title.
pub(super) fn write_server_info(out: &mut Vec<u8>, server: &ServerInfo, with_title: bool) {
    out.extend_from_slice(br#"{"name":"#);
    write_string(out, &server.name);
    if let (Some(title), true) = (&server.title, with_title) {
        out.extend_from_slice(br#","title":"#);
        write_string(out, title);
    }
    out.extend_from_slice(br#","version":"#);
    write_string(out, &server.version);
    out.push(b'}');
}

fn shape(version: Version) -> ListShape {
    match version {
        Version::V2026_07_28 => ListShape::Modern,
        Version::V2025_06_18 | Version::V2025_11_25 => ListShape::Structured,
        Version::V2025_03_26 => ListShape::Annotated,
        Version::V2024_11_05 => ListShape::Plain,
    }
}
