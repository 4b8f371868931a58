//! What an adapter is: one trait, and the requests it answers.

use std::fmt;

use serde::Deserialize;
use serde_json::Map;

use crate::error::{Error, Result};
use crate::shape::Shape;

/// Reaches collections of one kind. One value of the implementing type is one open collection.
///
/// `describe` looks at the source; it runs when a contract is drafted or checked, never during a call. `open` gets the
/// *recorded* shape and should look nothing up: parse the settings, keep what `read` and `write` need.
pub trait Adapter: Sized + 'static {
    /// The name contracts say: `adapter: sheet`.
    const NAME: &'static str;
    /// Which imports it asks the operator for: `sql`, `http`, `files`.
    const REQUESTS: &'static [&'static str] = &[];

    /// The JSON Schema of the settings, for people and checks.
    fn settings_schema() -> serde_json::Value;

    /// The shape of the collection these settings (JSON) reach.
    fn describe(settings: &str) -> Result<Shape>;

    /// Opens one collection.
    fn open(settings: &str, shape: &Shape) -> Result<Self>;

    fn read(&self, query: &Query) -> Result<Page>;

    /// What the source now holds, as JSON: the created or updated record, the deleted one as it was.
    fn write(&self, change: &Change) -> Result<String> {
        Err(Error::unsupported(format!("{} cannot {}.", Self::NAME, change.verb)))
    }
}

/// A lookup or a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// All must hold.
    pub conditions: Vec<Condition>,
    pub order: Vec<Order>,
    /// The columns wanted; empty: all.
    pub columns: Vec<String>,
    /// At most this many records.
    pub limit: u32,
    /// A former [`Page::next`].
    pub cursor: Option<String>,
    /// `{"params": {…}}`: the inputs a form sends with `param:`, as the adapter declared them.
    pub options: Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub column: String,
    pub comparison: Comparison,
    /// For `one-of` an array, for `is-empty` true or false.
    pub value: serde_json::Value,
}

impl Condition {
    pub fn new(column: &str, comparison: Comparison, value: impl Into<serde_json::Value>) -> Self {
        Self { column: column.to_owned(), comparison, value: value.into() }
    }
}

/// What each one means exactly, nulls included: `docs/matches.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equals,
    NotEquals,
    OneOf,
    AtLeast,
    AtMost,
    Contains,
    ContainsCi,
    StartsWith,
    IsEmpty,
}

impl Comparison {
    pub const ALL: [Comparison; 9] = [
        Self::Equals,
        Self::NotEquals,
        Self::OneOf,
        Self::AtLeast,
        Self::AtMost,
        Self::Contains,
        Self::ContainsCi,
        Self::StartsWith,
        Self::IsEmpty,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Equals => "equals",
            Self::NotEquals => "not-equals",
            Self::OneOf => "one-of",
            Self::AtLeast => "at-least",
            Self::AtMost => "at-most",
            Self::Contains => "contains",
            Self::ContainsCi => "contains-ci",
            Self::StartsWith => "starts-with",
            Self::IsEmpty => "is-empty",
        }
    }

    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|comparison| comparison.name() == name)
            .ok_or_else(|| Error::unsupported(format!("The comparison {name:?} is unknown.")))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One column to order by; nulls come last either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub column: String,
    pub descending: bool,
}

impl Order {
    /// `name` ascending, `-name` descending.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix('-') {
            Some(column) => Self { column: column.to_owned(), descending: true },
            None => Self { column: text.to_owned(), descending: false },
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// A JSON array of objects; [`crate::records::Records`] writes it.
    pub records: String,
    /// Where the next page starts; none: this was the last page.
    pub next: Option<String>,
}

/// A create, update, delete or call.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub verb: Verb,
    /// The key fields of the record meant (update, delete).
    pub key: Map<String, serde_json::Value>,
    /// The values to write (create: all given; update: only what changes).
    pub record: Map<String, serde_json::Value>,
    /// What the record meant must meet beside the key (update, delete); to the caller one that does not is not there.
    /// Only sent where the shape's capabilities say `guarded_write`.
    pub conditions: Vec<Condition>,
    /// `{"operation": "…", "params": {…}}` for a call.
    pub options: Map<String, serde_json::Value>,
}

impl Change {
    pub fn new(verb: Verb) -> Self {
        Self { verb, key: Map::new(), record: Map::new(), conditions: Vec::new(), options: Map::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Create,
    Update,
    Delete,
    Call,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }

    pub fn parse(name: &str) -> Result<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Call]
            .into_iter()
            .find(|verb| verb.name() == name)
            .ok_or_else(|| Error::unsupported(format!("The verb {name:?} is unknown.")))
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Reads settings strictly; the error names the settings, and serde's text the key.
pub fn parse_settings<'a, T: Deserialize<'a>>(settings: &'a str) -> Result<T> {
    serde_json::from_str(settings)
        .map_err(|error| Error::invalid(format!("The settings are wrong: {error}.")).field("settings"))
}
