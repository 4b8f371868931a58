//! The answer: checked against the recorded shape, projected to the published columns, and said in one sentence.

use serde_json::{Map, Value};
use weir_contracts::{
    Verb,
    contract::TextMode,
    output::{OutputMismatch, RecordChecker},
};

use super::{CallError, Code, ToolResult, arguments::Input, cursor::Cursors, dispatch::Answer, error::WriteOutcome};
use crate::{catalogue::CatalogueTool, gateway::Gateway, identity::Caller};

const SOURCE_CHANGED: &str = "The source no longer has the columns, or their types, that this tool was published with.";

pub(super) fn shape(
    cursors: &Cursors,
    _caller: &Caller,
    tool: &CatalogueTool,
    input: &Input,
    answer: Answer,
) -> Result<ToolResult, CallError> {
    let (Some(checker), Some(verb)) = (tool.records(), tool.tool.verb) else {
        return Err(CallError::new(Code::Internal, "This tool is not bound to a collection."));
    };
    match (verb, answer) {
        (Verb::Lookup, Answer::Page(page)) => lookup(tool, checker, &page.records),
        (_, Answer::Page(page)) => {
            let next =
                match (page.next, &input.bound) {
                    (Some(next), Some(bound)) => {
                        let sealed = cursors.seal(bound, &next);
                        Some(sealed.ok_or_else(|| {
                            CallError::new(Code::Internal, "The gateway failed.").log("no randomness")
                        })?)
                    }
                    _ => None,
                };
            list(tool, checker, input, &page.records, next)
        }
        (verb, Answer::Record(record)) => written(tool, checker, verb, &record),
    }
}

fn lookup(tool: &CatalogueTool, checker: &RecordChecker, records: &str) -> Result<ToolResult, CallError> {
    let mut records = checker.records(records).map_err(mismatch)?;
    match records.len() {
        0 => Err(CallError::new(Code::NotFound, "No record meets these conditions.")),
        1 => {
            let record = records.remove(0);
            let sentence = sentence(tool, &record).unwrap_or_else(|| "Found one record.".to_owned());
            Ok(result(tool, sentence, record))
        }
        _ => Err(CallError::new(Code::Ambiguous, "More than one record meets these conditions.")),
    }
}

fn list(
    tool: &CatalogueTool,
    checker: &RecordChecker,
    input: &Input,
    records: &str,
    next: Option<String>,
) -> Result<ToolResult, CallError> {
    let records = checker.records(records).map_err(mismatch)?;
    if let super::arguments::Ask::Read(query) = &input.ask
        && records.len() > query.limit as usize
    {
        return Err(CallError::new(Code::OutputMismatch, "The source answered more than it was asked for."));
    }
    let mut structured = String::with_capacity(records.iter().map(|record| record.len() + 1).sum::<usize>() + 64);
    structured.push_str("{\"records\":[");
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            structured.push(',');
        }
        structured.push_str(record);
    }
    structured.push_str("],\"next\":");
    structured.push_str(&serde_json::to_string(&next).expect("a string"));
    structured.push('}');
    let count = match records.len() {
        0 => "No records".to_owned(),
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    };
    let more = if next.is_some() { "; pass `next` as `cursor` for more." } else { "." };
    let sentence = match (&tool.tool.say, records.first()) {
        (Some(_), Some(first)) if records.len() == 1 && next.is_none() => sentence(tool, first),
        _ => None,
    };
    Ok(result(tool, sentence.unwrap_or_else(|| format!("{count}{more}")), structured))
}

/// The write has run: an answer that does not conform cannot undo it, and the agent must know.
fn written(tool: &CatalogueTool, checker: &RecordChecker, verb: Verb, record: &str) -> Result<ToolResult, CallError> {
    let record = checker.record(record).map_err(|found| mismatch(found).outcome(WriteOutcome::Unknown))?;
    let (status, said) = match verb {
        Verb::Create => ("created", "Created one record."),
        Verb::Update => ("updated", "Updated one record."),
        Verb::Delete => ("deleted", "Deleted one record."),
        Verb::Lookup | Verb::List | Verb::Call => ("done", "Done."),
    };
    let sentence = sentence(tool, &record).unwrap_or_else(|| said.to_owned());
    Ok(result(tool, sentence, format!("{{\"status\":\"{status}\",\"record\":{record}}}")))
}

fn mismatch(found: OutputMismatch) -> CallError {
    let (code, message) = match found.source_changed {
        true => (Code::SourceChanged, SOURCE_CHANGED),
        false => (Code::OutputMismatch, "The source answered a value this tool may not pass on."),
    };
    CallError::new(code, message).log(format!("{} at {}", found.reason, found.path))
}

/// A value that may not be passed on is a column of another type, perhaps: then the source is what has to be looked at.
/// So it is where the adapter itself found it changed.
pub(super) async fn explain(gateway: &Gateway, tool: &CatalogueTool, error: CallError) -> CallError {
    let Some(binding) = &tool.tool.binding else { return error };
    if !matches!(error.code, Code::OutputMismatch | Code::SourceChanged) {
        return error;
    }
    match gateway.doubts().has_drifted(&tool.contract, &binding.collection).await {
        true if error.code == Code::OutputMismatch => {
            CallError { code: Code::SourceChanged, message: SOURCE_CHANGED.into(), ..error }
        }
        _ => error,
    }
}

fn result(tool: &CatalogueTool, sentence: String, structured: String) -> ToolResult {
    let text = match tool.tool.text {
        TextMode::Sentence => sentence,
        TextMode::Json => structured.clone(),
        TextMode::Both => [&*sentence, &structured].join("\n"),
    };
    ToolResult::new(text, structured, false)
}

/// The contract's `say:` template over the record: `Found {name} in {city}.`
fn sentence(tool: &CatalogueTool, record: &str) -> Option<String> {
    let template = tool.tool.say.as_deref()?;
    let record: Map<String, Value> = serde_json::from_str(record).ok()?;
    let mut said = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        said.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            said.push('{');
            rest = after;
            continue;
        };
        match record.get(name) {
            Some(Value::String(text)) => said.push_str(text),
            Some(Value::Null) | None => {}
            Some(other) => said.push_str(&other.to_string()),
        }
        rest = after;
    }
    said.push_str(rest);
    Some(said)
}
