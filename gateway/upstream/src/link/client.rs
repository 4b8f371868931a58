//! The HTTP client under the links: requests to one server, with the headers that go with each.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use weir_connections::{
    http::{is_distrusted, machine_tls, no_tls},
    mask::masked,
};
use weir_oauth::SecretText;

use super::child::too_large;
use crate::{
    auth::TokenSource,
    error::{UpstreamFailure, UpstreamFailureKind, one_line},
    settings,
};

const CONNECT_MAX: Duration = Duration::from_secs(2);
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Follows no redirect, since credentials go with its requests, and takes no proxy from the environment.
#[derive(Clone)]
pub(super) struct LinkClient {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
    tokens: Option<TokenSource>,
}

impl LinkClient {
    /// Returns the client, and the checked address.
    pub(super) fn new(
        url: &settings::UpstreamUrl,
        tokens: Option<TokenSource>,
    ) -> Result<(Self, url::Url), UpstreamFailure> {
        let mut address = url::Url::parse(&url.url)
            .map_err(|error| refused(&format!("this is not a URL: {error}")))?;
        if !matches!(address.scheme(), "http" | "https") || !address.has_host() {
            return Err(refused(
                "it does not begin with http:// or https:// and a host",
            ));
        }
        if !address.username().is_empty() || address.password().is_some() {
            return Err(
                refused("it holds credentials").step("use `--header 'Authorization: …'` instead")
            );
        }
        address.set_fragment(None);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_MAX));
        let tls = match address.scheme() {
            "https" => machine_tls().map_err(|error| refused(&error))?,
            _ => no_tls(),
        };
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_timer(TokioTimer::new())
            .build(HttpsConnector::from((tcp, tls)));
        Ok((
            Self {
                http,
                headers: headers(url)?,
                tokens,
            },
            address,
        ))
    }

    /// Returns a request with the headers that go with every request.
    pub(super) fn request(&self, method: Method, address: &Uri) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = address.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request once. One whose token was refused was not executed: it is sent again with another one.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        match &self.tokens {
            None => self.send_once(request).await,
            Some(tokens) => Box::pin(self.send_with_token(tokens, request)).await,
        }
    }

    async fn send_with_token(
        &self,
        tokens: &TokenSource,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        let token = tokens.token(None).await?;
        let response = self.send_once(authorized(request.clone(), &token)?).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let renewed = tokens.token(Some(&token)).await?;
        if renewed == token {
            return Ok(response);
        }
        drop(response);
        self.send_once(authorized(request, &renewed)?).await
    }

    /// Returns the failure of a request that was refused for lack of scopes, if a person can grant them.
    pub(super) fn without_scopes(&self, response: &Response<Incoming>) -> Option<UpstreamFailure> {
        let tokens = self.tokens.as_ref();
        let tokens = tokens.filter(|_| response.status() == StatusCode::FORBIDDEN)?;
        tokens.without_scopes(&challenge(response))
    }

    /// Masks every known secret in a text of the server, the token included.
    pub(super) fn masked(&self, text: String) -> String {
        let text = masked(text);
        match &self.tokens {
            None => text,
            Some(tokens) => tokens.mask(&text).into_owned(),
        }
    }

    async fn send_once(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        self.http.request(request).await.map_err(|error| {
            if !error.is_connect() {
                return broken();
            }
            if is_distrusted(&error) {
                return failed("it shows a certificate that is not accepted")
                    .step("give it a certificate for this address, by an authority that this machine trusts")
                    .before_sending();
            }
            failed("nothing answers there")
                .step("start the server, or correct host and port")
                .step("where the address is https, check that it speaks TLS")
                .before_sending()
        })
    }
}

/// Puts a token into a request.
fn authorized(
    mut request: Request<Full<Bytes>>,
    token: &SecretText,
) -> Result<Request<Full<Bytes>>, UpstreamFailure> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
    let mut value = value.map_err(|_| refused("its token holds characters that no header may"))?;
    value.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(request)
}

/// Returns what a server asks for if it refuses a request without a token.
pub(crate) async fn ask_for_challenge(url: &str) -> Option<String> {
    let url = settings::UpstreamUrl {
        url: url.to_owned(),
        headers: Vec::new(),
        transport: settings::UpstreamTransport::Either,
        auth: None,
    };
    let (client, address) = LinkClient::new(&url, None).ok()?;
    let mut request = client.request(Method::POST, &uri(&address).ok()?);
    let headers = request.headers_mut();
    let accepted = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, accepted);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    *request.body_mut() = Full::from(ping);
    let response = client.send(request).await.ok()?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return None;
    }
    Some(challenge(&response))
}

fn challenge(response: &Response<Incoming>) -> String {
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges = challenges.filter_map(|value| value.to_str().ok());
    challenges.collect::<Vec<_>>().join(", ")
}

/// Returns the headers that the operator gave.
fn headers(url: &settings::UpstreamUrl) -> Result<HeaderMap, UpstreamFailure> {
    let mut headers = HeaderMap::new();
    for (name, value) in &url.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            refused(&format!(
                "`{}` is not the name of a header",
                one_line(name, 60)
            ))
        })?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            refused(&format!(
                "the value of the header `{name}` holds characters that no header may"
            ))
        })?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// Returns the form of an address that requests hold.
pub(super) fn uri(address: &url::Url) -> Result<Uri, UpstreamFailure> {
    Uri::try_from(address.as_str()).map_err(|error| refused(&format!("this is not a URL: {error}")))
}

pub(super) fn content_type(response: &Response<Incoming>) -> String {
    let value = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Checks that a response is not compressed. Weir never asks for that, but some servers do it anyway.
pub(super) fn check_encoding(response: &Response<Incoming>) -> Result<(), UpstreamFailure> {
    let Some(encoding) = response.headers().get(CONTENT_ENCODING) else {
        return Ok(());
    };
    let encoding = encoding.to_str().unwrap_or("?").trim();
    if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let cause = format!(
        "its answer is compressed (`Content-Encoding: {}`), which it was not asked for",
        one_line(encoding, 60)
    );
    Err(UpstreamFailure::new(
        UpstreamFailureKind::Protocol,
        "the server to answer as it was asked",
        cause,
    )
    .step("switch compression off for this address, in the server or in a proxy before it"))
}

/// Returns the next bytes of a body, or `None` at its end.
pub(super) async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, UpstreamFailure> {
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame.map_err(|_| broken())?.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Returns a whole body, which may have `max_bytes`.
pub(super) async fn whole(mut body: Incoming, max_bytes: usize) -> Result<String, UpstreamFailure> {
    let mut read = Vec::new();
    while let Some(bytes) = chunk(&mut body).await? {
        if read.len() + bytes.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        read.extend_from_slice(&bytes);
    }
    Ok(String::from_utf8(read)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The causes do not repeat the address, which may contain a secret.
fn refused(cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Start,
        "the address of an MCP server",
        cause,
    )
    .before_sending()
}

fn failed(cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Unreachable,
        "the address to be reached",
        cause,
    )
}

fn broken() -> UpstreamFailure {
    UpstreamFailure {
        kind: UpstreamFailureKind::Closed,
        ..failed("the connection broke off, or the answer is not HTTP")
    }
    .step("look at the server's log")
}
