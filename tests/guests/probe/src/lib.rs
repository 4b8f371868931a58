//! A bare guest for the plugin host's own tests: without the SDK, which would guard it.
//!
//! Its behaviour is the word in `options` of a query or a change. Its name, version and shape are in one block of
//! text that a test may overwrite in the built file: one build serves as all the plugins that a test needs.

#[cfg(target_arch = "wasm32")]
mod guest;
