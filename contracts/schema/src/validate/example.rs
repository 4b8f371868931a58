//! Makes a valid value for a schema, only from the schema and never from the arguments.
//!
//! The generator is right for everything the field table makes and for most of what people write. Its callers check every
//! value, and a value that it cannot make is left out.

mod text;

use ahash::{AHashMap, AHashSet};
use parking_lot::Mutex;
use serde_json::{Map, Number, Value};

use super::{RenderedValue, ValidationAuthority, budget};
use crate::{
    json,
    reference::{parts, resolve},
    walk,
};

const DEPTH_MAX: usize = 12;
const ITEMS_MAX: u64 = 1_000;
/// The steps for making one value, and the extra steps for a number, which is searched among a thousand.
const VALUE_STEPS: u64 = 20;
const NUMBER_STEPS: u64 = 80;
/// Bytes of a copied value that take one step.
const STEP_BYTES: u64 = 8;
const COMPILE_STEPS: u64 = 50;
/// Bytes of the text of one example: a longer one helps no reader, and a refusal may hold thirty.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Bytes of the texts of all examples that are kept for one schema.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The examples of one schema's parts. They depend only on the schema and cost a compilation each, so a refusal pays
/// only for those that it is the first to need.
#[derive(Default)]
pub(super) struct SchemaExamples {
    built: Mutex<BuiltExamples>,
}

#[derive(Default)]
struct BuiltExamples {
    /// The examples, by the address of their part: the schema does not move.
    by_part: AHashMap<usize, Option<RenderedValue>>,
    bytes: usize,
}

/// A schema whose parts do not move, and their examples.
#[derive(Clone, Copy)]
pub(super) struct ExampleSource<'s> {
    pub root: &'s Value,
    pub examples: &'s SchemaExamples,
}

impl<'s> ExampleSource<'s> {
    /// Returns an example for a part of the schema; `None` if none can be made.
    pub(super) fn example(self, part: &'s Value) -> Option<RenderedValue> {
        if part.is_boolean() {
            return build(self.root, part).map(RenderedValue::from); // perhaps a constant of ours, and quickly made
        }
        let place = std::ptr::from_ref(part).addr();
        let built = || self.examples.built.lock();
        if let Some(known) = built().by_part.get(&place) {
            return known.clone();
        }
        let example = build(self.root, part).map(RenderedValue::from);
        let example = example.filter(|example| example.text().len() <= TEXT_BYTES_MAX);
        let bytes = example.as_ref().map_or(0, |example| example.text().len());
        let mut built = built();
        // A value that was not made for lack of steps may be made in another call.
        if !budget::is_spent() && built.bytes + bytes <= KEPT_BYTES_MAX {
            built.bytes += bytes;
            built.by_part.insert(place, example.clone());
        }
        example
    }
}

/// Builds one example; `None` if none can be made.
pub(super) fn build(root: &Value, schema: &Value) -> Option<Value> {
    let example = ExampleBuilder { root }.value(schema, 0, 0)?;
    satisfies(root, schema, &example).then_some(example)
}

/// Returns `true` if a value is valid under a part of a schema. This costs a compilation, which only refusals pay.
pub(super) fn satisfies(root: &Value, schema: &Value, value: &Value) -> bool {
    // The part may refer to the rest, so it is compiled inside it.
    let mut whole = Map::new();
    if let Value::Object(map) = root {
        for key in ["$defs", "definitions", "$id", "$anchor"] {
            if let Some(inner) = map.get(key) {
                whole.insert(key.to_owned(), inner.clone());
            }
        }
    }
    whole.insert("allOf".to_owned(), Value::Array(vec![schema.clone()]));
    if !budget::take(COMPILE_STEPS * values_in(whole.values())) {
        return false;
    }
    // What the schema costs was measured with the whole.
    match super::options_for(ValidationAuthority::Own).build(&Value::Object(whole)) {
        Ok(validator) => validator.is_valid(value),
        // The part refers to something outside its definitions: the whole arguments are checked later.
        Err(_) => true,
    }
}

fn values_in<'v>(values: impl Iterator<Item = &'v Value>) -> u64 {
    let within = |value: &'v Value| match value {
        Value::Array(items) => values_in(items.iter()),
        Value::Object(members) => values_in(members.values()),
        _ => 0,
    };
    values.map(|value| 1 + within(value)).sum()
}

struct ExampleBuilder<'s> {
    root: &'s Value,
}

/// All keywords about one value, taken together.
struct MergedKeywords<'s> {
    parts: Vec<&'s Map<String, Value>>,
}

impl<'s> MergedKeywords<'s> {
    fn get(&self, key: &str) -> Option<&'s Value> {
        self.parts.iter().find_map(|part| part.get(key))
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &'s Value> {
        self.parts.iter().filter_map(move |part| part.get(key))
    }

    fn most(&self, key: &str) -> Option<f64> {
        self.all(key).filter_map(Value::as_f64).reduce(f64::max)
    }

    fn least(&self, key: &str) -> Option<f64> {
        self.all(key).filter_map(Value::as_f64).reduce(f64::min)
    }
}

impl<'s> ExampleBuilder<'s> {
    /// Makes a value. `nth` asks for different values of the same schema, for lists without repetition.
    fn value(&self, schema: &'s Value, nth: usize, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX || !budget::take(VALUE_STEPS) {
            return None;
        }
        let schema = match schema {
            Value::Bool(true) => return Some(any(nth)),
            Value::Bool(false) => return None,
            other => other,
        };
        let merged = MergedKeywords {
            parts: parts(self.root, schema),
        };
        if let Some(value) = merged.get("const") {
            return copied(value).filter(|_| nth == 0);
        }
        if let Some(Value::Array(values)) = merged.get("enum") {
            // The first list is this one.
            let allowed = |value: &&Value| {
                merged.all("enum").skip(1).all(|other| {
                    other
                        .as_array()
                        .is_some_and(|all| budget::take(all.len() as u64) && all.contains(value))
                })
            };
            let all = |is_null: bool| {
                values
                    .iter()
                    .filter(move |value| value.is_null() == is_null)
            };
            let mut named = all(false).chain(all(true)).filter(allowed);
            return named.nth(nth).and_then(copied);
        }
        let given = merged
            .get("default")
            .into_iter()
            .chain(walk::elements(merged.get("examples")).iter());
        if nth == 0
            && let Some(value) = given
                .into_iter()
                .find(|value| !value.is_null() && satisfies(self.root, schema, value))
        {
            return copied(value);
        }
        for key in ["anyOf", "oneOf"] {
            let branches = walk::elements(merged.get(key)).iter();
            let made = branches
                .filter_map(|branch| self.alternative(schema, branch, nth, depth))
                .find(|value| satisfies(self.root, schema, value));
            if made.is_some() || merged.get(key).is_some() {
                return made;
            }
        }
        let made = self.of_type(self.type_of(&merged), &merged, nth, depth);
        let Some(Value::Array(words)) = merged.get("type") else {
            return made;
        };
        if made
            .as_ref()
            .is_some_and(|made| words.len() < 2 || satisfies(self.root, schema, made))
        {
            return made;
        }
        let others = words.iter().filter_map(Value::as_str);
        others
            .filter_map(|word| self.of_type(word, &merged, nth, depth))
            .find(|made| satisfies(self.root, schema, made))
    }

    /// Makes a value of one alternative together with the keywords next to it.
    fn alternative(
        &self,
        schema: &'s Value,
        branch: &'s Value,
        nth: usize,
        depth: usize,
    ) -> Option<Value> {
        let mut merged = MergedKeywords {
            parts: parts(self.root, branch),
        };
        merged.parts.extend(parts(self.root, schema));
        let enumerated = merged.get("const").is_some() || merged.get("enum").is_some();
        let nested = resolve(self.root, branch)
            .is_some_and(|branch| branch.get("anyOf").is_some() || branch.get("oneOf").is_some());
        match enumerated || nested {
            true => self.value(branch, nth, depth + 1),
            false => self.of_type(self.type_of(&merged), &merged, nth, depth),
        }
    }

    fn type_of(&self, merged: &MergedKeywords<'s>) -> &'s str {
        let first = |value: &'s Value| match value {
            Value::String(word) => Some(word.as_str()),
            Value::Array(words) => words
                .iter()
                .filter_map(Value::as_str)
                .find(|word| *word != "null")
                .or(Some("null")),
            _ => None,
        };
        let stated: Vec<&str> = merged.all("type").filter_map(first).collect();
        if let Some(word) = stated
            .iter()
            .find(|word| **word == "integer")
            .or(stated.first())
        {
            return word;
        }
        let hints = [
            (
                "object",
                [
                    "properties",
                    "required",
                    "minProperties",
                    "additionalProperties",
                ]
                .as_slice(),
            ),
            (
                "array",
                &[
                    "items",
                    "prefixItems",
                    "minItems",
                    "uniqueItems",
                    "contains",
                ],
            ),
            (
                "number",
                &[
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                ],
            ),
        ];
        let hinted = hints
            .iter()
            .find(|(_, keys)| keys.iter().any(|key| merged.get(key).is_some()));
        hinted.map_or("string", |(word, _)| word)
    }

    fn of_type(
        &self,
        word: &str,
        merged: &MergedKeywords<'s>,
        nth: usize,
        depth: usize,
    ) -> Option<Value> {
        match word {
            "null" => (nth == 0).then_some(Value::Null),
            "boolean" => [true, false].get(nth).map(|&flag| flag.into()),
            "integer" | "number" => match budget::take(NUMBER_STEPS + nth as u64 / 10) {
                true => number(merged, word == "integer", nth),
                false => None,
            },
            "array" => self.list(merged, nth, depth),
            "object" => self.object(merged, nth, depth),
            _ => {
                let patterns: Vec<&str> = merged.all("pattern").filter_map(Value::as_str).collect();
                let length = |bound: Option<f64>| bound.map(|bound| bound as usize);
                text::build(
                    merged.get("format").and_then(Value::as_str),
                    &patterns,
                    length(merged.most("minLength")).unwrap_or(0),
                    length(merged.least("maxLength")).unwrap_or(usize::MAX),
                    nth,
                )
                .map(Value::String)
            }
        }
    }

    fn list(&self, merged: &MergedKeywords<'s>, nth: usize, depth: usize) -> Option<Value> {
        let prefix: Vec<&Value> = walk::elements(merged.get("prefixItems")).iter().collect();
        let least = merged.most("minItems").unwrap_or(0.0) as u64;
        let contains = merged.get("contains");
        let least = least.max(u64::from(contains.is_some())).max(nth as u64);
        let most = merged
            .least("maxItems")
            .map_or(ITEMS_MAX, |most| most as u64);
        // One item shows more than none.
        let count = least.max(1).min(most);
        if count > ITEMS_MAX {
            return None;
        }
        let unique = merged
            .all("uniqueItems")
            .any(|flag| flag == &Value::Bool(true));
        let mut items = Vec::new();
        for index in 0..count as usize {
            let made = match (prefix.get(index), contains, merged.get("items")) {
                (Some(schema), _, _) => self.value(schema, 0, depth + 1),
                (None, Some(schema), _) if index == prefix.len() => {
                    self.value(schema, 0, depth + 1)
                }
                (None, _, Some(schema)) => {
                    self.value(schema, if unique { index } else { 0 }, depth + 1)
                }
                (None, _, None) => budget::take(VALUE_STEPS).then(|| any(index)),
            };
            match made {
                Some(item) => items.push(item),
                None if (index as u64) < least => return None,
                None => break,
            }
        }
        Some(Value::Array(items))
    }

    fn object(&self, merged: &MergedKeywords<'s>, nth: usize, depth: usize) -> Option<Value> {
        let property = |name: &str| {
            merged
                .all("properties")
                .find_map(|properties| properties.get(name))
        };
        let mut made = Map::new();
        let names: Vec<&str> = merged
            .all("required")
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !budget::take(VALUE_STEPS * names.len() as u64) {
            return None;
        }
        let is_required: AHashSet<&str> = names.iter().copied().collect();
        // The schema's own order first, so that an example reads like the form.
        let mut ordered: Vec<&str> = merged
            .all("properties")
            .filter_map(Value::as_object)
            .flat_map(|properties| properties.keys().map(String::as_str))
            .filter(|name| is_required.contains(name))
            .collect();
        ordered.extend(names.iter().filter(|name| property(name).is_none()));
        for name in ordered {
            let schema = property(name).or_else(|| merged.get("additionalProperties"));
            let value = match schema {
                Some(schema) => self.value(schema, nth, depth + 1)?,
                None => any(nth),
            };
            made.insert(name.to_owned(), value);
        }
        let least = merged.most("minProperties").unwrap_or(0.0) as usize;
        let optional = merged
            .all("properties")
            .filter_map(Value::as_object)
            .flatten();
        for (name, schema) in optional {
            if made.len() >= least {
                break;
            }
            if !made.contains_key(name)
                && let Some(value) = self.value(schema, nth, depth + 1)
            {
                made.insert(name.clone(), value);
            }
        }
        let mut spare = 0;
        while made.len() < least
            && spare < 100
            && merged.get("additionalProperties") != Some(&Value::Bool(false))
        {
            spare += 1;
            made.insert(format!("example{spare}"), any(0));
        }
        (made.len() >= least).then_some(Value::Object(made))
    }
}

fn number(merged: &MergedKeywords<'_>, whole: bool, nth: usize) -> Option<Value> {
    let step = merged
        .get("multipleOf")
        .and_then(Value::as_f64)
        .filter(|step| *step > 0.0);
    let unit = step.unwrap_or(1.0);
    let least = merged.most("minimum");
    let most = merged.least("maximum");
    let above = merged.most("exclusiveMinimum");
    let below = merged.least("exclusiveMaximum");
    let fits = |value: f64| {
        least.is_none_or(|bound| value >= bound)
            && most.is_none_or(|bound| value <= bound)
            && above.is_none_or(|bound| value > bound)
            && below.is_none_or(|bound| value < bound)
            && (!whole || value.fract() == 0.0)
    };
    let low = least.into_iter().chain(above).reduce(f64::max);
    let high = most.into_iter().chain(below).reduce(f64::min);
    let mut candidates: Vec<f64> = Vec::new();
    // Multiples first, upwards from the lower bound or downwards from the upper one.
    let from = |start: f64, direction: f64| {
        let first = if direction > 0.0 {
            (start / unit).ceil()
        } else {
            (start / unit).floor()
        };
        (0..1_000 + nth).map(move |index| (first + direction * index as f64) * unit)
    };
    match (low, high) {
        (Some(low), _) => candidates.extend(from(low, 1.0)),
        (None, Some(high)) => candidates.extend(from(high.min(unit), -1.0)),
        (None, None) => candidates.extend(from(unit, 1.0)),
    }
    if step.is_none() && !whole {
        if let (Some(low), Some(high)) = (low, high) {
            candidates.extend([low, high, low + (high - low) / 2.0]);
            candidates.extend(
                (1..=nth + 1).map(|index| low + (high - low) * index as f64 / (nth + 2) as f64),
            );
        }
        candidates.extend(low.into_iter().chain(high));
    }
    let value = candidates
        .into_iter()
        .filter(|value| fits(*value))
        .nth(nth)?;
    match json::canonical(tidy(value)) {
        Some(number) if !whole || number.is_i64() || number.is_u64() => Some(Value::Number(number)),
        _ => Number::from_f64(value).map(Value::Number),
    }
}

/// Rounds 3 × 0.1 to 0.3.
fn tidy(value: f64) -> f64 {
    let short: f64 = format!("{value:.12}").parse().unwrap_or(value);
    if (short - value).abs() <= value.abs() * 1e-14 {
        short
    } else {
        value
    }
}

/// Copies a value of the schema.
fn copied(value: &Value) -> Option<Value> {
    budget::take(bytes_in(value) / STEP_BYTES).then(|| value.clone())
}

fn bytes_in(value: &Value) -> u64 {
    let within = |text: &str| text.len() as u64;
    let inside = match value {
        Value::String(text) => within(text),
        Value::Array(items) => items.iter().map(bytes_in).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| within(name) + bytes_in(member))
            .sum(),
        _ => 0,
    };
    STEP_BYTES + inside
}

/// Returns a value for a schema that takes anything.
fn any(nth: usize) -> Value {
    if nth == 0 {
        "example".into()
    } else {
        format!("example{}", nth + 1).into()
    }
}
