//! Types, lists of values, and the bounds of numbers and texts.

use std::{cmp::Ordering, collections::HashSet};

use jsonschema::Validator;
use serde_json::Value;

use super::{
    SchemaComparison, SchemaRule,
    finite::{collect_values, listed},
    normal,
    number::{self, DecimalStep as Multiple, ExactNumber, RangeBound},
    weight,
};
use crate::{name, validate};

pub(super) const NULL: u8 = 1;
pub(super) const BOOLEAN: u8 = 2;
pub(super) const INTEGER: u8 = 4;
/// A number that is not an integer.
pub(super) const FRACTION: u8 = 8;
pub(super) const STRING: u8 = 16;
pub(super) const ARRAY: u8 = 32;
pub(super) const OBJECT: u8 = 64;
pub(super) const ALL: u8 = 127;

/// Added values among which a new name is searched.
const LIKELY_MAX: usize = 100;

/// Returns the types that values of a schema may have; `None` if `type` has an unknown value.
pub(super) fn types(schema: &Value) -> Option<u8> {
    let of = |word: &Value| {
        Some(match word.as_str()? {
            "null" => NULL,
            "boolean" => BOOLEAN,
            "integer" => INTEGER,
            "number" => INTEGER | FRACTION,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => return None,
        })
    };
    let mut types = match schema.get("type") {
        None => ALL,
        Some(Value::Array(words)) => words
            .iter()
            .try_fold(0, |types, word| Some(types | of(word)?))?,
        Some(word) => of(word)?,
    };
    // Multiples of a whole number are whole.
    if schema
        .get("multipleOf")
        .and_then(Multiple::from_value)
        .is_some_and(Multiple::is_whole)
    {
        types &= !FRACTION;
    }
    Some(types)
}

pub(super) fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(_)
            if matches!(ExactNumber::from_value(value), Some(ExactNumber::Whole(_))) =>
        {
            INTEGER
        }
        Value::Number(_) => FRACTION,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

pub(super) fn types_among(values: &[Value]) -> u8 {
    values.iter().fold(0, |types, value| types | type_of(value))
}

/// Returns the types that values of a schema may have. `values` has all values if there are few.
fn listed_types(schema: &Value, values: Option<&[Value]>) -> u8 {
    let allowed = types(schema).unwrap_or(ALL);
    let among = values.map_or(ALL, types_among);
    allowed & among
}

/// Writes types in words: `string or null`.
fn words(types: u8) -> String {
    let number = INTEGER | FRACTION;
    let mut words = Vec::new();
    if types & number == number {
        words.push("number");
    }
    let others = [
        (BOOLEAN, "boolean"),
        (
            if types & number == number { 0 } else { INTEGER },
            "integer",
        ),
        (
            if types & number == number {
                0
            } else {
                FRACTION
            },
            "number with a fraction",
        ),
        (STRING, "string"),
        (ARRAY, "array"),
        (OBJECT, "object"),
        (NULL, "null"),
    ];
    words.extend(
        others
            .iter()
            .filter(|(bit, _)| types & bit != 0)
            .map(|(_, word)| *word),
    );
    words.join(" or ")
}

type SchemaCompiler = fn(&Value) -> Result<Validator, String>;

/// Decides which values are valid.
enum ValueTest<'s> {
    /// The schema lists texts and has no other rule.
    Texts(HashSet<&'s str>),
    Schema(Box<Validator>),
}

impl<'s> ValueTest<'s> {
    fn of_schema(schema: &'s Value, compile: SchemaCompiler) -> Result<Self, String> {
        let mut texts = HashSet::new();
        match lists_texts(schema, &mut texts) {
            true => Ok(Self::Texts(texts)),
            false => Ok(Self::Schema(Box::new(compile(schema)?))),
        }
    }

    /// Returns the tests of both schemas. With formats there is a second pair, since another server may not look at them.
    fn of_both(old: &'s Value, new: &'s Value) -> Result<Vec<(Self, Self)>, String> {
        let compilers: &[SchemaCompiler] = match has_format(old) || has_format(new) {
            true => &[validate::validator, validate::foreign_validator],
            false => &[validate::validator],
        };
        let pair = |compile: &SchemaCompiler| {
            let was = Self::of_schema(old, *compile)?;
            Ok::<_, String>((was, Self::of_schema(new, *compile)?))
        };
        compilers.iter().map(pair).collect()
    }

    fn is_valid(&self, value: &Value) -> bool {
        match self {
            Self::Texts(texts) => value.as_str().is_some_and(|text| texts.contains(text)),
            Self::Schema(schema) => schema.is_valid(value),
        }
    }
}

/// Returns the steps of a check of the values of both: a schema that is more than a list of texts compares each value with all
/// that it lists.
fn count_steps(tests: &[(ValueTest<'_>, ValueTest<'_>)], old: &Value, new: &Value) -> usize {
    let steps = match tests {
        [(ValueTest::Texts(_), ValueTest::Texts(_))] => weight(old) + weight(new),
        _ => (weight(old) + weight(new)).saturating_pow(2) / 32 + 500,
    };
    steps.saturating_mul(tests.len())
}

/// Returns the types before and after if one side lists its values, and the other allows none of their types.
fn changed_types(
    tests: &[(ValueTest<'_>, ValueTest<'_>)],
    (old, was): (&Value, Option<&[Value]>),
    (new, is): (&Value, Option<&[Value]>),
) -> Option<(u8, u8)> {
    let types = (listed_types(old, was), listed_types(new, is));
    if types.0 & types.1 != 0 {
        return None;
    }
    let mut tests = tests.iter();
    let is_met = match (was, is) {
        (Some(values), None) => {
            tests.any(|(test, _)| values.iter().any(|value| test.is_valid(value)))
        }
        (None, Some(values)) => {
            tests.any(|(_, test)| values.iter().any(|value| test.is_valid(value)))
        }
        _ => false,
    };
    is_met.then_some(types)
}

/// Collects the texts that a schema lists. Returns `false` if it has any other rule.
fn lists_texts<'s>(schema: &'s Value, texts: &mut HashSet<&'s str>) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    let lists = ["enum", "const", "anyOf"];
    let is_list = |key: &String| lists.contains(&key.as_str());
    members.keys().filter(|key| is_list(key)).count() == 1
        && members
            .iter()
            .all(|(key, value)| match (key.as_str(), value) {
                ("type", word) => word == "string",
                ("const", Value::String(text)) => {
                    texts.insert(text);
                    true
                }
                ("enum", Value::Array(values)) => values.iter().all(|value| {
                    let text = value.as_str();
                    texts.extend(text);
                    text.is_some()
                }),
                ("anyOf", Value::Array(arms)) => arms.iter().all(|arm| lists_texts(arm, texts)),
                (key, _) => {
                    normal::TEXTS.contains(&key) || key == "default" || key.starts_with("x-")
                }
            })
}

impl<'s> SchemaComparison<'s> {
    /// Compares the types and returns those that both allow; `None` if nothing further is to be compared.
    pub(super) fn types(&mut self, old: &'s Value, new: &'s Value) -> Option<u8> {
        let (Some(was), Some(is)) = (types(old), types(new)) else {
            self.undecided("type", old, new);
            return None;
        };
        let (lost, gained, both) = (was & !is, is & !was, was & is);
        let key = if old.get("type") == new.get("type") {
            "multipleOf"
        } else {
            "type"
        };
        match (lost, gained) {
            (0, 0) => {}
            (0, gained) => {
                let reason = format!("{} is allowed as well", words(gained));
                self.find_at(SchemaRule::TypeWidened, (old, new), key, reason);
            }
            (lost, 0) => {
                let reason = format!("{} is no longer allowed", words(lost));
                self.find_at(SchemaRule::TypeNarrowed, (old, new), key, reason);
            }
            (lost, gained) => {
                let reason = format!("was {}, is {}", words(lost), words(gained));
                self.find_at(SchemaRule::TypeChanged, (old, new), key, reason);
            }
        }
        Some(both)
    }

    /// Checks each listed value if one side lists its values. Returns `true` if that was all there is to compare.
    pub(super) fn enumerations(&mut self, old: &'s Value, new: &'s Value) -> bool {
        let is_listed = |schema: &Value| listed(schema).is_some();
        if !is_listed(old) && !is_listed(new) {
            return false;
        }
        let Ok(tests) = ValueTest::of_both(old, new) else {
            let reason = "the values cannot be checked".to_owned();
            self.find(
                SchemaRule::UndecidedSchema,
                (old, new),
                "",
                old.clone(),
                new.clone(),
                reason,
            );
            return true;
        };
        if !self.spend(count_steps(&tests, old, new)) {
            return true;
        }
        let (was, is) = (collect_values(old), collect_values(new));
        let changed = changed_types(&tests, (old, was.as_deref()), (new, is.as_deref()));
        if let Some((before, after)) = changed {
            let reason = format!("was {}, is {}", words(before), words(after));
            self.find_at(SchemaRule::TypeChanged, (old, new), "type", reason);
            return true;
        }
        let is_lost = |value: &&Value| {
            let mut tests = tests.iter();
            tests.any(|(was, is)| was.is_valid(value) && !is.is_valid(value))
        };
        let is_gained = |value: &&Value| {
            let mut tests = tests.iter();
            tests.any(|(was, is)| is.is_valid(value) && !was.is_valid(value))
        };
        let lost = was.iter().flatten().filter(is_lost).cloned().collect();
        let gained = is.iter().flatten().filter(is_gained).cloned().collect();
        let key = ["enum", "const", "anyOf", "oneOf"].into_iter().find(|key| {
            let here = |schema: &Value| schema.get(key).is_some();
            here(old) || here(new)
        });
        let key = key.unwrap_or_default();
        self.values(old, new, key, lost, gained);
        match (was.is_some(), is.is_some()) {
            (true, false) => {
                self.find_at(
                    SchemaRule::EnumRemoved,
                    (old, new),
                    key,
                    "any value of the type is allowed".to_owned(),
                );
            }
            (false, true) => {
                self.find_at(
                    SchemaRule::EnumAdded,
                    (old, new),
                    key,
                    "only the listed values are allowed".to_owned(),
                );
            }
            _ => {}
        }
        for key in ["anyOf", "oneOf"] {
            if old.get(key) != new.get(key) && normal::same_rules(key, old, new) {
                self.find_at(
                    SchemaRule::TextChanged,
                    (old, new),
                    key,
                    format!("texts or order inside {key} changed"),
                );
            }
        }
        true
    }

    /// Drops the changes from index `known` on that are only another spelling: both schemas have few values, and the same ones.
    pub(super) fn forget_spelling(&mut self, known: usize, old: &'s Value, new: &'s Value) {
        let is_change = |rule: SchemaRule| rule.narrows() || rule.widens();
        let mut found = self.findings[known..].iter();
        if !found.any(|finding| is_change(finding.rule)) {
            return;
        }
        let (Some(was), Some(is)) = (collect_values(old), collect_values(new)) else {
            return;
        };
        let Ok(tests) = ValueTest::of_both(old, new) else {
            return;
        };
        let steps = count_steps(&tests, old, new);
        if steps > self.left || !self.spend(steps) {
            return;
        }
        let is_same = |value: &Value| {
            let mut tests = tests.iter();
            tests.all(|(was, is)| was.is_valid(value) == is.is_valid(value))
        };
        if was.iter().chain(&is).all(is_same) {
            let mut index = 0;
            self.findings.retain(|finding| {
                index += 1;
                index <= known || !is_change(finding.rule)
            });
        }
    }

    fn values(
        &mut self,
        old: &'s Value,
        new: &'s Value,
        key: &str,
        mut lost: Vec<Value>,
        mut gained: Vec<Value>,
    ) {
        let pair = (old, new);
        let kinds = (types_among(&lost), types_among(&gained));
        if !lost.is_empty() && !gained.is_empty() && kinds.0 & kinds.1 == 0 {
            let reason = format!("was {}, is {}", words(kinds.0), words(kinds.1));
            return self.find(
                SchemaRule::TypeChanged,
                pair,
                key,
                lost.into(),
                gained.into(),
                reason,
            );
        }
        let are_many = lost.len().saturating_mul(gained.len()) > LIKELY_MAX * LIKELY_MAX;
        lost.retain(|value| {
            if are_many || gained.len() > LIKELY_MAX {
                return true;
            }
            let Some(near) = likely(value, &gained) else {
                return true;
            };
            let reason = format!("{value} was removed, {near} looks like its new name");
            self.find(
                SchemaRule::ValueRenamed,
                pair,
                key,
                value.clone(),
                near.clone(),
                reason,
            );
            gained.retain(|value| *value != near);
            false
        });
        if !lost.is_empty() {
            let reason = format!("no longer one of the values: {}", listing(&lost));
            self.find(
                SchemaRule::ValueRemoved,
                pair,
                key,
                lost.into(),
                Value::Null,
                reason,
            );
        }
        if !gained.is_empty() {
            let reason = format!("also one of the values: {}", listing(&gained));
            self.find(
                SchemaRule::ValueAdded,
                pair,
                key,
                Value::Null,
                gained.into(),
                reason,
            );
        }
    }

    /// Compares bounds and steps of numbers. `whole` means that neither side allows a fraction.
    pub(super) fn numbers(&mut self, old: &'s Value, new: &'s Value, whole: bool) {
        for (key, exclusive, upwards) in [
            ("minimum", "exclusiveMinimum", true),
            ("maximum", "exclusiveMaximum", false),
        ] {
            let (Ok(was), Ok(is)) = (
                bound(old, key, exclusive, upwards),
                bound(new, key, exclusive, upwards),
            ) else {
                self.undecided(key, old, new);
                self.undecided(exclusive, old, new);
                continue;
            };
            let inside = |bound: Option<RangeBound>, step: i128| match whole {
                true => bound.map(|bound| bound.inside(upwards).on_step(step, upwards)),
                false => bound,
            };
            let order = match (inside(was, whole_step(old)), inside(is, whole_step(new))) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some(was), Some(is)) => was.compare(is, upwards),
            };
            let is_here = |schema: &Value, key: &str| schema.get(key).is_some();
            let key = if is_here(new, key) || (is_here(old, key) && !is_here(new, exclusive)) {
                key
            } else {
                exclusive
            };
            let end = |bound: Option<RangeBound>| {
                bound.map_or_else(|| "none".to_owned(), |bound| end(bound, upwards))
            };
            self.bound(old, new, key, order, &format!("{} → {}", end(was), end(is)));
        }
        self.steps(old, new, whole);
    }

    fn steps(&mut self, old: &'s Value, new: &'s Value, whole: bool) {
        let key = "multipleOf";
        let (was, is) = (old.get(key), new.get(key));
        let step = |value: Option<&Value>| match value {
            None => Some(None),
            Some(value) => Multiple::from_value(value).map(Some),
        };
        let (Some(before), Some(after)) = (step(was), step(is)) else {
            if was != is {
                self.find_at(
                    SchemaRule::UndecidedKeyword,
                    (old, new),
                    key,
                    format!("no rule covers a change of {key}"),
                );
            }
            return;
        };
        let effective = |step: Option<Multiple>| match (step, whole) {
            (Some(step), true) => Some(step.common(Multiple::ONE)),
            (None, true) => Some(Multiple::ONE),
            (step, false) => step,
        };
        let order = match (effective(before), effective(after)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(before), Some(after)) => {
                match (before.is_multiple_of(after), after.is_multiple_of(before)) {
                    (true, true) => Ordering::Equal,
                    (false, true) => Ordering::Less,
                    (true, false) => Ordering::Greater,
                    (false, false) => {
                        let reason = "multiples of one are not multiples of the other".to_owned();
                        return self.find_at(SchemaRule::StepChanged, (old, new), key, reason);
                    }
                }
            }
        };
        let shown = |step: Option<&Value>| {
            step.map_or_else(|| "any".to_owned(), |step| format!("multiples of {step}"))
        };
        self.bound(
            old,
            new,
            key,
            order,
            &format!("{} → {}", shown(was), shown(is)),
        );
    }

    pub(super) fn texts(&mut self, old: &'s Value, new: &'s Value) {
        self.count(old, new, "minLength", true);
        self.count(old, new, "maxLength", false);
        for (key, added, removed, changed) in [
            (
                "pattern",
                SchemaRule::PatternAdded,
                SchemaRule::PatternRemoved,
                SchemaRule::PatternChanged,
            ),
            (
                "format",
                SchemaRule::FormatAdded,
                SchemaRule::FormatRemoved,
                SchemaRule::FormatChanged,
            ),
        ] {
            let shown = |value: &Value| value.to_string();
            match (old.get(key), new.get(key)) {
                (None, Some(new_value)) => {
                    let reason = format!("texts must meet the {key} {}", shown(new_value));
                    self.find_at(added, (old, new), key, reason);
                }
                (Some(old_value), None) => {
                    let reason = format!(
                        "texts need not meet the {key} {} any more",
                        shown(old_value)
                    );
                    self.find_at(removed, (old, new), key, reason);
                }
                (Some(was), Some(is)) if was != is => {
                    let reason = format!(
                        "no rule covers whether texts of the {key} {} are of {}",
                        shown(was),
                        shown(is)
                    );
                    self.find_at(changed, (old, new), key, reason);
                }
                _ => {}
            }
        }
    }

    /// Compares a minimum or maximum count.
    pub(super) fn count(&mut self, old: &'s Value, new: &'s Value, key: &str, least: bool) {
        let of = |schema: &Value| match schema.get(key) {
            None => Some(if least { 0 } else { u64::MAX }),
            Some(value) => number::count(value),
        };
        let (Some(was), Some(is)) = (of(old), of(new)) else {
            return self.undecided(key, old, new);
        };
        let order = if least { was.cmp(&is) } else { is.cmp(&was) };
        let change = format!("{} → {}", show_count(old, key), show_count(new, key));
        self.bound(old, new, key, order, &change);
    }

    /// Compares a maximum count, which has no effect beyond what the values `reach` anyway.
    pub(super) fn most(
        &mut self,
        old: &'s Value,
        new: &'s Value,
        key: &str,
        reach: fn(&Value) -> u64,
    ) {
        let of = |schema: &Value| schema.get(key).map_or(Some(u64::MAX), number::count);
        let (Some(was), Some(is)) = (of(old), of(new)) else {
            return self.undecided(key, old, new);
        };
        let order = if is < reach(old) {
            Ordering::Less
        } else if was < reach(new) {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
        let change = format!("{} → {}", show_count(old, key), show_count(new, key));
        self.bound(old, new, key, order, &change);
    }

    /// Records the change of a bound. `Less` means that the old schema allowed more than the new one.
    pub(super) fn bound(
        &mut self,
        old: &'s Value,
        new: &'s Value,
        key: &str,
        order: Ordering,
        change: &str,
    ) {
        let rule = match order {
            Ordering::Equal => return,
            Ordering::Less => SchemaRule::Tightened,
            Ordering::Greater => SchemaRule::Relaxed,
        };
        self.find_at(rule, (old, new), key, format!("{key}: {change}"));
    }
}

fn show_count(schema: &Value, key: &str) -> String {
    let stated = schema.get(key);
    stated.map_or_else(|| "none".to_owned(), Value::to_string)
}

fn has_format(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("format") || members.values().any(has_format)
        }
        Value::Array(items) => items.iter().any(has_format),
        _ => false,
    }
}

fn likely(value: &Value, gained: &[Value]) -> Option<Value> {
    let text = value.as_str()?;
    let near = name::nearest(text, gained.iter().filter_map(Value::as_str))?;
    Some(near.into())
}

fn listing(values: &[Value]) -> String {
    let shown: Vec<String> = values.iter().take(10).map(Value::to_string).collect();
    let more = if values.len() > 10 {
        format!(" and {} more", values.len() - 10)
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Returns the tighter of the two keywords of one end; the error means that one of the two is not a number.
pub(super) fn bound(
    schema: &Value,
    key: &str,
    exclusive: &str,
    upwards: bool,
) -> Result<Option<RangeBound>, ()> {
    let mut tightest: Option<RangeBound> = None;
    for (key, exclusive) in [(key, false), (exclusive, true)] {
        let Some(value) = schema.get(key) else {
            continue;
        };
        let bound = RangeBound {
            at: ExactNumber::from_value(value).ok_or(())?,
            exclusive,
        };
        if tightest.is_none_or(|found| found.compare(bound, upwards) == Ordering::Less) {
            tightest = Some(bound);
        }
    }
    Ok(tightest)
}

/// Returns the distance of the whole numbers that a schema allows, by its step.
pub(super) fn whole_step(schema: &Value) -> i128 {
    let step = schema.get("multipleOf").and_then(Multiple::from_value);
    step.map_or(1, Multiple::whole_step)
}

fn end(bound: RangeBound, upwards: bool) -> String {
    let at = match bound.at {
        ExactNumber::Whole(whole) => whole.to_string(),
        ExactNumber::Fraction(fraction) => fraction.to_string(),
    };
    match (bound.exclusive, upwards) {
        (false, _) => at,
        (true, true) => format!("above {at}"),
        (true, false) => format!("below {at}"),
    }
}
