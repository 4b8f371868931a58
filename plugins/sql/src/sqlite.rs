//! What a column of SQLite may hold besides values of its type. A declared type is not enforced there, so values of
//! another one may appear after the column was described: if it may be null they are null, and a row whose key is not a
//! value is left out.

use weir_plugin_sdk::serde_json::value::RawValue;
use weir_plugin_sdk::{Field, Shape, Type, Value};

use crate::settings::quoted;

/// The whole numbers that the value table has.
const INTEGER_MAX: i128 = (1 << 53) - 1;

/// The number by which integers are divided before they are added.
const SUM_PART: i128 = 1_000_000_000;

/// Returns the condition that a value is of its column's type; `None` where every value is, or an expression of the column
/// sees to it. A column of texts that the contract calls a number is left as it is.
pub(crate) fn fits(field: &Field) -> Option<String> {
    let name = quoted(&field.key);
    match field.kind {
        Type::Date => {
            let digits = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";
            Some(format!(
                "typeof({name}) = 'text' AND {name} GLOB '{digits}' AND date({name}, '+0 days') = {name}"
            ))
        }
        Type::Integer if is_numeric(field) => Some(format!(
            "typeof({name}) IN ('integer', 'real') AND {name} = CAST({name} AS INTEGER) \
             AND +{name} BETWEEN -{INTEGER_MAX} AND {INTEGER_MAX}"
        )),
        Type::Boolean if is_numeric(field) => Some(format!("{name} IN (0, 1)")),
        Type::Number | Type::Decimal if is_numeric(field) => {
            Some(format!("typeof({name}) IN ('integer', 'real')"))
        }
        _ => None,
    }
}

/// Returns null for a value that is not of its column's type, if the column may be null.
pub(crate) fn typed<'r>(value: Value<'r>, raw: &RawValue, field: &Field) -> Value<'r> {
    if !is_judged(field) {
        return value;
    }
    // Where SQLite converts each text that is a number, any other text that looks like one is not a number.
    let is_number = matches!(field.kind, Type::Integer | Type::Number);
    match value {
        Value::Unfit(_) => Value::Null,
        _ if is_number && raw.get().starts_with('"') => Value::Null,
        Value::Integer(value) if is_beyond(field, value) => Value::Null,
        value => value,
    }
}

fn is_beyond(field: &Field, value: i128) -> bool {
    field.kind == Type::Integer && !(-INTEGER_MAX..=INTEGER_MAX).contains(&value)
}

/// Returns `true` for a value that a record can have neither as it is nor as null.
pub(crate) fn is_unfit(field: &Field, value: &Value<'_>) -> bool {
    !field.nullable
        && match value {
            Value::Unfit(_) => true,
            Value::Null => field.kind != Type::Json,
            Value::Integer(value) => is_beyond(field, *value),
            _ => false,
        }
}

/// Returns the condition that a column which may not be null holds a value of its type.
pub(crate) fn has_value(field: &Field) -> Option<String> {
    let name = quoted(&field.key);
    let fits = fits(field);
    match field.kind {
        Type::Datetime => Some(format!("weir_datetime({name}, 'UTC') IS NOT NULL")),
        Type::Number | Type::Decimal => fits.map(|fits| format!("{fits} AND {}", is_finite(&name))),
        Type::String => Some(format!("{} IS NOT NULL", spelled(&name, false))),
        _ => fits,
    }
}

/// Returns `true` if a record has null in place of what SQLite answered.
pub(crate) fn is_emptied(field: &Field, raw: &RawValue, value: &Value<'_>) -> bool {
    value.is_null() && raw.get() != "null" && is_judged(field)
}

/// Returns `true` for a column that is null if its value is of another type.
fn is_judged(field: &Field) -> bool {
    field.nullable && (field.kind == Type::Datetime || fits(field).is_some())
}

/// Returns a value as the text that SQLite writes, which is both shown and compared: a double has more digits than that, and is
/// spelled in another way in JSON. One that is not finite is null.
pub(crate) fn spelled(name: &str, is_whole: bool) -> String {
    if is_whole {
        return name.to_owned();
    }
    let finite = is_finite(name);
    format!("(CASE WHEN typeof({name}) <> 'real' OR {finite} THEN CAST({name} AS TEXT) END)")
}

/// Returns the condition that a number is finite. It is made a double first, since `abs` refuses the least integer.
pub(crate) fn is_finite(name: &str) -> String {
    format!("abs({name} + 0.0) <= 1.7976931348623157e308")
}

/// Returns the expression for the sum of a column's integers, as a text that [`join_parts`] reads. SQLite has no sum beyond 64
/// bits, so that the quotients and the rests of a division are added instead.
pub(crate) fn add_in_parts(name: &str) -> String {
    format!("(sum({name} / {SUM_PART}) || ' ' || sum({name} % {SUM_PART}))")
}

/// Returns the sum of integers that SQLite has added in parts; `None` for any other answer.
pub(crate) fn join_parts(raw: &RawValue) -> Option<Value<'static>> {
    let (quotients, rests) = raw.get().trim_matches('"').split_once(' ')?;
    let quotients: i128 = quotients.parse().ok()?;
    let rests: i128 = rests.parse().ok()?;
    Some(Value::Integer(quotients * SUM_PART + rests))
}

/// Returns the conditions for rows that are known by their key. SQLite takes nulls in a PRIMARY KEY, and values of any type.
pub(crate) fn has_key(shape: &Shape) -> Vec<String> {
    let fields = shape.key.iter().filter_map(|key| shape.field(key));
    let conditions = fields.filter_map(|field| {
        let native = field.native.as_deref().unwrap_or_default();
        // The number of a row is always one.
        let is_row_number =
            shape.key.len() == 1 && field.generated && native.eq_ignore_ascii_case("INTEGER");
        let name = quoted(&field.key);
        match field.kind {
            _ if is_row_number => None,
            Type::Datetime => Some(format!("weir_datetime({name}, 'UTC') IS NOT NULL")),
            _ => Some(fits(field).unwrap_or_else(|| format!("{name} IS NOT NULL"))),
        }
    });
    conditions.collect()
}

/// Returns `true` if different keys may be shown as the same: doubles of more than 15 digits, the number 5 and the text `5`, and a
/// moment that is written in two ways.
pub(crate) fn may_repeat_keys(shape: &Shape) -> bool {
    let mut fields = shape.key.iter().filter_map(|key| shape.field(key));
    fields.any(|field| {
        let native = field.native.as_deref().unwrap_or_default();
        let native = native.to_ascii_uppercase();
        let is_whole = native.contains("INT");
        let mut texts = ["CHAR", "CLOB", "TEXT"].iter();
        match field.kind {
            Type::Datetime => true,
            Type::Decimal => !is_whole,
            Type::String => is_whole || !texts.any(|part| native.contains(part)),
            _ => false,
        }
    })
}

/// Returns `true` for a column in which SQLite keeps a text that reads like a number as a number.
fn is_numeric(field: &Field) -> bool {
    let native = field.native.as_deref().unwrap_or_default();
    let native = native.to_ascii_uppercase();
    let is_other = ["CHAR", "CLOB", "TEXT", "BLOB"]
        .iter()
        .any(|part| native.contains(part));
    native.contains("INT") || !(native.is_empty() || is_other)
}
