//! Makes requests: paths are made from templates, and parameters cannot leave their place.

use weir_plugin_sdk::serde_json::{Map, Value};
use weir_plugin_sdk::{Error, http};

use crate::settings::RestSettings;

pub(crate) fn request(settings: &RestSettings, method: &str, path: String) -> http::Request {
    let mut headers: Vec<_> = settings
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("accept"))
    {
        headers.push(("accept".to_owned(), "application/json".to_owned()));
    }
    http::Request {
        connection: settings.connection.clone(),
        method: method.to_owned(),
        path,
        headers,
        ..http::Request::default()
    }
}

/// A value of a path: as it is, and encoded.
#[derive(Clone)]
pub(crate) struct PathSegment {
    pub(crate) plain: String,
    pub(crate) encoded: String,
}

impl From<String> for PathSegment {
    fn from(plain: String) -> Self {
        let mut encoded = String::with_capacity(plain.len());
        encode(&plain, &mut encoded);
        Self { plain, encoded }
    }
}

/// Fills `{name}` from the values. `None` means that a path cannot contain a value, so there is no such record.
pub(crate) fn path(template: &str, values: &Map<String, Value>) -> Result<Option<String>, Error> {
    filled_path(template, |name| match values.get(name) {
        Some(Value::String(text)) => Some(text.clone().into()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string().into()),
        _ => None,
    })
}

/// Fills `{name}` as [`path`] does.
pub(crate) fn filled_path(
    template: &str,
    segment: impl Fn(&str) -> Option<PathSegment>,
) -> Result<Option<String>, Error> {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(|| {
            Error::invalid("A path of the settings has a `{` without its `}`.").field("settings")
        })?;
        let segment = segment(name).ok_or_else(|| {
            Error::invalid(format!("The path needs a value for {name:?}.")).field(name)
        })?;
        if !fits(&segment.plain) {
            return Ok(None);
        }
        encode_rest(before, &mut path);
        path.push_str(&segment.encoded);
        rest = after;
    }
    encode_rest(rest, &mut path);
    Ok(Some(path))
}

/// Writes a path as its author wrote it, with characters that a path may not have as `%xx`. Encoded ones are kept.
fn encode_rest(written: &str, out: &mut String) {
    let is_hex = |at: usize| {
        let digits = written.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    for (at, character) in written.char_indices() {
        let stays = character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?".contains(character);
        match stays || (character == '%' && is_hex(at)) {
            true => out.push(character),
            false => encode(character.encode_utf8(&mut [0; 4]), out),
        }
    }
}

/// Returns `false` for texts that the connection refuses in any path, since servers that decode it twice would leave their
/// place: an empty text, control characters, and `.` or `..` as a step of the text or of its decoded form.
pub(crate) fn fits(text: &str) -> bool {
    let steps_stay = |text: &[u8]| {
        text.split(|byte| matches!(byte, b'/' | b'\\')).all(|step| {
            let name = step.split(|byte| *byte == b';').next().unwrap_or_default();
            name != b"." && name != b".."
        })
    };
    let whole = |text: &[u8]| !text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    let decoded = decode(text.as_bytes());
    !text.is_empty()
        && [text.as_bytes(), &decoded]
            .into_iter()
            .all(|text| whole(text) && steps_stay(text))
}

/// Decodes `%xx` once; anything else is kept as it is.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

/// Writes everything but letters, digits and `-_.~` as `%xx`, so that a slash, a question mark or a second `%` remains
/// a character.
pub(crate) fn encode(text: &str, out: &mut String) {
    use std::fmt::Write;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Steps {
        stay: Vec<String>,
        leave: Vec<String>,
    }

    #[test]
    fn a_path_is_encoded_as_far_as_it_is_not() {
        for (template, expected) in [
            ("/sp ace/ü", "/sp%20ace/%C3%BC"),
            ("/sp%20ace/100%/{id}.json", "/sp%20ace/100%25/7.json"),
            ("/a|b/[x]/\"'", "/a%7Cb/%5Bx%5D/%22'"),
            ("/v1/things:find;a=b", "/v1/things:find;a=b"),
        ] {
            let values = Map::from_iter([("id".to_owned(), Value::from(7))]);
            assert_eq!(path(template, &values).unwrap().as_deref(), Some(expected));
        }
    }

    /// The gateway's connection judges the same list: a step that passes here must not be refused there as the author's
    /// fault.
    #[test]
    fn steps_are_judged_as_by_the_connection() {
        let text = include_str!("../../../tests/fixtures/path-steps.json");
        let steps: Steps = weir_plugin_sdk::serde_json::from_str(text).unwrap();
        for step in &steps.stay {
            assert!(fits(step), "{step:?}");
        }
        for step in &steps.leave {
            assert!(!fits(step), "{step:?}");
        }
    }
}
