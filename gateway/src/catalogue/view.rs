//! A view: a part of the catalogue that an operator defined under a name.

use std::{collections::HashMap, sync::Arc};

use ahash::RandomState;
use weir_contracts::{CompiledContract, mirror::MirroredArgument, name};

use super::{
    CatalogueListing, CatalogueTool, ServerInfo, item::CatalogueItems, listing::ListingClients,
};
use crate::config::ViewConfig;

/// A view of one snapshot: its tools are selected when the snapshot is made, and a call looks up one name.
pub(super) struct ServedView {
    pub(super) settings: ViewConfig,
    /// The place of its listing.
    pub(super) place: usize,
    /// The tools themselves: another contract may have one of the same name.
    tools: HashMap<Arc<str>, Arc<CatalogueTool>, RandomState>,
}

impl ServedView {
    /// Makes the view. Of two tools with the same name, the first counts, as in the listing.
    pub(super) fn new(settings: ViewConfig, place: usize, own: &[Arc<CatalogueTool>]) -> Self {
        let mut tools = HashMap::default();
        for tool in own {
            tools
                .entry(tool.name.clone())
                .or_insert_with(|| tool.clone());
        }
        Self {
            settings,
            place,
            tools,
        }
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.get(name)
    }

    /// Returns the arguments of a tool that clients repeat in headers, according to its listed schema. A tool that is found by
    /// search is not listed.
    pub(super) fn mirrored<'t>(&self, tool: &'t CatalogueTool) -> &'t [MirroredArgument] {
        if self.settings.search {
            return &[];
        }
        let lowered = self
            .settings
            .profile
            .and_then(|profile| tool.lowered(profile));
        lowered.map_or(&tool.mirrored, |lowered| &lowered.mirrored)
    }
}

/// Returns `true` if a view has a tool: all conditions of the view must be met.
pub(super) fn selects(view: &ViewConfig, tool: &CatalogueTool) -> bool {
    let of_contract = || {
        view.contracts.is_empty()
            || view
                .contracts
                .iter()
                .any(|contract| **contract == *tool.contract)
    };
    let is_named = || {
        view.tools.is_empty()
            || view
                .tools
                .iter()
                .any(|pattern| name::matches(pattern, &tool.name))
    };
    // A tool that its clients refuse would make them lose the others too.
    let is_taken = || {
        !view
            .profile
            .and_then(|profile| tool.lowered(profile))
            .is_some_and(|lowered| lowered.is_refused)
    };
    of_contract() && is_named() && !(view.read_only && tool.tool.writes()) && is_taken()
}

/// Returns what a view lists of these tools. Its only items are the pages that its tools link.
pub(super) fn listing(
    view: &ViewConfig,
    server: ServerInfo,
    tools: Vec<Arc<CatalogueTool>>,
    items: &[&CatalogueItems],
    contracts: &[Arc<CompiledContract>],
) -> CatalogueListing {
    let listing = CatalogueListing::new(server, tools, &[]).for_clients(ListingClients {
        profile: view.profile,
        always_load: view.always_load.clone(),
    });
    if view.search {
        listing.with_search(contracts, view.read_only)
    } else {
        listing.with_pages(items)
    }
}
