//! Finds alternatives that one property distinguishes, so that a value is checked against one of them only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::keyword::REF;
use crate::reference::{NamedSchemas, member_parts, stated_in};

/// Below this number the validator does not look for the property.
const ARMS_MIN: usize = 3;
/// References that are followed for the type of an alternative.
const CHAIN_MAX: usize = 8;

/// Returns `true` if all alternatives require one property and each gives it a different text.
pub(super) fn by_property<'s>(
    names: &mut NamedSchemas<'s>,
    arms: &'s [Value],
) -> Result<bool, String> {
    if arms.len() < ARMS_MIN {
        return Ok(false);
    }
    let mut pinned: Option<BTreeMap<&str, BTreeSet<&str>>> = None;
    for (number, arm) in arms.iter().enumerate() {
        let parts = member_parts(names, arm)?;
        let values = values(&parts);
        let mut pins = pinned
            .take()
            .unwrap_or_else(|| values.keys().map(|name| (*name, BTreeSet::new())).collect());
        pins.retain(|name, texts| {
            values
                .get(name)
                .is_some_and(|text| texts.insert(text) && texts.len() == number + 1)
        });
        if pins.is_empty() {
            return Ok(false);
        }
        pinned = Some(pins);
    }
    Ok(true)
}

/// Returns `true` if each alternative refuses any other value than an object at once. The validator looks at `type` before
/// all other keywords.
pub(super) fn takes_objects_alone<'s>(
    names: &mut NamedSchemas<'s>,
    arms: &'s [Value],
) -> Result<bool, String> {
    for arm in arms {
        if !is_object_alone(names, arm)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_object_alone<'s>(names: &mut NamedSchemas<'s>, mut arm: &'s Value) -> Result<bool, String> {
    for _ in 0..CHAIN_MAX {
        let Value::Object(members) = arm else {
            return Ok(false);
        };
        if let Some(kind) = members.get("type") {
            return Ok(kind == "object");
        }
        let texts = [REF, "title", "description"];
        let is_reference = members.keys().all(|name| texts.contains(&name.as_str()));
        let Some(reference) = stated_in(members).filter(|_| is_reference) else {
            return Ok(false);
        };
        let Some(target) = names.target(arm, reference)? else {
            return Ok(false);
        };
        arm = target;
    }
    Ok(false)
}

/// Returns the text of every required property that may have only that one.
fn values<'s>(parts: &[&'s Map<String, Value>]) -> BTreeMap<&'s str, &'s str> {
    let required = |name: &str| {
        let lists = parts.iter().filter_map(|part| part.get("required"));
        lists
            .filter_map(Value::as_array)
            .flatten()
            .any(|one| one == name)
    };
    let properties = parts
        .iter()
        .filter_map(|part| part.get("properties")?.as_object())
        .flatten();
    properties
        .filter_map(|(name, schema)| Some((name.as_str(), only_text(schema)?)))
        .filter(|(name, _)| required(name))
        .collect()
}

fn only_text(schema: &Value) -> Option<&str> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => value.as_str(),
        (None, Some(Value::Array(values))) => match values.as_slice() {
            [only] => only.as_str(),
            _ => None,
        },
        _ => None,
    }
}
