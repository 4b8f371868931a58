//! Any headers beside a right body: only those that repeat the body are let through, each once.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use weir::{
    era::{RequestEra, modern, names_modern},
    wire::{MessageBody, RpcMessage},
};

const NAMES: [&str; 5] = [
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "traceparent",
    "accept",
];
const TOOL: &str = "tool é";
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool é","_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

// A line each: the first byte picks the name, the others are the value.
fuzz_target!(|bytes: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(16) {
        let Some((name, value)) = line.split_first() else {
            continue;
        };
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        let Ok(value) = HeaderValue::from_bytes(value) else {
            continue;
        };
        headers.append(name, value);
    }
    names_modern(&headers);
    let Ok(MessageBody::One(RpcMessage::Request { id, method, params })) = MessageBody::read(BODY.as_bytes()) else {
        panic!("the body is right");
    };
    let params = params.read().expect("the params are right");
    assert!(
        matches!(
            RequestEra::detect(&method, &params.meta, Some(&headers)),
            Ok(RequestEra::Modern)
        ),
        "no header makes it legacy"
    );
    if modern::admit(id, &method, params, Some(&headers)).is_err() {
        return;
    }
    let one = |name: &str| {
        let all: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        assert_eq!(all.len(), 1, "{name}: {headers:?}");
        all[0].trim_ascii().to_vec()
    };
    assert_eq!(one("mcp-protocol-version"), b"2026-07-28");
    assert_eq!(one("mcp-method"), b"tools/call");
    let name = one("mcp-name");
    assert!(
        name == TOOL.as_bytes() || name.starts_with(b"=?base64?dG9vbCDDqQ"),
        "{headers:?}"
    );
});
