//! Loads and runs plugins. The only crate that names wasmtime.
//!
//! A plugin is a file; [`Host`] watches a folder of them, compiles each off the call path, tries it, and swaps it in whole. A
//! built-in plugin serves if the folder has no such file. A call goes to the newest generation of the plugin that provides
//! the collection's adapter.

pub mod adapter;
pub mod config;
pub mod host;
pub mod library;
pub mod native;
pub mod signature;
pub mod tools;

mod background;
mod bindings;
mod call;
mod engine;
mod guest;
mod imports;
mod instance;
mod later;
mod load;
mod plugin;
mod pool;

pub use adapter::{
    AdapterFailure, BoundReached, CallContext, CallEvents, Change, CollectionRef, Condition,
    GuestError, Page, Query, SummaryGroup, SummaryMeasure, SummaryPage, SummaryQuery, WriteFailure,
};
pub use config::{
    BuiltIn, Grant, HeldBuilds, HostConfig, Isolation, Libraries, PluginConfig, ToolAudit,
    ToolLimits,
};
pub use engine::INSTANCES_MAX;
pub use host::{Ends, Host, InUse, LoadReport, NeededCollection, PluginStatus, Recent, Runs};
pub use native::NativeAdapter;
pub use tools::{
    Admitted, Admitting, Changed, Definitions, Invocation, ToolAnswer, ToolGate, ToolRef,
};
