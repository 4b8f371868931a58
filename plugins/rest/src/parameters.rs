//! Writes the value of a parameter outside a body, in the styles of OpenAPI.

use weir_plugin_sdk::serde_json::{Map, Value};

use crate::request::encode;
use crate::settings::{Param, Style};

/// Writes a value for a path or a header.
pub(crate) fn text(param: &Param, value: &Value) -> String {
    let explodes = param.explode.unwrap_or(false);
    match (param.style, value) {
        (Some(_), Value::Array(items)) => joined(items, ","),
        (Some(_), Value::Object(members)) => {
            let between = if explodes { "=" } else { "," };
            members.iter().map(|(name, value)| format!("{name}{between}{}", plain(value))).collect::<Vec<_>>().join(",")
        }
        _ => plain(value),
    }
}

/// Writes a value for a query.
pub(crate) fn pairs(param: &Param, name: &str, value: &Value) -> Vec<(String, String)> {
    let one = |text: String| vec![(name.to_owned(), text)];
    let explodes = param.explode.unwrap_or(param.style == Some(Style::Form));
    match (param.style, value) {
        (None, _) => one(plain(value)),
        (Some(Style::DeepObject), Value::Object(_)) => {
            let mut found = Vec::new();
            deep(name.to_owned(), value, &mut found);
            found
        }
        (Some(_), Value::Array(items)) if items.is_empty() => Vec::new(),
        (Some(_), Value::Array(items)) if explodes => items.iter().map(|item| (name.to_owned(), plain(item))).collect(),
        (Some(style), Value::Array(items)) => one(joined(
            items,
            match style {
                Style::SpaceDelimited => " ",
                Style::PipeDelimited => "|",
                _ => ",",
            },
        )),
        (Some(_), Value::Object(members)) if explodes => {
            members.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
        (Some(_), value) => one(text(param, value)),
    }
}

/// Writes the body of a form: a list repeats its name, and nested values are JSON.
pub(crate) fn form(members: &Map<String, Value>) -> String {
    let mut body = String::new();
    let values = members.iter().flat_map(|(name, value)| match value {
        Value::Array(items) => items.iter().map(|item| (name, item)).collect(),
        value => vec![(name, value)],
    });
    for (name, value) in values {
        if !body.is_empty() {
            body.push('&');
        }
        encode(name, &mut body);
        body.push('=');
        encode(&plain(value), &mut body);
    }
    body
}

fn deep(name: String, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(member, value)| deep(format!("{name}[{member}]"), value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| found.push((name.clone(), plain(item)))),
        value => found.push((name, plain(value))),
    }
}

fn joined(items: &[Value], between: &str) -> String {
    items.iter().map(plain).collect::<Vec<_>>().join(between)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
            (json!({ "style": "form", "explode": false }), &list, "n=a b,2"),
            (json!({ "style": "spaceDelimited" }), &list, "n=a b 2"),
            (json!({ "style": "pipeDelimited" }), &list, "n=a b|2"),
            (json!({ "style": "form" }), &object, r#"x=1&y=["p","q"]"#),
            (json!({ "style": "form", "explode": false }), &object, r#"n=x,1,y,["p","q"]"#),
            (json!({ "style": "deepObject" }), &object, "n[x]=1&n[y]=p&n[y]=q"),
            (json!({ "style": "form" }), &json!([]), ""),
        ];
        for (settings, value, expected) in cases {
            let mut whole = settings.clone();
            whole["type"] = json!("json");
            let param: Param = serde_json::from_value(whole).expect("a parameter");
            let written: Vec<_> =
                pairs(&param, "n", value).into_iter().map(|(name, text)| format!("{name}={text}")).collect();
            assert_eq!(written.join("&"), expected, "{settings}");
        }
        let simple: Param = serde_json::from_value(json!({ "type": "json", "style": "simple" })).expect("one");
        assert_eq!(text(&simple, &list), "a b,2");
        assert_eq!(form(json!({ "a": "x&y", "b": [1, 2] }).as_object().expect("one")), "a=x%26y&b=1&b=2");
    }
}
