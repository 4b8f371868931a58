//! The way in for whoever speaks plain HTTP: Host, Origin and key come first, as for MCP, and what is refused is told as a
//! problem (RFC 9457).

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, header, request::Parts},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::time::Instant;
use weir_audit::RefusedWhat;

use super::{
    Server, access, connections,
    rest::{Answer, problem},
};
use crate::{
    codes::Code,
    config::Http,
    identity::{Caller, Credential, Refused},
    wire::RpcError,
};

pub(super) struct Door {
    /// The first segment of its paths.
    segment: &'static str,
    is_open: fn(&Http) -> bool,
    closed: &'static str,
    /// Whether a browser asks the person for the key (as the password of HTTP's Basic scheme) and remembers it.
    asks_people: bool,
}

pub(super) const REST: Door = Door {
    segment: "rest",
    is_open: |http| http.rest,
    closed: "Tools are not served by plain HTTP: [http] rest is false.",
    asks_people: false,
};

/// The page that describes them, which people open.
pub(super) const REFERENCE: Door = Door {
    asks_people: true,
    ..REST
};

pub(super) const FORMS: Door = Door {
    segment: "forms",
    is_open: |http| http.forms,
    closed: "Tools are not served as forms: [http] forms is false.",
    asks_people: true,
};

impl Door {
    /// Lets `answer` answer those who may come in. No cache may keep what it answers.
    pub(super) async fn admitted(
        &self,
        server: &Server,
        contract: &str,
        request: Request,
        answer: impl AsyncFnOnce(Caller, Parts, Body) -> Response,
    ) -> Response {
        let (head, body) = request.into_parts();
        let place = format!("/{}/{contract}", self.segment);
        let audit = server.gateway.audit();
        let address = || connections::peer().map(|peer| peer.ip());
        let origin = match server.access.check(&head.uri, &head.headers) {
            Ok(origin) => origin.cloned(),
            Err(refused) => {
                audit.refused(RefusedWhat::Request, &place, None, address(), refused.what);
                return refusal(&refused.error);
            }
        };
        if !(self.is_open)(&server.gateway.config().http) {
            return problem(404, "not_served", self.closed.to_owned()).into_response();
        }
        let mut response = if head.method == Method::OPTIONS {
            access::preflight(&head.headers, origin.is_some())
        } else {
            let password = if self.asks_people {
                password(&head.headers)
            } else {
                None
            };
            let credential = match &password {
                Some(password) => Credential::Key(password),
                None => {
                    let values = head.headers.get_all(header::AUTHORIZATION).iter();
                    Credential::of_header(values.map(HeaderValue::as_bytes))
                }
            };
            match server.gateway.identities().resolve(credential) {
                Ok(caller) => answer(caller, head, body).await,
                Err(refused) => {
                    audit.refused(
                        RefusedWhat::Identity,
                        &place,
                        credential.id(),
                        address(),
                        &refused.to_string(),
                    );
                    self.unauthorized(refused)
                }
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(origin) = origin {
            access::expose(headers, &origin);
            let exposed = HeaderValue::from_static("Weir-Receipt, Retry-After, WWW-Authenticate");
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
        response
    }

    /// Answers with a page or a document of a contract, which takes from the rate of its agent. `show` returns `None` where
    /// the caller sees no such contract.
    pub(super) async fn page(
        &self,
        server: &Server,
        contract: &str,
        request: Request,
        show: impl FnOnce(&Caller) -> Option<Response>,
    ) -> Response {
        let answer = async |caller: Caller, head: Parts, _| {
            if !is_read(&head.method) {
                return not_allowed("GET, HEAD, OPTIONS");
            }
            let place = head.uri.path();
            if let Err(error) = within_rate(server, &caller, place) {
                return refusal(&error);
            }
            show(&caller).unwrap_or_else(|| unknown_contract(server, &caller, place))
        };
        self.admitted(server, contract, request, answer).await
    }

    fn unauthorized(&self, refused: Refused) -> Response {
        let mut response = refusal(&RpcError::unauthorized(refused.message()));
        let challenge = match self.asks_people {
            true => HeaderValue::from_static(
                "Basic realm=\"weir: the key is the password\", charset=\"UTF-8\"",
            ),
            false => HeaderValue::from_static(refused.challenge()),
        };
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
        response
    }
}

/// Returns `true` if a page or a document is asked for; of a HEAD the answer goes without its body.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Takes a page or a document from the rate of its agent: it counts as a request.
pub(super) fn within_rate(server: &Server, caller: &Caller, place: &str) -> Result<(), RpcError> {
    server
        .gateway
        .buckets()
        .request(caller, Instant::now().into_std())
        .map_err(|wait| {
            server.gateway.audit().refused_rate(place, &caller.agent);
            RpcError::rate_limited(wait)
        })
}

/// Answers that the caller sees no such contract.
pub(super) fn unknown_contract(server: &Server, caller: &Caller, place: &str) -> Response {
    server.gateway.audit().refused_access(place, &caller.agent);
    problem(
        404,
        "unknown_contract",
        "No such contract is served here.".to_owned(),
    )
    .into_response()
}

/// Returns the password of `Authorization: Basic …`; the key itself says whose it is.
fn password(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (text, None) = (values.next()?.to_str().ok()?, values.next()) else {
        return None;
    };
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    Some(decoded.split_once(':')?.1.to_owned())
}

/// Returns the answer to a request that is refused before there is a call.
pub(super) fn refusal(error: &RpcError) -> Response {
    let code = match error.status {
        429 => Code::RateLimited.label(),
        _ => "refused",
    };
    let answer = problem(error.status, code, error.message.to_string());
    let mut response = Answer {
        retry_after_s: error.retry_after_s,
        ..answer
    }
    .into_response();
    if matches!(error.status, 401 | 403 | 408 | 413 | 415) {
        // The body, or the rest of it, is not waited for.
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

pub(super) fn not_allowed(allow: &'static str) -> Response {
    let mut response = refusal(&RpcError::refused(
        405,
        format!("the methods allowed here are {allow}"),
    ));
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}
