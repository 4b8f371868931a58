//! The audit trail: requests, refusals, answers and acts of admins, in chains that show every later change.
//!
//! A process appends to its own chain ([`AuditTrail`]) and gets an [`AuditReceipt`] for each record. [`verify`] needs only
//! the folder: it walks all chains and finds changed, deleted, moved and cut records. The format is in `docs/audit.md`.

mod event;
mod trail;

mod folder;
mod line;

mod verify;

mod collected;
mod export;
mod files;
mod plain_text;
mod proof;
mod read;

pub mod command;

pub use collected::{CollectedSegment, CollectedTrail};
pub use event::{
    AdminAct, ApprovalRecord, ArgumentsKey, AuditEvent, AuditOutcome, AuditedCall, AuditedChange,
    AuditedIntent, AuditedRefusal, CallDetails, HolderRecord, PolicyRecord, RefusedWhat,
};
pub use export::{ExportFormat, export};
pub use files::{ChainFiles, PART_MAX_BYTES, SegmentFile, list_files, list_heads, read_lines};
pub use folder::ChainName;
/// Times in the API of this crate.
pub use jiff::Timestamp;
pub use line::{AuditReceipt, LINE_MAX_BYTES, NotAReceipt, RecordHash};
pub use proof::{
    PROOF_MAX_BYTES, ProofEnd, ProofFault, ProofReceipt, ProofReport, ProofSubject, RecordProof,
    prove,
};
pub use read::{
    AuditFilter, AuditRecord, CALL_OUTCOMES, NotAPlace, NotATime, RECORD_KINDS, RecordIter,
    RecordPlace, TrailFollower, parse_time, read, tail,
};
pub use trail::{AuditError, AuditTrail, FsyncPolicy, TrailEntry, TrailHealth, TrailSettings};
pub use verify::{
    ChainHead, CollectedHeads, HEADS_FILE, OpenEnd, ReceiptCheck, ReceiptStatus, TrailFinding,
    TrailProblem, TrailReport, TrailWarning, verify,
};
