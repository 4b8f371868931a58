//! Rewrites a tool's schema so that a given client or model vendor takes it, and reports what that client then is not
//! told.
//!
//! An operator chooses the client of a view; what a client says about itself is never asked. Arguments meet the full
//! schema all the same, so that a lowered one costs a model advice, and nobody a check.

mod lower;
mod references;
mod rules;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use rules::{RULES, Rule};

/// The client or model vendor that reads a view's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientProfile {
    Anthropic,
    Openai,
    /// OpenAI, whose functions have `strict: true`.
    OpenaiStrict,
    Gemini,
    Cursor,
    Vscode,
}

impl ClientProfile {
    pub const ALL: [Self; 6] = [
        Self::Anthropic,
        Self::Openai,
        Self::OpenaiStrict,
        Self::Gemini,
        Self::Cursor,
        Self::Vscode,
    ];

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

    /// Returns how many tools one request may hold, if the client has a known bound.
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
    /// The reasons why the client is not told everything, or does not take the tool.
    pub remarks: Vec<Remark>,
}

/// A rule that applies at one place of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The rule's name in [`RULES`].
    pub rule: &'static str,
    /// A JSON pointer into the input schema; empty for the whole tool.
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
    /// The client takes the tool but is not told everything.
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

/// Returns a tool as `profile` takes it. `input` is its input schema in 2020-12.
pub fn lower(name: &str, input: &Value, profile: ClientProfile) -> Lowered {
    lower::lower(name, input, rules::takes(profile))
}
