//! The table of protocol errors: condition → code and HTTP status.

use std::borrow::Cow;

use weir_text::shorten;

use super::ProtocolVersion;

/// The code of a call that is refused for its rate, as results of tools have it.
const RATE_LIMITED: &str = "rate_limited";
const INSUFFICIENT_SCOPE: &str = r#"{"code":"insufficient_scope","scope":"tools tools:write"}"#;

/// A JSON-RPC error. `status` is the HTTP status sent with it; stdio has no use for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i32,
    pub status: u16,
    pub message: Cow<'static, str>,
    /// JSON.
    pub data: Option<String>,
    pub retry_after_s: Option<u32>,
}

impl RpcError {
    /// Returns the error for a body that is not JSON, with the status 400. `reason` states what is wrong with it.
    pub fn parse(reason: &str) -> Self {
        Self::new(-32700, 400, format!("not valid JSON: {reason}"))
    }

    /// Returns the error for a text that is not a JSON-RPC message, or for one that has no place here.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32600, 400, message)
    }

    /// Returns an invalid request at another HTTP status, such as 403, 405, 413 or 415.
    pub fn refused(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32600, status, message)
    }

    /// Returns the error for a call that writes, from a caller whose token is only for reading.
    pub fn insufficient_scope() -> Self {
        Self {
            data: Some(INSUFFICIENT_SCOPE.to_owned()),
            ..Self::refused(
                403,
                "the tool writes, and the token has no scope `tools:write`",
            )
        }
    }

    /// Returns `true` for the error that another scope of the token mends.
    pub fn needs_scope(&self) -> bool {
        self.status == 403 && self.data.as_deref() == Some(INSUFFICIENT_SCOPE)
    }

    /// Returns the error for too many requests. `data` states when to retry, as a call's result does.
    pub fn rate_limited(retry_after_ms: u32) -> Self {
        let data = format!(r#"{{"code":"{RATE_LIMITED}","retry_after_ms":{retry_after_ms}}}"#);
        let seconds = retry_after_ms.div_ceil(1000);
        let message = format!("you are asking too often: try again in {seconds} s");
        Self {
            data: Some(data),
            retry_after_s: Some(seconds),
            ..Self::refused(429, message)
        }
    }

    /// Returns the error for a body that does not fit now.
    pub fn no_room(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            retry_after_s: Some(1),
            ..Self::refused(status, message)
        }
    }

    /// Returns the error for an unknown method. A modern client recognizes a modern server by this 404 with a body;
    /// legacy errors of methods have the status 200.
    pub fn unknown_method(method: &str, modern: bool) -> Self {
        Self::new(
            -32601,
            if modern { 404 } else { 200 },
            format!("unknown method `{}`", shorten(method, QUOTE_MAX_CHARS)),
        )
    }

    /// Returns the error for a method of a capability that is not declared, with the reason.
    pub fn undeclared(method: &str, modern: bool, why: &str) -> Self {
        let unknown = Self::unknown_method(method, modern);
        Self {
            message: format!("{}: {why}", unknown.message).into(),
            ..unknown
        }
    }

    /// Returns the error for `params` or `_meta` that cannot be read.
    pub fn malformed_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32602, 400, message)
    }

    /// Returns the error for `params` that can be read but that the method refuses, in band.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32602, 200, message)
    }

    /// Returns the error for an unknown tool. `meant` is one that the caller can call.
    pub fn unknown_tool(tool: &str, meant: Option<&str>) -> Self {
        let meant = meant
            .map(|meant| format!("; did you mean `{meant}`?"))
            .unwrap_or_default();
        Self::invalid_params(format!(
            "unknown tool `{}`{meant}",
            shorten(tool, QUOTE_MAX_CHARS)
        ))
    }

    /// Returns the error for a prompt that is not listed.
    pub fn unknown_prompt(prompt: &str) -> Self {
        Self::invalid_params(format!(
            "unknown prompt `{}`",
            shorten(prompt, QUOTE_MAX_CHARS)
        ))
    }

    /// Revisions up to 2025-11-25 have a separate code for it.
    pub fn unknown_resource(uri: &str, modern: bool) -> Self {
        let code = if modern { -32602 } else { -32002 };
        let data = serde_json::json!({ "uri": shorten(uri, QUOTE_MAX_CHARS) }).to_string();
        Self {
            data: Some(data),
            ..Self::new(
                code,
                200,
                format!("unknown resource `{}`", shorten(uri, QUOTE_MAX_CHARS)),
            )
        }
    }

    /// Returns the error for a failure of the gateway. The client reads `message`.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32603, 200, message)
    }

    /// Returns the error for a header that contradicts the body, with the status 400.
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(-32020, 400, message)
    }

    /// `reason`: a word for programs. `needed`: a JSON object of capabilities.
    pub fn missing_capability(message: &'static str, reason: &str, needed: &str) -> Self {
        let data = format!(r#"{{"reason":"{reason}","requiredCapabilities":{needed}}}"#);
        Self {
            data: Some(data),
            ..Self::new(-32021, 400, message)
        }
    }

    /// Returns the error for a revision that is not spoken. It names those that are.
    pub fn unsupported_version(requested: &str) -> Self {
        let data = serde_json::json!({
            "supported": ProtocolVersion::MODERN.map(ProtocolVersion::as_str),
            "requested": shorten(requested, QUOTE_MAX_CHARS),
        });
        Self {
            data: Some(data.to_string()),
            ..Self::new(-32022, 400, "unsupported protocol version")
        }
    }

    fn new(code: i32, status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            status,
            message: message.into(),
            data: None,
            retry_after_s: None,
        }
    }
}

/// The longest text of a client that an error repeats, in characters.
const QUOTE_MAX_CHARS: usize = 128;
