//! Questions of a tool to its caller: which are allowed, and the sealed state that travels through the caller.

mod secret;

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub(super) use self::secret::secret_field;
use super::{CallError, CallRequest, ErrorForm, InputRequired, error::MissingCapability};
use crate::{
    catalogue::CatalogueTool,
    codes::FailureCode,
    cursor::{CursorCipher, CursorScope, CursorSealError, TEXT_MAX_BYTES},
    identity::{CallerIdentity, now_ms},
};

/// The time within which a caller must answer.
const ANSWER_WITHIN_MS: i64 = 60 * 60 * 1_000;
const REQUESTS_MAX: usize = 16;
const ELICITATION: &str = "elicitation/create";

/// The questions that a caller can be asked, and its answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerInteraction<'a> {
    /// JSON with what the caller can answer; `None` means that it cannot be asked.
    pub capabilities: Option<&'a str>,
    pub lacking: CapabilityFallback,
    pub resumed: Option<CallerResponses<'a>>,
}

/// The way in which a caller learns that it lacks a capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapabilityFallback {
    /// Outside a protocol with capabilities (plain HTTP, the command line): the error says that this caller cannot be asked.
    /// A tool that runs only as a task runs like any other.
    #[default]
    Outside,
    /// By a result that is an error (MCP up to 2025-11-25). A tool that runs only as a task runs like any other.
    Result,
    /// As the protocol's own error (2026-07-28).
    ProtocolError,
}

/// The caller's answer to what a tool asked it.
#[derive(Clone, Copy, Debug)]
pub struct CallerResponses<'a> {
    /// JSON.
    pub responses: Option<&'a str>,
    /// The state, as it was given to the caller. Answers without it belong to no question.
    pub state: Option<&'a str>,
}

/// Binds a question to one call: by one agent, with these arguments, under these definitions.
pub(super) fn bound(
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    definitions: &str,
    arguments: &str,
) -> CursorScope {
    bound_to(
        caller,
        &tool.name,
        tool.version.major,
        definitions,
        arguments,
    )
}

/// Binds a question to a request that is not a tool call. No tool has a `/` in its name, so `named` cannot be
/// mistaken for one.
pub(super) fn bound_to(
    caller: &CallerIdentity,
    named: &str,
    major: u32,
    definitions: &str,
    arguments: &str,
) -> CursorScope {
    let call = format!("asking\n{}\n{definitions}\n{arguments}", caller.tenant);
    CursorScope::new(named, major, caller.principal(), &call)
}

/// Returns the state that came with the question, and the answers.
pub(super) fn open(
    cursors: &CursorCipher,
    bound: &CursorScope,
    resumed: CallerResponses<'_>,
) -> Result<(Value, Value), CallError> {
    let state = match resumed.state {
        Some(sealed) => kept(cursors, bound, sealed)?,
        // The tool kept no state, or gets none of it, and asks again.
        None => Value::Null,
    };
    let responses = weir_schema::json::read(resumed.responses.unwrap_or("{}"));
    match responses {
        Ok(responses @ Value::Object(_)) => Ok((state, responses)),
        _ => Err(CallError::bad_state()),
    }
}

/// Reads the state of a question, which must be unexpired and unaltered.
fn kept(cursors: &CursorCipher, bound: &CursorScope, sealed: &str) -> Result<Value, CallError> {
    let open = cursors
        .open_sealed(bound, sealed)
        .ok_or_else(CallError::bad_state)?;
    let (until, state) = open.split_once('\n').ok_or_else(CallError::bad_state)?;
    if until.parse().is_ok_and(|until: i64| now_ms() > until) {
        return Err(CallError::bad_state());
    }
    serde_json::from_str(state).map_err(|_| CallError::bad_state())
}

/// The questions that another server may ask of callers.
#[derive(Clone, Debug)]
pub(super) struct AllowedQuestions {
    /// The name of the server in the configuration.
    pub server: Arc<str>,
    /// The capabilities of callers that the server may use.
    pub capabilities: Vec<&'static str>,
}

impl AllowedQuestions {
    /// Puts the name of the server before the text that a person reads, since a client shows the question as Weir's.
    fn sign(&self, request: &mut Value) {
        if request["method"] != ELICITATION {
            return;
        }
        let Some(params) = request.get_mut("params").and_then(Value::as_object_mut) else {
            return;
        };
        let message = params.get("message").and_then(Value::as_str);
        let message = format!(
            "The server `{}` asks: {}",
            self.server,
            message.unwrap_or_default()
        );
        params.insert("message".to_owned(), message.into());
    }
}

/// Returns whether a person is asked to open a URL that other servers may not send: one with a scheme other than https, such as a
/// file or a script.
fn is_unsafe_link(params: Option<&Value>) -> bool {
    let params = params.filter(|params| params["mode"] == "url");
    params.is_some_and(|params| {
        let url = params["url"].as_str().unwrap_or_default();
        let is_https = url
            .get(..8)
            .is_some_and(|begin| begin.eq_ignore_ascii_case("https://"));
        !is_https
    })
}

/// Returns `true` for a question that clients can read. Otherwise they refuse the whole answer.
fn is_readable(method: &str, params: Option<&Value>) -> bool {
    let member = |name: &str| params.and_then(|params| params.get(name));
    match method {
        "sampling/createMessage" => {
            member("messages").is_some_and(Value::is_array)
                && member("maxTokens").is_some_and(Value::is_u64)
        }
        "elicitation/create" if member("mode").is_none_or(|mode| mode == "form") => {
            member("requestedSchema").is_some_and(|schema| {
                schema["type"] == "object" && schema["properties"].is_object()
            })
        }
        _ => true,
    }
}

/// Returns why a question of a server is not passed on to callers.
pub(super) fn why_unasked(method: &str, params: Option<&Value>) -> Option<&'static str> {
    if is_unsafe_link(params) {
        return Some("asks for a URL to be opened that is not https");
    }
    (!is_readable(method, params)).then_some("does not have the form that the protocol requires")
}

/// Returns the questions to the caller, who must be able to answer all of them. `allowed` restricts the questions of a server.
pub(super) fn ask(
    cursors: &CursorCipher,
    bound: &CursorScope,
    request: &CallRequest<'_>,
    requests: &str,
    state: Option<&str>,
    allowed: Option<&AllowedQuestions>,
) -> Result<InputRequired, CallError> {
    let fault = if allowed.is_some() {
        FailureCode::OutputMismatch
    } else {
        FailureCode::PluginFailed
    };
    let wrong =
        |what: String| CallError::new(fault, "The tool asks for something it may not.").log(what);
    // A tool that returns a state without questions must be called again with it.
    let least = if state.is_some() { 0 } else { 1 };
    let mut asked = match weir_schema::json::read(requests) {
        Ok(Value::Object(asked)) if (least..=REQUESTS_MAX).contains(&asked.len()) => asked,
        Ok(_) => {
            return Err(wrong(format!(
                "its requests are an object of {least} to {REQUESTS_MAX}"
            )));
        }
        Err(error) => return Err(wrong(format!("its requests: {error}"))),
    };
    let capabilities = request
        .asking
        .capabilities
        .and_then(|stated| serde_json::from_str(stated).ok());
    if asked.is_empty() && capabilities.is_none() {
        let message =
            "The tool must be called again with its state, and this client cannot do that.";
        let error = CallError::new(FailureCode::ToolError, message);
        return Err(CallError {
            reason: Some("client_cannot_be_asked".to_owned()),
            ..error
        });
    }
    for (key, asked) in &asked {
        let method = asked
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let needed = needs(method, asked.get("params"))
            .ok_or_else(|| wrong(format!("`{key}` has no method that may be asked")))?;
        if allowed.is_some_and(|allowed| !allowed.capabilities.contains(&needed.0)) {
            return Err(wrong(format!(
                "`{key}` asks for what [upstreams] `ask` does not allow"
            )));
        }
        if let (Some(_), Some(why)) = (allowed, why_unasked(method, asked.get("params"))) {
            return Err(wrong(format!("`{key}` {why}")));
        }
        if let (Some(_), Some(field)) = (allowed, secret_field(asked.get("params"))) {
            let message = format!(
                "The server asks for `{field}`, which looks like a secret: a form may not ask for one."
            );
            return Err(CallError {
                reason: Some("asks_for_secret".to_owned()),
                ..CallError::new(FailureCode::ToolError, message)
            });
        }
        if !capabilities
            .as_ref()
            .is_some_and(|stated| can(stated, needed))
        {
            let message = format!(
                "The tool asks its caller a question ({method}), and this client cannot be asked."
            );
            let error = CallError::new(FailureCode::ToolError, message);
            let form = match request.asking.lacking {
                CapabilityFallback::Outside | CapabilityFallback::ProtocolError => {
                    ErrorForm::MissingCapability(missing(needed))
                }
                CapabilityFallback::Result => ErrorForm::Plain,
            };
            return Err(CallError {
                reason: Some("client_cannot_be_asked".to_owned()),
                form,
                ..error
            });
        }
    }
    if let Some(allowed) = allowed {
        asked.values_mut().for_each(|request| allowed.sign(request));
    }
    let payload = format!("{}\n{}", now_ms() + ANSWER_WITHIN_MS, json!(state));
    let sealed = seal(cursors, bound, &payload, "The state of the tool's question")?;
    let requests = (!asked.is_empty()).then(|| Value::Object(asked).to_string());
    Ok(InputRequired {
        requests,
        state: Some(sealed),
        waits: None,
        receipt: None,
    })
}

/// Seals a maker's text that travels through the caller. A text that would not be accepted back is an error, whose message begins
/// with `what`.
pub(super) fn seal(
    cursors: &CursorCipher,
    bound: &CursorScope,
    text: &str,
    what: &str,
) -> Result<String, CallError> {
    cursors.seal(bound, text).map_err(|error| match error {
        CursorSealError::TooLong => {
            let most = TEXT_MAX_BYTES >> 10;
            CallError::new(
                FailureCode::TooLarge,
                format!("{what} takes more than {most} KB, the most that is passed on."),
            )
        }
        CursorSealError::NoRandomness => {
            CallError::new(FailureCode::Internal, "The gateway failed.").log("no randomness")
        }
    })
}

/// Returns the capability that a client needs for a question, whatever its mode.
pub(super) fn capability(method: &str) -> Option<&'static str> {
    needs(method, None).map(|(capability, _)| capability)
}

/// Returns whether a caller declares that it can answer this. `capabilities`: JSON.
pub(super) fn can_answer(capabilities: Option<&str>, method: &str, params: Option<&Value>) -> bool {
    let stated =
        capabilities.and_then(|stated| serde_json::from_str::<Map<String, Value>>(stated).ok());
    stated
        .zip(needs(method, params))
        .is_some_and(|(stated, needed)| can(&stated, needed))
}

/// Returns the capability, and its mode, that a client needs for a question.
fn needs(method: &str, params: Option<&Value>) -> Option<(&'static str, Option<&'static str>)> {
    let mode = params
        .and_then(|params| params.get("mode"))
        .and_then(Value::as_str);
    let has = |member: &str| params.is_some_and(|params| params.get(member).is_some());
    match (method, mode) {
        (ELICITATION, None | Some("form")) => Some(("elicitation", Some("form"))),
        (ELICITATION, Some("url")) => Some(("elicitation", Some("url"))),
        ("sampling/createMessage", _) if has("tools") || has("toolChoice") => {
            Some(("sampling", Some("tools")))
        }
        ("sampling/createMessage", _) => Some(("sampling", None)),
        ("roots/list", _) => Some(("roots", None)),
        _ => None,
    }
}

fn missing((capability, mode): (&str, Option<&str>)) -> MissingCapability {
    match (capability, mode) {
        ("sampling", Some(_)) => MissingCapability::SamplingTools,
        ("sampling", None) => MissingCapability::Sampling,
        ("roots", _) => MissingCapability::Roots,
        (_, Some("url")) => MissingCapability::ElicitationUrl,
        _ => MissingCapability::ElicitationForm,
    }
}

/// `elicitation: {}` means only forms, as before there were modes.
fn can(stated: &Map<String, Value>, (capability, mode): (&str, Option<&str>)) -> bool {
    match (stated.get(capability), mode) {
        (Some(Value::Object(modes)), Some("form")) => {
            modes.is_empty() || modes.contains_key("form")
        }
        (Some(Value::Object(modes)), Some(mode)) => modes.contains_key(mode),
        (Some(Value::Object(_)), None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_only_what_it_says_it_can_answer() {
        let url = json!({ "mode": "url" });
        let tools = json!({ "messages": [], "tools": [] });
        for (stated, method, params, may) in [
            (r#"{"elicitation":{}}"#, "elicitation/create", None, true),
            (
                r#"{"elicitation":{}}"#,
                "elicitation/create",
                Some(&url),
                false,
            ),
            (
                r#"{"elicitation":{"url":{}}}"#,
                "elicitation/create",
                Some(&url),
                true,
            ),
            (
                r#"{"elicitation":{"url":{}}}"#,
                "elicitation/create",
                None,
                false,
            ),
            (r#"{"sampling":{}}"#, "sampling/createMessage", None, true),
            (
                r#"{"sampling":{}}"#,
                "sampling/createMessage",
                Some(&tools),
                false,
            ),
            (
                r#"{"sampling":{"tools":{}}}"#,
                "sampling/createMessage",
                Some(&tools),
                true,
            ),
            (
                r#"{"sampling":{"tools":{}}}"#,
                "sampling/createMessage",
                None,
                true,
            ),
            (r#"{}"#, "roots/list", None, false),
        ] {
            let stated: Map<String, Value> = serde_json::from_str(stated).expect("an object");
            assert_eq!(
                can(&stated, needs(method, params).expect("known")),
                may,
                "{stated:?} {method}"
            );
        }
        assert_eq!(needs("tools/call", None), None);
    }

    #[test]
    fn a_link_that_is_not_https_is_unsafe() {
        for (url, is_unsafe) in [
            ("https://example.com/", false),
            ("HTTPS://example.com/", false),
            ("http://example.com/", true),
            ("javascript:alert(1)", true),
            ("file:///etc/passwd", true),
        ] {
            let params = json!({ "mode": "url", "url": url });
            assert_eq!(is_unsafe_link(Some(&params)), is_unsafe, "{url}");
        }
        assert!(!is_unsafe_link(Some(&json!({ "message": "Sure?" }))));
    }

    #[test]
    fn a_question_that_no_client_reads_is_not_asked() {
        let (form, sampling) = ("elicitation/create", "sampling/createMessage");
        let schema = json!({ "type": "object", "properties": {} });
        for (method, params, is_asked) in [
            (form, json!({ "requestedSchema": schema }), true),
            (
                form,
                json!({ "mode": "form", "requestedSchema": schema }),
                true,
            ),
            (form, json!({ "message": "Sure?" }), false),
            (form, json!({ "requestedSchema": null }), false),
            (
                form,
                json!({ "requestedSchema": { "type": "string" } }),
                false,
            ),
            (
                form,
                json!({ "requestedSchema": { "type": "object", "properties": null } }),
                false,
            ),
            (
                form,
                json!({ "mode": "url", "url": "https://example.com/" }),
                true,
            ),
            (
                form,
                json!({ "mode": "url", "url": "http://example.com/" }),
                false,
            ),
            (sampling, json!({ "messages": [], "maxTokens": 10 }), true),
            (
                sampling,
                json!({ "messages": [], "maxTokens": "10" }),
                false,
            ),
            (sampling, json!({}), false),
            ("roots/list", json!({}), true),
        ] {
            let why = why_unasked(method, Some(&params));
            assert_eq!(why.is_none(), is_asked, "{method} {params}: {why:?}");
        }
        assert_eq!(why_unasked("roots/list", None), None);
    }
}
