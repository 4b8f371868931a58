//! The table of error codes, and the page of the docs that is made from it.
//!
//! The table is defined with the connections, the lowest crate that names a code.

pub use weir_connections::code::{FailureCode, TABLE};

/// The reasons that the gateway itself gives, in addition to those of its argument checks.
const REASONS: [(&str, FailureCode, &str); 15] = [
    (
        "account_needed",
        FailureCode::ToolError,
        "The tool's server needs an account of the caller, [connected](upstreams.md#how-a-caller-connects-an-account) by the link in the message.",
    ),
    (
        "approval_rejected",
        FailureCode::Forbidden,
        "A person rejected the [write](approvals.md).",
    ),
    (
        "asks_for_secret",
        FailureCode::ToolError,
        "Another server asked the caller for what looks like a secret. The question was not passed on.",
    ),
    (
        "client_cannot_be_asked",
        FailureCode::ToolError,
        "The tool [asks its caller](protocol.md#asking-back), and the client cannot be asked.",
    ),
    (
        "client_did_not_answer",
        FailureCode::ToolError,
        "The client gave no answer to a question in time.",
    ),
    (
        "client_left",
        FailureCode::ToolError,
        "The client closed the stream of its call before it answered.",
    ),
    (
        "client_refused",
        FailureCode::ToolError,
        "The client refused a question.",
    ),
    (
        "denied_by_policy",
        FailureCode::Forbidden,
        "A [policy](policy.md) denies the arguments.",
    ),
    (
        "done_before",
        FailureCode::Conflict,
        "The write with this [idempotency key](approvals.md#repeat-a-write-safely) was made, and its result is not kept, or has the form of another version.",
    ),
    (
        "idempotency_key_reused",
        FailureCode::InvalidArguments,
        "The idempotency key was used with other arguments.",
    ),
    (
        "in_progress",
        FailureCode::Unavailable,
        "The first write with this idempotency key has not ended.",
    ),
    (
        "outcome_unknown",
        FailureCode::Conflict,
        "The first write with this idempotency key has no known outcome.",
    ),
    (
        "plan_is_stale",
        FailureCode::Conflict,
        "The record has changed since the write was approved.",
    ),
    (
        "refused_by_source",
        FailureCode::InvalidArguments,
        "The arguments meet the schema, and the source or the other server refused them.",
    ),
    (
        "too_many_questions",
        FailureCode::ToolError,
        "One call asked its caller more than 16 times.",
    ),
];

/// Writes `docs/errors.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nGenerated from `gateway/connections/src/code.rs` and `gateway/src/codes.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         If a call fails or is refused, the tool answers a normal result with `isError: true` and `structuredContent`\n\
         `{code, call_id, message?, field?, reason?, errors?, retry_after_ms?, outcome?}`. A failed write has `outcome`:\n\
         `none` (nothing was written) or `unknown` (it may have been; look before you repeat). An unknown tool and a malformed\n\
         request are JSON-RPC errors instead.\n\nIf a tool is called over plain HTTP (`/rest/…`), the answer has the status of its code.\n\n| code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for row in &TABLE {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            row.label, row.status, row.meaning, row.advice
        ));
    }
    page.push_str(
        "\n## Reasons\n\n`reason` says more about some codes. For invalid arguments it can also be one of [these](contract-format.md#invalid-arguments); for a plugin's\n\
         own `tool_error` it is a word that the plugin chose.\n\n| reason | code | meaning |\n|---|---|---|\n",
    );
    for (reason, code, meaning) in REASONS {
        page.push_str(&format!(
            "| `{reason}` | `{}` | {meaning} |\n",
            code.label()
        ));
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
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            page(),
            "run the tests with WEIR_BLESS=1"
        );
    }
}
