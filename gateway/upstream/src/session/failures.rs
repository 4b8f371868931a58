//! How a request ends without an answer.

use std::time::Duration;

use crate::{
    error::{RequestError, UpstreamFailure, UpstreamFailureKind},
    link::http::loses_session,
};

/// Returns `true` if a request was refused for its session, before anything of it was done. For a legacy session some
/// servers report that like an answer: with an id, and with the status 200.
pub(super) fn is_session_over(error: &RequestError, keeps_session: bool) -> bool {
    match error {
        RequestError::Failed(failure) => failure.kind == UpstreamFailureKind::SessionOver,
        RequestError::Refused(refusal) if keeps_session => match refusal.code {
            // Those of AWS, of the convention of the SDKs, and of tower-mcp.
            -30001 | -32001 | -32005 => loses_session(&refusal.message),
            // A resource that is not found has this code too.
            -32002 => refusal
                .message
                .eq_ignore_ascii_case("server not initialized"),
            _ => false,
        },
        RequestError::Refused(_) => false,
    }
}

pub(super) fn timed_out(method: &str, limit: Duration) -> UpstreamFailure {
    let cause = format!("it did not within {} s", limit.as_secs_f64());
    UpstreamFailure::new(UpstreamFailureKind::Timeout, format!("the server to answer `{method}`"), cause)
        .step("look at what the server waits for; raise the limit where it needs longer, such as `--timeout 180`")
}

pub(super) fn cancelled() -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Cancelled,
        "the call to run to its end",
        "its caller cancelled it",
    )
}

pub(super) fn given_up() -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Closed,
        "the server to answer the request",
        "the connection was dropped",
    )
}
