//! A listing as text, for models and people that read it as a page: `llms.txt`.
//!
//! Made only from the contents of `tools/list`, so it cannot reveal more to a caller. The same listing gives the same bytes.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weir_contracts::contract::ToolAnnotations;
use weir_schema::schema::without_null;

use super::{CatalogueTool, listing::ServerInfo};

/// The depth beyond which schemas are named but not written out.
const DEPTH_MAX: usize = 3;

/// Writes the page. The tools come in the order of their contracts and names.
pub(super) fn write<'t>(
    server: &ServerInfo,
    tools: impl Iterator<Item = &'t CatalogueTool>,
) -> String {
    let mut tools: Vec<&CatalogueTool> = tools.collect();
    tools.sort_by(|a, b| (&a.contract, &a.name).cmp(&(&b.contract, &b.name)));
    let mut page = String::new();
    line(
        &mut page,
        &format!(
            "# {}",
            plain(server.title.as_deref().unwrap_or(&server.name))
        ),
    );
    let count = match tools.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    line(
        &mut page,
        &format!("\n> {count}, over MCP. Version {}.", server.version),
    );
    if let Some(instructions) = &server.instructions {
        line(&mut page, &format!("\n{}", paragraphs(instructions)));
    }
    let mut contract = "";
    for tool in tools {
        if *tool.contract != *contract {
            contract = &tool.contract;
            line(&mut page, &format!("\n## {contract} {}", tool.version));
        }
        one(&mut page, tool);
    }
    page
}

fn one(page: &mut String, tool: &CatalogueTool) {
    let listed = &tool.tool;
    line(page, &format!("\n### {}", listed.name));
    if let Some(title) = &listed.title {
        line(page, &format!("\n**{}**", plain(title)));
    }
    if !listed.description.is_empty() {
        line(page, &format!("\n{}", paragraphs(&listed.description)));
    }
    line(page, &format!("\n{}", effects(&listed.annotations)));
    let input = &listed.input_schema.value();
    let has_arguments = input["properties"]
        .as_object()
        .is_some_and(|properties| !properties.is_empty());
    line(
        page,
        if has_arguments {
            "\nArguments:\n"
        } else {
            "\nArguments: none."
        },
    );
    properties(page, input, 0);
    if let Some(output) = &listed.output_schema {
        let members = answer(&output.value());
        let has_members = members["properties"]
            .as_object()
            .is_some_and(|properties| !properties.is_empty());
        line(
            page,
            if has_members {
                "\nAnswers:\n"
            } else {
                "\nAnswers: an object."
            },
        );
        properties(page, &members, 0);
    }
    let required = required(input);
    let words: Vec<String> = required
        .iter()
        .map(|name| format!(" --{} …", name.replace('_', "-")))
        .collect();
    line(
        page,
        &format!("\n    weir call {}{}", listed.name, words.concat()),
    );
}

/// Returns a sentence about what a client may be asked to confirm.
fn effects(annotations: &ToolAnnotations) -> String {
    let changes_once =
        annotations.read_only_hint != Some(true) && annotations.idempotent_hint == Some(true);
    let again = if changes_once {
        " The same call again changes nothing more."
    } else {
        ""
    };
    format!("It {}.{again}", annotations.effect())
}

/// Returns the members of a successful answer. In the published schema they are at the root, and the required ones in the first
/// arm; the other arm is for errors.
fn answer(output: &Value) -> Value {
    let arm = &output["anyOf"][0];
    let part = |keyword: &str| {
        output
            .get(keyword)
            .or_else(|| arm.get(keyword))
            .cloned()
            .unwrap_or_default()
    };
    json!({ "properties": part("properties"), "required": part("required") })
}

/// Returns the arguments of a schema, one per line.
pub fn arguments(input: &Value) -> String {
    let mut lines = String::new();
    properties(&mut lines, input, 0);
    lines
}

fn properties(page: &mut String, schema: &Value, depth: usize) {
    let required = required(schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mut notes = vec![kind(property)];
        if required.contains(&name.as_str()) {
            notes.push("required".to_owned());
        }
        notes.extend(rules(property));
        let mut entry = format!("{}- `{name}` ({})", "  ".repeat(depth), notes.join("; "));
        if let Some(description) = property["description"]
            .as_str()
            .filter(|text| !text.is_empty())
        {
            let _ = write!(entry, ": {}", plain(description));
        }
        line(page, &entry);
        if depth + 1 < DEPTH_MAX {
            let inner = without_null(property);
            properties(
                page,
                if inner["items"].is_object() {
                    &inner["items"]
                } else {
                    inner
                },
                depth + 1,
            );
        }
    }
}

/// Returns the type in one or two words.
fn kind(schema: &Value) -> String {
    let inner = without_null(schema);
    let mut kinds: Vec<&str> = match &inner["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let or_null = kinds.contains(&"null") || !std::ptr::eq(inner, schema);
    kinds.retain(|kind| *kind != "null");
    let word = match kinds[..] {
        ["array"] if inner["items"].is_object() => format!("list of {}", kind(&inner["items"])),
        ["array"] => "list".to_owned(),
        [] => "any JSON".to_owned(),
        _ => kinds.join(" or "),
    };
    if or_null {
        format!("{word} or null")
    } else {
        word
    }
}

fn rules(schema: &Value) -> Vec<String> {
    let inner = without_null(schema);
    let mut rules = Vec::new();
    let choices = inner["enum"]
        .as_array()
        .or_else(|| inner["items"]["enum"].as_array());
    if let Some(choices) = choices {
        rules.push(format!(
            "one of {}",
            choices
                .iter()
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    for (keyword, words) in [
        ("const", "always …"),
        ("format", "…"),
        ("pattern", "as …"),
        ("minLength", "at least … characters"),
        ("maxLength", "at most … characters"),
        ("minItems", "at least … entries"),
        ("maxItems", "at most … entries"),
        ("minimum", "at least …"),
        ("maximum", "at most …"),
        ("exclusiveMinimum", "more than …"),
        ("exclusiveMaximum", "less than …"),
        ("multipleOf", "in steps of …"),
        ("default", "by default …"),
    ] {
        if let Some(value) = inner
            .get(keyword)
            .or_else(|| schema.get(keyword))
            .filter(|value| !value.is_null())
        {
            let value = value
                .as_str()
                .filter(|_| keyword == "format")
                .map_or_else(|| value.to_string(), str::to_owned);
            let words = match (value.as_str(), keyword) {
                ("1", "minLength" | "maxLength") => words.replace("characters", "character"),
                ("1", "minItems" | "maxItems") => words.replace("entries", "entry"),
                _ => words.to_owned(),
            };
            rules.push(words.replace('…', &value));
        }
    }
    rules
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

/// Puts a text on one line: a description must not create headings or lists.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes paragraphs unchanged, each on one line. A line that would be a heading of the page is escaped.
fn paragraphs(text: &str) -> String {
    let paragraphs = text
        .split("\n\n")
        .map(plain)
        .filter(|paragraph| !paragraph.is_empty());
    let escaped =
        paragraphs.map(
            |paragraph| match paragraph.starts_with(['#', '>', '`', '=', '~']) {
                true => format!("\\{paragraph}"),
                false => paragraph,
            },
        );
    escaped.collect::<Vec<_>>().join("\n\n")
}
