//! Holds one live instance of a plugin and the calls into it: a component's or a library's, called in the same way.

use std::sync::Arc;

use crate::{
    AdapterChange, AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery,
    CollectionRef, ToolInvocation, ToolRef,
    bindings::v0_1::weir::plugin::{answers, types},
    engine::EngineSize,
    guest::{GuestCall, GuestProfile},
    library::LibraryInstance,
    plugin::PluginCode,
};

mod component;

use component::ComponentInstance;

/// Calls an instance serves before it is replaced: this bounds what a guest can leak.
const CALLS_MAX: u32 = 1_000;
/// Collections an instance keeps prepared; it is not notified when a contract version is removed.
const CONFIGURED_MAX: usize = 256;

pub(crate) enum PluginInstance {
    Component(Box<ComponentInstance>),
    Library(Box<LibraryInstance>),
}

/// The guest's answer; the outer error is the end of the instance.
pub(crate) type Answer<T> = wasmtime::Result<Result<T, types::Error>>;

impl PluginInstance {
    /// Runs the guest's start code.
    pub(crate) async fn new(
        code: &PluginCode,
        size: EngineSize,
        profile: &Arc<GuestProfile>,
        call: GuestCall,
    ) -> wasmtime::Result<Self> {
        Ok(match code {
            PluginCode::Component(code) => Self::Component(Box::new(
                ComponentInstance::new(code, size, profile, call).await?,
            )),
            PluginCode::Deferred(code) => Self::Component(Box::new(
                ComponentInstance::new(code.code().await?, size, profile, call).await?,
            )),
            PluginCode::Library(code) => {
                Self::Library(Box::new(LibraryInstance::new(code, profile, call).await?))
            }
        })
    }

    /// Returns `true` if the instance can take another call.
    pub(crate) fn is_alive(&mut self) -> bool {
        match self {
            Self::Component(_) => true,
            Self::Library(instance) => instance.is_alive(),
        }
    }

    /// Takes up another call. Its bounds are counted from nothing.
    pub(crate) fn begin(&mut self, call: GuestCall) {
        match self {
            Self::Component(instance) => instance.begin(call),
            Self::Library(instance) => instance.begin(call),
        }
    }

    pub(crate) async fn about(&mut self) -> wasmtime::Result<String> {
        match self {
            Self::Component(instance) => instance.about().await,
            Self::Library(instance) => instance.about().await,
        }
    }

    pub(crate) async fn describe(&mut self, adapter: &str, settings: &str) -> Answer<String> {
        match self {
            Self::Component(instance) => instance.describe(adapter, settings).await,
            Self::Library(instance) => instance.describe(adapter, settings).await,
        }
    }

    pub(crate) async fn read(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterQuery,
    ) -> Answer<AdapterPage> {
        match self {
            Self::Component(instance) => instance.read(collection, query).await,
            Self::Library(instance) => instance.read(collection, query).await,
        }
    }

    pub(crate) async fn summarize(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterSummaryQuery,
    ) -> Answer<AdapterSummaryPage> {
        match self {
            Self::Component(instance) => instance.summarize(collection, query).await,
            Self::Library(instance) => instance.summarize(collection, query).await,
        }
    }

    pub(crate) async fn write(
        &mut self,
        collection: &CollectionRef,
        change: &AdapterChange,
    ) -> Answer<String> {
        match self {
            Self::Component(instance) => instance.write(collection, change).await,
            Self::Library(instance) => instance.write(collection, change).await,
        }
    }

    /// Returns the definitions of the plugin's tools, as JSON.
    pub(crate) async fn definitions(&mut self) -> Answer<String> {
        match self {
            Self::Component(instance) => instance.definitions().await,
            Self::Library(instance) => instance.definitions().await,
        }
    }

    /// Returns the definitions of its prompts and resources, JSON.
    pub(crate) async fn item_definitions(&mut self) -> Answer<String> {
        match self {
            Self::Component(instance) => instance.item_definitions().await,
            Self::Library(instance) => instance.item_definitions().await,
        }
    }

    /// Calls a tool. `context` is the plugin's information about the call, JSON.
    pub(crate) async fn call(
        &mut self,
        tool: &ToolRef,
        invocation: &ToolInvocation,
        context: &str,
    ) -> Answer<answers::Answer> {
        match self {
            Self::Component(instance) => instance.call(tool, invocation, context).await,
            Self::Library(instance) => instance.call(tool, invocation, context).await,
        }
    }

    /// Returns `true` if the next call may have the instance. It may not if the instance is old, holds much memory, or
    /// was prepared for too many collections.
    pub(crate) fn reusable(&self) -> bool {
        let (calls, configured, memory_max) = match self {
            Self::Component(instance) => (
                instance.calls(),
                instance.configured(),
                instance.memory_max(),
            ),
            Self::Library(instance) => (
                instance.calls(),
                instance.configured(),
                instance.memory_max(),
            ),
        };
        calls < CALLS_MAX
            && configured <= CONFIGURED_MAX
            && !self.memory_refused()
            && self.bytes() <= memory_max / 5 * 4
    }

    /// Drops what belonged to the call: its caller's token and receiver must not live on in a parked instance.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Component(instance) => instance.end(),
            Self::Library(instance) => instance.end(),
        }
    }

    pub(crate) fn memory_refused(&self) -> bool {
        match self {
            Self::Component(instance) => instance.memory_refused(),
            Self::Library(instance) => instance.memory_refused(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Component(instance) => instance.bytes(),
            Self::Library(instance) => instance.bytes(),
        }
    }

    pub(crate) fn size(&self) -> EngineSize {
        match self {
            Self::Component(instance) => instance.size(),
            Self::Library(_) => EngineSize::Small,
        }
    }
}
