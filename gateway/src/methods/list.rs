//! The lists: of tools, prompts, resources and templates, each a slice of the prepared bytes.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{McpRequest, RequestScope, meta::write_server};
use crate::{
    call::knows_tasks,
    catalogue::{BadCursor, CatalogueListing, ListShape, ListingPage},
    wire::{ProtocolVersion, RequestId, ResultWriter, RpcError, RpcMethod, raw},
};

pub(super) fn answer(
    scope: &RequestScope,
    listing: &CatalogueListing,
    request: &McpRequest<'_>,
) -> Result<Vec<u8>, RpcError> {
    let (cursor, size) = (cursor(request)?, scope.gateway.config().http.page_size);
    let (shape, cursor) = (shape(request.version), cursor.as_deref());
    let (member, page) = match request.method {
        RpcMethod::ListPrompts => ("prompts", listing.prompts.page(shape, cursor, size)),
        RpcMethod::ListResources => ("resources", listing.resources.page(shape, cursor, size)),
        RpcMethod::ListResourceTemplates => (
            "resourceTemplates",
            listing.templates.page(shape, cursor, size),
        ),
        _ => {
            let is_told = shape == ListShape::Modern && knows_tasks(capabilities(request));
            let shape = match is_told && listing.has_tasks() {
                true => ListShape::Tasks,
                false => shape,
            };
            ("tools", listing.tools_page(shape, cursor, size))
        }
    };
    let page = page.map_err(bad_cursor)?;
    Ok(write_page(
        scope,
        listing,
        (&request.id, request.version),
        member,
        &page,
    ))
}

/// Returns the client's capabilities in a modern request; JSON.
fn capabilities<'a>(request: &McpRequest<'a>) -> Option<&'a str> {
    let stated = request.params.meta.client_capabilities;
    stated.map(RawValue::get)
}

pub(super) fn cursor<'a>(request: &McpRequest<'a>) -> Result<Option<Cow<'a, str>>, RpcError> {
    match request.params.cursor.map(raw::string) {
        None => Ok(None),
        Some(Some(cursor)) => Ok(Some(cursor)),
        Some(None) => Err(RpcError::invalid_params("`params.cursor` must be a string")),
    }
}

pub(super) fn bad_cursor(error: BadCursor) -> RpcError {
    RpcError::invalid_params(format!("`params.cursor`: {error}"))
}

pub(super) fn write_page(
    scope: &RequestScope,
    listing: &CatalogueListing,
    (id, version): (&RequestId<'_>, ProtocolVersion),
    member: &'static str,
    page: &ListingPage<'_>,
) -> Vec<u8> {
    let mut result = ResultWriter::new(id, page.entries.len() + 384);
    if version.is_modern() {
        result.string("resultType", "complete");
    }
    let entries = result.member(member);
    entries.push(b'[');
    entries.extend_from_slice(page.entries.as_bytes());
    entries.push(b']');
    if let Some(next) = &page.next {
        result.string("nextCursor", next);
    }
    if version.is_modern() {
        write_cache(&mut result, scope);
        write_server(&mut result, &listing.server);
    }
    result.finish()
}

/// Writes how long the list may be cached, and by whom: the list for a key is only for its agent.
pub(super) fn write_cache(result: &mut ResultWriter, scope: &RequestScope) {
    let cache_scope = if scope.caller.grant.is_some() {
        "private"
    } else {
        "public"
    };
    result
        .json(
            "ttlMs",
            &scope.gateway.config().http.list_ttl_ms.to_string(),
        )
        .string("cacheScope", cache_scope);
}

pub(super) fn shape(version: ProtocolVersion) -> ListShape {
    match version {
        ProtocolVersion::V2026_07_28 => ListShape::Modern,
        ProtocolVersion::V2025_06_18 | ProtocolVersion::V2025_11_25 => ListShape::Structured,
        ProtocolVersion::V2025_03_26 => ListShape::Annotated,
        ProtocolVersion::V2024_11_05 => ListShape::Plain,
    }
}
