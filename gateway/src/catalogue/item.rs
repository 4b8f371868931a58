//! Prompts, resources and resource templates of a contract, prepared for listing and for requests.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use weir_contracts::{
    CompiledContract, ContractVersion,
    contract::{PromptArgument, ToolProvider},
    listed, uri,
};

use super::{ListShape, ToolCatalogue};
use crate::telemetry::metrics::ToolMeter;

/// The kinds of items that an endpoint can list in addition to tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Prompt,
    Resource,
    Template,
}

impl ItemKind {
    /// Returns the name in the audit trail.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Resource | Self::Template => "resource",
        }
    }
}

/// The items of one contract: their plugin or server, and the counters of their requests.
pub struct ItemSource {
    pub contract: Arc<str>,
    pub version: ContractVersion,
    pub target: ItemTarget,
    /// Whether its resources change on their own: the server is asked for them each time.
    pub has_live_resources: bool,
    /// The meters, named after the methods, which no tool can be called: `prompts/get` and `resources/read`.
    pub meters: [ToolMeter; 2],
    digest: [u8; 32],
}

/// The plugin or the server that answers for items.
pub enum ItemTarget {
    /// The items are records of Weir's own collections, read by lookups.
    Collection,
    Plugin(ItemPlugin),
    /// The name of the other MCP server in the configuration.
    Upstream(Arc<str>),
}

/// The plugin that answers for items, as it was published.
pub struct ItemPlugin {
    pub name: Arc<str>,
    /// sha256, hex, of its definitions.
    pub definitions: Arc<str>,
    /// `contract@version`, as the plugin receives it.
    pub contract: Arc<str>,
}

/// A published prompt, resource or resource template.
pub struct CatalogueItem {
    pub kind: ItemKind,
    /// The name, URI or template of the item for clients.
    pub key: Box<str>,
    /// The key of the item at its maker.
    pub own: Box<str>,
    pub source: Arc<ItemSource>,
    /// The arguments of a prompt.
    pub arguments: Vec<PromptArgument>,
    /// The lookup of records, and its argument.
    pub lookup: Option<RecordLookup>,
    entry: Map<String, Value>,
    digest: OnceLock<[u8; 32]>,
}

/// The tool that reads a record.
pub struct RecordLookup {
    pub tool: Arc<str>,
    pub argument: Box<str>,
}

/// A page of MCP Apps that a tool links: its server or plugin, and its URI there.
pub struct LinkedPage {
    pub source: Arc<ItemSource>,
    pub own: Box<str>,
}

/// The items of one contract.
#[derive(Default)]
pub(super) struct CatalogueItems {
    pub(super) source: Option<Arc<ItemSource>>,
    pub(super) prompts: Vec<Arc<CatalogueItem>>,
    pub(super) resources: Vec<Arc<CatalogueItem>>,
    pub(super) templates: Vec<Arc<CatalogueItem>>,
}

impl CatalogueItems {
    /// Prepares the items; a contract with only tools has none.
    pub(super) fn prepare(contract: &CompiledContract, previous: Option<&ToolCatalogue>) -> Self {
        let records = contract.tools.iter().filter_map(|tool| {
            let (argument, template) = listed::record_template(&contract.name, tool)?;
            Some((
                RecordLookup {
                    tool: tool.name.as_str().into(),
                    argument: argument.into(),
                },
                template,
            ))
        });
        let records: Vec<_> = records.collect();
        if contract.prompts.is_empty() && !contract.has_resources() && records.is_empty() {
            return Self::default();
        }
        let source = ItemSource::prepare(contract, previous);
        let make = |kind,
                    own: &str,
                    arguments: &[PromptArgument],
                    lookup: Option<RecordLookup>,
                    entry: Value| {
            let Value::Object(entry) = entry else {
                unreachable!("an entry of a list is an object")
            };
            let key = match kind {
                ItemKind::Prompt => "name",
                ItemKind::Resource => "uri",
                ItemKind::Template => "uriTemplate",
            };
            let key = entry
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .into();
            let (source, arguments) = (source.clone(), arguments.to_vec());
            Arc::new(CatalogueItem {
                kind,
                key,
                own: own.into(),
                source,
                arguments,
                lookup,
                entry,
                digest: OnceLock::new(),
            })
        };
        let item = |kind, own: &str, arguments: &[PromptArgument], entry| {
            make(kind, own, arguments, None, entry)
        };
        let scope = contract.uri_scope();
        let prompts = contract.prompts.iter();
        let resources = contract.resources.iter();
        let templates = contract.templates.iter();
        Self {
            prompts: prompts
                .map(|it| {
                    item(
                        ItemKind::Prompt,
                        &it.own_name,
                        &it.arguments,
                        listed::prompt(it),
                    )
                })
                .collect(),
            resources: resources
                .map(|it| {
                    item(
                        ItemKind::Resource,
                        &it.uri,
                        &[],
                        listed::resource(scope, it),
                    )
                })
                .collect(),
            templates: templates
                .map(|it| {
                    item(
                        ItemKind::Template,
                        &it.uri_template,
                        &[],
                        listed::template(scope, it),
                    )
                })
                .chain(
                    records.into_iter().map(|(lookup, entry)| {
                        make(ItemKind::Template, "", &[], Some(lookup), entry)
                    }),
                )
                .collect(),
            source: Some(source),
        }
    }
}

impl CatalogueItems {
    /// Returns the page with this URI for clients. An unlisted page is searched for if resources change on their own.
    pub(super) fn page(&self, published: &str) -> Option<LinkedPage> {
        let source = self.source.as_ref()?;
        let own = match self
            .resources
            .iter()
            .find(|resource| &*resource.key == published)
        {
            Some(listed) => listed.own.clone(),
            None if source.has_live_resources => uri::own_uri(published)?.1.into(),
            None => return None,
        };
        Some(LinkedPage {
            source: source.clone(),
            own,
        })
    }
}

impl ItemTarget {
    fn prepare(contract: &CompiledContract) -> Self {
        match (contract.made_by(), contract.definitions.as_deref()) {
            (Some(ToolProvider::Upstream(upstream)), _) => Self::Upstream(upstream.as_str().into()),
            (Some(ToolProvider::Plugin(plugin)), Some(definitions)) => Self::Plugin(ItemPlugin {
                name: plugin.as_str().into(),
                definitions: definitions.into(),
                contract: format!("{}@{}", contract.name, contract.version).into(),
            }),
            (Some(ToolProvider::Plugin(_)), None) | (None, _) => Self::Collection,
        }
    }

    /// Returns the name of the other server, if one answers.
    pub fn upstream(&self) -> Option<&Arc<str>> {
        match self {
            Self::Upstream(upstream) => Some(upstream),
            Self::Collection | Self::Plugin(_) => None,
        }
    }

    /// Returns `true` if clients see the URIs of the items as their maker wrote them.
    pub fn publishes_own_uris(&self) -> bool {
        match self {
            Self::Plugin(_) => true,
            Self::Collection | Self::Upstream(_) => false,
        }
    }
}

impl ItemSource {
    /// Reuses the counters of the previous snapshot if nothing changed, since they hold the series.
    fn prepare(contract: &CompiledContract, previous: Option<&ToolCatalogue>) -> Arc<Self> {
        let maker = contract.maker.as_ref().map(|maker| match maker {
            ToolProvider::Plugin(name) => format!("plugin {name} {:?}", contract.definitions),
            ToolProvider::Upstream(name) => format!("upstream {name}"),
        });
        let digest = Sha256::new()
            .chain_update(format!(
                "{}@{} {maker:?} {}",
                contract.name, contract.version, contract.live_resources
            ))
            .finalize()
            .into();
        let before = previous.and_then(|catalogue| catalogue.source(&contract.name));
        if let Some(same) = before.filter(|before| before.digest == digest) {
            return same.clone();
        }
        let name: Arc<str> = contract.name.as_str().into();
        let target = ItemTarget::prepare(contract);
        let meter = |method: &str| {
            let upstream = target.upstream().cloned();
            ToolMeter::new(method.into(), name.clone(), contract.version, upstream)
        };
        let meters = ["prompts/get", "resources/read"].map(meter);
        let has_live_resources = contract.live_resources;
        Arc::new(Self {
            contract: name.clone(),
            version: contract.version,
            target,
            has_live_resources,
            meters,
            digest,
        })
    }

    /// Returns the meter of requests of such items.
    pub fn meter(&self, kind: ItemKind) -> &ToolMeter {
        match kind {
            ItemKind::Prompt => &self.meters[0],
            ItemKind::Resource | ItemKind::Template => &self.meters[1],
        }
    }

    /// Returns `contract@version`, as logs and `_meta` show it.
    pub fn contract_version(&self) -> &str {
        &self.meters[0].contract_version
    }
}

impl CatalogueItem {
    pub(super) fn digest(&self) -> &[u8; 32] {
        self.digest
            .get_or_init(|| Sha256::digest(self.entry(ListShape::Modern)).into())
    }

    /// Returns the item in the form for clients of that shape.
    pub fn entry(&self, shape: ListShape) -> String {
        let mut entry = String::new();
        self.write(shape, &mut entry);
        entry
    }

    pub(super) fn write(&self, shape: ListShape, out: &mut String) {
        write_entry(&self.entry, self.source.contract_version(), shape, out);
    }
}

/// Writes an entry of a list, with what its clients may know about its origin. Older clients support neither titles nor icons.
pub fn write_entry(
    entry: &Map<String, Value>,
    contract_version: &str,
    shape: ListShape,
    out: &mut String,
) {
    let is_structured = shape.is_structured();
    let mut shown = entry.clone();
    let theirs = shown.shift_remove("_meta");
    if is_structured {
        shown.insert(
            "_meta".to_owned(),
            meta(contract_version, theirs.as_ref()).into(),
        );
    } else {
        shown.shift_remove("title");
        shown.shift_remove("icons");
    }
    out.push_str(&serde_json::to_string(&shown).expect("plain data"));
}

/// Returns `_meta` of an entry: the contract and version that it belongs to, and what its maker adds there.
pub(super) fn meta(contract_version: &str, theirs: Option<&Value>) -> Map<String, Value> {
    let mut meta = Map::from_iter([("dev.weir/contract".to_owned(), contract_version.into())]);
    let theirs = theirs.and_then(Value::as_object).into_iter().flatten();
    let own = theirs.filter(|(name, _)| !name.starts_with("dev.weir/"));
    meta.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    meta
}
