//! The place of a record among the records of all chains, from which a reader continues.

use std::str::FromStr;

use jiff::Timestamp;

use crate::{AuditReceipt, ChainName};

/// The place of a record: by time, and of one time by chain and number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace {
    pub time: Timestamp,
    pub chain: ChainName,
    pub seq: u64,
}

/// The error for a text that is not the place of a record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is the `time` and the receipt of a record, with a comma between them")]
pub struct NotAPlace;

impl FromStr for RecordPlace {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (time, receipt) = text.split_once(',').ok_or(NotAPlace)?;
        let AuditReceipt { chain, seq, .. } = receipt.parse().map_err(|_| NotAPlace)?;
        Ok(Self {
            time: time.parse().map_err(|_| NotAPlace)?,
            chain,
            seq,
        })
    }
}
