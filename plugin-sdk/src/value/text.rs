//! Converts the text of a cell to a value.

use std::borrow::Cow;

use super::json::json_of_string;
use super::{Datetime, Decimal, Value, Zone, compact_json, is_date};
use crate::shape::{Field, Type};

impl<'a> Value<'a> {
    /// Reads a cell of text as its column's type, in the column's own format if it has one; dates also as the value table
    /// writes them. An empty cell is null if the column is nullable, else the empty string; a text that means an empty cell
    /// is null.
    pub fn from_text(text: &'a str, field: &Field, zone: &Zone) -> Self {
        if !field.null_words.is_empty() && field.is_null_word(text) {
            return Value::Null;
        }
        let Some(format) = &field.format else {
            return Self::from_plain_text(text, field, zone);
        };
        match super::format::read(text, field.kind, format, zone) {
            Some(value) => value,
            // `1.234` is a number in both spellings, and not the same one; a date has one meaning.
            None if matches!(field.kind, Type::Integer | Type::Decimal | Type::Number)
                && !text.is_empty() =>
            {
                Value::Unfit(Cow::Owned(json_of_string(text)))
            }
            None => Self::from_plain_text(text, field, zone),
        }
    }

    /// Reads text as the value table writes it, whatever the column's format.
    pub(super) fn from_plain_text(text: &'a str, field: &Field, zone: &Zone) -> Self {
        if text.is_empty() {
            return if field.nullable || field.kind != Type::String {
                Value::Null
            } else {
                Value::Text(Cow::Borrowed(""))
            };
        }
        let fit = match field.kind {
            Type::String => return Value::Text(Cow::Borrowed(text)),
            Type::Integer => Decimal::parse(text)
                .and_then(|decimal| decimal.to_integer())
                .map(Value::Integer),
            Type::Decimal => Decimal::parse(text).map(Value::Decimal),
            Type::Number => match number_from_text(text) {
                Some(number) if number.is_finite() => Some(Value::Number(number)),
                Some(_) => return Value::Null,
                None => None,
            },
            Type::Boolean => boolean_from_text(text).map(Value::Boolean),
            Type::Date => is_date(text).then_some(Value::Date(Cow::Borrowed(text))),
            Type::Datetime => Datetime::parse(text, zone).map(Value::Datetime),
            Type::Json | Type::List | Type::Record => {
                compact_json(text, field, zone).map(|json| Value::Json(Cow::Owned(json)))
            }
        };
        fit.unwrap_or_else(|| Value::Unfit(Cow::Owned(json_of_string(text))))
    }
}

/// Reads `true` and `false` in any case, `1` and `0`. Yes, no, on and off are left as text: they mean other things
/// in other languages.
fn boolean_from_text(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Reads decimal and scientific spellings, and the NaN and infinities that sources spell out (they become null).
fn number_from_text(text: &str) -> Option<f64> {
    let spelled = text.trim_start_matches(['+', '-']);
    let is_spelled = ["nan", "inf", "infinity"]
        .iter()
        .any(|name| spelled.eq_ignore_ascii_case(name));
    let is_digits = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    if is_spelled || is_digits {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_the_value_table() {
        for (kind, text, expected) in [
            (Type::String, "007", "\"007\""),
            (Type::String, "=1+1", "\"=1+1\""),
            (Type::Integer, "42", "42"),
            (Type::Integer, "-7", "-7"),
            (Type::Integer, "9007199254740993", "9007199254740993"),
            (Type::Integer, "4.5", "\"4.5\""),
            (Type::Integer, "", "null"),
            (Type::Decimal, "10.00", "\"10\""),
            (Type::Decimal, "9007199254740993", "\"9007199254740993\""),
            (Type::Number, "100", "100"),
            (Type::Number, "100.0", "100"),
            (Type::Number, "1.5", "1.5"),
            (Type::Number, "NaN", "null"),
            (Type::Number, "-Infinity", "null"),
            (Type::Number, "-0", "0"),
            (Type::Number, "abc", "\"abc\""),
            (Type::Boolean, "TRUE", "true"),
            (Type::Boolean, "0", "false"),
            (Type::Boolean, "yes", "\"yes\""),
            (Type::Date, "2024-02-29", "\"2024-02-29\""),
            (Type::Date, "2023-02-29", "\"2023-02-29\""),
            (
                Type::Datetime,
                "2024-05-06 07:08",
                "\"2024-05-06T07:08:00Z\"",
            ),
            (Type::Json, "{ \"a\" : [1, 2.50] }", "{\"a\":[1,2.50]}"),
            (Type::Json, "{broken", "\"{broken\""),
        ] {
            let field = Field::new("column", kind);
            assert_eq!(
                Value::from_text(text, &field, &Zone::utc()).to_json(),
                expected,
                "{kind:?} {text}"
            );
        }
    }

    #[test]
    fn a_word_for_an_empty_cell_is_null() {
        let field = Field {
            null_words: vec!["n/a".to_owned(), "–".to_owned()],
            ..Field::new("column", Type::String).nullable(true)
        };
        for (text, expected) in [
            ("n/a", "null"),
            (" N/A ", "null"),
            ("–", "null"),
            ("n/a yet", "\"n/a yet\""),
        ] {
            let value = Value::from_text(text, &field, &Zone::utc());
            assert_eq!(value.to_json(), expected, "{text:?}");
        }
        let text = Value::Text(Cow::Borrowed("N/A"));
        assert_eq!(text.to_text(&field, &Zone::utc()), None, "it would be lost");
    }

    #[test]
    fn an_empty_cell_is_null_only_where_the_column_is_nullable() {
        let field = Field::new("column", Type::String);
        assert_eq!(Value::from_text("", &field, &Zone::utc()).to_json(), "\"\"");
        assert_eq!(
            Value::from_text("", &field.nullable(true), &Zone::utc()).to_json(),
            "null"
        );
    }
}
