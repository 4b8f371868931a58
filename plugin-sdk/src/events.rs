//! Reports changes of lists and resources to the clients that listen.

#[cfg(target_arch = "wasm32")]
use crate::bindings::items::events as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::events as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::events as imported;

/// The list of tools.
pub fn tools_changed() {
    imported::changed("tools", None);
}

/// The list of prompts.
pub fn prompts_changed() {
    imported::changed("prompts", None);
}

/// The list of resources.
pub fn resources_changed() {
    imported::changed("resources", None);
}

/// Reports that the resource of this URI has changed.
pub fn resource_changed(uri: &str) {
    imported::changed("resource", Some(uri));
}
