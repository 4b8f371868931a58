//! States what an endpoint has, and refuses requests for anything else.
//!
//! Modern clients see prompts and resources even if there are none: later ones are announced, and clients that list
//! everything a server may have get an answer. Legacy clients see what there is; those that list the rest anyway get empty
//! lists, since an error for one of them would cost them the tools.

use super::McpRequest;
use crate::{
    call::TASKS,
    catalogue::CatalogueListing,
    wire::{RpcError, RpcMethod},
};

/// Returns the capabilities as a JSON object.
pub(super) fn stated(listing: &CatalogueListing, modern: bool) -> String {
    let mut stated = r#"{"tools":{"listChanged":true}"#.to_owned();
    if modern || listing.has_prompts() {
        stated.push_str(r#","prompts":{"listChanged":true}"#);
    }
    if modern || listing.has_resources() {
        stated.push_str(r#","resources":{"listChanged":true,"subscribe":true}"#);
    }
    if listing.has_completions() {
        stated.push_str(r#","completions":{}"#);
    }
    if listing.has_log_messages() {
        stated.push_str(r#","logging":{}"#);
    }
    if modern && listing.has_tasks() {
        stated.push_str(&format!(r#","extensions":{{"{}":{{}}}}"#, TASKS));
    }
    stated.push('}');
    stated
}

/// Checks a request: a method that is not stated is an unknown one.
pub(super) fn check(listing: &CatalogueListing, request: &McpRequest<'_>) -> Result<(), RpcError> {
    let modern = request.version.is_modern();
    let is_stated = match request.method {
        RpcMethod::GetPrompt => modern || listing.has_prompts(),
        RpcMethod::ReadResource | RpcMethod::Subscribe | RpcMethod::Unsubscribe => {
            modern || listing.has_resources()
        }
        RpcMethod::Complete => listing.has_completions(),
        RpcMethod::SetLogLevel => listing.has_log_messages(),
        _ => true,
    };
    if is_stated {
        Ok(())
    } else {
        Err(RpcError::unknown_method(request.method.name(), modern))
    }
}
