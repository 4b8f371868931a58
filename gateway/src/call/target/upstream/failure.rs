//! Reads why a server gave no result: it could not be reached, broke off, or refused.

use serde_json::{Map, Value, json as object};
use weir_schema::json;
use weir_upstream::{
    CallFailure, UpstreamFailure, UpstreamFailureKind, UpstreamOperation, UpstreamRefusal,
};

use super::account;
use crate::{
    call::{CallError, error::WriteOutcome},
    codes::FailureCode,
};

/// The most characters of a server's own words about a refusal, including the data of its error.
const WORDS_MAX: usize = 1_000;
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
/// The code for an unknown resource in revisions up to 2025-11-25.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The code of 2025-11-25 for a request that is made again once its caller has opened URLs.
const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The state of a question that replaces such a refusal.
pub(super) const URLS: &str = "weir-urls";

/// Returns the error of a request that has no result.
pub(super) fn failed(failure: CallFailure, asked: &UpstreamOperation, writes: bool) -> CallError {
    let unavailable = |message: &'static str| CallError::new(FailureCode::Unavailable, message);
    match failure {
        CallFailure::Overloaded { retry_after_ms } => {
            let message = "Too many calls of this tool's server are running at once.";
            CallError::new(FailureCode::Overloaded, message).retry_after_ms(retry_after_ms)
        }
        CallFailure::BackedOff { retry_after_ms } => {
            let message =
                "The server of this tool failed in all its last calls and is tried again later.";
            unavailable(message).retry_after_ms(retry_after_ms)
        }
        CallFailure::NotThere {
            why,
            retry_after_ms,
        } => unavailable("The server of this tool is not available now.")
            .retry_after_ms(retry_after_ms)
            .log(why.in_one_line()),
        CallFailure::Refused(refusal) => refused(&refusal, asked, writes),
        CallFailure::Failed(failure) => {
            let error = match failure.kind {
                UpstreamFailureKind::Timeout => {
                    CallError::new(FailureCode::Timeout, "The call took longer than it may.")
                }
                UpstreamFailureKind::Cancelled => {
                    CallError::new(FailureCode::Cancelled, "The call was cancelled.")
                }
                UpstreamFailureKind::TooLarge => CallError::new(
                    FailureCode::TooLarge,
                    "The tool answered more than may be passed on.",
                ),
                UpstreamFailureKind::Access => unavailable(
                    "The server of this tool does not accept the gateway's credentials.",
                ),
                UpstreamFailureKind::NoAccount => account::needed(
                    "The caller's account at the server of this tool is not connected.",
                ),
                UpstreamFailureKind::Protocol => CallError::new(
                    FailureCode::UpstreamError,
                    "The server of this tool returned no result.",
                ),
                UpstreamFailureKind::NotHere => CallError::new(
                    FailureCode::UpstreamError,
                    format!(
                        "The server of this tool refused the request: {}.",
                        failure.cause
                    ),
                ),
                UpstreamFailureKind::Limited => CallError::new(
                    FailureCode::RateLimited,
                    "The server of this tool accepts no more calls for now.",
                )
                .retry_after_ms(wait_ms(&failure)),
                _ => unavailable("The server of this tool broke off.")
                    .retry_after_ms(wait_ms(&failure)),
            };
            let outcome = if failure.is_handed_over {
                WriteOutcome::Unknown
            } else {
                WriteOutcome::None
            };
            let error = error.log(failure.in_one_line());
            if writes {
                error.outcome(outcome)
            } else {
                error
            }
        }
    }
}

/// Returns the milliseconds after which a server that currently accepts no calls may be called again; a second, unless it gives a
/// time.
fn wait_ms(failure: &UpstreamFailure) -> u32 {
    failure
        .retry_after_s
        .map_or(1_000, |seconds| u32::from(seconds.get()) * 1_000)
}

/// Returns the URLs whose opening a server of 2025-11-25 requires, as a question of the modern era: its caller calls again once
/// they are opened. `None` for a refusal of another kind.
pub(super) fn url_question(refusal: &UpstreamRefusal) -> Option<Value> {
    let data = refusal
        .data
        .as_ref()
        .filter(|_| refusal.code == URL_ELICITATION_REQUIRED)?;
    let data = json::read(data.get()).ok()?;
    let elicitations = data.get("elicitations")?.as_array()?;
    let is_url = |asked: &Value| asked["mode"] == "url" && asked["url"].is_string();
    if elicitations.is_empty() || !elicitations.iter().all(is_url) {
        return None;
    }
    let request = |params: &Value| object!({ "method": "elicitation/create", "params": params });
    let requests = elicitations
        .iter()
        .enumerate()
        .map(|(number, params)| (format!("url-{number}"), request(params)));
    let requests: Map<_, _> = requests.collect();
    Some(
        object!({ "resultType": "input_required", "inputRequests": requests, "requestState": URLS }),
    )
}

/// Reads a protocol error by which the server has refused.
fn refused(refusal: &UpstreamRefusal, asked: &UpstreamOperation, writes: bool) -> CallError {
    let message = readable(&refusal.words());
    let words = refusal.message.to_lowercase();
    let is_named = |name: &str| words.contains(&name.to_lowercase());
    let is_unknown = match asked {
        UpstreamOperation::Tool { name, .. } => {
            words.contains("unknown tool")
                || (is_named(name)
                    && (refusal.code == METHOD_NOT_FOUND
                        || words.contains("not found")
                        || words.contains("unknown")))
        }
        UpstreamOperation::Resource { uri } if is_missing(refusal, uri) => {
            return CallError::unknown();
        }
        _ => false,
    };
    match refusal.code {
        METHOD_NOT_FOUND if is_unknown || is_about_request(&words) => changed(message),
        INVALID_PARAMS if is_unknown => changed(message),
        INVALID_PARAMS => {
            let error = CallError::new(FailureCode::InvalidArguments, message);
            CallError {
                reason: Some("refused_by_source".to_owned()),
                ..error
            }
        }
        // The server has done nothing yet.
        URL_ELICITATION_REQUIRED => CallError::new(FailureCode::ToolError, message),
        code => {
            let error = CallError::new(FailureCode::UpstreamError, message)
                .log(format!("the server's error {code}"));
            if writes {
                error.outcome(WriteOutcome::Unknown)
            } else {
                error
            }
        }
    }
}

/// Returns whether the server has no such resource. Revisions up to 2025-11-25 have a code for it; later ones, and the SDKs of
/// both, use the code for wrong parameters with an explanation in words. Python SDK 1.x names the URI with the code 0, and
/// FastMCP in TypeScript names it with the code for an unknown method.
fn is_missing(refusal: &UpstreamRefusal, uri: &str) -> bool {
    let words = refusal.words().to_lowercase();
    let names_it = words.contains(&uri.to_lowercase());
    let is_unknown = words.contains("not found") || words.contains("unknown");
    match refusal.code {
        RESOURCE_NOT_FOUND => true,
        INVALID_PARAMS => is_unknown && (names_it || words.contains("resource")),
        METHOD_NOT_FOUND | 0 => is_unknown && names_it,
        _ => false,
    }
}

/// Returns whether "method not found" concerns the request to the server, by its lower-case message. Otherwise it concerns a
/// question of the server that its caller does not support: SDKs answer the call with that error.
fn is_about_request(words: &str) -> bool {
    let words = words.trim().trim_start_matches("mcp error -32601:").trim();
    let about = [
        "not found",
        "no such",
        "unknown tool",
        "tools/call",
        "prompts/get",
        "resources/read",
    ];
    words.is_empty() || about.iter().any(|part| words.contains(part))
}

fn changed(words: String) -> CallError {
    CallError::new(
        FailureCode::SourceChanged,
        "The server of this tool no longer has it as it was published.",
    )
    .log(words)
}

/// Returns a server's message without terminal control characters. For a long message, only the beginning and the end are kept,
/// where the cause usually is.
fn readable(message: &str) -> String {
    let plain: Vec<char> = message
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    if plain.len() <= WORDS_MAX {
        return plain.into_iter().collect();
    }
    let (start, end) = (
        &plain[..WORDS_MAX / 2],
        &plain[plain.len() - WORDS_MAX / 2..],
    );
    format!(
        "{} … {}",
        start.iter().collect::<String>(),
        end.iter().collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::{super::raw, *};

    fn refusal(code: i64, message: &str) -> CallError {
        let refusal = UpstreamRefusal {
            code,
            message: message.to_owned(),
            data: None,
        };
        let asked = UpstreamOperation::Tool {
            name: "create_issue".into(),
            arguments: None,
            as_task: false,
        };
        failed(CallFailure::Refused(refusal), &asked, true)
    }

    #[test]
    fn a_server_that_takes_no_more_calls_is_no_failure_of_the_tool() {
        let asked = UpstreamOperation::Tool {
            name: "create_issue".into(),
            arguments: None,
            as_task: false,
        };
        let limited = |seconds| UpstreamFailure {
            retry_after_s: std::num::NonZeroU16::new(seconds),
            ..UpstreamFailure::new(UpstreamFailureKind::Limited, "x", "y").before_sending()
        };
        for (seconds, wait) in [(7, 7_000), (0, 1_000)] {
            let error = failed(CallFailure::Failed(limited(seconds)), &asked, true);
            assert_eq!(
                (error.code, error.retry_after_ms, error.outcome),
                (
                    FailureCode::RateLimited,
                    Some(wait),
                    Some(WriteOutcome::None)
                )
            );
        }
        let refused = UpstreamFailure::new(
            UpstreamFailureKind::NotHere,
            "x",
            "it answers 413 Payload Too Large",
        );
        let error = failed(CallFailure::Failed(refused), &asked, false);
        assert_eq!(error.code, FailureCode::UpstreamError);
        assert!(error.message.contains("413"), "{}", error.message);
        assert_eq!(error.retry_after_ms, None);
    }

    #[test]
    fn a_server_that_is_busy_is_called_again_when_it_says() {
        let asked = UpstreamOperation::Resource { uri: "u".into() };
        for (seconds, wait) in [(7, 7_000), (0, 1_000)] {
            let busy = UpstreamFailure {
                retry_after_s: std::num::NonZeroU16::new(seconds),
                ..UpstreamFailure::new(UpstreamFailureKind::Unreachable, "x", "y")
            };
            let error = failed(CallFailure::Failed(busy), &asked, false);
            let expected = (FailureCode::Unavailable, Some(wait));
            assert_eq!((error.code, error.retry_after_ms), expected);
        }
    }

    #[test]
    fn a_server_that_no_longer_has_the_tool_is_told_from_one_that_refuses_arguments() {
        for (code, message, expected) in [
            (
                -32602,
                "Unknown tool: create_issue",
                FailureCode::SourceChanged,
            ),
            (
                -32602,
                "MCP error -32602: Tool create_issue not found",
                FailureCode::SourceChanged,
            ),
            (-32602, "Tool foo not found", FailureCode::InvalidArguments),
            (-32602, "`title` is too long", FailureCode::InvalidArguments),
            (-32601, "Method not found", FailureCode::SourceChanged),
            (
                -32601,
                "MCP error -32601: Method not found",
                FailureCode::SourceChanged,
            ),
            (-32601, "", FailureCode::SourceChanged),
            (
                -32601,
                "create_issue is not supported",
                FailureCode::SourceChanged,
            ),
            (
                -32601,
                "MCP error -32601: the client does not offer sampling/createMessage",
                FailureCode::UpstreamError,
            ),
            (
                -32601,
                "Unhandled method textDocument/definition",
                FailureCode::UpstreamError,
            ),
            (-32603, "Internal error", FailureCode::UpstreamError),
        ] {
            assert_eq!(refusal(code, message).code, expected, "{code} {message}");
        }
        assert_eq!(
            refusal(-32603, "Internal error").outcome,
            Some(WriteOutcome::Unknown)
        );
        assert_eq!(
            refusal(-32602, "`title`\u{1b}[31m is\ntoo long").message,
            "`title`[31m is\ntoo long"
        );
    }

    #[test]
    fn the_data_of_a_refusal_is_passed_on_within_its_bound() {
        let with = |data: &Value| {
            let refusal = UpstreamRefusal {
                code: -32603,
                message: "Internal error".to_owned(),
                data: Some(raw(data).expect("JSON")),
            };
            let asked = UpstreamOperation::Resource { uri: "u".into() };
            refused(&refusal, &asked, false).message.into_owned()
        };
        assert_eq!(
            with(&object!({ "reason": "quota of project 7 used up" })),
            r#"Internal error: {"reason":"quota of project 7 used up"}"#
        );
        assert_eq!(with(&object!("quota\u{1b}[1m")), "Internal error: quota[1m");
        for nothing in [object!(null), object!({}), object!("error")] {
            assert_eq!(with(&nothing), "Internal error");
        }
        let long = with(&object!({ "trace": "x".repeat(1 << 20) }));
        assert!(long.chars().count() <= WORDS_MAX + 3, "{}", long.len());
    }

    #[test]
    fn urls_that_a_legacy_server_wants_opened_are_a_question() {
        let url = object!({ "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "7" });
        let refusal = |code, elicitations: Value| {
            let data = raw(&object!({ "elicitations": elicitations })).expect("JSON");
            url_question(&UpstreamRefusal {
                code,
                message: String::new(),
                data: Some(data),
            })
        };
        let asked = refusal(URL_ELICITATION_REQUIRED, object!([url])).expect("a question");
        assert_eq!(asked["resultType"], "input_required");
        let request = object!({ "url-0": { "method": "elicitation/create", "params": url } });
        assert_eq!(asked["inputRequests"], request);
        for other in [object!([]), object!([{ "mode": "form" }]), Value::Null] {
            assert_eq!(refusal(URL_ELICITATION_REQUIRED, other), None);
        }
        assert_eq!(refusal(-32603, object!([url])), None);
    }

    #[test]
    fn what_was_never_sent_changed_nothing_and_what_was_may_have() {
        let asked = UpstreamOperation::Tool {
            name: "t".into(),
            arguments: None,
            as_task: false,
        };
        let closed = UpstreamFailure::new(UpstreamFailureKind::Closed, "x", "y");
        let sent = failed(CallFailure::Failed(closed.clone()), &asked, true);
        assert_eq!(
            (sent.outcome, sent.retry_after_ms),
            (Some(WriteOutcome::Unknown), None)
        );
        let unsent = failed(
            CallFailure::Failed(closed.clone().before_sending()),
            &asked,
            true,
        );
        assert_eq!(
            (unsent.outcome, unsent.retry_after_ms),
            (Some(WriteOutcome::None), Some(1_000))
        );
        assert_eq!(
            failed(CallFailure::Failed(closed), &asked, false).outcome,
            None
        );
    }
}
