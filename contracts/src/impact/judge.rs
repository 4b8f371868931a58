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

use super::{Profile, Verdict};

/// Decides whether the call behind the profile would be valid under `schema`. Reasons name places and rules, never
/// values.
pub fn judge(schema: &Value, profile: &Profile) -> Verdict {
    let schema = match normal::normal(schema) {
        Ok(schema) => schema,
        Err(message) => return Verdict::CannotTell { why: message },
    };
    match answer(&schema, profile, "") {
        Answer::Yes => Verdict::Passes,
        Answer::No(why) => Verdict::Fails { why },
        Answer::Unknown(why) => Verdict::CannotTell { why },
    }
}

enum Answer {
    Yes,
    No(String),
    Unknown(String),
}

impl Answer {
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

fn fails(path: &str, key: &str) -> Answer {
    Answer::No(format!("{key} at {}", at(path)))
}

fn unknown(path: &str, key: &str) -> Answer {
    Answer::Unknown(format!(
        "{key} at {} is not told by what was kept",
        at(path)
    ))
}

fn decided(holds: bool, path: &str, key: &str) -> Answer {
    if holds { Answer::Yes } else { fails(path, key) }
}

fn answer(schema: &Value, profile: &Profile, path: &str) -> Answer {
    let Some(keywords) = schema.as_object() else {
        return unknown(path, "the schema");
    };
    if let Profile::Value(value) = profile {
        return of_value(schema, value, path);
    }
    Answer::all(
        keywords
            .iter()
            .map(|(key, rule)| keyword(schema, key, rule, profile, path)),
    )
}

/// Judges a value that was kept as it was.
fn of_value(schema: &Value, value: &Value, path: &str) -> Answer {
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

fn keyword(schema: &Value, key: &str, rule: &Value, profile: &Profile, path: &str) -> Answer {
    match key {
        "default" | "readOnly" | "writeOnly" | "contentEncoding" | "contentMediaType"
        | "contentSchema" => Answer::Yes,
        key if TEXTS.contains(&key) || key.starts_with("x-") => Answer::Yes,
        "type" => of_type(rule, profile, path),
        "enum" => listed(rule.as_array().map_or(&[], Vec::as_slice), profile, path),
        "const" => listed(std::slice::from_ref(rule), profile, path),
        "allOf" => Answer::all(arms(rule).iter().map(|arm| answer(arm, profile, path))),
        "anyOf" => any_of(arms(rule), profile, path),
        "oneOf" => one_of(arms(rule), profile, path),
        "not" => match answer(rule, profile, path) {
            Answer::Yes => fails(path, "not"),
            Answer::No(_) => Answer::Yes,
            Answer::Unknown(_) => unknown(path, "not"),
        },
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            match profile {
                Profile::Number { .. } | Profile::Unknown => unknown(path, key),
                _ => Answer::Yes,
            }
        }
        "minLength" | "maxLength" | "pattern" | "format" => match profile {
            Profile::Text {
                length,
                patterns,
                formats,
            } => text(key, rule, *length, (patterns, formats), path),
            Profile::Unknown => unknown(path, key),
            _ => Answer::Yes,
        },
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" => match profile {
            Profile::List {
                length,
                unique,
                items,
            } => list(schema, key, rule, (*length, *unique, items), path),
            Profile::Unknown => unknown(path, key),
            _ => Answer::Yes,
        },
        "properties" | "additionalProperties" | "required" | "minProperties" | "maxProperties" => {
            match profile {
                Profile::Object { members, further } => {
                    object(schema, key, rule, (members, *further), path)
                }
                Profile::Unknown => unknown(path, key),
                _ => Answer::Yes,
            }
        }
        key => unknown(path, key),
    }
}

fn arms(rule: &Value) -> &[Value] {
    rule.as_array().map_or(&[], Vec::as_slice)
}

fn any_of(arms: &[Value], profile: &Profile, path: &str) -> Answer {
    let answers: Vec<Answer> = arms.iter().map(|arm| answer(arm, profile, path)).collect();
    match (
        answers.iter().any(Answer::is_yes),
        answers.iter().all(Answer::is_no),
    ) {
        (true, _) => Answer::Yes,
        (false, true) => fails(path, "anyOf"),
        (false, false) => unknown(path, "anyOf"),
    }
}

fn one_of(arms: &[Value], profile: &Profile, path: &str) -> Answer {
    let answers: Vec<Answer> = arms.iter().map(|arm| answer(arm, profile, path)).collect();
    let met = answers.iter().filter(|answer| answer.is_yes()).count();
    let open = answers
        .iter()
        .filter(|answer| !answer.is_yes() && !answer.is_no())
        .count();
    match (met, open) {
        (1, 0) => Answer::Yes,
        (0, 0) | (2.., _) => fails(path, "oneOf"),
        _ => unknown(path, "oneOf"),
    }
}

fn of_type(rule: &Value, profile: &Profile, path: &str) -> Answer {
    let is = |word: &Value| {
        matches!(
            (word.as_str(), profile),
            (Some("number"), Profile::Number { .. })
                | (Some("integer"), Profile::Number { whole: true })
                | (Some("string"), Profile::Text { .. })
                | (Some("array"), Profile::List { .. })
                | (Some("object"), Profile::Object { .. })
        )
    };
    let holds = match rule {
        Value::Array(words) => words.iter().any(is),
        word => is(word),
    };
    match profile {
        Profile::Unknown => unknown(path, "type"),
        _ => decided(holds, path, "type"),
    }
}

/// Judges a value against a list. A value that was not kept is refused if no listed one could be it.
fn listed(values: &[Value], profile: &Profile, path: &str) -> Answer {
    let may_be = |value: &Value| match (value, profile) {
        (Value::String(text), Profile::Text { length, .. }) => {
            text.chars().count() as u64 == *length
        }
        (Value::Number(_), Profile::Number { .. }) | (Value::Object(_), Profile::Object { .. }) => {
            true
        }
        (Value::Array(items), Profile::List { length, .. }) => items.len() as u64 == *length,
        (_, Profile::Unknown) => true,
        _ => false,
    };
    match values.iter().any(may_be) {
        true => unknown(path, "enum"),
        false => fails(path, "enum"),
    }
}

fn within(key: &str, rule: &Value, found: u64, path: &str) -> Answer {
    match (count(rule), key.starts_with("min")) {
        (Some(least), true) => decided(found >= least, path, key),
        (Some(most), false) => decided(found <= most, path, key),
        (None, _) => unknown(path, key),
    }
}

fn text(key: &str, rule: &Value, length: u64, met: (&[String], &[String]), path: &str) -> Answer {
    let met = match key {
        "pattern" => met.0,
        "format" => met.1,
        _ => return within(key, rule, length, path),
    };
    match met.iter().any(|met| rule == met) {
        true => Answer::Yes,
        false => unknown(path, key),
    }
}

fn list(
    schema: &Value,
    key: &str,
    rule: &Value,
    found: (u64, bool, &[Profile]),
    path: &str,
) -> Answer {
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
        "uniqueItems" => Answer::Yes,
        "prefixItems" => {
            let pairs = arms(rule).iter().zip(items).enumerate();
            Answer::all(pairs.map(|(index, (schema, item))| answer(schema, item, &inside(index))))
        }
        _ if rule.as_object().is_some_and(serde_json::Map::is_empty) => Answer::Yes,
        _ => {
            let kept = items.iter().enumerate().skip(prefix);
            let kept = kept.map(|(index, item)| answer(rule, item, &inside(index)));
            let rest = (items.len() as u64 != length).then(|| unknown(path, key));
            Answer::all(kept.chain(rest))
        }
    }
}

/// Returns no if two items that were kept are equal, and unknown otherwise, since others may only look alike.
fn unknown_or_repeated(items: &[Profile], path: &str) -> Answer {
    let repeated = items
        .iter()
        .enumerate()
        .any(|(index, item)| matches!(item, Profile::Value(_)) && items[..index].contains(item));
    match repeated {
        true => fails(path, "uniqueItems"),
        false => unknown(path, "uniqueItems"),
    }
}

fn object(
    schema: &Value,
    key: &str,
    rule: &Value,
    (members, further): (&BTreeMap<String, Profile>, u64),
    path: &str,
) -> Answer {
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
            Answer::all(names.map(|name| match further {
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
            Answer::all(
                known
                    .map(|(name, schema, member)| answer(schema, member, &inside(name)))
                    .chain(hidden),
            )
        }
        _ if rule.as_object().is_some_and(serde_json::Map::is_empty) => Answer::Yes,
        _ if schema.get("patternProperties").is_some() => unknown(path, key),
        _ => {
            let named = schema.get("properties");
            let others = members
                .iter()
                .filter(|(name, _)| named.is_none_or(|named| named.get(name.as_str()).is_none()));
            let others = others.map(|(name, member)| answer(rule, member, &inside(name)));
            let hidden = (further > 0).then(|| unknown(path, key));
            Answer::all(others.chain(hidden))
        }
    }
}
