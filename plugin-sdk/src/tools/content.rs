//! The content blocks of MCP.

use serde_json::{Map, Value, json};

use crate::Bytes;

/// A content block of an answer, as MCP writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Content(Map<String, Value>);

impl Content {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(json!({ "type": "text", "text": text.into() }))
    }

    /// Creates an image from its type, such as `image/png`, and its bytes.
    pub fn image(mime_type: &str, bytes: impl Into<Bytes>) -> Self {
        Self::new(
            json!({ "type": "image", "data": bytes.into().to_base64(), "mimeType": mime_type }),
        )
    }

    /// Creates a sound from its type, such as `audio/wav`, and its bytes.
    pub fn audio(mime_type: &str, bytes: impl Into<Bytes>) -> Self {
        Self::new(
            json!({ "type": "audio", "data": bytes.into().to_base64(), "mimeType": mime_type }),
        )
    }

    /// Creates a link to something that can be read.
    pub fn link(uri: &str, name: &str) -> Self {
        Self::new(json!({ "type": "resource_link", "uri": uri, "name": name }))
    }

    /// Creates a resource that is included as its text.
    pub fn resource_text(uri: &str, mime_type: &str, text: impl Into<String>) -> Self {
        let resource = json!({ "uri": uri, "mimeType": mime_type, "text": text.into() });
        Self::new(json!({ "type": "resource", "resource": resource }))
    }

    /// Creates a resource that is included as its bytes.
    pub fn resource_bytes(uri: &str, mime_type: &str, bytes: impl Into<Bytes>) -> Self {
        let resource =
            json!({ "uri": uri, "mimeType": mime_type, "blob": bytes.into().to_base64() });
        Self::new(json!({ "type": "resource", "resource": resource }))
    }

    /// Sets a member that describes the block: the `title`, `description`, `mimeType` or `size` of a link.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the audience of the block (`user`, `assistant`), and its importance, from 0 to 1.
    pub fn annotated(self, audience: &[&str], priority: f64) -> Self {
        self.member(
            "annotations",
            json!({ "audience": audience, "priority": priority }),
        )
    }

    fn new(block: Value) -> Self {
        match block {
            Value::Object(members) => Self(members),
            _ => Self(Map::new()),
        }
    }

    pub(crate) fn into_value(self) -> Value {
        self.0.into()
    }

    pub(super) fn to_json(blocks: &[Self]) -> String {
        Value::Array(
            blocks
                .iter()
                .map(|block| Value::Object(block.0.clone()))
                .collect(),
        )
        .to_string()
    }
}
