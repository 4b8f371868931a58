//! All that is published: name → tool, and the prepared bytes of every listing.

mod code;
mod endpoint;
mod foreign;
mod item;
mod listing;
mod llms;
mod target;
mod tool;

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::Arc,
};

use ahash::RandomState;
pub use code::CodeTool;
pub use endpoint::Endpoint;
pub use foreign::ForeignTool;
use item::Items;
pub use item::{CatalogueItem, ItemKind, ItemSource, Lookup, write_entry};
pub use listing::{BadCursor, ListShape, Listing, Page, Pages, ServerInfo, after, cursor_after};
use quick_cache::sync::Cache;
use target::Sources;
pub use target::{BoundCollection, Target};
pub use tool::CatalogueTool;
use weir_contracts::Contract;

use crate::{identity::Access, telemetry::metrics::ToolMeter};

/// Built once per snapshot; calls and listings only read it.
pub struct Catalogue {
    tools: HashMap<Box<str>, Arc<CatalogueTool>, RandomState>,
    contracts: Vec<Arc<Contract>>,
    /// Of each contract, in their order.
    items: Vec<Items>,
    /// What each endpoint lists to those who may see everything. The first is `/mcp`.
    listings: Vec<Arc<Listing>>,
    /// Where in `listings` the one of `/mcp/<contract>` stands.
    by_contract: HashMap<Box<str>, usize>,
    /// What agents with narrower access see: prepared once for each distinct access, however many agents have it. Nobody
    /// waits while the view of another access is prepared, and those that are asked for least make room.
    views: Cache<ViewKey, View, quick_cache::UnitWeighter, RandomState>,
}

/// The place of the endpoint's listing, and the digest of the access.
type ViewKey = (usize, [u8; 32]);
/// `None`: nothing of the endpoint is seen.
type View = Option<Arc<Listing>>;

/// Views that are kept.
const VIEWS_MAX: usize = 4096;

impl Catalogue {
    /// From compiled contracts, whose tool names the registry has found unique. Tools of `previous` that did not
    /// change are carried over, with what they had prepared.
    pub fn new(contracts: &[Arc<Contract>], previous: Option<&Catalogue>) -> Self {
        let mut tools = HashMap::default();
        let mut by_contract = HashMap::new();
        let (mut every, mut listings) = (Vec::new(), vec![Arc::default()]);
        let items: Vec<Items> = contracts.iter().map(|contract| Items::prepare(contract, previous)).collect();
        for (contract, items) in contracts.iter().zip(&items) {
            let sources = Sources::of(contract);
            let prepared =
                contract.tools.iter().filter_map(|tool| CatalogueTool::prepare(contract, tool, &sources, previous));
            let own: Vec<Arc<CatalogueTool>> = prepared.collect();
            by_contract.insert(contract.name.as_str().into(), listings.len());
            listings.push(Arc::new(Listing::new(ServerInfo::of(contract), own.clone(), &[items])));
            for tool in own {
                tools.insert(tool.name.as_ref().into(), tool.clone());
                every.push(tool);
            }
        }
        let all: Vec<&Items> = items.iter().collect();
        listings[0] = Arc::new(Listing::new(ServerInfo::catalogue(contracts.iter().map(Arc::as_ref)), every, &all));
        Self { tools, contracts: contracts.to_vec(), items, listings, by_contract, views: views() }
    }

    /// The tool of that name, if the endpoint serves it to those with that access.
    pub fn tool(&self, endpoint: &Endpoint, name: &str, access: &Access) -> Option<&Arc<CatalogueTool>> {
        let tool = self.tools.get(name)?;
        let served = match endpoint {
            Endpoint::All => true,
            Endpoint::Contract(contract) => tool.contract == *contract,
        };
        (served && access.allows(&tool.contract, &tool.name)).then_some(tool)
    }

    /// What an endpoint lists to those with that access; `None` when there is no such endpoint for them.
    pub fn listing(&self, endpoint: &Endpoint, access: &Access) -> Option<Arc<Listing>> {
        let place = match endpoint {
            Endpoint::All => 0,
            Endpoint::Contract(contract) => *self.by_contract.get(&**contract)?, // a name that the caller made up is not kept
        };
        let Some(digest) = access.digest() else { return Some(self.listings[place].clone()) };
        let prepare = || Ok::<View, Infallible>(self.view(place, access).map(Arc::new));
        let Ok(view) = self.views.get_or_insert_with(&(place, *digest), prepare);
        view
    }

    /// Nothing of it says that there is more: versions and endpoints are those of what is seen.
    fn view(&self, place: usize, access: &Access) -> Option<Listing> {
        let whole = &self.listings[place];
        let seen = whole.tools.entries().iter().filter(|tool| access.allows(&tool.contract, &tool.name));
        let seen: Vec<_> = seen.cloned().collect();
        let is_here = |index: usize| place == 0 || place == index + 1;
        let named = |index: usize| access.allows_contract(&self.contracts[index].name);
        let items = self.items.iter().enumerate().filter(|(index, _)| is_here(*index) && named(*index));
        let items: Vec<&Items> = items.map(|(_, items)| items).collect();
        let server = match place {
            0 => {
                let touched: HashSet<&str> = seen.iter().map(|tool| &*tool.contract).collect();
                let has_items = items.iter().filter_map(|items| items.source.as_ref()).map(|source| &*source.contract);
                let touched: HashSet<&str> = touched.into_iter().chain(has_items).collect();
                let touched = self.contracts.iter().filter(|contract| touched.contains(contract.name.as_str()));
                ServerInfo::catalogue(touched.map(Arc::as_ref))
            }
            _ if seen.is_empty() && items.iter().all(|items| items.source.is_none()) => return None,
            _ => whole.server.clone(),
        };
        Some(Listing::new(server, seen, &items))
    }

    /// The items of a contract, where it has any.
    fn source(&self, contract: &str) -> Option<&Arc<ItemSource>> {
        self.listings[0].source(contract)
    }

    /// What calls of tools, and what is asked of items, is counted by.
    pub fn meters(&self) -> impl Iterator<Item = &ToolMeter> {
        let sources = self.items.iter().filter_map(|items| items.source.as_ref());
        self.tools.values().map(|tool| &tool.meter).chain(sources.flat_map(|source| &source.meters))
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        self.tools.values()
    }

    /// Equal exactly when every client of every endpoint sees the same lists.
    pub fn digests(&self) -> [[u8; 32]; 3] {
        self.listings[0].digests()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new(&[], None)
    }
}

fn views() -> Cache<ViewKey, View, quick_cache::UnitWeighter, RandomState> {
    let (most, hasher) = (VIEWS_MAX, RandomState::new());
    Cache::with(most, most as u64, quick_cache::UnitWeighter, hasher, Default::default())
}
