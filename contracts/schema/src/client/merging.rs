//! Merges `allOf` into its schema.

use serde_json::{Map, Value, json};

/// Merges the members of `allOf` into their schema: properties and required names are joined, and for other keywords
/// the first one counts. Returns a keyword that occurred twice with different values, if any.
pub(super) fn merge_all_of(members: &mut Map<String, Value>) -> Option<String> {
    let mut conflict = None;
    if has_odd_parts(members) {
        return None;
    }
    let parts = match members.shift_remove("allOf") {
        Some(Value::Array(parts)) => parts,
        _ => return None,
    };
    for part in parts {
        let Value::Object(part) = part else { continue };
        for (key, value) in part {
            match (members.get_mut(&key), value) {
                (None, value) => drop(members.insert(key, value)),
                (Some(Value::Object(own)), Value::Object(more)) if key == "properties" => {
                    for (name, schema) in more {
                        match own.get_mut(&name) {
                            None => drop(own.insert(name, schema)),
                            Some(first) if *first == schema => {}
                            // Both hold.
                            Some(first) => *first = json!({ "allOf": [first.take(), schema] }),
                        }
                    }
                }
                (Some(Value::Array(own)), Value::Array(more)) if key == "required" => {
                    let new: Vec<Value> = more
                        .into_iter()
                        .filter(|name| !own.contains(name))
                        .collect();
                    own.extend(new);
                }
                (Some(own), value) if *own == value => {}
                (Some(_), _) => conflict = Some(key),
            }
        }
    }
    conflict
}

/// Returns `true` if `allOf` has parts that are not objects: such an `allOf` is not merged.
pub(super) fn has_odd_parts(members: &Map<String, Value>) -> bool {
    match members.get("allOf") {
        Some(Value::Array(parts)) => !parts.iter().all(Value::is_object),
        Some(_) => true,
        None => false,
    }
}
