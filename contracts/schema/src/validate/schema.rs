//! Examines a schema: whether it may be compiled, and what it states about a place.

use serde_json::Value;
use weir_text::shorten;

use super::{SCHEMA_BYTES_MAX, budget};
use crate::{
    cost::SchemaCost,
    json,
    keyword::SCHEMA,
    reference::resolve,
    schema::{DIALECT, beside_null},
    walk::each_inside,
};

const DEPTH_MAX: usize = 64;

/// Checks what the compiler of schemas does not: the dialect, the size, references that lead in a circle, and the cost.
pub(super) fn check(schema: &Value) -> Result<SchemaCost, String> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err("a JSON Schema is an object or a boolean".to_owned());
    }
    let mut nodes = 0;
    bounded(schema, 0, &mut nodes)?;
    if let Some(dialect) = other_dialect(schema) {
        let dialect = dialect.to_string();
        let shown = shorten(&dialect, 200);
        return Err(format!("unsupported dialect {shown}: only {DIALECT} is"));
    }
    SchemaCost::measure(schema)
}

/// Returns the first `$schema` that names another dialect. The validator reads a schema inside by its own dialect, and nothing
/// else here does.
fn other_dialect(schema: &Value) -> Option<&Value> {
    let members = schema.as_object()?;
    let is_known = |dialect: &Value| {
        let stated = dialect.as_str();
        stated.is_some_and(|stated| stated.trim_end_matches('#') == DIALECT)
    };
    let mut found = members.get(SCHEMA).filter(|dialect| !is_known(dialect));
    each_inside(members, &mut |inner| {
        found = found.or_else(|| other_dialect(inner));
    });
    found
}

/// Returns the schema of the members of an object or a list: references are followed, and `null` is ignored.
pub(super) fn of_container<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let schema = resolve(root, schema)?;
    match beside_null(schema) {
        Some(value) => resolve(root, value),
        None => Some(schema),
    }
}

/// Returns `true` if `null` is valid, or if that cannot be decided cheaply.
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
