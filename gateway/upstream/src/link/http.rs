//! Streamable HTTP: a POST for each message; the answer is one body or a stream of events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::task::AbortHandle;

use super::{
    child::too_large,
    event_stream::{Event, Events},
};
use crate::{
    error::{Failure, Kind, Refusal, RequestError, one_line},
    inbox::Inbox,
    message::{Incoming, Outgoing},
    settings::Url,
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// The number of times that a broken stream is taken up again, and the longest wait before each.
const RESUMED_MAX: usize = 5;
const RETRY_MAX: Duration = Duration::from_secs(5);
const REPLY_MAX: Duration = Duration::from_secs(10);

pub(crate) struct HttpLink {
    client: Client,
    url: reqwest::Url,
    headers: HeaderMap,
    message_max: usize,
    inbox: Arc<Inbox>,
    session: Mutex<Option<HeaderValue>>,
    /// The tasks that listen for the answers to requests.
    streams: Mutex<HashMap<u64, AbortHandle>>,
    listener: Mutex<Option<AbortHandle>>,
}

impl HttpLink {
    pub(crate) fn new(url: &Url, message_max: usize, inbox: Arc<Inbox>) -> Result<Arc<Self>, Failure> {
        let (client, url, headers) = parts(url)?;
        Ok(Arc::new(Self {
            client,
            url,
            headers,
            message_max,
            inbox,
            session: Mutex::default(),
            streams: Mutex::default(),
            listener: Mutex::default(),
        }))
    }

    pub(crate) async fn send(self: &Arc<Self>, message: Outgoing) -> Result<(), Failure> {
        let Some(id) = message.id else {
            return self.post(&message).await.map(drop).map_err(|error| error.into_failure(message.method));
        };
        let link = self.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = link.ask(&message, id).await {
                link.inbox.fail(id, error);
            }
            lock(&link.streams).remove(&id);
        });
        let mut streams = lock(&self.streams);
        streams.insert(id, task.abort_handle());
        streams.retain(|_, stream| !stream.is_finished());
        Ok(())
    }

    pub(crate) fn hang_up(&self, id: u64) {
        if let Some(stream) = lock(&self.streams).remove(&id) {
            stream.abort();
        }
    }

    /// Listens to what the server says unasked, which comes on a stream of its own in the legacy era. Most servers have
    /// none.
    pub(crate) fn listen(self: &Arc<Self>, version: &'static str) {
        let link = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            let mut wait = Duration::from_secs(1);
            while let Some(link) = link.upgrade() {
                if link.overhear(version).await.is_err() {
                    return;
                }
                drop(link);
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(60));
            }
        });
        if let Some(before) = lock(&self.listener).replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// Ends everything that listens. What listens holds the link itself, which would never end otherwise.
    pub(crate) fn abandon(&self) {
        if let Some(listener) = lock(&self.listener).take() {
            listener.abort();
        }
        lock(&self.streams).drain().for_each(|(_, stream)| stream.abort());
    }

    /// Ends the session at the server too, where there is one.
    pub(crate) async fn close(&self) {
        self.abandon();
        let session = lock(&self.session).take();
        if let Some(session) = session {
            let request = self.client.delete(self.url.clone()).headers(self.headers.clone()).header(SESSION, session);
            let _ = request.send().await; // a server need not know this
        }
    }

    async fn ask(&self, message: &Outgoing, id: u64) -> Result<(), RequestError> {
        let response = self.post(message).await?;
        match content_type(&response).as_str() {
            "application/json" => {
                let text = body(response, self.message_max).await?;
                self.take(&text, message.version, Some(id)).await;
                if self.inbox.is_awaited(id) {
                    return Err(protocol("its answer is for another request").into());
                }
                Ok(())
            }
            "text/event-stream" => Ok(self.follow(response, message, id).await?),
            "" => Err(protocol("it accepts a request and answers nothing").into()),
            other => Err(protocol(&format!("it answers with `{}`", one_line(other, 60))).into()),
        }
    }

    /// Reads the stream until the answer has come; takes it up again where the server lets it end before, as it may.
    async fn follow(&self, response: Response, message: &Outgoing, id: u64) -> Result<(), Failure> {
        let mut next = Some(response);
        let (mut last_id, mut retry) = (None, Duration::from_millis(500));
        for _ in 0..=RESUMED_MAX {
            let Some(response) = next.take() else { break };
            let broke = self.stream(response, message.version, Some(id), &mut last_id, &mut retry).await;
            if !self.inbox.is_awaited(id) {
                return Ok(());
            }
            if broke.as_ref().is_err_and(|failure| failure.kind == Kind::TooLarge) || message.is_modern() {
                broke?;
                break;
            }
            let Some(last) = last_id.as_deref() else { break };
            tokio::time::sleep(retry.min(RETRY_MAX)).await;
            let request = self.request(Method::GET, message.version).header("last-event-id", last);
            next = request.send().await.ok().filter(|response| response.status().is_success());
        }
        Err(Failure::new(Kind::Closed, "the server to answer what it was asked", "its stream ended before the answer"))
    }

    /// Reads the stream of what is said unasked. The error means that the server has none, or that the session is over.
    async fn overhear(&self, version: &'static str) -> Result<(), ()> {
        let request = self.request(Method::GET, Some(version));
        let response = request.send().await.map_err(drop)?;
        if response.status() != StatusCode::OK || content_type(&response) != "text/event-stream" {
            return Err(());
        }
        let (mut last_id, mut retry) = (None, Duration::ZERO);
        self.stream(response, Some(version), None, &mut last_id, &mut retry).await.map_err(drop)
    }

    /// Passes events to the inbox, until the stream ends or `id` is no longer awaited.
    async fn stream(
        &self,
        mut response: Response,
        version: Option<&'static str>,
        id: Option<u64>,
        last_id: &mut Option<String>,
        retry: &mut Duration,
    ) -> Result<(), Failure> {
        let mut events = Events::new(self.message_max);
        while let Some(bytes) = response.chunk().await.map_err(|error| failed(&error))? {
            for Event { name, data, id: event_id, retry_ms } in
                events.feed(&bytes).map_err(|_| too_large(self.message_max))?
            {
                *last_id = event_id.or(last_id.take());
                *retry = retry_ms.map_or(*retry, Duration::from_millis);
                if !data.is_empty() && name.as_deref().is_none_or(|name| name == "message") {
                    self.take(&data, version, id).await;
                }
            }
            if id.is_some_and(|id| !self.inbox.is_awaited(id)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives a message to the inbox, and the server what comes back.
    async fn take(&self, text: &str, version: Option<&'static str>, of: Option<u64>) {
        for reply in self.inbox.receive(text, of) {
            let message = Outgoing { text: reply, id: None, method: "", name: None, headers: Vec::new(), version };
            let _ = tokio::time::timeout(REPLY_MAX, self.post(&message)).await; // it asked; the answer is its own affair
        }
    }

    /// Posts a message. Returns the response if it says that the message was accepted.
    async fn post(&self, message: &Outgoing) -> Result<Response, RequestError> {
        let mut request = self.request(Method::POST, message.version.filter(|_| message.method != "initialize"));
        if message.is_modern() {
            request = request.header("mcp-method", message.method);
            if let Some(name) = &message.name {
                request = request.header("mcp-name", header_value(name));
            }
            for (name, value) in &message.headers {
                request = request.header(format!("mcp-param-{}", name.to_ascii_lowercase()), header_value(value));
            }
        }
        let has_session = message.method != "initialize" && lock(&self.session).is_some();
        if message.method == "initialize" {
            *lock(&self.session) = None;
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(message.text.clone());
        let response = request.send().await.map_err(|error| failed(&error))?;
        let status = response.status();
        if status.is_success() {
            if message.method == "initialize" {
                let session = response.headers().get(SESSION).filter(|id| id.len() <= 1024).cloned();
                *lock(&self.session) = session;
            }
            return Ok(response);
        }
        Err(self.refused(response, status, has_session).await)
    }

    async fn refused(&self, response: Response, status: StatusCode, has_session: bool) -> RequestError {
        let expected = "the address to answer as an MCP server";
        match status.as_u16() {
            401 | 403 => {
                return Failure::new(
                    Kind::Access,
                    expected,
                    format!("it answers {status}: it wants other credentials"),
                )
                .step("give a header that it accepts, such as `--header 'Authorization: Bearer …'`")
                .into();
            }
            404 if has_session => {
                let failure = Failure::new(Kind::SessionOver, "the session to be known", "the server ended it");
                return failure.before_sending().into();
            }
            300..=399 => {
                return Failure::new(Kind::Unreachable, expected, format!("it answers {status}, to look elsewhere"))
                    .step("give the address it redirects to; redirects are not followed with credentials")
                    .into();
            }
            500.. => {
                return Failure::new(Kind::Unreachable, expected, format!("it answers {status}"))
                    .step("look at the server's log, or try again later")
                    .into();
            }
            _ => {}
        }
        // A refusal that says why in the protocol's own words; its id may be missing.
        if let Ok(text) = body(response, 1 << 20).await
            && let Ok(Incoming { error: Some(error), .. }) = serde_json::from_str::<Incoming<'_>>(&text)
        {
            return RequestError::Refused(Refusal {
                code: error.code,
                message: error.message.into_owned(),
                data: error.data.map(ToOwned::to_owned),
            });
        }
        Failure::new(Kind::NotHere, expected, format!("it answers {status}"))
            .step("check the path of the address; most servers answer at /mcp, older ones at /sse")
            .into()
    }

    fn request(&self, method: Method, version: Option<&'static str>) -> RequestBuilder {
        let accept = if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut request = self.client.request(method, self.url.clone()).headers(self.headers.clone());
        request = request.header(ACCEPT, accept);
        if let Some(version) = version {
            request = request.header(VERSION, version);
        }
        match lock(&self.session).clone() {
            Some(session) => request.header(SESSION, session),
            None => request,
        }
    }
}

/// Returns a client that follows no redirect, the checked address, and the headers that go with every request.
pub(super) fn parts(url: &Url) -> Result<(Client, reqwest::Url, HeaderMap), Failure> {
    let refused = |cause: &str| Failure::new(Kind::Start, "the address of an MCP server", cause).before_sending();
    // The causes do not repeat the address, which may hold a secret.
    let address = reqwest::Url::parse(&url.url).map_err(|error| refused(&format!("this is no URL: {error}")))?;
    if !matches!(address.scheme(), "http" | "https") || !address.has_host() {
        return Err(refused("it does not begin with http:// or https:// and a host"));
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err(refused("it holds credentials").step("use `--header 'Authorization: …'` instead"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &url.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refused(&format!("`{}` is no name of a header", one_line(name, 60))))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| refused(&format!("the value of the header `{name}` holds characters that no header may")))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    let client = weir_connections::http::client(None).map_err(|error| refused(&error))?;
    Ok((client, address, headers))
}

pub(super) fn failed(error: &reqwest::Error) -> Failure {
    let failure = |cause: &str| Failure::new(Kind::Unreachable, "the address to be reached", cause);
    if error.is_connect() {
        return failure("nothing answers there")
            .step("start the server, or correct host and port")
            .step("where the address is https, check its certificate")
            .before_sending();
    }
    Failure { kind: Kind::Closed, ..failure("the connection broke off, or what answers is no HTTP") }
        .step("look at the server's log")
}

pub(super) fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

async fn body(mut response: Response, max_bytes: usize) -> Result<String, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn protocol(cause: &str) -> Failure {
    Failure::new(Kind::Protocol, "the address to answer as an MCP server", cause)
        .step("check the path of the address; most servers answer at /mcp, older ones at /sse")
}

/// Returns a text as it is if a header can hold it, and in the protocol's form of base64 otherwise.
fn header_value(text: &str) -> HeaderValue {
    use base64::Engine as _;
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let plain = plain && text.trim() == text && !text.starts_with("=?base64?");
    let value = match plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text)),
    };
    HeaderValue::from_str(&value).expect("plain ASCII")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
