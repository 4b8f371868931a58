//! Why a connection failed.

use crate::FailureCode;

/// The failure of a connection: a sentence for the caller, and details for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.word())]
pub struct ConnectionError {
    pub code: FailureCode,
    /// A sentence that may be shown to the caller. It never has SQL, a host name or a secret in it.
    pub message: String,
    pub field: Option<String>,
    pub retry_after_ms: Option<u32>,
    /// The details, for the log only.
    pub details: Option<String>,
    /// The source is known to have changed nothing: it took the write back, or never began it.
    pub nothing_changed: bool,
}

impl ConnectionError {
    /// Creates an error with a sentence for the caller. The code implies whether anything may have changed.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            retry_after_ms: None,
            details: None,
            nothing_changed: code.nothing_changed(),
        }
    }

    /// Names the argument at fault.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Notes that the source has changed nothing.
    pub fn nothing_changed(mut self) -> Self {
        self.nothing_changed = true;
        self
    }

    /// Adds details for the log. The caller does not get them.
    pub fn details(mut self, details: impl std::fmt::Display) -> Self {
        self.details = Some(details.to_string());
        self
    }
}
