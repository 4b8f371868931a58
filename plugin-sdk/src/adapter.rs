//! Defines what an adapter is: one trait, and the requests it answers.

use std::fmt;

use serde::Deserialize;
use serde_json::Map;

use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::summary::{SummaryPage, SummaryQuery};

/// Reaches collections of one kind. One value of the implementing type is one open collection.
///
/// `describe` looks at the source; it runs when a contract is drafted or checked, never during a call. `open` gets the
/// *recorded* shape and should look nothing up: parse the settings, keep what `read` and `write` need.
pub trait Adapter: Sized + 'static {
    /// The name used in contracts: `adapter: sheet`.
    const NAME: &'static str;
    /// The imports that the adapter asks the operator for: `sql`, `http`, `files`.
    const REQUESTS: &'static [&'static str] = &[];

    /// Returns the JSON Schema of the settings, for people and checks.
    fn settings_schema() -> serde_json::Value;

    /// Returns the shape of the collection that these settings (JSON) reach.
    fn describe(settings: &str) -> Result<Shape>;

    /// Opens one collection.
    fn open(settings: &str, shape: &Shape) -> Result<Self>;

    /// Answers a lookup or a list.
    fn read(&self, query: &Query) -> Result<Page>;

    /// Answers a count or a summary. Called only if the shape's capabilities include
    /// [`summaries`](crate::shape::Capabilities::summaries).
    fn summarize(&self, _query: &SummaryQuery) -> Result<SummaryPage> {
        Err(Error::unsupported(format!(
            "{} cannot summarize.",
            Self::NAME
        )))
    }

    /// Makes the change and returns, as JSON, what the source now holds: the created or updated record, or the deleted
    /// one as it was.
    fn write(&self, change: &Change) -> Result<String> {
        Err(Error::unsupported(format!(
            "{} cannot {}.",
            Self::NAME,
            change.verb
        )))
    }

    /// Does a piece of the work that [`crate::index::later`] asked for, well within the time of a call. Returns `true`
    /// while more is left.
    fn later(&self, work: &str) -> Result<bool> {
        Err(Error::unsupported(format!(
            "{} does not know this work: {work}.",
            Self::NAME
        )))
    }
}

/// A lookup or a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    /// Columns to order by, the first one first.
    pub order: Vec<Order>,
    /// The requested columns; if empty, all.
    pub columns: Vec<String>,
    /// The largest number of records to return.
    pub limit: u32,
    /// A former [`Page::next`].
    pub cursor: Option<String>,
    /// The inputs that a form sends with `param:`, as the adapter declared them: `{"params": {…}}`.
    pub options: Map<String, serde_json::Value>,
}

/// A condition on a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The column it looks at.
    pub column: String,
    /// The comparison of the column's value with the condition's.
    pub comparison: Comparison,
    /// The value; an array for `one-of`, true or false for `is-empty`.
    pub value: serde_json::Value,
}

impl Condition {
    /// Creates a condition.
    pub fn new(column: &str, comparison: Comparison, value: impl Into<serde_json::Value>) -> Self {
        Self {
            column: column.to_owned(),
            comparison,
            value: value.into(),
        }
    }
}

/// A way to compare. `docs/matches.md` defines exactly what each one means, including for nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The value itself.
    Equals,
    /// Any other value.
    NotEquals,
    /// The value is one of an array.
    OneOf,
    /// The value or a larger one.
    AtLeast,
    /// The value or a smaller one.
    AtMost,
    /// A text with this text in it.
    Contains,
    /// The text contains the other, in any case of letters.
    ContainsCi,
    /// A text that begins with this text.
    StartsWith,
    /// Null or an empty text, or neither.
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

    /// Returns the name on the wire, such as `equals`.
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

    /// Returns the comparison of a name; an unknown one is `unsupported`.
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

/// A column to order by; nulls come last either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub column: String,
    /// Whether the order is from the largest to the smallest.
    pub descending: bool,
}

impl Order {
    /// Reads `name` as ascending and `-name` as descending.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix('-') {
            Some(column) => Self {
                column: column.to_owned(),
                descending: true,
            },
            None => Self {
                column: text.to_owned(),
                descending: false,
            },
        }
    }
}

/// Some records of a list, or the one of a lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// A JSON array of objects; [`crate::records::Records`] writes it.
    pub records: String,
    /// The cursor of the next page; `None` after the last page.
    pub next: Option<String>,
}

/// A create, update, delete or call.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The kind of change.
    pub verb: Verb,
    /// The key fields of the record meant (update, delete).
    pub key: Map<String, serde_json::Value>,
    /// The values to write (create: all given; update: only what changes).
    pub record: Map<String, serde_json::Value>,
    /// The conditions that the record must meet in addition to the key (update, delete). To the caller, a record that does not
    /// meet them does not exist. They are only sent if the shape's capabilities include `guarded_write`.
    pub conditions: Vec<Condition>,
    /// `{"operation": "…", "params": {…}}` for a call.
    pub options: Map<String, serde_json::Value>,
}

impl Change {
    /// Creates a change that names nothing yet.
    pub fn new(verb: Verb) -> Self {
        Self {
            verb,
            key: Map::new(),
            record: Map::new(),
            conditions: Vec::new(),
            options: Map::new(),
        }
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Makes a record.
    Create,
    /// Changes values of a record.
    Update,
    /// Removes the record.
    Delete,
    /// An operation that the adapter declares.
    Call,
}

impl Verb {
    /// Returns the name on the wire, such as `create`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }

    /// Returns the verb of a name; an unknown one is `unsupported`.
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
    serde_json::from_str(settings).map_err(|error| {
        // The settings are a part of a contract, as JSON: their lines are not those of its file.
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or(&error);
        Error::invalid(format!("The settings are wrong: {what}.")).field("settings")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_told_without_a_place_in_their_json() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Settings {
            #[expect(dead_code, reason = "only what is wrong is looked at")]
            connection: String,
        }
        let error = parse_settings::<Settings>(r#"{"conection": "db"}"#).unwrap_err();
        assert_eq!(
            error.message,
            "The settings are wrong: unknown field `conection`, expected `connection`."
        );
    }
}
