//! Calls of a version that is served in addition to the live one: its arguments are converted, and the result is converted back.

use std::time::Instant;

use serde_json::{Map, Value};
use weir_contracts::{
    ToolVerb,
    contract::{BindingInput, FieldDestination, TextMode},
    output::OutputMismatch,
    shim,
};

use super::{
    CallContent, CallError, CallOutcome, CallRequest, ErrorForm, ToolResult, approval::PLAN,
    error::WriteOutcome, heavy::CheckTurn,
};
use crate::{
    catalogue::{CallShim, CatalogueTool, CatalogueViewer, shown_time},
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
    telemetry::GatewayMetrics,
};

/// The size up to which a result is converted on the thread of the request.
const LIGHT_BYTES: usize = 64 * 1024;
/// The most items of a list that are compared with a text.
const ITEMS_MAX: usize = 1_000;

/// Admits a call of a kept version until the version ends.
pub(super) fn admit(metrics: &GatewayMetrics, tool: &CatalogueTool) -> Result<(), CallError> {
    metrics.count_kept_call(&tool.contract, tool.version);
    let Some(kept) = tool.kept.as_ref().filter(|kept| kept.has_ended()) else {
        return Ok(());
    };
    let ended = kept.sunset_ms.map_or_else(String::new, |at| {
        format!(" ended on {} and", shown_time(at))
    });
    Err(gone(format!(
        "Version {} of the contract `{}`{ended} is no longer served.",
        tool.version, tool.contract
    )))
}

/// Returns the error for a tool that does not exist for a caller. If the caller is pinned to a version that is no longer
/// served and may see the tool of the live version, the error says so.
pub(super) fn not_there(caller: &CallerIdentity, request: &CallRequest<'_>) -> CallError {
    let viewer = CatalogueViewer::Caller(caller);
    let catalogue = &request.snapshot.catalogue;
    match catalogue.gone_version(request.endpoint, request.tool, viewer) {
        None => CallError::unknown_tool(),
        Some((contract, major)) => gone(format!(
            "This agent is pinned to version {major} of the contract `{contract}`, which is no longer served."
        )),
    }
}

fn gone(what: String) -> CallError {
    let advice = "Ask an operator to move the pin (`weir keys pin`), then list the tools again.";
    CallError::new(FailureCode::VersionGone, format!("{what} {advice}"))
}

/// Converts checked arguments of a kept version to those of the tool that runs, and checks them again. Other arguments are
/// returned unchanged.
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
            CallError::new(FailureCode::Internal, message)
        })?
        .validate(&converted)
        .map_err(|invalid| {
            // The names in the error are those of another version.
            let message = "The arguments cannot be converted to those of the live version.";
            CallError::new(FailureCode::InvalidArguments, message).log(invalid.message().to_owned())
        })?;
    Ok((runs, arguments))
}

/// Converts the outcome of a call to that of the kept version which was called, and checks its result. Other outcomes are
/// returned unchanged.
pub(super) async fn convert_outcome(
    gateway: &ServingGateway,
    tool: &CatalogueTool,
    outcome: CallOutcome,
    writes: bool,
    since: Instant,
) -> Result<CallOutcome, CallError> {
    let Some((calls, _)) = tool.shim() else {
        return Ok(outcome);
    };
    let result = match outcome {
        CallOutcome::Complete(result) if !result.is_error && result.code.is_none() => result,
        other => return Ok(other),
    };
    let turn = CheckTurn::wait(is_heavy(calls, &result), gateway, tool, since).await;
    let converted = turn.and_then(|turn| {
        turn.run(|| convert_result(tool, calls, result))
            .map_err(|found| {
                let message =
                    "The result cannot be converted to one of the version that was called.";
                CallError::new(FailureCode::OutputMismatch, message).log(found.to_string())
            })
    });
    converted
        .map(CallOutcome::Complete)
        .map_err(|error| match writes {
            true => error.outcome(WriteOutcome::Unknown),
            false => error,
        })
}

/// Rewrites an error with the names that its caller knows: those of columns in a kept version, and that of the argument which the
/// source refuses.
pub(super) fn convert_error(tool: &CatalogueTool, error: CallError) -> CallError {
    name_argument(tool, convert_columns(tool, error))
}

/// Names the argument whose column a source refuses in a write. The message names it too, since most models are shown only the
/// message.
fn name_argument(tool: &CatalogueTool, mut error: CallError) -> CallError {
    let (Some(target), Some(column)) = (tool.tool.collection(), &error.field) else {
        return error;
    };
    let writes_a_record = matches!(
        target.verb,
        ToolVerb::Create | ToolVerb::Update | ToolVerb::Delete
    );
    let is_refused = matches!(
        error.code,
        FailureCode::InvalidArguments | FailureCode::Conflict
    );
    if !writes_a_record || !is_refused {
        return error;
    }
    let is_of_column = |input: &&BindingInput| match &input.to {
        FieldDestination::Column(name) | FieldDestination::Condition { column: name, .. } => {
            name == column
        }
        _ => false,
    };
    let Some(input) = target.binding.inputs.iter().find(is_of_column) else {
        return error;
    };
    let argument = input.field.clone();
    let is_named = ["`", "\""]
        .iter()
        .any(|quote| error.message.contains(&format!("{quote}{argument}{quote}")));
    if !is_named {
        error.message = format!("`{argument}`: {}", error.message).into();
    }
    error.field = Some(argument);
    error
}

fn convert_columns(tool: &CatalogueTool, mut error: CallError) -> CallError {
    let calls = tool.shim().map(|(calls, _)| calls);
    let Some(calls) = calls.filter(|calls| !calls.columns.is_empty()) else {
        return error;
    };
    if let Some(old) = error
        .field
        .as_ref()
        .and_then(|field| calls.columns.get(field))
    {
        error.field = Some(old.clone());
    }
    error.message = old_words(calls, &error.message).into();
    if let ErrorForm::Planned(waiting) = &mut error.form {
        waiting.shown = old_plan(calls, &waiting.shown);
    }
    error
}

/// Rewrites a preview with the column names of the kept version. Other outcomes are returned unchanged.
pub(super) fn convert_preview(tool: &CatalogueTool, outcome: CallOutcome) -> CallOutcome {
    let (calls, mut result) = match (tool.shim(), outcome) {
        (Some((calls, _)), CallOutcome::Complete(result)) => (calls, result),
        (_, other) => return other,
    };
    for (name, plan) in &mut result.meta {
        if *name == PLAN {
            *plan = old_plan(calls, plan);
        }
    }
    if let Some(structured) = &mut result.structured
        && let Ok(mut value) = serde_json::from_str::<Value>(structured)
        && let Some(plan) = value.get_mut("plan")
    {
        convert_plan(calls, plan);
        *structured = value.to_string();
    }
    if let CallContent::Text(text) = &mut result.content {
        *text = old_words(calls, text);
    }
    CallOutcome::Complete(result)
}

/// Returns a text with the old names of the columns that it quotes.
fn old_words(calls: &CallShim, text: &str) -> String {
    let mut text = text.to_owned();
    for quote in ["`", "\""] {
        let words = text.split(quote);
        let words = words.map(|word| calls.columns.get(word).map_or(word, String::as_str));
        let words: Vec<&str> = words.collect();
        text = words.join(quote);
    }
    text
}

fn old_plan(calls: &CallShim, plan: &str) -> String {
    match serde_json::from_str::<Value>(plan) {
        Ok(mut value) => {
            convert_plan(calls, &mut value);
            value.to_string()
        }
        Err(_) => plan.to_owned(),
    }
}

/// Converts a plan to the form that its caller reads: the columns that would change, and the record before and after.
fn convert_plan(calls: &CallShim, plan: &mut Value) {
    if let Some(Value::Array(changed)) = plan.get_mut("changed") {
        for name in changed {
            if let Some(old) = name.as_str().and_then(|name| calls.columns.get(name)) {
                *name = old.as_str().into();
            }
        }
    }
    for side in ["before", "after"] {
        if let Some(Value::Object(record)) = plan.get_mut(side) {
            *record = old_record(calls, std::mem::take(record));
        }
    }
}

/// Converts a record like the result of a write, or by the names of columns if that gives no result.
fn old_record(calls: &CallShim, record: Map<String, Value>) -> Map<String, Value> {
    let mut result = Value::Object(Map::from_iter([(
        "record".to_owned(),
        Value::Object(record.clone()),
    )]));
    calls.down.down(&mut result);
    match result.get_mut("record").map(Value::take) {
        Some(Value::Object(converted)) if converted != record => converted,
        _ => {
            let old = |name: String| calls.columns.get(&name).cloned().unwrap_or(name);
            let members = record.into_iter();
            members.map(|(name, value)| (old(name), value)).collect()
        }
    }
}

/// Returns `true` if a result may take long to convert or to check.
fn is_heavy(calls: &CallShim, result: &ToolResult) -> bool {
    let Some(structured) = result.structured.as_deref() else {
        return false;
    };
    let (CallContent::Text(content) | CallContent::Blocks(content)) = &result.content;
    let is_large = !calls.down.is_empty() && structured.len() + content.len() > LIGHT_BYTES;
    let checker = calls.results.as_ref();
    is_large || checker.is_some_and(|checker| checker.is_heavy(structured))
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
        // The value is not written again, so that numbers keep their digits.
        if let Some(checker) = &calls.results {
            let value = serde_json::from_str(&structured).unwrap_or_default();
            checker.check(&value, &structured)?;
        }
        result.structured = Some(structured);
        return Ok(result);
    }
    let was: Value = serde_json::from_str(&structured).unwrap_or_default();
    let mut is = was.clone();
    calls.down.down(&mut is);
    let converted = is.to_string();
    if let Some(checker) = &calls.results {
        checker.check(&is, &converted)?;
    }
    let change = ValueChange {
        was: &was,
        was_text: &structured,
        is: &is,
        is_text: &converted,
    };
    match (&mut result.content, tool.tool.collection()) {
        (CallContent::Text(text), Some(target)) => *text = change.record_text(text, target.text),
        (CallContent::Text(text), None) => change.convert_text(text),
        (CallContent::Blocks(blocks), _) => change.convert_blocks(blocks),
    }
    result.structured = Some(converted);
    Ok(result)
}

/// The value of a result in the live version and in the kept one. The text blocks of the result repeat it.
struct ValueChange<'v> {
    was: &'v Value,
    was_text: &'v str,
    is: &'v Value,
    is_text: &'v str,
}

impl ValueChange<'_> {
    /// Returns the text of a result with records in the form of the kept version: its JSON is the converted one.
    fn record_text(&self, text: &str, mode: TextMode) -> String {
        let sentence = text
            .strip_suffix(self.was_text)
            .map_or(text, |before| before.trim_end_matches('\n'));
        match mode {
            TextMode::Sentence if !sentence.is_empty() => sentence.to_owned(),
            TextMode::Both if !sentence.is_empty() => format!("{sentence}\n{}", self.is_text),
            _ => self.is_text.to_owned(),
        }
    }

    /// Converts the text blocks that repeat the value, or a part of it.
    fn convert_blocks(&self, content: &mut String) {
        let Ok(Value::Array(mut blocks)) = serde_json::from_str(content) else {
            return;
        };
        let texts = blocks.iter_mut().filter(|block| block["type"] == "text");
        for block in texts {
            if let Some(Value::String(text)) = block.get_mut("text") {
                self.convert_text(text);
            }
        }
        *content = Value::Array(blocks).to_string();
    }

    /// Converts a text that repeats the value or a part of it, on its own or after other words.
    fn convert_text(&self, text: &mut String) {
        if let Some(before) = text.strip_suffix(self.was_text) {
            *text = [before, self.is_text].concat();
            return;
        }
        let repeated = match serde_json::from_str(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => Value::String(text.clone()), // the text of a string is the string
        };
        match self.converted_part(&repeated) {
            Some(Value::String(part)) => text.clone_from(part),
            Some(part) => *text = part.to_string(),
            None => {}
        }
    }

    /// Returns the converted form of the value, of the value that it wraps, or of an item of its list: servers show each of
    /// these as a text.
    fn converted_part(&self, repeated: &Value) -> Option<&Value> {
        let wrapped = Some((self.was.get("result"), self.is.get("result")));
        let wrapped = wrapped.and_then(|(was, is)| Some((was?, is?)));
        for (was, is) in [Some((self.was, self.is)), wrapped].into_iter().flatten() {
            if was == repeated {
                return Some(is);
            }
            let (Value::Array(was), Value::Array(is)) = (was, is) else {
                continue;
            };
            let place = was.iter().take(ITEMS_MAX).position(|item| item == repeated);
            if let Some(item) = place.and_then(|place| is.get(place)) {
                return Some(item);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use weir_contracts::shim::{ShimStep, ToolShim};

    use super::*;

    fn renaming(at: &str) -> CallShim {
        let rename = ShimStep::Rename {
            at: at.to_owned(),
            to: "feet".to_owned(),
        };
        let shim = ToolShim {
            output: vec![rename],
            ..ToolShim::default()
        };
        let (up, down) = shim.conversions().expect("a shim");
        CallShim {
            up,
            down,
            results: None,
            columns: BTreeMap::from([("feet".to_owned(), "ft".to_owned())]),
        }
    }

    fn texts(was: &Value, at: &str, blocks: &Value) -> Value {
        let mut is = was.clone();
        renaming(at).down.down(&mut is);
        let mut content = blocks.to_string();
        let (was_text, is_text) = (was.to_string(), is.to_string());
        let change = ValueChange {
            was,
            was_text: &was_text,
            is: &is,
            is_text: &is_text,
        };
        change.convert_blocks(&mut content);
        let content: Value = serde_json::from_str(&content).expect("blocks");
        let texts = content.as_array().expect("a list").iter();
        texts.map(|block| block["text"].clone()).collect()
    }

    #[test]
    fn texts_that_repeat_the_value_have_the_old_names() {
        let was = json!({ "feet": 7, "name": "KEF" });
        let is = r#"{"name":"KEF","ft":7}"#;
        let blocks = json!([
            { "type": "text", "text": "{ \"name\": \"KEF\",\n \"feet\": 7 }" },
            { "type": "text", "text": format!("One airport: {was}") },
            { "type": "text", "text": "Its height is in feet." },
            { "type": "text", "text": "{\"feet\":8}" },
            { "type": "image", "data": "", "mimeType": "image/png" },
        ]);
        let got = texts(&was, "/ft", &blocks);
        let parsed = |text: &Value| -> Value {
            serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
        };
        let wanted: Value = serde_json::from_str(is).expect("JSON");
        assert_eq!(parsed(&got[0]), wanted);
        let after = got[1]
            .as_str()
            .and_then(|text| text.strip_prefix("One airport: "));
        let after: Value = serde_json::from_str(after.expect("words before")).expect("JSON");
        assert_eq!(after, wanted);
        // A text with another value belongs to the tool.
        assert_eq!(got[2], "Its height is in feet.");
        assert_eq!(got[3], "{\"feet\":8}");
        assert_eq!(got[4], Value::Null);
    }

    #[test]
    fn texts_that_repeat_a_part_of_the_value_have_the_old_names() {
        let was = json!({ "result": [{ "feet": 7 }, { "feet": 8 }] });
        let blocks = json!([
            { "type": "text", "text": "{\"feet\":7}" },
            { "type": "text", "text": "{\"feet\": 8}" },
            { "type": "text", "text": "[{\"feet\":7},{\"feet\":8}]" },
        ]);
        let got = texts(&was, "/result/*/ft", &blocks);
        let wanted = json!(["{\"ft\":7}", "{\"ft\":8}", "[{\"ft\":7},{\"ft\":8}]"]);
        assert_eq!(got, wanted);
    }

    /// The caller does not know the names of the live version.
    #[test]
    fn a_plan_has_the_old_names_of_columns() {
        let plan = json!({
            "verb": "update", "changed": ["feet", "name"],
            "before": { "feet": 7, "name": "KEF" }, "after": { "feet": 8, "name": "feet" },
        });
        let wanted = json!({
            "verb": "update", "changed": ["ft", "name"],
            "before": { "ft": 7, "name": "KEF" }, "after": { "ft": 8, "name": "feet" },
        });
        for at in ["/record/ft", "/ft"] {
            let mut converted = plan.clone();
            convert_plan(&renaming(at), &mut converted);
            assert_eq!(converted, wanted, "{at}");
        }
        let text = "It would update `feet`, `name`: \"feet\" of 10 feet.";
        let wanted = "It would update `ft`, `name`: \"ft\" of 10 feet.";
        assert_eq!(old_words(&renaming("/ft"), text), wanted);
    }

    #[test]
    fn a_large_result_is_converted_where_nothing_waits_for_it() {
        let calls = renaming("/ft");
        let result = |text: &str| {
            let value = json!({ "feet": 7, "name": text }).to_string();
            ToolResult::new(value.clone(), value, false)
        };
        assert!(!is_heavy(&calls, &result("KEF")));
        let large = "x".repeat(LIGHT_BYTES);
        assert!(is_heavy(&calls, &result(&large)));
        // An argument that is not rewritten costs no more than its check.
        let (up, down) = ToolShim::default().conversions().expect("a shim");
        let same = CallShim {
            up,
            down,
            results: None,
            columns: BTreeMap::new(),
        };
        assert!(!is_heavy(&same, &result(&large)));
    }
}
