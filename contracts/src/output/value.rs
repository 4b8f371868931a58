//! Reads one value, checks it against its type, and writes it in its one form.

use std::collections::HashSet;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{OutputFault, OutputWalk};
use crate::{json, shape, values};

const TOO_DEEP: &str = "nested too deep";
const TWICE: &str = "a member is there twice";

/// A column's type, ready for the walk.
pub(super) struct OutputType {
    kind: shape::ValueType,
    nullable: bool,
    /// The members of a record with their names as they are written; if empty, any members are taken.
    members: Vec<(String, Vec<u8>, OutputType)>,
    items: Option<Box<OutputType>>,
}

impl OutputType {
    pub(super) fn from_field(field: &shape::ShapeField) -> Self {
        let members = |field: &shape::ShapeField| {
            let prefix = [&quoted(&field.key)[..], b":"].concat();
            (field.key.clone(), prefix, Self::from_field(field))
        };
        Self {
            kind: field.kind,
            nullable: field.nullable,
            members: field.fields.iter().map(members).collect(),
            items: field
                .items
                .as_deref()
                .map(|items| Box::new(Self::from_field(items))),
        }
    }

    pub(super) fn may_be_null(&self) -> bool {
        self.nullable || self.kind == shape::ValueType::Json
    }

    pub(super) fn anything() -> Self {
        Self {
            kind: shape::ValueType::Json,
            nullable: true,
            members: Vec::new(),
            items: None,
        }
    }
}

/// Returns a name or text as JSON.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_text(&mut out, text);
    out
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("text into memory");
}

/// Writes the one form of a double: whole ones within ±(2^53−1) have no point, and others have the shortest digits that
/// read back.
fn write_number(out: &mut Vec<u8>, number: f64) -> bool {
    match json::canonical(number) {
        Some(number) => {
            serde_json::to_writer(out, &number).expect("a number into memory");
            true
        }
        None => false,
    }
}

fn is_safe(number: i128) -> bool {
    number.unsigned_abs() <= json::INTEGER_MAX.unsigned_abs().into()
}

pub(super) struct OutputSeed<'c, 'o> {
    pub kind: &'c OutputType,
    pub walk: &'c OutputWalk,
    pub out: &'o mut Vec<u8>,
    pub depth: usize,
}

impl<'c> OutputSeed<'c, '_> {
    fn mistyped<E: serde::de::Error>(self, found: &str) -> Result<(), E> {
        let reason = format!("expected {}, found {found}", self.kind.kind.word());
        self.unfit(reason)
    }

    fn refused<E: serde::de::Error>(self, reason: &str) -> Result<(), E> {
        let reason = format!("expected {}: {reason}", self.kind.kind.word());
        self.unfit(reason)
    }

    /// Refuses a value, or passes null in its place.
    fn unfit<E: serde::de::Error>(self, reason: String) -> Result<(), E> {
        if !self.passes_null() {
            return Err(self.walk.fail(OutputFault::Other(reason)));
        }
        self.walk.note(reason);
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn passes_null(&self) -> bool {
        self.walk.is_lenient && self.kind.may_be_null()
    }

    fn is_too_deep(&self) -> bool {
        self.depth >= json::DEPTH_MAX
    }

    /// Returns why a text does not fit.
    fn fault_of(&self, value: &str) -> Option<String> {
        use shape::ValueType as T;
        let word = self.kind.kind.word();
        match self.kind.kind {
            T::String | T::Decimal | T::Date | T::Datetime | T::Json => {
                let fits = values::is_text_of(self.kind.kind, value);
                (!fits).then(|| format!("expected {word}: a text of another form"))
            }
            _ => Some(format!("expected {word}, found a text")),
        }
    }

    fn integer<E: serde::de::Error>(self, number: i128) -> Result<(), E> {
        match self.kind.kind {
            // JSON is passed on with its digits, and so are integers of an operation.
            shape::ValueType::Integer | shape::ValueType::Json
                if is_safe(number)
                    || self.kind.kind == shape::ValueType::Json
                    || self.walk.is_lenient =>
            {
                self.out.extend_from_slice(number.to_string().as_bytes());
                Ok(())
            }
            shape::ValueType::Integer => self.refused("an integer outside ±(2^53−1)"),
            shape::ValueType::Number => {
                write_number(self.out, number as f64);
                Ok(())
            }
            _ => self.mistyped("a number"),
        }
    }
}

impl OutputSeed<'_, '_> {
    /// Takes a text; with its quotes as it is if `is_plain`.
    fn text<E: serde::de::Error>(self, value: &str, is_plain: bool) -> Result<(), E> {
        if self.walk.reads_digits
            && let Some(digits) = value.strip_prefix(json::DIGITS_MARK)
        {
            return self.digits(digits);
        }
        if let Some(fault) = self.fault_of(value) {
            return self.unfit(fault);
        }
        match is_plain {
            true => {
                self.out.push(b'"');
                self.out.extend_from_slice(value.as_bytes());
                self.out.push(b'"');
            }
            false => write_text(self.out, value),
        }
        Ok(())
    }

    /// Takes an integer of more than 64 bits.
    fn digits<E: serde::de::Error>(self, digits: &str) -> Result<(), E> {
        match self.kind.kind {
            shape::ValueType::Integer if !self.walk.is_lenient => {
                self.refused("an integer outside ±(2^53−1)")
            }
            shape::ValueType::Json | shape::ValueType::Integer => {
                self.out.extend_from_slice(digits.as_bytes());
                Ok(())
            }
            shape::ValueType::Number => {
                match write_number(self.out, digits.parse().unwrap_or(f64::INFINITY)) {
                    true => Ok(()),
                    false => self.refused("a number that is not finite"),
                }
            }
            _ => self.mistyped("a number"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for OutputSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OutputSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.kind.kind.word())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        match self.kind.may_be_null() {
            true => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            false => self.refused("found null"),
        }
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        match self.kind.kind {
            shape::ValueType::Boolean | shape::ValueType::Json => {
                self.out
                    .extend_from_slice(if value { b"true" } else { b"false" });
                Ok(())
            }
            _ => self.mistyped("a boolean"),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        if value.fract() == 0.0 && value.abs() > json::INTEGER_MAX as f64 {
            self.walk.has_large_double.set(true);
        }
        match self.kind.kind {
            shape::ValueType::Json | shape::ValueType::Integer
                if value.fract() == 0.0 && value.abs() <= json::INTEGER_MAX as f64 =>
            {
                self.integer(value as i128)
            }
            shape::ValueType::Integer if value.fract() != 0.0 => {
                self.refused("a number with a fraction")
            }
            shape::ValueType::Integer if !self.walk.is_lenient => {
                self.refused("an integer outside ±(2^53−1)")
            }
            shape::ValueType::Number | shape::ValueType::Json | shape::ValueType::Integer => {
                match write_number(self.out, value) {
                    true => Ok(()),
                    false => self.refused("a number that is not finite"),
                }
            }
            _ => self.mistyped("a number"),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.text(value, false)
    }

    /// Takes a borrowed text. It is lent only if the JSON has no escape in it: then it is in its one form already.
    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<(), E> {
        self.text(value, true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let fits = matches!(
            self.kind.kind,
            shape::ValueType::List | shape::ValueType::Json
        );
        if !fits || self.is_too_deep() {
            if self.passes_null() {
                while access.next_element::<IgnoredAny>()?.is_some() {}
            }
            return match fits {
                true => self.refused(TOO_DEEP),
                false => self.mistyped("a list"),
            };
        }
        let depth = self.depth + 1;
        let anything = OutputType::anything();
        let kind = self.kind.items.as_deref().unwrap_or(&anything);
        let (walk, out) = (self.walk, self.out);
        out.push(b'[');
        let mut index = 0_usize;
        loop {
            let before = out.len();
            if index > 0 {
                out.push(b',');
            }
            let seed = OutputSeed {
                kind,
                walk,
                out: &mut *out,
                depth,
            };
            if walk
                .at(access.next_element_seed(seed), || index.to_string())?
                .is_none()
            {
                out.truncate(before);
                out.push(b']');
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let fits = matches!(
            self.kind.kind,
            shape::ValueType::Record | shape::ValueType::Json
        );
        if !fits || self.is_too_deep() {
            if self.passes_null() {
                while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            }
            return match fits {
                true => self.refused(TOO_DEEP),
                false => self.mistyped("an object"),
            };
        }
        match self.kind.kind {
            shape::ValueType::Record if !self.kind.members.is_empty() => self.record(access),
            _ => self.any_object(access),
        }
    }
}

impl OutputSeed<'_, '_> {
    /// Writes a nested record's own members, in their order. A member that is absent is null if it may be.
    fn record<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let depth = self.depth + 1;
        let members = &self.kind.members;
        let mut found: Vec<Option<Vec<u8>>> = vec![None; members.len()];
        let mut others = HashSet::new();
        while let Some(key) = access.next_key::<std::borrow::Cow<'_, str>>()? {
            let twice = match members.iter().position(|(name, ..)| *name == key) {
                Some(position) => {
                    let mut out = Vec::new();
                    let seed = OutputSeed {
                        kind: &members[position].2,
                        walk: self.walk,
                        out: &mut out,
                        depth,
                    };
                    self.walk
                        .at(access.next_value_seed(seed), || key.to_string())?;
                    found[position].replace(out).is_some()
                }
                None => {
                    self.walk
                        .at(access.next_value::<IgnoredAny>(), || key.to_string())?;
                    !others.insert(key.to_string())
                }
            };
            if twice {
                let fault = self.walk.fail(OutputFault::Other(TWICE.to_owned()));
                return self.walk.at(Err(fault), || key.to_string());
            }
        }
        self.out.push(b'{');
        for (index, ((name, prefix, kind), value)) in members.iter().zip(found).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(prefix);
            match value {
                Some(value) => self.out.extend_from_slice(&value),
                None if kind.may_be_null() => self.out.extend_from_slice(b"null"),
                None => {
                    let missing =
                        format!("expected {}: a member is missing", self.kind.kind.word());
                    let fault = self.walk.fail(OutputFault::Other(missing));
                    return self.walk.at(Err(fault), || name.clone());
                }
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn any_object<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let depth = self.depth + 1;
        let anything = OutputType::anything();
        let mut seen = HashSet::new();
        self.out.push(b'{');
        while let Some(key) = access.next_key::<String>()? {
            if seen.contains(&key) {
                if !self.walk.is_lenient {
                    let fault = self.walk.fail(OutputFault::Other(TWICE.to_owned()));
                    return self.walk.at(Err(fault), || key);
                }
                self.walk.note(TWICE.to_owned());
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            if !seen.is_empty() {
                self.out.push(b',');
            }
            write_text(self.out, &key);
            self.out.push(b':');
            let seed = OutputSeed {
                kind: &anything,
                walk: self.walk,
                out: &mut *self.out,
                depth,
            };
            self.walk.at(access.next_value_seed(seed), || key.clone())?;
            seen.insert(key);
        }
        self.out.push(b'}');
        Ok(())
    }
}
