//! The form of a schema that clients read. It states all checks; a part that some client cannot read is stated in another
//! way, or left out.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{DIALECT, RawSchema};
use crate::walk::each_inside_mut;

/// Keywords that may stand next to alternatives without being one of their rules.
const BESIDE: [&str; 6] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "discriminator",
];
const UNIONS: [&str; 2] = ["anyOf", "oneOf"];

impl RawSchema {
    /// Returns the schema as clients read it. `$schema` is left out where it names the dialect that MCP has without it, since
    /// clients that support other dialects refuse a tool for that word alone. Alternatives within alternatives are written as
    /// one list, since some clients refuse a whole server for them.
    pub fn for_clients(&self) -> Cow<'_, Self> {
        let text = self.as_json();
        let unions: usize = UNIONS
            .iter()
            .map(|union| text.matches(&format!("\"{union}\":")).count())
            .sum();
        // The evaluated members depend on the alternatives, and a reference may lead into one.
        let is_bound = ["unevaluated", "/anyOf/", "/oneOf/"]
            .iter()
            .any(|word| text.contains(word));
        let is_nested = unions > 1 && !is_bound;
        if !is_nested && !text.contains("\"$schema\"") {
            return Cow::Borrowed(self);
        }
        let mut schema = self.value();
        if let Cow::Owned(plain) = without_default_dialect(&schema) {
            schema = plain;
        }
        if is_nested {
            flatten(&mut schema);
        }
        Cow::Owned(Self::from(schema))
    }

    /// Returns `true` if the root holds alternatives or conditions.
    pub fn has_composed_root(&self) -> bool {
        let root = self.value();
        ["allOf", "anyOf", "oneOf", "not", "if"]
            .iter()
            .any(|keyword| root.get(keyword).is_some())
    }
}

/// Leaves out `$schema` where it names the dialect that a schema has without it.
pub fn without_default_dialect(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(members) if members.get("$schema").is_some_and(is_default_dialect) => {
            let mut members = members.clone();
            members.shift_remove("$schema");
            Cow::Owned(Value::Object(members))
        }
        _ => Cow::Borrowed(schema),
    }
}

fn is_default_dialect(stated: &Value) -> bool {
    stated
        .as_str()
        .is_some_and(|stated| stated.trim_end_matches('#') == DIALECT)
}

/// Writes alternatives within alternatives as one `anyOf`. It takes what the nested ones take, and if one of those was a
/// `oneOf` also what fits several of its arms.
fn flatten(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    // To take more inside of these is to take less outside.
    let negated: Vec<(&str, Value)> = ["not", "if"]
        .into_iter()
        .filter_map(|keyword| Some((keyword, members.get_mut(keyword)?.take())))
        .collect();
    each_inside_mut(members, &mut flatten);
    for (keyword, before) in negated {
        members.insert(keyword.to_owned(), before);
    }
    let mut stated = members
        .iter()
        .enumerate()
        .filter(|(_, (keyword, _))| UNIONS.contains(&keyword.as_str()));
    let (Some((at, (union, Value::Array(arms)))), None) = (stated.next(), stated.next()) else {
        return;
    };
    if !arms.iter().any(|arm| bare_union(arm).is_some()) {
        return;
    }
    let (mut flat, mut texts, mut has_null) = (Vec::new(), Map::new(), false);
    for arm in arms {
        let inner = match bare_union(arm) {
            Some(inner) => inner.as_slice(),
            None => std::slice::from_ref(arm),
        };
        for one in inner {
            let is_null = one["type"] == "null";
            if !(is_null && has_null) {
                flat.push(one.clone());
            }
            has_null |= is_null;
        }
        let beside = arm.as_object().filter(|_| bare_union(arm).is_some());
        texts.extend(
            beside
                .into_iter()
                .flatten()
                .filter(|(keyword, _)| BESIDE.contains(&keyword.as_str()))
                .map(|(keyword, value)| (keyword.clone(), value.clone())),
        );
    }
    let union = union.clone();
    members.shift_remove(&union);
    members.shift_insert(at, "anyOf".to_owned(), Value::Array(flat));
    for (keyword, value) in texts {
        members.entry(keyword).or_insert(value);
    }
}

/// Returns the arms of a schema that consists only of a union.
fn bare_union(schema: &Value) -> Option<&Vec<Value>> {
    let members = schema.as_object()?;
    let mut union = None;
    for (keyword, value) in members {
        match keyword.as_str() {
            "anyOf" | "oneOf" if union.is_none() => union = Some(value.as_array()?),
            keyword if BESIDE.contains(&keyword) => {}
            _ => return None,
        }
    }
    union
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn alternatives_within_alternatives_are_one_list() {
        let (text, number, none) = (
            json!({ "type": "string" }),
            json!({ "type": "integer" }),
            json!({ "type": "null" }),
        );
        for (nested, flat) in [
            (
                json!({ "anyOf": [{ "oneOf": [text, number], "title": "Either" }, none], "default": null }),
                json!({ "anyOf": [text, number, none], "default": null, "title": "Either" }),
            ),
            (
                json!({ "description": "d", "oneOf": [{ "anyOf": [text, { "anyOf": [number, none] }] }, none] }),
                json!({ "description": "d", "anyOf": [text, number, none] }),
            ),
            (
                json!({ "anyOf": [{ "anyOf": [text, number], "minLength": 1 }, none] }),
                json!({ "anyOf": [{ "anyOf": [text, number], "minLength": 1 }, none] }),
            ),
            (
                json!({ "not": { "anyOf": [{ "oneOf": [text, number] }, none] } }),
                json!({ "not": { "anyOf": [{ "oneOf": [text, number] }, none] } }),
            ),
        ] {
            let root = |inner: &Value| json!({ "type": "object", "properties": { "a": inner } });
            let published = RawSchema::from(root(&nested)).for_clients().value();
            assert_eq!(published.to_string(), root(&flat).to_string());
        }
    }

    #[test]
    fn a_schema_that_every_client_reads_is_not_written_anew() {
        for plain in [
            json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }] } } }),
            json!({ "anyOf": [{ "oneOf": [] }, { "$ref": "#/anyOf/0" }] }),
        ] {
            let schema = RawSchema::from(plain);
            assert!(matches!(schema.for_clients(), Cow::Borrowed(_)));
        }
    }
}
