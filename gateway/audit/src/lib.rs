//! The audit trail: requests, refusals, answers and acts of admins, in chains that show every later change.
//!
//! A process appends to a chain of its own ([`Trail`]) and gets a [`Receipt`] for each record. [`verify`] needs only
//! the folder: it walks all chains and finds changed, deleted, moved and cut records. The format is in `docs/audit.md`.

mod arguments;
mod event;
mod trail;

mod folder;
mod line;
mod receipt;

mod verify;

mod collected;
mod export;
mod files;
mod plain_text;
mod proof;
mod read;

pub mod command;

pub use arguments::ArgumentsKey;
pub use collected::{CollectedSegment, CollectedTrail};
pub use event::{
    About, Admin, AdminAct, ApprovalRecord, Call, Event, HolderRecord, Intent, Outcome,
    PolicyRecord, Refused, RefusedWhat,
};
pub use export::{Format, export};
pub use files::{ChainFiles, PART_MAX_BYTES, SegmentFile, list_files, list_heads, read_lines};
pub use folder::ChainName;
/// Times in the API of this crate.
pub use jiff::Timestamp;
pub use line::{Hash, LINE_MAX_BYTES};
pub use proof::{
    PROOF_MAX_BYTES, ProofEnd, ProofFault, ProofReceipt, ProofReport, ProofSubject, RecordProof,
    prove,
};
pub use read::{
    Filter, Follow, NotAPlace, NotATime, RECORD_KINDS, Record, RecordPlace, Records, parse_time,
    read, tail,
};
pub use receipt::{NotAReceipt, Receipt};
pub use trail::{AuditError, Entry, Fsync, Health, Settings, Trail};
pub use verify::{
    ChainHead, CollectedHeads, Finding, HEADS_FILE, OpenEnd, Problem, ReceiptCheck, ReceiptStatus,
    Report, Warning, verify,
};
