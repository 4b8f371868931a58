//! What `tools/list` and `server/discover` answer for one endpoint, prepared.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use weir_contracts::{Contract, client::ClientProfile};

use super::{CatalogueTool, llms, search::Search};

/// How a tool is written down for one range of protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// 2026-07-28 and later.
    Modern,
    /// 2025-06-18 and 2025-11-25: title and outputSchema.
    Structured,
    /// 2025-03-26: annotations, but neither title nor outputSchema.
    Annotated,
    /// 2024-11-05: name, description and inputSchema.
    Plain,
}

/// One endpoint as a server of its own.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    pub name: String,
    pub title: Option<String>,
    /// Of `/mcp/<contract>` the contract's version, of `/mcp` the catalogue's.
    pub version: String,
    pub instructions: Option<String>,
}

#[derive(Default)]
pub struct Listing {
    pub server: ServerInfo,
    /// In name order, by bytes.
    tools: Vec<Arc<CatalogueTool>>,
    /// The clients that its schemas are written for.
    profile: Option<ClientProfile>,
    /// It lists two tools that search the others.
    search: Option<Search>,
    /// By `ListShape`; written on first use.
    prepared: [OnceLock<Prepared>; 4],
    digest: OnceLock<[u8; 32]>,
    llms: OnceLock<String>,
}

/// The tools' JSON objects joined by commas, in name order.
struct Prepared {
    bytes: String,
    spans: Vec<Range<usize>>,
}

/// A slice of the prepared bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// JSON objects joined by commas; the brackets are the caller's.
    pub tools: &'a str,
    pub next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one of this list")]
pub struct BadCursor;

impl ServerInfo {
    pub(super) fn of(contract: &Contract) -> Self {
        Self {
            name: contract.name.clone(),
            title: contract.title.clone(),
            version: contract.version.to_string(),
            instructions: contract.instructions.clone().or_else(|| contract.description.clone()),
        }
    }

    /// The catalogue's version names the set of contract versions: it moves whenever one of them does.
    pub(super) fn catalogue<'a>(contracts: impl Iterator<Item = &'a Contract>) -> Self {
        let mut digest = Sha256::new();
        for contract in contracts {
            digest.update(contract.name.as_bytes());
            digest.update([0]);
            digest.update(contract.version.to_string().as_bytes());
            digest.update([0]);
        }
        let digest = digest.finalize();
        let short = hex::encode(&digest[..4]);
        Self {
            name: "weir".to_owned(),
            title: None,
            version: format!("{}+{short}", env!("CARGO_PKG_VERSION")),
            instructions: None,
        }
    }
}

impl Listing {
    pub(super) fn new(server: ServerInfo, mut tools: Vec<Arc<CatalogueTool>>) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { server, tools, ..Self::default() }
    }

    /// Written for these clients.
    pub(super) fn for_clients(self, profile: Option<ClientProfile>) -> Self {
        Self { profile, ..self }
    }

    /// With the two tools that search the others. `read_only`: whether all of those only read.
    pub(super) fn with_search(self, read_only: bool) -> Self {
        Self { search: Some(Search::new(&self.tools, read_only)), ..self }
    }

    /// The search in its tools, where it lists that instead of them.
    pub fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// One of its tools, by number, with its name, its description and its input schema.
    pub(super) fn brief(&self, number: usize) -> &str {
        let prepared = self.prepared(ListShape::Plain);
        &prepared.bytes[prepared.spans[number].clone()]
    }

    fn prepared(&self, shape: ListShape) -> &Prepared {
        self.prepared[shape as usize].get_or_init(|| Prepared::write(&self.tools, shape, self.profile))
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub fn tools(&self) -> &[Arc<CatalogueTool>] {
        &self.tools
    }

    /// At most `size` tools after `cursor`. The cursor is the last name seen, so it survives a swap of the snapshot.
    pub fn page(&self, shape: ListShape, cursor: Option<&str>, size: usize) -> Result<Page<'_>, BadCursor> {
        if let Some(search) = &self.search {
            return match cursor {
                None => Ok(Page { tools: search.listed(shape), next: None }),
                Some(_) => Err(BadCursor),
            };
        }
        let prepared = self.prepared(shape);
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
                let last = std::str::from_utf8(&last).map_err(|_| BadCursor)?;
                if !weir_contracts::name::is_tool(last) {
                    return Err(BadCursor);
                }
                self.tools.partition_point(|tool| *tool.name <= *last)
            }
        };
        let end = self.tools.len().min(start.saturating_add(size.max(1)));
        if start >= end {
            return Ok(Page { tools: "", next: None });
        }
        let tools = &prepared.bytes[prepared.spans[start].start..prepared.spans[end - 1].end];
        let next = (end < self.tools.len()).then(|| URL_SAFE_NO_PAD.encode(self.tools[end - 1].name.as_bytes()));
        Ok(Page { tools, next })
    }

    /// The list in words, as `llms.txt`.
    pub fn llms(&self) -> &str {
        self.llms.get_or_init(|| llms::write(&self.server, self.tools.iter().map(Arc::as_ref)))
    }

    /// Equal exactly when every client sees the same list.
    pub fn digest(&self) -> [u8; 32] {
        *self.digest.get_or_init(|| {
            if let Some(search) = &self.search {
                return Sha256::digest(search.listed(ListShape::Modern)).into();
            }
            let mut digest = Sha256::new();
            for tool in &self.tools {
                digest.update(tool.digest());
                if let Some(lowered) = self.profile.and_then(|profile| tool.lowered(profile)) {
                    digest.update(lowered.input.as_json());
                }
            }
            digest.finalize().into()
        })
    }
}

impl Prepared {
    fn write(tools: &[Arc<CatalogueTool>], shape: ListShape, profile: Option<ClientProfile>) -> Self {
        let mut bytes = String::new();
        let mut spans = Vec::with_capacity(tools.len());
        for tool in tools {
            if !bytes.is_empty() {
                bytes.push(',');
            }
            let start = bytes.len();
            tool.write(shape, profile, &mut bytes);
            spans.push(start..bytes.len());
        }
        Self { bytes, spans }
    }
}
