//! Bytes ⇄ messages: HTTP and stdio over one set of handlers.

pub mod http;
pub mod stdio;
