//! Makes the two tools that a view with search lists: one finds its tools, and one calls them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use weir_contracts::{
    CompiledContract,
    search::{IndexedTool, ToolIndex},
};
use weir_schema::client::{ClientProfile, lower};

use super::{CatalogueListing, CatalogueTool, ListShape};

pub const FIND_TOOLS: &str = "find_tools";
pub const CALL_TOOL: &str = "call_tool";
/// The maximum length of a query.
const QUERY_CHARS_MAX: usize = 8_000;
/// The most contracts that are named in a description.
const CONTRACTS_MAX: usize = 20;

/// The search in one listing.
pub struct CatalogueSearch {
    /// The two tools as JSON objects joined by a comma, by `ListShape`.
    listed: [String; ListShape::ALL.len()],
    /// The name and the first sentence of each contract, by its name.
    contracts: HashMap<Arc<str>, String>,
    /// The index, created by the first query.
    index: OnceLock<ToolIndex>,
}

impl CatalogueSearch {
    pub(super) fn new(
        tools: &[Arc<CatalogueTool>],
        contracts: &[Arc<CompiledContract>],
        read_only: bool,
        profile: Option<ClientProfile>,
    ) -> Self {
        let sentences = contracts.iter().map(|contract| {
            let (name, description) = (&*contract.name, contract.description.as_deref());
            (name, first_sentence(description.unwrap_or_default()))
        });
        let sentences: HashMap<&str, &str> = sentences.collect();
        let contracts: BTreeSet<&Arc<str>> = tools.iter().map(|tool| &tool.contract).collect();
        let named: Vec<&str> = contracts
            .iter()
            .take(CONTRACTS_MAX)
            .map(|name| &***name)
            .collect();
        let more = if contracts.len() > named.len() {
            " and others"
        } else {
            ""
        };
        let amount = match tools.len() {
            1 => "There is 1 tool".to_owned(),
            count => format!("There are {count} tools"),
        };
        let description = format!(
            "Finds tools by what they do, best first, each with its name, description, inputSchema and \
             outputSchema. A tool with `weak` shares few words with the query. Call one with {CALL_TOOL}. {amount}, of {}{more}.",
            named.join(", ")
        );
        let listed = ListShape::ALL.map(|shape| written(&description, read_only, shape, profile));
        let contracts = contracts.into_iter().map(|name| {
            let sentence = sentences.get(&**name).copied().unwrap_or_default();
            (name.clone(), format!("{name} {sentence}"))
        });
        Self {
            listed,
            contracts: contracts.collect(),
            index: OnceLock::new(),
        }
    }

    pub(super) fn listed(&self, shape: ListShape) -> &str {
        &self.listed[shape as usize]
    }

    /// Returns the schema against which the arguments of either tool are checked.
    pub fn input(tool: &str) -> Value {
        match tool {
            FIND_TOOLS => json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": QUERY_CHARS_MAX,
                        "description": "What is to be done, in words.",
                    },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5 },
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
            _ => json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": format!("The name of a tool, as {FIND_TOOLS} answered it.") },
                    "arguments": { "type": "object", "description": "Its arguments, by its inputSchema." },
                },
                "required": ["name"],
                "additionalProperties": false,
            }),
        }
    }
}

impl CatalogueListing {
    /// Returns the tools that share words, or parts of words, with a query, best first, each as a JSON object with
    /// name, title, description and schemas; a weak match has `"weak": true`.
    pub fn find(&self, question: &str, most: usize) -> Vec<ToolHit<'_>> {
        let Some(search) = self.search() else {
            return Vec::new();
        };
        let index = search.index.get_or_init(|| {
            let texts = self.tools.entries().iter().map(|tool| search.text(tool));
            ToolIndex::new(&texts.collect::<Vec<_>>())
        });
        let found = index.find(question, most).into_iter();
        let found = found.map(|tool| ToolHit {
            json: self.tools.entry(ListShape::Found, tool.number),
            is_weak: tool.is_weak,
        });
        found.collect()
    }
}

/// A tool that a query found.
pub struct ToolHit<'l> {
    /// The JSON object that lists it.
    pub json: &'l str,
    pub is_weak: bool,
}

impl CatalogueSearch {
    /// Returns the searchable text of a tool.
    fn text(&self, tool: &CatalogueTool) -> String {
        let contract = self.contracts.get(&tool.contract);
        let listed = &tool.tool;
        IndexedTool {
            name: &listed.name,
            title: listed.title.as_deref(),
            description: &listed.description,
            contract: contract.map_or("", String::as_str),
            input: &listed.input_schema.value(),
        }
        .text()
    }
}

/// Returns a text up to the end of its first sentence.
fn first_sentence(text: &str) -> &str {
    text.split_inclusive(['.', '!', '?', '\n'])
        .next()
        .unwrap_or_default()
        .trim()
}

fn written(
    description: &str,
    read_only: bool,
    shape: ListShape,
    profile: Option<ClientProfile>,
) -> String {
    let is_structured = shape.is_structured();
    let one = |name: &str, title: &str, description: &str, read_only: bool| {
        let mut tool = json!({ "name": name });
        if is_structured {
            tool["title"] = title.into();
        }
        tool["description"] = description.into();
        let input = CatalogueSearch::input(name);
        // Strict mode cannot express the arguments of another tool, so both are unchanged in such a view.
        let lowered = profile.filter(|profile| *profile != ClientProfile::OpenaiStrict);
        let lowered = lowered.map(|profile| lower(name, &input, profile).input);
        tool["inputSchema"] = lowered.unwrap_or(input);
        if shape != ListShape::Plain {
            tool["annotations"] = json!({ "readOnlyHint": read_only });
        }
        tool.to_string()
    };
    let call = format!("Calls a tool that {FIND_TOOLS} has found, and returns its answer.");
    [
        one(FIND_TOOLS, "Find tools", description, true),
        one(CALL_TOOL, "Call a tool", &call, read_only),
    ]
    .join(",")
}
