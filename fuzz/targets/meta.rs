//! Any text as `_meta` of a request: only a request with all members of a modern one passes as modern.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use weir::{
    era::{RequestEra, modern},
    wire::{MessageBody, RpcMessage, error_answer},
};

fuzz_target!(|meta: &str| {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{meta}}}}}"#
    );
    let Ok(MessageBody::One(RpcMessage::Request { id, method, params })) =
        MessageBody::read(text.as_bytes())
    else {
        return;
    };
    let Ok(params) = params.read() else { return };
    let Ok(era) = RequestEra::detect(&method, &params.meta, None) else {
        return;
    };
    serde_json::from_str::<&RawValue>(&text).expect("what is read is JSON");
    // JSON may hold numbers that a value cannot.
    let Ok(sent) = serde_json::from_str::<Value>(&text) else {
        return;
    };
    let meta = &sent["params"]["_meta"];
    let version = &meta["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(
        era == RequestEra::Modern,
        meta.get("io.modelcontextprotocol/protocolVersion")
            .is_some()
    );
    if era == RequestEra::Legacy {
        return;
    }
    match modern::admit(id.clone(), &method, params, None) {
        Ok(request) => {
            assert_eq!(version, request.version.as_str());
            assert!(
                meta["io.modelcontextprotocol/clientCapabilities"].is_object(),
                "{meta}"
            );
            assert!(
                meta.get("io.modelcontextprotocol/clientInfo")
                    .is_none_or(Value::is_object),
                "{meta}"
            );
            if let Some(token) = request.progress_token {
                let token: Value = serde_json::from_str(&token).expect("a token is JSON");
                assert!(token.is_string() || token.is_number(), "{token}");
            }
        }
        Err(error) => {
            let answer: Value =
                serde_json::from_slice(&error_answer(Some(&id), &error)).expect("JSON");
            assert_eq!(answer["id"], 1);
        }
    }
});
