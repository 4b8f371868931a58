//! Proof that a record was written: kept by the caller, checked with the trail alone.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{ChainName, RecordHash};

/// Names one record and its content. As text `chain:seq:hash`, about 105 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditReceipt {
    pub chain: ChainName,
    pub seq: u64,
    pub hash: RecordHash,
}

/// The error for a text that is no receipt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a receipt is `chain:seq:hash`, as in 20260822T101530Z-4711-9f3c2a01:17:(64 hex digits)")]
pub struct NotAReceipt;

impl fmt::Display for AuditReceipt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.chain.as_str())?;
        write!(formatter, ":{}:", self.seq)?;
        self.hash.fmt(formatter)
    }
}

impl FromStr for AuditReceipt {
    type Err = NotAReceipt;

    fn from_str(text: &str) -> Result<Self, NotAReceipt> {
        let mut parts = text.trim().splitn(3, ':');
        let mut part = || parts.next().ok_or(NotAReceipt);
        Ok(Self {
            chain: part()?.parse().map_err(|_| NotAReceipt)?,
            seq: part()?.parse().map_err(|_| NotAReceipt)?,
            hash: part()?.parse().map_err(|_| NotAReceipt)?,
        })
    }
}

impl<'de> Deserialize<'de> for AuditReceipt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl Serialize for AuditReceipt {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
