//! Members that are null and might as well be absent.
//!
//! Many clients send every argument of a tool, with null for those that have no value. Where an optional member may not be
//! null, null counts as absent. Where null is a valid value, it is kept.

use serde_json::{Map, Value};

use super::{budget, schema};
use crate::{json, walk};

/// The number of schemas for the same value that are examined.
const ARMS_MAX: usize = 64;

/// Takes out of `value` every null that counts as absent; returns true if there was one.
pub(super) fn leave_out(root: &Value, value: &mut Value) -> bool {
    within(root, root, value, 0)
}

fn within(root: &Value, schema: &Value, value: &mut Value, depth: usize) -> bool {
    let Some(schema) = schema::of_container(root, schema).filter(|_| depth <= json::DEPTH_MAX)
    else {
        return false;
    };
    match value {
        Value::Object(members) => of_object(root, schema, members, depth),
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter_mut().fold(false, |found, item| {
                within(root, of, item, depth + 1) | found
            }),
            None => false,
        },
        _ => false,
    }
}

/// Takes the nulls out of an object. If the schema itself names a member, only that schema decides; a member that only its
/// parts and alternatives name may be null if one of them allows it.
fn of_object(root: &Value, schema: &Value, members: &mut Map<String, Value>, depth: usize) -> bool {
    let mut arms = Vec::new();
    push_arms(root, schema, &mut arms);
    let may_be_null = |(part, property): (&Value, &Value), name: &str| {
        let required = part.get("required").and_then(Value::as_array);
        let is_required =
            required.is_some_and(|required| required.iter().any(|required| required == name));
        is_required || schema::allows_null(root, property, 0)
    };
    let before = members.len();
    let mut found = false;
    members.retain(|name, member| {
        let own = property(schema, name);
        let arms = arms.iter().copied().filter(|_| own.is_none());
        let mut naming = own
            .into_iter()
            .chain(arms.filter_map(|part| property(part, name)));
        let Some(first) = naming.next() else {
            return true;
        };
        if member.is_null() {
            return may_be_null(first, name) || naming.any(|one| may_be_null(one, name));
        }
        // Which of several alternatives is meant is not known here.
        if naming.next().is_none() {
            found |= within(root, first.1, member, depth + 1);
        }
        true
    });
    found || members.len() < before
}

/// Returns the schema of a member, with its parent schema.
fn property<'s>(schema: &'s Value, name: &str) -> Option<(&'s Value, &'s Value)> {
    Some((schema, schema.get("properties")?.get(name)?))
}

/// Adds every schema that applies, or may apply, to the same value in addition to `schema`.
fn push_arms<'s>(root: &'s Value, schema: &'s Value, arms: &mut Vec<&'s Value>) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for arm in walk::elements(schema.get(keyword)) {
            let Some(arm) = schema::of_container(root, arm).filter(|_| arms.len() < ARMS_MAX)
            else {
                continue;
            };
            if !budget::take(1) {
                return;
            }
            arms.push(arm);
            push_arms(root, arm, arms);
        }
    }
}
