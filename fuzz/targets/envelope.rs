//! Any bytes as a JSON-RPC message: what is read is what every JSON reader reads, and every refusal is a whole answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use weir::wire::{BATCH_MAX, MessageBody, MalformedMessage, RpcMessage, error_answer, request_id};

fuzz_target!(|bytes: &[u8]| {
    match MessageBody::read(bytes) {
        Ok(MessageBody::One(message)) => check(
            message,
            std::str::from_utf8(bytes).expect("it was read as text"),
        ),
        Ok(MessageBody::Batch(messages)) => {
            assert!((1..=BATCH_MAX).contains(&messages.len()));
            for raw in messages {
                match RpcMessage::read(raw.get()) {
                    Ok(message) => check(message, raw.get()),
                    Err(malformed) => refuse(&malformed),
                }
            }
        }
        Err(malformed) => refuse(&malformed),
    }
    if let Some(id) = request_id(bytes) {
        assert!(id.as_json().len() <= 1024);
    }
});

fn check(message: RpcMessage<'_>, text: &str) {
    serde_json::from_str::<&RawValue>(text).expect("what is read is JSON");
    // JSON may hold numbers that a value cannot.
    let Ok(whole) = serde_json::from_str::<Value>(text) else {
        return;
    };
    assert_eq!(whole["jsonrpc"], "2.0");
    let (method, params) = match message {
        RpcMessage::Request { id, method, params } => {
            assert_eq!(
                serde_json::from_str::<Value>(id.as_json()).expect("an id is JSON"),
                whole["id"]
            );
            (method, params)
        }
        RpcMessage::Notification { method, params } => {
            assert!(whole.get("id").is_none_or(Value::is_null));
            (method, params)
        }
        RpcMessage::Response(response) => {
            let is = |member: &str, raw: &RawValue| {
                assert_eq!(
                    serde_json::from_str::<Value>(raw.get()).expect("a part is JSON"),
                    whole[member]
                );
            };
            match response.outcome {
                Ok(result) => is("result", result),
                Err(error) => is("error", error),
            }
            return;
        }
    };
    assert_eq!(*method, whole["method"]);
    if let Err(error) = params.read() {
        answer(&error_answer(None, &error));
    }
}

fn refuse(malformed: &MalformedMessage<'_>) {
    answer(&error_answer(malformed.id.as_ref(), &malformed.error));
}

/// Checks an answer. On stdio a line is a message.
fn answer(answer: &[u8]) {
    assert!(!answer.contains(&b'\n'));
    let answer: Value = serde_json::from_slice(answer).expect("an answer is JSON");
    assert!(
        answer["error"]["code"].is_i64() && answer["error"]["message"].is_string(),
        "{answer}"
    );
}
