//! Makes the two tools that a view with search lists: one that finds its tools, and one that calls them.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use weir_contracts::search::{Entry, Index};

use super::{CatalogueTool, ListShape, Listing};

pub const FIND_TOOLS: &str = "find_tools";
pub const CALL_TOOL: &str = "call_tool";
/// Contracts that are named in a description.
const CONTRACTS_MAX: usize = 20;

/// The search in one listing.
pub struct Search {
    /// The two tools as JSON objects joined by a comma, by `ListShape`.
    listed: [String; 4],
    /// The index, made by the first question.
    index: OnceLock<Index>,
}

impl Search {
    pub(super) fn new(tools: &[Arc<CatalogueTool>], read_only: bool) -> Self {
        let contracts: BTreeSet<&str> = tools.iter().map(|tool| &*tool.contract).collect();
        let named: Vec<&str> = contracts.iter().copied().take(CONTRACTS_MAX).collect();
        let more = if contracts.len() > named.len() {
            " and others"
        } else {
            ""
        };
        let description = format!(
            "Finds tools by what they do, best first, each with its name, description and inputSchema. \
             Call one with {CALL_TOOL}. There are {} tools, of {}{more}.",
            tools.len(),
            named.join(", ")
        );
        let listed = [
            ListShape::Modern,
            ListShape::Structured,
            ListShape::Annotated,
            ListShape::Plain,
        ]
        .map(|shape| written(&description, read_only, shape));
        Self {
            listed,
            index: OnceLock::new(),
        }
    }

    pub(super) fn listed(&self, shape: ListShape) -> &str {
        &self.listed[shape as usize]
    }

    /// Returns the schema that the arguments of either tool are checked against.
    pub fn input(tool: &str) -> Value {
        match tool {
            FIND_TOOLS => json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 500,
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

impl Listing {
    /// Returns the tools that a question is about, as JSON objects with name, description and input schema, the best
    /// first.
    pub fn find(&self, question: &str, most: usize) -> Vec<&str> {
        let Some(search) = self.search() else {
            return Vec::new();
        };
        let index = search.index.get_or_init(|| {
            let texts: Vec<String> = self.tools.entries().iter().map(|tool| text(tool)).collect();
            Index::new(&texts)
        });
        index
            .find(question, most)
            .into_iter()
            .map(|number| self.tools.entry(ListShape::Plain, number))
            .collect()
    }
}

fn text(tool: &CatalogueTool) -> String {
    let told = &tool.tool;
    let (name, title, description) = (&*told.name, told.title.as_deref(), &*told.description);
    Entry {
        name,
        title,
        description,
        input: &told.input_schema.value(),
    }
    .text()
}

fn written(description: &str, read_only: bool, shape: ListShape) -> String {
    let is_structured = matches!(shape, ListShape::Modern | ListShape::Structured);
    let one = |name: &str, title: &str, description: &str, read_only: bool| {
        let mut tool = json!({ "name": name });
        if is_structured {
            tool["title"] = title.into();
        }
        tool["description"] = description.into();
        tool["inputSchema"] = Search::input(name);
        if shape != ListShape::Plain {
            tool["annotations"] = json!({ "readOnlyHint": read_only });
        }
        tool.to_string()
    };
    let call = format!("Calls a tool that {FIND_TOOLS} has found, and answers what it answers.");
    [
        one(FIND_TOOLS, "Find tools", description, true),
        one(CALL_TOOL, "Call a tool", &call, read_only),
    ]
    .join(",")
}
