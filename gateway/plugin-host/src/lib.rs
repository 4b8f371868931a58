//! Loads and runs plugins. The only crate that names wasmtime.
//!
//! A plugin is a file; [`PluginHost`] watches a folder of such files, compiles each off the call path, tries it, and swaps it in
//! as a whole. A built-in plugin serves if the folder has no such file. A call goes to the newest generation of the plugin that
//! provides the collection's adapter.

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
    AdapterChange, AdapterCondition, AdapterFailure, AdapterPage, AdapterQuery,
    AdapterSummaryGroup, AdapterSummaryMeasure, AdapterSummaryPage, AdapterSummaryQuery,
    BoundReached, CallContext, CallEvents, CollectionRef, GuestError, WriteFailure,
};
pub use config::{
    BuiltIn, ConnectionGrant, HeldBuilds, HostConfig, LibraryConfig, PluginConfig, PluginIsolation,
    ToolAudit, ToolLimits,
};
pub use engine::INSTANCES_MAX;
pub use host::{
    FailureCounts, InUse, LoadReport, NeededCollection, PluginHost, PluginRuntime, PluginStatus,
    RecentCalls,
};
pub use native::NativeAdapter;
pub use tools::{
    Admitting, BuildAdmission, PluginChange, ToolAnswer, ToolDefinitions, ToolGate, ToolInvocation,
    ToolRef,
};
