//! The arguments of a tool as policies see them: a Cedar type for each that has one, and its values.

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};
use weir_contracts::{ContractTool, contract, values};

/// Objects in objects and lists in lists beyond this depth have no type.
const DEPTH_MAX: usize = 8;
/// Members of one object that have a type.
const MEMBERS_MAX: usize = 256;
/// The bytes of the arguments that policies read of one call.
const READ_MAX_BYTES: usize = 64 << 10;
/// What each value costs in addition to its text.
const VALUE_BYTES: usize = 16;
/// Digits after the point that a decimal of Cedar holds.
const DECIMAL_DIGITS: usize = 4;

/// The type that Cedar has for an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    Long,
    Decimal,
    Text,
    Flag,
    Set(Box<ArgumentType>),
    Record(BTreeMap<String, ArgumentMember>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentMember {
    pub kind: ArgumentType,
    /// Whether it is present in every valid call.
    pub required: bool,
}

/// An argument that policies cannot read, or can read in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentNote {
    /// The names that lead to it, joined by points.
    pub path: String,
    pub why: &'static str,
}

/// The arguments of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolArguments {
    pub members: BTreeMap<String, ArgumentMember>,
    pub notes: Vec<ArgumentNote>,
    /// The values used for absent arguments.
    defaults: BTreeMap<String, Value>,
}

/// Why the arguments of a call cannot be shown to a policy. The call is denied then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableArgument {
    #[error(
        "the argument `{0}` holds a number that policies cannot read: at most {DECIMAL_DIGITS} digits after the point, and 14 before it"
    )]
    Number(String),
    #[error("the arguments that policies read are larger than {} KiB", READ_MAX_BYTES >> 10)]
    TooLarge,
}

impl ToolArguments {
    /// Reads the types from the schema that the arguments of a call are checked against.
    pub fn new(tool: &ContractTool) -> Self {
        let schema = match &tool.target {
            contract::CallTarget::Offer(offer) => {
                offer.input.as_ref().unwrap_or(&tool.input_schema)
            }
            _ => &tool.input_schema,
        };
        let root = schema.value();
        let mut reader = TypeReader {
            root: &root,
            notes: Vec::new(),
        };
        let mut members = match reader.record(&root, "", 0) {
            Some(ArgumentType::Record(members)) => members,
            _ => BTreeMap::new(),
        };
        let notes = reader.notes;
        let mut defaults = BTreeMap::new();
        let inputs = tool.collection().map(|target| &target.binding.inputs);
        for input in inputs.into_iter().flatten() {
            let Some(default) = input.default.as_ref().filter(|value| !value.is_null()) else {
                continue;
            };
            if let Some(member) = members.get_mut(&input.field) {
                member.required = true;
                defaults.insert(input.field.clone(), default.clone());
            }
        }
        // A plugin gets the defaults of its own schema.
        if matches!(tool.target, contract::CallTarget::Offer(_)) {
            let properties = root.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let default = property.get("default").filter(|value| !value.is_null());
                if let (Some(default), Some(member)) = (default, members.get_mut(name)) {
                    member.required = true;
                    defaults.insert(name.clone(), default.clone());
                }
            }
        }
        Self {
            members,
            notes,
            defaults,
        }
    }

    /// Returns the type at the end of a path, if there is one.
    pub fn at(&self, path: &[String]) -> Option<&ArgumentType> {
        let (first, rest) = path.split_first()?;
        let mut kind = &self.members.get(first)?.kind;
        for name in rest {
            let ArgumentType::Record(members) = kind else {
                return None;
            };
            kind = &members.get(name)?.kind;
        }
        Some(kind)
    }

    /// Returns the arguments that `wanted` names as Cedar's values. Their cost is bounded.
    pub(crate) fn values(
        &self,
        arguments: &Map<String, Value>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<RestrictedExpression, UnreadableArgument> {
        let mut left = READ_MAX_BYTES;
        let mut pairs = Vec::new();
        for (name, member) in self.members.iter().filter(|(name, _)| wanted(name)) {
            let value = arguments.get(name).or_else(|| self.defaults.get(name));
            if let Some(value) = value.filter(|value| !value.is_null()) {
                let value = member.kind.value(name, value, &mut left)?;
                pairs.push((name.clone(), value));
            }
        }
        Ok(RestrictedExpression::new_record(pairs).expect("the names of a map are distinct"))
    }
}

impl ArgumentType {
    fn value(
        &self,
        path: &str,
        value: &Value,
        left: &mut usize,
    ) -> Result<RestrictedExpression, UnreadableArgument> {
        let mut take = |bytes: usize| {
            *left = left
                .checked_sub(bytes + VALUE_BYTES)
                .ok_or(UnreadableArgument::TooLarge)?;
            Ok(())
        };
        let number = || UnreadableArgument::Number(path.to_owned());
        // Only validated values come here: one that does not fit its type is a fault of ours, and does not pass.
        match (self, value) {
            (Self::Flag, Value::Bool(flag)) => {
                take(0)?;
                Ok(RestrictedExpression::new_bool(*flag))
            }
            (Self::Text, Value::String(text)) => {
                take(text.len())?;
                Ok(RestrictedExpression::new_string(text.clone()))
            }
            (Self::Long, Value::Number(digits)) => {
                take(0)?;
                let whole = digits.as_i64().or_else(|| {
                    let float = digits.as_f64()?;
                    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
                });
                Ok(RestrictedExpression::new_long(whole.ok_or_else(number)?))
            }
            (Self::Decimal, Value::Number(digits)) => {
                take(0)?;
                let text = decimal(&values::decimal_of(digits)).ok_or_else(number)?;
                Ok(RestrictedExpression::new_decimal(text))
            }
            (Self::Decimal, Value::String(digits)) => {
                take(0)?;
                Ok(RestrictedExpression::new_decimal(
                    decimal(digits).ok_or_else(number)?,
                ))
            }
            (Self::Set(kind), Value::Array(items)) => {
                take(0)?;
                let items = items
                    .iter()
                    .filter(|item| !item.is_null())
                    .map(|item| kind.value(path, item, left));
                Ok(RestrictedExpression::new_set(
                    items.collect::<Result<Vec<_>, _>>()?,
                ))
            }
            (Self::Record(members), Value::Object(object)) => {
                take(0)?;
                let mut pairs = Vec::new();
                for (name, member) in members {
                    if let Some(value) = object.get(name).filter(|value| !value.is_null()) {
                        let path = format!("{path}.{name}");
                        pairs.push((name.clone(), member.kind.value(&path, value, left)?));
                    }
                }
                Ok(RestrictedExpression::new_record(pairs).expect("distinct names"))
            }
            _ => Err(number()),
        }
    }
}

/// Returns digits as Cedar writes a decimal, if it can hold them all.
fn decimal(digits: &str) -> Option<String> {
    if !values::is_decimal(digits) {
        return None;
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    let whole = match whole.strip_prefix('-') {
        Some(whole) => format!("-{}", whole.trim_start_matches('0')),
        None => whole.trim_start_matches('0').to_owned(),
    };
    let bare = whole.trim_start_matches('-');
    let whole = if bare.is_empty() {
        format!("{whole}0")
    } else {
        whole.clone()
    };
    let fits = fraction.len() <= DECIMAL_DIGITS && whole.trim_start_matches('-').len() <= 14;
    // With one more digit only some values fit.
    let fits_last = || {
        let scaled = format!("{whole}{fraction:0<4}");
        fraction.len() <= DECIMAL_DIGITS && scaled.parse::<i64>().is_ok()
    };
    (fits || fits_last()).then(|| format!("{whole}.{fraction}"))
}

struct TypeReader<'r> {
    root: &'r Value,
    notes: Vec<ArgumentNote>,
}

impl TypeReader<'_> {
    fn note(&mut self, path: &str, why: &'static str) -> Option<ArgumentType> {
        self.notes.push(ArgumentNote {
            path: path.to_owned(),
            why,
        });
        None
    }

    fn record(&mut self, schema: &Value, path: &str, depth: usize) -> Option<ArgumentType> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            // Nothing is declared, so there is nothing to read.
            return Some(ArgumentType::Record(BTreeMap::new()));
        };
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut members = BTreeMap::new();
        for (index, (name, own)) in properties.iter().enumerate() {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            if index >= MEMBERS_MAX {
                self.note(&path, "the object has more members than policies can read");
                break;
            }
            let (own, is_nullable) = self.without_null(own);
            if let Some(kind) = self.kind(&own, &path, depth + 1) {
                let required = required.contains(&name.as_str()) && !is_nullable;
                members.insert(name.clone(), ArgumentMember { kind, required });
            }
        }
        Some(ArgumentType::Record(members))
    }

    fn kind(&mut self, schema: &Value, path: &str, depth: usize) -> Option<ArgumentType> {
        if depth > DEPTH_MAX {
            return self.note(path, "it is nested too deeply");
        }
        let word = match schema.get("type") {
            Some(Value::String(word)) => word.as_str(),
            Some(_) => return self.note(path, "it has several types"),
            None => match word_of_values(schema) {
                Some(word) => word,
                None => return self.note(path, "its schema names no single type"),
            },
        };
        let pattern = schema.get("pattern").and_then(Value::as_str);
        match word {
            "string" if pattern == Some(values::DECIMAL_PATTERN) => {
                self.note(path, DIGITS_BOUND);
                Some(ArgumentType::Decimal)
            }
            "string" => Some(ArgumentType::Text),
            "boolean" => Some(ArgumentType::Flag),
            "integer" => Some(ArgumentType::Long),
            "number" => match step_digits(schema) {
                Some(digits) if digits > DECIMAL_DIGITS => {
                    self.note(path, "its step has more than four digits after the point")
                }
                Some(_) => Some(ArgumentType::Decimal),
                None => {
                    self.note(path, DIGITS_BOUND);
                    Some(ArgumentType::Decimal)
                }
            },
            "array" => {
                let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
                    return self.note(path, "its items have no schema");
                };
                let (items, _) = self.without_null(items);
                let kind = self.kind(&items, &format!("{path}[]"), depth + 1)?;
                Some(ArgumentType::Set(Box::new(kind)))
            }
            "object" => self.record(schema, path, depth),
            _ => self.note(path, "Cedar has no such type"),
        }
    }

    /// Follows references, and returns the schema of the values other than null, and whether null is allowed.
    fn without_null(&self, schema: &Value) -> (Value, bool) {
        let mut schema = schema;
        for _ in 0..DEPTH_MAX {
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| self.root.pointer(target.strip_prefix('#')?));
            match target {
                Some(target) => schema = target,
                None => break,
            }
        }
        let beside = weir_contracts::schema::without_null(schema);
        if !std::ptr::eq(beside, schema) {
            return (self.without_null(beside).0, true);
        }
        let Some(Value::Array(words)) = schema.get("type") else {
            return (schema.clone(), false);
        };
        let others: Vec<&Value> = words.iter().filter(|word| *word != "null").collect();
        let is_nullable = others.len() < words.len();
        let mut own = schema.clone();
        own["type"] = match others.as_slice() {
            [word] => (*word).clone(),
            others => others.iter().copied().cloned().collect(),
        };
        (own, is_nullable)
    }
}

const DIGITS_BOUND: &str = "a call whose number has more than four digits after the point, or more than 14 before it, is denied \
                            where a policy reads it";

/// Returns the type of the values that a schema lists, if they have a common one.
fn word_of_values(schema: &Value) -> Option<&'static str> {
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    let all = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().all(is);
    if all(Value::is_string) {
        Some("string")
    } else if all(Value::is_boolean) {
        Some("boolean")
    } else if all(|value| value.is_i64()) {
        Some("integer")
    } else {
        None
    }
}

/// Returns the digits after the point of a number's step, if it has one.
fn step_digits(schema: &Value) -> Option<usize> {
    let Value::Number(step) = schema.get("multipleOf")? else {
        return None;
    };
    let digits = values::decimal_of(step);
    Some(
        digits
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_held_whole_or_not_at_all() {
        for (digits, written) in [
            ("12", Some("12.0")),
            ("-0.5000", Some("-0.5")),
            ("007.10", Some("7.1")),
            ("0", Some("0.0")),
            ("-0", Some("-0.0")),
            ("1.23456", None),
            ("922337203685477.5807", Some("922337203685477.5807")),
            ("922337203685477.5808", None),
            ("9999999999999999", None),
            ("1e3", None),
        ] {
            assert_eq!(decimal(digits).as_deref(), written, "{digits}");
        }
    }
}
