//! What single clients and model vendors take of a tool: its schema is written so that they take it, and what they are
//! not told of it is said.
//!
//! An operator chooses the client of a view; what a client says of itself is never asked. Arguments meet the full schema
//! all the same, so that a lowered one costs a model advice, and nobody a check.

mod lower;
mod references;
mod rules;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use rules::{RULES, Rule};

/// Those who read a view's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientProfile {
    Anthropic,
    Openai,
    /// With `strict: true` of its functions.
    OpenaiStrict,
    Gemini,
    Cursor,
    Vscode,
}

impl ClientProfile {
    pub const ALL: [Self; 6] =
        [Self::Anthropic, Self::Openai, Self::OpenaiStrict, Self::Gemini, Self::Cursor, Self::Vscode];

    pub fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::OpenaiStrict => "openai-strict",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.word() == word)
    }

    /// Tools in one request, where there is a known bound.
    pub fn tools_max(self) -> Option<usize> {
        match self {
            Self::Openai | Self::OpenaiStrict | Self::Vscode => Some(128),
            Self::Cursor => Some(80),
            Self::Anthropic | Self::Gemini => None,
        }
    }
}

/// A tool as one client is told of it.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub input: Value,
    /// What the client is not told, or why it does not take the tool.
    pub remarks: Vec<Remark>,
}

/// One rule at one place of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// By its name in [`RULES`].
    pub rule: &'static str,
    /// A JSON pointer into the input schema; empty: the whole tool.
    pub at: String,
    pub message: String,
    /// The client, or the model behind it, refuses the tool; many then refuse the whole request.
    pub refuses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The client is told everything.
    Accept,
    /// It takes the tool, and is not told everything.
    Loss,
    Refuse,
}

impl Lowered {
    pub fn verdict(&self) -> Verdict {
        match self.remarks.is_empty() {
            _ if self.is_refused() => Verdict::Refuse,
            true => Verdict::Accept,
            false => Verdict::Loss,
        }
    }

    pub fn is_refused(&self) -> bool {
        self.remarks.iter().any(|remark| remark.refuses)
    }
}

/// A tool as `profile` takes it. `input`: its input schema, of 2020-12.
pub fn lower(name: &str, input: &Value, profile: ClientProfile) -> Lowered {
    lower::lower(name, input, rules::takes(profile))
}
