//! Holds everything that is published: each tool by its name, and the prepared bytes of every listing.

mod endpoint;
mod item;
mod kept;
mod listing;
mod llms;
mod policy;
mod search;
mod target;
mod tool;
mod versions;
mod view;

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::Arc,
};

use ahash::RandomState;
pub use endpoint::CatalogueEndpoint;
use item::CatalogueItems;
pub use item::{
    CatalogueItem, ItemKind, ItemPlugin, ItemSource, ItemTarget, LinkedPage, RecordLookup,
    write_entry,
};
use kept::ServedVersion;
pub use kept::{CallShim, KeptContract};
pub use listing::{
    BadCursor, CatalogueListing, ListShape, ListingPage, ListingPages, ServerInfo, after,
    cursor_after,
};
pub use llms::arguments as arguments_in_words;
pub use policy::{CatalogueViewer, ServedPolicies};
use quick_cache::sync::Cache;
pub use search::{CALL_TOOL, CatalogueSearch, FIND_TOOLS};
use sha2::{Digest as _, Sha256};
use target::HostCollections;
pub use target::{CollectionTool, PluginTool, RelatedCollection, ToolTarget, UpstreamTool};
use tool::KeptChecks;
pub use tool::{CatalogueTool, TaskSupport, shown_time};
pub use versions::AgentPins;
use versions::{PinnedVersions, touched};
use view::ServedView;
use weir_contracts::{CompiledContract, mirror::MirroredArgument};
use weir_policy::PolicyJudge;

use self::policy::ClassVerdicts;
use crate::{
    config::{PolicyMode, ViewConfig},
    telemetry::metrics::ToolMeter,
};

/// Built once per snapshot; calls and listings only read it.
pub struct ToolCatalogue {
    tools: HashMap<Box<str>, Arc<CatalogueTool>, RandomState>,
    contracts: Vec<Arc<CompiledContract>>,
    /// The items of each contract, in their order.
    items: Vec<CatalogueItems>,
    /// The lists of each endpoint for callers that may see everything. The first is that of `/mcp`.
    listings: Vec<Arc<CatalogueListing>>,
    /// The place of the listing of `/mcp/<contract>` in `listings`.
    by_contract: HashMap<Box<str>, usize>,
    views: BTreeMap<String, ServedView>,
    /// The lists for agents with narrower access. Each distinct access is prepared once, however many agents have it.
    /// Listings are prepared without blocking other callers; the least used one is evicted.
    narrowed: Cache<NarrowedKey, Narrowed, quick_cache::UnitWeighter, RandomState>,
    /// The policies over it, if there are any.
    policies: Option<Arc<ServedPolicies>>,
    /// The versions in addition to the live ones, whose listings follow all others.
    versions: Vec<ServedVersion>,
    pins: Arc<AgentPins>,
    /// The checks of arguments, which outlive the catalogue: unchanged tools keep theirs.
    checks: KeptChecks,
}

/// The place of the endpoint's listing, and the digest of the access.
type NarrowedKey = (usize, [u8; 32]);
/// A narrowed listing; `None` if no part of the endpoint is visible.
type Narrowed = Option<Arc<CatalogueListing>>;

/// The bound on kept narrowed listings.
const NARROWED_MAX: usize = 4096;

impl ToolCatalogue {
    /// Makes a catalogue from compiled contracts, whose tool names the gate has found unique, and from the views over them.
    /// Unchanged tools of `previous` are carried over, with their prepared parts.
    pub fn new(
        contracts: &[Arc<CompiledContract>],
        views: &BTreeMap<String, ViewConfig>,
        previous: Option<&ToolCatalogue>,
    ) -> Self {
        let checks = previous.map_or_else(KeptChecks::default, |previous| previous.checks.clone());
        let mut tools: HashMap<Box<str>, Arc<CatalogueTool>, RandomState> = HashMap::default();
        let mut by_contract = HashMap::new();
        let (mut every, mut listings) = (Vec::new(), vec![Arc::default()]);
        let items: Vec<CatalogueItems> = contracts
            .iter()
            .map(|contract| CatalogueItems::prepare(contract, previous))
            .collect();
        for (contract, items) in contracts.iter().zip(&items) {
            let sources = HostCollections::new(contract);
            let prepare =
                |tool| CatalogueTool::prepare(contract, tool, &sources, &checks, previous);
            let own: Vec<Arc<CatalogueTool>> = contract.tools.iter().filter_map(prepare).collect();
            by_contract.insert(contract.name.as_str().into(), listings.len());
            listings.push(Arc::new(CatalogueListing::new(
                ServerInfo::from_contract(contract),
                own.clone(),
                &[items],
            )));
            for tool in own {
                // Of two tools with the same name, the first counts, as in the listings.
                tools
                    .entry(tool.name.as_ref().into())
                    .or_insert_with(|| tool.clone());
                every.push(tool);
            }
        }
        let mut served = BTreeMap::new();
        let all: Vec<&CatalogueItems> = items.iter().collect();
        for (name, settings) in views {
            let own: Vec<_> = every
                .iter()
                .filter(|tool| view::selects(settings, tool))
                .cloned()
                .collect();
            served.insert(
                name.clone(),
                ServedView::new(settings.clone(), listings.len(), &own),
            );
            let server = ServerInfo {
                name: name.clone(),
                ..touched(contracts, &own, &[])
            };
            listings.push(Arc::new(view::listing(
                settings, server, own, &all, contracts,
            )));
        }
        listings[0] = Arc::new(CatalogueListing::new(
            ServerInfo::catalogue(contracts.iter().map(Arc::as_ref)),
            every,
            &all,
        ));
        let contracts = contracts.to_vec();
        Self {
            tools,
            contracts,
            items,
            listings,
            by_contract,
            views: served,
            narrowed: narrowed(),
            policies: None,
            versions: Vec::new(),
            pins: Arc::default(),
            checks,
        }
    }

    /// Returns the same catalogue under policies.
    pub fn under(self, policies: Option<ServedPolicies>) -> Self {
        Self {
            policies: policies.map(Arc::new),
            ..self
        }
    }

    /// Returns the policies over it.
    pub fn policies(&self) -> Option<&Arc<ServedPolicies>> {
        self.policies.as_ref()
    }

    /// Returns `true` if these are the policies over it.
    pub fn has_policies(&self, judge: Option<&Arc<PolicyJudge>>, mode: PolicyMode) -> bool {
        match (&self.policies, judge) {
            (None, None) => true,
            (Some(own), Some(judge)) => own.are(judge, mode),
            _ => false,
        }
    }

    /// Returns `true` if the policies must show the same part of it as those over `other` show of that.
    pub fn shows_as(&self, other: &Self) -> bool {
        match (&self.policies, &other.policies) {
            (None, None) => true,
            (Some(own), Some(others)) => own.are(others.judge(), others.mode()),
            _ => false,
        }
    }

    /// Returns the tool of that name, if the endpoint serves it to that viewer.
    pub fn tool(
        &self,
        endpoint: &CatalogueEndpoint,
        name: &str,
        viewer: CatalogueViewer<'_>,
    ) -> Option<&Arc<CatalogueTool>> {
        let tool = match self.pinned(viewer) {
            None => self.live_tool(endpoint, name)?,
            Some(pinned) => self.pinned_tool(endpoint, name, pinned)?,
        };
        self.shows(tool, viewer).then_some(tool)
    }

    /// Returns the tool that an endpoint serves to callers without a pinned version.
    fn live_tool(&self, endpoint: &CatalogueEndpoint, name: &str) -> Option<&Arc<CatalogueTool>> {
        match endpoint {
            CatalogueEndpoint::All => self.tools.get(name),
            // Another contract may have one of the same name.
            CatalogueEndpoint::Contract(contract) => match self.tools.get(name)? {
                tool if tool.contract == *contract => Some(tool),
                _ => self.listings[*self.by_contract.get(&**contract)?]
                    .tools
                    .find(name),
            },
            CatalogueEndpoint::View(view) => self.views.get(&**view)?.tool(name),
            CatalogueEndpoint::Version(contract, major) => {
                self.version_tool(contract, *major, name)
            }
        }
    }

    fn shows(&self, tool: &Arc<CatalogueTool>, viewer: CatalogueViewer<'_>) -> bool {
        viewer.access().allows(&tool.contract, &tool.name)
            && match (&self.policies, viewer) {
                (Some(policies), CatalogueViewer::Caller(caller)) => match tool.judged() {
                    Some(judged) => policies.shows(&policies.class(caller), judged),
                    None => policies.mode() == PolicyMode::Audit,
                },
                _ => true,
            }
    }

    /// Returns `true` if a tool is served but hidden from the viewer.
    pub fn is_hidden(&self, contract: &str, tool: &str, viewer: CatalogueViewer<'_>) -> bool {
        let endpoint = CatalogueEndpoint::Contract(contract.into());
        let served = self.tool(&endpoint, tool, CatalogueViewer::EVERYTHING);
        served.is_some_and(|tool| !self.shows(tool, viewer))
    }

    /// Returns the decisions of the policies about the viewer, if any apply to it.
    fn class(&self, viewer: CatalogueViewer<'_>) -> Option<(&ServedPolicies, Arc<ClassVerdicts>)> {
        match (&self.policies, viewer) {
            (Some(policies), CatalogueViewer::Caller(caller)) => {
                Some((policies, policies.class(caller)))
            }
            _ => None,
        }
    }

    /// Returns the arguments of a tool that clients of an endpoint repeat in headers.
    pub fn mirrored<'t>(
        &self,
        endpoint: &CatalogueEndpoint,
        tool: &'t CatalogueTool,
    ) -> &'t [MirroredArgument] {
        match endpoint {
            CatalogueEndpoint::All
            | CatalogueEndpoint::Contract(_)
            | CatalogueEndpoint::Version(..) => &tool.mirrored,
            CatalogueEndpoint::View(view) => self
                .views
                .get(&**view)
                .map_or(&[], |view| view.mirrored(tool)),
        }
    }

    /// Returns whether results at an endpoint contain the receipt of their call. `usually` is the default.
    pub fn has_receipts(&self, endpoint: &CatalogueEndpoint, usually: bool) -> bool {
        let CatalogueEndpoint::View(view) = endpoint else {
            return usually;
        };
        self.views.get(&**view).map_or(usually, |view| {
            // Clients with a profile mostly show the whole result to the model, which has no use for a receipt.
            let by_default = usually && view.settings.profile.is_none();
            view.settings.receipts.unwrap_or(by_default)
        })
    }

    /// Returns what an endpoint lists to that viewer; `None` if there is no such endpoint for it.
    pub fn listing(
        &self,
        endpoint: &CatalogueEndpoint,
        viewer: CatalogueViewer<'_>,
    ) -> Option<Arc<CatalogueListing>> {
        let place = match endpoint {
            CatalogueEndpoint::All => 0,
            // A made-up name is not kept.
            CatalogueEndpoint::Contract(contract) => *self.by_contract.get(&**contract)?,
            CatalogueEndpoint::View(view) => self.views.get(&**view)?.place,
            CatalogueEndpoint::Version(contract, major) => self.version_place(contract, *major)?,
        };
        let pinned = match endpoint {
            CatalogueEndpoint::Version(..) => None,
            _ => self.pinned(viewer),
        };
        let digest = match (self.view_digest(viewer), pinned) {
            (None, None) if !self.is_version(place) || self.class(viewer).is_none() => {
                return Some(self.listings[place].clone());
            }
            // Policies may hide tools that the live version does not have.
            (None, None) => [0; 32],
            (Some(digest), None) => digest,
            (seen, Some(pinned)) => {
                let both = Sha256::new_with_prefix(pinned.digest);
                both.chain_update(seen.unwrap_or_default())
                    .finalize()
                    .into()
            }
        };
        let prepare =
            || Ok::<Narrowed, Infallible>(self.narrow(place, viewer, pinned).map(Arc::new));
        let Ok(narrowed) = self.narrowed.get_or_insert_with(&(place, digest), prepare);
        narrowed
    }

    /// Returns a digest of the part of the catalogue that the viewer sees: viewers of the same part have the same digest. `None`
    /// for everything.
    fn view_digest(&self, viewer: CatalogueViewer<'_>) -> Option<[u8; 32]> {
        let by_grant = viewer.access().digest().copied();
        let by_policy = self.class(viewer).and_then(|(policies, class)| {
            let contracts = self.contracts.iter().map(|contract| contract.name.as_str());
            policies.digest(&class, self.every_tool(), contracts)
        });
        match (by_grant, by_policy) {
            (grant, None) => grant,
            (grant, Some(policy)) => {
                let both = Sha256::new_with_prefix(policy).chain_update(grant.unwrap_or_default());
                Some(both.finalize().into())
            }
        }
    }

    /// Returns every tool, including those whose name another contract also has.
    fn every_tool(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        let own = &self.listings[1..=self.contracts.len()];
        own.iter().flat_map(|listing| listing.tools.entries())
    }

    /// Returns the listing of an endpoint whose tools are found by search; `None` for any other, at the cost of a lookup.
    pub fn searching(
        &self,
        endpoint: &CatalogueEndpoint,
        viewer: CatalogueViewer<'_>,
    ) -> Option<Arc<CatalogueListing>> {
        let CatalogueEndpoint::View(view) = endpoint else {
            return None;
        };
        self.views
            .get(&**view)
            .filter(|view| view.settings.search)
            .and_then(|_| self.listing(endpoint, viewer))
    }

    /// Narrows a listing. Nothing in the result shows that there is more: versions and endpoints are those of the visible
    /// part.
    fn narrow(
        &self,
        place: usize,
        viewer: CatalogueViewer<'_>,
        pinned: Option<&PinnedVersions>,
    ) -> Option<CatalogueListing> {
        let (whole, access) = (&self.listings[place], viewer.access());
        let class = self.class(viewer);
        let mut seen = match pinned {
            None => whole.tools.entries().to_vec(),
            Some(pinned) => self.pinned_entries(place, pinned),
        };
        seen.retain(|tool| self.shows(tool, viewer));
        let is_view = place > self.contracts.len() && !self.is_version(place);
        let live_place = self.live_place(place);
        let is_here = |index: usize| place == 0 || is_view || live_place == index + 1;
        let contracts = self.contracts_for(pinned);
        let named = |index: usize| {
            let name = &self.contracts[index].name;
            access.allows_contract(name)
                && class
                    .as_ref()
                    .is_none_or(|(policies, class)| policies.shows_contract(class, name))
        };
        let items = self
            .items
            .iter()
            .enumerate()
            .filter(|(index, _)| is_here(*index) && named(*index));
        let items: Vec<&CatalogueItems> = items.map(|(_, items)| items).collect();
        let server = match place {
            0 => touched(&contracts, &seen, &items),
            _ if seen.is_empty()
                && (is_view || items.iter().all(|items| items.source.is_none())) =>
            {
                return None;
            }
            _ if is_view => {
                let version = touched(&contracts, &seen, &[]).version;
                let server = ServerInfo {
                    version,
                    ..whole.server.clone()
                };
                let view = self.views.values().find(|view| view.place == place)?;
                return Some(view::listing(
                    &view.settings,
                    server,
                    seen,
                    &items,
                    &self.contracts,
                ));
            }
            _ => match contracts.get(live_place - 1) {
                Some(contract) if pinned.is_some() => ServerInfo::from_contract(contract),
                _ => whole.server.clone(),
            },
        };
        Some(CatalogueListing::new(server, seen, &items))
    }

    /// Returns the items of a contract, if it has any.
    fn source(&self, contract: &str) -> Option<&Arc<ItemSource>> {
        self.listings[0].source(contract)
    }

    /// Returns the meters that count calls of tools and requests of items.
    pub fn meters(&self) -> impl Iterator<Item = &ToolMeter> {
        let sources = self.items.iter().filter_map(|items| items.source.as_ref());
        let kept = self
            .versions
            .iter()
            .flat_map(|version| version.tools.values());
        self.tools
            .values()
            .chain(kept)
            .map(|tool| &tool.meter)
            .chain(sources.flat_map(|source| &source.meters))
    }

    /// Returns the live version of every tool.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        self.tools.values()
    }

    /// Returns digests that are equal exactly if every client of every endpoint sees the same lists: of tools, of
    /// prompts, of resources and templates.
    pub fn digests(&self) -> [[u8; 32]; 3] {
        let [tools, prompts, resources] = self.listings[0].digests();
        let mut of_views = Sha256::new_with_prefix(tools);
        for (name, view) in &self.views {
            of_views.update(name);
            of_views.update(self.listings[view.place].digests()[0]);
        }
        for version in &self.versions {
            of_views.update(self.listings[version.place].digests()[0]);
        }
        self.pins.add_to(&mut of_views);
        [of_views.finalize().into(), prompts, resources]
    }

    /// Returns `true` if its views are these.
    pub fn has_views(&self, views: &BTreeMap<String, ViewConfig>) -> bool {
        let own = self.views.iter().map(|(name, view)| (name, &view.settings));
        own.eq(views)
    }

    /// Returns the views without any published tool.
    pub fn empty_views(&self) -> impl Iterator<Item = &str> {
        let is_empty = |view: &ServedView| self.listings[view.place].tools.is_empty();
        let empty = self.views.iter().filter(move |(_, view)| is_empty(view));
        empty.map(|(name, _)| name.as_str())
    }

    /// Returns the number of tools, without kept versions.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns `true` if no tool is published.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

impl Default for ToolCatalogue {
    fn default() -> Self {
        Self::new(&[], &BTreeMap::new(), None)
    }
}

fn narrowed() -> Cache<NarrowedKey, Narrowed, quick_cache::UnitWeighter, RandomState> {
    let (most, hasher) = (NARROWED_MAX, RandomState::new());
    Cache::with(
        most,
        most as u64,
        quick_cache::UnitWeighter,
        hasher,
        Default::default(),
    )
}

#[cfg(test)]
mod tests;
