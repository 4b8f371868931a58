//! Requests to a ledger, and its answers.

use std::time::Duration;

use crate::level::TokenRate;

/// A ledger that takes longer is away.
pub(crate) const ANSWER_MAX: Duration = Duration::from_millis(500);

/// The name of a bucket, for all nodes the same: a digest of its owner and its rate.
pub type BucketId = [u8; 16];

/// A request for tokens of one bucket. The rate is the one of the ledger's part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRequest {
    pub id: BucketId,
    pub rate: TokenRate,
    pub wanted: u32,
    /// Tokens that the node took before and did not use.
    pub given_back: u32,
}

/// The tokens that a node gets: never more than it requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedgerGrant {
    pub granted: u32,
    /// The tokens that are left.
    pub level: f64,
}

/// The ledger cannot be asked. The message has no address, since that may have a password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(pub(crate) String);
