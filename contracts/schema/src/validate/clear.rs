//! Fields that an update sets and empties in the same call: no schema states that only one of the two is allowed.

use serde_json::{Map, Value, json};

use super::{ArgumentError, SchemaViolation};

/// Finds the fault in the list of fields to empty. Its example is the same list without the fields that are set.
pub(super) fn set_and_cleared(
    schema: &Value,
    clear: &str,
    arguments: &Map<String, Value>,
) -> Option<ArgumentError> {
    let named = arguments.get(clear)?.as_array()?;
    // The schema reports any other value, which is repeated nowhere.
    let known = schema
        .get("properties")?
        .get(clear)?
        .get("items")?
        .get("enum")?
        .as_array()?;
    let is_set = |field: &&Value| {
        field
            .as_str()
            .is_some_and(|field| arguments.contains_key(field))
    };
    let (set, others): (Vec<&Value>, Vec<&Value>) = known
        .iter()
        .filter(|field| named.contains(field))
        .partition(is_set);
    if set.is_empty() {
        return None;
    }
    let mut violation = SchemaViolation::at(format!("/{clear}"), "set_and_cleared");
    violation.constraint = Some(json!({ "items": { "not": { "enum": set } } }).into());
    violation.example = Some(json!(others).into());
    Some(violation.into())
}
