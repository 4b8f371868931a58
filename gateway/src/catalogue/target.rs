//! Prepares the target of a published tool: a collection, a plugin or another MCP server.

mod collection;
mod plugin;
mod upstream;

use std::sync::Arc;

use weir_contracts::{
    CompiledContract, ContractTool,
    contract::{self, ToolProvider},
};

pub(super) use self::collection::HostCollections;
pub use self::{
    collection::{CollectionTool, RelatedCollection},
    plugin::PluginTool,
    upstream::UpstreamTool,
};

/// The target that answers the calls of a tool.
pub enum ToolTarget {
    /// A collection, through its adapter.
    Collection(CollectionTool),
    /// A function of a plugin.
    Plugin(PluginTool),
    /// A tool of another MCP server.
    Upstream(UpstreamTool),
}

impl ToolTarget {
    /// Prepares a target; `None` for a bare form, which no contract publishes.
    pub(super) fn prepare(
        contract: &CompiledContract,
        tool: &ContractTool,
        sources: &HostCollections,
    ) -> Option<Self> {
        match &tool.target {
            contract::CallTarget::Form => None,
            contract::CallTarget::Collection(published) => {
                CollectionTool::prepare(contract, published, sources).map(Self::Collection)
            }
            contract::CallTarget::Offer(offer) => match &offer.maker {
                ToolProvider::Plugin(plugin) => {
                    PluginTool::prepare(contract, tool, offer, plugin).map(Self::Plugin)
                }
                ToolProvider::Upstream(upstream) => Some(Self::Upstream(UpstreamTool::prepare(
                    contract, tool, offer, upstream,
                ))),
            },
        }
    }

    /// Returns the collection that answers, if one does.
    pub fn collection(&self) -> Option<&CollectionTool> {
        match self {
            Self::Collection(collection) => Some(collection),
            Self::Plugin(_) | Self::Upstream(_) => None,
        }
    }

    /// Returns the name of the other server, if one answers.
    pub fn upstream(&self) -> Option<&str> {
        match self {
            Self::Upstream(upstream) => Some(&upstream.upstream),
            Self::Collection(_) | Self::Plugin(_) => None,
        }
    }

    /// Returns the name of the adapter, plugin or server that runs the calls.
    pub(super) fn runner(&self) -> Arc<str> {
        match self {
            Self::Collection(collection) => collection.source.adapter.clone(),
            Self::Plugin(plugin) => plugin.source.plugin.clone(),
            Self::Upstream(upstream) => upstream.upstream.clone(),
        }
    }

    /// Returns `true` if calls may log to their callers. What an adapter logs is for operators.
    pub(super) fn may_log(&self) -> bool {
        match self {
            Self::Collection(_) => false,
            Self::Plugin(_) | Self::Upstream(_) => true,
        }
    }

    /// Returns `true` if alternatives at the root of the input schema are listed as written, since the author of a plugin wrote
    /// them.
    pub(super) fn lists_root_verbatim(&self) -> bool {
        match self {
            Self::Plugin(_) => true,
            Self::Collection(_) | Self::Upstream(_) => false,
        }
    }

    /// Returns `true` if clients may check errors against a published output schema that has no place for Weir's own errors.
    pub fn keeps_errors_in_meta(&self) -> bool {
        match self {
            Self::Upstream(upstream) => upstream.publishes_output,
            Self::Collection(_) | Self::Plugin(_) => false,
        }
    }
}
