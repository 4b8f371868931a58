//! Writes values as YAML on one line, since serde-saphyr cannot mix styles and comments.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes a text plain if no YAML reader could take it for anything else, else in double quotes.
pub(crate) fn scalar(text: &str) -> String {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || " _-./()".contains(next))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    match plain {
        true => text.to_owned(),
        // A JSON string is a YAML string.
        false => Value::String(text.to_owned()).to_string().chars().fold(
            String::new(),
            |mut out, next| {
                match next {
                    // YAML takes these for line ends or for no characters, or they are spaces that look like others.
                    '\u{7f}'..='\u{a0}'
                    | '\u{2000}'..='\u{200f}'
                    | '\u{202f}'
                    | '\u{2028}'
                    | '\u{2029}'
                    | '\u{feff}'
                    | '\u{fffe}'
                    | '\u{ffff}' => {
                        let _ = write!(out, "\\u{:04X}", u32::from(next));
                    }
                    next => out.push(next),
                }
                out
            },
        ),
    }
}

/// Writes objects and lists in flow style.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(flow).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let members: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", scalar(key), flow(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}
