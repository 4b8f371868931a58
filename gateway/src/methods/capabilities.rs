//! States what an endpoint has, and refuses requests for anything else.
//!
//! Modern clients see prompts and resources even if there are none: later ones are announced, and clients that list everything a
//! server may have get an answer. Legacy clients see what exists; those that list the rest anyway get empty lists, since an error
//! for one list would cost them the tools.

use super::{McpRequest, RequestScope};
use crate::{
    call::{self, TASKS},
    catalogue::CatalogueListing,
    wire::{RpcError, RpcMethod},
};

/// Returns the capabilities as a JSON object.
pub(super) fn stated(scope: &RequestScope, listing: &CatalogueListing, modern: bool) -> String {
    let mut stated = r#"{"tools":{"listChanged":true}"#.to_owned();
    if modern || listing.has_prompts() {
        stated.push_str(r#","prompts":{"listChanged":true}"#);
    }
    if modern || listing.has_resources() {
        stated.push_str(r#","resources":{"listChanged":true"#);
        if modern || has_subscriptions(scope, listing) {
            stated.push_str(r#","subscribe":true"#);
        }
        stated.push('}');
    }
    if has_completions(scope, listing) {
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

fn has_subscriptions(scope: &RequestScope, listing: &CatalogueListing) -> bool {
    let mut sources = listing.sources().iter();
    sources.any(|source| call::notifies(&scope.gateway, source))
}

fn has_completions(scope: &RequestScope, listing: &CatalogueListing) -> bool {
    let mut sources = listing.sources().iter();
    listing.takes_arguments() && sources.any(|source| call::completes(&scope.gateway, source))
}

/// Checks a request: a method without its capability is unknown.
pub(super) fn check(
    scope: &RequestScope,
    listing: &CatalogueListing,
    request: &McpRequest<'_>,
) -> Result<(), RpcError> {
    let modern = request.version.is_modern();
    let (is_stated, why) = match request.method {
        RpcMethod::GetPrompt => (
            modern || listing.has_prompts(),
            "no prompts are listed here",
        ),
        RpcMethod::ReadResource | RpcMethod::Subscribe | RpcMethod::Unsubscribe => (
            modern || listing.has_resources(),
            "no resources are listed here",
        ),
        RpcMethod::Complete => (
            has_completions(scope, listing),
            "nothing that is listed here declares `completions`",
        ),
        RpcMethod::SetLogLevel => (
            listing.has_log_messages(),
            "nothing that is listed here logs to its callers",
        ),
        _ => return Ok(()),
    };
    match is_stated {
        true => Ok(()),
        false => Err(RpcError::undeclared(request.method.name(), modern, why)),
    }
}
