//! Defines the answer of a call: content blocks for whoever reads, a structured value for whoever computes.

use std::borrow::Cow;

use serde_json::Value;
use weir_audit::Receipt;

use crate::telemetry::metrics::Stages;

/// A tool that ran or was refused.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub content: Content,
    /// A JSON object on one line; absent where the tool promises none.
    pub structured: Option<String>,
    pub is_error: bool,
    /// Further members of `_meta`: name, and JSON on one line.
    pub meta: Vec<(Cow<'static, str>, String)>,
    /// Proof that the call is in the audit trail.
    pub receipt: Option<Receipt>,
    /// Set when a completed write could not be recorded.
    pub unrecorded: bool,
    /// The time of each stage.
    pub stages: Stages,
}

/// The content of a result.
#[derive(Clone, Debug)]
pub enum Content {
    /// One text block.
    Text(String),
    /// A JSON array of content blocks on one line: text, image, audio, resource link, embedded resource.
    Blocks(String),
}

/// The questions of a tool to its caller before it goes on.
#[derive(Clone, Debug)]
pub struct InputRequired {
    /// A JSON object on one line: a request of the protocol for each key.
    pub requests: Option<String>,
    /// The sealed state, which the caller sends back unread.
    pub state: Option<String>,
    pub receipt: Option<Receipt>,
}

impl ToolResult {
    /// Creates a result of one text block and a structured value.
    pub fn new(text: String, structured: String, is_error: bool) -> Self {
        Self::of(Content::Text(text), Some(structured), is_error)
    }

    pub fn of(content: Content, structured: Option<String>, is_error: bool) -> Self {
        let (meta, stages) = (Vec::new(), Stages::default());
        Self { content, structured, is_error, meta, receipt: None, unrecorded: false, stages }
    }
}

impl Content {
    /// Returns what a reader of text sees: the text blocks, a line each.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let blocks: Vec<Value> = serde_json::from_str(blocks).unwrap_or_default();
                let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                Cow::Owned(texts.join("\n"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_their_texts() {
        let blocks = r#"[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"b"}]"#;
        assert_eq!(Content::Blocks(blocks.to_owned()).text(), "a\nb");
    }
}
