//! Why a request failed, as the caller will read it.

use std::fmt;

/// A failure: one sentence for the caller and a code for programs, but never a secret. Codes are open strings. The
/// gateway reports an unknown one as `upstream_error`; the functions below make the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of the failure, for programs.
    pub code: String,
    /// A sentence, which the caller reads.
    pub message: String,
    /// The argument or column at fault.
    pub field: Option<String>,
    /// The time after which a further try makes sense.
    pub retry_after_ms: Option<u32>,
    /// JSON, for the log only.
    pub details: Option<String>,
}

/// The result of something that fails with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error of any code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            field: None,
            retry_after_ms: None,
            details: None,
        }
    }

    /// Creates the error for a record, file or table that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    /// Creates the error for a change that the source's state excludes: a taken key, a version that moved on.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new("conflict", message)
    }

    /// Creates the error for invalid settings, an invalid condition or an invalid value.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid", message)
    }

    /// Creates the error for several records when one was meant.
    pub fn ambiguous(message: impl Into<String>) -> Self {
        Self::new("ambiguous", message)
    }

    /// Creates the error for a source that does not answer now; a later try may succeed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new("unavailable", message)
    }

    /// Creates the error for a source that no longer has the recorded shape, such as one whose column is gone.
    pub fn source_changed(message: impl Into<String>) -> Self {
        Self::new("source_changed", message)
    }

    /// Creates the error for an operation that this adapter does not support.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new("unsupported", message)
    }

    /// Creates the error for a missing grant.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new("denied", message)
    }

    /// Creates the error for a service that answered with an error or with nonsense.
    pub fn upstream_error(message: impl Into<String>) -> Self {
        Self::new("upstream_error", message)
    }

    /// Creates the error for a fault of the adapter itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message)
    }

    /// Creates the error for a caller that is gone; the answer is not read.
    pub fn cancelled() -> Self {
        Self::new("cancelled", "The call was cancelled.")
    }

    /// Names the argument or column at fault.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets when another try makes sense.
    pub fn retry_after_ms(mut self, retry_after_ms: u32) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// Adds details for readers of the log.
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details.to_string());
        self
    }

    /// Returns `true` for an error of that code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}
