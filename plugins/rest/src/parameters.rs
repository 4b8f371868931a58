//! Writes the values of parameters in the styles of OpenAPI: outside a body, and in a form.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_plugin_sdk::serde_json::{Map, Value};

use crate::request::{PathSegment, encode};
use crate::settings::{RestParam, RestParamLocation, RestParamStyle};

/// Returns the value that is written: a text, where the parameter is JSON outside a body of it.
pub(crate) fn written<'v>(param: &RestParam, value: &'v Value) -> Cow<'v, Value> {
    match param.style {
        Some(RestParamStyle::Json) => Cow::Owned(Value::String(value.to_string())),
        _ => Cow::Borrowed(value),
    }
}

/// Writes a value for a header.
pub(crate) fn text(param: &RestParam, value: &Value) -> String {
    with_commas(param, value, str::to_owned)
}

/// Writes a value for a path.
pub(crate) fn segment(param: &RestParam, value: &Value) -> PathSegment {
    PathSegment {
        plain: text(param, value),
        encoded: encoded(param, value),
    }
}

/// Encodes a value: the commas between items are those of the style, and one inside an item is `%2C`.
fn encoded(param: &RestParam, value: &Value) -> String {
    with_commas(param, value, encoded_text)
}

/// Writes a value for a query whose items stand between commas, encoded; `None` if they do not.
pub(crate) fn comma_pair(param: &RestParam, name: &str, value: &Value) -> Option<String> {
    let has_items = value.is_array() || value.is_object();
    let is_meant = param.style == Some(RestParamStyle::Form) && param.explode == Some(false);
    (is_meant && has_items && !is_unsent(param, value))
        .then(|| format!("{}={}", encoded_text(name), encoded(param, value)))
}

/// Returns `true` for a list or an object that no style sends at all.
pub(crate) fn is_unsent(param: &RestParam, value: &Value) -> bool {
    match value {
        Value::Array(items) => param.style.is_some() && sent_items(items).next().is_none(),
        Value::Object(members) => param.style.is_some() && sent_members(members).next().is_none(),
        _ => false,
    }
}

/// Returns the character between the items of a list or an object if an item contains it and no spelling could distinguish
/// the two: a service would read another list.
pub(crate) fn held_separator(param: &RestParam, value: &Value) -> Option<char> {
    let separator = match (param.style?, param.place) {
        (_, RestParamLocation::Header) => ',',
        (style, _) if !explodes(param) => style_separator(style)?,
        _ => return None,
    };
    let holds = |value: &Value| plain(value).contains(separator);
    let is_held = match value {
        Value::Array(items) => sent_items(items).any(holds),
        Value::Object(members) => {
            sent_members(members).any(|(name, value)| name.contains(separator) || holds(value))
        }
        _ => false,
    };
    is_held.then_some(separator)
}

/// Returns `true` if a value for a header, or one of its items, begins or ends with a blank: HTTP takes those around a header's
/// value and around the commas of a list as nothing.
pub(crate) fn has_outer_blank(param: &RestParam, value: &Value) -> bool {
    let is_padded = |text: &str| text.starts_with(' ') || text.ends_with(' ');
    let holds = |value: &Value| is_padded(&plain(value));
    match (param.style, value) {
        (Some(_), Value::Array(items)) => sent_items(items).any(holds),
        (Some(_), Value::Object(members)) => {
            sent_members(members).any(|(name, value)| is_padded(name) || holds(value))
        }
        _ => holds(value),
    }
}

/// Returns the character that a style puts between items and that means nothing else in a query.
fn style_separator(style: RestParamStyle) -> Option<char> {
    match style {
        RestParamStyle::SpaceDelimited => Some(' '),
        RestParamStyle::PipeDelimited => Some('|'),
        _ => None,
    }
}

/// Returns `true` if each item of a list is sent under the parameter's name separately.
pub(crate) fn explodes(param: &RestParam) -> bool {
    param
        .explode
        .unwrap_or(param.style == Some(RestParamStyle::Form))
}

/// Returns the items that are sent: outside JSON there is no null, and the text `null` would be kept as one.
fn sent_items(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().filter(|item| !item.is_null())
}

/// Returns the members that are sent, as [`sent_items`] does.
fn sent_members(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    members.iter().filter(|(_, value)| !value.is_null())
}

fn with_commas(param: &RestParam, value: &Value, write: fn(&str) -> String) -> String {
    let one = |value: &Value| write(&plain(value));
    let texts: Vec<String> = match (param.style, value) {
        (Some(_), Value::Array(items)) => sent_items(items).map(one).collect(),
        (Some(_), Value::Object(members)) => {
            let between = if param.explode == Some(true) {
                "="
            } else {
                ","
            };
            sent_members(members)
                .map(|(name, value)| format!("{}{between}{}", write(name), one(value)))
                .collect()
        }
        _ => return one(value),
    };
    texts.join(",")
}

fn encoded_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode(text, &mut out);
    out
}

/// Writes a value for a query.
pub(crate) fn pairs(param: &RestParam, name: &str, value: &Value) -> Vec<(String, String)> {
    let one = |text: String| vec![(name.to_owned(), text)];
    let explodes = explodes(param);
    match (param.style, value) {
        (None, _) => one(plain(value)),
        _ if is_unsent(param, value) => Vec::new(),
        (Some(RestParamStyle::DeepObject), Value::Object(_) | Value::Array(_)) => {
            let mut found = Vec::new();
            deep(name.to_owned(), value, &mut found);
            found
        }
        (Some(_), Value::Array(items)) if explodes => sent_items(items)
            .map(|item| (name.to_owned(), plain(item)))
            .collect(),
        (Some(_), Value::Object(members)) if explodes => sent_members(members)
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        (Some(style), value) => one(match (style_separator(style), value) {
            (Some(separator), Value::Array(items)) => {
                joined(sent_items(items).map(plain), separator)
            }
            (Some(separator), Value::Object(members)) => {
                let parts = sent_members(members);
                joined(
                    parts.flat_map(|(name, value)| [name.clone(), plain(value)]),
                    separator,
                )
            }
            _ => text(param, value),
        }),
    }
}

/// Writes the body of a form. Unless a style defines otherwise, a list repeats its name, and nested values are JSON.
pub(crate) fn form(members: &Map<String, Value>, params: &BTreeMap<String, RestParam>) -> String {
    let written = members.iter().flat_map(|(name, value)| -> Vec<String> {
        let is_meant = |(own, param): &(&String, &RestParam)| {
            param.place == RestParamLocation::Body && param.name.as_ref().unwrap_or(own) == name
        };
        let styled = params
            .iter()
            .find(is_meant)
            .map(|(_, param)| param)
            .filter(|param| param.style.is_some());
        if let Some(pair) = styled.and_then(|param| comma_pair(param, name, value)) {
            return vec![pair];
        }
        let pairs = match (styled, value) {
            (Some(param), value) => pairs(param, name, &written(param, value)),
            (None, Value::Array(items)) => sent_items(items)
                .map(|item| (name.clone(), plain(item)))
                .collect(),
            (None, value) => vec![(name.clone(), plain(value))],
        };
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| format!("{}={}", encoded_text(name), encoded_text(text)))
            .collect()
    });
    written.collect::<Vec<_>>().join("&")
}

/// Writes members as `name[member]`. OpenAPI leaves lists open: an item is `name[]`, or `name[0]` if it has members of its
/// own, as most services read them that support this style.
fn deep(name: String, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(member, value)| deep(format!("{name}[{member}]"), value, found));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
            let place = if item.is_object() || item.is_array() {
                index.to_string()
            } else {
                String::new()
            };
            deep(format!("{name}[{place}]"), item, found);
        }),
        Value::Null => {}
        value => found.push((name, plain(value))),
    }
}

fn joined(parts: impl Iterator<Item = String>, separator: char) -> String {
    parts.collect::<Vec<_>>().join(&separator.to_string())
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use weir_plugin_sdk::serde_json::{self, json};

    use super::*;

    #[test]
    fn values_are_written_as_openapi_says() {
        let list = json!(["a b", 2]);
        let object = json!({ "x": 1, "y": ["p", "q"] });
        let cases = [
            (json!({}), &list, r#"n=["a b",2]"#),
            (json!({ "style": "form" }), &list, "n=a b&n=2"),
            (
                json!({ "style": "form", "explode": false }),
                &list,
                "n=a b,2",
            ),
            (json!({ "style": "spaceDelimited" }), &list, "n=a b 2"),
            (json!({ "style": "pipeDelimited" }), &list, "n=a b|2"),
            (json!({ "style": "form" }), &object, r#"x=1&y=["p","q"]"#),
            (
                json!({ "style": "form", "explode": false }),
                &object,
                r#"n=x,1,y,["p","q"]"#,
            ),
            (
                json!({ "style": "deepObject" }),
                &object,
                "n[x]=1&n[y][]=p&n[y][]=q",
            ),
            (
                json!({ "style": "deepObject", "explode": true }),
                &list,
                "n[]=a b&n[]=2",
            ),
            (
                json!({ "style": "deepObject" }),
                &json!({ "x": null, "y": [1, null] }),
                "n[y][]=1",
            ),
            (
                json!({ "style": "form" }),
                &json!({ "x": null, "y": 1 }),
                "y=1",
            ),
            (
                json!({ "style": "deepObject" }),
                &json!([{ "x": 1 }, { "x": [2] }]),
                "n[0][x]=1&n[1][x][]=2",
            ),
            (json!({ "style": "form" }), &json!([]), ""),
            (
                json!({ "style": "form", "explode": false }),
                &json!([1, null]),
                "n=1",
            ),
            (
                json!({ "style": "pipeDelimited" }),
                &json!([null, 1, 2]),
                "n=1|2",
            ),
            (
                json!({ "style": "pipeDelimited" }),
                &json!({ "x": 1, "y": null, "z": "a" }),
                "n=x|1|z|a",
            ),
            (
                json!({ "style": "spaceDelimited" }),
                &json!({ "x": 1 }),
                "n=x 1",
            ),
            (json!({ "style": "spaceDelimited" }), &json!([null]), ""),
            (
                json!({ "style": "form", "explode": false }),
                &json!({ "x": null }),
                "",
            ),
        ];
        for (settings, value, expected) in cases {
            let mut whole = settings.clone();
            whole["type"] = json!("json");
            let param: RestParam = serde_json::from_value(whole).expect("a parameter");
            let written: Vec<_> = pairs(&param, "n", value)
                .into_iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect();
            assert_eq!(written.join("&"), expected, "{settings}");
        }
        let simple: RestParam =
            serde_json::from_value(json!({ "type": "json", "style": "simple" })).expect("one");
        assert_eq!(text(&simple, &list), "a b,2");
        let commas = json!(["a,b", "c"]);
        assert_eq!(encoded(&simple, &commas), "a%2Cb,c");
        assert_eq!(encoded(&simple, &object), "x,1,y,%5B%22p%22%2C%22q%22%5D");
        let param =
            |settings: Value| -> RestParam { serde_json::from_value(settings).expect("one") };
        let form_of =
            |explode: bool| json!({ "type": "json", "style": "form", "explode": explode });
        let pair = |explode, value: &Value| comma_pair(&param(form_of(explode)), "i d", value);
        assert_eq!(pair(false, &commas).as_deref(), Some("i%20d=a%2Cb,c"));
        assert_eq!(
            pair(false, &json!({ "x": 1 })).as_deref(),
            Some("i%20d=x,1")
        );
        for (explode, value) in [(true, &commas), (false, &json!([])), (false, &json!("a,b"))] {
            assert_eq!(pair(explode, value), None);
        }
        let nulls = json!(["a", null]);
        assert_eq!(text(&simple, &nulls), "a");
        assert_eq!(
            encoded(&simple, &json!({ "x": null, "y": "a,b" })),
            "y,a%2Cb"
        );
        assert_eq!(pair(false, &nulls).as_deref(), Some("i%20d=a"));
        assert_eq!(pair(false, &json!([null])), None);
        let members = json!({ "a": "x&y", "b": [1, null, 2], "c": { "d": 1 } });
        let members = members.as_object().expect("one");
        assert_eq!(
            form(members, &BTreeMap::new()),
            "a=x%26y&b=1&b=2&c=%7B%22d%22%3A1%7D"
        );
        let params = json!({
            "list": { "type": "json", "style": "form", "explode": false, "as": "b" },
            "c": { "type": "json", "style": "deepObject" },
        });
        let params = serde_json::from_value(params).expect("parameters");
        assert_eq!(form(members, &params), "a=x%26y&b=1,2&c%5Bd%5D=1");
    }
}
