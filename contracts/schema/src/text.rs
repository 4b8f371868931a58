//! Arguments that come as text: in the query of a URL, on a command line.

use serde_json::Value;

use crate::{json, schema::without_null};

/// Reads text as the value that a property takes. There are several texts if the argument was given more than once. A
/// text that cannot be read is left as text: the error of the tool then names the argument.
pub fn value(property: &Value, texts: &[&str]) -> Value {
    let rule = without_null(property);
    if rule["type"] == "array" {
        return texts
            .iter()
            .map(|text| value(&rule["items"], &[text]))
            .collect();
    }
    match texts {
        [text] => one(property, rule, text),
        // The tool refuses more than one value for an argument that takes one.
        texts => texts.iter().map(|text| one(property, rule, text)).collect(),
    }
}

fn one(property: &Value, rule: &Value, text: &str) -> Value {
    if text == "null" && may_be_null(property) {
        return Value::Null;
    }
    let read = || json::read_wide(text).ok();
    let value = match kind(rule) {
        Some("string") => None,
        Some("integer" | "number") => read().filter(Value::is_number),
        Some("boolean") => read().filter(Value::is_boolean),
        Some("object") => read().filter(Value::is_object),
        // One of the alternatives may be a text, which other JSON then is.
        None if arms(rule).is_some() && is_single(rule) => {
            read().filter(|read| read.is_number() || read.is_boolean())
        }
        _ => read(),
    };
    value.unwrap_or_else(|| text.into())
}

/// Returns `true` if `null` is stated as a value of the property.
fn may_be_null(property: &Value) -> bool {
    let is_listed = property["type"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
    let is_null = |arm: &Value| arm["type"] == "null";
    is_listed || arms(property).is_some_and(|arms| arms.iter().any(is_null))
}

/// Returns `true` if each value that the property takes is one text, number or boolean, or null. Alternatives may
/// express that: an integer of 64 bits may also be given as a text of digits.
pub fn is_single(property: &Value) -> bool {
    match arms(property) {
        Some(arms) => arms.iter().all(is_scalar),
        None => is_scalar(property),
    }
}

fn arms(property: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"]
        .iter()
        .find_map(|keyword| property[*keyword].as_array())
}

fn is_scalar(rule: &Value) -> bool {
    let is_one = |kind: &Value| {
        matches!(
            kind.as_str(),
            Some("string" | "integer" | "number" | "boolean" | "null")
        )
    };
    match &rule["type"] {
        Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(is_one),
        kind => is_one(kind),
    }
}

/// Returns the type that is not `null`, if there is one.
pub fn kind(property: &Value) -> Option<&str> {
    match &without_null(property)["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An integer of 64 bits that may be null.
    fn digits() -> Value {
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": "^[0-9]+$" }, { "type": "null" }] })
    }

    #[test]
    fn alternatives_of_single_values_are_single() {
        for property in [
            digits(),
            json!({ "type": ["integer", "null"] }),
            json!({ "oneOf": [{ "type": "string" }, { "type": "boolean" }] }),
        ] {
            assert!(is_single(&property), "{property}");
        }
        for property in [
            json!({}),
            json!({ "type": [] }),
            json!({ "type": "array" }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }),
            json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }] }),
        ] {
            assert!(!is_single(&property), "{property}");
        }
    }

    #[test]
    fn text_becomes_what_the_property_takes() {
        for (property, texts, expected) in [
            (json!({ "type": "string" }), &["007"][..], json!("007")),
            (json!({ "type": "integer" }), &["7"], json!(7)),
            (json!({ "type": "integer" }), &["seven"], json!("seven")),
            (json!({ "type": "integer" }), &["null"], json!("null")),
            (json!({ "type": "integer" }), &["7", "8"], json!([7, 8])),
            (json!({ "type": "number" }), &["true"], json!("true")),
            (json!({ "type": "boolean" }), &["true"], json!(true)),
            (
                json!({ "type": "object" }),
                &["{\"a\":1}"],
                json!({ "a": 1 }),
            ),
            (
                json!({ "type": ["string", "null"] }),
                &["null"],
                Value::Null,
            ),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
                &["null"],
                Value::Null,
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" } }),
                &["1"],
                json!([1]),
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" } }),
                &["1", "x"],
                json!([1, "x"]),
            ),
            (json!({}), &["[1]"], json!([1])),
            (
                digits(),
                &["9007199254740993"],
                json!(9_007_199_254_740_993_u64),
            ),
            (digits(), &["null"], Value::Null),
            (digits(), &["[1]"], json!("[1]")),
            (
                json!({ "oneOf": [{ "type": "string" }, { "type": "array" }] }),
                &["[1]"],
                json!([1]),
            ),
        ] {
            assert_eq!(value(&property, texts), expected, "{property} {texts:?}");
        }
    }
}
