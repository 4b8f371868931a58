//! Guesses which of several alternatives a value was meant to be, from its faults under each of them.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use crate::json::pointer_tokens;

/// The property that distinguishes alternatives, and its value in each of them.
pub(super) struct UnionKey {
    pub(super) name: String,
    pub(super) values: Vec<Value>,
}

/// Returns the faults of the alternative nearest to the value: one whose fixed properties fit, with the fewest faults.
pub(super) fn nearest<'b>(
    branches: &[&'b Vec<ValidationError<'static>>],
    path: &str,
) -> Option<&'b Vec<ValidationError<'static>>> {
    let of_key = |error: &&ValidationError<'_>| fixed(error, path).is_some();
    let distance = |branch: &&&Vec<ValidationError<'static>>| {
        (branch.iter().filter(of_key).count(), branch.len())
    };
    branches.iter().min_by_key(distance).copied()
}

/// Returns the property that fits in no alternative, if it has a fixed value in each of them.
pub(super) fn key(branches: &[&Vec<ValidationError<'static>>], path: &str) -> Option<UnionKey> {
    let (first, others) = branches.split_first()?;
    let value_of = |branch: &[ValidationError<'_>], wanted: &str| {
        branch
            .iter()
            .find_map(|error| fixed(error, path).filter(|(name, _)| name == wanted))
            .map(|(_, values)| values)
    };
    first.iter().find_map(|error| {
        let (name, mut values) = fixed(error, path)?;
        for branch in others {
            values.extend(value_of(branch, &name)?);
        }
        let mut once = Vec::new();
        for value in values {
            if !once.contains(&value) {
                once.push(value);
            }
        }
        Some(UnionKey { name, values: once })
    })
}

/// Returns the property and its values, if the fault is that a property of the value has not the fixed one.
fn fixed(error: &ValidationError<'_>, path: &str) -> Option<(String, Vec<Value>)> {
    let values = match error.kind() {
        Kind::Constant { expected_value } => vec![Value::clone(expected_value)],
        Kind::Enum { options } => options.as_array()?.clone(),
        _ => return None,
    };
    let within = error.instance_path().as_str().strip_prefix(path)?;
    match pointer_tokens(within).as_slice() {
        [name] => Some((name.clone().into_owned(), values)),
        _ => None,
    }
}
