//! Prompts and resources: lists that are empty, so that a client which asks for everything a server may have is
//! answered alike, and cached alike. There is nothing to read by name.
//!
//! Some legacy clients ask for all three lists without looking at the capabilities, and an error for one of them costs
//! them the tools.

use super::{Request, RequestScope, list};
use crate::{
    catalogue::Listing,
    wire::{Method, ResultWriter, RpcError},
};

pub(super) fn list(scope: &RequestScope, listing: &Listing, request: &Request<'_>) -> Vec<u8> {
    let member = match request.method {
        Method::ListPrompts => "prompts",
        Method::ListResources => "resources",
        _ => "resourceTemplates",
    };
    let mut result = ResultWriter::new(&request.id, 384);
    if request.version.is_modern() {
        result.string("resultType", "complete");
    }
    result.json(member, "[]");
    if request.version.is_modern() {
        list::write_cache(&mut result, scope);
        list::write_server(&mut result, &listing.server);
    }
    result.finish()
}

pub(super) fn read(request: &Request<'_>) -> RpcError {
    RpcError::invalid_params(match request.method {
        Method::GetPrompt => "there is no such prompt: this server has tools only",
        _ => "there is no such resource: this server has tools only",
    })
}
