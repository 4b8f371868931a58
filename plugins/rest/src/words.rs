//! Finds the words in which a service explains why it refuses a request, so that the agent reads them.

use weir_plugin_sdk::http::Response;
use weir_plugin_sdk::serde_json::{self, Value};

/// The characters that an agent reads of a refusal.
const WORDS_MAX: usize = 300;
/// The bytes of an answer that are looked through: a refusal is short.
const BODY_MAX: usize = 64 << 10;
/// The reasons of one answer that are read.
const REASONS_MAX: usize = 5;
const DEPTH_MAX: usize = 4;
/// Members of an answer that state what is wrong, the most telling first: problem details (RFC 9457), FastAPI, most others,
/// OAuth, JSON:API and GraphQL.
const MEMBERS: [&str; 6] = [
    "detail",
    "message",
    "error_description",
    "error",
    "errors",
    "title",
];

/// Returns the service's explanation of a refused request, on one line; `None` for other answers and if there is none. The words
/// of 401 and 407 are about the credentials of the connection, which an agent cannot change. `body` is the body without a mark.
pub(crate) fn refusal_words(response: &Response, body: &[u8]) -> Option<String> {
    if !(400..500).contains(&response.status)
        || [401, 407].contains(&response.status)
        || body.len() > BODY_MAX
    {
        return None;
    }
    let mut reasons = Vec::new();
    match serde_json::from_slice(body) {
        Ok(body) => add_reasons(&body, 0, &mut reasons),
        Err(_) => {
            let kind = response.header("content-type").unwrap_or_default();
            if kind
                .trim_start()
                .to_ascii_lowercase()
                .starts_with("text/plain")
            {
                reasons.push(String::from_utf8_lossy(body).into_owned());
            }
        }
    }
    let reasons = reasons.iter().map(|reason| one_line(reason));
    let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    (!reasons.is_empty()).then(|| shorten(&reasons.join("; ")))
}

fn add_reasons(value: &Value, depth: usize, reasons: &mut Vec<String>) {
    if depth > DEPTH_MAX || reasons.len() >= REASONS_MAX {
        return;
    }
    match value {
        Value::String(reason) if reason.trim().is_empty() => {}
        Value::String(reason) => reasons.push(reason.clone()),
        Value::Array(values) => values
            .iter()
            .for_each(|value| add_reasons(value, depth + 1, reasons)),
        Value::Object(members) => {
            if let Some(Value::String(reason)) = members.get("msg") {
                reasons.push(match place(members.get("loc")) {
                    Some(place) => format!("{place}: {reason}"),
                    None => reason.clone(),
                });
                return;
            }
            let before = reasons.len();
            for name in MEMBERS {
                if let Some(value) = members.get(name) {
                    add_member(name, value, depth, reasons);
                }
                // One member with words is enough.
                if reasons.len() > before {
                    return;
                }
            }
        }
        _ => {}
    }
}

fn add_member(name: &str, value: &Value, depth: usize, reasons: &mut Vec<String>) {
    match value {
        // Each member is a field, and what is wrong with it.
        Value::Object(fields) if name == "errors" => {
            for (field, value) in fields {
                let before = reasons.len();
                add_reasons(value, depth + 1, reasons);
                for reason in &mut reasons[before..] {
                    *reason = format!("{field}: {reason}");
                }
            }
        }
        value => add_reasons(value, depth + 1, reasons),
    }
}

/// Returns the place of a fault in the request as FastAPI names it, such as `["body", "price"]`.
fn place(loc: Option<&Value>) -> Option<String> {
    let steps = loc?.as_array()?.iter().skip(1).map(|step| match step {
        Value::String(step) => step.clone(),
        step => step.to_string(),
    });
    let place = steps.collect::<Vec<_>>().join(".");
    (!place.is_empty()).then_some(place)
}

/// Returns a text on one line, without characters that no reader sees.
fn one_line(text: &str) -> String {
    let is_unseen = |character: char| {
        matches!(character,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let text: String = text
        .chars()
        .filter(|character| !is_unseen(*character))
        .map(|character| match character {
            '"' => '\'',
            _ if character.is_control() => ' ',
            _ => character,
        })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use weir_plugin_sdk::testing::http;

    use super::*;

    fn words(response: &Response) -> Option<String> {
        refusal_words(response, &response.body)
    }

    #[test]
    fn the_words_of_a_refusal_are_found() {
        for (status, body, expected) in [
            (
                422,
                r#"{"type":"about:blank","title":"Unprocessable","detail":"The price is too high."}"#,
                Some("The price is too high."),
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","items",0,"price"],"msg":"must be more than 0","type":"x"},{"loc":["query"],"msg":"no"}]}"#,
                Some("items.0.price: must be more than 0; no"),
            ),
            (
                400,
                r#"{"message":["a","b"],"error":"Bad Request"}"#,
                Some("a; b"),
            ),
            (
                400,
                r#"{"message":" ","error":{"code":3,"message":"No such \"city\"."}}"#,
                Some("No such 'city'."),
            ),
            (
                400,
                r#"{"detail":{"code":7},"message":["",{}],"error":"The city is unknown."}"#,
                Some("The city is unknown."),
            ),
            (
                400,
                r#"{"title":"One or more errors.","errors":{"Price":["Too high.","Not whole."]}}"#,
                Some("Price: Too high.; Price: Not whole."),
            ),
            (
                409,
                r#"{"errors":[{"status":"409","title":"Taken"}]}"#,
                Some("Taken"),
            ),
            (400, r#""plain""#, Some("plain")),
            (429, r#"{"error":"daily quota"}"#, Some("daily quota")),
            (
                400,
                "{\"error\":\"a\\n\\u001b[31mb\u{202e}\u{e0041}c\"}",
                Some("a [31mbc"),
            ),
            (401, r#"{"message":"the key is wrong"}"#, None),
            (407, r#"{"message":"the key is wrong"}"#, None),
            (500, r#"{"message":"stack trace"}"#, None),
            (200, r#"{"message":"done"}"#, None),
            (400, r#"{"code":17,"message":null}"#, None),
            (400, "<html>no</html>", None),
            (400, "", None),
        ] {
            let response = http::json(status, body);
            assert_eq!(words(&response).as_deref(), expected, "{status} {body}");
        }
        let mut response = http::json(400, "Bad city\n");
        assert_eq!(words(&response), None);
        response.headers = vec![("content-type".into(), "Text/Plain; charset=utf-8".into())];
        assert_eq!(words(&response).as_deref(), Some("Bad city"));
    }

    #[test]
    fn the_words_of_a_refusal_are_bounded() {
        let long = words(&http::json(
            400,
            &format!(r#"{{"error":"{}"}}"#, "é".repeat(9_000)),
        ));
        assert_eq!(long.map(|words| words.chars().count()), Some(WORDS_MAX + 1));
        let nested = format!("{}\"deep\"{}", "[".repeat(50), "]".repeat(50));
        assert_eq!(words(&http::json(400, &nested)), None);
        let many = format!("[{}]", vec![r#""x""#; 9_000].join(","));
        let many = words(&http::json(400, &many));
        assert_eq!(many.as_deref(), Some("x; x; x; x; x"));
        let large = format!(r#"{{"error":"a","more":"{}"}}"#, "x".repeat(BODY_MAX));
        assert_eq!(words(&http::json(400, &large)), None);
    }
}
