//! Questions to a raw JSON value that need no parsed one.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// Returns the text of a JSON string; `None` for anything else, lone surrogates included.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Returns `true` for an object.
pub fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Returns `true` for `[]`, as programs write an empty object whose language has one type for both.
pub fn is_empty_list(raw: &RawValue) -> bool {
    let inner = raw.get().strip_prefix('[');
    let inner = inner.and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// An integer that is sent back has no more digits: not every reader could hold it.
const DIGITS_MAX: usize = 32;

/// Returns `true` for 1 to 32 digits with an optional sign: `1.0` and `1e3` are numbers, but not written as integers.
pub fn is_integer(raw: &RawValue) -> bool {
    let digits = raw.get().strip_prefix('-').unwrap_or(raw.get());
    (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Distinguishes a member that is `null` from one that is absent, for `deserialize_with`.
pub fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads an object and nothing else, for `deserialize_with`; a derived struct would read an array by position.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct ObjectVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
        type Value = T;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

/// Reads an object, or null as an empty one, for `deserialize_with`.
pub fn object_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct ObjectOnly<T>(T);

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            object(deserializer).map(Self)
        }
    }

    let read = Option::<ObjectOnly<T>>::deserialize(deserializer)?;
    Ok(read.map(|ObjectOnly(value)| value).unwrap_or_default())
}
