//! Names what a tool does with a collection.

use serde::{Deserialize, Serialize};

use crate::shape::SummarySupport;

/// What a tool does with its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolVerb {
    Lookup,
    List,
    Count,
    Summarize,
    Create,
    Update,
    Delete,
    Call,
}

impl ToolVerb {
    /// Returns the verb of a word in a contract file; `None` for any other word.
    pub fn from_word(word: &str) -> Option<Self> {
        let verb = match word {
            "lookup" => Self::Lookup,
            "list" => Self::List,
            "count" => Self::Count,
            "summarize" => Self::Summarize,
            "create" => Self::Create,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "call" => Self::Call,
            _ => return None,
        };
        Some(verb)
    }

    /// Returns `true` if the verb only reads, and its inputs are conditions.
    pub fn is_query(self) -> bool {
        matches!(
            self,
            Self::Lookup | Self::List | Self::Count | Self::Summarize
        )
    }

    /// Returns what the verb needs of a source in addition to reading.
    pub fn needed_summaries(self) -> SummarySupport {
        match self {
            Self::Count => SummarySupport::Count,
            Self::Summarize => SummarySupport::All,
            _ => SummarySupport::None,
        }
    }

    /// Returns the word of contract files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::List => "list",
            Self::Count => "count",
            Self::Summarize => "summarize",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }
}
