//! Why a request failed, as the caller will read it.

use std::fmt;

/// One sentence for the caller, a code for programs; never a secret. Codes are open strings, but the gateway reports
/// one it does not know as `upstream_error`; the functions below make the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of failure it is, for programs.
    pub code: String,
    /// One sentence, which the caller reads.
    pub message: String,
    /// The argument or column at fault.
    pub field: Option<String>,
    /// When a further try makes sense.
    pub retry_after_ms: Option<u32>,
    /// JSON, for the log only.
    pub details: Option<String>,
}

/// What fails with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of any code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), field: None, retry_after_ms: None, details: None }
    }

    /// The record, file or table is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    /// The source holds something that excludes this change: a taken key, a version that moved on.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new("conflict", message)
    }

    /// The settings, a condition or a value cannot be what they are.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid", message)
    }

    /// More than one record where one was meant.
    pub fn ambiguous(message: impl Into<String>) -> Self {
        Self::new("ambiguous", message)
    }

    /// The source does not answer now; a later try may succeed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new("unavailable", message)
    }

    /// The source no longer has the recorded shape: a column is gone.
    pub fn source_changed(message: impl Into<String>) -> Self {
        Self::new("source_changed", message)
    }

    /// This adapter cannot do that, whoever asks.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new("unsupported", message)
    }

    /// A grant is missing.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new("denied", message)
    }

    /// The other side answered with an error or with nonsense.
    pub fn upstream_error(message: impl Into<String>) -> Self {
        Self::new("upstream_error", message)
    }

    /// The adapter itself is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message)
    }

    /// The caller has gone; nobody reads the answer.
    pub fn cancelled() -> Self {
        Self::new("cancelled", "The call was cancelled.")
    }

    /// Names the argument or column at fault.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Says when a further try makes sense.
    pub fn retry_after_ms(mut self, retry_after_ms: u32) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// Anything that helps whoever reads the log.
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details.to_string());
        self
    }

    /// True for an error of that code.
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
