//! A value that shows what a change breaks: valid before and not after, or, for a result, after and not before.
//!
//! A witness is guessed from the two schemas at the place that changed, and put into whole arguments or a whole result. It is
//! reported only if the validator agrees on both sides.

use std::borrow::Cow;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::{
    PathStep, SchemaChange, SchemaFrame, normal,
    number::{ExactNumber, count},
    rule::{SchemaRule, SchemaSide},
};
use crate::{json::pointer_tokens, keyword::SHARED, validate, walk};

/// Texts and lists are made up to this length.
const LENGTH_MAX: u64 = 2_000;
/// Values tried at one place.
const TRIES_MAX: usize = 400;
/// Values inside those made from one object or from repeated items: of a wide object only some members are tried.
const VALUES_MAX: usize = 200_000;
/// Values of definitions that are put beside each part that refers to them.
const DEFINITION_VALUES_MAX: usize = 2_000;

/// Both whole schemas, compiled.
pub struct WitnessProver {
    side: SchemaSide,
    source: Validator,
    target: Validator,
    /// The definitions of both, for parts that refer to them.
    definitions: (Map<String, Value>, Map<String, Value>),
}

impl WitnessProver {
    /// Compiles the schemas. Returns `None` if one cannot be compiled: then nothing can be shown.
    pub fn new(old: &Value, new: &Value, side: SchemaSide) -> Option<Self> {
        let (source, target) = of_side(side, (old, new));
        Some(Self {
            side,
            source: validate::validator(source).ok()?,
            target: validate::validator(target).ok()?,
            definitions: (definitions(source), definitions(target)),
        })
    }

    /// Returns whole arguments, or a whole result, that the finding breaks. `None` means that no such value was found.
    pub fn prove(&self, finding: &SchemaChange<'_>) -> Option<Value> {
        let (source, target) = of_side(self.side, finding.pair);
        let source = &*with_definitions(source, &self.definitions.0);
        let target = &*with_definitions(target, &self.definitions.1);
        let blame = blame(finding, target, self.side);
        let valid = validate::validator(source).ok()?;
        let blamed = validate::validator(blame.as_ref().unwrap_or(target)).ok()?;
        let around: Vec<(PathStep<'_>, Value)> = finding
            .frames
            .iter()
            .map(|frame| self.surroundings(frame))
            .collect();
        let renamed = (finding.rule == SchemaRule::ValueRenamed)
            .then(|| of_side(self.side, (&finding.old, &finding.new)).0.clone());
        let candidates = renamed.into_iter().chain(candidates(source, target));
        candidates
            .take(TRIES_MAX)
            .filter(|value| valid.is_valid(value) && !blamed.is_valid(value))
            .filter_map(|value| {
                around
                    .iter()
                    .rev()
                    .try_fold(value, |value, (step, around)| {
                        put(*step, around.clone(), value)
                    })
            })
            .find(|whole| self.source.is_valid(whole) && !self.target.is_valid(whole))
    }

    /// Makes an example of the value that contains the place.
    fn surroundings<'s>(&self, frame: &SchemaFrame<'s>) -> (PathStep<'s>, Value) {
        let (source, _) = of_side(self.side, (frame.old, frame.new));
        let source = &*with_definitions(source, &self.definitions.0);
        let around = match frame.step {
            PathStep::Same => Value::Null,
            PathStep::Property(_) | PathStep::Further | PathStep::Name => example(source)
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({})),
            PathStep::Item(_) => example(source)
                .filter(Value::is_array)
                .unwrap_or_else(|| json!([])),
        };
        (frame.step, around)
    }
}

/// Returns the definitions of a schema, if they are not too many.
fn definitions(schema: &Value) -> Map<String, Value> {
    let members = schema.as_object().into_iter().flatten();
    let shared = members.filter(|(name, _)| SHARED.contains(&name.as_str()));
    let shared: Map<String, Value> = shared
        .map(|(name, schemas)| (name.clone(), schemas.clone()))
        .collect();
    match weight_of(&shared) <= DEFINITION_VALUES_MAX {
        true => shared,
        false => Map::new(),
    }
}

/// Returns a part of a schema with these beside it, if a recursion of the part leads to them.
fn with_definitions<'v>(part: &'v Value, definitions: &Map<String, Value>) -> Cow<'v, Value> {
    match part {
        Value::Object(members) if !definitions.is_empty() && normal::has_reference(part) => {
            let mut members = members.clone();
            members.extend(definitions.clone());
            Cow::Owned(Value::Object(members))
        }
        _ => Cow::Borrowed(part),
    }
}

/// Orders the schemas of one side: an input must still accept what it accepted, an output must give no more than it gave.
fn of_side<T>(side: SchemaSide, (old, new): (T, T)) -> (T, T) {
    match side {
        SchemaSide::Input => (old, new),
        SchemaSide::Output => (new, old),
    }
}

/// Returns the part of the schema that must refuse the witness, so that it shows this change and not another one next
/// to it.
fn blame(finding: &SchemaChange<'_>, target: &Value, side: SchemaSide) -> Option<Value> {
    let key = pointer_tokens(&finding.path).pop()?.into_owned();
    Some(match finding.rule {
        SchemaRule::Tightened
        | SchemaRule::Relaxed
        | SchemaRule::PatternAdded
        | SchemaRule::PatternRemoved
        | SchemaRule::PatternChanged
        | SchemaRule::FormatAdded
        | SchemaRule::FormatRemoved
        | SchemaRule::FormatChanged
        | SchemaRule::StepChanged
        | SchemaRule::TypeNarrowed
        | SchemaRule::TypeWidened => {
            let value = target.get(&key)?;
            json!({ key: value })
        }
        SchemaRule::RequiredAddedOpen | SchemaRule::BecameRequired | SchemaRule::BecameOptional => {
            json!({ "required": [key] })
        }
        SchemaRule::PropertyRemoved | SchemaRule::PropertyAdded
            if target.get("additionalProperties").is_some() =>
        {
            json!({ "properties": { key: false } })
        }
        SchemaRule::PropertyRenamed if target.get("additionalProperties").is_some() => {
            let name = of_side(side, (&finding.old, &finding.new)).0.as_str()?;
            json!({ "properties": { name: false } })
        }
        _ => return None,
    })
}

fn example(schema: &Value) -> Option<Value> {
    validate::example(schema)
}

/// Makes an example of a schema with further keywords.
fn example_with(schema: &Value, keywords: &[(&str, Value)]) -> Option<Value> {
    let mut map = schema.as_object()?.clone();
    map.extend(
        keywords
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone())),
    );
    map.shift_remove("default");
    map.shift_remove("examples");
    example(&Value::Object(map))
}

fn put(step: PathStep<'_>, around: Value, value: Value) -> Option<Value> {
    match (step, around) {
        (PathStep::Same, _) => Some(value),
        (PathStep::Property(name), Value::Object(mut map)) => {
            map.insert(name.to_owned(), value);
            Some(Value::Object(map))
        }
        (PathStep::Further, Value::Object(mut map)) => {
            map.insert(fresh(&map), value);
            Some(Value::Object(map))
        }
        (PathStep::Name, Value::Object(mut map)) => {
            map.insert(value.as_str()?.to_owned(), Value::Null);
            Some(Value::Object(map))
        }
        (PathStep::Item(index), Value::Array(mut items)) => {
            match items.get_mut(index) {
                Some(item) => *item = value,
                None => items.push(value),
            }
            Some(Value::Array(items))
        }
        _ => None,
    }
}

fn fresh(map: &Map<String, Value>) -> String {
    (1..)
        .map(|index| format!("another{index}"))
        .find(|name| !map.contains_key(name))
        .expect("some name is free")
}

/// Returns values near every limit that either schema sets.
fn candidates(source: &Value, target: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    for schema in [source, target] {
        values.extend(walk::elements(schema.get("enum")).iter().cloned());
        values.extend(schema.get("const").cloned());
        values.extend(example(schema));
        for key in ["anyOf", "oneOf"] {
            for arm in walk::elements(schema.get(key)) {
                values.extend(arm.get("const").cloned());
                values.extend(example(arm));
            }
        }
    }
    for word in [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ] {
        if [source, target].iter().any(|schema| allows(schema, word)) {
            values.extend(example_with(source, &[("type", word.into())]));
        }
    }
    values.extend(plain());
    numbers(source, target, &mut values);
    texts(source, target, &mut values);
    lists(source, target, &mut values);
    objects(source, target, &mut values);
    // A null that a schema refuses may still count as absent: another value shows more.
    values.sort_by_key(Value::is_null);
    values
}

fn allows(schema: &Value, word: &str) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(words)) => words.iter().any(|known| known == word),
        Some(known) => known == word,
    }
}

fn plain() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(0.5),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("A1"),
        json!(" "),
        json!("-"),
        json!("0"),
        json!("\n"),
        json!([]),
        json!({}),
    ]
}

fn numbers(source: &Value, target: &Value, values: &mut Vec<Value>) {
    let both = |key: &'static str| {
        [source, target]
            .into_iter()
            .filter_map(move |schema| schema.get(key))
    };
    let steps: Vec<f64> = both("multipleOf")
        .filter_map(Value::as_f64)
        .filter(|step| *step > 0.0)
        .collect();
    let mut found = Vec::new();
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        for bound in both(key) {
            values.push(bound.clone());
            if let Some(ExactNumber::Whole(whole)) = ExactNumber::from_value(bound) {
                values.extend(
                    [whole - 1, whole + 1]
                        .into_iter()
                        .filter_map(|near| i64::try_from(near).ok())
                        .map(Value::from),
                );
            }
            let Some(bound) = bound.as_f64() else {
                continue;
            };
            found.push(bound);
            values.extend(
                [
                    bound - 0.5,
                    bound + 0.5,
                    bound.floor(),
                    bound.ceil(),
                    bound - 0.001,
                    bound + 0.001,
                ]
                .map(number),
            );
        }
    }
    // The ends of a range may be far from it, but not the values between them.
    for (index, one) in found.iter().enumerate() {
        values.extend(found[..index].iter().flat_map(|two| {
            let middle = (one + two) / 2.0;
            [
                number(middle),
                number(middle.floor()),
                number(middle.ceil()),
            ]
        }));
    }
    for step in steps {
        values.extend((1..=12).map(|times| number(step * f64::from(times))));
        for bound in &found {
            let times = (bound / step).floor();
            values.extend([-1.0, 0.0, 1.0, 2.0].map(|more| number((times + more) * step)));
        }
    }
}

/// Rounds to twelve digits, so that 3 × 0.1 is 0.3.
fn number(value: f64) -> Value {
    let short: f64 = format!("{value:.12}").parse().unwrap_or(value);
    crate::json::canonical(short).map_or(Value::Null, Value::Number)
}

fn texts(source: &Value, target: &Value, values: &mut Vec<Value>) {
    for length in lengths(source, target, ["minLength", "maxLength"]) {
        values.extend(example_with(
            source,
            &[
                ("type", "string".into()),
                ("minLength", length.into()),
                ("maxLength", length.into()),
            ],
        ));
        values.push(
            "a".repeat(usize::try_from(length).unwrap_or_default())
                .into(),
        );
    }
}

fn lists(source: &Value, target: &Value, values: &mut Vec<Value>) {
    let item = source
        .get("items")
        .and_then(example)
        .unwrap_or_else(|| "a".into());
    values.extend([json!([item]), json!([item, item])]);
    for length in lengths(source, target, ["minItems", "maxItems"]) {
        values.extend(example_with(
            source,
            &[
                ("type", "array".into()),
                ("minItems", length.into()),
                ("maxItems", length.into()),
            ],
        ));
        let times = usize::try_from(length.min(200)).unwrap_or_default();
        if weight(&item).saturating_mul(times) <= VALUES_MAX / 8 {
            values.push(Value::Array(vec![item.clone(); times]));
        }
    }
}

/// Returns the number of values in a value, itself included.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => weight_of(members),
        _ => 1,
    }
}

fn weight_of(members: &Map<String, Value>) -> usize {
    1 + members.values().map(weight).sum::<usize>()
}

/// Returns the counts at and around every limit.
fn lengths(source: &Value, target: &Value, keys: [&str; 2]) -> Vec<u64> {
    let limits = [source, target]
        .into_iter()
        .flat_map(|schema| keys.map(|key| schema.get(key).and_then(count)));
    let mut lengths: Vec<u64> = limits
        .flatten()
        .flat_map(|limit| [limit.saturating_sub(1), limit, limit.saturating_add(1)])
        .collect();
    lengths.retain(|length| *length <= LENGTH_MAX);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

fn objects(source: &Value, target: &Value, values: &mut Vec<Value>) {
    let base = example_with(source, &[("type", "object".into())]);
    let base = base
        .as_ref()
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    for schema in [source, target] {
        names.extend(walk::members(schema.get("properties")).map(|(name, _)| name.as_str()));
        names.extend(
            walk::elements(schema.get("required"))
                .iter()
                .filter_map(Value::as_str),
        );
    }
    names.dedup();
    let described = |name: &str| {
        source
            .get("properties")
            .and_then(|properties| properties.get(name))
    };
    let further = source.get("additionalProperties");
    let member = |name: &str| {
        described(name)
            .or(further)
            .map_or(Some("a".into()), example)
    };
    let mut growing = base.clone();
    let mut left = VALUES_MAX;
    for name in names {
        let times = if described(name).is_none() { 20 } else { 3 };
        let Some(rest) = left.checked_sub(times * weight_of(&growing)) else {
            break;
        };
        left = rest;
        let mut less = base.clone();
        less.shift_remove(name);
        values.push(less.into());
        let mut more = base.clone();
        if let Some(value) = member(name) {
            more.insert(name.to_owned(), value.clone());
            values.push(more.clone().into());
            growing.insert(name.to_owned(), value);
            values.push(growing.clone().into());
        }
        // A name that had no type may have any value.
        if described(name).is_none() {
            for value in plain() {
                more.insert(name.to_owned(), value);
                values.push(more.clone().into());
            }
        }
    }
    let one_more = further.map_or(Some("a".into()), example);
    for map in [base, growing] {
        let mut map = map;
        for _ in 0..lengths(source, target, ["minProperties", "maxProperties"])
            .last()
            .copied()
            .unwrap_or(1)
            .clamp(1, 50)
        {
            let Some(value) = one_more.clone() else { break };
            map.insert(fresh(&map), value);
            let Some(rest) = left.checked_sub(weight_of(&map)) else {
                break;
            };
            left = rest;
            values.push(map.clone().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_of_a_wide_schema_is_bounded() {
        let names: Vec<String> = (0..3_000).map(|number| format!("n{number}")).collect();
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| (name.clone(), json!({ "type": "integer" })))
            .collect();
        let wide = json!({ "type": "object", "properties": properties, "required": names });
        let open = json!({ "type": "object", "required": names, "minProperties": 3_000 });
        let list = json!({ "type": "array", "items": wide, "minItems": 150 });
        for schema in [&wide, &open, &list] {
            let within = candidates(schema, schema).iter().map(weight).sum::<usize>();
            assert!(within < 3 * VALUES_MAX, "{within} values");
        }
    }
}
