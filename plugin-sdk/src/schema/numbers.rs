//! Booleans and numbers. `usize`, `i128` and their kin are missing on purpose: see `docs/tools-from-code.md`.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64};

use serde_json::{Number, Value};

use super::{Kind, Mismatch, ToolSchema, Writer};
use crate::value::write_number;

impl ToolSchema for bool {
    const KIND: Kind = Kind::Boolean;

    fn write(schema: &mut Writer) {
        schema.set("type", "\"boolean\"");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        value
            .as_bool()
            .ok_or_else(|| Mismatch::new("must be true or false"))
    }

    fn print(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

/// Reads a whole number of 64 bits or fewer; `5.0` is one, as in JSON Schema.
fn whole(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(whole) = number.as_i64() {
        return Some(whole.into());
    }
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    number
        .as_f64()
        .filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)
        .map(|float| float as i128)
}

fn between(value: &Value, min: i128, max: i128) -> Result<i128, Mismatch> {
    match whole(value) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        Some(_) => Err(Mismatch::new(format!(
            "must be a whole number from {min} to {max}"
        ))),
        None => Err(Mismatch::new("must be a whole number")),
    }
}

fn write_integer(schema: &mut Writer, min: Option<i128>, max: Option<i128>) {
    schema.set("type", "\"integer\"");
    if let Some(min) = min {
        schema.set_number("minimum", min);
    }
    if let Some(max) = max {
        schema.set_number("maximum", max);
    }
}

macro_rules! integers {
    ($($type:ty: $min:expr, $max:expr, $byte:expr;)+) => {$(
        impl ToolSchema for $type {
            const KIND: Kind = Kind::Integer { min: <$type>::MIN as i128, max: <$type>::MAX as i128 };
            const BYTE: bool = $byte;

            fn write(schema: &mut Writer) {
                write_integer(schema, $min, $max);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                Ok(between(&value, <$type>::MIN.into(), <$type>::MAX.into())? as $type)
            }

            fn print(&self, out: &mut String) {
                out.push_str(&self.to_string());
            }
        }
    )+};
}

integers! {
    i8: Some(i8::MIN.into()), Some(i8::MAX.into()), false;
    i16: Some(i16::MIN.into()), Some(i16::MAX.into()), false;
    i32: Some(i32::MIN.into()), Some(i32::MAX.into()), false;
    i64: None, None, false;
    u8: Some(0), Some(u8::MAX.into()), true;
    u16: Some(0), Some(u16::MAX.into()), false;
    u32: Some(0), Some(u32::MAX.into()), false;
    u64: Some(0), None, false;
}

macro_rules! non_zero {
    ($($type:ty: $inner:ty, $max:expr;)+) => {$(
        impl ToolSchema for $type {
            const KIND: Kind = Kind::Integer { min: 1, max: <$inner>::MAX as i128 };

            fn write(schema: &mut Writer) {
                write_integer(schema, Some(1), $max);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                let number = between(&value, 1, <$inner>::MAX.into())? as $inner;
                <$type>::new(number).ok_or_else(|| Mismatch::new("must not be 0"))
            }

            fn print(&self, out: &mut String) {
                out.push_str(&self.to_string());
            }
        }
    )+};
}

non_zero! {
    NonZeroU8: u8, Some(u8::MAX.into());
    NonZeroU16: u16, Some(u16::MAX.into());
    NonZeroU32: u32, Some(u32::MAX.into());
    NonZeroU64: u64, None;
}

macro_rules! floats {
    ($($type:ty),+) => {$(
        impl ToolSchema for $type {
            const KIND: Kind = Kind::Number;

            fn write(schema: &mut Writer) {
                schema.set("type", "\"number\"");
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                let number = value.as_number().and_then(Number::as_f64);
                number.map(|number| number as $type).ok_or_else(|| Mismatch::new("must be a number"))
            }

            /// Prints null if the number is not finite: JSON has no other word, and the gateway refuses it.
            fn print(&self, out: &mut String) {
                if !self.is_finite() {
                    return out.push_str("null");
                }
                // The shortest text of an `f32` is not that of the same number as an `f64`.
                let shortest: f64 = self.to_string().parse().unwrap_or(f64::from(*self));
                write_number(shortest, out);
            }
        }
    )+};
}

floats!(f32, f64);
