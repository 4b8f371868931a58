//! Tests over a real socket: bytes in, status, headers and body out.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use weir_contracts::upstream::ResourceMode;

use super::*;
use crate::testing;

mod foreign_errors;
mod paths;
mod streams;
mod upstream;
mod views;

/// The time that a busy machine may take for something that is normally immediate. The end of a server waits twice as long for
/// connections.
const SOON: Duration = Duration::from_secs(30);

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Running {
    gateway: testing::GatewayFixture,
    address: std::net::SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<anyhow::Result<()>>,
}

#[derive(Debug)]
struct Got {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Running {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut crate::config::GatewayConfig)) -> Self {
        Self::serving(testing::gateway(change).await).await
    }

    async fn serving(gateway: testing::GatewayFixture) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let served = tokio::spawn(serve(gateway.clone(), listener, stopped));
        Self {
            gateway,
            address,
            stop: Some(stop),
            served,
        }
    }

    /// Sends a request. `head` is the request line and headers, without Host.
    async fn raw(&self, head: &str, body: &[u8]) -> Got {
        let mut stream = self.send(head, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Got::read(&bytes)
    }

    async fn send(&self, head: &str, body: &[u8]) -> TcpStream {
        Self::send_on(TcpStream::connect(self.address).await.unwrap(), head, body).await
    }

    async fn send_on(mut stream: TcpStream, head: &str, body: &[u8]) -> TcpStream {
        let length = if head.starts_with("POST") {
            format!("Content-Length: {}\r\n", body.len())
        } else {
            String::new()
        };
        let head = format!(
            "{}\r\nConnection: close\r\n{length}\r\n",
            head.replace('\n', "\r\n")
        );
        stream
            .write_all(&[head.as_bytes(), body].concat())
            .await
            .unwrap();
        stream
    }

    /// Posts a JSON text to `path`, with further headers.
    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        self.raw(&post_head(path, headers), body.as_bytes()).await
    }

    /// Sends a modern request with headers that agree.
    async fn modern(&self, path: &str, id: &str, method: &str, params: &str) -> Got {
        let (headers, body) = modern(id, method, params);
        let headers = borrowed(&headers);
        self.post(path, &headers, &body).await
    }

    async fn session(&self, path: &str, version: &str) -> String {
        let body = json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":version,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}});
        let got = self.post(path, &[], &body.to_string()).await;
        assert_eq!(got.json()["result"]["protocolVersion"], version);
        got.header("mcp-session-id").expect("a session").to_owned()
    }

    async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        tokio::time::timeout(SOON, self.served)
            .await
            .expect("ends soon")
            .unwrap()
            .unwrap();
    }
}

impl Got {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in {text:?}"));
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let split = |line: &str| {
            line.split_once(": ")
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        };
        Self {
            status,
            headers: lines.filter_map(split).collect(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    fn refused(&self, status: u16, code: i32, id: Value) {
        let body = self.json();
        assert_eq!(
            (self.status, &body["error"]["code"], &body["id"]),
            (status, &json!(code), &id),
            "{self:?}"
        );
    }
}

fn post_head(path: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("POST {path} HTTP/1.1\nAccept: application/json, text/event-stream");
    for (name, value) in [("Host", "localhost"), ("Content-Type", "application/json")] {
        if !headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
        {
            head.push_str(&format!("\n{name}: {value}"));
        }
    }
    for (name, value) in headers {
        head.push_str(&format!("\n{name}: {value}"));
    }
    head
}

/// Returns headers in the form that a request takes.
fn borrowed<'h>(headers: &'h [(&'static str, String)]) -> Vec<(&'h str, &'h str)> {
    let borrow = |(name, value): &'h (&'static str, String)| (*name, value.as_str());
    headers.iter().map(borrow).collect()
}

/// Returns a modern request. `params` are the members other than `_meta`.
fn modern(id: &str, method: &str, params: &str) -> (Vec<(&'static str, String)>, String) {
    let rest = if params.is_empty() {
        String::new()
    } else {
        format!("{params},")
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{rest}"_meta":{META}}}}}"#
    );
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", method.to_owned()),
    ];
    let message: Value = serde_json::from_str(&body).unwrap();
    let params = &message["params"];
    if let Some(name) = ["name", "uri", "taskId"]
        .into_iter()
        .find_map(|member| params[member].as_str())
    {
        headers.push(("Mcp-Name", name.to_owned()));
    }
    (headers, body)
}

#[tokio::test]
async fn the_seeds_handshake() {
    let server = Running::start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"claude-desktop","version":"1.x"}}}"#;
    let got = server.post("/mcp/desk", &[], body).await;
    assert_eq!(
        got.json(),
        json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},
            "serverInfo":{"name":"desk","title":"The title","version":"1.0.0"}}})
    );
    let old = server
        .post("/mcp/desk", &[], &body.replace("2025-06-18", "2024-11-05"))
        .await
        .json();
    assert_eq!(
        old["result"]["serverInfo"],
        json!({"name":"desk","version":"1.0.0"})
    );
    for (asked, answered) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2026-07-28", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let got = server
            .post("/mcp", &[], &body.replace("2025-06-18", asked))
            .await
            .json();
        assert_eq!(got["result"]["protocolVersion"], answered);
    }
    server
        .post(
            "/mcp",
            &[],
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
        )
        .await
        .refused(200, -32602, json!(1));
    server
        .post("/mcp", &[("MCP-Protocol-Version", "2026-07-28")], body)
        .await
        .refused(400, -32020, json!(1));
    server
        .modern("/mcp", "1", "initialize", "")
        .await
        .refused(404, -32601, json!(1));
    server.stop().await;
}

#[tokio::test]
async fn discover_list_and_call() {
    let server = Running::start().await;
    let discovered = server
        .modern("/mcp/desk", "\"d\"", "server/discover", "")
        .await
        .json();
    assert_eq!(
        discovered,
        json!({"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","supportedVersions":["2026-07-28"],
            "capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}},"ttlMs":30000,"cacheScope":"public",
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"desk","title":"The title","version":"1.0.0"}}}})
    );
    let first = server.modern("/mcp", "1", "tools/list", "").await.json();
    let names = |page: &Value| -> Vec<String> {
        page["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["find_part", "find_ticket"]);
    assert_eq!(
        (&first["result"]["ttlMs"], &first["result"]["cacheScope"]),
        (&json!(30000), &json!("public"))
    );
    let cursor = format!(r#""cursor":{}"#, first["result"]["nextCursor"]);
    let second = server
        .modern("/mcp", "2", "tools/list", &cursor)
        .await
        .json();
    assert_eq!(names(&second), ["get_ticket", "show_ticket"]);
    assert!(second["result"].get("nextCursor").is_none());
    for bad in [r#""cursor":"!""#, r#""cursor":"""#, r#""cursor":1"#] {
        server
            .modern("/mcp", "3", "tools/list", bad)
            .await
            .refused(200, -32602, json!(3));
    }
    let called = server
        .modern(
            "/mcp",
            "4",
            "tools/call",
            r#""name":"find_ticket","arguments":{"id":"1"}"#,
        )
        .await
        .json();
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(
        (
            &called["result"]["isError"],
            &called["result"]["structuredContent"]["code"]
        ),
        (&json!(true), &json!("unavailable"))
    );
    assert_eq!(
        called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "weir"
    );
    let missing = server
        .modern("/mcp", "5", "tools/call", r#""name":"find_ticket""#)
        .await
        .json();
    assert_eq!(
        missing["result"]["structuredContent"]["reason"],
        "missing_required"
    );
    for (path, name) in [
        ("/mcp", "nope"),
        ("/mcp/desk", "find_part"),
        ("/mcp/depot", "find_ticket"),
    ] {
        let got = server
            .modern(
                path,
                "6",
                "tools/call",
                &format!(r#""name":"{name}","arguments":{{}}"#),
            )
            .await;
        got.refused(200, -32602, json!(6));
    }
    for arguments in ["[1]", "1", "\"{}\""] {
        let params = format!(r#""name":"find_ticket","arguments":{arguments}"#);
        server
            .modern("/mcp", "7", "tools/call", &params)
            .await
            .refused(200, -32602, json!(7));
    }
    server
        .modern("/mcp/nowhere", "8", "tools/list", "")
        .await
        .refused(404, -32600, json!(8));
    server.stop().await;
}

#[tokio::test]
async fn modern_refusals() {
    let server = Running::start().await;
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let list = ("Mcp-Method", "tools/list");
    let with = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{params}}}"#)
    };
    let claim = |meta: &str| with(&format!(r#"{{"_meta":{meta}}}"#));
    let good = claim(META);

    // A missing or malformed `_meta` (-32602), whatever the headers.
    for params in [
        "{}",
        "[]",
        "null",
        r#"{"_meta":{}}"#,
        r#"{"_meta":[]}"#,
        r#"{"_meta":null}"#,
    ] {
        server
            .post("/mcp", &[version, list], &with(params))
            .await
            .refused(400, -32602, json!(9));
    }
    server
        .post(
            "/mcp",
            &[version],
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#,
        )
        .await
        .refused(400, -32602, json!(9));
    for meta in [
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
        r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":1,"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":null,"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
        &META.replace("{}}", r#"{},"io.modelcontextprotocol/clientInfo":"me"}"#),
        &META.replace("{}}", r#"{},"progressToken":1.5}"#),
        &META.replace(
            "{}}",
            r#"{},"io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#,
        ),
        &META.replace(
            "{}}",
            r#"{},"io.modelcontextprotocol\/protocolVersion":"2025-11-25"}"#,
        ),
    ] {
        server
            .post("/mcp", &[version, list], &claim(meta))
            .await
            .refused(400, -32602, json!(9));
    }

    // Versions: compared first, then looked up.
    let unknown = claim(&META.replace("2026-07-28", "v999.0.0"));
    let got = server
        .post(
            "/mcp",
            &[("MCP-Protocol-Version", "v999.0.0"), list],
            &unknown,
        )
        .await;
    got.refused(400, -32022, json!(9));
    assert_eq!(
        got.json()["error"]["data"],
        json!({"supported":["2026-07-28"],"requested":"v999.0.0"})
    );
    server
        .post("/mcp", &[version, list], &unknown)
        .await
        .refused(400, -32020, json!(9));
    let legacy = claim(&META.replace("2026-07-28", "2025-11-25"));
    server
        .post(
            "/mcp",
            &[("MCP-Protocol-Version", "2025-11-25"), list],
            &legacy,
        )
        .await
        .refused(400, -32022, json!(9));

    // Headers: missing, different, twice.
    for headers in [
        &[list][..],
        &[version],
        &[version, ("Mcp-Method", "TOOLS/LIST")],
        &[version, ("Mcp-Method", "tools/call")],
        &[version, ("Mcp-Method", "tools%2Flist")],
        &[version, list, list],
        &[version, version, list],
        &[("MCP-Protocol-Version", "2025-11-25"), list],
    ] {
        server
            .post("/mcp", headers, &good)
            .await
            .refused(400, -32020, json!(9));
    }
    assert_eq!(
        server
            .post(
                "/mcp",
                &[
                    ("mCp-PrOtOcOl-VeRsIoN", "  2026-07-28\t"),
                    ("MCP-METHOD", " tools/list ")
                ],
                &good
            )
            .await
            .status,
        200
    );

    let (_, call) = modern("9", "tools/call", r#""name":"find_ticket""#);
    let call_headers =
        |name: &'static str| [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    for name in [
        "find_part",
        "FIND_TICKET",
        "",
        "=?base64?!?=",
        "=?base64?ZmluZF90aWNrZXQ?=",
        "=?BASE64?ZmluZF90aWNrZXQ=?=",
        "=?base64?ZmluZF90aWNrZXQ=",
    ] {
        server
            .post("/mcp", &call_headers(name), &call)
            .await
            .refused(400, -32020, json!(9));
    }
    server
        .post("/mcp", &[version, ("Mcp-Method", "tools/call")], &call)
        .await
        .refused(400, -32020, json!(9));
    for name in [
        "find_ticket",
        "  find_ticket ",
        "=?base64?ZmluZF90aWNrZXQ=?=",
    ] {
        assert_eq!(
            server.post("/mcp", &call_headers(name), &call).await.status,
            200,
            "{name}"
        );
    }
    let twice = call.replace(
        r#""name":"find_ticket""#,
        r#""name":"find_ticket","name":"find_part""#,
    );
    server
        .post("/mcp", &call_headers("find_ticket"), &twice)
        .await
        .refused(400, -32602, json!(9));

    // These methods are removed or unknown.
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tools/nope",
        "completion/complete",
    ] {
        server
            .modern("/mcp", "\"x\"", method, "")
            .await
            .refused(404, -32601, json!("x"));
    }

    // Prompts and resources: empty, and nothing to read.
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let result = server.modern("/mcp", "1", method, "").await.json()["result"].take();
        assert_eq!(result[member], json!([]), "{method}");
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(30000), &json!("public")),
            "{method}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn bodies() {
    let server = Running::with(|config| config.http.body_max_bytes = 1000).await;
    for body in ["", "{", "\u{feff}{}"] {
        server
            .post("/mcp", &[], body)
            .await
            .refused(400, -32700, Value::Null);
    }
    let head = post_head("/mcp", &[]);
    server
        .raw(&head, b"{\"a\":\"\xff\"}")
        .await
        .refused(400, -32700, Value::Null);
    for body in [
        "[]",
        "1",
        "{}",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    ] {
        server
            .post("/mcp", &[], body)
            .await
            .refused(400, -32600, Value::Null);
    }
    let padded = |length: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping"{}}}"#,
            " ".repeat(length - 40)
        )
    };
    let (fits, large) = (padded(1000), padded(1001));
    assert_eq!((fits.len(), large.len()), (1000, 1001));
    assert_eq!(
        server.post("/mcp", &[], &fits).await.json(),
        json!({"jsonrpc":"2.0","id":1,"result":{}})
    );
    let got = server.post("/mcp", &[], &large).await;
    assert!(
        got.status == 413
            && got.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("[http] body_max_bytes")
    );
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        head.replace('\n', "\r\n") + "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    stream
        .write_all(&[head.as_bytes(), chunked.as_bytes()].concat())
        .await
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(Got::read(&bytes).status, 413);
    for kind in ["text/plain", "application/json; charset=latin1"] {
        server
            .post("/mcp", &[("Content-Type", kind)], &fits)
            .await
            .refused(415, -32600, json!(1));
    }
    server
        .post("/mcp", &[("Content-Encoding", "gzip")], &fits)
        .await
        .refused(415, -32600, json!(1));
    let got = server
        .post("/mcp", &[("Content-Type", "text/plain")], "a=1")
        .await;
    assert!(
        got.status == 415 && got.json().get("id").is_none(),
        "{got:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn methods_of_http() {
    let server = Running::start().await;
    for method in ["PUT", "PATCH", "HEAD", "TRACE"] {
        let got = server
            .raw(&format!("{method} /mcp HTTP/1.1\nHost: localhost"), b"")
            .await;
        assert_eq!(
            (got.status, got.header("allow")),
            (405, Some("GET, POST, DELETE, OPTIONS")),
            "{method}"
        );
    }
    for method in ["GET", "DELETE"] {
        for version in [
            "",
            "\nMCP-Protocol-Version: 2026-07-28\nMcp-Session-Id: 00000000000000000000000000000000",
        ] {
            let got = server
                .raw(
                    &format!("{method} /mcp HTTP/1.1\nHost: localhost{version}"),
                    b"",
                )
                .await;
            assert_eq!(
                (got.status, got.header("allow")),
                (405, Some("POST")),
                "{method} {version}"
            );
        }
    }
    let got = server
        .raw("GET /healthz HTTP/1.1\nHost: 10.0.0.1", b"")
        .await;
    assert_eq!((got.status, got.body.as_str()), (200, "ok\n"));
    let got = server.post("/", &[], "{}").await;
    assert!(
        got.status == 404
            && got.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("/mcp")
    );
    server.stop().await;
}

#[tokio::test]
async fn browsers() {
    let server = Running::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (host, origin) in [
        ("evil.example", ""),
        ("localhost", "http://evil.example"),
        ("localhost", "null"),
    ] {
        let origin: &[_] = if origin.is_empty() {
            &[("Host", host)]
        } else {
            &[("Host", host), ("Origin", origin)]
        };
        let got = server.post("/mcp", origin, ping).await;
        assert_eq!(got.status, 403);
        let body = got.json();
        assert!(
            body.get("id").is_none()
                && body["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("[http] "),
            "{body}"
        );
        assert_eq!(got.header("access-control-allow-origin"), None);
    }
    let got = server
        .post("/mcp", &[("Origin", "http://localhost:5173")], ping)
        .await;
    assert_eq!(
        (got.status, got.header("access-control-allow-origin")),
        (200, Some("http://localhost:5173"))
    );
    assert!(
        got.header("access-control-expose-headers")
            .unwrap()
            .contains("Mcp-Session-Id")
    );
    let got = server
        .raw("OPTIONS /mcp HTTP/1.1\nHost: localhost\nOrigin: http://localhost:5173\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type, mcp-param-x", b"")
        .await;
    assert_eq!(
        (got.status, got.header("access-control-allow-headers")),
        (204, Some("content-type, mcp-param-x"))
    );
    assert!(
        got.header("access-control-allow-methods")
            .unwrap()
            .contains("DELETE")
    );
    let got = server
        .raw(
            "OPTIONS /mcp HTTP/1.1\nHost: localhost\nOrigin: http://evil.example",
            b"",
        )
        .await;
    assert_eq!(got.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn legacy_versions_see_what_they_know() {
    let server = Running::start().await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"find_ticket","arguments":{"id":"1"}}}"#;
    for (version, output, annotations) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, true),
        ("2025-06-18", true, true),
        ("2025-11-25", true, true),
    ] {
        let session = server.session("/mcp", version).await;
        for headers in [
            vec![("Mcp-Session-Id", session.as_str())],
            vec![("MCP-Protocol-Version", version)],
        ] {
            let listed = server.post("/mcp", &headers, list).await.json();
            let result = &listed["result"];
            for modern in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                assert!(result.get(modern).is_none(), "{modern}");
            }
            let tool = &result["tools"][0];
            assert_eq!(
                (
                    tool.get("outputSchema").is_some(),
                    tool.get("annotations").is_some()
                ),
                (output, annotations)
            );
            let called = server.post("/mcp", &headers, call).await.json();
            assert_eq!(called["result"].get("structuredContent").is_some(), output);
            assert_eq!(
                (
                    &called["result"]["isError"],
                    &called["result"]["content"][0]["type"]
                ),
                (&json!(true), &json!("text"))
            );
            assert!(called["result"].get("resultType").is_none());
        }
    }
    // Without session and header the version is 2025-03-26.
    assert!(
        server.post("/mcp", &[], list).await.json()["result"]["tools"][0]
            .get("outputSchema")
            .is_none()
    );
    for bad in ["2023-01-01", "latest", ""] {
        server
            .post("/mcp", &[("MCP-Protocol-Version", bad)], list)
            .await
            .refused(400, -32600, json!(1));
    }
    for method in [
        "nope",
        "server/discover",
        "subscriptions/listen",
        "logging/setLevel",
        "prompts/get",
        "resources/read",
        "resources/subscribe",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{method}"}}"#);
        server
            .post("/mcp", &[], &body)
            .await
            .refused(200, -32601, json!(3));
    }
    server
        .post("/mcp/nowhere", &[], list)
        .await
        .refused(404, -32600, json!(1));
    // Clients that list everything would lose the tools because of an error here.
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":4,"method":"{method}"}}"#);
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let got = server
                .post("/mcp", &[("MCP-Protocol-Version", version)], &body)
                .await;
            assert_eq!(
                got.json(),
                json!({"jsonrpc":"2.0","id":4,"result":{member: []}}),
                "{method} in {version}"
            );
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn sessions() {
    let server = Running::start().await;
    let session = server.session("/mcp", "2025-11-25").await;
    assert_eq!(session.len(), 52);
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let with = |session: &str| [("Mcp-Session-Id".to_owned(), session.to_owned())];
    let post = async |path: &str, session: &str, body: &str| {
        let [(name, value)] = with(session);
        server.post(path, &[(&name, &value)], body).await
    };
    assert_eq!(
        post("/mcp", &session, ping).await.json(),
        json!({"jsonrpc":"2.0","id":"p","result":{}})
    );
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for notice in [
        initialized,
        r#"{"jsonrpc":"2.0","method":"notifications/made/up"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        let got = post("/mcp", &session, notice).await;
        assert_eq!((got.status, got.body.as_str()), (202, ""));
    }
    assert_eq!(
        server
            .post("/mcp", &[], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
            .await
            .status,
        400
    );
    post("/mcp/desk", &session, ping)
        .await
        .refused(404, -32600, json!("p"));
    for guess in [
        "",
        "x",
        "00000000000000000000000000000000",
        &session.to_uppercase(),
    ] {
        if guess != session {
            post("/mcp", guess, ping)
                .await
                .refused(404, -32600, json!("p"));
        }
    }
    let delete = format!("DELETE /mcp HTTP/1.1\nHost: localhost\nMcp-Session-Id: {session}");
    assert_eq!(server.raw(&delete, b"").await.status, 204);
    assert_eq!(server.raw(&delete, b"").await.status, 404);
    post("/mcp", &session, ping)
        .await
        .refused(404, -32600, json!("p"));
    assert_eq!(post("/mcp", &session, initialized).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn batches() {
    let server = Running::start().await;
    let session = server.session("/mcp", "2025-03-26").await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let ping = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"find_ticket","arguments":{"id":"1"},"_meta":{"progressToken":1}}}"#;
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let got = server
        .post(
            "/mcp",
            &headers,
            &format!("[{},{call},{notice},7,{}]", ping(1), ping(3)),
        )
        .await
        .json();
    let ids: Vec<_> = got
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].clone())
        .collect();
    assert_eq!(ids, [json!(1), json!(2), Value::Null, json!(3)]);
    assert_eq!(got[2]["error"]["code"], -32600);
    assert_eq!(
        server
            .post("/mcp", &headers, &format!("[{notice}]"))
            .await
            .status,
        202
    );
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
    let claim =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{META}}}}}"#);
    for bad in [
        format!("[{initialize}]"),
        format!("[{},{claim}]", ping(1)),
        "[]".to_owned(),
        format!("[{}]", vec![ping(1); 65].join(",")),
    ] {
        server
            .post("/mcp", &headers, &bad)
            .await
            .refused(400, -32600, Value::Null);
    }
    // The settings of a session also apply in a batch.
    let lists = json!({ "tools": [{ "name": "t", "inputSchema": {} }], "resources": [{ "uri": "file:///a", "name": "a" }] });
    testing::publish_offer(&server.gateway, &lists, ResourceMode::Pinned);
    let level = r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#;
    let subscribe = r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"up+file:///a"}}"#;
    let got = server
        .post("/mcp", &headers, &format!("[{level},{subscribe}]"))
        .await
        .json();
    let done = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    assert_eq!(got, json!([done(1), done(2)]));
    let newer = server.session("/mcp", "2025-06-18").await;
    let got = server
        .post(
            "/mcp",
            &[("Mcp-Session-Id", &newer)],
            &format!("[{}]", ping(1)),
        )
        .await;
    got.refused(400, -32600, Value::Null);
    server
        .post(
            "/mcp",
            &[("MCP-Protocol-Version", "2026-07-28")],
            &format!("[{}]", ping(1)),
        )
        .await
        .refused(400, -32600, Value::Null);
    server.stop().await;
}
