//! A compiled contract: what the gateway serves and follows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shape::Shape;

#[derive(Clone, Debug)]
pub struct Contract {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub version: Version,
    pub collections: Vec<Collection>,
    pub tools: Vec<Tool>,
}

/// A source as this contract version sees it.
#[derive(Clone, Debug)]
pub struct Collection {
    pub name: String,
    pub adapter: String,
    pub settings: Value,
    /// The recorded shape with the contract's own key, types and time zone applied, all columns the adapter may need.
    pub shape: Shape,
    /// The columns that may ever leave the source, in order.
    pub published: Vec<String>,
    pub write: bool,
}

/// One callable entry. `input_schema` and `output_schema` keep the order a client sees.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub verb: Option<Verb>,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub annotations: Annotations,
    /// Missing for a bare form, which compiles but cannot be called.
    pub binding: Option<Binding>,
    pub limits: Limits,
    /// Template of the sentence in the text block, over the record; by default from the verb.
    pub say: Option<String>,
    pub text: TextMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Lookup,
    List,
    Create,
    Update,
    Delete,
    Call,
}

impl Verb {
    pub fn from_word(word: &str) -> Option<Self> {
        let verb = match word {
            "lookup" => Self::Lookup,
            "list" => Self::List,
            "create" => Self::Create,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "call" => Self::Call,
            _ => return None,
        };
        Some(verb)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }
}

/// Derived from the verb or the operation's effect, never authored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    pub read_only_hint: bool,
    pub destructive_hint: bool,
    pub idempotent_hint: bool,
    pub open_world_hint: bool,
}

/// Where every argument goes, and what is asked of the source.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Name of a collection of the same contract.
    pub collection: String,
    pub inputs: Vec<Input>,
    /// `name` ascending, `-name` descending; ends with the key, so that it is total.
    pub order: Vec<String>,
    /// The columns asked for and answered.
    pub columns: Vec<String>,
    /// Only for `list`.
    pub limit_default: u32,
    pub limit_max: u32,
    /// Only for `call`.
    pub operation: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub field: String,
    pub to: Destination,
    /// Injected after validation where the argument is absent.
    pub default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A condition that records must meet (lookup, list; key fields of update and delete).
    Condition { column: String, comparison: String },
    /// A value to be written (create, update).
    Column(String),
    /// A parameter the adapter declares.
    Param(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Calls and the seconds they are counted over, per agent.
    pub rate: Option<(u32, u32)>,
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextMode {
    Sentence,
    Json,
    #[default]
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const FIRST: Self = Self { major: 1, minor: 0, patch: 0 };
}

impl std::fmt::Display for Version {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Contract {
    pub fn collection(&self, name: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.name == name)
    }
}

impl Tool {
    /// True where a call may change the source.
    pub fn writes(&self) -> bool {
        !self.annotations.read_only_hint
    }
}

impl Binding {
    /// Puts in the default of every absent argument; after validation.
    pub fn inject_defaults(&self, arguments: &mut serde_json::Map<String, Value>) {
        for input in &self.inputs {
            if let (Some(default), false) = (&input.default, arguments.contains_key(&input.field)) {
                arguments.insert(input.field.clone(), default.clone());
            }
        }
    }
}
