//! A question back to the caller, and its response when the call comes again.

use serde_json::{Map, Value, json};

use super::Reply;
use crate::schema::{Mismatch, ToolSchema, Writer};

/// A question, of one or more requests, to the caller. It is answered before the call comes again.
///
/// The state is the tool's own text. It travels through the caller sealed by the gateway, so that it cannot be read or
/// changed on the way; it comes back with the responses in [`super::Context::state`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    requests: Map<String, Value>,
    state: Option<String>,
}

/// The outcome of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited<T> {
    /// The form was filled in.
    Accepted(T),
    /// The answer is no.
    Declined,
    /// The form was closed without an answer.
    Cancelled,
}

impl Question {
    /// Asks a person to fill in a form: the fields of `T`, which should be plain values. The key names the response.
    pub fn form<T: ToolSchema>(key: &str, message: &str) -> Self {
        Self::default().and_form::<T>(key, message)
    }

    /// Asks any request that MCP lets a server make: `sampling/createMessage`, `roots/list`, `elicitation/create`.
    pub fn request(key: &str, method: &str, params: Value) -> Self {
        Self::default().and_request(key, method, params)
    }

    /// Adds a form.
    pub fn and_form<T: ToolSchema>(self, key: &str, message: &str) -> Self {
        let schema = Writer::for_input().whole(T::write);
        let schema: Value = serde_json::from_str(&schema).unwrap_or_default();
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        self.and_request(key, "elicitation/create", params)
    }

    /// Adds a request.
    pub fn and_request(mut self, key: &str, method: &str, params: Value) -> Self {
        self.requests.insert(
            key.to_owned(),
            json!({ "method": method, "params": params }),
        );
        self
    }

    /// Keeps a text that the tool needs again when the call continues.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    pub(super) fn into_reply(self) -> Reply {
        Reply {
            kind: "input-required".to_owned(),
            requests: Some(Value::Object(self.requests).to_string()),
            state: self.state,
            ..Reply::default()
        }
    }
}

impl<T: ToolSchema> Elicited<T> {
    /// Reads `{"action": "accept", "content": {…}}`.
    pub(super) fn read(response: &Value) -> Result<Self, Mismatch> {
        match response.get("action").and_then(Value::as_str) {
            Some("accept") => {
                T::read(response.get("content").cloned().unwrap_or_default()).map(Self::Accepted)
            }
            Some("decline") => Ok(Self::Declined),
            Some("cancel") => Ok(Self::Cancelled),
            _ => Err(Mismatch::new("must be accept, decline or cancel").inside("action")),
        }
    }
}
