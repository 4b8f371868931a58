//! Enums with values: what the code of `#[data]` writes them with.

use serde_json::Value;

use super::{Mismatch, Writer, write_text};

/// A variant's name, and the function that writes its value.
pub type Variant = (&'static str, Option<fn(&mut Writer)>);

/// Writes the schema of an enum that is one of several texts.
pub fn write_choice(names: &[&str], schema: &mut Writer) {
    schema.set("type", "\"string\"");
    schema.set("enum", list(names.iter().map(|name| write_text(name))));
}

/// Writes the schema of an enum that is one of several numbers.
pub fn write_numbers(numbers: &[i64], schema: &mut Writer) {
    schema.set("type", "\"integer\"");
    schema.set("enum", list(numbers.iter().map(i64::to_string)));
}

/// Writes the schema of `"Point"` or `{"Circle": {…}}`.
pub fn write_outside(variants: &[Variant], schema: &mut Writer) {
    let mut options = Vec::new();
    let names: Vec<String> = variants
        .iter()
        .filter(|variant| variant.1.is_none())
        .map(|variant| write_text(variant.0))
        .collect();
    if !names.is_empty() {
        options.push(format!(
            "{{\"type\":\"string\",\"enum\":{}}}",
            list(names.into_iter())
        ));
    }
    for (name, write) in variants {
        let Some(write) = write else { continue };
        options.push(schema.alternative(None, &mut |schema| {
            let value = schema.inner(*write);
            schema.set("type", "\"object\"");
            schema.set_property(name, &value);
            schema.set("required", format!("[{}]", write_text(name)));
            schema.set("additionalProperties", "false");
        }));
    }
    schema.set("anyOf", list(options.into_iter()));
}

/// Writes the schema of `{"kind": "circle", …}`, in which the tag is among the members of the value.
pub fn write_inside(tag: &str, variants: &[Variant], schema: &mut Writer) {
    let mut options = Vec::new();
    for (name, write) in variants {
        options.push(schema.alternative(Some(tag), &mut |schema| {
            if let Some(write) = write {
                write(schema);
            }
            let required = match schema
                .get("required")
                .and_then(|known| known.strip_prefix('['))
            {
                Some("]") | None => format!("[{}]", write_text(tag)),
                Some(known) => format!("[{},{known}", write_text(tag)),
            };
            schema.set("type", "\"object\"");
            schema.set_property(tag, &constant(name));
            schema.set("required", required);
        }));
    }
    schema.set("anyOf", list(options.into_iter()));
}

/// Writes the schema of `{"kind": "circle", "value": {…}}`, in which the tag is next to the value.
pub fn write_beside(tag: &str, content: &str, variants: &[Variant], schema: &mut Writer) {
    let (tag, content) = (write_text(tag), write_text(content));
    let mut options = Vec::new();
    for (name, write) in variants {
        let constant = constant(name);
        let (value, required) = match write {
            Some(write) => (
                format!(",{content}:{}", schema.inner(*write)),
                format!("{tag},{content}"),
            ),
            None => (String::new(), tag.clone()),
        };
        options.push(format!(
            "{{\"type\":\"object\",\"properties\":{{{tag}:{constant}{value}}},\"required\":[{required}]}}"
        ));
    }
    schema.set("anyOf", list(options.into_iter()));
}

/// Writes the schema of an enum without a tag, which is only the value.
pub fn write_untagged(variants: &[fn(&mut Writer)], schema: &mut Writer) {
    let options: Vec<String> = variants
        .iter()
        .map(|write| schema.alternative(None, &mut |schema| write(schema)))
        .collect();
    schema.set("anyOf", list(options.into_iter()));
}

/// Returns a variant's name and the value that it holds: `"Point"`, or `{"Circle": {…}}`.
pub fn variant(value: Value) -> Result<(String, Option<Value>), Mismatch> {
    let wrong = || Mismatch::new("must be a text, or an object with one member");
    match value {
        Value::String(name) => Ok((name, None)),
        Value::Object(members) if members.len() == 1 => members
            .into_iter()
            .next()
            .map(|(name, value)| (name, Some(value)))
            .ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

fn constant(name: &str) -> String {
    format!("{{\"type\":\"string\",\"const\":{}}}", write_text(name))
}

fn list(texts: impl Iterator<Item = String>) -> String {
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}
