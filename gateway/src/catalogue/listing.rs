//! Prepares the answers of the lists and of `server/discover` for one endpoint.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    ops::Range,
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use weir_contracts::{CompiledContract, name};
use weir_schema::client::ClientProfile;

use super::{
    CatalogueTool, TaskSupport,
    item::{CatalogueItem, CatalogueItems, ItemSource, LinkedPage},
    llms,
    search::CatalogueSearch,
};

/// The form of a tool for one range of protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// 2026-07-28 and later, for a client that supports tasks: with the tools that may become one.
    Tasks,
    /// 2026-07-28 and later.
    Modern,
    /// 2025-06-18 and 2025-11-25: title and outputSchema.
    Structured,
    /// 2025-03-26: annotations, but neither title nor outputSchema.
    Annotated,
    /// 2024-11-05: name, description and inputSchema.
    Plain,
    /// In the answer of a search: title and outputSchema, without annotations and `_meta`.
    Found,
}

impl ListShape {
    pub const ALL: [Self; 6] = [
        Self::Tasks,
        Self::Modern,
        Self::Structured,
        Self::Annotated,
        Self::Plain,
        Self::Found,
    ];

    /// Returns `true` if an entry contains everything that its maker states.
    pub fn is_structured(self) -> bool {
        matches!(self, Self::Tasks | Self::Modern | Self::Structured)
    }
}

/// One endpoint as a separate server.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    pub name: String,
    pub title: Option<String>,
    /// The contract's version for `/mcp/<contract>`, and the catalogue's for `/mcp`.
    pub version: String,
    pub instructions: Option<String>,
}

/// The prepared lists of one endpoint for one class of callers.
#[derive(Default)]
pub struct CatalogueListing {
    pub server: ServerInfo,
    pub tools: ListingPages<CatalogueTool>,
    pub prompts: ListingPages<CatalogueItem>,
    pub resources: ListingPages<CatalogueItem>,
    pub templates: ListingPages<CatalogueItem>,
    /// Contracts that have items, in name order.
    sources: Vec<Arc<ItemSource>>,
    /// The names of the contracts with any listed entry, each once.
    contracts: Vec<Arc<str>>,
    /// Pages that can be read but are not listed, by the URIs for clients.
    pages: HashMap<Box<str>, LinkedPage>,
    /// The search, if it lists the two tools that search the others.
    search: Option<CatalogueSearch>,
    llms: OnceLock<String>,
    digests: OnceLock<[[u8; 32]; 3]>,
}

/// All entries of one kind that an endpoint lists, in the byte order of their keys.
pub struct ListingPages<T> {
    entries: Vec<Arc<T>>,
    clients: ListingClients,
    /// The prepared lists, by `ListShape`; they are written on first use.
    prepared: [OnceLock<PreparedListing>; ListShape::ALL.len()],
}

/// The clients for which a list is written.
#[derive(Clone, Default)]
pub struct ListingClients {
    /// The form of its schemas.
    pub profile: Option<ClientProfile>,
    /// Patterns of tools that these clients show a model immediately.
    pub always_load: Vec<String>,
}

impl ListingClients {
    /// Returns what Claude Code reads about a tool: the words by which a model finds it, and whether it is shown without a
    /// search.
    pub(super) fn meta(&self, name: &str, title: Option<&str>) -> Vec<(String, Value)> {
        if self.profile != Some(ClientProfile::Anthropic) {
            return Vec::new();
        }
        let is_loaded = self
            .always_load
            .iter()
            .any(|pattern| name::matches(pattern, name));
        let hint = title.map(|title| ("anthropic/searchHint".to_owned(), title.into()));
        let loaded = is_loaded.then(|| ("anthropic/alwaysLoad".to_owned(), true.into()));
        hint.into_iter().chain(loaded).collect()
    }
}

/// An entry of a list.
pub trait ListingEntry {
    /// Returns the key of the entry for clients, which is unique in a list.
    fn key(&self) -> &str;
    /// Returns a digest that is equal exactly if clients see the same entry, apart from forms that are lowered for some clients.
    fn digest(&self) -> &[u8; 32];
    /// Returns the form for these clients, if it differs.
    fn lowered(&self, _profile: ClientProfile) -> Option<&str> {
        None
    }
    fn write(&self, shape: ListShape, clients: &ListingClients, out: &mut String);
}

/// The JSON objects of entries joined by commas, in their order.
struct PreparedListing {
    bytes: String,
    spans: Vec<Range<usize>>,
}

/// A slice of the prepared bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct ListingPage<'a> {
    /// JSON objects joined by commas; the caller adds the brackets.
    pub entries: Cow<'a, str>,
    pub next: Option<String>,
}

/// The error for a cursor that is not from this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one of this list")]
pub struct BadCursor;

impl ServerInfo {
    pub(super) fn from_contract(contract: &CompiledContract) -> Self {
        Self {
            name: contract.name.clone(),
            title: contract.title.clone(),
            version: contract.version.to_string(),
            instructions: contract
                .instructions
                .clone()
                .or_else(|| contract.description.clone()),
        }
    }

    /// Makes the server of everything. The catalogue's version names the set of contract versions: it changes whenever one of
    /// them does.
    pub(super) fn catalogue<'a>(contracts: impl Iterator<Item = &'a CompiledContract>) -> Self {
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

impl CatalogueListing {
    pub(super) fn new(
        server: ServerInfo,
        tools: Vec<Arc<CatalogueTool>>,
        items: &[&CatalogueItems],
    ) -> Self {
        let every = |list: fn(&CatalogueItems) -> &Vec<Arc<CatalogueItem>>| {
            ListingPages::new(
                items
                    .iter()
                    .flat_map(|items| list(items))
                    .cloned()
                    .collect(),
            )
        };
        let mut sources: Vec<_> = items
            .iter()
            .filter_map(|items| items.source.clone())
            .collect();
        sources.sort_by(|a, b| a.contract.cmp(&b.contract));
        let tools = ListingPages::new(tools);
        let of_tools = tools.entries().iter().map(|tool| &tool.contract);
        let contracts: BTreeSet<_> = of_tools
            .chain(sources.iter().map(|source| &source.contract))
            .collect();
        let contracts = contracts.into_iter().cloned().collect();
        Self {
            server,
            tools,
            prompts: every(|items| &items.prompts),
            resources: every(|items| &items.resources),
            templates: every(|items| &items.templates),
            sources,
            contracts,
            pages: HashMap::new(),
            search: None,
            llms: OnceLock::new(),
            digests: OnceLock::new(),
        }
    }

    /// Lists the tools in the form for these clients.
    pub(super) fn for_clients(mut self, clients: ListingClients) -> Self {
        self.tools.clients = clients;
        self
    }

    /// Makes the pages readable that its tools link.
    pub(super) fn with_pages(self, items: &[&CatalogueItems]) -> Self {
        let named = items
            .iter()
            .filter_map(|items| Some((&items.source.as_ref()?.contract, *items)));
        let items: HashMap<&Arc<str>, &CatalogueItems> = named.collect();
        let linked = self
            .tools
            .entries()
            .iter()
            .flat_map(|tool| tool.pages().map(move |page| (&tool.contract, page)));
        let page = |(contract, uri): (&Arc<str>, &str)| {
            Some((uri.into(), items.get(contract)?.page(uri)?))
        };
        let pages = linked.filter_map(page).collect();
        Self { pages, ..self }
    }

    /// Returns a page that a tool links and no list has.
    pub fn page(&self, uri: &str) -> Option<&LinkedPage> {
        self.pages.get(uri)
    }

    /// Lists the two tools that search the others. `read_only`: whether all of the others only read.
    pub(super) fn with_search(self, contracts: &[Arc<CompiledContract>], read_only: bool) -> Self {
        Self {
            search: Some(CatalogueSearch::new(
                self.tools.entries(),
                contracts,
                read_only,
                self.tools.clients.profile,
            )),
            ..self
        }
    }

    /// Returns the search of its tools, if it lists the search instead of the tools.
    pub fn search(&self) -> Option<&CatalogueSearch> {
        self.search.as_ref()
    }

    /// Returns at most `size` of the tools that it lists, after `cursor`.
    pub fn tools_page(
        &self,
        shape: ListShape,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<ListingPage<'_>, BadCursor> {
        match (&self.search, cursor) {
            (None, _) => self.tools.page(shape, cursor, size),
            (Some(search), None) => Ok(ListingPage {
                entries: Cow::Borrowed(search.listed(shape)),
                next: None,
            }),
            (Some(_), Some(_)) => Err(BadCursor),
        }
    }

    /// Returns the items of a contract, if the endpoint has any.
    pub fn source(&self, contract: &str) -> Option<&Arc<ItemSource>> {
        let at = self
            .sources
            .binary_search_by(|source| (*source.contract).cmp(contract))
            .ok()?;
        Some(&self.sources[at])
    }

    /// Returns the items of every contract that has any here.
    pub fn sources(&self) -> &[Arc<ItemSource>] {
        &self.sources
    }

    /// Returns the sources whose resources are fetched from the server each time.
    pub fn live(&self) -> impl Iterator<Item = &Arc<ItemSource>> {
        self.sources
            .iter()
            .filter(|source| source.has_live_resources)
    }

    /// Returns the names of the contracts with any listed entry, in order.
    pub fn contracts(&self) -> &[Arc<str>] {
        &self.contracts
    }

    /// Returns `true` if at least one prompt is listed.
    pub fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Returns `true` if there are resources, templates or pages, or a server whose resources change on their own.
    pub fn has_resources(&self) -> bool {
        !self.resources.is_empty()
            || !self.templates.is_empty()
            || !self.pages.is_empty()
            || self.live().next().is_some()
    }

    /// Returns whether calls may log to their callers.
    pub fn has_log_messages(&self) -> bool {
        self.tools
            .entries()
            .iter()
            .any(|tool| tool.target.may_log())
            || !self.prompts.is_empty()
    }

    /// Returns whether calls may become tasks.
    pub fn has_tasks(&self) -> bool {
        self.tools
            .entries()
            .iter()
            .any(|tool| tool.tasks != TaskSupport::None)
    }

    /// Returns `true` if there are prompts or templates, which take arguments.
    pub fn takes_arguments(&self) -> bool {
        !self.prompts.is_empty() || !self.templates.is_empty()
    }

    /// Returns the list as text, for `llms.txt`.
    pub fn llms(&self) -> &str {
        self.llms
            .get_or_init(|| llms::write(&self.server, self.tools.entries().iter().map(Arc::as_ref)))
    }

    /// Returns digests that are equal exactly if every client sees the same lists: of tools, of prompts, of resources
    /// and templates.
    pub fn digests(&self) -> [[u8; 32]; 3] {
        *self.digests.get_or_init(|| {
            let mut resources = Sha256::new();
            for source in self.live() {
                resources.update(source.contract.as_bytes());
                resources.update([0]);
            }
            let resources = resources
                .chain_update(self.resources.digest())
                .chain_update(self.templates.digest());
            let tools = match &self.search {
                Some(search) => Sha256::digest(search.listed(ListShape::Modern)).into(),
                None => self.tools.digest(),
            };
            [tools, self.prompts.digest(), resources.finalize().into()]
        })
    }
}

impl<T: ListingEntry> ListingPages<T> {
    /// Sorts the entries. Of two with the same key the first counts.
    fn new(mut entries: Vec<Arc<T>>) -> Self {
        entries.sort_by(|a, b| a.key().cmp(b.key()));
        entries.dedup_by(|later, first| later.key() == first.key());
        Self {
            entries,
            ..Self::default()
        }
    }

    /// Returns the number of entries on all pages.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the list has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all entries, in the order of their keys.
    pub fn entries(&self) -> &[Arc<T>] {
        &self.entries
    }

    /// Returns the entry with this key: a name, a URI or a template.
    pub fn find(&self, key: &str) -> Option<&Arc<T>> {
        let at = self
            .entries
            .binary_search_by(|entry| entry.key().cmp(key))
            .ok()?;
        Some(&self.entries[at])
    }

    /// Writes one entry in the form that clients list, without keeping it.
    pub fn write_entry(&self, shape: ListShape, entry: &T) -> String {
        let mut written = String::new();
        entry.write(shape, &self.clients, &mut written);
        written
    }

    fn prepared(&self, shape: ListShape) -> &PreparedListing {
        self.prepared[shape as usize]
            .get_or_init(|| PreparedListing::write(&self.entries, shape, &self.clients))
    }

    /// Returns one entry, by number.
    pub(super) fn entry(&self, shape: ListShape, number: usize) -> &str {
        let prepared = self.prepared(shape);
        &prepared.bytes[prepared.spans[number].clone()]
    }

    /// Returns at most `size` entries after `cursor`. The cursor is the last key seen, so it survives a swap of the
    /// snapshot.
    pub fn page(
        &self,
        shape: ListShape,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<ListingPage<'_>, BadCursor> {
        let prepared = self.prepared(shape);
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = after(cursor)?;
                self.entries.partition_point(|entry| *entry.key() <= *last)
            }
        };
        let end = self.entries.len().min(start.saturating_add(size.max(1)));
        if start >= end {
            return Ok(ListingPage {
                entries: Cow::Borrowed(""),
                next: None,
            });
        }
        let entries = &prepared.bytes[prepared.spans[start].start..prepared.spans[end - 1].end];
        let next = (end < self.entries.len()).then(|| cursor_after(self.entries[end - 1].key()));
        Ok(ListingPage {
            entries: Cow::Borrowed(entries),
            next,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for entry in &self.entries {
            digest.update(entry.digest());
            digest.update(
                self.clients
                    .profile
                    .and_then(|profile| entry.lowered(profile))
                    .unwrap_or_default(),
            );
        }
        for pattern in &self.clients.always_load {
            digest.update(pattern);
            digest.update([0]);
        }
        digest.finalize().into()
    }
}

/// Returns the key of a cursor.
pub fn after(cursor: &str) -> Result<String, BadCursor> {
    let last = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
    let last = String::from_utf8(last).map_err(|_| BadCursor)?;
    match last.is_empty() || last.chars().any(char::is_control) {
        true => Err(BadCursor),
        false => Ok(last),
    }
}

/// Returns the cursor of the page that begins after `key`.
pub fn cursor_after(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key.as_bytes())
}

impl<T> Default for ListingPages<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            clients: ListingClients::default(),
            prepared: Default::default(),
        }
    }
}

impl ListingEntry for CatalogueTool {
    fn key(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest()
    }

    fn lowered(&self, profile: ClientProfile) -> Option<&str> {
        self.lowered(profile).map(|lowered| lowered.input.as_json())
    }

    fn write(&self, shape: ListShape, clients: &ListingClients, out: &mut String) {
        self.write(shape, clients, out);
    }
}

impl ListingEntry for CatalogueItem {
    fn key(&self) -> &str {
        &self.key
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest()
    }

    fn write(&self, shape: ListShape, _clients: &ListingClients, out: &mut String) {
        self.write(shape, out);
    }
}

impl PreparedListing {
    fn write<T: ListingEntry>(
        entries: &[Arc<T>],
        shape: ListShape,
        clients: &ListingClients,
    ) -> Self {
        let mut bytes = String::new();
        let mut spans = Vec::with_capacity(entries.len());
        for entry in entries {
            if !bytes.is_empty() {
                bytes.push(',');
            }
            let start = bytes.len();
            entry.write(shape, clients, &mut bytes);
            spans.push(start..bytes.len());
        }
        Self { bytes, spans }
    }
}
