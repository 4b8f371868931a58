//! Conditions that find the record of a write, and that bind the write to it.

use serde_json::{Map, Value, json};
use weir_contracts::{
    CollectionShape,
    shape::{ShapeField, ValueType},
};
use weir_plugin_host::AdapterCondition;

/// Types of columns whose values are stored approximately: a comparison would not find them again.
const INEXACT: [&str; 2] = ["float4", "float"];

/// Returns the conditions that find the record of a change: its key, and the conditions of the contract.
pub(super) fn conditions(
    key: &Map<String, Value>,
    options: Option<&Map<String, Value>>,
) -> Vec<AdapterCondition> {
    let key = key.iter().map(|(column, value)| AdapterCondition {
        column: column.clone(),
        comparison: "equals".to_owned(),
        value: value.to_string(),
    });
    let held = options.and_then(|options| options.get("conditions")?.as_array());
    let held = held.into_iter().flatten().filter_map(|condition| {
        Some(AdapterCondition {
            column: condition["column"].as_str()?.to_owned(),
            comparison: condition["comparison"].as_str()?.to_owned(),
            value: condition["value"].to_string(),
        })
    });
    key.chain(held).collect()
}

/// Returns the conditions that only the record as it was read meets.
pub(super) fn guards(shape: &CollectionShape, before: &Map<String, Value>) -> Vec<Value> {
    let matches = &shape.capabilities.matches;
    let can = |field: &ShapeField, comparison: &str| {
        let known = matches.get(&field.key).or_else(|| matches.get("*"));
        known.is_some_and(|known| known.iter().any(|known| known == comparison))
    };
    let fields = shape.fields.iter().filter(|field| {
        let is_inexact = field
            .native
            .as_deref()
            .is_some_and(|native| INEXACT.contains(&native));
        let is_whole = matches!(
            field.kind,
            ValueType::Json | ValueType::Record | ValueType::List
        );
        !is_whole && !is_inexact && !shape.key.contains(&field.key)
    });
    let guard = |field: &ShapeField| {
        let (comparison, value) = match before.get(&field.key)? {
            Value::Null => ("is-empty", Value::Bool(true)),
            // A value that does not fit its column cannot be compared with it.
            value
                if matches!(field.kind, ValueType::Integer | ValueType::Number)
                    && !value.is_number() =>
            {
                return None;
            }
            value if field.kind == ValueType::Boolean && !value.is_boolean() => return None,
            value => ("equals", value.clone()),
        };
        let condition = json!({ "column": field.key, "comparison": comparison, "value": value });
        can(field, comparison).then_some(condition)
    };
    fields.filter_map(guard).collect()
}
