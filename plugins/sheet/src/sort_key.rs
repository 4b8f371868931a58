//! A value as bytes that sort as the values do: what an index is ordered by. Long ones are cut, so that equal bytes may
//! mean different values, but different bytes are never in the wrong order.

use weir_plugin_sdk::Value;
use weir_plugin_sdk::index::KEY_MAX;

/// The first byte of each kind of value: nulls come last, and before them what does not fit its column.
pub(crate) const VALUE: u8 = 0;
pub(crate) const UNFIT: u8 = 1;
pub(crate) const NULL: u8 = 2;

/// Counts up when the bytes of a value change, so that indexes made before are not read.
pub(crate) const VERSION: u32 = 2;

pub(crate) fn sort_key(value: &Value<'_>) -> Vec<u8> {
    // Numbers, days and most names fit, so that the key does not grow twice.
    let mut key = Vec::with_capacity(24);
    key.push(VALUE);
    match value {
        Value::Null => key[0] = NULL,
        Value::Json(text) | Value::Unfit(text) => {
            key[0] = UNFIT;
            key.extend_from_slice(text.as_bytes());
        }
        Value::Boolean(boolean) => key.push(u8::from(*boolean)),
        Value::Integer(integer) => push_integer(*integer, &mut key),
        Value::Number(number) => key.extend(ordered_bits(*number).to_be_bytes()),
        Value::Decimal(decimal) => push_decimal(decimal.as_str(), &mut key),
        Value::Text(text) | Value::Date(text) => key.extend_from_slice(text.as_bytes()),
        // Without the Z, a time without a fraction comes before those with one.
        Value::Datetime(datetime) => {
            key.extend_from_slice(datetime.to_string().trim_end_matches('Z').as_bytes())
        }
    }
    key.truncate(KEY_MAX);
    key
}

/// Writes the number of bytes, then the bytes without leading zeros. Both are inverted for a negative number.
fn push_integer(integer: i128, key: &mut Vec<u8>) {
    let magnitude = if integer < 0 { !integer } else { integer } as u128;
    let length = 16 - magnitude.leading_zeros() as usize / 8;
    let bytes = &magnitude.to_be_bytes()[16 - length..];
    if integer < 0 {
        key.push(0x7f - length as u8);
        key.extend(bytes.iter().map(|byte| !byte));
    } else {
        key.push(0x80 + length as u8);
        key.extend(bytes);
    }
}

/// Returns bits that sort like the number. Both zeros are one value.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// Writes the sign, the number of digits before the point, and all digits. Those of a negative number count downwards,
/// and its end counts as more than any digit.
fn push_decimal(text: &str, key: &mut Vec<u8>) {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let length = u16::try_from(whole.len()).unwrap_or(u16::MAX).to_be_bytes();
    let bytes = length
        .iter()
        .chain(whole.as_bytes())
        .chain(fraction.as_bytes());
    key.push(u8::from(!is_negative));
    if is_negative {
        key.extend(bytes.map(|byte| !byte));
        key.push(0xff);
    } else {
        key.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;
    use weir_plugin_sdk::{Field, Type, Zone};

    use super::*;

    fn cells() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            "-?[0-9]{1,4}(\\.[0-9]{1,3})?",
            "-?(0|1|254|255|256|257|65535|65536|65537)",
            "-?[0-9]{1,39}",
            "-?[0-9]{1,40}(\\.[0-9]{1,20})?",
            "-?[0-9]\\.[0-9]e-?[0-9]{1,2}",
            "(true|false|0|1|-0|-0\\.0)",
            "[12][0-9]{3}-0[1-9]-[0-2][1-9]",
            "2024-0[12]-0[12]T0[0-3]:00:00(\\.[0-9]{1,3})?(Z|[+]0[01]:00)",
            "\\PC{0,6}",
            "[a-b]{250,260}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn bytes_that_differ_stand_as_the_values_do(left in cells(), right in cells(), kind in 0_usize..8, nullable: bool) {
            let kinds = [Type::String, Type::Integer, Type::Decimal, Type::Number, Type::Boolean, Type::Date, Type::Datetime, Type::Json];
            let field = Field::new("column", kinds[kind]).nullable(nullable);
            let value = |cell| Value::from_text(cell, &field, &Zone::utc()).into_owned();
            let (left, right) = (value(&left), value(&right));
            let keys = sort_key(&left).cmp(&sort_key(&right));
            let values = left.order(&right, false);
            prop_assert!(keys == values || keys == Ordering::Equal, "{left:?} {right:?}");
            let is_short = |value: &Value<'_>| sort_key(value).len() < KEY_MAX;
            prop_assert!(keys == values || !is_short(&left) || !is_short(&right), "{left:?} {right:?}");
        }
    }
}
