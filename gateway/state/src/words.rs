//! The words that decide: kept as text, read as enums. A word that is not known is refused.

use serde::{Deserialize, Serialize};

use crate::sqlite::rows::words;

/// What someone may do over the admin API; each may what those before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits contracts, publishes what needs a second look, tries calls.
    Editor,
    /// Everything: breaking changes, keys, plugins.
    Operator,
}

words!(Role { Viewer = "viewer", Editor = "editor", Operator = "operator" });

/// How a version differs from the one before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// There is none before it.
    First,
    Identical,
    Cosmetic,
    Compatible,
    Review,
    Undecided,
    Breaking,
}

words!(ChangeClass {
    First = "first",
    Identical = "identical",
    Cosmetic = "cosmetic",
    Compatible = "compatible",
    Review = "review",
    Undecided = "undecided",
    Breaking = "breaking"
});

/// What became of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DraftStatus {
    /// It waits for someone.
    Pending,
    Published,
    Discarded,
    /// A later change took its place.
    Superseded,
}

words!(DraftStatus { Pending = "pending", Published = "published", Discarded = "discarded", Superseded = "superseded" });

impl Role {
    /// Returns the least role that may publish a change of that class.
    pub fn for_class(class: ChangeClass) -> Self {
        match class {
            ChangeClass::Breaking | ChangeClass::Undecided => Self::Operator,
            ChangeClass::First
            | ChangeClass::Identical
            | ChangeClass::Cosmetic
            | ChangeClass::Compatible
            | ChangeClass::Review => Self::Editor,
        }
    }
}
