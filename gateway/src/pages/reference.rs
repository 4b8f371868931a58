//! The tools of a contract as a page to read: requests, responses, and ways to call them. It needs no script.

use maud::{Markup, html};
use serde_json::{Map, Value};
use weir_contracts::{
    ContractTool,
    openapi::{ApiDescription, success_schema, takes_query},
};
use weir_schema::{reference::stated_in, schema::without_null, validate};

use super::{page, properties, resolved};

/// The number of levels of members that are listed; below them, the schema is shown.
const DEPTH_MAX: usize = 4;

/// Returns the page. It links to the document (`openapi.json`) next to it.
pub(crate) fn reference<'t>(
    api: &ApiDescription<'_>,
    tools: impl IntoIterator<Item = &'t ContractTool>,
) -> String {
    let tools: Vec<&ContractTool> = tools.into_iter().collect();
    let content = html! {
        h1 { (api.title) " " small { (api.version) } }
        @if let Some(description) = api.description { p.lead { (description) } }
        p {
            "Each tool takes a JSON object and answers JSON; what fails is a problem (RFC 9457). "
            a href="openapi.json" { "The same as OpenAPI 3.1" } "."
        }
        @if api.needs_key { p { "Each call needs a key: " code { "Authorization: Bearer weir_…" } } }
        nav aria-label="Tools" { ul { @for tool in &tools { li { a href={ "#" (tool.name) } { (title(tool)) } } } } }
        @for tool in &tools { (section(api, tool)) }
    };
    page(api.title, &content, false)
}

fn title(tool: &ContractTool) -> &str {
    tool.title.as_deref().unwrap_or(&tool.name)
}

fn section(api: &ApiDescription<'_>, tool: &ContractTool) -> Markup {
    let input = tool.input_schema.value();
    let answer = success_schema(tool);
    let path = format!("{}/{}", api.server, tool.name);
    html! {
        section id=(tool.name) {
            h2 { (title(tool)) }
            p { code { "POST " (path) } @if takes_query(tool, &input) { " or " code { "GET " (path) "?…" } } }
            p { (tool.description) }
            h3 { "Arguments" }
            @if properties(&input).next().is_some() { .wide tabindex="0" { (members(&input, &input, 0)) } } @else { p { "None." } }
            @if let Some(example) = validate::example(&input) {
                p { "For instance:" }
                pre { code { "curl -s " (path) " -H 'content-type: application/json' -d " (quoted(&example.to_string())) } }
            }
            h3 { "Answer" }
            @if properties(&answer).next().is_some() { .wide tabindex="0" { (members(&answer, &answer, 0)) } }
            details {
                summary { "Schemas" }
                pre { code { (pretty(&input)) } }
                pre { code { (pretty(&answer)) } }
            }
        }
    }
}

fn members(root: &Value, object: &Value, depth: usize) -> Markup {
    let required = object["required"].as_array();
    html! {
        table {
            thead { tr { th scope="col" { "Name" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
            tbody {
                @for (name, property) in properties(object) {
                    @let rule = resolved(root, without_null(resolved(root, property)));
                    @let is_required = required.is_some_and(|required| required.iter().any(|one| one == name.as_str()));
                    tr {
                        td { code { (name) } @if is_required { span.required { " required" } } }
                        td { (kind(root, property)) @for bound in bounds(rule) { br; (bound) } }
                        td {
                            @if let Some(help) = property["description"].as_str().or_else(|| rule["description"].as_str()) { (help) }
                            @if let Some(default) = property.get("default") { p { "Without it: " code { (default.to_string()) } } }
                            @for example in property["examples"].as_array().into_iter().flatten() {
                                p { "Example: " code { (example.to_string()) } }
                            }
                            @let inner = if rule["type"] == "array" { resolved(root, &rule["items"]) } else { rule };
                            @if depth < DEPTH_MAX && properties(inner).next().is_some() { (members(root, inner, depth + 1)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the type in words: `list of text or null`.
fn kind(root: &Value, schema: &Value) -> String {
    let schema = resolved(root, schema);
    let inner = without_null(schema);
    if !std::ptr::eq(inner, schema) {
        return format!("{} or null", kind(root, inner));
    }
    let word = |word: &str| match word {
        "string" => schema["format"].as_str().unwrap_or("text").to_owned(),
        "array" => "list".to_owned(),
        word => word.to_owned(),
    };
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => match &schema["items"] {
            items @ Value::Object(rules) if !rules.is_empty() && stated_in(rules).is_none() => {
                format!("list of {}", self::kind(root, items))
            }
            _ => "list".to_owned(),
        },
        Value::String(kind) => word(kind),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .map(word)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "JSON".to_owned(),
    }
}

fn bounds(rule: &Value) -> Vec<String> {
    const WORDS: [(&str, &str); 10] = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("exclusiveMinimum", "more than"),
        ("exclusiveMaximum", "less than"),
        ("multipleOf", "a multiple of"),
        ("minLength", "characters, at least"),
        ("maxLength", "characters, at most"),
        ("minItems", "items, at least"),
        ("maxItems", "items, at most"),
        ("pattern", "matches"),
    ];
    let none = Map::new();
    let rule = rule.as_object().unwrap_or(&none);
    let phrase = |(keyword, words): &(&str, &str)| {
        let value = rule.get(*keyword)?;
        Some(format!(
            "{words} {}",
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        ))
    };
    WORDS.iter().filter_map(phrase).collect()
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn pretty(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).expect("a schema is JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_said_in_words() {
        let root = json!({ "$defs": { "Day": { "type": "string", "format": "date" } } });
        for (schema, words) in [
            (json!({ "type": "string" }), "text"),
            (json!({ "$ref": "#/$defs/Day" }), "date"),
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
                "integer or null",
            ),
            (
                json!({ "type": "array", "items": { "type": "number" } }),
                "list of number",
            ),
            (json!({ "type": ["string", "null"] }), "text or null"),
            (json!({ "enum": ["a", 1] }), "\"a\" | 1"),
            (json!({ "oneOf": [{}, {}] }), "JSON"),
        ] {
            assert_eq!(kind(&root, &schema), words);
        }
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
