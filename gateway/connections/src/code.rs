//! The table of codes: the names of failures, their users, and their consequences.
//!
//! The table is defined here because connections are the lowest crate that names a code: the plugin host, the call path and
//! `docs/errors.md` read it too. A text becomes a [`FailureCode`] once, where it is read.

/// The closed list. Any other error of a source is a [`FailureCode::UpstreamError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureCode {
    InvalidArguments,
    NotFound,
    Ambiguous,
    Conflict,
    TooLarge,
    RateLimited,
    Overloaded,
    Forbidden,
    Timeout,
    Cancelled,
    Unavailable,
    SourceChanged,
    Unsupported,
    UpstreamError,
    WriteDisabled,
    PluginFailed,
    OutputMismatch,
    ToolError,
    VersionGone,
    ApprovalRequired,
    Internal,
}

/// The party that has to do something about the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsibleParty {
    Caller,
    Source,
    Operator,
    Plugin,
    Gateway,
}

/// Whether the same call may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    Never,
    /// The call may succeed with other arguments.
    Changed,
    /// The call may succeed after a while.
    Later,
    /// The call may succeed if it is repeated at once, but only once.
    Once,
}

/// One code of the table.
pub struct CodeEntry {
    pub code: FailureCode,
    /// The word on the wire, in logs, metrics and audit.
    pub label: &'static str,
    /// The status of the answer where a tool is called by plain HTTP.
    pub status: u16,
    /// The words of plugins and connections for it; the first one is the plugin interface's own.
    pub words: &'static [&'static str],
    pub fault: ResponsibleParty,
    pub retry: RetryAdvice,
    /// A source that answers so to a write has refused it: nothing was changed.
    pub nothing_changed: bool,
    pub meaning: &'static str,
    /// The advice to an agent.
    pub advice: &'static str,
}

pub const TABLE: [CodeEntry; 21] = [
    CodeEntry {
        code: FailureCode::InvalidArguments,
        label: "invalid_arguments",
        status: 400,
        words: &["invalid", "invalid_arguments"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Changed,
        nothing_changed: true,
        meaning: "The arguments do not meet the input schema, or the source refused a value.",
        advice: "Correct the arguments as `errors` says, and call again.",
    },
    CodeEntry {
        code: FailureCode::NotFound,
        label: "not_found",
        status: 404,
        words: &["not_found"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Changed,
        nothing_changed: true,
        meaning: "No record meets the conditions.",
        advice: "Do not repeat the same call; look with other arguments.",
    },
    CodeEntry {
        code: FailureCode::Ambiguous,
        label: "ambiguous",
        status: 409,
        words: &["ambiguous"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Changed,
        nothing_changed: false,
        meaning: "More than one record meets the conditions of a lookup.",
        advice: "Add conditions, or use a list tool.",
    },
    CodeEntry {
        code: FailureCode::Conflict,
        label: "conflict",
        status: 409,
        words: &["conflict"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Changed,
        nothing_changed: true,
        meaning: "The source holds a record that conflicts with this one, or the record changed meanwhile.",
        advice: "Read the record, then decide.",
    },
    CodeEntry {
        code: FailureCode::TooLarge,
        label: "too_large",
        status: 413,
        words: &["too_large"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Changed,
        // A service may have written before its answer turned out too large.
        nothing_changed: false,
        meaning: "The request or the answer is larger than a connection or the source accepts.",
        advice: "Ask for fewer records or send less. Check `outcome` before repeating a write.",
    },
    CodeEntry {
        code: FailureCode::RateLimited,
        label: "rate_limited",
        status: 429,
        words: &["rate_limited"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Later,
        nothing_changed: false,
        meaning: "Too many calls in the time allowed, here or at the source.",
        advice: "Wait `retry_after_ms`, then call again.",
    },
    CodeEntry {
        code: FailureCode::Overloaded,
        label: "overloaded",
        status: 503,
        words: &["overloaded"],
        fault: ResponsibleParty::Gateway,
        retry: RetryAdvice::Later,
        nothing_changed: false,
        meaning: "Too many calls are running at once.",
        advice: "Wait `retry_after_ms`, then call again.",
    },
    CodeEntry {
        code: FailureCode::Forbidden,
        label: "forbidden",
        status: 403,
        words: &["denied", "forbidden"],
        fault: ResponsibleParty::Operator,
        retry: RetryAdvice::Never,
        nothing_changed: true,
        meaning: "The call is not allowed: a grant or a permission is missing.",
        advice: "Do not repeat; an operator must change the configuration.",
    },
    CodeEntry {
        code: FailureCode::Timeout,
        label: "timeout",
        status: 504,
        words: &["timeout"],
        fault: ResponsibleParty::Source,
        retry: RetryAdvice::Later,
        nothing_changed: false,
        meaning: "The deadline of the call passed.",
        advice: "Ask for less, or later. Check `outcome` before repeating a write.",
    },
    CodeEntry {
        code: FailureCode::Cancelled,
        label: "cancelled",
        status: 499,
        words: &["cancelled"],
        fault: ResponsibleParty::Caller,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The caller went away or asked to stop.",
        advice: "None.",
    },
    CodeEntry {
        code: FailureCode::Unavailable,
        label: "unavailable",
        status: 503,
        words: &["unavailable"],
        fault: ResponsibleParty::Source,
        retry: RetryAdvice::Later,
        nothing_changed: false,
        meaning: "The source or its adapter cannot be reached now.",
        advice: "Try again later, after `retry_after_ms` where it is given. Check `outcome` before repeating a write.",
    },
    CodeEntry {
        code: FailureCode::SourceChanged,
        label: "source_changed",
        status: 502,
        words: &["source_changed"],
        fault: ResponsibleParty::Source,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The source no longer has the columns the contract was published with.",
        advice: "Do not repeat; an operator must publish the contract anew.",
    },
    CodeEntry {
        code: FailureCode::Unsupported,
        label: "unsupported",
        status: 501,
        words: &["unsupported"],
        fault: ResponsibleParty::Plugin,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The adapter does not support the operation, for any caller.",
        advice: "Do not repeat; use another tool or other arguments. Check `outcome` of a write.",
    },
    CodeEntry {
        code: FailureCode::UpstreamError,
        label: "upstream_error",
        status: 502,
        words: &["upstream_error"],
        fault: ResponsibleParty::Source,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The source answered an error.",
        advice: "Read the message; repeating rarely helps.",
    },
    CodeEntry {
        code: FailureCode::WriteDisabled,
        label: "write_disabled",
        status: 403,
        words: &["read_only", "write_disabled"],
        fault: ResponsibleParty::Operator,
        retry: RetryAdvice::Never,
        nothing_changed: true,
        meaning: "The collection or its connection is read-only.",
        advice: "Do not repeat; an operator must allow writing.",
    },
    CodeEntry {
        code: FailureCode::PluginFailed,
        label: "plugin_failed",
        status: 502,
        words: &["internal", "not_configured"],
        fault: ResponsibleParty::Plugin,
        retry: RetryAdvice::Once,
        nothing_changed: false,
        meaning: "The adapter crashed or reached one of its limits.",
        advice: "One retry is reasonable; then report the call_id.",
    },
    CodeEntry {
        code: FailureCode::OutputMismatch,
        label: "output_mismatch",
        status: 502,
        words: &["output_mismatch"],
        fault: ResponsibleParty::Source,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The source answered a value that the contract does not allow; nothing is passed on.",
        advice: "Do not repeat; report the call_id.",
    },
    CodeEntry {
        code: FailureCode::ToolError,
        label: "tool_error",
        status: 422,
        words: &[],
        fault: ResponsibleParty::Plugin,
        retry: RetryAdvice::Changed,
        nothing_changed: false,
        meaning: "The tool refused for a reason of its own, named in `reason`.",
        advice: "Read `reason`.",
    },
    CodeEntry {
        code: FailureCode::VersionGone,
        label: "version_gone",
        status: 410,
        words: &[],
        fault: ResponsibleParty::Operator,
        retry: RetryAdvice::Never,
        nothing_changed: true,
        meaning: "The version of the contract that the caller is pinned to, or that its endpoint names, is no longer served.",
        advice: "Do not repeat; an operator must move the pin (`weir keys pin`). Then list the tools again.",
    },
    CodeEntry {
        code: FailureCode::ApprovalRequired,
        label: "approval_required",
        status: 403,
        words: &[],
        fault: ResponsibleParty::Operator,
        retry: RetryAdvice::Later,
        nothing_changed: true,
        meaning: "A person must approve the call before it runs. `plan` has the id under which it waits, what it would change, and until when.",
        advice: "Tell the person, and repeat the same call once it is approved ([approvals](approvals.md)).",
    },
    CodeEntry {
        code: FailureCode::Internal,
        label: "internal",
        status: 500,
        words: &[],
        fault: ResponsibleParty::Gateway,
        retry: RetryAdvice::Never,
        nothing_changed: false,
        meaning: "The gateway failed.",
        advice: "Report the call_id.",
    },
];

/// A cursor of another tool: a plugin's word for one argument at fault, which has no row.
pub const BAD_CURSOR: &str = "bad_cursor";

impl FailureCode {
    /// Reads the word of a plugin or a connection as a code; a word that is not in the table is the source's own error.
    pub fn of_word(word: &str) -> Self {
        let row = TABLE.iter().find(|row| row.words.contains(&word));
        row.map_or(Self::UpstreamError, |row| row.code)
    }

    /// Reads the code of an answer.
    pub fn of_label(label: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.label == label)
            .map(|row| row.code)
    }

    /// Returns the row of the code.
    pub fn row(self) -> &'static CodeEntry {
        &TABLE[self as usize]
    }

    /// Returns the word on the wire, in logs, metrics and audit.
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// Returns the plugin interface's word for it.
    pub fn word(self) -> &'static str {
        self.row()
            .words
            .first()
            .copied()
            .unwrap_or(self.row().label)
    }

    /// Returns `true` if a source that answers so to a write is known to have changed nothing.
    pub fn nothing_changed(self) -> bool {
        self.row().nothing_changed
    }

    /// Returns `true` if the same call may succeed after a while.
    pub fn is_for_later(self) -> bool {
        self.row().retry == RetryAdvice::Later
    }

    /// Returns `true` if the source or its configuration is at fault, and not the plugin that reports it.
    pub fn is_outside_plugin(self) -> bool {
        self.row().fault == ResponsibleParty::Operator || self.is_for_later()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_codes_and_no_word_stands_twice() {
        let mut words = Vec::new();
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, at, "{}", row.label);
            assert!(
                row.words.iter().all(|word| !words.contains(word)),
                "{}",
                row.label
            );
            words.extend(row.words);
            for word in row.words {
                assert_eq!(FailureCode::of_word(word), row.code, "{word}");
            }
        }
        assert_eq!(
            FailureCode::of_word("anything else"),
            FailureCode::UpstreamError
        );
    }
}
