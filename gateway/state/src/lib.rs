//! Stores what a gateway remembers: contract versions, drafts and keys, in one SQLite file that several processes
//! share.
//!
//! Rows in, rows out: what an artifact, a report or an access list says is for others to read. Every change is one
//! IMMEDIATE transaction; a change that rests on what it read checks that nothing moved meanwhile ([`StateError::Moved`]).

mod sqlite;
mod words;

pub use sqlite::*;
pub use words::{ChangeClass, DraftStatus, Role};
