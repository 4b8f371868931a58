//! The one table of errors: code → label, advice, and what the caller reads.

use std::borrow::Cow;

use weir_contracts::validate::{ErrorContent, InvalidArguments};
use weir_plugin_host::{AdapterFailure, GuestError};

use super::ToolResult;

/// The closed list of gateway codes. `docs/errors.md` is generated from [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidArguments,
    NotFound,
    Ambiguous,
    Conflict,
    RateLimited,
    Overloaded,
    Forbidden,
    Timeout,
    Cancelled,
    Unavailable,
    SourceChanged,
    UpstreamError,
    WriteDisabled,
    PluginFailed,
    OutputMismatch,
    ToolError,
    Internal,
}

pub struct Row {
    pub code: Code,
    /// On the wire, in logs, metrics and audit.
    pub label: &'static str,
    pub meaning: &'static str,
    /// What an agent should do.
    pub advice: &'static str,
}

pub const TABLE: [Row; 17] = [
    Row {
        code: Code::InvalidArguments,
        label: "invalid_arguments",
        meaning: "The arguments do not meet the input schema, or the source refused a value.",
        advice: "Repair the arguments from `errors` and call again.",
    },
    Row {
        code: Code::NotFound,
        label: "not_found",
        meaning: "No record meets the conditions.",
        advice: "Do not repeat the same call; look with other arguments.",
    },
    Row {
        code: Code::Ambiguous,
        label: "ambiguous",
        meaning: "More than one record meets the conditions of a lookup.",
        advice: "Add conditions, or use a list tool.",
    },
    Row {
        code: Code::Conflict,
        label: "conflict",
        meaning: "The source holds a record that collides with this one, or it moved on meanwhile.",
        advice: "Read the record, then decide.",
    },
    Row {
        code: Code::RateLimited,
        label: "rate_limited",
        meaning: "Too many calls in the time allowed, here or at the source.",
        advice: "Wait `retry_after_ms`, then call again.",
    },
    Row {
        code: Code::Overloaded,
        label: "overloaded",
        meaning: "Too many calls are running at once.",
        advice: "Wait `retry_after_ms`, then call again.",
    },
    Row {
        code: Code::Forbidden,
        label: "forbidden",
        meaning: "The call is not allowed: a grant or a permission is missing.",
        advice: "Do not repeat; an operator must change the configuration.",
    },
    Row {
        code: Code::Timeout,
        label: "timeout",
        meaning: "The deadline of the call passed.",
        advice: "Ask for less, or later. Check `outcome` before repeating a write.",
    },
    Row {
        code: Code::Cancelled,
        label: "cancelled",
        meaning: "The caller went away or asked to stop.",
        advice: "None.",
    },
    Row {
        code: Code::Unavailable,
        label: "unavailable",
        meaning: "The source or its adapter cannot be reached now.",
        advice: "Try again later, after `retry_after_ms` where it is given. Check `outcome` before repeating a write.",
    },
    Row {
        code: Code::SourceChanged,
        label: "source_changed",
        meaning: "The source no longer has the columns the contract was published with.",
        advice: "Do not repeat; an operator must publish the contract anew.",
    },
    Row {
        code: Code::UpstreamError,
        label: "upstream_error",
        meaning: "The source answered an error.",
        advice: "Read the message; repeating rarely helps.",
    },
    Row {
        code: Code::WriteDisabled,
        label: "write_disabled",
        meaning: "The collection or its connection is read-only.",
        advice: "Do not repeat; an operator must allow writing.",
    },
    Row {
        code: Code::PluginFailed,
        label: "plugin_failed",
        meaning: "The adapter crashed or used up what it may use.",
        advice: "One retry is reasonable; then report the call_id.",
    },
    Row {
        code: Code::OutputMismatch,
        label: "output_mismatch",
        meaning: "The source answered a value the contract does not allow; nothing of it is passed on.",
        advice: "Do not repeat; report the call_id.",
    },
    Row {
        code: Code::ToolError,
        label: "tool_error",
        meaning: "The tool refused for a reason of its own, named in `reason`.",
        advice: "Read `reason`.",
    },
    Row { code: Code::Internal, label: "internal", meaning: "The gateway failed.", advice: "Report the call_id." },
];

impl Code {
    pub fn label(self) -> &'static str {
        TABLE.iter().find(|row| row.code == self).map_or("internal", |row| row.label)
    }
}

/// Whether the source may have been changed by a write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing was written.
    None,
    /// It may have been; a retry may duplicate.
    Unknown,
}

/// Why a call did not succeed. `message` and the fields beside it are public; `log` is not.
#[derive(Clone, Debug)]
pub struct CallError {
    pub code: Code,
    pub message: Cow<'static, str>,
    pub field: Option<String>,
    pub reason: Option<String>,
    pub invalid: Option<Box<InvalidArguments>>,
    pub retry_after_ms: Option<u32>,
    pub outcome: Option<WriteOutcome>,
    pub log: Option<String>,
    /// The tool is unknown or hidden: a protocol error, not a result.
    pub unknown_tool: bool,
}

impl CallError {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            reason: None,
            invalid: None,
            retry_after_ms: None,
            outcome: None,
            log: None,
            unknown_tool: false,
        }
    }

    pub fn unknown_tool() -> Self {
        Self { unknown_tool: true, ..Self::new(Code::InvalidArguments, "Unknown tool.") }
    }

    pub fn invalid(invalid: InvalidArguments) -> Self {
        Self {
            message: invalid.message().into(),
            invalid: Some(Box::new(invalid)),
            ..Self::new(Code::InvalidArguments, "")
        }
    }

    pub fn log(mut self, log: impl Into<String>) -> Self {
        self.log = Some(log.into());
        self
    }

    pub fn retry_after_ms(mut self, milliseconds: u32) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    pub fn outcome(mut self, outcome: WriteOutcome) -> Self {
        self.outcome = Some(outcome);
        if outcome == WriteOutcome::Unknown {
            self.retry_after_ms = None; // an agent must look before it repeats
        }
        self
    }

    /// As the agent reads it: `{code, call_id, message?, field?, reason?, errors?, retry_after_ms?, outcome?}`.
    pub fn into_result(self, call_id: &str) -> ToolResult {
        let errors = self.invalid.as_ref().map_or(&[][..], |invalid| &invalid.errors[..]);
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
        let structured = content.to_json();
        // Older clients, and some models, see the text alone.
        let text = match self.retry_after_ms {
            None => self.message.into_owned(),
            Some(wait @ ..1000) => format!("{} Try again in {wait} ms.", self.message),
            Some(wait) => format!("{} Try again in {} s.", self.message, wait.div_ceil(1000)),
        };
        ToolResult::new(text, structured, true)
    }
}

impl WriteOutcome {
    pub fn label(self) -> &'static str {
        match self {
            WriteOutcome::None => "none",
            WriteOutcome::Unknown => "unknown",
        }
    }
}

impl From<AdapterFailure> for CallError {
    fn from(failure: AdapterFailure) -> Self {
        match failure {
            AdapterFailure::Guest(error) => error.into(),
            AdapterFailure::Unavailable(adapter) => {
                Self::new(Code::Unavailable, "The adapter of this tool is not loaded.")
                    .log(format!("no plugin provides the adapter `{adapter}`"))
            }
            AdapterFailure::Overloaded { retry_after_ms } => {
                Self::new(Code::Overloaded, "Too many calls are running at once.").retry_after_ms(retry_after_ms)
            }
            AdapterFailure::BackedOff { retry_after_ms } => Self::new(
                Code::Unavailable,
                "The adapter of this tool failed in all its last calls and is tried again later.",
            )
            .retry_after_ms(retry_after_ms),
            AdapterFailure::Timeout => Self::new(Code::Timeout, "The call took longer than it may."),
            AdapterFailure::Cancelled => Self::new(Code::Cancelled, "The call was cancelled."),
            AdapterFailure::Failed(why) => Self::new(Code::PluginFailed, "The adapter of this tool failed.").log(why),
        }
    }
}

impl From<GuestError> for CallError {
    /// Guest codes are open strings; one we do not know is the source's own error.
    fn from(error: GuestError) -> Self {
        let code = match error.code.as_str() {
            "not_found" => Code::NotFound,
            "ambiguous" => Code::Ambiguous,
            "conflict" => Code::Conflict,
            "invalid" | "invalid_arguments" => Code::InvalidArguments,
            "bad_cursor" => return Self::invalid(InvalidArguments::bad_cursor()),
            "rate_limited" => Code::RateLimited,
            "overloaded" => Code::Overloaded,
            "denied" | "forbidden" => Code::Forbidden,
            "timeout" => Code::Timeout,
            "cancelled" => Code::Cancelled,
            "unavailable" => Code::Unavailable,
            "source_changed" => Code::SourceChanged,
            "read_only" | "write_disabled" => Code::WriteDisabled,
            "output_mismatch" => Code::OutputMismatch,
            "internal" | "not_configured" => Code::PluginFailed,
            _ => Code::UpstreamError,
        };
        // The guest is not trusted with the text block: one line, bounded.
        let message: String = error.message.chars().filter(|char| !char.is_control()).take(500).collect();
        Self {
            field: error.field.map(|field| field.chars().take(64).collect()),
            reason: (code == Code::InvalidArguments).then(|| "refused_by_source".to_owned()),
            retry_after_ms: error.retry_after_ms,
            log: error
                .details
                .map(|details| format!("{}: {}", error.code, details.chars().take(4000).collect::<String>())),
            ..Self::new(code, message)
        }
    }
}

/// `docs/errors.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nGenerated from `gateway/src/call/error.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         A tool that ran or was refused answers a normal result with `isError: true` and `structuredContent`\n\
         `{code, call_id, message?, field?, reason?, errors?, retry_after_ms?, outcome?}`. `outcome` stands on failed writes:\n\
         `none` (nothing was written) or `unknown` (it may have been; look before you repeat). An unknown tool and a malformed\n\
         request are JSON-RPC errors instead.\n\n| code | meaning | what to do |\n|---|---|---|\n",
    );
    for row in &TABLE {
        page.push_str(&format!("| `{}` | {} | {} |\n", row.label, row.meaning, row.advice));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(path, page()).expect("written");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page(), "run the tests with WEIR_BLESS=1");
    }

    #[test]
    fn a_retry_is_never_advised_where_it_may_duplicate() {
        let error = CallError::new(Code::Unavailable, "x").retry_after_ms(5).outcome(WriteOutcome::Unknown);
        let result = error.into_result("c_1");
        let expected = r#"{"code":"unavailable","call_id":"c_1","message":"x","outcome":"unknown"}"#;
        assert_eq!(result.structured.as_deref(), Some(expected));
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
