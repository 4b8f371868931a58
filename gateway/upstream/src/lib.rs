//! A client of other MCP servers: child processes and URLs, both eras of the protocol, everything bounded.
//!
//! A [`UpstreamSession`] is opened to a [`UpstreamTarget`], agrees with the server on an era, and then lists and calls. The
//! server's answers are kept as raw JSON, to be read by code that knows their form. [`UpstreamRegistry`] has the servers of a
//! configuration, each with its sessions. Nothing in this crate depends on contracts.

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
pub use config::{
    ChangeMode, PublishMode, UpstreamConfig, UpstreamIsolation, UpstreamResources, Wrong,
};
pub use error::{RequestError, UpstreamFailure, UpstreamFailureKind, UpstreamRefusal};
pub use guard::{end_with_reader, guard};
pub use handshake::DeclaredCapabilities;
pub use list::UpstreamLists;
pub use listener::{Answering, UpstreamListener, UpstreamQuestion};
pub use message::UpstreamProgress;
pub use sandbox::{KeptFiles, is_supported as can_keep_files};
pub use session::{CallResumption, UpstreamCall, UpstreamOperation, UpstreamSession};
pub use settings::{
    ClientCapability, EraPreference, UpstreamBounds, UpstreamCommand, UpstreamSettings,
    UpstreamTarget, UpstreamTransport, UpstreamUrl,
};
pub use upstreams::{
    CallFailure, CallOwner, ResolvedUpstream, UpstreamFindings, UpstreamOutcome, UpstreamRegistry,
    UpstreamServer,
};
