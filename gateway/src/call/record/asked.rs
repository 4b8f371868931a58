//! The tool or item of a request, once it is found.

use std::sync::Arc;

use crate::{
    catalogue::{CatalogueTool, FIND_TOOLS, ItemKind, ItemSource},
    telemetry::metrics::ToolMeter,
};

/// The requested tool or item, which the caller may use.
pub(super) enum RequestedTarget {
    Tool(Arc<CatalogueTool>),
    /// An item, by the name under which it is recorded.
    Item(Arc<ItemSource>, ItemKind, Box<str>),
    /// One of the two tools of a view with search, which belong to no contract.
    Search(&'static str),
}

impl RequestedTarget {
    pub(super) fn meter(&self) -> Option<&ToolMeter> {
        match self {
            Self::Tool(tool) => Some(&tool.meter),
            Self::Item(source, kind, _) => Some(source.meter(*kind)),
            Self::Search(_) => None,
        }
    }

    pub(super) fn finds(&self) -> Option<&'static str> {
        matches!(self, Self::Search(FIND_TOOLS)).then_some(FIND_TOOLS)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Item(.., name) => name,
            Self::Search(name) => name,
        }
    }

    pub(super) fn item(&self) -> Option<&'static str> {
        match self {
            Self::Tool(_) | Self::Search(_) => None,
            Self::Item(_, kind, _) => Some(kind.word()),
        }
    }

    pub(super) fn upstream(&self) -> Option<&str> {
        match self {
            Self::Tool(tool) => tool.target.upstream(),
            Self::Item(source, ..) => source.target.upstream().map(|upstream| &**upstream),
            Self::Search(_) => None,
        }
    }

    pub(super) fn keeps_errors_in_meta(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.target.keeps_errors_in_meta(),
            Self::Item(..) | Self::Search(_) => false,
        }
    }
}
