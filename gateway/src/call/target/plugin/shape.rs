//! Checks the answer of a plugin's function against the published output schema.

use serde_json::{Value, json as object};
use weir_plugin_host::{ToolAnswer, ToolInvocation};
use weir_schema::json;

use crate::{
    call::{
        CallContent, CallError, CallOutcome, ToolResult, asking, blocks, error::WriteOutcome,
        target::ToolCall,
    },
    catalogue::PluginTool,
    codes::FailureCode,
};

/// Makes the outcome of a call from the answer.
pub(in crate::call::target) fn shape(
    call: &ToolCall<'_>,
    target: &PluginTool,
    invocation: &ToolInvocation,
    answer: ToolAnswer,
) -> Result<CallOutcome, CallError> {
    let ToolCall { caller, tool, .. } = *call;
    match answer {
        ToolAnswer::Complete { value, content } => {
            let result = complete(target, value.as_deref(), content.as_deref());
            // A tool that has written cannot undo it, so the agent must know.
            let result = result.map_err(|error| match tool.tool.writes() {
                true => error.outcome(WriteOutcome::Unknown),
                false => error,
            });
            result.map(CallOutcome::Complete)
        }
        ToolAnswer::InputRequired { requests, state } => {
            let bound = asking::bound(
                caller,
                tool,
                &target.source.definitions,
                &invocation.arguments,
            );
            let asked = asking::ask(
                call.gateway.cursors(),
                &bound,
                call.request,
                &requests,
                state.as_deref(),
                None,
            );
            asked.map(CallOutcome::InputRequired)
        }
    }
}

fn complete(
    target: &PluginTool,
    value: Option<&str>,
    content: Option<&str>,
) -> Result<ToolResult, CallError> {
    let text = value.unwrap_or_default();
    let value = value
        .map(|value| json::read(value).map_err(|error| CallError::output_mismatch(error.placed())));
    let value = value.transpose()?;
    let readable = match &value {
        // The text of a string is the string.
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
        None => None,
    };
    let structured = match (value, target.promises_output()) {
        (None, true) => {
            return Err(CallError::output_mismatch(
                "the tool answered no value".to_owned(),
            ));
        }
        (_, false) => None,
        (Some(value), true) => {
            let value = if target.published.wrapped {
                object!({ "result": value })
            } else {
                value
            };
            Some(checked(target, &value, text)?)
        }
    };
    let text = match &structured {
        Some(structured) if !target.published.wrapped => Some(structured.clone()),
        _ => readable,
    };
    let content = match (content, text) {
        (Some(content), text) => CallContent::Blocks(blocks(content, text.as_deref())?),
        (None, Some(text)) => CallContent::Text(text),
        (None, None) => CallContent::Blocks("[]".to_owned()),
    };
    Ok(ToolResult::from_content(content, structured, false))
}

/// Returns the answer in its canonical form, after checking it against the published schema.
fn checked(target: &PluginTool, structured: &Value, text: &str) -> Result<String, CallError> {
    let Some(output) = target.output() else {
        return Err(CallError::new(
            FailureCode::Internal,
            "The answer of this tool cannot be checked.",
        ));
    };
    output
        .check(structured, text)
        .map_err(|found| CallError::output_mismatch(found.to_string()))?;
    Ok(structured.to_string())
}

/// Returns the blocks of a tool, preceded by the structured value as text, since models are shown only the blocks.
fn blocks(content: &str, text: Option<&str>) -> Result<String, CallError> {
    let read = json::read(content)
        .map_err(|error| CallError::output_mismatch(format!("content: {error}")))?;
    let mut blocks = blocks::checked(read).map_err(CallError::output_mismatch)?;
    if let Some(text) = text.filter(|text| !blocks::say(&blocks, text)) {
        blocks.insert(0, blocks::text(text));
    }
    Ok(Value::Array(blocks).to_string())
}
