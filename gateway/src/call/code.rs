//! A plugin's tool: what it is called with, and what becomes of its answer.

use serde_json::{Map, Value, json as object};
use weir_contracts::json;
use weir_plugin_host::{AdapterFailure, GuestError, Invocation, ToolAnswer, WriteFailure};

use super::{
    CallError, CallOutcome, CallRequest, Content, ToolResult,
    arguments::{Ask, Input},
    asking::{self, Asking},
    blocks,
    error::WriteOutcome,
    foreign::mismatch,
};
use crate::{
    catalogue::{CatalogueTool, CodeTool},
    codes::Code,
    cursor::Cursors,
    identity::Caller,
};

/// The bound on a tool's own reason for a refusal.
const REASON_MAX: usize = 64;

/// Returns the invocation, with the defaults put in, and the caller's answers to an earlier question.
pub(super) fn invocation(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    code: &CodeTool,
    mut arguments: Map<String, Value>,
    asking: Asking<'_>,
) -> Result<Invocation, CallError> {
    for (name, default) in &code.defaults {
        if !arguments.contains_key(name) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    let arguments = Value::Object(arguments).to_string();
    let bound = asking::bound(caller, tool, &code.source.definitions, &arguments);
    let resumed = asking
        .resumed
        .map(|resumed| asking::open(cursors, &bound, resumed))
        .transpose()?;
    let read = |(state, responses)| object!({ "state": state, "responses": responses }).to_string();
    let resumed = resumed.map(read);
    Ok(Invocation {
        agent: caller.agent.clone(),
        arguments,
        is_item: false,
        capabilities: asking.capabilities.map(str::to_owned),
        resumed,
    })
}

/// Returns the error of a failed call. Only the host knows whether the plugin was asked to change something, and how
/// far that came.
pub(super) fn failed(failure: WriteFailure, writes: bool) -> CallError {
    let error = match failure.failure {
        AdapterFailure::Guest(error) => refused(error),
        failure => CallError::of_tool(failure),
    };
    match error.code {
        _ if !writes => error,
        _ if failure.handed_over => error.outcome(WriteOutcome::Unknown),
        Code::Timeout | Code::Cancelled | Code::PluginFailed | Code::Internal => {
            error.outcome(WriteOutcome::None)
        }
        // The tool has said no in its own words.
        _ => error,
    }
}

/// Reads the plugin's own error. A code of ours means what it always does; any other is the tool's reason.
fn refused(error: GuestError) -> CallError {
    let reason: String = error
        .code
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c))
        .collect();
    let error = CallError::from(error);
    if error.code != Code::UpstreamError
        || reason == Code::UpstreamError.label()
        || reason.is_empty()
    {
        return error;
    }
    CallError {
        code: Code::ToolError,
        reason: Some(reason.chars().take(REASON_MAX).collect()),
        ..error
    }
}

pub(super) fn shape(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    code: &CodeTool,
    input: &Input<'_>,
    request: &CallRequest<'_>,
    answer: ToolAnswer,
) -> Result<CallOutcome, CallError> {
    match answer {
        ToolAnswer::Complete { value, content } => {
            let result = complete(code, value.as_deref(), content.as_deref());
            // A tool that has written cannot undo it, and the agent must know.
            let result = result.map_err(|error| match tool.tool.writes() {
                true => error.outcome(WriteOutcome::Unknown),
                false => error,
            });
            result.map(CallOutcome::Complete)
        }
        ToolAnswer::InputRequired { requests, state } => {
            let Ask::Code(_, invocation) = &input.ask else {
                return Err(CallError::new(Code::Internal, "The gateway failed."));
            };
            let bound = asking::bound(
                caller,
                tool,
                &code.source.definitions,
                &invocation.arguments,
            );
            let asked = asking::ask(cursors, &bound, request, &requests, state.as_deref(), None);
            asked.map(CallOutcome::InputRequired)
        }
    }
}

fn complete(
    code: &CodeTool,
    value: Option<&str>,
    content: Option<&str>,
) -> Result<ToolResult, CallError> {
    let text = value.unwrap_or_default();
    let value = value.map(|value| {
        json::read(value).map_err(|error| mismatch(format!("{error} at {}", error.path)))
    });
    let value = value.transpose()?;
    let said = match &value {
        // The text of a string is the string.
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
        None => None,
    };
    let structured = match (value, code.promises_output()) {
        (None, true) => return Err(mismatch("the tool answered no value".to_owned())),
        (_, false) => None,
        (Some(value), true) => {
            let value = if code.published.wrapped {
                object!({ "result": value })
            } else {
                value
            };
            Some(checked(code, &value, text)?)
        }
    };
    let text = match &structured {
        Some(structured) if !code.published.wrapped => Some(structured.clone()),
        _ => said,
    };
    let content = match (content, text) {
        (Some(content), text) => Content::Blocks(blocks(content, text.as_deref())?),
        (None, Some(text)) => Content::Text(text),
        (None, None) => Content::Blocks("[]".to_owned()),
    };
    Ok(ToolResult::of(content, structured, false))
}

/// Returns the answer in its one form, after checking it against the published schema.
fn checked(code: &CodeTool, structured: &Value, text: &str) -> Result<String, CallError> {
    let Some(output) = code.output() else {
        return Err(CallError::new(
            Code::Internal,
            "The answer of this tool cannot be checked.",
        ));
    };
    output
        .check(structured, text)
        .map_err(|found| mismatch(found.to_string()))?;
    Ok(structured.to_string())
}

/// Returns the blocks of a tool, after the text of the value beside them: models are shown the blocks alone.
fn blocks(content: &str, text: Option<&str>) -> Result<String, CallError> {
    let read = json::read(content).map_err(|error| mismatch(format!("content: {error}")))?;
    let mut blocks = blocks::checked(read).map_err(mismatch)?;
    if let Some(text) = text.filter(|text| !blocks::say(&blocks, text)) {
        blocks.insert(0, blocks::text(text));
    }
    Ok(Value::Array(blocks).to_string())
}
