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

    /// Answers a lookup or a list.
    fn read(&self, query: &Query) -> Result<Page>;

    /// What the source now holds, as JSON: the created or updated record, the deleted one as it was.
    fn write(&self, change: &Change) -> Result<String> {
        Err(Error::unsupported(format!("{} cannot {}.", Self::NAME, change.verb)))
    }

    /// A piece of the work that [`crate::index::later`] asked for, well within the time of a call; true while more is left.
    fn later(&self, work: &str) -> Result<bool> {
        Err(Error::unsupported(format!("{} knows no such work: {work}.", Self::NAME)))
    }
}

/// A lookup or a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// All must hold.
    pub conditions: Vec<Condition>,
    /// Columns to order by, the first one first.
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

/// One condition on a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The column it looks at.
    pub column: String,
    /// How its value compares.
    pub comparison: Comparison,
    /// For `one-of` an array, for `is-empty` true or false.
    pub value: serde_json::Value,
}

impl Condition {
    /// A condition.
    pub fn new(column: &str, comparison: Comparison, value: impl Into<serde_json::Value>) -> Self {
        Self { column: column.to_owned(), comparison, value: value.into() }
    }
}

/// What each one means exactly, nulls included: `docs/matches.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The value itself.
    Equals,
    /// Any other value.
    NotEquals,
    /// One of the values of an array.
    OneOf,
    /// The value or a larger one.
    AtLeast,
    /// The value or a smaller one.
    AtMost,
    /// A text with this text in it.
    Contains,
    /// The same in any case of letters.
    ContainsCi,
    /// A text that begins with this text.
    StartsWith,
    /// Null or an empty text, or neither of them.
    IsEmpty,
}

impl Comparison {
    /// Every comparison.
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

    /// The name on the wire: `equals`.
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

    /// The comparison of a name; one that is unknown is `unsupported`.
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
    /// The column.
    pub column: String,
    /// From the largest to the smallest.
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

/// Some records of a list, or the one of a lookup.
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
    /// What is to be done.
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
    /// A change that names nothing yet.
    pub fn new(verb: Verb) -> Self {
        Self { verb, key: Map::new(), record: Map::new(), conditions: Vec::new(), options: Map::new() }
    }
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A new record.
    Create,
    /// Other values in a record.
    Update,
    /// No such record any more.
    Delete,
    /// An operation that the adapter declares.
    Call,
}

impl Verb {
    /// The name on the wire: `create`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }

    /// The verb of a name; one that is unknown is `unsupported`.
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
