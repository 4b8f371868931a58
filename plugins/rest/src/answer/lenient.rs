//! Reads the answer of an operation as far as it goes: an operation must not be repeated for one odd member.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use weir_plugin_sdk::serde_json::value::RawValue;

/// A number that is not valid: the gateway passes null instead and reports it.
pub(crate) const NO_NUMBER: &str = "-1e400";
/// Half a character: the gateway passes U+FFFD instead and reports it.
const HALF_CHARACTER: &str = "\\ud800";
/// What some services write for numbers that JSON does not have.
const ODD_NUMBERS: &[&str] = &["NaN", "Infinity", "-Infinity"];

/// Returns an answer as JSON if only these parts of it are invalid: numbers that are not finite, bytes that are not UTF-8, and
/// control characters in texts. `None` if it has no such part.
pub(crate) fn mended(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = String::with_capacity(body.len());
    let (mut in_text, mut is_escaped, mut is_mended) = (false, false, false);
    for chunk in body.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(next) = rest.chars().next() {
            let odd = ODD_NUMBERS.iter().find(|word| rest.starts_with(**word));
            if let (Some(word), false) = (odd, in_text) {
                out.push_str(NO_NUMBER);
                rest = &rest[word.len()..];
                is_mended = true;
                continue;
            }
            match next {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = in_text,
                '"' => in_text = !in_text,
                _ => {}
            }
            match in_text && next < ' ' {
                true => {
                    out.push_str(&format!("\\u{:04x}", u32::from(next)));
                    is_mended = true;
                }
                false => out.push(next),
            }
            rest = &rest[next.len_utf8()..];
        }
        if !chunk.invalid().is_empty() {
            out.push_str(HALF_CHARACTER);
            is_mended = true;
        }
    }
    is_mended.then_some(out.into_bytes())
}

/// The members of an object in order; several may have the same name.
pub(crate) struct MemberList<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for MemberList<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MemberListVisitor)
    }
}

struct MemberListVisitor;

impl<'de> Visitor<'de> for MemberListVisitor {
    type Value = MemberList<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(MemberName(name)) = access.next_key()? {
            members.push((name, access.next_value()?));
        }
        Ok(MemberList(members))
    }
}

/// The name of a member. As bytes it may hold half a character, for which a text would be refused with the whole object.
struct MemberName(String);

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(MemberNameVisitor)
    }
}

struct MemberNameVisitor;

impl Visitor<'_> for MemberNameVisitor {
    type Value = MemberName;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a member's name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<MemberName, E> {
        Ok(MemberName(String::from_utf8_lossy(name).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_no_json_are_mended() {
        for (body, expected) in [
            (
                br#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \" Infinity"}"#.as_slice(),
                Some(r#"{"a":-1e400,"b":[-1e400,-1e400],"c":"NaN \" Infinity"}"#),
            ),
            (b"[\"M\xfcller\"]".as_slice(), Some(r#"["M\ud800ller"]"#)),
            (
                b"[\"a\tb\\\\\",\n1]".as_slice(),
                Some("[\"a\\u0009b\\\\\",\n1]"),
            ),
            (br#"{"a":1} and more"#.as_slice(), None),
        ] {
            let found = mended(body).map(|found| String::from_utf8(found).expect("UTF-8"));
            assert_eq!(found.as_deref(), expected);
        }
    }
}
