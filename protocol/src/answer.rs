//! Answers and notifications, spliced into one buffer.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;

use super::{RequestId, RpcError};

/// Writes `{"jsonrpc":"2.0","id":…,"result":{…}}`, member by member.
pub struct ResultWriter {
    bytes: Vec<u8>,
    empty: bool,
}

impl ResultWriter {
    /// Begins an answer. `size` is about how many bytes the members will take.
    pub fn new(id: &RequestId<'_>, size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size + id.as_json().len() + 48);
        bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        bytes.extend_from_slice(id.as_json().as_bytes());
        bytes.extend_from_slice(br#","result":{"#);
        Self { bytes, empty: true }
    }

    /// Begins a notification instead: the members are those of its params.
    pub fn notification(method: &'static str) -> Self {
        Self {
            bytes: format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"#).into_bytes(),
            empty: true,
        }
    }

    /// Adds a member whose value is JSON already.
    pub fn json(&mut self, key: &'static str, json: &str) -> &mut Self {
        self.member(key).extend_from_slice(json.as_bytes());
        self
    }

    /// Adds a member whose value is a string, with its escapes.
    pub fn string(&mut self, key: &'static str, text: &str) -> &mut Self {
        write_string(self.member(key), text);
        self
    }

    /// Starts a member; its value is for the caller to write.
    pub fn member(&mut self, key: &'static str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.bytes.push(b',');
        }
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(b"\":");
        &mut self.bytes
    }

    /// Ends the message and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(b"}}");
        self.bytes
    }
}

/// Returns an error in answer to a message. JSON-RPC requires `null` if the id could not be read.
pub fn error_answer(id: Option<&RequestId<'_>>, error: &RpcError) -> Vec<u8> {
    let mut bytes = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":"#,
        id.map_or("null", RequestId::as_json)
    )
    .into_bytes();
    write_error(&mut bytes, error);
    bytes.push(b'}');
    bytes
}

/// Returns an error from before there was a message, so without an id.
pub fn error_without_id(error: &RpcError) -> Vec<u8> {
    let mut bytes = br#"{"jsonrpc":"2.0","error":"#.to_vec();
    write_error(&mut bytes, error);
    bytes.push(b'}');
    bytes
}

/// Returns a notification; `params` is JSON.
pub fn notification(method: &'static str, params: Option<&str>) -> Vec<u8> {
    match params {
        Some(params) => {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).into_bytes()
        }
        None => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).into_bytes(),
    }
}

/// Appends a JSON string, with its quotes and escapes.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    match text.len() <= SHORT {
        true => json_escape_simd::escape_into(text, out),
        false => serde_json::to_writer(out, text).expect("a string always has a JSON form"),
    }
}

/// Room for six times a text is made to escape it quickly; longer ones are escaped byte by byte.
const SHORT: usize = 64 << 10;

/// Returns how many free bytes [`write_string`] needs.
pub fn string_room(text: &str) -> usize {
    match text.len() <= SHORT {
        true => text.len() * 6 + 64,
        false => text.len() * 5 / 4,
    }
}

/// Error answers of this process, by code: those JSON-RPC defines, and MCP's own.
static ERRORS: [(&str, AtomicU64); 10] = [
    ("-32700", AtomicU64::new(0)),
    ("-32600", AtomicU64::new(0)),
    ("-32601", AtomicU64::new(0)),
    ("-32602", AtomicU64::new(0)),
    ("-32603", AtomicU64::new(0)),
    ("-32002", AtomicU64::new(0)),
    ("-32020", AtomicU64::new(0)),
    ("-32021", AtomicU64::new(0)),
    ("-32022", AtomicU64::new(0)),
    ("other", AtomicU64::new(0)),
];

/// Returns each code, and how often it was answered.
pub fn errors_answered() -> impl Iterator<Item = (&'static str, u64)> {
    ERRORS
        .iter()
        .map(|(code, count)| (*code, count.load(Ordering::Relaxed)))
}

fn write_error(out: &mut Vec<u8>, error: &RpcError) {
    let code = error.code.to_string();
    let at = ERRORS
        .iter()
        .position(|(known, _)| *known == code)
        .unwrap_or(ERRORS.len() - 1);
    ERRORS[at].1.fetch_add(1, Ordering::Relaxed);
    out.extend_from_slice(format!(r#"{{"code":{},"message":"#, error.code).as_bytes());
    write_string(out, &error.message);
    if let Some(data) = &error.data {
        debug_assert!(serde_json::from_str::<&RawValue>(data).is_ok());
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.as_bytes());
    }
    out.push(b'}');
}
