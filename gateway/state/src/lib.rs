//! Stores what a gateway remembers: contract versions and drafts, keys of agents and admins, accounts at other servers, the gateway's own secrets,
//! recorded shapes, and which builds of plugins may run. It is one SQLite file that several processes share.
//!
//! Rows in, rows out: what an artifact, a report or an access list says is for others to read. A change that rests on what
//! it read checks that nothing moved meanwhile ([`StateError::Moved`]). Each change has a number, and one feed of these
//! numbers ([`State::changes`]) says when to look again.
//!
//! The interface names no engine: rows and words are plain data, and what speaks to the database is in `state`.

mod legacy;
mod rows;
mod state;
mod words;

use std::path::PathBuf;

pub use rows::*;
pub use state::{FILE, LiveChange, State};
pub use words::{
    BuildKind, ChangeClass, ConnectKind, DraftStatus, Origin, Role, SecretPurpose, SessionKind,
};

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Someone else changed it since it was read: read again and decide again.
    #[error("{0} was changed by someone else meanwhile")]
    Moved(&'static str),
    #[error("there is no such {0}")]
    Unknown(&'static str),
    #[error("the state in {path}: {error}", path = path.display())]
    Open {
        path: PathBuf,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the state: {0}")]
    Database(Box<dyn std::error::Error + Send + Sync>),
}
