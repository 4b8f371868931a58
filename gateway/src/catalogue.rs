//! All published tools: name → tool, and the prepared bytes of every listing.

mod code;
mod listing;
mod llms;
mod target;
mod tool;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ahash::RandomState;
pub use code::CodeTool;
pub use listing::{BadCursor, ListShape, Listing, Page, ServerInfo};
use target::Sources;
pub use target::{BoundCollection, Target};
pub use tool::CatalogueTool;
use weir_contracts::Contract;

use crate::identity::Access;

/// Built once per snapshot; calls and listings only read it.
#[derive(Default)]
pub struct Catalogue {
    tools: HashMap<Box<str>, Arc<CatalogueTool>, RandomState>,
    contracts: Vec<Arc<Contract>>,
    /// `/mcp`: everything.
    all: Arc<Listing>,
    /// `/mcp/<contract>`.
    by_contract: HashMap<Box<str>, Arc<Listing>>,
    /// What agents with narrower access see: prepared once for each distinct access, however many agents have it.
    views: Mutex<HashMap<(Endpoint, Access), View>>,
}

/// `None`: `/mcp`.
type Endpoint = Option<Box<str>>;
/// `None`: nothing of the endpoint is seen.
type View = Option<Arc<Listing>>;

/// Views kept; beyond it they are prepared anew.
const VIEWS_MAX: usize = 4096;

impl Catalogue {
    /// From compiled contracts, whose tool names the registry has found unique. Tools of `previous` that did not
    /// change are carried over, with what they had prepared.
    pub fn new(contracts: &[Arc<Contract>], previous: Option<&Catalogue>) -> Self {
        let mut tools = HashMap::default();
        let mut by_contract = HashMap::new();
        let mut every = Vec::new();
        for contract in contracts {
            let sources = Sources::of(contract);
            let prepared =
                contract.tools.iter().filter_map(|tool| CatalogueTool::prepare(contract, tool, &sources, previous));
            let own: Vec<Arc<CatalogueTool>> = prepared.collect();
            let listing = Arc::new(Listing::new(ServerInfo::of(contract), own.clone()));
            by_contract.insert(contract.name.as_str().into(), listing);
            for tool in own {
                tools.insert(tool.name.as_ref().into(), tool.clone());
                every.push(tool);
            }
        }
        let all = Arc::new(Listing::new(ServerInfo::catalogue(contracts.iter().map(Arc::as_ref)), every));
        Self { tools, contracts: contracts.to_vec(), all, by_contract, views: Mutex::default() }
    }

    /// The tool of that name, if the endpoint (`None`: `/mcp`) serves it to those with that access.
    pub fn tool(&self, endpoint: Option<&str>, name: &str, access: &Access) -> Option<&Arc<CatalogueTool>> {
        let tool = self.tools.get(name)?;
        let served = endpoint.is_none_or(|contract| *tool.contract == *contract);
        (served && access.allows(&tool.contract, &tool.name)).then_some(tool)
    }

    /// What an endpoint lists to those with that access; `None` when there is no such endpoint for them.
    pub fn listing(&self, endpoint: Option<&str>, access: &Access) -> Option<Arc<Listing>> {
        if access.is_everything() {
            return match endpoint {
                None => Some(self.all.clone()),
                Some(contract) => self.by_contract.get(contract).cloned(),
            };
        }
        if endpoint.is_some_and(|contract| !self.by_contract.contains_key(contract)) {
            return None; // a name that the caller made up is not kept
        }
        let key = (endpoint.map(Box::from), access.clone());
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&key) {
            return view.clone();
        }
        if views.len() >= VIEWS_MAX {
            views.clear();
        }
        let view = self.view(endpoint, access).map(Arc::new);
        views.entry(key).or_insert(view).clone()
    }

    /// Nothing of it says that there is more: versions and endpoints are those of what is seen.
    fn view(&self, endpoint: Option<&str>, access: &Access) -> Option<Listing> {
        let whole = match endpoint {
            None => &self.all,
            Some(contract) => self.by_contract.get(contract)?,
        };
        let seen: Vec<_> =
            whole.tools().iter().filter(|tool| access.allows(&tool.contract, &tool.name)).cloned().collect();
        let server = match endpoint {
            Some(_) if seen.is_empty() => return None,
            Some(_) => whole.server.clone(),
            None => {
                let touched = |contract: &&Arc<Contract>| seen.iter().any(|tool| *tool.contract == *contract.name);
                ServerInfo::catalogue(self.contracts.iter().filter(touched).map(Arc::as_ref))
            }
        };
        Some(Listing::new(server, seen))
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        self.tools.values()
    }

    /// Equal exactly when every client of every endpoint sees the same list.
    pub fn digest(&self) -> [u8; 32] {
        self.all.digest()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
