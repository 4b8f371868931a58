//! A client of other MCP servers: child processes and URLs, both eras of the protocol, everything bounded.
//!
//! A [`Session`] is opened to a [`Target`], agrees with the server on an era, and then lists and calls. What the server
//! answers stays raw JSON: reading it is for those who know what it should be. Nothing in this crate knows contracts.

mod error;
mod guard;
mod handshake;
mod inbox;
mod link;
mod list;
mod message;
mod session;
mod settings;

pub use error::{Failure, Kind, Refusal, RequestError};
pub use guard::guard;
pub use list::Listed;
pub use message::Progress;
pub use session::{Call, Session};
pub use settings::{Ask, Bounds, Command, Era, Settings, Target, Transport, Url};
