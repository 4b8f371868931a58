//! The words that decide: kept as text, read as enums. A word that is not known is refused.

use serde::{Deserialize, Serialize};

use super::rows::words;

/// The role of someone on the admin API; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits contracts, publishes what needs a second look, tries calls.
    Editor,
    /// An operator may do everything: breaking changes, keys, plugins.
    Operator,
}

words!(Role { Viewer = "viewer", Editor = "editor", Operator = "operator" });

/// The class of a version's difference from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// There is no version before this one.
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

/// The state of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DraftStatus {
    /// The draft waits for someone.
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
