//! Rewrites a tool's schema for a given client or model vendor, and reports what is lost for that client.
//!
//! An operator chooses the client of a view; Weir ignores what a client reports about itself. Arguments are always
//! validated against the full schema, so a lowered schema costs a model some advice and never skips a check.

mod lower;
mod merging;
mod patterns;
mod references;
mod rules;
mod texts;
mod types;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use rules::{ClientRule, RULES};

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

    /// Returns the word for the client in a configuration.
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

    /// Returns the client with this name, or `None` if the name is unknown.
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

/// A tool as one client sees it.
#[derive(Clone, Debug)]
pub struct LoweredTool {
    pub input: Value,
    /// The reasons why the client does not see everything, or refuses the tool.
    pub remarks: Vec<ClientRemark>,
}

/// A rule that applies at one place of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientRemark {
    /// The rule's name in [`RULES`].
    pub rule: &'static str,
    /// A JSON pointer into the input schema; empty for the whole tool.
    pub at: String,
    pub message: String,
    /// The client, or the model behind it, refuses the tool; many then refuse the whole request.
    pub refuses: bool,
}

/// How well a client can use a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientVerdict {
    /// The client sees everything.
    Accept,
    /// The client accepts the tool, but does not see everything.
    Loss,
    Refuse,
}

impl LoweredTool {
    /// Returns how well the client can use the tool, by its remarks.
    pub fn verdict(&self) -> ClientVerdict {
        match self.remarks.is_empty() {
            _ if self.is_refused() => ClientVerdict::Refuse,
            true => ClientVerdict::Accept,
            false => ClientVerdict::Loss,
        }
    }

    /// Returns `true` if the client, or the model behind it, refuses the tool.
    pub fn is_refused(&self) -> bool {
        self.remarks.iter().any(|remark| remark.refuses)
    }
}

/// Returns a tool as `profile` takes it. `input` is its input schema in 2020-12.
pub fn lower(name: &str, input: &Value, profile: ClientProfile) -> LoweredTool {
    lower::lower(name, input, rules::takes(profile))
}
