//! Requests to the bucket, by the client of HTTP that this program has already.

use std::{pin::Pin, time::Duration};

use http_body_util::BodyExt as _;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
};

const CONNECT_MAX: Duration = Duration::from_secs(5);
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// The client that a connector returns: the same one for all requests.
#[derive(Clone, Debug)]
pub(crate) struct BucketClient(reqwest::Client);

impl HttpConnector for BucketClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for BucketClient {
    fn call<'service, 'call>(
        &'service self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'service: 'call,
        Self: 'call,
    {
        Box::pin(self.send(request))
    }
}

impl BucketClient {
    /// Makes a client that follows no redirect and ignores proxies from the environment.
    pub(crate) fn new() -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_MAX)
            .timeout(REQUEST_MAX)
            .build()?;
        Ok(Self(client))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let sent = self
            .0
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body)
            .send()
            .await;
        let response: http::Response<reqwest::Body> = sent.map_err(failed)?.into();
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(failed))))
    }
}

fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}
