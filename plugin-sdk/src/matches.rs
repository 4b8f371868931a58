//! Defines exactly what the comparisons of a condition mean, as `docs/matches.md` describes them.

use std::borrow::Cow;

use crate::adapter::{Comparison, Condition};
use crate::error::{Error, Result};
use crate::shape::{Field, Type};
use crate::value::{Value, Zone};

/// Returns the comparisons that have a meaning for a column of this type. A source that cannot do one exactly leaves it
/// out of its capabilities.
pub fn comparisons(kind: Type) -> &'static [Comparison] {
    use Comparison::*;
    match kind {
        Type::String => &Comparison::ALL,
        Type::Integer | Type::Decimal | Type::Number | Type::Date | Type::Datetime => {
            &[Equals, NotEquals, OneOf, AtLeast, AtMost, IsEmpty]
        }
        Type::Boolean => &[Equals, NotEquals, OneOf, IsEmpty],
        Type::Json | Type::Record | Type::List => &[IsEmpty],
    }
}

/// A condition whose value has been read as the column's type.
#[derive(Clone, Debug)]
pub struct Matcher {
    test: MatchTest,
}

#[derive(Clone, Debug)]
enum MatchTest {
    Equals(Value<'static>),
    NotEquals(Value<'static>),
    OneOf(Vec<Value<'static>>),
    AtLeast(Value<'static>),
    AtMost(Value<'static>),
    Contains(String),
    ContainsCi(String),
    StartsWith(String),
    IsEmpty(bool),
}

impl Matcher {
    /// Refuses a comparison the column's type has not, and a value that is not of that type.
    pub fn new(condition: &Condition, field: &Field, zone: &Zone) -> Result<Self> {
        let comparison = condition.comparison;
        if !comparisons(field.kind).contains(&comparison) {
            return Err(Error::unsupported(format!(
                "The column {:?} cannot be compared with {comparison}.",
                field.key
            ))
            .field(&field.key));
        }
        let one = || operand(&condition.value, field, zone);
        let text = || match &condition.value {
            serde_json::Value::String(text) => Ok(text.clone()),
            _ => Err(wrong_operand(field, "a text")),
        };
        let test = match comparison {
            Comparison::Equals => MatchTest::Equals(one()?),
            Comparison::NotEquals => MatchTest::NotEquals(one()?),
            Comparison::AtLeast => MatchTest::AtLeast(one()?),
            Comparison::AtMost => MatchTest::AtMost(one()?),
            Comparison::OneOf => match &condition.value {
                serde_json::Value::Array(values) => MatchTest::OneOf(
                    values
                        .iter()
                        .map(|value| operand(value, field, zone))
                        .collect::<Result<_>>()?,
                ),
                _ => return Err(wrong_operand(field, "a list of values")),
            },
            Comparison::Contains => MatchTest::Contains(text()?),
            Comparison::ContainsCi => MatchTest::ContainsCi(text()?.to_ascii_lowercase()),
            Comparison::StartsWith => MatchTest::StartsWith(text()?),
            Comparison::IsEmpty => match condition.value {
                serde_json::Value::Bool(wanted) => MatchTest::IsEmpty(wanted),
                _ => return Err(wrong_operand(field, "true or false")),
            },
        };
        Ok(Self { test })
    }

    /// Returns `true` if the value meets the condition.
    pub fn matches(&self, value: &Value<'_>) -> bool {
        use std::cmp::Ordering::*;
        match &self.test {
            MatchTest::Equals(wanted) => value.compare(wanted) == Some(Equal),
            // As in SQL, a null is neither equal nor unequal to anything.
            MatchTest::NotEquals(unwanted) => value
                .compare(unwanted)
                .is_some_and(|ordering| ordering != Equal),
            MatchTest::OneOf(wanted) => wanted
                .iter()
                .any(|wanted| value.compare(wanted) == Some(Equal)),
            MatchTest::AtLeast(least) => value
                .compare(least)
                .is_some_and(|ordering| ordering != Less),
            MatchTest::AtMost(most) => value
                .compare(most)
                .is_some_and(|ordering| ordering != Greater),
            MatchTest::Contains(part) => {
                text_of(value).is_some_and(|text| text.contains(part.as_str()))
            }
            MatchTest::ContainsCi(part) => {
                text_of(value).is_some_and(|text| text.to_ascii_lowercase().contains(part.as_str()))
            }
            MatchTest::StartsWith(start) => {
                text_of(value).is_some_and(|text| text.starts_with(start.as_str()))
            }
            MatchTest::IsEmpty(wanted) => value.is_null() == *wanted,
        }
    }

    /// Returns `true` if the condition cannot decide whether the value meets it: the value is not of its column's type,
    /// and the condition asks for more than its presence.
    pub fn cannot_judge(&self, value: &Value<'_>) -> bool {
        matches!(value, Value::Unfit(_)) && !matches!(self.test, MatchTest::IsEmpty(_))
    }

    /// Returns the text that a cell must be to match, if the condition is `equals` on a string. An adapter can skip
    /// reading other cells.
    pub fn exact_text(&self) -> Option<&str> {
        match &self.test {
            MatchTest::Equals(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Returns the value of a condition as the column's type. Adapters that send conditions elsewhere bind this.
pub fn operand(value: &serde_json::Value, field: &Field, zone: &Zone) -> Result<Value<'static>> {
    match Value::from_argument(value, field, zone) {
        Value::Unfit(_) => Err(wrong_operand(field, type_name(field.kind))),
        value => Ok(value),
    }
}

fn wrong_operand(field: &Field, wanted: &str) -> Error {
    Error::invalid(format!(
        "The column {:?} is compared with something that is not {wanted}.",
        field.key
    ))
    .field(&field.key)
}

fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::String => "a text",
        Type::Integer => "an integer",
        Type::Decimal => "a decimal number",
        Type::Number => "a number",
        Type::Boolean => "true or false",
        Type::Date => "a date (YYYY-MM-DD)",
        Type::Datetime => "a date and time (RFC 3339)",
        Type::Json => "JSON",
        Type::Record => "a record",
        Type::List => "a list",
    }
}

fn text_of<'a>(value: &'a Value<'_>) -> Option<&'a Cow<'a, str>> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(kind: Type, cell: &str, comparison: Comparison, value: serde_json::Value) -> bool {
        let field = Field::new("column", kind).nullable(true);
        let matcher = Matcher::new(
            &Condition::new("column", comparison, value),
            &field,
            &Zone::utc(),
        )
        .unwrap();
        matcher.matches(&Value::from_text(cell, &field, &Zone::utc()))
    }

    #[test]
    fn comparisons_mean_the_same_everywhere() {
        use Comparison::*;
        for (kind, cell, comparison, value, expected) in [
            (Type::String, "Open", Equals, json!("Open"), true),
            (Type::String, "Open", Equals, json!("open"), false),
            (Type::String, "", Equals, json!(""), false), // an empty cell of a nullable column is null
            (Type::String, "", NotEquals, json!("x"), false),
            (Type::String, "y", NotEquals, json!("x"), true),
            (Type::String, "y", NotEquals, json!(null), false),
            (Type::String, "", Equals, json!(null), false),
            (Type::String, "b", OneOf, json!(["a", "b", null]), true),
            (Type::String, "", OneOf, json!([null]), false),
            (Type::String, "b", OneOf, json!([]), false),
            (Type::String, "Zürich", Contains, json!("ür"), true),
            (Type::String, "Zürich", ContainsCi, json!("ZÜ"), false), // ASCII letters only
            (Type::String, "Zürich", ContainsCi, json!("RICH"), true),
            (Type::String, "50%_off", Contains, json!("%_"), true),
            (Type::String, "x", Contains, json!(""), true),
            (Type::String, "", Contains, json!(""), false),
            (Type::String, "abc", StartsWith, json!("ab"), true),
            (Type::String, "\u{10000}", AtLeast, json!("\u{ffff}"), true), // code points, not UTF-16 units
            (Type::String, "", IsEmpty, json!(true), true),
            (Type::String, "", IsEmpty, json!(false), false),
            (Type::Decimal, "10.00", Equals, json!("10"), true),
            (
                Type::Decimal,
                "9007199254740993",
                Equals,
                json!("9007199254740992"),
                false,
            ),
            (Type::Decimal, "9.5", AtMost, json!(10), true),
            (Type::Integer, "10", AtLeast, json!(9), true),
            (Type::Integer, "5", Equals, json!(5.0), true),
            (Type::Number, "0.5", Equals, json!(0.5), true),
            (Type::Boolean, "TRUE", Equals, json!(true), true),
            (Type::Date, "2024-01-02", AtMost, json!("2024-01-02"), true),
            (
                Type::Datetime,
                "2024-01-02 00:00:00",
                Equals,
                json!("2024-01-02T01:00:00+01:00"),
                true,
            ),
            (
                Type::Datetime,
                "2024-01-02T00:00:00.5Z",
                AtLeast,
                json!("2024-01-02T00:00:00Z"),
                true,
            ),
            (Type::Integer, "abc", NotEquals, json!(1), false),
        ] {
            assert_eq!(
                matches(kind, cell, comparison, value.clone()),
                expected,
                "{kind:?} {cell:?} {comparison} {value}"
            );
        }
    }

    #[test]
    fn an_operand_of_another_type_names_its_column() {
        for (kind, comparison, value) in [
            (Type::Integer, Comparison::Equals, json!("abc")),
            (Type::Date, Comparison::AtLeast, json!("soon")),
            (Type::String, Comparison::OneOf, json!("a")),
            (Type::String, Comparison::IsEmpty, json!("yes")),
            (Type::Integer, Comparison::Contains, json!("1")),
        ] {
            let condition = Condition::new("column", comparison, value);
            let error =
                Matcher::new(&condition, &Field::new("column", kind), &Zone::utc()).unwrap_err();
            assert_eq!(error.field.as_deref(), Some("column"));
        }
    }
}
