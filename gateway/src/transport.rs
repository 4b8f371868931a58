//! Bytes ⇄ messages: HTTP and stdio over one set of handlers.
