//! What is sent: paths from templates, whose parameters stay in their place.

use weir_plugin_sdk::serde_json::{Map, Value};
use weir_plugin_sdk::{Error, http};

use crate::settings::Settings;

pub(crate) fn request(settings: &Settings, method: &str, path: String) -> http::Request {
    let mut headers: Vec<_> = settings.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
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

/// Fills `{name}` from the values. None: a value that no path can hold (empty, `.`, `..`), so nothing is there.
pub(crate) fn path(template: &str, values: &Map<String, Value>) -> Result<Option<String>, Error> {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Error::invalid("A path of the settings has a `{` without its `}`.").field("settings"))?;
        let text = match values.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => return Err(Error::invalid(format!("The path needs a value for {name:?}.")).field(name)),
        };
        if text.is_empty() || text == "." || text == ".." || text.contains('\0') {
            return Ok(None);
        }
        path.push_str(before);
        encode(&text, &mut path);
        rest = after;
    }
    path.push_str(rest);
    Ok(Some(path))
}

/// Everything but letters, digits and `-_.~` becomes `%xx`: a slash, a question mark or a second `%` stays a character.
fn encode(text: &str, out: &mut String) {
    use std::fmt::Write;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all");
        }
    }
}
