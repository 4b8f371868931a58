//! The words that decide: kept as text, read as enums. A word that is not known is refused.

use serde::{Deserialize, Serialize};

/// An enum that is kept as a word. A word that is not in the table is refused, never guessed.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word that the state keeps.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub(crate) fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.as_str())
            }
        }
    };
}

/// The roles of the admin API. Each has the rights of those before it, except that plans of writes are for approvers and
/// operators.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decides about writes that wait for a person, and does nothing else.
    Approver,
    /// Reads the audit trail, and nothing else.
    Auditor,
    /// Reads.
    Viewer,
    /// Submits contracts, publishes what needs a second look, tries calls.
    Editor,
    /// Everything: breaking changes, keys, plugins.
    Operator,
}

words!(Role { Approver = "approver", Auditor = "auditor", Viewer = "viewer", Editor = "editor", Operator = "operator" });

/// The class of a version's change since the one before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// No version is before it.
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

/// The status of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DraftStatus {
    /// It waits for approval.
    Pending,
    Published,
    Discarded,
    /// A later change took its place.
    Superseded,
}

words!(DraftStatus { Pending = "pending", Published = "published", Discarded = "discarded", Superseded = "superseded" });

/// The status of a write that a person has to approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlanStatus {
    /// It waits for a person.
    Pending,
    /// Its caller may make it, once.
    Approved,
    Rejected,
    /// The write was made, or may have been.
    Applied,
    /// The record had changed by then, and nothing was written.
    Stale,
}

words!(PlanStatus { Pending = "pending", Approved = "approved", Rejected = "rejected", Applied = "applied", Stale = "stale" });

/// The status of a write with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallReplyStatus {
    /// It has not ended, or its process was stopped.
    Running,
    Done,
    /// It was begun, and its outcome is unknown.
    Unknown,
}

words!(CallReplyStatus { Running = "running", Done = "done", Unknown = "unknown" });

/// The place that a contract comes from: it is changed there and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractOrigin {
    /// A contract file.
    File,
    /// The admin API.
    Api,
    /// The functions of a plugin.
    Code,
    /// Another server.
    Upstream,
}

words!(ContractOrigin { File = "file", Api = "api", Code = "code", Upstream = "upstream" });

/// The purpose of one of the gateway's own secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPurpose {
    /// It seals cursors and the states of questions.
    Cursors,
    /// It makes the digests of arguments in the audit trail.
    Arguments,
    /// It seals the tokens of accounts at other servers.
    Accounts,
}

words!(SecretPurpose { Cursors = "cursors", Arguments = "arguments", Accounts = "accounts" });

/// The subject of a link to a sign-in at another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectKind {
    /// The page that begins the sign-in.
    Ticket,
    /// The redirect back from the issuer.
    SignIn,
}

words!(ConnectKind { Ticket = "ticket", SignIn = "sign_in" });

/// The use of a secret of an admin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// All that the admin key may, for a while.
    Session,
    /// One session, once.
    Link,
}

words!(SessionKind { Session = "session", Link = "link" });

/// The kind of a build's file; the word is the extension of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildKind {
    Component,
    /// Code of the machine.
    Library,
}

words!(BuildKind { Component = "wasm", Library = "so" });

/// What an admin with several roles may do: everything that any of the roles allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedRoles {
    /// The highest of the roles.
    pub role: Role,
    /// Whether it also decides about plans of writes.
    pub approves: bool,
}

impl JoinedRoles {
    /// Joins roles; `None` if there are none.
    pub fn join(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let (mut highest, mut approves) = (None, false);
        for role in roles {
            highest = highest.max(Some(role));
            approves |= role == Role::Approver;
        }
        let role = highest?;
        let is_beside = !matches!(role, Role::Approver | Role::Operator);
        Some(Self {
            role,
            approves: approves && is_beside,
        })
    }

    /// Returns `true` for those who decide about writes that wait for a person.
    pub fn decides_plans(self) -> bool {
        self.approves || matches!(self.role, Role::Approver | Role::Operator)
    }

    /// Returns `true` for those who change something, and do not only read.
    pub fn changes_things(self) -> bool {
        self.approves || matches!(self.role, Role::Approver | Role::Editor | Role::Operator)
    }
}

impl std::fmt::Display for JoinedRoles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.approves {
            true => write!(out, "{} and {}", self.role, Role::Approver),
            false => write!(out, "{}", self.role),
        }
    }
}

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
