//! Schemas that have few values, or none.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{
    normal,
    number::{self, ExactNumber},
    object,
    value::{ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, OBJECT, STRING, bound, type_of, types},
};

/// Whole numbers of a range that are compared one by one.
const NUMBERS_MAX: i64 = 128;
/// Values of all alternatives together that are compared one by one.
const VALUES_MAX: usize = 1_000;
/// Numbers up to this are exact as doubles.
const EXACT_MAX: i128 = 1 << 53;

/// Returns `true` if no value is valid: the schema is `false`, lists none of its type, or the bounds of each type leave none.
/// References are not followed.
pub fn is_never(schema: &Value) -> bool {
    if normal::is_false(schema) {
        return true;
    }
    let Some(types) = types(schema) else {
        return false;
    };
    let stated: &[Value] = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values,
        _ => &[],
    };
    let numbers = INTEGER | FRACTION;
    let is_of_type = |value: &Value| match value {
        Value::Number(_) => types & numbers != 0,
        value => types & type_of(value) != 0,
    };
    if !stated.is_empty() && !stated.iter().any(is_of_type) {
        return true;
    }
    let counted = |key: &str| schema.get(key).and_then(number::count);
    let is_empty = |type_bit: u8| match type_bit {
        STRING => counted("minLength") > counted("maxLength").or(Some(u64::MAX)),
        ARRAY => counted("minItems") > Some(object::most_items(schema)),
        OBJECT => counted("minProperties") > Some(object::most_members(schema)),
        _ => false,
    };
    let has_numbers = types & numbers != 0
        && list_numbers(schema, types).is_none_or(|numbers| !numbers.is_empty());
    let others = [NULL, BOOLEAN, STRING, ARRAY, OBJECT];
    let mut others = others.into_iter().filter(|bit| types & bit != 0);
    !has_numbers && others.all(is_empty)
}

/// Returns the values that a schema lists, regardless of its other keywords.
pub(super) fn listed(schema: &Value) -> Option<Vec<Value>> {
    if let Some(value) = schema.get("const") {
        return Some(vec![value.clone()]);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return Some(values.clone());
    }
    let listed = arms(schema)?
        .iter()
        .map(|arm| listed(arm).or_else(|| few(arm)));
    Some(listed.collect::<Option<Vec<Vec<Value>>>>()?.concat())
}

/// Returns a set of all values of a schema, if there are few.
pub(super) fn collect_values(schema: &Value) -> Option<Vec<Value>> {
    if let Some(values) = listed(schema).or_else(|| list_values(schema)) {
        return Some(values);
    }
    let mut values = Vec::new();
    for arm in arms(schema)? {
        values.extend(collect_values(arm)?);
        if values.len() > VALUES_MAX {
            return None;
        }
    }
    Some(values)
}

fn arms(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|key| schema.get(key)?.as_array())
}

/// Returns all values of types that have few.
fn few(schema: &Value) -> Option<Vec<Value>> {
    let types = types(schema)?;
    (types & !(NULL | BOOLEAN) == 0).then(|| few_of(types))
}

/// Returns a set of all values of the types that a schema allows, if its bounds leave few.
fn list_values(schema: &Value) -> Option<Vec<Value>> {
    let types = types(schema)?;
    let mut values = few_of(types);
    if types & (INTEGER | FRACTION) != 0 {
        values.extend(list_numbers(schema, types)?);
    }
    if types & STRING != 0 {
        let most = schema.get("maxLength").and_then(number::count)?;
        (most == 0).then(|| values.push("".into()))?;
    }
    if types & ARRAY != 0 {
        (object::most_items(schema) == 0).then(|| values.push(json!([])))?;
    }
    if types & OBJECT != 0 {
        (object::most_members(schema) == 0).then(|| values.push(json!({})))?;
    }
    Some(values)
}

/// Returns the values of those types that have only a few.
fn few_of(types: u8) -> Vec<Value> {
    let all = [
        (NULL, Value::Null),
        (BOOLEAN, json!(false)),
        (BOOLEAN, json!(true)),
    ];
    all.into_iter()
        .filter(|(bit, _)| types & bit != 0)
        .map(|(_, value)| value)
        .collect()
}

/// Returns the numbers within the bounds of a schema, if they are few.
fn list_numbers(schema: &Value, types: u8) -> Option<Vec<Value>> {
    if types & FRACTION == 0 {
        return whole_numbers(schema);
    }
    let least = bound(schema, "minimum", "exclusiveMinimum", true).ok()??;
    let most = bound(schema, "maximum", "exclusiveMaximum", false).ok()??;
    match least.at.compare(most.at) {
        Ordering::Less => None,
        // The distance of the ends may exceed what a double can hold.
        _ if !is_exact(least.at) => None,
        Ordering::Equal if !least.exclusive && !most.exclusive => Some(vec![match least.at {
            ExactNumber::Whole(whole) => i64::try_from(whole).ok()?.into(),
            ExactNumber::Fraction(fraction) => json!(fraction),
        }]),
        _ => Some(Vec::new()),
    }
}

pub(super) fn is_exact(number: ExactNumber) -> bool {
    match number {
        ExactNumber::Whole(whole) => whole.abs() <= EXACT_MAX,
        ExactNumber::Fraction(fraction) => fraction.abs() < EXACT_MAX as f64,
    }
}

/// Returns the whole numbers within the bounds of a schema, if there are few.
fn whole_numbers(schema: &Value) -> Option<Vec<Value>> {
    let whole = |key, exclusive, upwards| {
        let bound = bound(schema, key, exclusive, upwards).ok()??;
        match bound.inside(upwards).at {
            ExactNumber::Whole(whole) => i64::try_from(whole).ok(),
            ExactNumber::Fraction(_) => None,
        }
    };
    let least = whole("minimum", "exclusiveMinimum", true)?;
    let most = whole("maximum", "exclusiveMaximum", false)?;
    let are_few = most.saturating_sub(least) < NUMBERS_MAX;
    are_few.then(|| (least..=most).map(Value::from).collect())
}
