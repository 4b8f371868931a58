//! Web services: one base URL with its credentials. A guest chooses method, path, query and body; never a host.

mod document;
mod headers;
mod reach;
mod target;

use std::{
    error::Error as StdError,
    io,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use reqwest::{
    Certificate, Client, Method, StatusCode, Url,
    header::{CONTENT_ENCODING, HeaderMap, LOCATION},
    redirect::Policy,
};
use rustls_platform_verifier::ConfigVerifierExt as _;

use self::reach::ReachResolver;

pub use self::{
    document::{
        DocumentAnswer, DocumentRequest, FetchedDocument, fetch_document, request_document,
    },
    reach::NetworkReach,
};
use crate::{ConnectionError, FailureCode};

const RESPONSE_MAX_BYTES: u64 = 8 * 1024 * 1024;
const REQUEST_MAX_BYTES: usize = 8 * 1024 * 1024;
const CONNECT_MAX: Duration = Duration::from_secs(2);
const REDIRECTS_MAX: usize = 3;

/// A connection to one web service. Its credentials go with every request.
pub struct HttpConnection {
    client: Client,
    base: Url,
    headers: HeaderMap,
    writable: bool,
    limits: HttpLimits,
}

/// The bounds on one request: its time, and the bytes of the response.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    timeout: Option<Duration>,
    response_max_bytes: u64,
}

/// A request of a guest, beneath the base URL of a connection.
pub struct HttpRequest {
    pub method: String,
    /// Relative to the base URL, already percent-encoded by segment; checked not to leave it.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// Appended to `query` as it is: percent-encoded already.
    pub query_encoded: Option<String>,
    pub headers: Vec<(String, String)>,
    /// The trace that it belongs to, which goes along unless the connection or the guest sets one.
    pub trace: Option<TraceContext>,
    pub body: Option<Vec<u8>>,
}

/// The trace that a request belongs to, in W3C's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`, well-formed.
    pub parent: Arc<str>,
    /// `tracestate`, as it came.
    pub state: Option<Arc<str>>,
}

/// The response to a request, read whole.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Makes ring the process's provider of cryptography. Several users of TLS may try; the first one is kept, and all
/// are the same.
pub fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the TLS settings of a client that trusts the machine's certificates, which are read once.
pub fn machine_tls() -> Result<Arc<rustls::ClientConfig>, String> {
    static CONFIG: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    install_tls();
    let config = rustls::ClientConfig::with_platform_verifier();
    let config = config.map_err(|error| {
        format!("the certificates that this machine trusts cannot be read: {error}")
    })?;
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}

/// Returns the TLS settings of a client for addresses without TLS: they trust no certificate.
pub fn no_tls() -> Arc<rustls::ClientConfig> {
    install_tls();
    let none = rustls::RootCertStore::empty();
    Arc::new(
        rustls::ClientConfig::builder()
            .with_root_certificates(none)
            .with_no_client_auth(),
    )
}

/// Makes a client that follows no redirect, since credentials go with its requests, and that ignores proxies from the
/// environment: only the operator decides what goes out, and where to. `ca` is in PEM.
fn client(base: &Url, ca: Option<&str>) -> Result<Client, String> {
    install_tls();
    let mut client = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_MAX)
        .pool_idle_timeout(Duration::from_secs(30))
        .tcp_nodelay(true)
        .dns_resolver(ReachResolver(NetworkReach::Anywhere))
        .no_proxy();
    if let Some(pem) = ca {
        client = client.tls_certs_only(authorities(pem)?);
    } else if base.scheme() == "http" {
        client = client.tls_certs_only([]); // what the machine trusts is not read for nothing
    }
    client
        .build()
        .map_err(|error| format!("the HTTP client cannot be built: {error}"))
}

impl HttpLimits {
    /// Creates bounds. Without a timeout the deadline of the call counts; without a size the default is used.
    pub fn new(timeout_ms: Option<u64>, response_max_bytes: Option<u64>) -> Self {
        Self {
            timeout: timeout_ms.map(Duration::from_millis),
            response_max_bytes: response_max_bytes.unwrap_or(RESPONSE_MAX_BYTES),
        }
    }
}

impl HttpConnection {
    /// Opens a web service. `ca` is in PEM.
    pub fn new(
        base_url: &str,
        headers: &[(String, String)],
        ca: Option<&str>,
        writable: bool,
        limits: HttpLimits,
    ) -> Result<Self, String> {
        let base = target::base(base_url)?;
        let headers = headers::of_connection(headers)?;
        let client = client(&base, ca)?;
        Ok(Self {
            client,
            base,
            headers,
            writable,
            limits,
        })
    }

    /// Returns `true` if methods other than GET and HEAD may be sent.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Returns any answer of the service, whatever its status, except a redirect. Redirects of a GET or HEAD to URLs
    /// under the base URL are followed. A request that may change something runs to its end or the deadline even if the
    /// returned future is dropped.
    pub async fn send(
        &self,
        request: HttpRequest,
        deadline: Instant,
    ) -> Result<HttpResponse, ConnectionError> {
        let method = method(&request.method)?;
        let reads = method == Method::GET || method == Method::HEAD;
        if !reads && !self.writable {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the web service connection is read-only",
            ));
        }
        if request
            .body
            .as_ref()
            .is_some_and(|body| body.len() > REQUEST_MAX_BYTES)
        {
            return Err(ConnectionError::new(
                FailureCode::TooLarge,
                "the request's body is larger than 8 MiB",
            ));
        }
        let mut url = target::url(&self.base, &request.path, &request.query)?;
        if let Some(encoded) = &request.query_encoded {
            target::append_query(&mut url, encoded)?;
        }
        let mut headers = headers::of_request(&request.headers, &self.headers)?;
        headers::carry(&mut headers, request.trace.as_ref());
        let deadline = self
            .limits
            .timeout
            .map_or(deadline, |timeout| deadline.min(Instant::now() + timeout));
        let exchange = HttpExchange {
            client: self.client.clone(),
            base: self.base.clone(),
            method,
            url,
            headers,
            body: request.body,
            response_max_bytes: self.limits.response_max_bytes,
        };
        let within = async move {
            tokio::time::timeout_at(deadline.into(), exchange.run())
                .await
                .unwrap_or_else(|_| Err(timed_out()))
        };
        if reads {
            return within.await;
        }
        tokio::spawn(within).await.unwrap_or_else(|error| {
            Err(
                ConnectionError::new(FailureCode::UpstreamError, "the request failed")
                    .details(error),
            )
        })
    }
}

/// A request and everything that its answer needs. It owns its parts, to outlive its caller.
struct HttpExchange {
    client: Client,
    base: Url,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    response_max_bytes: u64,
}

impl HttpExchange {
    async fn run(self) -> Result<HttpResponse, ConnectionError> {
        let mut url = self.url;
        for _ in 0..=REDIRECTS_MAX {
            let mut request = self
                .client
                .request(self.method.clone(), url.clone())
                .headers(self.headers.clone());
            if let Some(body) = &self.body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(failed)?;
            let Some(location) = redirect(&response) else {
                return answer(response, self.response_max_bytes).await;
            };
            if self.method != Method::GET && self.method != Method::HEAD {
                return Err(redirected(
                    "the web service answers a change with a redirect",
                ));
            }
            url = target::redirected(&self.base, &url, &location)
                .ok_or_else(|| redirected("the web service redirects to somewhere else"))?;
        }
        Err(redirected("the web service redirects too often"))
    }
}

fn authorities(pem: &str) -> Result<Vec<Certificate>, String> {
    match Certificate::from_pem_bundle(pem.as_bytes()) {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err("`ca` holds no certificate in PEM; name its file as `file:PATH`".to_owned()),
    }
}

fn method(name: &str) -> Result<Method, ConnectionError> {
    match name {
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" => {
            Ok(Method::from_bytes(name.as_bytes()).expect("a method"))
        }
        _ => Err(ConnectionError::new(
            FailureCode::InvalidArguments,
            "the method must be GET, HEAD, POST, PUT, PATCH or DELETE",
        )
        .field("method")),
    }
}

fn redirect(response: &reqwest::Response) -> Option<String> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    redirects.then(|| {
        response
            .headers()
            .get(LOCATION)
            .map_or_else(|| "//".to_owned(), headers::text)
    })
}

/// Reads the body as it comes, never more than allowed. Of a failure in a coding that cannot be read only status and headers are
/// returned.
async fn answer(
    mut response: reqwest::Response,
    max_bytes: u64,
) -> Result<HttpResponse, ConnectionError> {
    let codings = response.headers().get_all(CONTENT_ENCODING).iter();
    let is_coded = codings
        .filter(|coding| !coding.is_empty())
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let too_large = || {
        ConnectionError::new(
            FailureCode::TooLarge,
            format!("the answer is larger than {max_bytes} bytes"),
        )
    };
    if response
        .content_length()
        .is_some_and(|length| length > max_bytes)
    {
        return Err(too_large());
    }
    let status = response.status().as_u16();
    let headers = headers::of_response(response.headers());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if is_coded && !(400..600).contains(&status) {
            return Err(ConnectionError::new(
                FailureCode::UpstreamError,
                "the web service answers in a coding it was not asked for",
            ));
        }
        if is_coded {
            break;
        }
        if (body.len() + chunk.len()) as u64 > max_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(HttpResponse {
        status,
        headers,
        body,
    })
}

fn failed(error: reqwest::Error) -> ConnectionError {
    let error = error.without_url();
    let described = if is_distrusted(&error) {
        let message = "the web service shows a certificate that is not accepted";
        return ConnectionError::new(FailureCode::Unavailable, message).details(format!(
            "{}; `ca` of the connection names the authorities that are accepted",
            causes(&error)
        ));
    } else if error.is_connect() {
        ConnectionError::new(
            FailureCode::Unavailable,
            "the web service cannot be reached",
        )
    } else if error.is_timeout() {
        timed_out()
    } else if error.is_body() || error.is_decode() {
        ConnectionError::new(
            FailureCode::UpstreamError,
            "the web service's answer breaks off",
        )
    } else {
        ConnectionError::new(
            FailureCode::UpstreamError,
            "the web service does not answer as HTTP",
        )
    };
    described.details(causes(&error))
}

fn causes(error: &reqwest::Error) -> String {
    let texts: Vec<String> = chain(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// Returns `true` if there is no connection because of the other side's certificate.
pub fn is_distrusted(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|mut cause| {
        // An error of input or output keeps its cause out of the chain of sources.
        while let Some(held) = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            cause = held;
        }
        matches!(
            cause.downcast_ref::<rustls::Error>(),
            Some(rustls::Error::InvalidCertificate(_))
        )
    })
}

fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&cause| cause.source())
}

fn timed_out() -> ConnectionError {
    ConnectionError::new(
        FailureCode::Timeout,
        "the web service did not answer in time",
    )
}

fn redirected(message: &str) -> ConnectionError {
    ConnectionError::new(FailureCode::UpstreamError, message)
}
