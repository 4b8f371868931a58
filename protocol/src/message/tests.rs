//! Messages as they may arrive, as data.

use super::*;

#[track_caller]
fn refused(bytes: &[u8], code: i32, id: Option<&str>) {
    let malformed = MessageBody::read(bytes).expect_err("must be refused");
    assert_eq!(malformed.error.code, code, "{}", malformed.error.message);
    assert_eq!(malformed.error.status, 400);
    assert_eq!(malformed.id.as_ref().map(RequestId::as_json), id);
}

#[track_caller]
fn request(text: &str) -> (String, String) {
    match MessageBody::read(text.as_bytes()) {
        Ok(MessageBody::One(RpcMessage::Request { id, method, .. })) => {
            (id.as_json().to_owned(), method.into_owned())
        }
        other => panic!("{text} is a request, not {other:?}"),
    }
}

#[test]
fn not_json() {
    for body in [
        "",
        " ",
        "{",
        "nonsense",
        "{\"jsonrpc\":\"2.0\",}",
        "{} {}",
        "\u{feff}{}",
        "[1,",
        "[1]x",
        "'a'",
    ] {
        refused(body.as_bytes(), -32700, None);
    }
    refused(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        -32700,
        None,
    );
    refused(b"{\"a\":\"\n\"}", -32700, None);
}

#[test]
fn not_a_message() {
    for body in [
        "1",
        "\"a\"",
        "null",
        "true",
        "[]",
        "{}",
        r#"{"jsonrpc":"1.0","method":"ping"}"#,
    ] {
        refused(body.as_bytes(), -32600, None);
    }
    for id in ["null", "1.0", "1e3", "true", "{}", "[1]", r#""\ud800""#] {
        refused(
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes(),
            -32600,
            None,
        );
    }
    refused(br#"{"jsonrpc":"2.0","id":7}"#, -32600, Some("7"));
    refused(
        br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
        -32600,
        Some("7"),
    );
    refused(br#"{"id":"a","method":"ping"}"#, -32600, Some("\"a\""));
    refused(br#"{"jsonrpc":"2.0","id":7,"method":3}"#, -32600, Some("7"));
    refused(
        br#"{"jsonrpc":"2.0","id":7,"method":"a","result":{}}"#,
        -32600,
        Some("7"),
    );
    refused(
        br#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#,
        -32600,
        Some("7"),
    );
    refused(br#"{"jsonrpc":"2.0","result":{}}"#, -32600, None);
}

#[test]
fn a_key_given_twice_is_refused_however_it_is_escaped() {
    refused(
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call"}"#,
        -32600,
        Some("7"),
    );
    refused(
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","m\u0065thod":"tools/call"}"#,
        -32600,
        Some("7"),
    );
    refused(
        br#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#,
        -32600,
        None,
    );
    refused(
        br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}"#,
        -32600,
        Some("7"),
    );
}

#[test]
fn ids_are_echoed_as_they_came() {
    for id in [
        "0",
        "-1",
        "9007199254740993",
        "\"\"",
        "\"a\"",
        r#""\u0061 é""#,
    ] {
        let (echoed, method) = request(&format!(
            r#" {{"id": {id} ,"jsonrpc":"2.0","method":"p\u0069ng"}} "#
        ));
        assert_eq!((echoed.as_str(), method.as_str()), (id, "ping"));
    }
    let long = format!("\"{}\"", "x".repeat(RequestId::LENGTH_MAX));
    refused(
        format!(r#"{{"jsonrpc":"2.0","id":{long},"method":"ping"}}"#).as_bytes(),
        -32600,
        Some(&long),
    );
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let Ok(MessageBody::Batch(elements)) = MessageBody::read(deep.as_bytes()) else {
        panic!("an array is a batch")
    };
    assert_eq!(
        RpcMessage::read(elements[0].get())
            .expect_err("an array is no message")
            .error
            .code,
        -32600
    );
    request(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{deep}}},"y":{deep}}}"#
    ));
    refused("{\"a\":".repeat(200_000).as_bytes(), -32700, None);
}

#[test]
fn batches_are_bounded() {
    let of = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert!(
        matches!(MessageBody::read(of(BATCH_MAX).as_bytes()), Ok(MessageBody::Batch(elements)) if elements.len() == BATCH_MAX)
    );
    refused(of(BATCH_MAX + 1).as_bytes(), -32600, None);
}

#[test]
fn kinds() {
    let read = |text: &'static str| MessageBody::read(text.as_bytes());
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        Ok(MessageBody::One(RpcMessage::Notification { .. }))
    ));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        Ok(MessageBody::One(RpcMessage::Response(_)))
    ));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#),
        Ok(MessageBody::One(RpcMessage::Response(_)))
    ));
}
