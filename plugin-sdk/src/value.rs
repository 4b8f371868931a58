//! The value table: what a source holds becomes one canonical value, whatever the source.
//!
//! [`Value::from_text`] reads text (CSV cells, settings), [`Value::from_json`] reads JSON as it was written (SQL rows, web
//! answers, arguments) without going through a double. The same fact from two sources becomes the same bytes, so adapters
//! convert here and nowhere else. A value that does not fit its column's type is kept as it is ([`Value::Unfit`]) and passed
//! on, so that the gateway reports `output_mismatch` instead of an adapter guessing.

mod datetime;
mod decimal;
mod format;
mod json;
mod text;

use std::borrow::Cow;
use std::cmp::Ordering;

pub use datetime::{Datetime, Zone, is_date};
pub use decimal::Decimal;
pub use format::NumberText;
pub(crate) use json::write_number;
pub use json::{ValueMembers, compact_json, write_string};

/// The largest integer a double, and so JSON in practice, holds exactly: 2^53 − 1.
pub const INTEGER_MAX: i128 = (1 << 53) - 1;

/// A canonical value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// The null.
    Null,
    /// True or false.
    Boolean(bool),
    /// An integer. It may be beyond ±(2^53−1): the gateway then refuses it, by name.
    Integer(i128),
    /// Digits, exact.
    Decimal(Decimal<'a>),
    /// Finite.
    Number(f64),
    /// Any text.
    Text(Cow<'a, str>),
    /// `YYYY-MM-DD`.
    Date(Cow<'a, str>),
    /// A point in time.
    Datetime(Datetime),
    /// Compact JSON of a `json`, `list` or `record`.
    Json(Cow<'a, str>),
    /// JSON of something that is not of the column's type.
    Unfit(Cow<'a, str>),
}

impl Value<'_> {
    /// Appends the canonical JSON.
    pub fn write_json(&self, out: &mut String) {
        use std::fmt::Write;
        match self {
            Value::Null => out.push_str("null"),
            Value::Boolean(true) => out.push_str("true"),
            Value::Boolean(false) => out.push_str("false"),
            Value::Integer(integer) => write!(out, "{integer}").expect("a String takes all"),
            Value::Decimal(decimal) => {
                out.push('"');
                out.push_str(decimal.as_str());
                out.push('"');
            }
            Value::Number(number) => json::write_number(*number, out),
            Value::Text(text) => write_string(text, out),
            Value::Date(date) => {
                out.push('"');
                out.push_str(date);
                out.push('"');
            }
            Value::Datetime(datetime) => write!(out, "\"{datetime}\"").expect("a String takes all"),
            Value::Json(json) | Value::Unfit(json) => out.push_str(json),
        }
    }

    /// Returns the canonical JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Returns `true` for null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the value with owned texts.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(boolean) => Value::Boolean(boolean),
            Value::Integer(integer) => Value::Integer(integer),
            Value::Decimal(decimal) => Value::Decimal(decimal.into_owned()),
            Value::Number(number) => Value::Number(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Date(date) => Value::Date(Cow::Owned(date.into_owned())),
            Value::Datetime(datetime) => Value::Datetime(datetime),
            Value::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
            Value::Unfit(json) => Value::Unfit(Cow::Owned(json.into_owned())),
        }
    }

    /// Returns the value with the texts of this one.
    pub fn as_borrowed(&self) -> Value<'_> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(boolean) => Value::Boolean(*boolean),
            Value::Integer(integer) => Value::Integer(*integer),
            Value::Decimal(decimal) => Value::Decimal(decimal.as_borrowed()),
            Value::Number(number) => Value::Number(*number),
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Date(date) => Value::Date(Cow::Borrowed(date)),
            Value::Datetime(datetime) => Value::Datetime(*datetime),
            Value::Json(json) => Value::Json(Cow::Borrowed(json)),
            Value::Unfit(json) => Value::Unfit(Cow::Borrowed(json)),
        }
    }

    /// Compares two values of one column; `None` if they do not compare: nulls, unfit values, JSON.
    pub fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
            (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            (Value::Decimal(left), Value::Decimal(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
            // UTF-8 keeps the order of code points.
            (Value::Text(left), Value::Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
            (Value::Date(left), Value::Date(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
            (Value::Datetime(left), Value::Datetime(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// Returns the order of two values in a list. Nulls are last, and before them the values that do not fit their
    /// type.
    pub fn order(&self, other: &Value<'_>, descending: bool) -> Ordering {
        let rank = |value: &Value<'_>| match value {
            Value::Null => 2,
            Value::Json(_) | Value::Unfit(_) => 1,
            _ => 0,
        };
        let by_rank = rank(self).cmp(&rank(other));
        if by_rank != Ordering::Equal {
            return by_rank;
        }
        let ordering = match (self, other) {
            (Value::Json(left) | Value::Unfit(left), Value::Json(right) | Value::Unfit(right)) => {
                left.as_bytes().cmp(right.as_bytes())
            }
            _ => self.compare(other).unwrap_or(Ordering::Equal),
        };
        if descending {
            ordering.reverse()
        } else {
            ordering
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_come_last_in_both_directions() {
        let one = Value::Integer(1);
        for descending in [false, true] {
            assert_eq!(Value::Null.order(&one, descending), Ordering::Greater);
            assert_eq!(one.order(&Value::Null, descending), Ordering::Less);
        }
        assert_eq!(one.order(&Value::Integer(2), true), Ordering::Greater);
    }
}
