//! How a request ends without an answer.

use std::time::Duration;

use crate::error::{UpstreamFailure, UpstreamFailureKind};

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
        "the server to answer what it was asked",
        "the connection was given up",
    )
}
