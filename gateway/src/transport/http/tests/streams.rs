//! Streams of notifications, of both eras.

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::*;

type Lines = tokio::io::Lines<BufReader<TcpStream>>;

/// Reads the next event; `None` at the end of the stream.
async fn event(lines: &mut Lines) -> Option<Value> {
    loop {
        let line = tokio::time::timeout(SOON, lines.next_line())
            .await
            .expect("an event in time");
        let Ok(Some(line)) = line else { return None };
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

/// Reads events until the stream ends; `then` runs after the first `after` of them.
async fn events(stream: TcpStream, after: usize, then: impl AsyncFnOnce()) -> Vec<Value> {
    let mut lines = BufReader::new(stream).lines();
    let mut read = Vec::new();
    let mut then = Some(then);
    loop {
        if read.len() == after
            && let Some(then) = then.take()
        {
            then().await;
        }
        let Some(event) = event(&mut lines).await else {
            return read;
        };
        read.push(event);
    }
}

/// Opens a modern stream. `filter`: what it listens for, as JSON.
async fn listen(server: &Running, path: &str, filter: &str) -> Lines {
    let (headers, body) = modern(
        "1",
        "subscriptions/listen",
        &format!(r#""notifications":{filter}"#),
    );
    let headers = borrowed(&headers);
    BufReader::new(
        server
            .send(&post_head(path, &headers), body.as_bytes())
            .await,
    )
    .lines()
}

#[tokio::test]
async fn a_subscription() {
    let server = Running::start().await;
    let (headers, body) = modern(
        "\"sub\"",
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#,
    );
    let headers = borrowed(&headers);
    let stream = server
        .send(&post_head("/mcp/desk", &headers), body.as_bytes())
        .await;
    let gateway = server.gateway.clone();
    let mut server = Some(server);
    let read = events(stream, 1, async || {
        // A change of another contract does not concern this endpoint.
        testing::publish(
            &gateway,
            &[
                ("desk", &["find_ticket", "get_ticket", "show_ticket"]),
                ("depot", &["find_box"]),
            ],
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
        testing::publish(&gateway, &[("desk", &["find_ticket"])]);
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.take().unwrap().stop().await;
    })
    .await;
    let meta = json!({"io.modelcontextprotocol/subscriptionId":"sub"});
    assert_eq!(
        read,
        [
            json!({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":meta,"notifications":{"toolsListChanged":true,"promptsListChanged":true}}}),
            json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":meta}}),
            json!({"jsonrpc":"2.0","id":"sub","result":{"resultType":"complete","_meta":meta}}),
        ]
    );
}

#[tokio::test]
async fn a_subscription_refused() {
    let server = Running::with(|config| config.http.streams_max = 1).await;
    for filter in [
        "",
        r#""notifications":[]"#,
        r#""notifications":{"toolsListChanged":"yes"}"#,
    ] {
        server
            .modern("/mcp", "1", "subscriptions/listen", filter)
            .await
            .refused(200, -32602, json!(1));
    }
    let mut stream = listen(&server, "/mcp", "{}").await.into_inner();
    let mut first = [0; 1024];
    let length = stream.read(&mut first).await.unwrap();
    let head = String::from_utf8_lossy(&first[..length]).to_ascii_lowercase();
    assert!(
        head.contains("x-accel-buffering: no")
            && head.contains("cache-control: no-cache")
            && head.contains("text/event-stream"),
        "{head}"
    );
    let full = server
        .modern("/mcp", "1", "subscriptions/listen", r#""notifications":{}"#)
        .await;
    full.refused(200, -32603, json!(1));
    drop(stream);
    // The place is free again once the disconnect is seen.
    for _ in 0..3000 {
        let mut stream = listen(&server, "/mcp", "{}").await.into_inner();
        let length = stream.read(&mut first).await.unwrap();
        drop(stream);
        if String::from_utf8_lossy(&first[..length]).contains("text/event-stream") {
            return server.stop().await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a closed stream still takes its place");
}

#[tokio::test]
async fn a_subscription_names_each_resource_once_and_no_more_than_256() {
    let server = Running::with(|config| config.http.streams_max = 1).await;
    let lists = json!({ "resources": [{ "uri": "file:///a", "name": "a" }, { "uri": "file:///b", "name": "b" }] });
    testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
    let (a, b) = ("up+file:///a", "up+file:///b");
    let absent: Vec<_> = (0..255)
        .map(|number| format!("up+file:///absent/{number}"))
        .collect();
    let naming = |absent: &[String]| {
        let uris: Vec<_> = [b, a, b]
            .into_iter()
            .chain(absent.iter().map(String::as_str))
            .chain([a, b])
            .collect();
        json!({ "resourceSubscriptions": uris }).to_string()
    };
    let refused = async |code| {
        let filter = format!(r#""notifications":{}"#, naming(&absent));
        let answer = server.modern("/mcp", "1", "subscriptions/listen", &filter);
        let answer = tokio::time::timeout(SOON, answer)
            .await
            .expect("an answer, and no stream");
        assert_eq!(answer.json()["error"]["code"], code, "{answer:?}");
    };
    refused(-32600).await;
    let mut stream = listen(&server, "/mcp", &naming(&absent[1..])).await;
    let acknowledged = event(&mut stream).await.expect("an acknowledgement");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "resourceSubscriptions": [b, a] })
    );
    // If there is no room for a stream, what it would listen for does not matter.
    refused(-32603).await;
    server.stop().await;
}

#[tokio::test]
async fn news_of_a_list_reaches_the_endpoints_that_have_something_of_its_contract() {
    let server = Running::start().await;
    let opened = async |path| {
        let mut stream = listen(
            &server,
            path,
            r#"{"toolsListChanged":true,"resourcesListChanged":true}"#,
        )
        .await;
        event(&mut stream).await.expect("an acknowledgement");
        stream
    };
    let answer =
        async |stream: &mut Lines| event(stream).await.map(|event| event["method"].clone());
    let changed = |kind: &str| Some(json!(format!("notifications/{kind}/list_changed")));
    let (mut every, mut desk) = (opened("/mcp").await, opened("/mcp/desk").await);
    let announcements = server.gateway.announcements();
    announcements.list_changed("depot", 0);
    assert_eq!(answer(&mut every).await, changed("tools"));
    announcements.list_changed("desk", 0);
    assert_eq!(
        (answer(&mut every).await, answer(&mut desk).await),
        (changed("tools"), changed("tools"))
    );
    // A contract may have only resources.
    let lists = json!({ "resources": [{ "uri": "file:///a", "name": "a" }] });
    testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
    let mut up = opened("/mcp/up").await;
    announcements.list_changed("up", 2);
    assert_eq!(answer(&mut up).await, changed("resources"));
    server.stop().await;
}

#[tokio::test]
async fn a_legacy_stream() {
    let server = Running::start().await;
    let session = server.session("/mcp", "2025-11-25").await;
    let head = stream_head(&session);
    let older = server.send(&head, b"").await;
    // It is open once its head arrives.
    older.peek(&mut [0]).await.unwrap();
    let stream = server.send(&head, b"").await;
    // The newer stream replaces the older one: each message is sent once.
    assert!(events(older, 9, async || {}).await.is_empty());
    let gateway = server.gateway.clone();
    let changed = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        testing::publish(&gateway, &[("desk", &["find_ticket"])]);
    });
    let delete = delete_head(&session);
    let read = events(stream, 1, async || {
        assert_eq!(server.raw(&delete, b"").await.status, 204)
    })
    .await;
    assert_eq!(
        read,
        [json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})]
    );
    changed.await.unwrap();
    assert_eq!(server.raw(&head, b"").await.status, 404);
    server.stop().await;
}

fn stream_head(session: &str) -> String {
    format!(
        "GET /mcp HTTP/1.1\nHost: localhost\nAccept: text/event-stream\nMcp-Session-Id: {session}"
    )
}

/// Returns the head that ends a session, whose random id may have the letters of a method in it.
fn delete_head(session: &str) -> String {
    format!("DELETE /mcp HTTP/1.1\nHost: localhost\nMcp-Session-Id: {session}")
}

#[tokio::test]
async fn a_legacy_client_is_told_of_what_changed_while_it_had_no_stream() {
    let server = Running::start().await;
    let session = server.session("/mcp", "2025-11-25").await;
    testing::publish(&server.gateway, &[("desk", &["find_ticket"])]);
    let stream = server.send(&stream_head(&session), b"").await;
    let answer = [json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})];
    let mut newer = None;
    let read = events(stream, 1, async || {
        newer = Some(server.send(&stream_head(&session), b"").await)
    })
    .await;
    assert_eq!(read, answer);
    // Each change is sent once, and the next stream begins where this one ended.
    let delete = delete_head(&session);
    let read = events(newer.expect("a stream"), 0, async || {
        assert_eq!(server.raw(&delete, b"").await.status, 204);
    })
    .await;
    assert!(read.is_empty(), "{read:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_agent_has_an_eighth_of_the_streams() {
    let server = Running::with(|config| config.http.streams_max = 16).await;
    let (some, other) = (
        server.gateway.key("some", "1000/min").await,
        server.gateway.key("other", "1000/min").await,
    );
    let open = async |key: &str| {
        let (headers, body) = modern("1", "subscriptions/listen", r#""notifications":{}"#);
        let authorization = format!("Bearer {key}");
        let mut headers = borrowed(&headers);
        headers.push(("Authorization", &authorization));
        let mut stream = server
            .send(&post_head("/mcp", &headers), body.as_bytes())
            .await;
        let mut first = [0; 1024];
        let length = stream.read(&mut first).await.unwrap();
        (
            String::from_utf8_lossy(&first[..length]).contains("text/event-stream"),
            stream,
        )
    };
    let (first, second, third) = (open(&some).await, open(&some).await, open(&some).await);
    assert_eq!((first.0, second.0, third.0), (true, true, false));
    assert!(
        open(&other).await.0,
        "one agent's streams are not another's"
    );
    drop(first);
    // The place is free again once the disconnect is seen.
    for _ in 0..3000 {
        if open(&some).await.0 {
            return server.stop().await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a closed stream still takes its place");
}

#[tokio::test]
async fn a_stream_takes_from_the_rate_of_its_agent() {
    let server = Running::start().await;
    let key = server.gateway.key("some", "2/min").await;
    let authorization = format!("Bearer {key}");
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let got = server
        .post("/mcp", &[("Authorization", &authorization)], body)
        .await;
    let session = got.header("mcp-session-id").expect("a session");
    let head = format!("{}\nAuthorization: {authorization}", stream_head(session));
    let stream = server.send(&head, b"").await;
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next_line().await.unwrap();
    assert_eq!(status.as_deref(), Some("HTTP/1.1 200 OK"));
    let refused = server.raw(&head, b"").await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    drop(lines);
    server.stop().await;
}
