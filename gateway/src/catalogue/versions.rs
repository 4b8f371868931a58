//! The catalogue for callers that are pinned to a version or name one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use ahash::RandomState;
use sha2::{Digest as _, Sha256};
use weir_contracts::CompiledContract;

use super::{
    CatalogueEndpoint, CatalogueListing, CatalogueTool, CatalogueViewer, KeptContract,
    ServedVersion, ServerInfo, ToolCatalogue, item::CatalogueItems, view,
};
use crate::identity::{CallerIdentity, now_ms};

/// The major versions that agents are pinned to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentPins {
    by_agent: HashMap<Box<str>, PinnedVersions, RandomState>,
}

/// The versions to which one agent is pinned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PinnedVersions {
    majors: BTreeMap<Box<str>, u32>,
    pub(super) digest: [u8; 32],
}

impl AgentPins {
    /// Collects pins: agent, contract, major version.
    pub fn new<'p>(pins: impl Iterator<Item = (&'p str, &'p str, u32)>) -> Self {
        let mut majors: BTreeMap<&str, BTreeMap<Box<str>, u32>> = BTreeMap::new();
        for (agent, contract, major) in pins {
            majors
                .entry(agent)
                .or_default()
                .insert(contract.into(), major);
        }
        let of_agent = |(agent, majors): (&str, BTreeMap<Box<str>, u32>)| {
            let text = serde_json::to_vec(&majors).expect("plain data");
            let digest = Sha256::digest(text).into();
            (agent.into(), PinnedVersions { majors, digest })
        };
        Self {
            by_agent: majors.into_iter().map(of_agent).collect(),
        }
    }

    pub(super) fn find(&self, caller: &CallerIdentity) -> Option<&PinnedVersions> {
        match self.by_agent.is_empty() {
            true => None,
            false => self.by_agent.get(&*caller.agent),
        }
    }

    pub(super) fn add_to(&self, digest: &mut Sha256) {
        let mut each: Vec<_> = self.by_agent.iter().collect();
        each.sort_by_key(|(agent, _)| *agent);
        for (agent, pinned) in each {
            digest.update(agent.as_bytes());
            digest.update(pinned.digest);
        }
    }
}

impl PinnedVersions {
    pub(super) fn major(&self, contract: &str) -> Option<u32> {
        self.majors.get(contract).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        self.majors.iter().map(|(name, major)| (&**name, *major))
    }
}

impl ToolCatalogue {
    /// Returns the same catalogue with kept versions in addition to the live ones, and with the pins of agents.
    pub fn beside(mut self, kept: &[Arc<KeptContract>], pins: Arc<AgentPins>) -> Self {
        let now = now_ms();
        for kept in kept {
            let Some(live) = self.by_contract.get(kept.contract.name.as_str()) else {
                continue;
            };
            // A version with the same major version as the live one cannot be served in addition to it.
            if self.contracts[live - 1].version.major == kept.contract.version.major {
                continue;
            }
            let place = self.listings.len();
            let version = ServedVersion::new(kept, &self.listings[*live], place, &self.checks, now);
            let (server, tools) = version.listed();
            let items = [&self.items[live - 1]];
            self.listings
                .push(Arc::new(CatalogueListing::new(server, tools, &items)));
            self.versions.push(version);
        }
        self.pins = pins;
        self
    }

    /// Returns `true` if these are the kept versions and the pins at this time.
    pub fn is_beside(&self, kept: &[Arc<KeptContract>], pins: &Arc<AgentPins>) -> bool {
        let now = now_ms();
        let own = |kept: &&Arc<KeptContract>| {
            let live = self.by_contract.get(kept.contract.name.as_str());
            let live = live.map(|live| self.contracts[live - 1].version.major);
            live.is_some_and(|live| live != kept.contract.version.major)
        };
        let kept: Vec<_> = kept.iter().filter(own).collect();
        let is_same = |(own, kept): (&ServedVersion, &Arc<KeptContract>)| {
            Arc::ptr_eq(&own.kept, kept) && own.has_ended == kept.has_ended(now)
        };
        Arc::ptr_eq(&self.pins, pins)
            && self.versions.len() == kept.len()
            && self.versions.iter().zip(kept).all(is_same)
    }

    /// Returns when the next of its versions ends.
    pub fn next_sunset_ms(&self) -> Option<i64> {
        let going_on = self.versions.iter().filter(|version| !version.has_ended);
        going_on.filter_map(|version| version.kept.sunset_ms).min()
    }

    /// Returns the kept versions that have not ended.
    pub fn kept(&self) -> impl Iterator<Item = &KeptContract> {
        let going_on = self.versions.iter().filter(|version| !version.has_ended);
        going_on.map(|version| &*version.kept)
    }

    /// Returns the tools of kept versions that have their own binding, each with its version.
    pub fn own_bindings(&self) -> impl Iterator<Item = (&Arc<CatalogueTool>, &CompiledContract)> {
        let going_on = self.versions.iter().filter(|version| !version.has_ended);
        let own = going_on.filter(|version| version.kept.shim.is_none());
        own.flat_map(|version| {
            let tools = version.tools.values();
            tools.map(|tool| (tool, &*version.kept.contract))
        })
    }

    /// Returns the version to which a caller is pinned but which is no longer served, if it asks for a tool of that contract.
    pub fn gone_version(
        &self,
        endpoint: &CatalogueEndpoint,
        name: &str,
        viewer: CatalogueViewer<'_>,
    ) -> Option<(&str, u32)> {
        let live = self.live_tool(endpoint, name)?;
        let pinned = self.pinned(viewer)?;
        let (contract, major) = pinned.all().find(|(name, _)| **name == *live.contract)?;
        let is_gone = self.version_place(contract, major).is_none();
        (is_gone && self.shows(live, viewer)).then_some((contract, major))
    }

    /// Returns `true` if a tool is served at the endpoint, to this viewer or to others.
    pub fn is_served(
        &self,
        endpoint: &CatalogueEndpoint,
        name: &str,
        viewer: CatalogueViewer<'_>,
    ) -> bool {
        // Both are always searched, so that hidden names take no longer.
        let pinned = self.pinned(viewer);
        let pinned = pinned.and_then(|pinned| self.pinned_tool(endpoint, name, pinned));
        self.live_tool(endpoint, name).or(pinned).is_some()
    }

    pub(super) fn pinned(&self, viewer: CatalogueViewer<'_>) -> Option<&PinnedVersions> {
        match viewer {
            CatalogueViewer::Caller(caller) => self.pins.find(caller),
            CatalogueViewer::Operator(_) => None,
        }
    }

    pub(super) fn pinned_tool(
        &self,
        endpoint: &CatalogueEndpoint,
        name: &str,
        pinned: &PinnedVersions,
    ) -> Option<&Arc<CatalogueTool>> {
        if let CatalogueEndpoint::Version(..) = endpoint {
            return self.live_tool(endpoint, name);
        }
        let of_pins = |has_ended: bool| {
            let versions = pinned.all();
            let versions = versions.filter_map(|(contract, major)| self.version(contract, major));
            let mut versions = versions.filter(move |version| version.has_ended == has_ended);
            versions.find_map(|version| {
                let tool = version.tools.get(name)?;
                self.is_at(endpoint, tool).then_some(tool)
            })
        };
        let live = || {
            let live = self.live_tool(endpoint, name)?;
            let major = pinned.major(&live.contract);
            major
                .is_none_or(|major| major == live.version.major)
                .then_some(live)
        };
        // The names of an ended version may belong to others by now.
        of_pins(false).or_else(live).or_else(|| of_pins(true))
    }

    fn is_at(&self, endpoint: &CatalogueEndpoint, tool: &CatalogueTool) -> bool {
        match endpoint {
            CatalogueEndpoint::All | CatalogueEndpoint::Version(..) => true,
            CatalogueEndpoint::Contract(contract) => *tool.contract == **contract,
            CatalogueEndpoint::View(name) => self
                .views
                .get(&**name)
                .is_some_and(|served| view::selects(&served.settings, tool)),
        }
    }

    /// Returns the entries of a listing for callers with pinned versions.
    pub(super) fn pinned_entries(
        &self,
        place: usize,
        pinned: &PinnedVersions,
    ) -> Vec<Arc<CatalogueTool>> {
        let served = self.views.values().find(|served| served.place == place);
        let is_here = |index: usize| place == 0 || served.is_some() || place == index + 1;
        let mut entries = Vec::new();
        for (index, contract) in self.contracts.iter().enumerate() {
            if !is_here(index) {
                continue;
            }
            let place = match pinned.major(&contract.name) {
                None => Some(index + 1),
                Some(major) => self.version_place(&contract.name, major),
            };
            let of_version = place.map(|place| self.listings[place].tools.entries());
            entries.extend(of_version.into_iter().flatten().cloned());
        }
        if let Some(served) = served {
            entries.retain(|tool| view::selects(&served.settings, tool));
        }
        entries
    }

    /// Returns the contracts, each in its pinned version.
    pub(super) fn contracts_for(
        &self,
        pinned: Option<&PinnedVersions>,
    ) -> Vec<Arc<CompiledContract>> {
        let chosen = |contract: &Arc<CompiledContract>| {
            let major = pinned?.major(&contract.name)?;
            let version = self.version(&contract.name, major)?;
            Some(version.kept.contract.clone())
        };
        let contracts = self.contracts.iter();
        contracts
            .map(|contract| chosen(contract).unwrap_or_else(|| contract.clone()))
            .collect()
    }

    fn version(&self, contract: &str, major: u32) -> Option<&ServedVersion> {
        self.versions.iter().find(|version| {
            let own = &version.kept.contract;
            own.version.major == major && own.name == contract
        })
    }

    /// Returns the place of the listing of a version, which may be the live one.
    pub(super) fn version_place(&self, contract: &str, major: u32) -> Option<usize> {
        let live = *self.by_contract.get(contract)?;
        if self.contracts[live - 1].version.major == major {
            return Some(live);
        }
        self.version(contract, major).map(|version| version.place)
    }

    pub(super) fn version_tool(
        &self,
        contract: &str,
        major: u32,
        name: &str,
    ) -> Option<&Arc<CatalogueTool>> {
        let live = *self.by_contract.get(contract)?;
        if self.contracts[live - 1].version.major == major {
            return self.listings[live].tools.find(name);
        }
        self.version(contract, major)?.tools.get(name)
    }

    pub(super) fn is_version(&self, place: usize) -> bool {
        self.versions.iter().any(|version| version.place == place)
    }

    /// Returns the place of the live version for the place of a kept one; other places unchanged.
    pub(super) fn live_place(&self, place: usize) -> usize {
        let version = self.versions.iter().find(|version| version.place == place);
        let live = version.and_then(|version| {
            self.by_contract
                .get(version.kept.contract.name.as_str())
                .copied()
        });
        live.unwrap_or(place)
    }
}

/// Returns a server of the contracts that have one of these tools or items.
pub(super) fn touched(
    contracts: &[Arc<CompiledContract>],
    tools: &[Arc<CatalogueTool>],
    items: &[&CatalogueItems],
) -> ServerInfo {
    let have_items = items
        .iter()
        .filter_map(|items| items.source.as_ref())
        .map(|source| &*source.contract);
    let touched: HashSet<&str> = tools
        .iter()
        .map(|tool| &*tool.contract)
        .chain(have_items)
        .collect();
    let touched = contracts
        .iter()
        .filter(|contract| touched.contains(contract.name.as_str()));
    ServerInfo::catalogue(touched.map(Arc::as_ref))
}
