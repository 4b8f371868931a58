//! The reason why a server could not be used: the expectation, the fact, and the remedy.

use std::{fmt, num::NonZeroU16};

use serde_json::value::RawValue;
use weir_connections::mask::mask;
use weir_text::shorten;

/// A failure as it is shown: the precondition, the cause, the steps.
#[derive(Clone, Debug)]
pub struct UpstreamFailure {
    pub kind: UpstreamFailureKind,
    /// The precondition, as the rest of a sentence that begins with `Expected`.
    pub expected: String,
    pub cause: String,
    /// The last lines that a child wrote to stderr.
    pub stderr: Vec<String>,
    pub steps: Vec<String>,
    /// The scopes that an account needs for the request, if the server named them.
    pub scopes: Box<[String]>,
    /// Whether the server may have read something of the request; if not, it may be sent again.
    pub is_handed_over: bool,
    /// The seconds after which the server accepts requests again, if it stated that.
    pub retry_after_s: Option<NonZeroU16>,
}

/// The kinds of failures of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFailureKind {
    /// The process could not be started.
    Start,
    /// The address could not be reached, or its server is not the expected one.
    Unreachable,
    /// The server requires credentials, or different ones.
    Access,
    /// The account that is called with is not connected, or is over.
    NoAccount,
    /// The address does not support such a request: not this transport, or not this era.
    NotHere,
    /// The server takes no more requests for a while.
    Limited,
    /// The session is over; a new one may be opened.
    SessionOver,
    /// The connection or the process ended.
    Closed,
    Timeout,
    TooLarge,
    /// The server does not speak MCP, or no version that is supported here.
    Protocol,
    Cancelled,
}

impl UpstreamFailureKind {
    /// Returns the word that metrics have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Unreachable | Self::NotHere | Self::Limited => "unreachable",
            Self::Access | Self::NoAccount => "access",
            Self::SessionOver | Self::Closed | Self::Cancelled => "closed",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Protocol => "protocol",
        }
    }
}

/// A JSON-RPC error of the server.
#[derive(Clone, Debug)]
pub struct UpstreamRefusal {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

/// Why a request has no result: an error that the server answered, or no answer at all.
#[derive(Clone, Debug)]
pub enum RequestError {
    Refused(UpstreamRefusal),
    Failed(UpstreamFailure),
}

impl UpstreamRefusal {
    /// Returns the server's words: the message, and the data as it was written, unless the message repeats it.
    pub fn words(&self) -> String {
        let data = self.data.as_deref().map_or("null", RawValue::get);
        let text = serde_json::from_str::<String>(data);
        let data = text.as_deref().unwrap_or(data).trim();
        if matches!(data, "" | "null" | "{}" | "[]") || self.message.contains(data) {
            return self.message.clone();
        }
        if self.message.trim().is_empty() {
            return data.to_owned();
        }
        format!("{}: {data}", self.message.trim_end_matches(['.', ':', ' ']))
    }
}

impl UpstreamFailure {
    /// Creates a failure. `expected` continues a sentence that begins with `Expected`. The request counts as handed
    /// over.
    pub fn new(
        kind: UpstreamFailureKind,
        expected: impl Into<String>,
        cause: impl Into<String>,
    ) -> Self {
        let (expected, cause) = (expected.into(), cause.into());
        Self {
            kind,
            expected,
            cause,
            stderr: Vec::new(),
            steps: Vec::new(),
            scopes: Box::default(),
            is_handed_over: true,
            retry_after_s: None,
        }
    }

    /// Adds something that the operator can do about it.
    pub fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Adds the last lines of what a child wrote to stderr.
    pub(crate) fn stderr(mut self, text: &str) -> Self {
        const LINES_MAX: usize = 5;
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
        self.stderr = last.iter().map(|line| one_line(line, 300)).collect();
        self
    }

    /// Notes that the request was not handed over, so that it cannot have had an effect.
    pub fn before_sending(self) -> Self {
        Self {
            is_handed_over: false,
            ..self
        }
    }

    /// Returns the text for a line of a log.
    pub fn in_one_line(&self) -> String {
        let stderr = self.stderr.join(" / ");
        let stderr = if stderr.is_empty() {
            stderr
        } else {
            format!("; its last words: {stderr}")
        };
        format!("expected {}; {}{stderr}", self.expected, self.cause)
    }
}

impl fmt::Display for UpstreamFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Expected {}.\nCause: {}.", self.expected, self.cause)?;
        if !self.stderr.is_empty() {
            write!(out, "\nIts last words on stderr:")?;
        }
        for line in &self.stderr {
            write!(out, "\n    {line}")?;
        }
        if !self.steps.is_empty() {
            write!(out, "\nSteps:")?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            write!(out, "\n  {}. {step}", index + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for UpstreamFailure {}

impl RequestError {
    /// Returns a failure of `method`, for callers that treat a refusal as one.
    pub fn into_failure(self, method: &str) -> UpstreamFailure {
        match self {
            Self::Failed(failure) => failure,
            Self::Refused(refusal) => {
                let message = one_line(&refusal.words(), 300);
                let cause = format!("it refused with the error {}: {message}", refusal.code);
                UpstreamFailure::new(
                    UpstreamFailureKind::Protocol,
                    format!("the server to answer `{method}`"),
                    cause,
                )
                .step("look at the server's own log, and at what it needs to be configured")
            }
        }
    }
}

impl From<UpstreamFailure> for RequestError {
    fn from(failure: UpstreamFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Makes a stranger's text fit for a terminal or a log: one line, bounded, without control characters and secrets.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let text = &*mask(text);
    let line: String = shorten(text, chars_max)
        .chars()
        .map(|c| {
            if c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            {
                ' '
            } else {
                c
            }
        })
        .collect();
    line.trim().to_owned()
}
