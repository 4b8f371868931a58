//! Reads the server's answer strictly, and checks its structured content against the pinned schema.

use serde_json::{Map, Value};
use weir_contracts::uri;
use weir_schema::json::{self, JsonError};
use weir_upstream::UpstreamOperation;

use super::{UpstreamAnswer, UpstreamRequest, parked};
use crate::{
    call::{
        CallContent, CallError, CallOutcome, CallRequest, InputRequired, ToolResult,
        asking::{self, AllowedQuestions},
        blocks,
        error::WriteOutcome,
        target::ToolCall,
    },
    catalogue::{CatalogueTool, UpstreamTool},
    codes::FailureCode,
    cursor::{CursorCipher, CursorScope},
};

/// Members of `_meta` of one answer.
const META_MAX: usize = 64;
/// The names that answers may not use, since Weir uses them.
const OURS: [&str; 2] = ["dev.weir/", "io.modelcontextprotocol/serverInfo"];

/// Makes the outcome of a call from the answer.
pub(in crate::call::target) fn shape(
    call: &ToolCall<'_>,
    target: &UpstreamTool,
    request: &UpstreamRequest,
    answer: &UpstreamAnswer,
) -> Result<CallOutcome, CallError> {
    let ToolCall { caller, tool, .. } = *call;
    // A write cannot be undone, so the agent must know about it.
    let unknown = |error: CallError| {
        if target.writes {
            error.outcome(WriteOutcome::Unknown)
        } else {
            error
        }
    };
    let (members, odd) = read_members(answer.result.get()).map_err(unknown)?;
    match members.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        Some("input_required") => {
            let UpstreamOperation::Tool {
                arguments: Some(arguments),
                ..
            } = &request.asked
            else {
                return Err(CallError::new(FailureCode::Internal, "The gateway failed."));
            };
            let bound = asking::bound(caller, tool, tool.contract_version(), arguments.get());
            let cursors = call.gateway.cursors();
            return input_required(
                cursors,
                &bound,
                call.request,
                &members,
                answer.may_ask.as_ref(),
            )
            .map(CallOutcome::InputRequired);
        }
        Some(_) => {
            return Err(unknown(CallError::output_mismatch(
                "the result is of a type that is not known here".to_owned(),
            )));
        }
    }
    let result = complete(tool, target, members, &odd, answer.result.get()).map_err(unknown)?;
    if result.is_error {
        return Err(CallError::by_upstream(result));
    }
    Ok(CallOutcome::Complete(result))
}

/// Passes on the server's questions to its caller.
pub(super) fn input_required(
    cursors: &CursorCipher,
    bound: &CursorScope,
    request: &CallRequest<'_>,
    members: &Map<String, Value>,
    may_ask: Option<&AllowedQuestions>,
) -> Result<InputRequired, CallError> {
    let requests = members
        .get("inputRequests")
        .map_or_else(|| "{}".to_owned(), Value::to_string);
    let state = members.get("requestState").and_then(Value::as_str);
    let waits = state
        .filter(|state| parked::is_handle(state))
        .map(str::to_owned);
    let asked = asking::ask(cursors, bound, request, &requests, state, may_ask);
    match asked {
        Ok(asked) => Ok(InputRequired { waits, ..asked }),
        Err(error) => Err(parked::give_up(waits.as_deref(), error)),
    }
}

pub(in crate::call) fn members(answer: &str) -> Result<Map<String, Value>, CallError> {
    read_members(answer).map(|(members, _)| members)
}

/// Reads an answer, with the digits of its numbers, and lists the parts that could not be read as written.
fn read_members(answer: &str) -> Result<(Map<String, Value>, Vec<JsonError>), CallError> {
    match json::read_answer(answer) {
        Ok((Value::Object(members), odd)) => Ok((members, odd)),
        Ok(_) => Err(CallError::output_mismatch(
            "the result is not an object".to_owned(),
        )),
        Err(error) => Err(CallError::output_mismatch(error.placed())),
    }
}

fn complete(
    tool: &CatalogueTool,
    target: &UpstreamTool,
    mut members: Map<String, Value>,
    odd: &[JsonError],
    text: &str,
) -> Result<ToolResult, CallError> {
    if target.publishes_uris {
        uri::publish_uris(&tool.contract, &mut members);
    }
    let is_error = members.get("isError").is_some_and(is_set);
    let structured = members.shift_remove("structuredContent");
    let structured = self::structured(target, structured, is_error, text)?;
    let content = match members.shift_remove("content") {
        None if structured.is_none() => others(&members),
        content => content.unwrap_or_default(),
    };
    let (mut content, mut notes) =
        blocks::passed_on(content).map_err(CallError::output_mismatch)?;
    // Each note is about a block that became a text.
    let texts = content.iter().filter(|block| block["type"] == "text");
    let has_text = texts.count() > notes.len();
    // Most models are shown only the blocks.
    if let Some(structured) = structured.as_deref().filter(|_| !has_text) {
        content.insert(0, blocks::text(structured));
    }
    notes.extend(odd.iter().map(JsonError::placed));
    if !notes.is_empty() {
        content.push(blocks::text(&not_passed_on(&notes)));
    }
    let content = CallContent::Blocks(Value::Array(content).to_string());
    let mut result = ToolResult::from_content(content, structured, is_error);
    if let Some(Value::Object(meta)) = members.shift_remove("_meta") {
        result
            .meta
            .extend(passed_meta(meta).map(|(name, value)| (name.into(), value.to_string())));
    }
    Ok(result)
}

/// Reads a flag, which some servers write as a text or a number.
fn is_set(flag: &Value) -> bool {
    match flag {
        Value::Bool(flag) => *flag,
        Value::String(flag) => flag.eq_ignore_ascii_case("true"),
        Value::Number(flag) => flag.as_f64() != Some(0.0),
        _ => false,
    }
}

/// Returns the other members of a result as a text: some servers return a value where the protocol requires content.
fn others(members: &Map<String, Value>) -> Value {
    let known = ["isError", "resultType", "_meta"];
    let others = members
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()));
    let others: Map<String, Value> = others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match others.is_empty() {
        true => Value::Null,
        false => Value::Object(others).to_string().into(),
    }
}

/// Lists the parts of an answer that were changed.
fn not_passed_on(notes: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown = notes[..notes.len().min(SHOWN_MAX)].join("; ");
    format!("Not passed on as the server answered it: {shown}.")
}

/// Returns the members of `_meta` that are passed on.
pub(crate) fn passed_meta(meta: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    meta.into_iter()
        .filter(|(name, _)| !OURS.iter().any(|ours| name.starts_with(ours)))
        .take(META_MAX)
}

/// Returns the structured content. That of an error need not meet the schema, but some clients check it anyway, so content that
/// does not meet it is left out.
fn structured(
    target: &UpstreamTool,
    structured: Option<Value>,
    is_error: bool,
    text: &str,
) -> Result<Option<String>, CallError> {
    let checker = target.output();
    if target.promises_output() && checker.is_none() {
        return Err(CallError::new(
            FailureCode::Internal,
            "The answer of this tool cannot be checked.",
        ));
    }
    match (structured, checker) {
        (None, Some(_)) if !is_error => Err(CallError::output_mismatch(
            "it promises structured content and answered none".to_owned(),
        )),
        (None, _) => Ok(None),
        (Some(value), Some(checker)) => match checker.check(&value, text) {
            Ok(()) => Ok(Some(value.to_string())),
            Err(_) if is_error => Ok(None),
            Err(found) => Err(CallError::output_mismatch(found.to_string())),
        },
        (Some(Value::Null), None) => Ok(None),
        (Some(value), None) => Ok(Some(value.to_string())),
    }
}

/// Requests that the server's lists be read again: its tools may differ from the published ones.
pub(in crate::call::target) fn explain(
    call: &ToolCall<'_>,
    target: &UpstreamTool,
    error: CallError,
) -> CallError {
    if let Some(upstream) = call.gateway.upstreams().get(&target.upstream) {
        upstream.look();
    }
    error
}
