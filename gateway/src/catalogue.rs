//! All published tools: name → tool, and the prepared bytes of every listing.

mod listing;
mod tool;

use std::{collections::HashMap, sync::Arc};

pub use listing::{BadCursor, ListShape, Listing, Page, ServerInfo};
pub use tool::CatalogueTool;
use tool::Sources;
use weir_contracts::Contract;

/// Built once per snapshot; calls and listings only read it.
#[derive(Default)]
pub struct Catalogue {
    tools: HashMap<Box<str>, Arc<CatalogueTool>>,
    /// `/mcp`: everything.
    all: Listing,
    /// `/mcp/<contract>`.
    by_contract: HashMap<Box<str>, Listing>,
}

impl Catalogue {
    /// From compiled contracts, whose tool names the registry has found unique. Tools of `previous` that did not
    /// change are carried over, with what they had prepared.
    pub fn new(contracts: &[Arc<Contract>], previous: Option<&Catalogue>) -> Self {
        let mut tools = HashMap::new();
        let mut by_contract = HashMap::new();
        let mut every = Vec::new();
        for contract in contracts {
            let sources = Sources::of(contract);
            let own: Vec<Arc<CatalogueTool>> =
                contract.tools.iter().map(|tool| CatalogueTool::prepare(contract, tool, &sources, previous)).collect();
            by_contract.insert(contract.name.as_str().into(), Listing::new(ServerInfo::of(contract), own.clone()));
            for tool in own {
                tools.insert(tool.name.as_ref().into(), tool.clone());
                every.push(tool);
            }
        }
        Self { tools, all: Listing::new(ServerInfo::catalogue(contracts), every), by_contract }
    }

    /// The tool of that name, if the endpoint (`None`: `/mcp`) serves it.
    pub fn tool(&self, endpoint: Option<&str>, name: &str) -> Option<&Arc<CatalogueTool>> {
        let tool = self.tools.get(name)?;
        endpoint.is_none_or(|contract| *tool.contract == *contract).then_some(tool)
    }

    /// What an endpoint lists; `None` when there is no such endpoint.
    pub fn listing(&self, endpoint: Option<&str>) -> Option<&Listing> {
        match endpoint {
            None => Some(&self.all),
            Some(contract) => self.by_contract.get(contract),
        }
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
