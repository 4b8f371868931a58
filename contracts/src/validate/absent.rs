//! Members that are null and might as well not be there.
//!
//! Many clients send every argument of a tool, with null for those that nobody set. Where an optional member may not be
//! null, its null says nothing: it counts as absent. Where null is a value of its own, it stays.

use serde_json::{Map, Value};

use super::schema;
use crate::json;

/// Takes out of `value` every null that counts as absent; true where there was one.
pub(super) fn leave_out(root: &Value, value: &mut Value) -> bool {
    within(root, root, value, 0)
}

fn within(root: &Value, schema: &Value, value: &mut Value, depth: usize) -> bool {
    let Some(schema) = schema::of_container(root, schema).filter(|_| depth <= json::DEPTH_MAX) else { return false };
    match value {
        Value::Object(members) => of_object(root, schema, members, depth),
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter_mut().fold(false, |found, item| within(root, of, item, depth + 1) | found),
            None => false,
        },
        _ => false,
    }
}

fn of_object(root: &Value, schema: &Value, members: &mut Map<String, Value>, depth: usize) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|required| required == name));
    let before = members.len();
    let mut found = false;
    members.retain(|name, member| {
        let Some(property) = properties.get(name) else { return true };
        if member.is_null() {
            return is_required(name) || schema::allows_null(root, property, 0);
        }
        found |= within(root, property, member, depth + 1);
        true
    });
    found || members.len() < before
}
