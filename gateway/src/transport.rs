//! Bytes ⇄ messages: HTTP and stdio over one set of handlers.

pub mod front_door;
pub mod http;
pub mod stdio;

/// The refusal while a gateway cannot find out which keys were revoked.
const STALE: &str =
    "this gateway has not reached its database for too long: ask another one, or again later";
