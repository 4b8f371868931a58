//! The messages of MCP: what comes in, and the answers. The gateway and its client of other servers share them.
//!
//! A message is read once, its envelope with `params` and `_meta`, without a copy, and each part refuses a key given
//! twice: whatever one check read is what the next one reads. Answers are spliced around the request's id into one
//! buffer; no `Value` is built on the way.

mod answer;
mod error;
mod level;
mod message;
mod method;
mod params;
pub mod raw;
pub mod sse;
mod version;

pub use answer::{
    ResultWriter, error_answer, error_without_id, errors_answered, notification, string_room,
    write_string,
};
pub use error::RpcError;
pub use level::LogLevel;
pub use message::{
    BATCH_MAX, MalformedMessage, MessageBody, RequestId, RpcMessage, RpcResponse, request_id,
};
pub use method::RpcMethod;
pub use params::{GivenParams, RequestMeta, RequestParams, is_idempotency_key, log_level};
pub use version::ProtocolVersion;

/// The `_meta` keys the protocol reserves for itself.
pub mod key {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}
