//! Texts, and what travels as one: paths, characters, times, bytes.

use std::borrow::Cow;
use std::path::PathBuf;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use serde_json::Value;

use super::{Kind, Mismatch, ToolSchema, Writer};
use crate::Bytes;
use crate::value::write_string;

fn text(value: Value) -> Result<String, Mismatch> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Mismatch::new("must be a text")),
    }
}

impl ToolSchema for String {
    const KIND: Kind = Kind::Text;

    fn write(schema: &mut Writer) {
        schema.set("type", "\"string\"");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        text(value)
    }

    fn print(&self, out: &mut String) {
        write_string(self, out);
    }
}

impl ToolSchema for Cow<'static, str> {
    const KIND: Kind = Kind::Text;

    fn write(schema: &mut Writer) {
        String::write(schema);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        text(value).map(Cow::Owned)
    }

    fn print(&self, out: &mut String) {
        write_string(self, out);
    }
}

impl ToolSchema for PathBuf {
    const KIND: Kind = Kind::Text;

    fn write(schema: &mut Writer) {
        String::write(schema);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        text(value).map(PathBuf::from)
    }

    fn print(&self, out: &mut String) {
        write_string(&self.to_string_lossy(), out);
    }
}

impl ToolSchema for char {
    const KIND: Kind = Kind::FixedText;

    fn write(schema: &mut Writer) {
        String::write(schema);
        schema.set("minLength", "1");
        schema.set("maxLength", "1");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        let text = text(value)?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(Mismatch::new("must be one character")),
        }
    }

    fn print(&self, out: &mut String) {
        write_string(self.encode_utf8(&mut [0; 4]), out);
    }
}

macro_rules! times {
    ($($type:ty: $format:literal, $wanted:literal;)+) => {$(
        impl ToolSchema for $type {
            const KIND: Kind = Kind::FixedText;

            fn write(schema: &mut Writer) {
                String::write(schema);
                schema.set_text("format", $format);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                text(value)?.parse().map_err(|_| Mismatch::new($wanted))
            }

            fn print(&self, out: &mut String) {
                write_string(&self.to_string(), out);
            }
        }
    )+};
}

times! {
    Date: "date", "must be a date as `2024-05-06`";
    Timestamp: "date-time", "must be a point in time as `2024-05-06T07:08:09Z`";
}

impl ToolSchema for Time {
    const KIND: Kind = Kind::FixedText;

    fn write(schema: &mut Writer) {
        String::write(schema);
        schema.set_text("format", "time");
    }

    /// Reads a time of day. The format `time` has an offset, which a clock on the wall has not, so a given one is
    /// dropped.
    fn read(value: Value) -> Result<Self, Mismatch> {
        let text = text(value)?;
        let clock = match text
            .get(1..)
            .and_then(|rest| rest.find(['Z', 'z', '+', '-']))
        {
            Some(at) => &text[..=at],
            None => text.as_str(),
        };
        clock
            .parse()
            .map_err(|_| Mismatch::new("must be a time as `07:08:09Z`"))
    }

    fn print(&self, out: &mut String) {
        write_string(&format!("{self}Z"), out);
    }
}

impl ToolSchema for Bytes {
    const KIND: Kind = Kind::FixedText;

    fn write(schema: &mut Writer) {
        String::write(schema);
        schema.set_text("contentEncoding", "base64");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        Bytes::from_base64(&text(value)?).ok_or_else(|| Mismatch::new("must be base64"))
    }

    fn print(&self, out: &mut String) {
        write_string(&self.to_base64(), out);
    }
}
