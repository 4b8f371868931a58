//! What the maker of items supports besides answering for them: another server declares it, and a plugin may support everything.

use weir_upstream::DeclaredCapabilities;

use crate::{
    catalogue::{ItemSource, ItemTarget},
    serving::ServingGateway,
};

/// Returns `true` if the maker of these items may suggest values for their arguments.
pub fn completes(gateway: &ServingGateway, source: &ItemSource) -> bool {
    declares(gateway, source, |declared| declared.completions)
}

/// Returns `true` if the maker of these items may notify of changes of single resources.
pub fn notifies(gateway: &ServingGateway, source: &ItemSource) -> bool {
    declares(gateway, source, |declared| declared.subscriptions)
}

fn declares(
    gateway: &ServingGateway,
    source: &ItemSource,
    capability: impl FnOnce(DeclaredCapabilities) -> bool,
) -> bool {
    match &source.target {
        ItemTarget::Collection => false,
        ItemTarget::Plugin(_) => true,
        // A server that has not been reached yet may declare anything.
        ItemTarget::Upstream(name) => {
            let upstream = gateway.upstreams().get(name);
            let declared = upstream.and_then(|upstream| upstream.declared());
            declared.is_none_or(capability)
        }
    }
}
