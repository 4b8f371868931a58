//! The library that a plugin's author imports.
//!
//! A tool is a function with [`tool`] above it, and `weir_plugin_sdk::export!(tools: my_tool);`: its types and its
//! documentation are the schema ([`tools`], [`schema`]). A plugin may also offer prompts and resources
//! ([`items`]).
//!
//! An adapter is ordinary Rust: implement [`Adapter`], write `weir_plugin_sdk::export!(MyAdapter);` and build for
//! `wasm32-unknown-unknown`. What the outside world offers comes as functions: [`sql`], [`http`], [`files`], [`index`], [`log`],
//! [`progress`], [`events`], [`clock`], [`random`]; in a component and in a native library (feature `native`)
//! they call the gateway, elsewhere they call [`testing`], so an
//! adapter has unit tests like any other crate. [`value`], [`matches`] and [`order`] are the one value table: every
//! adapter that reads, compares and writes through them looks identical from above.

#![deny(missing_docs)]

pub mod adapter;
mod bytes;
pub mod error;
pub mod items;
pub mod matches;
pub mod order;
pub mod records;
pub mod schema;
pub mod shape;
pub mod summary;
pub mod tools;
pub mod value;

pub mod clock;
pub mod events;
pub mod files;
pub mod http;
pub mod index;
pub mod log;
pub mod progress;
pub mod random;
pub mod sql;

#[cfg(target_arch = "wasm32")]
pub mod bindings;
#[cfg(all(feature = "native", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub mod native;
#[doc(hidden)]
pub mod plugin;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use adapter::{Adapter, Change, Comparison, Condition, Order, Page, Query, Verb};
pub use bytes::Bytes;
pub use error::Error;
pub use items::Items;
pub use schema::ToolSchema;
pub use shape::{Field, Shape, Type};
pub use summary::{SummaryPage, SummaryQuery};
pub use tools::{Answer, Content, Context, Elicited, Question, ToolError};
pub use value::{Value, Zone};
#[doc(hidden)]
pub use weir_plugin_sdk_macros::exported_tools;
pub use weir_plugin_sdk_macros::{ToolSchema, data, tool};

#[cfg(all(target_arch = "wasm32", feature = "allocator"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The crate for parameters that are dates and times, so that an author needs no dependency of their own to name them.
pub use jiff;
/// The crate for parameters that are JSON.
pub use serde_json;
