//! Writes the control for one property.

use maud::{Markup, html};
use serde_json::Value;

use super::{properties, resolved};
use weir_schema::schema::beside_null;

/// Levels of records in records that get controls of their own; below them, JSON is written by hand.
const DEPTH_MAX: usize = 4;

/// Writes the controls of an object's members. `path` is the JSON Pointer of the object.
pub(super) fn members(root: &Value, object: &Value, path: &str, depth: usize) -> Markup {
    let required = object["required"].as_array();
    html! {
        @for (name, property) in properties(object) {
            @let is_required = required.is_some_and(|required| required.iter().any(|one| one == name.as_str()));
            @let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            (member(root, name, property, &path, is_required, depth))
        }
    }
}

fn member(
    root: &Value,
    name: &str,
    property: &Value,
    path: &str,
    required: bool,
    depth: usize,
) -> Markup {
    let rule = rule(root, property);
    let label = rule["title"]
        .as_str()
        .or_else(|| property["title"].as_str())
        .unwrap_or(name);
    let help = property["description"]
        .as_str()
        .or_else(|| rule["description"].as_str());
    let default = property.get("default").or_else(|| rule.get("default"));
    match rule["type"].as_str() {
        Some("object") if depth < DEPTH_MAX && properties(rule).next().is_some() => html! {
            fieldset data-kind="object" data-name=(name) data-path=(path) data-required[required] {
                @if label.is_empty() { legend.unseen { "Item" } } @else { legend { (label) (mark(required)) } }
                @if let Some(help) = help { p.help { (help) } }
                (members(root, rule, path, depth + 1))
            }
        },
        Some("array") if depth < DEPTH_MAX && rule["items"].is_object() => {
            let item = member(
                root,
                "",
                &rule["items"],
                &format!("{path}/*"),
                true,
                depth + 1,
            );
            html! {
                fieldset data-kind="array" data-name=(name) data-path=(path) data-required[required]
                    data-least=[rule["minItems"].as_u64()] data-most=[rule["maxItems"].as_u64()] {
                    legend { (label) (mark(required)) }
                    @if let Some(help) = help { p.help { (help) } }
                    p.error id=(id(path, "error")) {}
                    ol {}
                    template { li { (item) button.remove type="button" { "Remove" } } }
                    button.add type="button" { "Add" }
                }
            }
        }
        kind => {
            let (input, error) = (id(path, "input"), id(path, "error"));
            let described = match help {
                Some(_) => format!("{} {error}", id(path, "help")),
                None => error.clone(),
            };
            html! {
                div.field data-kind=(kind_of(rule, kind)) data-name=(name) data-path=(path) data-required[required] {
                    label for=(input) { (if label.is_empty() { "Value" } else { label }) (mark(required)) }
                    @if let Some(help) = help { p.help id=(id(path, "help")) { (help) } }
                    (scalar(rule, kind, default, &input, &described, required))
                    p.error id=(error) {}
                }
            }
        }
    }
}

/// Writes the control itself. Everything but a text, number, choice, or yes and no is written as JSON.
fn scalar(
    rule: &Value,
    kind: Option<&str>,
    default: Option<&Value>,
    id: &str,
    described: &str,
    required: bool,
) -> Markup {
    let value = default.map(plain);
    if let Some(choices) = rule["enum"].as_array() {
        return html! {
            select id=(id) aria-describedby=(described) required[required] {
                option value="" { "" }
                @for choice in choices.iter().filter(|choice| !choice.is_null()) {
                    option value=(choice.to_string()) selected[default == Some(choice)] { (plain(choice)) }
                }
            }
        };
    }
    match kind {
        Some("boolean") => html! {
            select id=(id) aria-describedby=(described) required[required] {
                option value="" { "" }
                option value="true" selected[default == Some(&Value::Bool(true))] { "Yes" }
                option value="false" selected[default == Some(&Value::Bool(false))] { "No" }
            }
        },
        Some(kind @ ("integer" | "number")) => {
            let step = rule.get("multipleOf").map_or_else(
                || if kind == "integer" { "1" } else { "any" }.to_owned(),
                plain,
            );
            let bound = |key| rule.get(key).map(plain);
            html! {
                input id=(id) type="number" step=(step) min=[bound("minimum")] max=[bound("maximum")] value=[value]
                    aria-describedby=(described) required[required];
            }
        }
        Some("string") => {
            let input = match rule["format"].as_str() {
                Some("date") => "date",
                Some("email") => "email",
                Some("uri") => "url",
                _ => "text",
            };
            let is_long = rule["maxLength"]
                .as_u64()
                .is_some_and(|length| length > 200);
            html! {
                @if is_long && rule.get("pattern").is_none() {
                    textarea id=(id) rows="4" minlength=[rule["minLength"].as_u64()] maxlength=[rule["maxLength"].as_u64()]
                        aria-describedby=(described) required[required] { (value.unwrap_or_default()) }
                } @else {
                    input id=(id) type=(input) minlength=[rule["minLength"].as_u64()] maxlength=[rule["maxLength"].as_u64()]
                        pattern=[rule["pattern"].as_str().map(whole)] value=[value]
                        placeholder=[(rule["format"] == "date-time").then_some("2026-01-31T09:30:00Z")]
                        aria-describedby=(described) required[required];
                }
            }
        }
        _ => html! {
            textarea id=(id) rows="4" spellcheck="false" placeholder="JSON" aria-describedby=(described)
                required[required] { (default.map(Value::to_string).unwrap_or_default()) }
        },
    }
}

/// Returns the word that tells the script how to read the control.
fn kind_of(rule: &Value, kind: Option<&str>) -> &'static str {
    match kind {
        _ if rule["enum"].is_array() => "json",
        Some("string") => "string",
        Some("integer" | "number" | "boolean") => "literal",
        _ => "json",
    }
}

/// Returns the rule for a value that is not null.
fn rule<'s>(root: &'s Value, property: &'s Value) -> &'s Value {
    let property = resolved(root, property);
    beside_null(property).map_or(property, |value| resolved(root, value))
}

/// Makes a pattern that matches whole texts, as browsers do; a schema's pattern matches any part.
fn whole(pattern: &str) -> String {
    match (pattern.strip_prefix('^'), pattern.strip_suffix('$')) {
        (Some(_), Some(_)) => pattern
            .trim_start_matches('^')
            .trim_end_matches('$')
            .to_owned(),
        (Some(open), None) => format!("{open}.*"),
        (None, Some(open)) => format!(".*{open}"),
        (None, None) => format!(".*(?:{pattern}).*"),
    }
}

fn id(path: &str, what: &str) -> String {
    format!("{what}{path}")
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn mark(required: bool) -> Markup {
    html! { @if required { span.required aria-hidden="true" { " *" } } }
}
