//! JSON as a database keeps it, which takes more than the value table has. One such value in a record must not cost the list
//! that it is in.

use std::borrow::Cow;
use std::collections::HashSet;

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::value::{Value, ValueMembers, compact_json, write_string};
use weir_plugin_sdk::{Field, Type, Zone};

use crate::dialect::SqlDialect;

/// The levels of lists and objects that a value may have within the records of an answer, which has 64.
const DEPTH_MAX: usize = 62;

/// Returns the JSON, record or list that a column holds; `None` for anything else. SQLite and MySQL answer JSON as text, and a
/// text that is not JSON remains a text.
pub(crate) fn value(
    raw: &RawValue,
    field: &Field,
    zone: &Zone,
    dialect: SqlDialect,
) -> Option<Value<'static>> {
    if !matches!(field.kind, Type::Json | Type::Record | Type::List) {
        return None;
    }
    let text = raw.get();
    let is_text = dialect != SqlDialect::Postgresql && text.starts_with('"');
    let inside: Option<String> = is_text.then(|| serde_json::from_str(text).unwrap_or_default());
    let json = match (field.kind, &inside) {
        (Type::Json, _) if text == "null" => None,
        (Type::Json, Some(inside)) => passable(inside, 0).or_else(|| passable(text, 0)),
        (Type::Json, None) => passable(text, 0),
        (_, Some(inside)) => compact_json(inside, field, zone),
        (_, None) => None,
    };
    json.map(|json| Value::Json(Cow::Owned(json)))
}

/// Returns JSON text without spaces as the value table has it: of two members with the same name the first is kept, half a
/// character becomes U+FFFD, and numbers that are not finite become null, as do lists and objects below the deepest level.
/// `depth` is how many levels are around it. `None` if it is not JSON.
pub(crate) fn passable(text: &str, depth: usize) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let whole = whole_characters(raw.get());
    let mut out = String::with_capacity(whole.len());
    write(&whole, depth, &mut out)?;
    Some(out)
}

fn write(text: &str, depth: usize, out: &mut String) -> Option<()> {
    match text.as_bytes().first()? {
        b'[' | b'{' if depth >= DEPTH_MAX => out.push_str("null"),
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (at, element) in elements.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element.get(), depth + 1, out)?;
            }
            out.push(']');
        }
        b'{' => {
            let ValueMembers(members) = serde_json::from_str(text).ok()?;
            let mut names = HashSet::new();
            out.push('{');
            for (name, member) in members {
                // Of several members of one name, the first stays.
                if !names.insert(name.clone()) {
                    continue;
                }
                if names.len() > 1 {
                    out.push(',');
                }
                write_string(&name, out);
                out.push(':');
                write(member.get(), depth + 1, out)?;
            }
            out.push('}');
        }
        b'"' => write_string(&serde_json::from_str::<String>(text).ok()?, out),
        b'-' | b'0'..=b'9' if !text.parse::<f64>().is_ok_and(f64::is_finite) => {
            out.push_str("null");
        }
        _ => out.push_str(text),
    }
    Some(())
}

/// Replaces half characters, such as a lone `\ud800`, in the text of JSON.
fn whole_characters(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (written, size) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&escape[..12], 12),
            (Some(0xd800..=0xdfff), _) => ("\\ufffd", 6),
            (Some(_), _) => (&escape[..6], 6),
            (None, _) => (&escape[..2], 2),
        };
        out.push_str(written);
        rest = &escape[size..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the UTF-16 unit of an escape that a text begins with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_passed_on_as_the_value_table_has_it() {
        for (kept, shown) in [
            (
                r#"{"k":1,"k":{"a":2},"b":[ 1.50 ]}"#,
                r#"{"k":1,"b":[1.50]}"#,
            ),
            (
                "[1e400,-1e400,1e300,123456789012345678901]",
                "[null,null,1e300,123456789012345678901]",
            ),
            (
                r#"{"\ud800":"a\udc00\\ud800\ud83e\udd80"}"#,
                "{\"\u{fffd}\":\"a\u{fffd}\\\\ud800🦀\"}",
            ),
            (r#""\uD800""#, "\"\u{fffd}\""),
            (" null ", "null"),
            (r#"[true , "\u0041\u0001"]"#, r#"[true,"A\u0001"]"#),
        ] {
            assert_eq!(passable(kept, 0).as_deref(), Some(shown), "{kept}");
        }
        for text in ["", "[1,2", "NaN", "{k:1}", "1 2"] {
            assert_eq!(passable(text, 0), None, "{text}");
        }
    }

    #[test]
    fn json_ends_at_the_deepest_level() {
        let nested = |levels: usize, inside: &str| {
            format!("{}{inside}{}", "[".repeat(levels), "]".repeat(levels))
        };
        assert_eq!(passable(&nested(62, "1"), 0), Some(nested(62, "1")));
        assert_eq!(passable(&nested(63, "1"), 0), Some(nested(62, "null")));
        assert_eq!(passable(&nested(5000, ""), 0), Some(nested(62, "null")));
    }
}
