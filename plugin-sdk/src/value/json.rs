//! Converts a source's JSON to a value, with the text of numbers kept exact, and a value to canonical JSON.

use std::borrow::Cow;
use std::fmt::Write;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Datetime, Decimal, Value, Zone, is_date};
use crate::shape::{Field, Type};

/// Deeper JSON is passed on as it is and left for the gateway to refuse.
const DEPTH_MAX: usize = 64;

impl<'a> Value<'a> {
    /// Reads a JSON text as its column's type.
    pub fn from_json(raw: &'a RawValue, field: &Field, zone: &Zone) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'n') => Value::Null,
            Some(b't') => from_boolean(true, text, field),
            Some(b'f') => from_boolean(false, text, field),
            Some(b'"') => match serde_json::from_str::<JsonString<'a>>(text) {
                Ok(JsonString(string)) => from_string(string, text, field, zone),
                Err(_) => Value::Unfit(Cow::Borrowed(text)),
            },
            Some(b'{' | b'[') => from_nested(text, field, zone, 0),
            _ => from_number(text, field),
        }
    }

    /// Reads a parsed JSON value (an argument) as its column's type.
    pub fn from_argument(
        argument: &serde_json::Value,
        field: &Field,
        zone: &Zone,
    ) -> Value<'static> {
        if let (serde_json::Value::String(text), Type::String) = (argument, field.kind) {
            return Value::Text(Cow::Owned(text.clone()));
        }
        let text = argument.to_string();
        let raw = RawValue::from_string(text).expect("a JSON value prints as JSON");
        Value::from_json(&raw, field, zone).into_owned()
    }
}

fn from_boolean<'a>(boolean: bool, text: &'a str, field: &Field) -> Value<'a> {
    match field.kind {
        Type::Boolean => Value::Boolean(boolean),
        Type::Json => Value::Json(Cow::Borrowed(text)),
        _ => Value::Unfit(Cow::Borrowed(text)),
    }
}

fn from_number<'a>(text: &'a str, field: &Field) -> Value<'a> {
    let unfit = || Value::Unfit(Cow::Borrowed(text));
    match field.kind {
        // SQLite keeps a number in a text column when it was put there as one.
        Type::String => Value::Text(Cow::Borrowed(text)),
        Type::Integer => Decimal::parse(text)
            .and_then(|decimal| decimal.to_integer())
            .map_or_else(unfit, Value::Integer),
        Type::Decimal => Decimal::parse(text).map_or_else(unfit, Value::Decimal),
        Type::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => Value::Null,
        },
        Type::Boolean if text == "1" => Value::Boolean(true),
        Type::Boolean if text == "0" => Value::Boolean(false),
        Type::Json => Value::Json(Cow::Borrowed(text)),
        _ => unfit(),
    }
}

/// Reads a JSON string; `text` is the JSON of `string`. Databases send numbers that JSON cannot hold as strings, so
/// text is read again.
fn from_string<'a>(string: Cow<'a, str>, text: &'a str, field: &Field, zone: &Zone) -> Value<'a> {
    let unfit = || Value::Unfit(Cow::Borrowed(text));
    match field.kind {
        Type::String => Value::Text(string),
        Type::Integer => Decimal::parse(&string)
            .and_then(|decimal| decimal.to_integer())
            .map_or_else(unfit, Value::Integer),
        Type::Decimal => Decimal::parse(&string)
            .map_or_else(unfit, |decimal| Value::Decimal(decimal.into_owned())),
        Type::Number if string.is_empty() => unfit(),
        Type::Number => match Value::from_plain_text(&string, field, zone) {
            Value::Unfit(_) => unfit(),
            value => value.into_owned(),
        },
        Type::Date if is_date(&string) => Value::Date(string),
        Type::Datetime => Datetime::parse(&string, zone).map_or_else(unfit, Value::Datetime),
        Type::Json => Value::Json(Cow::Owned(json_of_string(&string))),
        // A database without lists keeps them as text.
        Type::List | Type::Record => match compact_json(&string, field, zone) {
            Some(json) => Value::Json(Cow::Owned(json)),
            None => unfit(),
        },
        _ => unfit(),
    }
}

fn from_nested<'a>(text: &'a str, field: &Field, zone: &Zone, depth: usize) -> Value<'a> {
    let fits = match field.kind {
        Type::Json => true,
        Type::Record => text.starts_with('{'),
        Type::List => text.starts_with('['),
        _ => false,
    };
    let mut out = String::with_capacity(text.len());
    match nested(text, field, zone, depth, &mut out) {
        Some(()) if fits => Value::Json(Cow::Owned(out)),
        Some(()) => Value::Unfit(Cow::Owned(out)),
        None => Value::Unfit(Cow::Borrowed(text)),
    }
}

/// Returns JSON text without spaces, with strings in their shortest spelling and typed like the field; `None` if it
/// is not JSON.
pub fn compact_json(text: &str, field: &Field, zone: &Zone) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    match Value::from_json(raw, field, zone) {
        Value::Unfit(_) => None,
        value => Some(value.to_json()),
    }
}

/// Appends a string as JSON.
pub fn write_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let bytes = text.as_bytes();
    let (mut at, mut written) = (0, 0);
    while at < bytes.len() {
        if bytes[at..]
            .first_chunk()
            .is_some_and(|eight| needs_no_escape(*eight))
        {
            at += 8;
            continue;
        }
        let byte = bytes[at];
        at += 1;
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[written..at - 1]);
        written = at;
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}").expect("a String takes all");
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[written..]);
    out.push('"');
}

/// Checks eight bytes at once: a component has no wider registers without asking for them.
fn needs_no_escape(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    let bytes = u64::from_ne_bytes(bytes);
    // The highest bit of some byte is set where a byte is below `bound`; those above 127 are never.
    let below = |bytes: u64, bound: u64| bytes.wrapping_sub(ONES * bound) & !bytes & HIGHEST;
    let is = |byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
    below(bytes, 0x20) | is(b'"') | is(b'\\') == 0
}

pub(super) fn json_of_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}

/// Writes a finite double in its shortest spelling; whole ones have no `.0`, so that 100 and 100.0 are the same bytes.
pub(crate) fn write_number(number: f64, out: &mut String) {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        write!(out, "{}", number as i64).expect("a String takes all");
    } else {
        out.push_str(&serde_json::to_string(&number).expect("a finite number prints"));
    }
}

fn nested(text: &str, field: &Field, zone: &Zone, depth: usize, out: &mut String) -> Option<()> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let untyped = Field::new("", Type::Json);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    if text.starts_with('[') {
        let ValueElements(elements) = deserializer.deserialize_seq(ElementsVisitor).ok()?;
        let item = field
            .items
            .as_deref()
            .filter(|_| field.kind == Type::List)
            .unwrap_or(&untyped);
        out.push('[');
        for (index, raw) in elements.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            element(raw, item, zone, depth, out)?;
        }
        out.push(']');
    } else {
        let ValueMembers(members) = deserializer.deserialize_map(ValueMembersVisitor).ok()?;
        out.push('{');
        for (index, (key, raw)) in members.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(&key, out);
            out.push(':');
            let typed = field
                .fields
                .iter()
                .find(|typed| field.kind == Type::Record && typed.key == key);
            element(raw, typed.unwrap_or(&untyped), zone, depth, out)?;
        }
        out.push('}');
    }
    Some(())
}

fn element(
    raw: &RawValue,
    field: &Field,
    zone: &Zone,
    depth: usize,
    out: &mut String,
) -> Option<()> {
    if raw.get().starts_with(['{', '[']) {
        match from_nested(raw.get(), field, zone, depth + 1) {
            // Too deep or not JSON after all: the whole is passed on as it came.
            Value::Unfit(Cow::Borrowed(_)) => return None,
            value => value.write_json(out),
        }
    } else {
        Value::from_json(raw, field, zone).write_json(out);
    }
    Some(())
}

/// A JSON string, borrowed if it has no escapes.
struct JsonString<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for JsonString<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringVisitor;
        impl<'de> Visitor<'de> for StringVisitor {
            type Value = JsonString<'de>;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonString(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(JsonString(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(StringVisitor)
    }
}

struct ValueElements<'a>(Vec<&'a RawValue>);
struct ElementsVisitor;

impl<'de> Visitor<'de> for ElementsVisitor {
    type Value = ValueElements<'de>;
    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(ValueElements(elements))
    }
}

/// The members of a JSON object, in order, their values as written. Several may have one name.
pub struct ValueMembers<'a>(pub Vec<(String, &'a RawValue)>);
struct ValueMembersVisitor;

impl<'de> serde::Deserialize<'de> for ValueMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueMembersVisitor)
    }
}

impl<'de> Visitor<'de> for ValueMembersVisitor {
    type Value = ValueMembers<'de>;
    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(ValueMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(kind: Type, json: &str) -> String {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        Value::from_json(raw, &Field::new("column", kind), &Zone::utc()).to_json()
    }

    #[test]
    fn every_character_is_escaped_as_json_wants_it_wherever_it_stands() {
        for character in (0..0x300)
            .filter_map(char::from_u32)
            .chain(['\u{2028}', '\u{fffd}', '🦀'])
        {
            for before in 0..17 {
                let text = format!(
                    "{}{character}{}",
                    "a".repeat(before),
                    "é!".repeat(before % 5)
                );
                assert_eq!(
                    json_of_string(&text),
                    serde_json::to_string(&text).expect("a text")
                );
            }
        }
    }

    #[test]
    fn json_becomes_the_value_table() {
        for (kind, json, expected) in [
            (Type::Decimal, "9007199254740993", "\"9007199254740993\""),
            (Type::Integer, "9007199254740993", "9007199254740993"),
            (Type::Integer, "\"9007199254740993\"", "9007199254740993"),
            (Type::Integer, "5.0", "5"),
            (Type::Integer, "5.5", "5.5"),
            (
                Type::Integer,
                "123456789012345678901234567890123456789012345",
                "123456789012345678901234567890123456789012345",
            ),
            (Type::Decimal, "1.50", "\"1.5\""),
            (Type::Decimal, "\"1.50\"", "\"1.5\""),
            (Type::Decimal, "1e2", "\"100\""),
            (Type::Number, "100.0", "100"),
            (Type::Number, "1e400", "null"),
            (Type::Number, "\"NaN\"", "null"),
            (Type::Number, "\"\"", "\"\""),
            (Type::Number, "-0.0", "0"),
            (Type::Number, "0.1", "0.1"),
            (Type::Number, "1e300", "1e+300"),
            (Type::Boolean, "1", "true"),
            (Type::Boolean, "2", "2"),
            (Type::Boolean, "\"true\"", "\"true\""),
            (Type::String, "5", "\"5\""),
            (Type::String, "true", "true"),
            (Type::String, "\"\\u00e9\\u0001/\"", "\"é\\u0001/\""),
            (Type::String, "null", "null"),
            (Type::Date, "\"2024-01-02\"", "\"2024-01-02\""),
            (
                Type::Datetime,
                "\"2024-01-02 03:04:05.100+01\"",
                "\"2024-01-02T02:04:05.1Z\"",
            ),
            (
                Type::Json,
                "{ \"b\" : 1.0 , \"a\" : [ ] }",
                "{\"b\":1.0,\"a\":[]}",
            ),
            (Type::Json, "\"text\"", "\"text\""),
            (Type::List, "\"[1, 2]\"", "[1,2]"),
            (Type::List, "{}", "{}"),
            (Type::Record, "{ \"a\": 1 }", "{\"a\":1}"),
        ] {
            assert_eq!(canonical(kind, json), expected, "{kind:?} {json}");
        }
    }

    #[test]
    fn lists_and_records_are_typed_inside() {
        let mut list = Field::new("list", Type::List);
        let mut record = Field::new("", Type::Record);
        record.fields = vec![
            Field::new("price", Type::Decimal),
            Field::new("at", Type::Datetime),
        ];
        list.items = Some(Box::new(record));
        let raw: &RawValue = serde_json::from_str(
            "[{\"price\": 1.50, \"at\": \"2024-01-02 03:04\", \"other\": 1.50}]",
        )
        .unwrap();
        assert_eq!(
            Value::from_json(raw, &list, &Zone::utc()).to_json(),
            "[{\"price\":\"1.5\",\"at\":\"2024-01-02T03:04:00Z\",\"other\":1.50}]"
        );
    }

    #[test]
    fn deep_json_does_not_overflow() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(canonical(Type::Json, &deep), deep);
    }
}
