//! Bytes ⇄ messages: HTTP and stdio over one set of handlers.

pub mod front_door;
pub mod http;
pub mod stdio;

/// The refusal while a gateway cannot find out which keys were revoked.
const STALE: &str =
    "this gateway could not reach its database for too long: try another one, or try again later";
