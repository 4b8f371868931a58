//! The number of an artifact's format.

use serde::{Deserialize, Deserializer, Serialize};

/// The number of an artifact's format. An unknown one is refused with a sentence about the format, and not with the first new
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ArtifactFormat(u32);

impl ArtifactFormat {
    /// The format of artifacts that have no number.
    pub const FIRST: Self = Self(1);
    /// The format with tools that a plugin or another server makes.
    pub const OFFERS: Self = Self(2);
    /// The format with contracts compiled from an upstream server's offer.
    pub const UPSTREAMS: Self = Self(3);
    /// The format with rules for cells that do not fit the type of their column.
    pub const CELLS: Self = Self(4);
    /// The format with counts and summaries.
    pub const SUMMARIES: Self = Self(5);
    /// The format with lists whose order, columns or total an agent chooses.
    pub const LIST_CHOICES: Self = Self(6);
    /// The format with queries that take parameters.
    pub const STATEMENTS: Self = Self(7);
    /// The format with lookups that answer related records.
    pub const RELATIONS: Self = Self(8);
    /// The format with numbers that a sheet writes with their unit.
    pub const UNITS: Self = Self(9);
    /// The format with tools whose calls a person approves.
    pub const APPROVALS: Self = Self(10);
    /// The format with tools of a plugin or another server whose calls a person approves.
    pub const OFFER_APPROVALS: Self = Self(11);
    /// The format with choices that mean several texts of the source.
    pub const SPELLINGS: Self = Self(12);
    /// The last one that this program reads.
    pub const NEWEST: Self = Self::SPELLINGS;

    /// Returns the number, from 1.
    pub fn number(self) -> u32 {
        self.0
    }

    pub(super) fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl Default for ArtifactFormat {
    fn default() -> Self {
        Self::FIRST
    }
}

impl<'de> Deserialize<'de> for ArtifactFormat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(from)?;
        if (Self::FIRST.0..=Self::NEWEST.0).contains(&number) {
            return Ok(Self(number));
        }
        let newest = Self::NEWEST.0;
        Err(serde::de::Error::custom(format_args!(
            "it is of format {number}, and this program reads formats up to {newest}: a later version of Weir wrote it"
        )))
    }
}
