//! A tool of an extracted document, called at the document's server.
//!
//! A document deliberately does not state how its server is reached: it is passed around, and we would run a
//! stranger's command, or send our arguments to a stranger's address.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use serde_json::{Map, Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use weir::call::{CallContent, ToolResult};
use weir_upstream::{
    RequestError, UpstreamCall, UpstreamCommand, UpstreamListener, UpstreamOperation,
    UpstreamSession, UpstreamSettings, UpstreamTarget,
};

use super::{compile, extract, terminal::TerminalProgress};

/// The time to wait, the same as that of `weir extract`.
const PATIENCE: Duration = Duration::from_secs(60);

/// The words of a document about one tool.
pub(super) struct ExtractedTool {
    pub(super) description: String,
    /// The schema of the arguments; null if the document has none that is usable.
    pub(super) schema: Value,
    /// The server starts its calls as tasks.
    pub(super) as_task: bool,
}

/// Returns the tools of a document.
pub(super) fn tools(file: &Path) -> anyhow::Result<Vec<Value>> {
    let shown = file.display();
    let text = compile::read(file)?;
    let mut document: Value =
        serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
    let Some(Value::Array(mut items)) = document.get_mut("items").map(Value::take) else {
        anyhow::bail!("{shown} has no `items`; `weir extract` prints such documents");
    };
    items.retain(|item| item["type"] == "tool");
    Ok(items)
}

/// Returns the tool of that name, or a sentence with those that exist.
pub(super) fn tool(file: &Path, name: &str) -> anyhow::Result<ExtractedTool> {
    let tools = tools(file)?;
    let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else {
        return Err(unknown_tool(
            name,
            &tools
                .iter()
                .filter_map(|tool| tool["name"].as_str())
                .collect::<Vec<_>>(),
        ));
    };
    let input = &tool["detail"]["input"];
    if let Some(why) = input["error"].as_str() {
        eprintln!(
            "note: the schema of {name} is not used for flags: {why}; --arguments takes all arguments as JSON"
        );
    }
    let usable = input["error"].is_null().then(|| input["json"].clone());
    Ok(ExtractedTool {
        description: tool["description"].as_str().unwrap_or_default().to_owned(),
        schema: usable.unwrap_or_default(),
        as_task: tool["execution"]["taskSupport"] == "required",
    })
}

/// Returns the error for a tool that is not among `names`.
pub(super) fn unknown_tool(name: &str, names: &[&str]) -> anyhow::Error {
    match names {
        [] => anyhow::anyhow!(
            "there is no tool `{name}`, nor any other here; name a server with --url, a spreadsheet with --file, or a \
             configuration with --config, before the tool"
        ),
        names => anyhow::anyhow!("there is no tool `{name}`; there are {}", names.join(", ")),
    }
}

/// Returns the lists of an extracted document as its server gives them; `None` for any other document.
pub(super) fn listed(document: &Value) -> Option<Value> {
    let items = document["items"]
        .as_array()
        .filter(|_| document["server"].is_object())?;
    let list = |kind: &str| -> Vec<_> {
        let items = items.iter().filter(|item| item["type"] == kind);
        items.map(listed_item).collect()
    };
    Some(json!({
        "tools": list("tool"),
        "prompts": list("prompt"),
        "resources": list("resource"),
        "resourceTemplates": list("resource-template"),
    }))
}

fn listed_item(item: &Value) -> Map<String, Value> {
    let (meta, detail) = (&item["meta"], &item["detail"]);
    let is_prompt = item["type"] == "prompt";
    let input = |of_prompt: bool| match of_prompt == is_prompt {
        true => detail["input"]["json"].clone(),
        false => Value::Null,
    };
    let members = [
        ("name", item["name"].clone()),
        ("title", item["title"].clone()),
        ("description", item["description"].clone()),
        ("uri", detail["uri"].clone()),
        ("uriTemplate", detail["uriTemplate"].clone()),
        ("mimeType", detail["mimeType"].clone()),
        ("icons", meta["icons"].clone()),
        ("annotations", meta["annotations"].clone()),
        ("_meta", meta["_meta"].clone()),
        ("inputSchema", input(false)),
        ("outputSchema", detail["output"]["json"].clone()),
        ("arguments", prompt_arguments(&input(true))),
    ];
    let given = members.into_iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the arguments of a prompt, which a document has as a schema.
fn prompt_arguments(schema: &Value) -> Value {
    let Some(properties) = schema["properties"].as_object() else {
        return Value::Null;
    };
    let required = schema["required"].as_array();
    let arguments = properties.iter().map(|(name, property)| {
        let is_required = required.is_some_and(|required| required.contains(&json!(name)));
        let mut argument = json!({ "name": name, "required": is_required });
        for text in ["title", "description"] {
            if let Some(value) = property.get(text) {
                argument[text] = value.clone();
            }
        }
        argument
    });
    arguments.collect()
}

/// Splits the words of the tool from the command behind `--`.
pub(super) fn split(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

/// Returns the address of the document's server, or the missing option.
pub(super) fn target(
    file: &Path,
    url: Option<&str>,
    command: &[String],
) -> anyhow::Result<UpstreamTarget> {
    match (url, command) {
        (Some(url), []) => Ok(extract::url_target(url)?),
        (None, [program, arguments @ ..]) => Ok(UpstreamTarget::Command(UpstreamCommand {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            guard: super::child::words(),
            ..UpstreamCommand::default()
        })),
        (None, []) => anyhow::bail!(
            "{} does not say how its server is reached, since documents are passed on; add what it was extracted from: \
             `-- COMMAND…` after the tool's arguments, or `--url URL` before the tool",
            file.display()
        ),
        (Some(_), _) => {
            anyhow::bail!("a server is reached by `--url` or by a command after `--`, not by both")
        }
    }
}

pub(super) async fn call(
    target: &UpstreamTarget,
    tool: &ExtractedTool,
    name: &str,
    arguments: &str,
) -> anyhow::Result<ToolResult> {
    let arguments: Box<RawValue> = RawValue::from_string(arguments.to_owned())?;
    let settings = UpstreamSettings {
        start: PATIENCE,
        request: PATIENCE,
        ..UpstreamSettings::default()
    };
    let session = UpstreamSession::open(target, settings).await?;
    let asked = UpstreamOperation::Tool {
        name: name.into(),
        arguments: Some(arguments),
        as_task: tool.as_task,
    };
    let progress = TerminalProgress::open();
    let listener = progress.clone();
    let call = UpstreamCall {
        asked: &asked,
        resumed: None,
        listener: listener.map(|listener| listener as Arc<dyn UpstreamListener>),
        headers: &[],
        cancel: &CancellationToken::new(),
        timeout: PATIENCE,
        trace: None,
    };
    let answer = session.call(call).await;
    if let Some(progress) = &progress {
        progress.end();
    }
    session.close().await;
    let answer = answer.map_err(|error| match error {
        RequestError::Refused(refusal) => {
            anyhow::anyhow!("the server refuses the call: {}", refusal.message)
        }
        RequestError::Failed(failure) => failure.into(),
    })?;
    let mut result = read_result(answer.get())?;
    if result
        .get("resultType")
        .is_some_and(|kind| kind == "input_required")
    {
        anyhow::bail!("`{name}` asks its caller a question, which `weir call` cannot answer");
    }
    let structured = result
        .get("structuredContent")
        .filter(|structured| !structured.is_null())
        .map(Value::to_string);
    let content = result
        .remove("content")
        .unwrap_or_else(|| Value::Array(Vec::new()));
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    Ok(ToolResult::from_content(
        CallContent::Blocks(content.to_string()),
        structured,
        is_error,
    ))
}

/// Reads a result as a gateway does.
fn read_result(answer: &str) -> anyhow::Result<Map<String, Value>> {
    match read_answer(answer).context("the result cannot be read")? {
        Value::Object(result) => Ok(result),
        _ => anyhow::bail!("the result is not an object"),
    }
}

/// Reads what a server answered. An odd member does not cost the others, and is reported.
pub(super) fn read_answer(text: &str) -> anyhow::Result<Value> {
    const SHOWN_MAX: usize = 5;
    let (answer, odd) = weir_contracts::json::read_answer(text)
        .map_err(|fault| anyhow::anyhow!("{}", fault.placed()))?;
    for fault in odd.iter().take(SHOWN_MAX) {
        eprintln!(
            "weir: not read as the server answered it: {}",
            fault.placed()
        );
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use weir_contracts::offer::{self, ServerLists};

    use super::*;
    use crate::diff::document;

    /// A document made from a list is a list again: every command that reads a list reads an extracted document.
    #[test]
    fn a_document_is_read_wherever_a_list_of_tools_is() {
        let whole = include_str!("../../tests/fixtures/extracted/time.json");
        let extracted: Value = serde_json::from_str(whole).expect("JSON");
        let listed = document(extracted.clone()).expect("a list of tools");
        assert!(!listed["tools"].as_array().expect("tools").is_empty());
        assert_eq!(document(listed.clone()), Some(listed.clone()));
        let (lists, problems) = ServerLists::read("-", &listed.to_string()).expect("lists");
        assert!(problems.is_empty(), "{problems:?}");
        let again: Value =
            serde_json::from_str(&offer::compose("-", &lists).document.compact()).expect("JSON");
        assert_eq!(again["items"], extracted["items"]);
        let empty = json!({ "server": {}, "items": [] });
        let lists = json!({ "tools": [], "prompts": [], "resources": [], "resourceTemplates": [] });
        assert_eq!(document(empty), Some(lists));
        assert_eq!(document(json!({ "items": [] })), None);
    }
}
