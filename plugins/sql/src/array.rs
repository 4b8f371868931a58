//! Arrays and composites of PostgreSQL.
//!
//! An array is read and written as the text that PostgreSQL itself uses for it: unlike JSON, it preserves a text `"1"` in an
//! array of JSON and a NaN in an array of numbers, and distinguishes a second dimension from a list within JSON. An array of
//! composites is read and written as JSON, which has the names of their members.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::value::{Value, write_string};
use weir_plugin_sdk::{Error, Field, Type, Zone};

use crate::document;
use crate::native;

/// PostgreSQL has six; a text with more is not one of its arrays.
const DIMENSIONS_MAX: usize = 6;

/// An array as its column describes it.
pub(crate) struct ArrayColumn<'a> {
    element: Cow<'a, Field>,
    native: &'a str,
    dimensions: usize,
}

impl<'a> ArrayColumn<'a> {
    /// Returns the array of a column; `None` if it is not one.
    pub(crate) fn new(field: &'a Field) -> Option<Self> {
        let (native, dimensions) = native::element(field.native.as_deref()?)?;
        let element = match (field.kind, field.items.as_deref()) {
            (Type::List, Some(items)) => Cow::Borrowed(items),
            // With more than one dimension, only the catalogue's name shows what the elements are.
            (Type::Json, _) => Cow::Owned(Field::new("", native::kind(native)?)),
            _ => return None,
        };
        Some(Self {
            element,
            native,
            dimensions,
        })
    }

    /// Returns the expression that reads the array in a column of that name.
    pub(crate) fn read(&self, name: &str) -> String {
        match self.has_members() {
            true => format!("array_to_json({name})"),
            false => format!("{name}::text"),
        }
    }

    /// Returns the array of an answer.
    pub(crate) fn value(&self, raw: &RawValue, zone: &Zone) -> Value<'static> {
        let unfit = || Value::Unfit(Cow::Owned(raw.get().to_owned()));
        let mut out = String::with_capacity(raw.get().len());
        if self.has_members() {
            return match each_leaf(raw, &self.element, self.native, &mut out, &finite_json) {
                Some(()) => self.typed(out, zone),
                None => unfit(),
            };
        }
        match serde_json::from_str::<Option<Cow<'_, str>>>(raw.get()) {
            Ok(None) => Value::Null,
            Ok(Some(text)) => match self.read_literal(&text, zone, &mut out) {
                Some(()) => Value::Json(Cow::Owned(out)),
                None => unfit(),
            },
            Err(_) => unfit(),
        }
    }

    /// Returns the text to bind for a list of JSON; `None` if the array cannot hold it.
    pub(crate) fn text(&self, json: &str, zone: &Zone) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).ok()?;
        let mut out = String::with_capacity(json.len());
        match self.has_members() {
            true => {
                let leaf = |raw: &RawValue, field: &Field, native: &str| {
                    member_json(raw, field, native, zone)
                };
                each_leaf(raw, &self.element, self.native, &mut out, &leaf)?;
            }
            false => self.write_literal(raw, 1, zone, &mut out)?,
        }
        Some(out)
    }

    /// Returns the expression of the array whose text is bound at `place`.
    pub(crate) fn written(&self, place: &str) -> Result<String, Error> {
        let native = native::cast(self.native)?;
        Ok(match self.has_members() {
            true => format!(
                "ARRAY(SELECT CASE WHEN jsonb_typeof(e) <> 'null' THEN jsonb_populate_record(NULL::{native}, e) END \
                 FROM jsonb_array_elements({place}::jsonb) AS e)"
            ),
            false => format!("{place}::{native}[]"),
        })
    }

    fn has_members(&self) -> bool {
        self.element.kind == Type::Record
    }

    fn typed(&self, json: String, zone: &Zone) -> Value<'static> {
        let list = Field {
            kind: Type::List,
            items: Some(Box::new(self.element.clone().into_owned())),
            ..Field::default()
        };
        match RawValue::from_string(json) {
            Ok(raw) => Value::from_json(&raw, &list, zone).into_owned(),
            Err(_) => Value::Null,
        }
    }

    fn delimiter(&self) -> u8 {
        if self.native == "box" { b';' } else { b',' }
    }

    /// Reads `{1,NULL,"a b"}`, with explicit dimensions in front if they do not begin at 1.
    fn read_literal(&self, text: &str, zone: &Zone, out: &mut String) -> Option<()> {
        let text = match text.starts_with('[') {
            true => text.split_once('=')?.1,
            false => text,
        };
        let mut literal = LiteralReader { text, at: 0 };
        self.read_dimension(&mut literal, 1, zone, out)?;
        (literal.at == text.len()).then_some(())
    }

    fn read_dimension(
        &self,
        literal: &mut LiteralReader<'_>,
        depth: usize,
        zone: &Zone,
        out: &mut String,
    ) -> Option<()> {
        if depth > DIMENSIONS_MAX {
            return None;
        }
        literal.expect(b'{')?;
        out.push('[');
        let mut is_first = true;
        while literal.peek()? != b'}' {
            if !std::mem::take(&mut is_first) {
                literal.expect(self.delimiter())?;
                out.push(',');
            }
            match literal.peek()? {
                b'{' => self.read_dimension(literal, depth + 1, zone, out)?,
                b'"' => self.read_element(&literal.quoted()?, zone, out),
                _ => match literal.bare(self.delimiter())? {
                    "NULL" => out.push_str("null"),
                    text => self.read_element(text, zone, out),
                },
            }
        }
        literal.expect(b'}')?;
        out.push(']');
        Some(())
    }

    /// Writes the JSON of an element.
    fn read_element(&self, text: &str, zone: &Zone, out: &mut String) {
        let field = &*self.element;
        match field.kind {
            // Padding is not part of the text.
            Type::String if self.native == "bpchar" => {
                write_string(text.trim_end_matches(' '), out)
            }
            Type::String => write_string(text, out),
            Type::Boolean => out.push_str(match text {
                "t" | "true" => "true",
                "f" | "false" => "false",
                _ => return write_string(text, out),
            }),
            Type::Json => match document::passable(text, DIMENSIONS_MAX) {
                Some(json) => out.push_str(&json),
                None => write_string(text, out),
            },
            Type::Date | Type::Datetime => match native::without_era(text) {
                Some(text) => Value::from_text(&text, field, zone).write_json(out),
                None => out.push_str("null"),
            },
            _ if native::is_not_finite(text) => out.push_str("null"),
            _ => Value::from_text(text, field, zone).write_json(out),
        }
    }

    /// Writes `{"1",NULL}` for a list of JSON.
    fn write_literal(
        &self,
        raw: &RawValue,
        depth: usize,
        zone: &Zone,
        out: &mut String,
    ) -> Option<()> {
        let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        // PostgreSQL would make one empty array of empty ones.
        if depth > DIMENSIONS_MAX || (depth > 1 && elements.is_empty()) {
            return None;
        }
        out.push('{');
        for (at, raw) in elements.into_iter().enumerate() {
            if at > 0 {
                out.push(char::from(self.delimiter()));
            }
            let is_list = raw.get().starts_with('[');
            match self.element.kind {
                _ if raw.get() == "null" => out.push_str("NULL"),
                // A list may be an element here, so that the depth decides.
                Type::Json if depth < self.dimensions => {
                    self.write_literal(raw, depth + 1, zone, out)?
                }
                Type::Json => write_quoted(&self.element_text(raw, zone)?, out),
                _ if is_list && self.dimensions > 1 => {
                    self.write_literal(raw, depth + 1, zone, out)?
                }
                _ => write_quoted(&self.element_text(raw, zone)?, out),
            }
        }
        out.push('}');
        Some(())
    }

    fn element_text(&self, raw: &RawValue, zone: &Zone) -> Option<String> {
        let value = Value::from_json(raw, &self.element, zone);
        native::text(&value, self.native, Some(zone))
    }
}

/// A text of PostgreSQL for an array, and how far it was read.
struct LiteralReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> LiteralReader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Reads an element up to the delimiter or the end of its array.
    fn bare(&mut self, delimiter: u8) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let length = rest
            .bytes()
            .position(|byte| byte == delimiter || byte == b'}')?;
        self.at += length;
        (length > 0).then_some(&rest[..length])
    }

    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        self.expect(b'"')?;
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let mut has_escapes = false;
        let length = rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            has_escapes |= escaped;
            ends
        })?;
        self.at += length + 1;
        let text = &rest[..length];
        if !has_escapes {
            return Some(Cow::Borrowed(text));
        }
        let mut plain = String::with_capacity(length);
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            plain.push(if char == '\\' { chars.next()? } else { char });
        }
        Some(Cow::Owned(plain))
    }
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out.push('"');
}

/// Rewrites JSON, with `leaf` for each value that is neither a list nor a record of its type. Returns `None` for a text
/// that is not JSON.
fn each_leaf(
    raw: &RawValue,
    field: &Field,
    native: &str,
    out: &mut String,
    leaf: &dyn Fn(&RawValue, &Field, &str) -> Option<String>,
) -> Option<()> {
    let text = raw.get();
    if text.starts_with('[') && field.kind != Type::Json {
        let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let item = field.items.as_deref().unwrap_or(field);
        let native = native::element(native).map_or(native, |(element, _)| element);
        out.push('[');
        for (at, raw) in elements.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            each_leaf(raw, item, native, out, leaf)?;
        }
        out.push(']');
        return Some(());
    }
    if text.starts_with('{') && field.kind == Type::Record {
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
        out.push('{');
        for (at, (key, raw)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_string(&key, out);
            out.push(':');
            match field.fields.iter().find(|member| member.key == key) {
                Some(member) => {
                    let native = member.native.as_deref().unwrap_or_default();
                    each_leaf(raw, member, native, out, leaf)?;
                }
                None => out.push_str(raw.get()),
            }
        }
        out.push('}');
        return Some(());
    }
    out.push_str(&leaf(raw, field, native)?);
    Some(())
}

/// Returns the JSON of a composite's member with null for what the value table does not have.
fn finite_json(raw: &RawValue, field: &Field, _native: &str) -> Option<String> {
    let is_dated = matches!(field.kind, Type::Date | Type::Datetime);
    if raw.get().starts_with('"') && (is_dated || field.kind == Type::Decimal) {
        let text: Cow<'_, str> = serde_json::from_str(raw.get()).ok()?;
        let text = match is_dated {
            true => native::without_era(&text),
            false => Some(text).filter(|text| !native::is_not_finite(text)),
        };
        return Some(text.map_or_else(|| "null".to_owned(), |text| string_json(&text)));
    }
    Some(raw.get().to_owned())
}

/// Returns the JSON from which PostgreSQL makes a composite's member.
fn member_json(raw: &RawValue, field: &Field, native: &str, zone: &Zone) -> Option<String> {
    if !matches!(field.kind, Type::Date | Type::Datetime) || raw.get() == "null" {
        return Some(raw.get().to_owned());
    }
    let value = Value::from_json(raw, field, zone);
    native::text(&value, native, Some(zone)).map(|text| string_json(&text))
}

fn string_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    write_string(text, &mut json);
    json
}
