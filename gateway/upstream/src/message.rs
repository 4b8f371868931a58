//! JSON-RPC as it is sent and received here. Ids are ours: numbers.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;
use weir_protocol::ProtocolVersion;

use crate::{error::UpstreamRefusal, settings::ClientCapability};

pub(crate) const MODERN: &str = ProtocolVersion::V2026_07_28.as_str();
/// The newest first.
pub(crate) const LEGACY: [&str; 4] = [
    ProtocolVersion::V2025_11_25.as_str(),
    ProtocolVersion::V2025_06_18.as_str(),
    ProtocolVersion::V2025_03_26.as_str(),
    ProtocolVersion::V2024_11_05.as_str(),
];

/// A message for the server, and what transports must know about it.
pub(crate) struct OutgoingMessage {
    pub(crate) text: String,
    /// `None` for what has no answer.
    pub(crate) id: Option<u64>,
    pub(crate) method: &'static str,
    /// The name of a tool or a prompt, or the URI of a resource.
    pub(crate) name: Option<String>,
    /// Arguments that a header repeats: its name after `Mcp-Param-`, and the value.
    pub(crate) headers: Vec<(String, String)>,
    /// The revision that both agreed on, or that is asked for in the modern era.
    pub(crate) version: Option<&'static str>,
}

impl OutgoingMessage {
    pub(crate) fn is_modern(&self) -> bool {
        self.version == Some(MODERN)
    }

    /// Returns `true` if every server that is sent this request supports it.
    pub(crate) fn is_known_everywhere(&self) -> bool {
        matches!(
            self.method,
            "tools/call" | "tools/list" | "prompts/get" | "resources/read"
        )
    }
}

/// Reads an id of this client, or a progress token, as a server repeats it. Some write the number as a text, and programs whose
/// numbers are all doubles write `7.0`.
pub(crate) fn own_id(id: &RawValue) -> Option<u64> {
    let number = bare(id.get());
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().ok();
    }
    whole(number).and_then(|number| number.try_into().ok())
}

/// Returns a text without its quotes.
fn bare(json: &str) -> &str {
    json.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(json)
}

/// Reads a number without a fraction, however it is written.
fn whole(number: &str) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    let number: f64 = number.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

/// Removes the byte order mark that some servers write first.
pub(crate) fn without_mark(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('\u{feff}').map_or(text, str::trim_start)
}

/// Any message of a server. A member that is given twice makes it none.
#[derive(Deserialize)]
pub(crate) struct IncomingMessage<'m> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'m RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'m RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'m RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'m RawValue>,
}

impl IncomingMessage<'_> {
    /// Returns the method of a request or a notification. Some servers repeat that of a request in its answer.
    pub(crate) fn method(&self) -> Option<&str> {
        let is_answer = self.id.is_some() && (self.result.is_some() || self.error.is_some());
        self.method.as_deref().filter(|_| !is_answer)
    }
}

/// Reads an error. Some servers write only its message, or the code as a text.
pub(crate) fn read_refusal(error: &RawValue) -> UpstreamRefusal {
    #[derive(Default, Deserialize)]
    struct ErrorMembers<'e> {
        #[serde(borrow, default)]
        code: Option<&'e RawValue>,
        #[serde(borrow, default)]
        message: Option<&'e RawValue>,
        #[serde(borrow, default)]
        data: Option<&'e RawValue>,
    }
    let members = match error.get().starts_with('{') {
        true => serde_json::from_str(error.get()).unwrap_or_default(),
        false => ErrorMembers {
            message: Some(error),
            ..ErrorMembers::default()
        },
    };
    let words = |words: &RawValue| {
        serde_json::from_str::<String>(words.get()).unwrap_or_else(|_| words.get().to_owned())
    };
    let code = members.code.and_then(|code| whole(bare(code.get())));
    UpstreamRefusal {
        code: code.unwrap_or_default(),
        message: members.message.map(words).unwrap_or_default(),
        data: members.data.map(ToOwned::to_owned),
    }
}

/// The progress of a call, as the server reports it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct UpstreamProgress {
    pub progress: f64,
    #[serde(default, deserialize_with = "if_readable")]
    pub total: Option<f64>,
    #[serde(default, deserialize_with = "if_readable")]
    pub message: Option<String>,
}

/// Reads a member that counts as absent if it is of another type.
fn if_readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    member: D,
) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(member)?;
    Ok(serde_json::from_value(value).ok())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressParams<'m> {
    #[serde(borrow)]
    pub(crate) progress_token: &'m RawValue,
    #[serde(flatten)]
    pub(crate) progress: UpstreamProgress,
}

/// A log message of the server.
#[derive(Deserialize)]
pub(crate) struct LogParams<'m> {
    #[serde(borrow)]
    pub(crate) level: Cow<'m, str>,
    #[serde(borrow, default)]
    pub(crate) logger: Option<Cow<'m, str>>,
    #[serde(borrow)]
    pub(crate) data: &'m RawValue,
}

#[derive(Deserialize)]
pub(crate) struct UpdatedParams {
    pub(crate) uri: String,
}

/// Returns a JSON object of members that are JSON already.
pub(crate) fn object(members: &[(&str, &str)]) -> String {
    let mut text = String::from("{");
    for (name, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push('"');
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
    text.push('}');
    text
}

pub(crate) fn text(value: &str) -> String {
    serde_json::to_string(value).expect("a text has a JSON form")
}

pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    object(&[
        ("jsonrpc", "\"2.0\""),
        ("id", &id.to_string()),
        ("method", &text(method)),
        ("params", params),
    ])
}

/// Returns the answer to a request of the server.
pub(crate) fn result(id: &RawValue, result: &RawValue) -> String {
    object(&[
        ("jsonrpc", "\"2.0\""),
        ("id", id.get()),
        ("result", result.get()),
    ])
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    object(&[
        ("jsonrpc", "\"2.0\""),
        ("method", &text(method)),
        ("params", params),
    ])
}

pub(crate) fn capabilities(ask: &[ClientCapability], knows_tasks: bool) -> String {
    let (apps, others): (Vec<ClientCapability>, Vec<ClientCapability>) =
        ask.iter().partition(|ask| **ask == ClientCapability::Ui);
    let mut members: Vec<&str> = others.iter().map(|ask| ask.capability()).collect();
    let extensions: Vec<&str> = apps
        .iter()
        .map(|apps| apps.capability())
        .chain(knows_tasks.then_some(TASKS))
        .collect();
    let extensions = format!(r#""extensions":{{{}}}"#, extensions.join(","));
    if !apps.is_empty() || knows_tasks {
        members.push(&extensions);
    }
    format!("{{{}}}", members.join(","))
}

/// A member of `extensions`: calls may be answered with a task.
const TASKS: &str = r#""io.modelcontextprotocol/tasks":{}"#;

/// This client's name and version; JSON.
pub(crate) const CLIENT_INFO: &str = concat!(
    r#"{"name":"weir","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn ids_are_read_as_servers_repeat_them() {
        for (id, own) in [
            ("7", Some(7)),
            (r#""7""#, Some(7)),
            ("7.0", Some(7)),
            ("7e0", Some(7)),
            (r#""7.0""#, Some(7)),
            ("7.5", None),
            ("-7", None),
            ("[7]", None),
            ("null", None),
            (r#""""#, None),
            (r#""nan""#, None),
        ] {
            assert_eq!(own_id(raw(id)), own, "{id}");
        }
    }

    #[test]
    fn progress_is_read_without_what_is_of_another_type_in_it() {
        for (json, total, message) in [
            (
                r#"{"progressToken":7,"progress":1,"total":3,"message":"a","x":1}"#,
                Some(3.0),
                Some("a"),
            ),
            (
                r#"{"progressToken":7,"progress":1.0,"total":"3","message":5}"#,
                None,
                None,
            ),
            (
                r#"{"progressToken":7,"progress":1,"total":null}"#,
                None,
                None,
            ),
        ] {
            let read: ProgressParams<'_> = serde_json::from_str(json).expect("progress");
            let expected = UpstreamProgress {
                progress: 1.0,
                total,
                message: message.map(str::to_owned),
            };
            assert_eq!(read.progress, expected, "{json}");
        }
    }

    #[test]
    fn the_words_of_an_error_are_read_whatever_its_form() {
        for (error, code, words) in [
            (r#"{"code":-32000,"message":"used up"}"#, -32000, "used up"),
            (
                r#"{"code":"-32000","message":"used up"}"#,
                -32000,
                "used up",
            ),
            (
                r#"{"code":-32000.0,"message":"used up"}"#,
                -32000,
                "used up",
            ),
            (r#"{"code":"QUOTA","message":"used up"}"#, 0, "used up"),
            (
                r#"{"code":null,"message":null,"data":"used up"}"#,
                0,
                "used up",
            ),
            (
                r#"{"message":{"text":"used up"}}"#,
                0,
                r#"{"text":"used up"}"#,
            ),
            (r#""used up""#, 0, "used up"),
            (r#"["used up"]"#, 0, r#"["used up"]"#),
        ] {
            let read = read_refusal(raw(error));
            assert_eq!(
                (read.code, read.words()),
                (code, words.to_owned()),
                "{error}"
            );
        }
    }
}
