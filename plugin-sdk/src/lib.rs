//! What a plugin author imports.
//!
//! An adapter is ordinary Rust: implement [`Adapter`], write `weir_plugin_sdk::export!(MyAdapter);` and build for
//! `wasm32-unknown-unknown`. What the outside world offers comes as functions: [`sql`], [`http`], [`files`], [`log`],
//! [`progress`], [`clock`], [`random`]; in a component they call the gateway, natively they call [`testing`], so an
//! adapter has unit tests like any other crate. [`value`], [`matches`] and [`order`] are the one value table: every
//! adapter that reads, compares and writes through them looks identical from above.

pub mod adapter;
pub mod error;
pub mod matches;
pub mod order;
pub mod records;
pub mod shape;
pub mod value;

pub mod clock;
pub mod files;
pub mod http;
pub mod log;
pub mod progress;
pub mod random;
pub mod sql;

#[cfg(target_arch = "wasm32")]
pub mod bindings;
#[doc(hidden)]
pub mod plugin;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use adapter::{Adapter, Change, Comparison, Condition, Order, Page, Query, Verb};
pub use error::Error;
pub use shape::{Field, Shape, Type};
pub use value::{Value, Zone};

#[cfg(all(target_arch = "wasm32", feature = "allocator"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// For adapters, so that they need no dependency of their own to name JSON.
pub use serde_json;
