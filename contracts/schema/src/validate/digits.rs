//! Integers of 64 bits that are given as texts of their digits.
//!
//! JavaScript rounds a number beyond 2^53−1. Where the document of a service declares that an integer has 64 bits,
//! its tool is published with a second form, a text of digits ([`with_text_form`]), which becomes a number again before
//! the service is asked ([`to_numbers`]).

use serde_json::{Map, Value, json};

use super::{ERRORS_MAX, budget};
use crate::{json, keyword::REF, reference, walk};

/// Digits of the largest integers of 64 bits, with and without a sign.
const SIGNED: &str = "^-?[0-9]{1,19}$";
const UNSIGNED: &str = "^[0-9]{1,20}$";
/// Keywords that remain outside the two forms, where clients look for them.
const TEXTS: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];

/// Gives each integer of 64 bits in a schema its second form, unless its bounds are within ±(2^53−1).
pub fn with_text_form(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    // Next to an alternative that takes texts, a text of digits is just a text.
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(arms)) = members.get_mut(union)
            && arms.iter().any(takes_text)
        {
            for arm in arms.iter_mut().filter_map(Value::as_object_mut) {
                if arm.get("type").is_some_and(|kind| kind == "integer") {
                    arm.shift_remove("format");
                }
            }
        }
    }
    move_format(members);
    walk::each_inside_mut(members, &mut with_text_form);
    let Some(pattern) = pattern(members) else {
        return;
    };
    let mut outer = Map::new();
    for text in TEXTS {
        outer.extend(
            members
                .shift_remove(text)
                .map(|value| (text.to_owned(), value)),
        );
    }
    members.shift_remove("format");
    let number = std::mem::take(members);
    let text = json!({ "type": "string", "pattern": pattern });
    members.insert("anyOf".to_owned(), json!([number, text]));
    members.extend(outer);
}

/// Moves the format of 64 bits to the integer that it is about, where a list of types was written as alternatives.
fn move_format(members: &mut Map<String, Value>) {
    let format = members.get("format").and_then(Value::as_str);
    let Some(format @ ("int64" | "uint64")) = format else {
        return;
    };
    let format = Value::from(format);
    let Some(Value::Array(arms)) = members.get_mut("anyOf") else {
        return;
    };
    if arms.iter().any(takes_text) {
        return;
    }
    for arm in arms.iter_mut().filter_map(Value::as_object_mut) {
        if arm.get("type").is_some_and(|kind| kind == "integer") {
            arm.insert("format".to_owned(), format.clone());
        }
    }
    members.shift_remove("format");
}

fn takes_text(arm: &Value) -> bool {
    match arm.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => match (arm.as_object(), arm.get("enum").and_then(Value::as_array)) {
            (_, Some(listed)) => listed.iter().any(Value::is_string),
            (Some(arm), None) => ![REF, "allOf", "anyOf", "oneOf", "properties"]
                .iter()
                .any(|word| arm.contains_key(*word)),
            (None, None) => true,
        },
    }
}

fn pattern(schema: &Map<String, Value>) -> Option<&'static str> {
    let is_integer = schema.get("type").is_some_and(|kind| kind == "integer");
    let pattern = match schema.get("format")?.as_str()? {
        "int64" => SIGNED,
        "uint64" => UNSIGNED,
        _ => return None,
    };
    let bound = |names: [&str; 2]| names.iter().find_map(|name| schema.get(*name)?.as_f64());
    let least = bound(["minimum", "exclusiveMinimum"]).or((pattern == UNSIGNED).then_some(0.0));
    let most = bound(["maximum", "exclusiveMaximum"]);
    let safe = json::INTEGER_MAX as f64;
    let is_small =
        least.is_some_and(|least| least >= -safe) && most.is_some_and(|most| most <= safe);
    let is_listed = schema.contains_key("enum") || schema.contains_key("const");
    (is_integer && !is_small && !is_listed).then_some(pattern)
}

/// Returns `true` if some integer in the schema has the second form.
pub(super) fn are_in(schema: &Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let mut found = has_text_form(members);
    walk::each_inside(members, &mut |inner| found = found || are_in(inner));
    found
}

fn has_text_form(schema: &Map<String, Value>) -> bool {
    let arms = schema.get("anyOf").and_then(Value::as_array);
    let arms = arms.map(Vec::as_slice).unwrap_or_default();
    let of_type = |word: &str, arm: &Value| arm.get("type").is_some_and(|kind| kind == word);
    let is_digits = |arm: &Value| {
        let pattern = arm.get("pattern").and_then(Value::as_str);
        of_type("string", arm) && matches!(pattern, Some(SIGNED | UNSIGNED))
    };
    arms.iter().any(|arm| of_type("integer", arm)) && arms.iter().any(is_digits)
}

/// What became of texts that have a second form.
#[derive(Default)]
pub(super) struct DigitTexts {
    /// Some became numbers.
    pub(super) are_found: bool,
    /// The places of those whose number does not fit in 64 bits.
    pub(super) out_of_range: Vec<String>,
    /// The place that is looked at.
    path: String,
}

impl DigitTexts {
    fn refuse(&mut self) {
        if self.out_of_range.len() < ERRORS_MAX && !self.out_of_range.contains(&self.path) {
            self.out_of_range.push(self.path.clone());
        }
    }

    /// Looks at a member or an item of the place.
    fn inside(&mut self, name: &str, look: impl FnOnce(&mut Self) -> bool) -> bool {
        let length = self.path.len();
        json::push_pointer(&mut self.path, name);
        let found = look(self);
        self.path.truncate(length);
        found
    }
}

/// Turns the texts into numbers where the schema has both forms.
pub(super) fn to_numbers(root: &Value, value: &mut Value) -> DigitTexts {
    let mut texts = DigitTexts::default();
    texts.are_found = within(root, root, value, 0, &mut texts);
    texts
}

fn within(
    root: &Value,
    schema: &Value,
    value: &mut Value,
    depth: usize,
    texts: &mut DigitTexts,
) -> bool {
    let found = reference::resolve(root, schema);
    let Some(schema) = found.filter(|_| depth <= 2 * json::DEPTH_MAX && budget::take(1)) else {
        return false;
    };
    let Value::Object(rules) = schema else {
        return false;
    };
    if has_text_form(rules) {
        let Some(text) = value.as_str() else {
            return false;
        };
        match number(text) {
            Some(number) => {
                *value = number;
                return true;
            }
            None if are_digits(text) => texts.refuse(),
            None => {}
        }
        return false;
    }
    let mut found = false;
    match value {
        Value::Object(members) => {
            let properties = rules.get("properties");
            let others = rules.get("additionalProperties");
            for (name, member) in members {
                let own = properties.and_then(|all| all.get(name)).or(others);
                found |= own.is_some_and(|own| {
                    texts.inside(name, |texts| within(root, own, member, depth + 1, texts))
                });
            }
        }
        Value::Array(items) => {
            let of = rules.get("items");
            for (index, item) in items.iter_mut().enumerate() {
                found |= of.is_some_and(|of| {
                    let name = index.to_string();
                    texts.inside(&name, |texts| within(root, of, item, depth + 1, texts))
                });
            }
        }
        _ => {}
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let arms = rules.get(keyword).and_then(Value::as_array);
        for arm in arms.into_iter().flatten() {
            if keyword == "allOf" || may_be_meant(root, arm, value) {
                found |= within(root, arm, value, depth + 1, texts);
            }
        }
    }
    found
}

/// Returns `false` for an alternative that requires a different value for one of its properties.
fn may_be_meant(root: &Value, arm: &Value, value: &Value) -> bool {
    let Value::Object(members) = value else {
        return true;
    };
    let parts = reference::parts(root, arm).into_iter();
    let mut properties = parts
        .filter_map(|part| part.get("properties")?.as_object())
        .flatten();
    properties.all(|(name, property)| {
        let Some(member) = members.get(name) else {
            return true;
        };
        let listed = property.get("enum").and_then(Value::as_array);
        property.get("const").is_none_or(|only| only == member)
            && listed.is_none_or(|values| values.contains(member))
    })
}

fn are_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(digits: &str) -> Option<Value> {
    let signed = digits.parse::<i64>().map(Value::from);
    signed
        .or_else(|_| digits.parse::<u64>().map(Value::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_64_bits_have_two_forms() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer", "format": "int64", "minimum": 1, "description": "The id." },
                "ids": { "type": "array", "items": { "type": "integer", "format": "uint64" } },
                "few": { "type": "integer", "format": "int64", "minimum": 0, "maximum": 100 },
                "name": { "type": "string", "format": "int64" },
                "either": { "anyOf": [{ "type": "integer" }, { "type": "string" }], "format": "int64" },
                "owner": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "format": "int64" },
                "inner": { "anyOf": [{ "$ref": "#/$defs/Inner" }, { "type": "null" }] },
            },
            "$defs": { "Inner": { "properties": { "n": { "type": "integer", "format": "int64" } } } },
        });
        let before = schema.clone();
        with_text_form(&mut schema);
        let id = json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": SIGNED }], "description": "The id." });
        assert_eq!(schema["properties"]["id"], id);
        let form =
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": SIGNED }] });
        assert_eq!(
            schema["properties"]["owner"],
            json!({ "anyOf": [form, { "type": "null" }] })
        );
        for same in ["few", "name", "either"] {
            assert_eq!(schema["properties"][same], before["properties"][same]);
        }
        assert!(are_in(&schema) && !are_in(&before));
        let mut value = json!({
            "id": "1234567890123456789", "ids": ["18446744073709551615", 7], "few": "3", "name": "12", "inner": { "n": "-9" },
            "owner": "7", "either": "8",
        });
        let texts = to_numbers(&schema, &mut value);
        assert!(texts.are_found && texts.out_of_range.is_empty());
        let numbers = json!({
            "id": 1234567890123456789_i64, "ids": [u64::MAX, 7], "few": "3", "name": "12", "inner": { "n": -9 },
            "owner": 7, "either": "8",
        });
        assert_eq!(value, numbers);
        assert!(!to_numbers(&schema, &mut json!({ "id": 5 })).are_found);
        let mut value =
            json!({ "ids": [1, "18446744073709551616"], "inner": { "n": "-9999999999999999999" } });
        let texts = to_numbers(&schema, &mut value);
        assert_eq!(texts.out_of_range, ["/ids/1", "/inner/n"]);
    }
}
