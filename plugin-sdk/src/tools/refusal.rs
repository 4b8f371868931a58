//! Defines how a tool refuses a call.

use std::any::Any;
use std::fmt;
use std::iter;

use crate::error::Error;

/// The reason why a tool refused: a word for programs, a sentence for the caller.
///
/// Any other error becomes one by `?`: its text goes to the log, and the caller reads one safe sentence, since the text may
/// contain a secret.
///
/// ```
/// # use weir_plugin_sdk::ToolError;
/// fn minutes(text: &str) -> Result<u32, ToolError> {
///     let minutes: u32 = text.parse()?;
///     if minutes > 60 {
///         return Err(ToolError::refuse("too_long", "A deployment waits for an hour at most."));
///     }
///     Ok(minutes)
/// }
/// assert_eq!(minutes("90").unwrap_err().reason(), "too_long");
/// assert_eq!(minutes("soon").unwrap_err().reason(), "internal");
/// ```
pub struct ToolError(Error);

impl ToolError {
    /// Creates a refusal by the tool itself. The reason is a short word that programs can rely on.
    pub fn refuse(reason: &str, sentence: impl Into<String>) -> Self {
        Self(Error::new(reason, sentence))
    }

    /// Creates the refusal for something that does not exist.
    pub fn not_found(sentence: impl Into<String>) -> Self {
        Self(Error::not_found(sentence))
    }

    /// Names the argument at fault.
    pub fn field(self, field: impl Into<String>) -> Self {
        Self(self.0.field(field))
    }

    /// Sets when another try makes sense.
    pub fn retry_after_ms(self, retry_after_ms: u32) -> Self {
        Self(self.0.retry_after_ms(retry_after_ms))
    }

    /// Adds details for readers of the log.
    pub fn details(self, details: serde_json::Value) -> Self {
        Self(self.0.details(details))
    }

    /// Returns the reason, which is the code of the error.
    pub fn reason(&self) -> &str {
        &self.0.code
    }

    /// Returns the sentence that the caller reads.
    pub fn sentence(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// An error of the SDK keeps its code and its sentence, which were written for callers; any other is logged.
///
/// `ToolError` itself does not implement `std::error::Error`, or this would conflict with `From<T> for T`.
impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        if let Some(error) = (&error as &dyn Any).downcast_ref::<Error>() {
            return Self(error.clone());
        }
        crate::log::error_for_the_log_alone(&format!("The tool failed: {}", described(&error)));
        Self(Error::internal(
            "The tool failed; its operator finds the reason in the log.",
        ))
    }
}

/// How many sources of an error the log names.
const SOURCES_MAX: usize = 8;

/// Returns the text of the error, and of each of its sources that the text does not have already.
fn described(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for source in iter::successors(error.source(), |inner| inner.source()).take(SOURCES_MAX) {
        let inner = source.to_string();
        if !text.contains(&inner) {
            text = format!("{text}; caused by {inner}");
        }
    }
    text
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        error.0
    }
}

/// An error that a tool may return: [`ToolError`], and whatever becomes one.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error that becomes a `ToolError`",
    note = "return `Result<_, ToolError>` and refuse with `ToolError::refuse(\"reason\", \"A sentence for the caller.\")`"
)]
pub trait ToolFailure {
    /// Returns the error as the gateway takes it.
    fn into_error(self) -> Error;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> ToolFailure for E {
    fn into_error(self) -> Error {
        self.into().0
    }
}
