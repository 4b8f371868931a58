//! Arguments that come as text: in the query of a URL, on a command line.

use serde_json::Value;

use crate::{
    json,
    schema::{beside_null, without_null},
};

/// Reads text as the value that a property takes. There are several texts if the argument was given more than once. A
/// text that cannot be read stays text: the error of the tool then names the argument.
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
        _ => read(),
    };
    value.unwrap_or_else(|| text.into())
}

/// Returns `true` if `null` is stated as a value of the property.
fn may_be_null(property: &Value) -> bool {
    let is_listed = property["type"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
    is_listed || beside_null(property).is_some()
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
        ] {
            assert_eq!(value(&property, texts), expected, "{property} {texts:?}");
        }
    }
}
