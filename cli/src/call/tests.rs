//! Calls at a URL, and what is refused before a call.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// A gateway that ends in the middle of a call has read the request: whether the tool ran is unknown.
#[tokio::test]
async fn a_call_that_is_cut_off_may_have_run() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let remote = RemoteEndpoint::new(&url).expect("a URL");
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"] {
        let cut_off = async {
            let (mut caller, _) = listener.accept().await.expect("a call");
            assert!(caller.read(&mut [0; 4096]).await.expect("a request") > 0);
            caller.write_all(begun.as_bytes()).await.expect("answered");
        };
        let (failure, ()) = tokio::join!(
            remote.request("tools/call", Some("update_price"), json!({})),
            cut_off
        );
        let failure = format!("{:#}", failure.expect_err("no answer"));
        assert!(
            failure.contains("may have run") && !failure.contains("cannot be reached"),
            "{begun}: {failure}"
        );
    }
    drop(listener);
    let failure = remote
        .request("tools/call", Some("update_price"), json!({}))
        .await
        .expect_err("nothing listens");
    assert!(
        failure.to_string().contains("cannot be reached"),
        "{failure:#}"
    );
}

/// Serves an endpoint that answers each request with what `answer` returns for its number, and leaves streams open.
async fn endpoint(
    kind: &'static str,
    answer: impl Fn(usize) -> String + Send + 'static,
) -> RemoteEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut callers = Vec::new();
        while let Ok((mut caller, _)) = listener.accept().await {
            assert!(caller.read(&mut [0; 4096]).await.expect("a request") > 0);
            let body = answer(callers.len());
            let length = match kind {
                "text/event-stream" => String::new(),
                _ => format!("content-length: {}\r\n", body.len()),
            };
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{length}connection: close\r\n\r\n{body}"
            );
            caller.write_all(response.as_bytes()).await.expect("sent");
            callers.push(caller);
        }
    });
    RemoteEndpoint::new(&url).expect("a URL")
}

#[tokio::test]
async fn pages_that_begin_anew_are_refused() {
    let page = |cursor: &str| {
        let result = json!({ "tools": [{ "name": "t" }], "nextCursor": cursor });
        json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string()
    };
    let remote = endpoint("application/json", move |number| {
        page(["a", "b"][number % 2])
    })
    .await;
    let read = tokio::time::timeout(Duration::from_secs(60), remote.tools()).await;
    let failure = read.expect("an end").expect_err("no list");
    assert!(failure.to_string().contains("never end"), "{failure:#}");

    let remote = endpoint("application/json", move |_| page("")).await;
    let tools = remote.tools().await.expect("one page");
    assert_eq!(tools.len(), 1);
}

#[tokio::test]
async fn an_answer_without_a_result_is_refused() {
    for text in [
        r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        r#""result""#,
        "7",
        "null",
    ] {
        let remote = endpoint("application/json", move |_| text.to_owned()).await;
        let failure = remote.tools().await.expect_err(text);
        assert!(
            failure.to_string().contains("no result of MCP"),
            "{text}: {failure:#}"
        );
    }
}

#[tokio::test]
async fn an_odd_member_of_an_answer_costs_itself_alone() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"large":1e400,"half":"\ud800","n":1}}"#;
    let remote = endpoint("application/json", move |_| text.to_owned()).await;
    let result = remote.request("tools/call", Some("t"), json!({})).await;
    let expected = json!({ "large": null, "half": "\u{fffd}", "n": 1 });
    assert_eq!(result.expect("an answer"), expected);
}

#[tokio::test]
async fn a_stream_that_stays_open_behind_its_answer_is_left() {
    let event =
        |n: u32| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"n\":{n}}}}}\n\n");
    let remote = endpoint("text/event-stream", move |_| event(1) + &event(2)).await;
    let answer = remote.request("tools/call", Some("t"), json!({}));
    let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
    let result = answer.expect("an end").expect("an answer");
    assert_eq!(result["n"], 1);
}

#[test]
fn an_option_of_the_command_behind_the_tool_is_told_where_it_belongs() {
    let parse = |word: &str| parse("list_ps", "", &json!({}), &Value::Null, &[word.to_owned()]);
    for option in ["--json", "--file", "--config"] {
        let message = parse(option)
            .expect_err("it belongs before the tool")
            .to_string();
        assert!(
            message.contains(option) && message.contains("before the tool"),
            "{message}"
        );
    }
}

#[test]
fn an_endpoint_is_a_whole_url() {
    for url in [
        "not a url",
        "localhost:8494",
        "ftp://x",
        "http://",
        "127.0.0.1/mcp",
    ] {
        assert!(check_url(url).is_err(), "{url}");
    }
    for url in ["http://127.0.0.1:8484/mcp", "https://weir.example/mcp"] {
        check_url(url).expect("a URL");
    }
}
