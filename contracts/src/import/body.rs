//! Turns the body of a request into arguments: its members one by one, or all of it as one.

use serde_json::{Map, Value};

use super::{document::Document, operation::Place};
use crate::json::push_pointer;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

pub(super) struct Body<'d> {
    pub(super) content_type: &'d str,
    pub(super) parts: Vec<Part<'d>>,
}

pub(super) struct Part<'d> {
    pub(super) name: &'d str,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) schema: &'d Value,
    /// Below the body.
    pub(super) at: String,
    pub(super) description: Option<&'d str>,
}

/// Returns the first kind of content that can be sent. The error says which kinds there are.
pub(super) fn of<'d>(document: &'d Document, body: &'d Value) -> Result<Body<'d>, String> {
    let content = body.get("content").and_then(Value::as_object).ok_or("the body says nothing of its content")?;
    let media = |wanted: &dyn Fn(&str) -> bool| content.iter().find(|(media, _)| wanted(media));
    let plain = |media: &str| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let found = media(&|media| plain(media) == "application/json")
        .or_else(|| media(&|media| plain(media).ends_with("+json")))
        .or_else(|| media(&|media| matches!(plain(media).as_str(), "*/*" | "application/*")))
        .or_else(|| media(&|media| plain(media) == FORM));
    let Some((media, content)) = found else {
        let names: Vec<&str> = content.keys().map(String::as_str).take(5).collect();
        return Err(format!("the body is sent as {}, and only JSON and forms are", names.join(" or ")));
    };
    let content_type = if media.contains('*') { "application/json" } else { media };
    const ANYTHING: &Value = &Value::Bool(true);
    let schema = content.get("schema").unwrap_or(ANYTHING);
    let mut at = String::from("/content");
    push_pointer(&mut at, media);
    at.push_str("/schema");
    let is_required = body.get("required") == Some(&Value::Bool(true));
    let resolved = document.resolved(schema)?;
    let is_form = plain(media) == FORM;
    let mut properties = Vec::new();
    let is_flat = flatten(document, resolved, 0, &mut properties)
        && !properties.is_empty()
        && (is_required || is_form || properties.iter().all(|(.., required)| !required));
    if is_flat {
        let parts = properties.into_iter().map(|(name, schema, required)| {
            let mut at = format!("{at}/properties");
            push_pointer(&mut at, name);
            Part { name, place: Place::Body, required: required && is_required, schema, at, description: None }
        });
        return Ok(Body { content_type, parts: parts.collect() });
    }
    if is_form {
        return Err("the body is a form whose fields are not a plain list".to_owned());
    }
    let description = body.get("description").and_then(Value::as_str);
    let part = Part { name: "body", place: Place::WholeBody, required: is_required, schema, at, description };
    Ok(Body { content_type, parts: vec![part] })
}

/// Collects the members of an object that says nothing else, those in `allOf` included.
fn flatten<'d>(
    document: &'d Document,
    schema: &'d Value,
    depth: usize,
    found: &mut Vec<(&'d str, &'d Value, bool)>,
) -> bool {
    const HARMLESS: &[&str] = &[
        "type",
        "properties",
        "required",
        "title",
        "description",
        "example",
        "examples",
        "allOf",
        "xml",
        "externalDocs",
        "deprecated",
        "default",
        "discriminator",
    ];
    let Some(members) = schema.as_object() else { return false };
    let closes = members.get("additionalProperties").is_none_or(|rule| rule == &Value::Bool(false));
    let known = |keyword: &String| {
        HARMLESS.contains(&keyword.as_str()) || keyword == "additionalProperties" || keyword.starts_with("x-")
    };
    let is_object = members.get("type").is_none_or(|kind| kind == "object");
    if !closes || !is_object || !members.keys().all(known) || depth > 8 {
        return false;
    }
    let required: Vec<&str> = names(members);
    for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Ok(resolved) = document.resolved(schema) else { return false };
        if resolved.get("readOnly") == Some(&Value::Bool(true)) {
            continue;
        }
        if found.iter().any(|(other, ..)| other == name) {
            return false;
        }
        found.push((name, schema, false));
    }
    let all = members.get("allOf").and_then(Value::as_array).into_iter().flatten();
    for part in all {
        match document.resolved(part) {
            Ok(part) if flatten(document, part, depth + 1, found) => {}
            _ => return false,
        }
    }
    for (name, _, is_required) in found {
        *is_required |= required.contains(name);
    }
    true
}

fn names(members: &Map<String, Value>) -> Vec<&str> {
    members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
