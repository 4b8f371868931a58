//! The one table of error codes: label, meaning, and what an agent should do.

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

/// `docs/errors.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nGenerated from `gateway/src/codes.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
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
}
