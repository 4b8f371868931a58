//! Order and cursors: the end of a page, in a form that rows inserted in the meantime do not change.
//!
//! A cursor is the order values of the last record (its key among them), as a JSON array. The gateway seals it; an adapter
//! decodes it as its columns' types and continues after it.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::adapter::Order;
use crate::error::{Error, Result};
use crate::shape::{Field, Shape, Type};
use crate::value::{Value, Zone};

/// A value in a cursor that does not fit its column.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnfitCell<'a> {
    #[serde(borrow)]
    unfit: &'a RawValue,
}

/// Returns the order asked for, with missing columns of the key added at its end, so that it is total.
pub fn total_order(order: &[Order], shape: &Shape) -> Vec<Order> {
    let mut total = order.to_vec();
    for column in &shape.key {
        if !total.iter().any(|by| &by.column == column) {
            total.push(Order {
                column: column.clone(),
                descending: false,
            });
        }
    }
    total
}

/// Compares two records by their order values.
pub fn compare(left: &[Value<'_>], right: &[Value<'_>], order: &[Order]) -> Ordering {
    order
        .iter()
        .zip(left.iter().zip(right))
        .map(|(by, (left, right))| left.order(right, by.descending))
        .find(|ordering| *ordering != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Makes a cursor from the order values of a page's last record.
pub fn encode_cursor(values: &[Value<'_>]) -> String {
    let mut out = String::from("[");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match value {
            // Read as its column's type it might be another value: "12.5" with a decimal comma.
            Value::Unfit(json) => {
                out.push_str("{\"unfit\":");
                out.push_str(json);
                out.push('}');
            }
            value => value.write_json(&mut out),
        }
    }
    out.push(']');
    out
}

/// Reads the values of a cursor, one per field; anything else is refused as a bad cursor.
pub fn decode_cursor(cursor: &str, fields: &[&Field], zone: &Zone) -> Result<Vec<Value<'static>>> {
    let raw: Vec<&RawValue> = serde_json::from_str(cursor).map_err(|_| bad_cursor())?;
    if raw.len() != fields.len() {
        return Err(bad_cursor());
    }
    Ok(raw
        .into_iter()
        .zip(fields)
        .map(
            |(raw, field)| match serde_json::from_str::<UnfitCell<'_>>(raw.get()) {
                Ok(UnfitCell { unfit }) if field.kind != Type::Json => {
                    Value::Unfit(Cow::Owned(unfit.get().to_owned()))
                }
                _ => Value::from_json(raw, field, zone).into_owned(),
            },
        )
        .collect())
}

/// Returns the error for a cursor that does not belong to this list.
pub fn bad_cursor() -> Error {
    Error::invalid("The cursor is not one of this list.").field("cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let (price, at) = (
            Field::new("price", Type::Decimal),
            Field::new("at", Type::Datetime),
        );
        let zone = Zone::utc();
        let values = vec![
            Value::from_text("9007199254740993.50", &price, &zone),
            Value::from_text("2024-01-01 00:00", &at, &zone),
        ];
        let cursor = encode_cursor(&values);
        assert_eq!(cursor, r#"["9007199254740993.5","2024-01-01T00:00:00Z"]"#);
        assert_eq!(
            decode_cursor(&cursor, &[&price, &at], &zone).unwrap(),
            values
        );
        for bad in ["", "[]", "{}", "[1,2,3]", "nonsense"] {
            assert_eq!(
                decode_cursor(bad, &[&price, &at], &zone)
                    .unwrap_err()
                    .field
                    .as_deref(),
                Some("cursor")
            );
        }
    }

    #[test]
    fn a_cell_that_does_not_fit_stays_one_in_a_cursor() {
        // With a decimal comma, this is not a number.
        let price = Field::new("price", Type::Decimal);
        let values = vec![Value::Unfit("\"12.5\"".into())];
        let cursor = encode_cursor(&values);
        let read = decode_cursor(&cursor, &[&price], &Zone::utc()).unwrap();
        assert_eq!(read, values);
    }

    #[test]
    fn the_key_makes_an_order_total() {
        let mut shape = Shape::new("tickets");
        shape.key = vec!["id".into(), "part".into()];
        let total = total_order(&[Order::parse("-id")], &shape);
        assert_eq!(total, [Order::parse("-id"), Order::parse("part")]);
    }
}
