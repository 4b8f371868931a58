//! Finds out which past calls a new schema would have refused, from what may be kept of them.
//!
//! A [`ValueProfile`] contains no text or number that an agent chose freely. It has only their length, whether the number
//! was whole, and which patterns and formats they met. What cannot be judged from that is reported as such.

mod judge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use weir_schema::compare::normal;

pub use judge::judge;

const DEPTH_MAX: usize = 8;
/// Items of one list that are kept; of a longer one only the first.
const ITEMS_MAX: usize = 32;

/// The part of one value that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ValueProfile {
    /// Null, a flag, one of listed values or a number between two bounds, as it was.
    Value(Value),
    Number {
        whole: bool,
    },
    Text {
        /// The length in characters.
        length: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patterns: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        formats: Vec<String>,
    },
    List {
        length: u64,
        unique: bool,
        items: Vec<ValueProfile>,
    },
    Object {
        members: BTreeMap<String, ValueProfile>,
        /// Members that the schema did not name.
        further: u64,
    },
    /// The value was nested too deeply.
    Unknown,
}

/// The effect of a new schema on a past call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImpactVerdict {
    Passes,
    Fails { why: String },
    CannotTell { why: String },
}

/// Profiles of arguments of one schema. Built once per snapshot.
pub struct ArgumentProfiler {
    schema: Value,
}

impl ArgumentProfiler {
    /// Creates the profiler of an input schema. A schema that cannot be read leaves only types and lengths in profiles.
    pub fn new(schema: &Value) -> Self {
        // Without its schema a profile has only types and lengths.
        Self {
            schema: normal::normal(schema).unwrap_or_default(),
        }
    }

    /// Returns the profile of arguments that the schema has accepted; it does not check them again.
    pub fn profile(&self, arguments: &Map<String, Value>) -> ValueProfile {
        object(&self.schema, arguments, 0)
    }
}

/// Returns the profile of one call, as [`ArgumentProfiler::profile`] does.
pub fn profile(schema: &Value, arguments: &Map<String, Value>) -> ValueProfile {
    ArgumentProfiler::new(schema).profile(arguments)
}

fn value(schema: &Value, value: &Value, depth: usize) -> ValueProfile {
    let is_listed = schema.get("enum").is_some() || schema.get("const").is_some();
    match value {
        Value::Null | Value::Bool(_) => ValueProfile::Value(value.clone()),
        _ if depth > DEPTH_MAX => ValueProfile::Unknown,
        _ if is_listed => ValueProfile::Value(value.clone()),
        Value::Number(_) if is_between(schema) => ValueProfile::Value(value.clone()),
        Value::Number(number) => {
            let double = number.as_f64().unwrap_or(0.5);
            ValueProfile::Number {
                whole: !number.is_f64() || double.fract() == 0.0,
            }
        }
        Value::String(text) => {
            let of = |key: &str| {
                schema
                    .get(key)
                    .and_then(Value::as_str)
                    .map(str::to_owned)
                    .into_iter()
                    .collect()
            };
            ValueProfile::Text {
                length: text.chars().count() as u64,
                patterns: of("pattern"),
                formats: of("format"),
            }
        }
        Value::Array(items) => list(schema, items, depth),
        Value::Object(members) => object(schema, members, depth),
    }
}

fn is_between(schema: &Value) -> bool {
    let has = |keys: [&str; 2]| keys.iter().any(|key| schema.get(key).is_some());
    has(["minimum", "exclusiveMinimum"]) && has(["maximum", "exclusiveMaximum"])
}

fn list(schema: &Value, items: &[Value], depth: usize) -> ValueProfile {
    let of_item = |index: usize| {
        schema
            .get("prefixItems")
            .and_then(|items| items.get(index))
            .or_else(|| schema.get("items"))
    };
    let kept = items.iter().take(ITEMS_MAX).enumerate();
    // Many items are compared with each other only where the schema has done so already.
    let unique = schema.get("uniqueItems") == Some(&Value::Bool(true))
        || (items.len() <= ITEMS_MAX
            && (1..items.len()).all(|index| !items[..index].contains(&items[index])));
    ValueProfile::List {
        length: items.len() as u64,
        unique,
        items: kept
            .map(|(index, item)| value(of_item(index).unwrap_or(&Value::Null), item, depth + 1))
            .collect(),
    }
}

fn object(schema: &Value, members: &Map<String, Value>, depth: usize) -> ValueProfile {
    let named = |name: &str| {
        schema
            .get("properties")
            .and_then(|properties| properties.get(name))
    };
    let kept = members
        .iter()
        .filter_map(|(name, member)| Some((name.clone(), value(named(name)?, member, depth + 1))));
    let kept: BTreeMap<String, ValueProfile> = kept.collect();
    let further = (members.len() - kept.len()) as u64;
    ValueProfile::Object {
        members: kept,
        further,
    }
}
