//! A view: the part of the catalogue that an operator put together under a name.

use std::{collections::HashSet, sync::Arc};

use ahash::RandomState;
use weir_contracts::name;

use super::CatalogueTool;
use crate::config::View;

/// A view of one snapshot: its tools are chosen when the snapshot is made, and a call looks for one name.
pub(super) struct ServedView {
    pub(super) settings: View,
    /// Where its listing stands.
    pub(super) place: usize,
    names: HashSet<Arc<str>, RandomState>,
}

impl ServedView {
    pub(super) fn new(settings: View, place: usize, tools: &[Arc<CatalogueTool>]) -> Self {
        Self { settings, place, names: tools.iter().map(|tool| tool.name.clone()).collect() }
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.names.contains(tool)
    }
}

/// Whether a view has a tool: everything that it says must be met.
pub(super) fn selects(view: &View, tool: &CatalogueTool) -> bool {
    let of_contract =
        || view.contracts.is_empty() || view.contracts.iter().any(|contract| **contract == *tool.contract);
    let is_named = || view.tools.is_empty() || view.tools.iter().any(|pattern| name::matches(pattern, &tool.name));
    of_contract() && is_named() && !(view.read_only && tool.tool.writes())
}
