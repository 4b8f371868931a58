//! The stand-in of the model vendors: it requests the calls of a script, one a turn, in the format of whichever
//! interface is used, and keeps what was sent to it.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, Uri},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::web;

/// A vendor's interface, known by the end of its path.
#[derive(Clone, Copy, Debug)]
enum Interface {
    /// Chat Completions of OpenAI.
    Chat,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    Messages,
    /// `generateContent` of Gemini.
    Gemini,
}

/// One call that the model asks for.
#[derive(Clone)]
pub struct Wanted {
    pub tool: &'static str,
    pub arguments: Value,
}

/// A tool as a framework declared it to the vendor.
#[derive(Clone, Debug)]
pub struct Declared {
    pub name: String,
    pub schema: Value,
    /// Whether the vendor is to restrict its model to the schema.
    pub is_strict: bool,
}

pub struct Vendor {
    pub base: String,
    state: Arc<Script>,
}

struct Script {
    calls: Vec<Wanted>,
    seen: Mutex<Vec<(Interface, Value)>>,
}

impl Vendor {
    pub async fn start(calls: &[Wanted]) -> Self {
        let state = Arc::new(Script {
            calls: calls.to_vec(),
            seen: Mutex::default(),
        });
        let app = Router::new().fallback(answer).with_state(state.clone());
        let base = web::serve(app).await;
        Self { base, state }
    }

    /// Returns the tools of the model's first turn.
    pub fn declared(&self) -> Vec<Declared> {
        let seen = self.state.seen.lock();
        seen.first()
            .map(|(interface, request)| interface.declared(request))
            .unwrap_or_default()
    }

    /// Returns what the model read after each of its calls, as JSON text.
    pub fn read(&self) -> Vec<String> {
        let seen = self.state.seen.lock();
        seen.iter()
            .skip(1)
            .map(|(interface, request)| interface.last(request).to_string())
            .collect()
    }
}

async fn answer(
    State(script): State<Arc<Script>>,
    uri: Uri,
    body: String,
) -> (StatusCode, Json<Value>) {
    let request: Value = serde_json::from_str(&body).unwrap_or_default();
    let Some(interface) = Interface::at(uri.path()).filter(|_| request["stream"] != true) else {
        return (
            StatusCode::NOT_FOUND,
            Json(json!({"error": {"message": format!("nothing is at {uri}")}})),
        );
    };
    let mut seen = script.seen.lock();
    seen.push((interface, request));
    let turn = seen.len() - 1;
    let reply = match script.calls.get(turn) {
        Some(wanted) => interface.call(turn, wanted),
        None => interface.done(),
    };
    (StatusCode::OK, Json(reply))
}

/// Returns the arguments of a function, which come in Gemini's own form or as JSON Schema.
fn parameters_of_gemini(function: &Value) -> &Value {
    let names = [
        "parameters",
        "parametersJsonSchema",
        "parameters_json_schema",
    ];
    names
        .iter()
        .find_map(|name| function.get(*name))
        .unwrap_or(&Value::Null)
}

impl Interface {
    fn at(path: &str) -> Option<Self> {
        let ends = [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
            (":generateContent", Self::Gemini),
        ];
        ends.into_iter()
            .find_map(|(end, interface)| path.ends_with(end).then_some(interface))
    }

    fn declared(self, request: &Value) -> Vec<Declared> {
        let tools = request["tools"].as_array().into_iter().flatten();
        let declared = |tool: &Value, schema: &Value| Declared {
            name: tool["name"].as_str().unwrap_or_default().to_owned(),
            schema: schema.clone(),
            is_strict: tool["strict"] == true,
        };
        match self {
            Self::Chat => tools
                .map(|tool| &tool["function"])
                .map(|tool| declared(tool, &tool["parameters"]))
                .collect(),
            Self::Responses => tools
                .map(|tool| declared(tool, &tool["parameters"]))
                .collect(),
            Self::Messages => tools
                .map(|tool| declared(tool, &tool["input_schema"]))
                .collect(),
            Self::Gemini => tools
                .flat_map(|tool| {
                    tool["functionDeclarations"]
                        .as_array()
                        .into_iter()
                        .flatten()
                })
                .map(|tool| declared(tool, parameters_of_gemini(tool)))
                .collect(),
        }
    }

    /// Returns the last message to the model.
    fn last(self, request: &Value) -> Value {
        let answer = match self {
            Self::Chat | Self::Messages => &request["messages"],
            Self::Responses => &request["input"],
            Self::Gemini => &request["contents"],
        };
        answer
            .as_array()
            .and_then(|answer| answer.last())
            .cloned()
            .unwrap_or_default()
    }

    fn call(self, turn: usize, wanted: &Wanted) -> Value {
        let (id, name, arguments) = (format!("call_{turn}"), wanted.tool, &wanted.arguments);
        match self {
            Self::Chat => {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let calls = json!([{"id": id, "type": "function", "function": function}]);
                let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
                self.whole(json!([{"index": 0, "message": message, "finish_reason": "tool_calls"}]))
            }
            Self::Responses => self.whole(json!([{
                "type": "function_call", "id": format!("fc_{turn}"), "call_id": id, "name": name,
                "arguments": arguments.to_string(), "status": "completed",
            }])),
            Self::Messages => {
                let mut message = self.whole(
                    json!([{"type": "tool_use", "id": id, "name": name, "input": arguments}]),
                );
                message["stop_reason"] = "tool_use".into();
                message
            }
            Self::Gemini => {
                self.whole(json!([{"functionCall": {"name": name, "args": arguments}}]))
            }
        }
    }

    /// Returns the model's last word.
    fn done(self) -> Value {
        let text = "done";
        match self {
            Self::Chat => {
                let message = json!({"role": "assistant", "content": text});
                self.whole(json!([{"index": 0, "message": message, "finish_reason": "stop"}]))
            }
            Self::Responses => self.whole(json!([{
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }])),
            Self::Messages => self.whole(json!([{"type": "text", "text": text}])),
            Self::Gemini => self.whole(json!([{"text": text}])),
        }
    }

    fn whole(self, content: Value) -> Value {
        match self {
            Self::Chat => json!({
                "id": "chat_1", "object": "chat.completion", "created": 1, "model": "stand-in", "choices": content,
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }),
            Self::Responses => json!({
                "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "stand-in",
                "output": content, "parallel_tool_calls": false, "tool_choice": "auto", "tools": [],
                "usage": {
                    "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
                },
            }),
            Self::Messages => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": content,
                "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
            }),
            Self::Gemini => json!({
                "candidates": [{"content": {"role": "model", "parts": content}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
                "modelVersion": "stand-in",
            }),
        }
    }
}
