//! Streamable HTTP: a POST for each message; the answer is one body or a stream of events.

use std::{collections::HashMap, num::NonZeroU16, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming as Body};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use tokio::task::AbortHandle;
use weir_admission::LARGE_BYTES;
use weir_protocol::sse::{SseDecoder, SseEvent};

use super::{
    REPLY_MAX,
    child::too_large,
    client::{LinkClient, check_encoding, chunk, content_type, uri, whole},
};
use crate::{
    auth::TokenSource,
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, one_line},
    inbox::UpstreamInbox,
    message::{IncomingMessage, OutgoingMessage, own_id, read_refusal, without_mark},
    settings::UpstreamUrl,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The number of tries, one after the other, to take up a stream that ended.
const RESUME_TRIES_MAX: usize = 5;
/// The wait before each try if the server sets none, and the least that it may set. The caller's deadline ends all tries.
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest id of a session that is sent back. It may be a signed token.
const SESSION_ID_MAX_BYTES: usize = 8_192;
/// A server's refusal of the revision of a request.
const UNSUPPORTED_VERSION: i64 = -32022;

pub(crate) struct HttpLink {
    client: LinkClient,
    address: Uri,
    message_max: usize,
    inbox: Arc<UpstreamInbox>,
    session: Mutex<Option<HeaderValue>>,
    /// The tasks that listen on long-lived streams.
    streams: Mutex<HashMap<u64, AbortHandle>>,
    listener: Mutex<Option<AbortHandle>>,
}

impl HttpLink {
    pub(crate) fn new(
        url: &UpstreamUrl,
        message_max: usize,
        tokens: Option<TokenSource>,
        inbox: Arc<UpstreamInbox>,
    ) -> Result<Arc<Self>, UpstreamFailure> {
        let (client, address) = LinkClient::new(url, tokens)?;
        Ok(Arc::new(Self {
            client,
            address: uri(&address)?,
            message_max,
            inbox,
            session: Mutex::default(),
            streams: Mutex::default(),
            listener: Mutex::default(),
        }))
    }

    /// Posts a request, and receives until its answer is in the inbox.
    pub(crate) async fn exchange(&self, message: &OutgoingMessage) -> Result<(), UpstreamFailure> {
        let Some(id) = message.id else {
            return self
                .post(message)
                .await
                .map(drop)
                .map_err(|error| error.into_failure(message.method));
        };
        if let Err(error) = self.answered(message, id).await {
            self.inbox.fail(id, error);
        }
        Ok(())
    }

    /// Posts a message, and leaves the answer of a request to a task.
    pub(crate) async fn send(
        self: &Arc<Self>,
        message: OutgoingMessage,
    ) -> Result<(), UpstreamFailure> {
        let Some(id) = message.id else {
            return self.exchange(&message).await;
        };
        let link = self.clone();
        let task = tokio::spawn(async move { drop(link.exchange(&message).await) });
        let mut streams = self.streams.lock();
        streams.insert(id, task.abort_handle());
        streams.retain(|_, stream| !stream.is_finished());
        Ok(())
    }

    pub(crate) fn hang_up(&self, id: u64) {
        if let Some(stream) = self.streams.lock().remove(&id) {
            stream.abort();
        }
    }

    /// Listens for unsolicited messages of the server, which arrive on a separate stream in the legacy era. Most
    /// servers have none.
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
        if let Some(before) = self.listener.lock().replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// Ends all listening tasks. They hold the link itself, which would otherwise never end.
    pub(crate) fn abandon(&self) {
        if let Some(listener) = self.listener.lock().take() {
            listener.abort();
        }
        self.streams
            .lock()
            .drain()
            .for_each(|(_, stream)| stream.abort());
    }

    /// Ends the session at the server too, if there is one.
    pub(crate) async fn close(&self) {
        self.abandon();
        let session = self.session.lock().take();
        if let Some(session) = session {
            let mut request = self.client.request(Method::DELETE, &self.address);
            request.headers_mut().insert(SESSION, session);
            let _ = self.client.send(request).await; // a server need not support this
        }
    }

    async fn answered(&self, message: &OutgoingMessage, id: u64) -> Result<(), RequestError> {
        let response = self.post(message).await?;
        check_encoding(&response)?;
        match content_type(&response).as_str() {
            "application/json" => {
                let text = whole(response.into_body(), self.message_max).await?;
                self.take(&text, message.version, Some(id)).await;
                if self.inbox.is_awaited(id) {
                    let is_json = serde_json::from_str::<IgnoredAny>(without_mark(&text)).is_ok();
                    return Err(protocol(match is_json {
                        true => "its answer is for another request",
                        false => "its answer is not valid JSON",
                    })
                    .into());
                }
                Ok(())
            }
            "text/event-stream" => Ok(Box::pin(self.follow(response, message, id)).await?),
            "" => Err(protocol(match response.body().is_end_stream() {
                true => "it accepts a request and answers nothing",
                false => "its answer has no Content-Type",
            })
            .into()),
            other => Err(protocol(&format!("it answers with `{}`", one_line(other, 60))).into()),
        }
    }

    /// Reads the stream until the answer has come; takes it up again where the server lets it end before, as it may.
    async fn follow(
        &self,
        response: Response<Body>,
        message: &OutgoingMessage,
        id: u64,
    ) -> Result<(), UpstreamFailure> {
        let mut next = Some(response);
        let (mut last_id, mut retry) = (None, RETRY);
        while let Some(response) = next {
            let broke = self
                .stream(
                    response,
                    message.version,
                    Some(id),
                    &mut last_id,
                    &mut retry,
                )
                .await;
            if !self.inbox.is_awaited(id) {
                return Ok(());
            }
            if broke
                .as_ref()
                .is_err_and(|failure| failure.kind == UpstreamFailureKind::TooLarge)
                || message.is_modern()
            {
                broke?;
                break;
            }
            let Some(last) = &last_id else {
                break;
            };
            next = self
                .resume(message.version, last, retry.max(RETRY_MIN))
                .await;
        }
        Err(UpstreamFailure::new(
            UpstreamFailureKind::Closed,
            "the server to answer the request",
            "its stream ended before the answer",
        ))
    }

    /// Resumes a stream after its last event. `None`: the server does not continue it, or is gone.
    async fn resume(
        &self,
        version: Option<&'static str>,
        last: &HeaderValue,
        retry: Duration,
    ) -> Option<Response<Body>> {
        for _ in 0..RESUME_TRIES_MAX {
            tokio::time::sleep(retry).await;
            let mut request = self.request(Method::GET, version);
            request.headers_mut().insert(LAST_EVENT, last.clone());
            let Ok(response) = self.client.send(request).await else {
                continue;
            };
            if !response.status().is_server_error() {
                let is_stream = response.status().is_success()
                    && content_type(&response) == "text/event-stream";
                return is_stream.then_some(response);
            }
        }
        None
    }

    /// Reads the stream of unrequested messages. An error means that the server has none, or that the session is over.
    async fn overhear(&self, version: &'static str) -> Result<(), ()> {
        let request = self.request(Method::GET, Some(version));
        let response = self.client.send(request).await.map_err(drop)?;
        if response.status() != StatusCode::OK || content_type(&response) != "text/event-stream" {
            return Err(());
        }
        let (mut last_id, mut retry) = (None, Duration::ZERO);
        self.stream(response, Some(version), None, &mut last_id, &mut retry)
            .await
            .map_err(drop)
    }

    /// Passes events to the inbox, until the stream ends or `id` is no longer awaited.
    async fn stream(
        &self,
        response: Response<Body>,
        version: Option<&'static str>,
        id: Option<u64>,
        last_id: &mut Option<HeaderValue>,
        retry: &mut Duration,
    ) -> Result<(), UpstreamFailure> {
        let mut events = SseDecoder::new(self.message_max);
        let (mut body, mut unasked) = (response.into_body(), 0);
        while let Some(bytes) = chunk(&mut body).await? {
            // What comes without a request is small, and may be only comments.
            if id.is_none() {
                unasked += bytes.len();
                if unasked > LARGE_BYTES {
                    self.inbox.count_unasked(unasked);
                    unasked = 0;
                }
                self.inbox.pace().await;
            }
            for SseEvent {
                name,
                data,
                id: event_id,
                retry_ms,
            } in events
                .feed(&bytes)
                .map_err(|_| too_large(self.message_max))?
            {
                if let Some(event_id) = event_id {
                    *last_id = last_event(&event_id);
                }
                *retry = retry_ms.map_or(*retry, Duration::from_millis);
                if !data.is_empty() && name.as_deref().is_none_or(|name| name == "message") {
                    self.take(&data, version, id).await;
                    self.inbox.pace().await;
                }
            }
            if id.is_some_and(|id| !self.inbox.is_awaited(id)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes a message to the inbox, and its replies to the server.
    async fn take(&self, text: &str, version: Option<&'static str>, of: Option<u64>) {
        for reply in self.inbox.receive(text, of).await {
            let message = OutgoingMessage {
                text: reply,
                id: None,
                method: "",
                name: None,
                headers: Vec::new(),
                version,
            };
            let _ = tokio::time::timeout(REPLY_MAX, Box::pin(self.post(&message))).await; // it asked; the answer is its own affair
        }
    }

    /// Posts a message. Returns the response if it reports that the message was accepted.
    async fn post(&self, message: &OutgoingMessage) -> Result<Response<Body>, RequestError> {
        let opens = message.method == "initialize";
        let mut request = self.request(Method::POST, message.version.filter(|_| !opens));
        let headers = request.headers_mut();
        if opens {
            headers.remove(SESSION);
        }
        headers.insert(CONTENT_TYPE, JSON);
        if message.is_modern() {
            headers.insert(METHOD, HeaderValue::from_static(message.method));
            if let Some(name) = &message.name {
                headers.insert(NAME, header_value(name));
            }
            for (name, value) in &message.headers {
                let name = HeaderName::try_from(format!("mcp-param-{}", name.to_ascii_lowercase()));
                let name =
                    name.map_err(|_| protocol("its tool names a header that none can be"))?;
                headers.insert(name, header_value(value));
            }
        }
        let has_session = headers.contains_key(SESSION);
        *request.body_mut() = Full::from(message.text.clone());
        let response = self.client.send(request).await?;
        let status = response.status();
        if status.is_success() {
            if opens {
                let session = response
                    .headers()
                    .get(SESSION)
                    .filter(|id| (1..=SESSION_ID_MAX_BYTES).contains(&id.len()))
                    .cloned();
                *self.session.lock() = session;
            }
            return Ok(response);
        }
        Err(self.refused(response, status, message, has_session).await)
    }

    async fn refused(
        &self,
        response: Response<Body>,
        status: StatusCode,
        message: &OutgoingMessage,
        has_session: bool,
    ) -> RequestError {
        let expected = "the address to answer as an MCP server";
        if let Some(failure) = self.client.without_scopes(&response) {
            return failure.into();
        }
        let is_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
        match status.as_u16() {
            // Earlier versions of the official SDK for Rust refuse a session of before their restart so.
            401 if has_session && !is_challenge => {
                let text = whole(response.into_body(), 1 << 10).await;
                return match text.is_ok_and(|text| loses_session(&text)) {
                    true => session_over("the server no longer knows it").into(),
                    false => wants_access(status).into(),
                };
            }
            401 | 403 => return wants_access(status).into(),
            404 if has_session => {
                return session_over("the server ended it").into();
            }
            429 => return limited(&response).into(),
            300..=399 => {
                let place = response.headers().get(LOCATION);
                let place = place.map(|place| String::from_utf8_lossy(place.as_bytes()));
                let place = place.map(|place| self.client.masked(place.into_owned()));
                return redirected(status, place.as_deref()).into();
            }
            _ => {}
        }
        let retry_after_s = retry_after(&response);
        // A refusal that gives its reason as an error of the protocol; its id may be missing.
        let text = whole(response.into_body(), 1 << 20)
            .await
            .map(|text| self.client.masked(text))
            .unwrap_or_default();
        let refusal = serde_json::from_str::<IncomingMessage<'_>>(without_mark(&text)).ok();
        let (id, error) = refusal.map_or((None, None), |refusal| (refusal.id, refusal.error));
        // An error that does not name the request is about the session or the era, which the server does not know. A text
        // that is not a message of the protocol may be about the arguments.
        let is_about_request = message
            .id
            .is_some_and(|own| id.and_then(own_id) == Some(own));
        // A service in front of the server writes its own errors, which are texts.
        let error = error
            .filter(|error| is_about_request || error.get().starts_with('{'))
            .map(read_refusal);
        let is_wrong_era = error
            .as_ref()
            .is_some_and(|error| error.code == UNSUPPORTED_VERSION);
        let is_of_session = error.is_some() && !is_about_request;
        let is_bad = status == StatusCode::BAD_REQUEST;
        let is_lost = has_session && is_of_session && !is_wrong_era;
        let is_lost = is_lost
            && error.as_ref().is_some_and(|error| {
                is_bad && names_session(&error.message) || loses_session(&error.message)
            });
        // It is unknown what a failing server did, so only the next call uses another session.
        if is_lost && !status.is_server_error() {
            return session_over("the server no longer knows it").into();
        }
        let is_unknown = is_lost || is_bad && (is_wrong_era || is_of_session);
        if is_unknown && message.is_known_everywhere() {
            self.inbox.forgotten().cancel();
        }
        // A proxy in front of a server has its own errors, of similar shapes.
        let is_servers = !status.is_server_error() || is_about_request;
        if let Some(error) = error.filter(|_| is_servers) {
            return RequestError::Refused(error);
        }
        let cause = format!("it answers {status}");
        if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
            let failure = UpstreamFailure::new(UpstreamFailureKind::Unreachable, expected, cause)
                .step("look at the server's log, or try again later");
            return UpstreamFailure {
                retry_after_s,
                ..failure
            }
            .into();
        }
        UpstreamFailure::new(UpstreamFailureKind::NotHere, expected, cause)
            .step("check the path of the address; most servers answer at /mcp, older ones at /sse")
            .into()
    }

    fn request(&self, method: Method, version: Option<&'static str>) -> Request<Full<Bytes>> {
        let accept = if method == Method::GET {
            EVENTS
        } else {
            EITHER
        };
        let mut request = self.client.request(method, &self.address);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, accept);
        if let Some(version) = version {
            headers.insert(VERSION, HeaderValue::from_static(version));
        }
        if let Some(session) = self.session.lock().clone() {
            headers.insert(SESSION, session);
        }
        request
    }
}

/// Returns the failure of a request that was refused for its session, before anything of it was done.
fn session_over(cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::SessionOver,
        "the session to be known",
        cause,
    )
    .before_sending()
}

/// Returns the failure of a request that is answered at another place. Many servers redirect to the same path with a slash.
fn redirected(status: StatusCode, place: Option<&str>) -> UpstreamFailure {
    let place = place.map_or_else(String::new, |place| format!(", `{}`", one_line(place, 200)));
    UpstreamFailure::new(
        UpstreamFailureKind::Unreachable,
        "the address to answer as an MCP server",
        format!("it answers {status}, to look elsewhere"),
    )
    .step(format!(
        "give the address it redirects to{place}; redirects are not followed with credentials"
    ))
}

/// Returns the failure of a request that lacks something that the server requires.
fn wants_access(status: StatusCode) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Access,
        "the address to answer as an MCP server",
        format!("it answers {status}: it needs other credentials"),
    )
    .step("give a header that it accepts, such as `--header 'Authorization: Bearer …'`")
}

/// Returns the failure of a request that the server did not take, with the time after which it takes more.
fn limited(response: &Response<Body>) -> UpstreamFailure {
    let failure = UpstreamFailure::new(
        UpstreamFailureKind::Limited,
        "the server to take another request",
        format!("it answers {}", response.status()),
    )
    .step("call it less often: `rate` in an overlay bounds the calls of a tool")
    .before_sending();
    UpstreamFailure {
        retry_after_s: retry_after(response),
        ..failure
    }
}

/// Returns the time after which the server takes requests again, as it reports; at most an hour.
fn retry_after(response: &Response<Body>) -> Option<NonZeroU16> {
    const SECONDS_MAX: u16 = 3_600;
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    let seconds = u16::try_from(seconds).unwrap_or(SECONDS_MAX);
    NonZeroU16::new(seconds.min(SECONDS_MAX))
}

/// Returns `true` for the messages of servers, other than 404, about a session from before their restart.
fn names_session(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("session") || message.contains("not initialized")
}

/// Returns `true` for words that report an unknown session, whatever else they are about.
pub(crate) fn loses_session(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let is_unknown = ["not found", "expired", "unknown", "initialize"];
    message.contains("session") && is_unknown.iter().any(|word| message.contains(word))
}

fn protocol(cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Protocol,
        "the address to answer as an MCP server",
        cause,
    )
    .step("check the path of the address; most servers answer at /mcp, older ones at /sse")
}

/// Returns the id of the event to resume after, in UTF-8 as in the standard of event streams. An empty id resets the
/// previous one. It is not sent: a GET without an event opens another stream.
fn last_event(id: &str) -> Option<HeaderValue> {
    HeaderValue::from_bytes(id.as_bytes())
        .ok()
        .filter(|id| !id.is_empty())
}

/// Returns a text as it is if a header can hold it, and in the protocol's form of base64 otherwise.
fn header_value(text: &str) -> HeaderValue {
    use base64::Engine as _;
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let plain = plain && text.trim() == text && !text.starts_with("=?base64?");
    let value = match plain {
        true => text.to_owned(),
        false => format!(
            "=?base64?{}?=",
            base64::engine::general_purpose::STANDARD.encode(text)
        ),
    };
    HeaderValue::from_str(&value).expect("plain ASCII")
}
