//! Raw JSON over HTTP, in both eras: sends exactly what a test passes, and hides nothing in the answer.

use std::sync::{
    Once,
    atomic::{AtomicU64, Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::StreamExt;
use reqwest::{RequestBuilder, Response, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use crate::schema;

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

/// An HTTP answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The messages: one for JSON, each event's data for a stream.
    pub messages: Vec<Value>,
    pub text: String,
}

impl Answer {
    /// Returns the response among the messages, which is the last one.
    pub fn reply(&self) -> &Value {
        self.messages
            .last()
            .unwrap_or_else(|| panic!("no message in the answer: {self:?}"))
    }

    /// Returns `result` of the response.
    pub fn result(&self) -> &Value {
        let reply = self.reply();
        assert!(reply.get("result").is_some(), "not a result: {reply}");
        &reply["result"]
    }

    /// Returns `error.code` of the response.
    pub fn error_code(&self) -> i64 {
        let reply = self.reply();
        reply["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("not an error: {reply}"))
    }
}

/// A client of the 2026-07-28 revision: no session, everything in each request.
#[derive(Clone)]
pub struct Modern {
    pub url: String,
    key: Option<String>,
    capabilities: Value,
    http: reqwest::Client,
}

impl Modern {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            key: None,
            capabilities: json!({}),
            http: http(),
        }
    }

    /// Creates a client that can answer questions.
    pub fn able(url: impl Into<String>, capabilities: Value) -> Self {
        Self {
            capabilities,
            ..Self::new(url)
        }
    }

    /// Creates a client that holds a key.
    pub fn with_key(url: impl Into<String>, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..Self::new(url)
        }
    }

    /// Returns the same client with other capabilities.
    pub fn saying(&self, capabilities: Value) -> Self {
        Self {
            capabilities,
            ..self.clone()
        }
    }

    pub fn request(&self, method: &str, params: Value) -> RequestBuilder {
        let id = next_id();
        let mut params = params;
        if params.get("_meta").is_none() {
            params["_meta"] = json!({});
        }
        let meta = params["_meta"].as_object_mut().expect("_meta is an object");
        meta.insert(
            "io.modelcontextprotocol/protocolVersion".into(),
            json!(MODERN),
        );
        meta.insert(
            "io.modelcontextprotocol/clientCapabilities".into(),
            self.capabilities.clone(),
        );
        let mut request = self.raw(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        request = request
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        if let Some(name) = ["name", "uri", "taskId"]
            .iter()
            .find_map(|member| params[member].as_str())
        {
            request = request.header("mcp-name", header_value(name));
        }
        request
    }

    /// Makes a POST with nothing but the media types.
    pub fn raw(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        message(&self.http, &self.url, &self.key, body)
    }

    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        send(self.request(method, params)).await
    }

    /// Returns the result of `tools/call`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
            .result()
            .clone()
    }

    /// Returns the result of a call that must succeed.
    pub async fn succeed(&self, tool: &str, arguments: Value) -> Value {
        succeeded(tool, self.call(tool, arguments).await)
    }

    /// Calls a tool as a caller that reads its log.
    pub async fn call_listening(&self, tool: &str, arguments: Value) -> Answer {
        let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.ask("tools/call", params).await
    }

    /// Returns a tool as it is listed.
    pub async fn tool(&self, name: &str) -> Value {
        schema::tool(&self.list().await.0, name).clone()
    }

    /// Returns every tool, page by page, and the number of pages.
    pub async fn list(&self) -> (Vec<Value>, usize) {
        let (mut tools, mut pages, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let answer = self.ask("tools/list", params).await;
            let page = answer.result();
            tools.extend(
                page["tools"]
                    .as_array()
                    .expect("a listing has tools")
                    .iter()
                    .cloned(),
            );
            pages += 1;
            match page.get("nextCursor") {
                None => return (tools, pages),
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
    }
}

/// A client of the session era.
#[derive(Clone)]
pub struct Legacy {
    pub url: String,
    pub session: Option<String>,
    pub version: String,
    pub key: Option<String>,
    http: reqwest::Client,
}

impl Legacy {
    /// Initializes with `version` and keeps the session.
    pub async fn open(url: impl Into<String>, version: &str) -> Self {
        Self::open_as(url, version, None).await
    }

    pub async fn open_as(url: impl Into<String>, version: &str, key: Option<&str>) -> Self {
        Self::bare(url, version, key)
            .initialized(version, json!({}))
            .await
    }

    /// Initializes as a client that can answer questions.
    pub async fn able(url: impl Into<String>, version: &str, capabilities: Value) -> Self {
        Self::bare(url, version, None)
            .initialized(version, capabilities)
            .await
    }

    async fn initialized(self, version: &str, capabilities: Value) -> Self {
        let mut client = self;
        let info = json!({"name": "raw", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let body =
            json!({"jsonrpc": "2.0", "id": next_id(), "method": "initialize", "params": params});
        let answer = send(client.raw(body.to_string())).await;
        version_of(&answer).clone_into(&mut client.version);
        client.session = answer
            .headers
            .get("mcp-session-id")
            .map(|id| id.to_str().expect("ASCII").to_owned());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = send(client.in_session(initialized.to_string())).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        client
    }

    /// Makes a POST with nothing but the media types.
    pub fn raw(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        message(&self.http, &self.url, &self.key, body)
    }

    /// Creates a client without a session.
    pub fn bare(url: impl Into<String>, version: &str, key: Option<&str>) -> Self {
        Self {
            url: url.into(),
            session: None,
            version: version.to_owned(),
            key: key.map(str::to_owned),
            http: http(),
        }
    }

    /// Returns the same session in the hands of someone with another key.
    pub fn in_hands_of(&self, key: Option<&str>) -> Self {
        Self {
            key: key.map(str::to_owned),
            ..self.clone()
        }
    }

    /// Returns the same session at another address.
    pub fn at(&self, url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ..self.clone()
        }
    }

    /// Makes a POST within the session.
    pub fn in_session(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.with_session(self.raw(body))
            .header("mcp-protocol-version", &self.version)
    }

    /// Opens the GET stream of the session.
    pub fn stream(&self) -> RequestBuilder {
        authorized(self.with_session(self.http.get(&self.url)), &self.key)
            .header("accept", "text/event-stream")
    }

    pub fn delete(&self) -> RequestBuilder {
        authorized(self.with_session(self.http.delete(&self.url)), &self.key)
    }

    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": next_id(), "method": method, "params": params});
        send(self.in_session(body.to_string())).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
            .result()
            .clone()
    }

    /// Returns the result of a call that must succeed.
    pub async fn succeed(&self, tool: &str, arguments: Value) -> Value {
        succeeded(tool, self.call(tool, arguments).await)
    }

    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }
}

/// Returns a result that is not an error.
fn succeeded(tool: &str, result: Value) -> Value {
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result
}

/// Makes a POST of a message.
fn message(
    http: &reqwest::Client,
    url: &str,
    key: &Option<String>,
    body: impl Into<reqwest::Body>,
) -> RequestBuilder {
    let request = http.post(url).header("content-type", "application/json");
    authorized(request, key)
        .header("accept", "application/json, text/event-stream")
        .body(body)
}

fn authorized(request: RequestBuilder, key: &Option<String>) -> RequestBuilder {
    match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

/// Reads the answer to its end, whichever of the two media types it has.
pub async fn send(request: RequestBuilder) -> Answer {
    let response = request
        .send()
        .await
        .unwrap_or_else(|error| panic!("no answer: {error:?}"));
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response
        .text()
        .await
        .unwrap_or_else(|error| panic!("the answer breaks off: {error:?}"));
    let media = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let messages = if media.starts_with("text/event-stream") {
        text.split("\n\n").filter_map(event_data).collect()
    } else {
        serde_json::from_str(&text)
            .map(|message| vec![message])
            .unwrap_or_default()
    };
    Answer {
        status,
        headers,
        messages,
        text,
    }
}

/// A stream that remains open: its messages as they arrive.
pub struct Events {
    stream: futures::stream::BoxStream<'static, Vec<u8>>,
    buffer: String,
}

impl Events {
    pub async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the stream opens");
        assert_eq!(response.status(), StatusCode::OK, "the stream opens");
        let stream = response
            .bytes_stream()
            .filter_map(async |chunk| chunk.ok().map(|bytes| bytes.to_vec()));
        Self {
            stream: stream.boxed(),
            buffer: String::new(),
        }
    }

    /// Returns the next message; `None` if the stream ends or is silent for `wait`.
    pub async fn next(&mut self, wait: std::time::Duration) -> Option<Value> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let event = self.buffer.drain(..end + 2).collect::<String>();
                match event_data(&event) {
                    Some(message) => return Some(message),
                    None => continue, // a comment, or a priming event
                }
            }
            let chunk = tokio::time::timeout_at(deadline, self.stream.next())
                .await
                .ok()??;
            self.buffer.push_str(&String::from_utf8_lossy(&chunk));
        }
    }
}

fn event_data(event: &str) -> Option<Value> {
    let data: Vec<&str> = event
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(str::trim_start)
        .collect();
    serde_json::from_str(&data.join("\n")).ok()
}

fn version_of(answer: &Answer) -> &str {
    answer.result()["protocolVersion"]
        .as_str()
        .expect("initialize answers a version")
}

/// Returns the value for `Mcp-Name`, which may hold visible ASCII as it is; anything else goes through the base64 form
/// of the specification.
fn header_value(name: &str) -> String {
    if name.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return name.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(name))
}

/// Sends a request that must be answered, whatever the answer is.
pub async fn answer_to(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

/// Returns a plain HTTP client, for what no MCP client would send. It trusts no certificate: tests speak to this machine, and
/// reading the machine's trusted certificates takes longer than most of them.
pub fn http() -> reqwest::Client {
    choose_tls();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .tls_certs_only([]);
    client.build().expect("a client without settings")
}

/// Chooses the TLS provider, which every HTTP client of this process needs, `rmcp`'s too.
pub fn choose_tls() {
    static TLS: Once = Once::new();
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
