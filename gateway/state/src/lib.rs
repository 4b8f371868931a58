//! Stores what a gateway remembers: contract versions and drafts, keys of agents and admins, accounts at other servers, the gateway's own secrets,
//! recorded shapes, and which builds of plugins may run. It is one SQLite file that the processes of one machine share, or a
//! PostgreSQL database shared by those of several machines.
//!
//! Rows in, rows out: the meaning of an artifact, a report or an access list is left to others. A change that depends on a
//! read checks that nothing has changed in the meantime ([`StateError::Moved`]). Each change has a number, and one feed of
//! these numbers ([`GatewayState::changes`]) signals when to look again.
//!
//! The interface names no engine. The queries of the state are in `state`, with one text for each statement, and `engine` runs
//! them; what is specific to one engine (how it is opened, its tables, how it notifies of changes) is in `sqlite` and
//! `postgresql`, and the server of the latter is in `server`.

mod columns;
mod copy;
mod copy_mark;
mod engine;
mod file_database;
mod legacy;
mod postgresql;
mod rows;
mod server;
mod sqlite;
mod start_copy;
mod state;
mod words;

use std::{io, path::PathBuf};

pub use copy::CopiedTable;
pub use rows::*;
pub use server::ServerAddress;
pub use sqlite::FILE;
pub use state::{FeedPart, GatewayState, LiveChange, SharedClock};
pub use words::{
    BuildKind, CallReplyStatus, ChangeClass, ConnectKind, ContractOrigin, DraftStatus, JoinedRoles,
    PlanStatus, Role, SecretPurpose, SessionKind,
};

/// Why the state could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process changed it since it was read: read again and decide again.
    #[error("{0} was changed by someone else meanwhile")]
    Moved(&'static str),
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// As much is kept as may be: which, and what to do.
    #[error("{0}")]
    Full(String),
    /// A name or another text that no database keeps.
    #[error("a text holds the character U+0000, which nothing kept has in its name")]
    NulText,
    #[error("the state in {path}: {error}{step}", path = path.display(), step = next_step(&**error))]
    Open {
        path: PathBuf,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the state in {address}: {why}")]
    Connect {
        address: String,
        why: String,
        /// The server could not be reached; nothing is wrong with the request.
        is_away: bool,
    },
    /// The server with the state does not answer.
    #[error(
        "the database of the state cannot be reached: {0}; serving continues unchanged, and changes have to wait until it answers"
    )]
    Unreachable(String),
    /// Positive where this machine is ahead.
    #[error(
        "the clock of this machine is {} ms {} that of the database, and 2000 are allowed: set both by NTP, and start again",
        ahead_ms.abs(),
        if *ahead_ms > 0 { "ahead of" } else { "behind" }
    )]
    Clock { ahead_ms: i64 },
    #[error("the state: {0}")]
    Database(Box<dyn std::error::Error + Send + Sync>),
}

impl StateError {
    /// Returns `true` if the server with the state does not answer.
    pub fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::Connect { is_away: true, .. }
        )
    }
}

/// Returns what to do about a folder in which this user may not write, and about a file that SQLite cannot read.
fn next_step(error: &(dyn std::error::Error + Send + Sync + 'static)) -> &'static str {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            "; this user cannot write there: name a folder where it can with `--state FOLDER`"
        }
        _ if is_damaged(&error.to_string()) => {
            "; the file is damaged: end what uses it, and put a copy that `weir state backup` made in place of the folder"
        }
        _ => "",
    }
}

/// Returns `true` for the errors of SQLite about a file that is no database, or no longer a whole one.
fn is_damaged(error: &str) -> bool {
    ["(code: 11)", "(code: 26)"]
        .iter()
        .any(|code| error.contains(code))
}

impl From<sqlx::Error> for StateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Box::new(error))
    }
}
