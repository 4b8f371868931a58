//! Calls of a version that is served beside the live one: its arguments are converted, and the result is converted back.

use serde_json::{Map, Value};
use weir_contracts::{contract::TextMode, output::OutputMismatch, shim};

use super::{CallError, CallOutcome, CallRequest, Content, ToolResult, error::WriteOutcome};
use crate::{
    catalogue::{CallShim, CatalogueTool, CatalogueViewer, shown_time},
    codes::Code,
    identity::Caller,
    telemetry::Metrics,
};

/// Lets a call of a kept version go on until it ends.
pub(super) fn admit(metrics: &Metrics, tool: &CatalogueTool) -> Result<(), CallError> {
    metrics.count_kept_call(&tool.contract, tool.version);
    let Some(kept) = tool.kept.as_ref().filter(|kept| kept.has_ended()) else {
        return Ok(());
    };
    let ended = kept.sunset_ms.map_or_else(String::new, |at| {
        format!(" ended on {} and", shown_time(at))
    });
    Err(gone(format!(
        "Version {} of the contract `{}`{ended} is served no more.",
        tool.version, tool.contract
    )))
}

/// Returns the error for a tool that is not there for a caller. One that is pinned to a version which is served no more gets
/// to know that, if it may see the tool of the live version.
pub(super) fn not_there(caller: &Caller, request: &CallRequest<'_>) -> CallError {
    let viewer = CatalogueViewer::Caller(caller);
    let catalogue = &request.snapshot.catalogue;
    match catalogue.gone_version(request.endpoint, request.tool, viewer) {
        None => CallError::unknown_tool(),
        Some((contract, major)) => gone(format!(
            "This agent is pinned to version {major} of the contract `{contract}`, which is served no more."
        )),
    }
}

fn gone(what: String) -> CallError {
    let advice = "Ask an operator to move the pin (`weir keys pin`), then list the tools again.";
    CallError::new(Code::VersionGone, format!("{what} {advice}"))
}

/// Converts checked arguments of a kept version to those of the tool that runs, and checks them again. Others stay as they are.
pub(super) fn convert_arguments(
    tool: &CatalogueTool,
    arguments: Map<String, Value>,
) -> Result<(&CatalogueTool, Map<String, Value>), CallError> {
    let Some((calls, runs)) = tool.shim() else {
        return Ok((tool, arguments));
    };
    let converted = Value::Object(shim::convert_arguments(&calls.up, arguments)).to_string();
    let checks = runs.checks();
    let arguments = checks
        .arguments()
        .ok_or_else(|| {
            let message = "The arguments of this tool cannot be checked.";
            CallError::new(Code::Internal, message)
        })?
        .validate(&converted)
        .map_err(|invalid| {
            // The names in it are those of another version.
            let message = "The arguments cannot be converted to those of the live version.";
            CallError::new(Code::InvalidArguments, message).log(invalid.message().to_owned())
        })?;
    Ok((runs, arguments))
}

/// Converts the outcome of a call to that of the kept version which was called, and checks its result. Others stay as they are.
pub(super) fn convert_outcome(
    tool: &CatalogueTool,
    outcome: CallOutcome,
    writes: bool,
) -> Result<CallOutcome, CallError> {
    let (Some((calls, _)), CallOutcome::Complete(_)) = (tool.shim(), &outcome) else {
        return Ok(outcome);
    };
    let CallOutcome::Complete(result) = outcome else {
        return Ok(outcome);
    };
    if result.is_error || result.code.is_some() {
        return Ok(CallOutcome::Complete(result));
    }
    convert_result(tool, calls, result)
        .map(CallOutcome::Complete)
        .map_err(|found| {
            let error = CallError::new(
                Code::OutputMismatch,
                "The result cannot be converted to one of the version that was called.",
            );
            let error = error.log(found.to_string());
            match writes {
                true => error.outcome(WriteOutcome::Unknown),
                false => error,
            }
        })
}

fn convert_result(
    tool: &CatalogueTool,
    calls: &CallShim,
    mut result: ToolResult,
) -> Result<ToolResult, OutputMismatch> {
    let Some(structured) = result.structured.take() else {
        return Ok(result);
    };
    if calls.down.is_empty() {
        // Nothing is written anew, so that numbers keep their digits.
        if let Some(checker) = &calls.results {
            let value = serde_json::from_str(&structured).unwrap_or_default();
            checker.check(&value, &structured)?;
        }
        result.structured = Some(structured);
        return Ok(result);
    }
    let mut value: Value = serde_json::from_str(&structured).unwrap_or_default();
    calls.down.down(&mut value);
    let converted = value.to_string();
    if let Some(checker) = &calls.results {
        checker.check(&value, &converted)?;
    }
    let mode = tool.tool.collection().map(|target| target.text);
    if let Content::Text(text) = &mut result.content {
        *text = convert_text(text, &structured, &converted, mode);
    }
    result.structured = Some(converted);
    Ok(result)
}

/// Returns the text of a result as the kept version has it: its JSON is the converted one.
fn convert_text(text: &str, structured: &str, converted: &str, mode: Option<TextMode>) -> String {
    let sentence = text
        .strip_suffix(structured)
        .map_or(text, |before| before.trim_end_matches('\n'));
    match mode {
        Some(TextMode::Json) => converted.to_owned(),
        Some(TextMode::Sentence) if !sentence.is_empty() => sentence.to_owned(),
        _ if sentence.is_empty() => converted.to_owned(),
        Some(TextMode::Both) => format!("{sentence}\n{converted}"),
        _ if sentence.len() == text.len() => text.to_owned(),
        _ => format!("{sentence}\n{converted}"),
    }
}
