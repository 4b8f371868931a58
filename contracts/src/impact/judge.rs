//! Asks a schema whether it accepts a profile: yes, no, or undecidable.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_schema::{
    compare::{
        normal::{self, TEXTS},
        number::count,
    },
    json::push_pointer,
    validate,
};

use super::{ImpactVerdict, ValueProfile};

/// Decides whether the call behind the profile would be valid under `schema`. Reasons name places and rules, never
/// values.
pub fn judge(schema: &Value, profile: &ValueProfile) -> ImpactVerdict {
    let schema = match normal::normal(schema) {
        Ok(schema) => schema,
        Err(message) => return ImpactVerdict::CannotTell { why: message },
    };
    match answer(&schema, profile, "") {
        ImpactAnswer::Yes => ImpactVerdict::Passes,
        ImpactAnswer::No(why) => ImpactVerdict::Fails { why },
        ImpactAnswer::Unknown(why) => ImpactVerdict::CannotTell { why },
    }
}

enum ImpactAnswer {
    Yes,
    No(String),
    Unknown(String),
}

impl ImpactAnswer {
    fn is_yes(&self) -> bool {
        matches!(self, Self::Yes)
    }

    fn is_no(&self) -> bool {
        matches!(self, Self::No(_))
    }

    /// Combines answers: a single no decides, then a single unknown.
    fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        let mut worst = Self::Yes;
        for answer in answers {
            match answer {
                Self::Yes => {}
                Self::No(_) => return answer,
                Self::Unknown(_) => worst = answer,
            }
        }
        worst
    }
}

fn at(path: &str) -> &str {
    if path.is_empty() {
        "the arguments"
    } else {
        path
    }
}

fn fails(path: &str, key: &str) -> ImpactAnswer {
    ImpactAnswer::No(format!("{key} at {}", at(path)))
}

fn unknown(path: &str, key: &str) -> ImpactAnswer {
    ImpactAnswer::Unknown(format!(
        "{key} at {} is not known from what was kept",
        at(path)
    ))
}

fn decided(holds: bool, path: &str, key: &str) -> ImpactAnswer {
    if holds {
        ImpactAnswer::Yes
    } else {
        fails(path, key)
    }
}

fn answer(schema: &Value, profile: &ValueProfile, path: &str) -> ImpactAnswer {
    let Some(keywords) = schema.as_object() else {
        return unknown(path, "the schema");
    };
    if let ValueProfile::Value(value) = profile {
        return of_value(schema, value, path);
    }
    ImpactAnswer::all(
        keywords
            .iter()
            .map(|(key, rule)| keyword(schema, key, rule, profile, path)),
    )
}

/// Judges a value that was kept as it was.
fn of_value(schema: &Value, value: &Value, path: &str) -> ImpactAnswer {
    if normal::has_reference(schema) {
        return unknown(path, "a reference");
    }
    match validate::validator(schema) {
        Ok(validator) => decided(
            validator.is_valid(value),
            path,
            "the value is no longer allowed",
        ),
        Err(_) => unknown(path, "the schema"),
    }
}

fn keyword(
    schema: &Value,
    key: &str,
    rule: &Value,
    profile: &ValueProfile,
    path: &str,
) -> ImpactAnswer {
    match key {
        "default" | "readOnly" | "writeOnly" | "contentEncoding" | "contentMediaType"
        | "contentSchema" => ImpactAnswer::Yes,
        key if TEXTS.contains(&key) || key.starts_with("x-") => ImpactAnswer::Yes,
        "type" => of_type(rule, profile, path),
        "enum" => listed(rule.as_array().map_or(&[], Vec::as_slice), profile, path),
        "const" => listed(std::slice::from_ref(rule), profile, path),
        "allOf" => ImpactAnswer::all(arms(rule).iter().map(|arm| answer(arm, profile, path))),
        "anyOf" => any_of(arms(rule), profile, path),
        "oneOf" => one_of(arms(rule), profile, path),
        "not" => match answer(rule, profile, path) {
            ImpactAnswer::Yes => fails(path, "not"),
            ImpactAnswer::No(_) => ImpactAnswer::Yes,
            ImpactAnswer::Unknown(_) => unknown(path, "not"),
        },
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            match profile {
                ValueProfile::Number { .. } | ValueProfile::Unknown => unknown(path, key),
                _ => ImpactAnswer::Yes,
            }
        }
        "minLength" | "maxLength" | "pattern" | "format" => match profile {
            ValueProfile::Text {
                length,
                patterns,
                formats,
            } => text(key, rule, *length, (patterns, formats), path),
            ValueProfile::Unknown => unknown(path, key),
            _ => ImpactAnswer::Yes,
        },
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" => match profile {
            ValueProfile::List {
                length,
                unique,
                items,
            } => list(schema, key, rule, (*length, *unique, items), path),
            ValueProfile::Unknown => unknown(path, key),
            _ => ImpactAnswer::Yes,
        },
        "properties" | "additionalProperties" | "required" | "minProperties" | "maxProperties" => {
            match profile {
                ValueProfile::Object { members, further } => {
                    object(schema, key, rule, (members, *further), path)
                }
                ValueProfile::Unknown => unknown(path, key),
                _ => ImpactAnswer::Yes,
            }
        }
        key => unknown(path, key),
    }
}

fn arms(rule: &Value) -> &[Value] {
    rule.as_array().map_or(&[], Vec::as_slice)
}

fn any_of(arms: &[Value], profile: &ValueProfile, path: &str) -> ImpactAnswer {
    let answers: Vec<ImpactAnswer> = arms.iter().map(|arm| answer(arm, profile, path)).collect();
    match (
        answers.iter().any(ImpactAnswer::is_yes),
        answers.iter().all(ImpactAnswer::is_no),
    ) {
        (true, _) => ImpactAnswer::Yes,
        (false, true) => fails(path, "anyOf"),
        (false, false) => unknown(path, "anyOf"),
    }
}

fn one_of(arms: &[Value], profile: &ValueProfile, path: &str) -> ImpactAnswer {
    let answers: Vec<ImpactAnswer> = arms.iter().map(|arm| answer(arm, profile, path)).collect();
    let met = answers.iter().filter(|answer| answer.is_yes()).count();
    let open = answers
        .iter()
        .filter(|answer| !answer.is_yes() && !answer.is_no())
        .count();
    match (met, open) {
        (1, 0) => ImpactAnswer::Yes,
        (0, 0) | (2.., _) => fails(path, "oneOf"),
        _ => unknown(path, "oneOf"),
    }
}

fn of_type(rule: &Value, profile: &ValueProfile, path: &str) -> ImpactAnswer {
    let is = |word: &Value| {
        matches!(
            (word.as_str(), profile),
            (Some("number"), ValueProfile::Number { .. })
                | (Some("integer"), ValueProfile::Number { whole: true })
                | (Some("string"), ValueProfile::Text { .. })
                | (Some("array"), ValueProfile::List { .. })
                | (Some("object"), ValueProfile::Object { .. })
        )
    };
    let holds = match rule {
        Value::Array(words) => words.iter().any(is),
        word => is(word),
    };
    match profile {
        ValueProfile::Unknown => unknown(path, "type"),
        _ => decided(holds, path, "type"),
    }
}

/// Judges a value against a list. A value that was not kept is refused if no listed one could be it.
fn listed(values: &[Value], profile: &ValueProfile, path: &str) -> ImpactAnswer {
    let may_be = |value: &Value| match (value, profile) {
        (Value::String(text), ValueProfile::Text { length, .. }) => {
            text.chars().count() as u64 == *length
        }
        (Value::Number(_), ValueProfile::Number { .. })
        | (Value::Object(_), ValueProfile::Object { .. }) => true,
        (Value::Array(items), ValueProfile::List { length, .. }) => items.len() as u64 == *length,
        (_, ValueProfile::Unknown) => true,
        _ => false,
    };
    match values.iter().any(may_be) {
        true => unknown(path, "enum"),
        false => fails(path, "enum"),
    }
}

fn within(key: &str, rule: &Value, found: u64, path: &str) -> ImpactAnswer {
    match (count(rule), key.starts_with("min")) {
        (Some(least), true) => decided(found >= least, path, key),
        (Some(most), false) => decided(found <= most, path, key),
        (None, _) => unknown(path, key),
    }
}

fn text(
    key: &str,
    rule: &Value,
    length: u64,
    met: (&[String], &[String]),
    path: &str,
) -> ImpactAnswer {
    let met = match key {
        "pattern" => met.0,
        "format" => met.1,
        _ => return within(key, rule, length, path),
    };
    match met.iter().any(|met| rule == met) {
        true => ImpactAnswer::Yes,
        false => unknown(path, key),
    }
}

fn list(
    schema: &Value,
    key: &str,
    rule: &Value,
    found: (u64, bool, &[ValueProfile]),
    path: &str,
) -> ImpactAnswer {
    let (length, unique, items) = found;
    let inside = |index: usize| format!("{path}/{index}");
    let prefix = schema
        .get("prefixItems")
        .map_or(0, |prefix| arms(prefix).len());
    match key {
        "minItems" | "maxItems" => within(key, rule, length, path),
        "uniqueItems" if rule == &Value::Bool(true) && !unique => {
            match items.len() as u64 == length {
                // Equal numbers may have different texts, so only values that were found equal are equal.
                true => unknown_or_repeated(items, path),
                false => unknown(path, key),
            }
        }
        "uniqueItems" => ImpactAnswer::Yes,
        "prefixItems" => {
            let pairs = arms(rule).iter().zip(items).enumerate();
            ImpactAnswer::all(
                pairs.map(|(index, (schema, item))| answer(schema, item, &inside(index))),
            )
        }
        _ if rule.as_object().is_some_and(serde_json::Map::is_empty) => ImpactAnswer::Yes,
        _ => {
            let kept = items.iter().enumerate().skip(prefix);
            let kept = kept.map(|(index, item)| answer(rule, item, &inside(index)));
            let rest = (items.len() as u64 != length).then(|| unknown(path, key));
            ImpactAnswer::all(kept.chain(rest))
        }
    }
}

/// Returns no if two items that were kept are equal, and unknown otherwise, since others may only look alike.
fn unknown_or_repeated(items: &[ValueProfile], path: &str) -> ImpactAnswer {
    let repeated = items.iter().enumerate().any(|(index, item)| {
        matches!(item, ValueProfile::Value(_)) && items[..index].contains(item)
    });
    match repeated {
        true => fails(path, "uniqueItems"),
        false => unknown(path, "uniqueItems"),
    }
}

fn object(
    schema: &Value,
    key: &str,
    rule: &Value,
    (members, further): (&BTreeMap<String, ValueProfile>, u64),
    path: &str,
) -> ImpactAnswer {
    let inside = |name: &str| {
        let mut path = path.to_owned();
        push_pointer(&mut path, name);
        path
    };
    match key {
        "minProperties" | "maxProperties" => {
            within(key, rule, members.len() as u64 + further, path)
        }
        "required" => {
            let names = arms(rule)
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| !members.contains_key(*name));
            ImpactAnswer::all(names.map(|name| match further {
                0 => fails(&inside(name), "required"),
                _ => unknown(&inside(name), "required"),
            }))
        }
        "properties" => {
            let properties = rule.as_object().into_iter().flatten();
            // A further member may have any of the names.
            let hidden = (further > 0).then(|| unknown(path, key));
            let known =
                properties.filter_map(|(name, schema)| Some((name, schema, members.get(name)?)));
            ImpactAnswer::all(
                known
                    .map(|(name, schema, member)| answer(schema, member, &inside(name)))
                    .chain(hidden),
            )
        }
        _ if rule.as_object().is_some_and(serde_json::Map::is_empty) => ImpactAnswer::Yes,
        _ if schema.get("patternProperties").is_some() => unknown(path, key),
        _ => {
            let named = schema.get("properties");
            let others = members
                .iter()
                .filter(|(name, _)| named.is_none_or(|named| named.get(name.as_str()).is_none()));
            let others = others.map(|(name, member)| answer(rule, member, &inside(name)));
            let hidden = (further > 0).then(|| unknown(path, key));
            ImpactAnswer::all(others.chain(hidden))
        }
    }
}
