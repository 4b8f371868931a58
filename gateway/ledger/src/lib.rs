//! One rate over several nodes. Each node may spend a small share of a bucket on its own. Beyond it, it takes tokens from a
//! bucket that all nodes share, in a ledger: as many as it will use shortly, for many buckets in one request. While the
//! ledger cannot be reached, each node uses its own part of the rate.
//!
//! `level` and `node` are arithmetic, with the time as an argument; `batch` asks a ledger, and `engine` lists the ledgers
//! that there are.

mod batch;
mod engine;
mod level;
mod memory;
mod node;
mod postgresql;
mod request;
mod valkey;

pub use batch::{LedgerFigures, SharedBucket, SharedLedger, TakenNow};
pub use engine::LedgerEngine;
pub use level::{TokenLevel, TokenRate};
pub use memory::MemoryLedger;
pub use node::{NodeBucket, NodeMode, TakeNow};
pub use postgresql::PostgresqlLedger;
pub use request::{BucketId, LedgerError, LedgerGrant, TokenRequest};
pub use valkey::ValkeyLedger;
