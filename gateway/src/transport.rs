//! Bytes ⇄ messages: HTTP and stdio over one set of handlers.

pub mod front_door;
pub mod http;
pub mod stdio;
