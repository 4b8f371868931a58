//! A client of other MCP servers: child processes and URLs, both eras of the protocol, everything bounded.
//!
//! A [`Session`] is opened to a [`Target`], agrees with the server on an era, and then lists and calls. The server's answers
//! stay raw JSON, to be read by code that knows their form. [`Upstreams`] are the servers of a configuration, each with its
//! sessions. Nothing in this crate knows contracts.

mod auth;
mod config;
mod error;
mod guard;
mod handshake;
mod inbox;
mod link;
mod list;
mod listener;
mod message;
mod pool;
mod sandbox;
mod session;
mod settings;
mod unreadable;
mod upstreams;

pub use auth::{
    AccountKeeper, AccountOwner, AssertionClient, AuthConfig, ExchangeConfig, Granting,
    MachineConfig, OauthConfig, OauthServer, ServerIssuer, find_challenge, find_server_issuer,
    no_account, without_token,
};
pub use config::{Changes, First, Isolation, Resources, UpstreamConfig, Wrong};
pub use error::{Failure, Kind, Refusal, RequestError};
pub use guard::{end_with_reader, guard};
pub use list::Listed;
pub use listener::{Answering, Listener, Question};
pub use message::Progress;
pub use sandbox::{KeptFiles, is_supported as can_keep_files};
pub use session::{Asked, Call, Resumed, Session};
pub use settings::{Ask, Bounds, Command, Era, Settings, Target, Transport, Url};
pub use upstreams::{CallFailure, CallOwner, Called, Resolved, Seen, Upstream, Upstreams};
