//! Defines the answer of a call: content blocks for readers, a structured value for programs.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use weir_admission::LARGE_BYTES;
use weir_audit::AuditReceipt;

use super::{CallError, PolicyDecision, error::WriteOutcome, target::upstream};
use crate::{codes::FailureCode, telemetry::metrics::Stages};

/// The member of `_meta` that holds the receipt of a call.
pub const RECEIPT: &str = "dev.weir/receipt";
/// The member of `_meta` for an error from Weir that may not be structured content.
const ERROR: &str = "dev.weir/error";

/// A tool that ran or was refused.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub content: CallContent,
    /// JSON on one line: an object, unless another server promises something else; absent if the tool promises none.
    pub structured: Option<String>,
    pub is_error: bool,
    /// The code of an error from Weir. `None` for a success, and for any error in the words of the tool's server.
    pub code: Option<FailureCode>,
    /// The call's id, for an error in the words of another server, which do not contain it.
    pub call_id: Option<Box<str>>,
    /// The outcome of a write that ended with an error from Weir.
    pub outcome: Option<WriteOutcome>,
    /// Further members of `_meta`: the name, and JSON on one line.
    pub meta: Vec<(Cow<'static, str>, String)>,
    /// Proof that the call is in the audit trail.
    pub receipt: Option<AuditReceipt>,
    /// The id of the call, if one was made.
    pub made: Option<Arc<str>>,
    /// Set when a completed write could not be recorded.
    pub unrecorded: bool,
    /// What policies denied, or would have.
    pub policy: Option<PolicyDecision>,
    /// The time of each stage.
    pub stages: Stages,
}

/// The content of a result.
#[derive(Clone, Debug)]
pub enum CallContent {
    /// One text block.
    Text(String),
    /// A JSON array of content blocks on one line: text, image, audio, resource link, embedded resource.
    Blocks(String),
}

/// The questions of a tool to its caller.
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// A JSON object on one line: a request of the protocol for each key.
    pub requests: Option<String>,
    /// The sealed state, which the caller sends back unread.
    pub state: Option<String>,
    /// The handle of the call that is kept open for the answer; `None` if the tool is called again with it.
    pub(crate) waits: Option<String>,
    pub receipt: Option<AuditReceipt>,
}

impl InputRequired {
    /// Returns `true` if a call is kept open for the answer.
    pub fn is_waited_for(&self) -> bool {
        self.waits.is_some()
    }

    /// Returns `true` if that call has not received its answer, because the request with it was refused, for example by a rate
    /// limit.
    pub fn is_left_waiting(&self) -> bool {
        self.waits.as_deref().is_some_and(upstream::is_kept)
    }

    /// Waits until the call that is kept open has ended without the answer. If none is kept, it waits forever.
    pub async fn wait_for_end(&self) {
        match self.waits.as_deref() {
            Some(handle) => upstream::wait_for_end(handle).await,
            None => std::future::pending().await,
        }
    }

    /// Ends the call that is kept open for an answer that does not come, and returns the error for its caller.
    pub fn give_up(&self, error: CallError) -> CallError {
        upstream::give_up(self.waits.as_deref(), error)
    }
}

impl ToolResult {
    /// Creates a result of one text block and a structured value.
    pub fn new(text: String, structured: String, is_error: bool) -> Self {
        Self::from_content(CallContent::Text(text), Some(structured), is_error)
    }

    /// Creates a result of any content. `structured` is a JSON object on one line.
    pub fn from_content(content: CallContent, structured: Option<String>, is_error: bool) -> Self {
        Self {
            content,
            structured,
            is_error,
            code: None,
            call_id: None,
            outcome: None,
            meta: Vec::new(),
            receipt: None,
            made: None,
            unrecorded: false,
            policy: None,
            stages: Stages::default(),
        }
    }

    /// Moves an error from Weir out of the structured content, which must meet the tool's output schema.
    pub fn move_error_to_meta(&mut self) {
        if self.code.is_some()
            && let Some(error) = self.structured.take()
        {
            self.meta.push((ERROR.into(), error));
        }
    }

    /// Returns the members of an error from Weir, from either place: a JSON object on one line.
    pub fn error(&self) -> Option<&str> {
        self.code?;
        let moved = self
            .meta
            .iter()
            .find(|(name, _)| name == ERROR)
            .map(|(_, error)| error);
        moved.or(self.structured.as_ref()).map(String::as_str)
    }

    /// Returns `true` if writing it takes long, so that it must not block a thread that serves others.
    pub(crate) fn is_large(&self) -> bool {
        let (CallContent::Text(content) | CallContent::Blocks(content)) = &self.content;
        content.len() + self.structured.as_ref().map_or(0, String::len) > LARGE_BYTES
    }

    /// Returns `true` if the call was cancelled and did nothing. A call that may have had an effect does not count.
    pub fn was_cancelled(&self) -> bool {
        self.code == Some(FailureCode::Cancelled) && self.outcome != Some(WriteOutcome::Unknown)
    }

    /// Returns the result as a client gets it, for a reader at a terminal: content, structured value, receipt.
    pub fn as_json(&self) -> String {
        // A number that was parsed would lose digits.
        let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).unwrap_or_default();
        let content = match &self.content {
            CallContent::Text(text) => raw(&json!([{ "type": "text", "text": text }]).to_string()),
            CallContent::Blocks(blocks) => raw(blocks),
        };
        let meta = self.meta.iter().map(|(name, value)| (&**name, raw(value)));
        let receipt = self.receipt.iter().map(|receipt| {
            let receipt = Value::from(receipt.to_string());
            (RECEIPT, raw(&receipt.to_string()))
        });
        let wire = WireResult {
            content,
            is_error: self.is_error,
            structured_content: self.structured.as_deref().map(raw),
            meta: meta.chain(receipt).collect(),
        };
        serde_json::to_string(&wire).expect("plain data")
    }
}

/// A result as the wire has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'r> {
    content: Box<RawValue>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'r str, Box<RawValue>>,
}

impl CallContent {
    /// Returns what a reader of text sees: the text blocks, a line each.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let blocks: Vec<Value> = serde_json::from_str(blocks).unwrap_or_default();
                let texts: Vec<&str> = blocks
                    .iter()
                    .filter_map(|block| block["text"].as_str())
                    .collect();
                Cow::Owned(texts.join("\n"))
            }
        }
    }

    /// Describes the content other than text, such as `an image (image/png)`.
    pub fn others(&self) -> Vec<String> {
        let Self::Blocks(blocks) = self else {
            return Vec::new();
        };
        let blocks: Vec<Value> = serde_json::from_str(blocks).unwrap_or_default();
        let others = blocks.iter().filter_map(|block| {
            let named = |kind: &str, name: &Value| {
                format!("{kind} ({})", name.as_str().unwrap_or("of no stated type"))
            };
            Some(match block["type"].as_str()? {
                "text" => return None,
                "image" => named("an image", &block["mimeType"]),
                "audio" => named("a sound", &block["mimeType"]),
                "resource_link" => named("a link to a resource", &block["uri"]),
                _ => named("a resource", &block["resource"]["uri"]),
            })
        });
        others.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_their_texts() {
        let blocks = r#"[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"b"}]"#;
        assert_eq!(CallContent::Blocks(blocks.to_owned()).text(), "a\nb");
        assert_eq!(
            CallContent::Blocks(blocks.to_owned()).others(),
            ["an image (image/png)"]
        );
    }

    #[test]
    fn the_digits_of_a_number_stay_as_they_are() {
        let structured = r#"{"total":12345678901234567.89,"id":18446744073709551616}"#;
        let mut result = ToolResult::new("two".to_owned(), structured.to_owned(), false);
        assert_eq!(
            result.as_json(),
            format!(
                r#"{{"content":[{{"type":"text","text":"two"}}],"isError":false,"structuredContent":{structured}}}"#
            )
        );
        result.structured = None;
        result.meta = vec![("dev.weir/error".into(), "{}".to_owned())];
        assert!(
            result
                .as_json()
                .ends_with(r#","_meta":{"dev.weir/error":{}}}"#)
        );
    }
}
