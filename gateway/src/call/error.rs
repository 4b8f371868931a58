//! Why a call did not succeed, and what its caller reads about it.

use std::borrow::Cow;

use weir_connections::code::BAD_CURSOR;
use weir_plugin_host::{AdapterFailure, BoundReached, GuestError};
use weir_schema::validate::{ErrorContent, InvalidArguments};
use weir_text::shorten;

use super::{PolicyDecision, ToolResult, request::TASKS};
use crate::codes::FailureCode;

/// The most characters that are shown of a broken promise of an answer.
const MISMATCH_MAX: usize = 500;

/// Whether the source may have been changed by a write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing was written.
    None,
    /// The write may have happened; a retry may duplicate it.
    Unknown,
}

/// Why a call did not succeed. `message` and the other fields are public; `log` is not.
#[derive(Clone, Debug)]
pub struct CallError {
    pub code: FailureCode,
    pub message: Cow<'static, str>,
    pub field: Option<String>,
    pub reason: Option<String>,
    pub retry_after_ms: Option<u32>,
    pub outcome: Option<WriteOutcome>,
    pub log: Option<Box<str>>,
    pub form: ErrorForm,
}

/// The form in which the caller gets an error.
#[derive(Clone, Debug)]
pub enum ErrorForm {
    /// A result that holds the members of the error.
    Plain,
    /// The plain form, with all faults of the arguments.
    Invalid(Box<InvalidArguments>),
    /// The plain form, of a call that policies deny.
    Denied(Box<PolicyDecision>),
    /// The plain form, of a call over a limit. The answer does not name the limit.
    Limited(Box<ReachedLimit>),
    /// The plain form, of a call that waits for a person.
    Planned(Box<WaitingPlan>),
    /// A result in the words of the server that the tool belongs to, passed on as it is.
    Upstream(Box<ToolResult>),
    /// The tool is unknown or hidden: a protocol error, not a result.
    UnknownTool,
    /// The caller's answer belongs to no question of this call, which is a protocol error too.
    BadState,
    /// A header contradicts an argument: a protocol error too.
    HeaderMismatch,
    /// The tool asks a question that the client cannot answer: a JSON object of the required capabilities. A protocol error for
    /// clients that support it.
    MissingCapability(MissingCapability),
}

/// The plan of a waiting call.
#[derive(Clone, Debug)]
pub struct WaitingPlan {
    /// A JSON object on one line.
    pub shown: String,
}

/// The limit that a call reached, as shown to admins.
#[derive(Clone, Debug)]
pub struct ReachedLimit {
    pub words: String,
}

/// A capability that a client needs for a question, with its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingCapability {
    ElicitationForm,
    ElicitationUrl,
    Sampling,
    /// The model is asked, and may use tools for its answer.
    SamplingTools,
    Roots,
    /// The extension for calls that outlive their request.
    Tasks,
}

impl MissingCapability {
    /// Returns the protocol's object for the capability.
    pub fn as_json(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::ElicitationForm => r#"{"elicitation":{"form":{}}}"#,
            Self::ElicitationUrl => r#"{"elicitation":{"url":{}}}"#,
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            Self::Roots => r#"{"roots":{}}"#,
            Self::Tasks => return format!(r#"{{"extensions":{{"{}":{{}}}}}}"#, TASKS).into(),
        })
    }

    /// Returns the sentence for a client that lacks the capability, and the word for programs. A model reads only the sentence.
    pub fn describe(self) -> (&'static str, &'static str) {
        let (message, reason) = match self {
            Self::Tasks => {
                return (
                    "this needs the extension io.modelcontextprotocol/tasks, and this client does not declare it",
                    "client_has_no_tasks",
                );
            }
            Self::ElicitationForm => (
                "the tool asks its user to fill in a form, and this client does not declare the capability `elicitation` that this needs",
                "client_cannot_be_asked",
            ),
            Self::ElicitationUrl => (
                "the tool asks its user to open a URL, and this client does not declare the capability `elicitation` with `url` that this needs",
                "client_cannot_be_asked",
            ),
            Self::Sampling => (
                "the tool asks the client's model, and this client does not declare the capability `sampling` that this needs",
                "client_cannot_be_asked",
            ),
            Self::SamplingTools => (
                "the tool asks the client's model, which may use tools, and this client does not declare the capability `sampling` with `tools` that this needs",
                "client_cannot_be_asked",
            ),
            Self::Roots => (
                "the tool asks for the client's folders, and this client does not declare the capability `roots` that this needs",
                "client_cannot_be_asked",
            ),
        };
        (message, reason)
    }
}

impl CallError {
    /// Creates an error with a code and a message for the caller; everything else is empty.
    pub fn new(code: FailureCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            reason: None,
            retry_after_ms: None,
            outcome: None,
            log: None,
            form: ErrorForm::Plain,
        }
    }

    /// Returns the error for a prompt or a resource that does not exist.
    pub fn unknown() -> Self {
        Self::unknown_tool()
    }

    /// Returns the error for a tool that does not exist, or that the caller may not see.
    pub fn unknown_tool() -> Self {
        Self {
            form: ErrorForm::UnknownTool,
            ..Self::new(FailureCode::InvalidArguments, "Unknown tool.")
        }
    }

    /// Returns the error of a call that could not be recorded.
    pub fn unrecorded() -> Self {
        let message = "The call cannot be recorded now, so it was not answered.";
        Self::new(FailureCode::Unavailable, message).retry_after_ms(1000)
    }

    /// Returns the error for the answer to a question that this call did not ask.
    pub fn bad_state() -> Self {
        let message = "The answer belongs to no question of this call.";
        Self {
            form: ErrorForm::BadState,
            ..Self::new(FailureCode::InvalidArguments, message)
        }
    }

    /// Returns the error for a header of a request that contradicts its body.
    pub fn header_mismatch(message: String) -> Self {
        Self {
            form: ErrorForm::HeaderMismatch,
            ..Self::new(FailureCode::InvalidArguments, message)
        }
    }

    /// Returns the error for arguments that do not conform to the tool's input schema.
    pub fn invalid(invalid: InvalidArguments) -> Self {
        Self {
            message: invalid.message().into(),
            form: ErrorForm::Invalid(Box::new(invalid)),
            ..Self::new(FailureCode::InvalidArguments, "")
        }
    }

    /// Returns the error for a refusal in the words of the server that the tool belongs to.
    pub fn by_upstream(result: ToolResult) -> Self {
        Self {
            form: ErrorForm::Upstream(Box::new(result)),
            ..Self::new(FailureCode::ToolError, "The tool failed.")
        }
    }

    /// Returns the error for an answer that breaks its own promise. It names the broken part, but contains no value.
    pub fn output_mismatch(what: String) -> Self {
        let plain = what.replace(char::is_control, "");
        let shown = shorten(&plain, MISMATCH_MAX);
        Self::new(
            FailureCode::OutputMismatch,
            format!("The tool answered something other than it declares: {shown}."),
        )
        .log(what)
    }

    /// Returns `true` if the caller named a tool that it cannot see.
    pub fn is_unknown_tool(&self) -> bool {
        matches!(self.form, ErrorForm::UnknownTool)
    }

    /// Returns the name in the audit trail and the metrics.
    pub fn label(&self) -> &'static str {
        if self.is_unknown_tool() {
            "unknown_tool"
        } else {
            self.code.label()
        }
    }

    /// Returns the faults of the arguments.
    pub fn invalid_arguments(&self) -> Option<&InvalidArguments> {
        match &self.form {
            ErrorForm::Invalid(invalid) => Some(invalid),
            _ => None,
        }
    }

    /// Returns the decision of policies that deny the call.
    pub fn denial(&self) -> Option<&PolicyDecision> {
        match &self.form {
            ErrorForm::Denied(decision) => Some(decision),
            _ => None,
        }
    }

    /// Adds details for the gateway's log. The caller does not see them.
    pub fn log(mut self, log: impl Into<Box<str>>) -> Self {
        self.log = Some(log.into());
        self
    }

    /// Names the limit that was reached, for the audit trail and the log.
    pub fn limit(self, words: String) -> Self {
        Self {
            form: ErrorForm::Limited(Box::new(ReachedLimit { words })),
            ..self
        }
    }

    /// Sets the time in milliseconds after which the caller may try again.
    pub fn retry_after_ms(mut self, milliseconds: u32) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// Sets what is known about the effect of a write. If it is unknown, the time for a retry is removed.
    pub fn outcome(mut self, outcome: WriteOutcome) -> Self {
        self.outcome = Some(outcome);
        if outcome == WriteOutcome::Unknown {
            self.retry_after_ms = None; // an agent must look before it repeats
        }
        self
    }

    /// Returns the result that the agent reads: `{code, call_id, message?, field?, reason?, errors?, retry_after_ms?,
    /// outcome?}`.
    pub fn into_result(self, call_id: &str) -> ToolResult {
        let policy = self.denial().cloned();
        let mut plan = None;
        let invalid = match self.form {
            ErrorForm::Planned(waiting) => {
                plan = Some(waiting);
                None
            }
            ErrorForm::Upstream(result) => {
                return ToolResult {
                    call_id: Some(call_id.into()),
                    ..*result
                };
            }
            ErrorForm::Invalid(invalid) => Some(invalid),
            _ => None,
        };
        let errors = invalid
            .as_ref()
            .map_or(&[][..], |invalid| &invalid.errors[..]);
        let first = errors.first();
        let content = ErrorContent {
            code: self.code.label(),
            call_id: Some(call_id),
            message: Cow::Borrowed(&self.message),
            field: first.map(|error| &*error.field).or(self.field.as_deref()),
            reason: first.map(|error| error.reason).or(self.reason.as_deref()),
            errors,
            retry_after_ms: self.retry_after_ms,
            outcome: self.outcome.map(WriteOutcome::label),
        };
        let mut structured = content.to_json();
        if let Some(plan) = plan {
            structured.pop(); // the end of the object
            structured.push_str(&format!(r#","plan":{}}}"#, plan.shown));
        }
        // Most models are shown only the text.
        let text = match (&invalid, self.retry_after_ms) {
            (Some(invalid), _) => invalid.text(),
            (None, None) => self.message.into_owned(),
            (None, Some(wait @ ..1000)) => format!("{} Try again in {wait} ms.", self.message),
            (None, Some(wait)) => {
                format!("{} Try again in {} s.", self.message, wait.div_ceil(1000))
            }
        };
        ToolResult {
            code: Some(self.code),
            outcome: self.outcome,
            policy,
            ..ToolResult::new(text, structured, true)
        }
    }
}

impl WriteOutcome {
    /// Returns the word on the wire: `none` or `unknown`.
    pub fn label(self) -> &'static str {
        match self {
            WriteOutcome::None => "none",
            WriteOutcome::Unknown => "unknown",
        }
    }
}

impl CallError {
    /// Returns the error for a plugin that gave no answer to a call of a tool that it defines.
    pub fn of_tool(failure: AdapterFailure) -> Self {
        match failure {
            AdapterFailure::BackedOff { retry_after_ms } => Self::new(
                FailureCode::Unavailable,
                "This tool failed in all its last calls and is tried again later.",
            )
            .retry_after_ms(retry_after_ms),
            AdapterFailure::Failed(why) => {
                Self::new(FailureCode::PluginFailed, "The tool failed.").log(why)
            }
            AdapterFailure::OverLimit(bound) => Self::ended("The tool", &bound),
            failure => failure.into(),
        }
    }

    /// Returns the error for a plugin that reached a bound of its call.
    fn ended(who: &str, bound: &BoundReached) -> Self {
        let message = format!("{who} was ended: {bound}. Ask for less in one call.");
        Self::new(FailureCode::PluginFailed, message).log(bound.reason.as_str())
    }
}

impl From<AdapterFailure> for CallError {
    fn from(failure: AdapterFailure) -> Self {
        match failure {
            AdapterFailure::Guest(error) => error.into(),
            AdapterFailure::Unavailable(adapter) => {
                Self::new(FailureCode::Unavailable, "The adapter of this tool is not loaded.")
                    .log(format!("no plugin provides the adapter `{adapter}`"))
            }
            AdapterFailure::NoBuild(plugin) => {
                Self::new(FailureCode::Unavailable, "The plugin of this tool is not loaded, or not as it was published.").log(
                    format!("no build of the plugin `{plugin}` that defines the tool as it was published is loaded"),
                )
            }
            AdapterFailure::Overloaded { retry_after_ms } => {
                Self::new(FailureCode::Overloaded, "Too many calls are running at once.").retry_after_ms(retry_after_ms)
            }
            AdapterFailure::BackedOff { retry_after_ms } => Self::new(
                FailureCode::Unavailable,
                "The adapter of this tool failed in all its last calls and is tried again later.",
            )
            .retry_after_ms(retry_after_ms),
            AdapterFailure::Timeout => Self::new(FailureCode::Timeout, "The call took longer than it may."),
            AdapterFailure::Cancelled => Self::new(FailureCode::Cancelled, "The call was cancelled."),
            AdapterFailure::Failed(why) => Self::new(FailureCode::PluginFailed, "The adapter of this tool failed.").log(why),
            AdapterFailure::OverLimit(bound) => Self::ended("The adapter of this tool", &bound),
        }
    }
}

impl From<GuestError> for CallError {
    /// Reads a guest's error. Guest codes are open strings; an unknown code is the source's own error.
    fn from(error: GuestError) -> Self {
        if error.code == BAD_CURSOR {
            return Self::invalid(InvalidArguments::bad_cursor());
        }
        let code = FailureCode::of_word(&error.code);
        // The guest's text is not trusted: it is shortened to one line.
        let message = error.message.replace(char::is_control, "");
        let message = shorten(&message, 500).into_owned();
        Self {
            field: error.field.map(|field| shorten(&field, 64).into_owned()),
            reason: (code == FailureCode::InvalidArguments).then(|| "refused_by_source".to_owned()),
            retry_after_ms: error.retry_after_ms,
            log: error
                .details
                .map(|details| format!("{}: {}", error.code, shorten(&details, 4000)).into()),
            ..Self::new(code, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_never_advised_where_it_may_duplicate() {
        let error = CallError::new(FailureCode::Unavailable, "x")
            .retry_after_ms(5)
            .outcome(WriteOutcome::Unknown);
        let result = error.into_result("c_1");
        let expected =
            r#"{"code":"unavailable","call_id":"c_1","message":"x","outcome":"unknown"}"#;
        assert_eq!(result.structured.as_deref(), Some(expected));
    }

    #[test]
    fn a_failing_tool_is_no_adapter_and_its_bound_is_named() {
        let message = |failure| CallError::of_tool(failure).message.into_owned();
        assert_eq!(
            message(AdapterFailure::Failed("it panicked".into())),
            "The tool failed."
        );
        let over = |reason: &str, setting| {
            let reason = reason.to_owned();
            message(AdapterFailure::OverLimit(BoundReached { reason, setting }))
        };
        assert_eq!(
            over(
                "it used more than 2000 ms of processor time",
                Some("cpu_max_ms")
            ),
            "The tool was ended: it used more than 2000 ms of processor time; an operator can raise `cpu_max_ms` of the plugin. \
             Ask for less in one call."
        );
        assert_eq!(
            over("it asked for 65537 random bytes at once", None),
            "The tool was ended: it asked for 65537 random bytes at once. Ask for less in one call."
        );
    }

    #[test]
    fn a_plugins_documented_codes_reach_the_agent() {
        for (word, label) in [
            ("unsupported", "unsupported"),
            ("too_large", "too_large"),
            ("invalid", "invalid_arguments"),
            ("denied", "forbidden"),
            ("internal", "plugin_failed"),
            ("tool_error", "upstream_error"),
        ] {
            let error = GuestError {
                code: word.into(),
                message: "x".into(),
                field: None,
                retry_after_ms: None,
                details: None,
            };
            assert_eq!(CallError::from(error).code.label(), label, "{word}");
        }
    }

    #[test]
    fn a_guest_cannot_smuggle_lines_or_secrets_into_the_message() {
        let error = GuestError {
            code: "weird".into(),
            message: "line\nbreak\u{1b}[31m".into(),
            field: None,
            retry_after_ms: None,
            details: Some("SELECT secret".into()),
        };
        let result = CallError::from(error).into_result("c_1");
        assert_eq!(result.content.text(), "linebreak[31m");
        let structured = result.structured.expect("an error says what it is");
        assert!(structured.contains("\"upstream_error\"") && !structured.contains("SELECT"));
    }
}
