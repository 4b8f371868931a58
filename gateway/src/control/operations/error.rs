//! Why an operation was refused.

use weir_contracts::FileProblem;
use weir_state::StateError;
use weir_text::shorten;

use crate::{control::gate::GateError, telemetry::AuditUnavailable};

/// The bound on a name in a message.
pub(super) const NAME_MAX_CHARS: usize = 64;

/// The result of an operation.
pub type OperationResult<T> = Result<T, OperationError>;

/// An operation that was refused, or could not be done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct OperationError {
    pub kind: FailureKind,
    pub detail: String,
    /// Every problem of a refused contract or configuration.
    pub problems: Vec<FileProblem>,
}

/// The kind of a refusal: whose fault it is, and how to correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The request contains an impossible name.
    Malformed,
    /// It requires another role.
    Forbidden,
    NotFound,
    /// The current state does not allow it.
    Conflict,
    /// It is based on something that has changed since it was read.
    Outdated,
    Invalid,
    TooLarge,
    /// It may succeed later.
    Unavailable,
}

impl OperationError {
    /// Makes a refusal without problems in files.
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            problems: Vec::new(),
        }
    }

    /// Refuses a request for a missing thing. The name comes from the request.
    pub fn not_found(what: &str, name: &str) -> Self {
        let shown = shorten(name, NAME_MAX_CHARS);
        Self::new(
            FailureKind::NotFound,
            format!("there is no {what} `{shown}`"),
        )
    }

    /// Refuses with the gate's reason. A missing thing is named, and `next` is the advice.
    pub(super) fn at_the_gate(error: GateError, name: &str, next: &str) -> Self {
        match error {
            GateError::State(StateError::Unknown(what)) => Self::not_found(what, name).see(next),
            error => error.into(),
        }
    }

    /// Adds what to do next.
    pub fn see(mut self, next: &str) -> Self {
        self.detail = format!("{}: {next}", self.detail);
        self
    }

    /// Refuses a request that may succeed later.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(FailureKind::Unavailable, detail)
    }

    /// Refuses an invalid request.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(FailureKind::Invalid, detail)
    }

    /// Refuses a file, with every problem of it.
    pub fn problems(detail: &str, problems: Vec<FileProblem>) -> Self {
        Self {
            problems,
            ..Self::invalid(detail)
        }
    }
}

impl From<StateError> for OperationError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Moved(_) => {
                Self::new(FailureKind::Conflict, format!("{error}: read it again"))
            }
            StateError::Unknown(_) => Self::new(FailureKind::NotFound, error.to_string()),
            StateError::Full(_) => Self::new(FailureKind::Conflict, error.to_string()),
            StateError::NulText => Self::new(FailureKind::Malformed, error.to_string()),
            StateError::Unreachable(_) => Self::unavailable(error.to_string()),
            StateError::Open { .. }
            | StateError::Connect { .. }
            | StateError::Clock { .. }
            | StateError::Database(_) => {
                tracing::error!(%error, "an admin request failed");
                Self::unavailable("the state cannot be used now")
            }
        }
    }
}

impl From<AuditUnavailable> for OperationError {
    fn from(error: AuditUnavailable) -> Self {
        Self::unavailable(format!("{error}: nothing was done"))
    }
}

impl From<GateError> for OperationError {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Refused(problems) => Self::problems("the contract is refused", problems),
            GateError::Role { .. } => Self::new(FailureKind::Forbidden, error.to_string()),
            GateError::Fingerprint(_)
            | GateError::Decided(_)
            | GateError::Alone
            | GateError::OlderNode(_)
            | GateError::Outdated { .. }
            | GateError::Owned { .. } => Self::new(FailureKind::Conflict, error.to_string()),
            GateError::NotKept(_) => Self::invalid(error.to_string()),
            GateError::Changed(_) => Self::new(FailureKind::Outdated, error.to_string()),
            GateError::Artifact(_) => {
                tracing::error!(%error, "an admin request failed");
                Self::unavailable("a stored version cannot be read")
            }
            GateError::State(error) => error.into(),
            GateError::Unrecorded(error) => error.into(),
        }
    }
}
