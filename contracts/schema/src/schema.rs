//! A JSON Schema as a published tool keeps it: its text. As a tree it takes ten times as much memory, and most tools of a
//! large catalogue are never called.

mod clients;

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};

pub use self::clients::without_default_dialect;

/// The dialect of every published schema: MCP's default for schemas that name none.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// JSON on one line, in the order of keys that a client sees.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct RawSchema(Box<RawValue>);

impl RawSchema {
    /// Returns the text, on one line.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// Returns the tree. Each call parses it again, so keep the result if you need it often.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).expect("it was made of a value, or read as JSON")
    }
}

impl From<Value> for RawSchema {
    fn from(value: Value) -> Self {
        Self(serde_json::value::to_raw_value(&value).expect("a tree is JSON"))
    }
}

impl<'de> Deserialize<'de> for RawSchema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(from)?;
        // Weir writes schemas on one line; a schema written differently must not split a message.
        match text.get().contains(['\n', '\r']) {
            true => serde_json::from_str::<Value>(text.get())
                .map(Self::from)
                .map_err(serde::de::Error::custom),
            false => Ok(Self(text)),
        }
    }
}

impl PartialEq for RawSchema {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

/// Returns the schema that accompanies `null`, if `schema` is `anyOf: [that, {"type": "null"}]`.
pub fn beside_null(schema: &Value) -> Option<&Value> {
    let is_null = |arm: &Value| {
        arm.as_object()
            .is_some_and(|arm| arm.len() == 1 && arm.get("type").is_some_and(|word| word == "null"))
    };
    match schema.get("anyOf")?.as_array()?.as_slice() {
        [value, null] if is_null(null) => Some(value),
        [null, value] if is_null(null) => Some(value),
        _ => None,
    }
}

/// Returns the schema of a value that is not `null`; that is the schema itself unless it is a union of `null` and
/// another one.
pub fn without_null(schema: &Value) -> &Value {
    beside_null(schema).unwrap_or(schema)
}

/// Returns the items of a list of a schema's keyword, each once: clients refuse an `enum` or `required` that names one twice.
pub fn each_once(list: &Value) -> Vec<&Value> {
    let mut seen = HashSet::new();
    let key = |item: &Value| match item.as_f64() {
        Some(number) => format!("{number}"),
        None => item.to_string(),
    };
    let items = list.as_array().into_iter().flatten();
    items.filter(|item| seen.insert(key(item))).collect()
}

/// Adds a schema that the same value must meet as well.
pub fn add_to_all_of(members: &mut Map<String, Value>, schema: Value) {
    let all = members
        .entry("allOf")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.push(schema);
    }
}

/// Returns the group of keywords that look at each other; any other keyword is its own group.
pub(crate) fn keyword_group(keyword: &str) -> &str {
    match keyword {
        "properties" | "patternProperties" | "additionalProperties" => "properties",
        "prefixItems" | "items" | "additionalItems" => "items",
        "contains" | "minContains" | "maxContains" => "contains",
        "if" | "then" | "else" => "if",
        other => other,
    }
}
