//! Looks into a schema: whether it may be compiled, and what it says about a place.

use serde_json::{Map, Value};

use super::{SCHEMA_BYTES_MAX, budget};
use crate::{
    cost::SchemaCost,
    json,
    schema::{DIALECT, beside_null},
};

const DEPTH_MAX: usize = 64;
/// References followed one after another.
const REFERENCES_MAX: usize = 32;

/// Checks what the compiler of schemas does not: the dialect, the size, references that lead in a circle, and the cost.
pub(super) fn check(schema: &Value) -> Result<SchemaCost, String> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err("a JSON Schema is an object or a boolean".to_owned());
    }
    if let Some(dialect) = schema.get("$schema") {
        let known = dialect
            .as_str()
            .is_some_and(|dialect| dialect.trim_end_matches('#') == DIALECT);
        if !known {
            let shown: String = dialect.to_string().chars().take(200).collect();
            return Err(format!("unsupported dialect {shown}: only {DIALECT} is"));
        }
    }
    let mut nodes = 0;
    bounded(schema, 0, &mut nodes)?;
    SchemaCost::measure(schema)
}

/// Follows `$ref` to what it says, as far as it stays in the document.
pub(super) fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> Option<&'s Value> {
    for _ in 0..REFERENCES_MAX {
        let Some(Value::String(reference)) = schema.get("$ref") else {
            return Some(schema);
        };
        schema = target(root, reference)?;
    }
    None
}

/// Returns the schema that says what is in an object or a list: references are followed, and `null` is left aside.
pub(super) fn of_container<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let schema = resolve(root, schema)?;
    match beside_null(schema) {
        Some(value) => resolve(root, value),
        None => Some(schema),
    }
}

/// Returns `true` if `null` is valid, or if that is not easily told.
pub(super) fn allows_null(root: &Value, schema: &Value, depth: usize) -> bool {
    let Some(Value::Object(rules)) = resolve(root, schema) else {
        return schema != &Value::Bool(false);
    };
    if depth > DEPTH_MAX || !budget::take(1) {
        return true;
    }
    let arms = |rule: &Value| -> Vec<bool> {
        rule.as_array()
            .into_iter()
            .flatten()
            .map(|arm| allows_null(root, arm, depth + 1))
            .collect()
    };
    rules.iter().all(|(key, rule)| match (key.as_str(), rule) {
        ("type", Value::String(word)) => word == "null",
        ("type", Value::Array(words)) => words.iter().any(|word| word == "null"),
        ("enum", Value::Array(values)) => values.contains(&Value::Null),
        ("const", value) => value.is_null(),
        ("anyOf" | "oneOf", rule) => arms(rule).contains(&true),
        ("allOf", rule) => !arms(rule).contains(&false),
        _ => true,
    })
}

/// Returns the schema of the value at a JSON Pointer of the instance, as far as `properties` and `items` lead there.
pub(super) fn at_instance<'s>(root: &'s Value, pointer: &str) -> Option<&'s Value> {
    let mut schema = resolve(root, root)?;
    for token in json::pointer_tokens(pointer) {
        schema = of_container(root, schema)?;
        let next = match schema
            .get("properties")
            .and_then(|properties| properties.get(&*token))
        {
            Some(property) => property,
            None => match token.parse::<usize>() {
                Ok(index) => match schema.get("prefixItems").and_then(|items| items.get(index)) {
                    Some(item) => item,
                    None => schema.get("items")?,
                },
                Err(_) => schema.get("additionalProperties")?,
            },
        };
        schema = resolve(root, next)?;
    }
    Some(schema)
}

/// Returns `true` if every step of a JSON Pointer of the instance is a property that the schema names.
pub(super) fn names_properties(root: &Value, pointer: &str) -> bool {
    let mut here = of_container(root, root);
    json::pointer_tokens(pointer).iter().all(|token| {
        let property = here.and_then(|schema| schema.get("properties")?.get(&**token));
        here = property.and_then(|property| of_container(root, property));
        property.is_some()
    })
}

/// Returns every schema that describes the same value as `schema`: itself, what it refers to, and its `allOf`.
pub(super) fn parts<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Map<String, Value>> {
    let mut parts = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(map) = schema else { continue };
        if parts.len() >= REFERENCES_MAX {
            break;
        }
        parts.push(map);
        if let Some(Value::String(reference)) = map.get("$ref") {
            open.extend(target(root, reference));
        }
        if let Some(Value::Array(all)) = map.get("allOf") {
            open.extend(all.iter().rev());
        }
    }
    parts
}

fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let root = match address.is_empty() {
        true => root,
        false => identified(root, address, 0)?,
    };
    match fragment.is_empty() || fragment.starts_with('/') {
        true => root.pointer(&json::percent_decoded(fragment)),
        false => anchored(root, fragment, 0),
    }
}

/// Returns the schema with this `$id`, in full or by the end of its address.
fn identified<'s>(schema: &'s Value, address: &str, depth: usize) -> Option<&'s Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let is_meant = |id: &str| {
        let id = id.trim_end_matches('#');
        id == address
            || id
                .strip_suffix(address)
                .is_some_and(|front| front.ends_with('/'))
            || address.ends_with(id)
    };
    match schema {
        Value::Object(map) => match map.get("$id") {
            Some(Value::String(id)) if is_meant(id) => Some(schema),
            _ => map
                .values()
                .find_map(|inner| identified(inner, address, depth + 1)),
        },
        Value::Array(items) => items
            .iter()
            .find_map(|inner| identified(inner, address, depth + 1)),
        _ => None,
    }
}

fn anchored<'s>(schema: &'s Value, name: &str, depth: usize) -> Option<&'s Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match schema {
        Value::Object(map) => {
            let is_here = ["$anchor", "$dynamicAnchor"]
                .iter()
                .any(|key| map.get(*key).is_some_and(|it| it == name));
            if is_here {
                return Some(schema);
            }
            map.values()
                .find_map(|inner| anchored(inner, name, depth + 1))
        }
        Value::Array(items) => items
            .iter()
            .find_map(|inner| anchored(inner, name, depth + 1)),
        _ => None,
    }
}

fn bounded(schema: &Value, depth: usize, bytes: &mut usize) -> Result<(), String> {
    if depth > DEPTH_MAX * 2 {
        return Err(format!(
            "the schema is nested deeper than {} levels",
            DEPTH_MAX * 2
        ));
    }
    *bytes += 8;
    match schema {
        Value::Object(map) => {
            for (key, inner) in map {
                *bytes += key.len();
                bounded(inner, depth + 1, bytes)?;
            }
        }
        Value::Array(items) => items
            .iter()
            .try_for_each(|inner| bounded(inner, depth + 1, bytes))?,
        Value::String(text) => *bytes += text.len(),
        _ => {}
    }
    match *bytes > SCHEMA_BYTES_MAX {
        true => Err(format!(
            "the schema is larger than {} MiB",
            SCHEMA_BYTES_MAX >> 20
        )),
        false => Ok(()),
    }
}
