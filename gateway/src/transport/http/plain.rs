//! The front door of plain HTTP: refusals are problems (RFC 9457), and people may send their key as a password.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, header, request::Parts},
    response::Response,
};

use super::{
    HttpServerState, reply,
    rest::{CallResponse, problem},
};
use crate::{
    codes::FailureCode,
    config::HttpConfig,
    identity::{AuthenticationError, CallerIdentity},
    methods::CatalogueEndpoint,
    serving::ServingGateway,
    transport::front_door::{self, AdmittedCaller, DoorSurface, ScopeNeeded, close_if_unread},
    wire::RpcError,
};

/// A part of the listener that serves plain HTTP.
pub(super) struct PlainSurface {
    /// The first segment of its paths.
    segment: &'static str,
    is_open: fn(&HttpConfig) -> bool,
    closed: &'static str,
    /// Whether a browser asks the person for the key (as the password of HTTP's Basic scheme) and remembers it.
    asks_people: bool,
}

pub(super) const REST: PlainSurface = PlainSurface {
    segment: "rest",
    is_open: |http| http.rest,
    closed: "Tools are not served by plain HTTP: [http] rest is false.",
    asks_people: false,
};

/// The page for people that describes the tools.
pub(super) const REFERENCE: PlainSurface = PlainSurface {
    asks_people: true,
    ..REST
};

pub(super) const FORMS: PlainSurface = PlainSurface {
    segment: "forms",
    is_open: |http| http.forms,
    closed: "Tools are not served as forms: [http] forms is false.",
    asks_people: true,
};

/// One contract in such a part, as a surface of the door.
struct PlainContract<'p> {
    plain: &'p PlainSurface,
    contract: &'p str,
}

impl PlainSurface {
    /// Returns this part of a contract.
    fn contract<'p>(&'p self, contract: &'p str) -> PlainContract<'p> {
        PlainContract {
            plain: self,
            contract,
        }
    }

    /// Answers admitted callers with `enter`. No cache may keep the answer.
    pub(super) async fn answer(
        &self,
        server: &HttpServerState,
        contract: &str,
        request: Request,
        enter: impl AsyncFnOnce(AdmittedCaller<'_>, &Parts, Body) -> Response,
    ) -> Response {
        let (head, body) = request.into_parts();
        let enter = async |admitted: AdmittedCaller<'_>, body| enter(admitted, &head, body).await;
        let surface = self.contract(contract);
        server.door.answer(&surface, &head, body, enter).await
    }

    /// Answers with a page or a document of a contract, which is charged to the rate of its agent. `show` returns `None` if the
    /// caller sees no such contract.
    pub(super) async fn page(
        &self,
        server: &HttpServerState,
        contract: &str,
        request: Request,
        show: impl FnOnce(&CallerIdentity) -> Option<Response>,
    ) -> Response {
        let enter = async |admitted: AdmittedCaller<'_>, head: &Parts, _| {
            if !is_read(&head.method) {
                return not_allowed("GET, HEAD, OPTIONS");
            }
            let place = head.uri.path();
            if let Err(error) = admitted.within_rate(place).await {
                return refusal(&error);
            }
            show(admitted.caller()).unwrap_or_else(|| {
                admitted.record_hidden(place);
                unknown_contract()
            })
        };
        self.answer(server, contract, request, enter).await
    }
}

impl DoorSurface for PlainContract<'_> {
    fn place(&self) -> String {
        format!("/{}/{}", self.plain.segment, self.contract)
    }

    fn endpoint(&self) -> CatalogueEndpoint {
        CatalogueEndpoint::contract(self.contract)
    }

    fn closed(&self, gateway: &ServingGateway) -> Option<Response> {
        (!(self.plain.is_open)(&gateway.config().http))
            .then(|| problem(404, "not_served", self.plain.closed.to_owned()).into_response())
    }

    fn methods(&self) -> Option<&'static str> {
        None
    }

    fn asks_people(&self) -> bool {
        self.plain.asks_people
    }

    fn refusal(&self, error: &RpcError) -> Response {
        refusal(error)
    }

    fn unauthorized(&self, refused: AuthenticationError, _: Option<&[u8]>) -> Response {
        let mut response = refusal(&RpcError::from(refused));
        reply::challenge(&mut response, refused);
        if self.plain.asks_people && !refused.is_temporary() {
            let challenge = "Basic realm=\"weir: the key is the password\", charset=\"UTF-8\"";
            response.headers_mut().insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(challenge),
            );
        }
        response
    }

    fn complete(&self, headers: &mut HeaderMap, is_exposed: bool) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if is_exposed {
            let exposed = HeaderValue::from_static("Weir-Receipt, Retry-After, WWW-Authenticate");
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// Returns `true` if a page or a document is requested; the answer to a HEAD is sent without its body.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Answers that the caller sees no such contract.
fn unknown_contract() -> Response {
    problem(
        404,
        "unknown_contract",
        "No such contract is served here.".to_owned(),
    )
    .into_response()
}

/// Returns the answer to a request that is refused before it becomes a call.
pub(super) fn refusal(error: &RpcError) -> Response {
    let code = match error.status {
        429 => FailureCode::RateLimited.label(),
        _ => "refused",
    };
    let answer = problem(error.status, code, error.message.to_string());
    let mut response = CallResponse {
        retry_after_s: error.retry_after_s,
        ..answer
    }
    .into_response();
    if error.needs_scope() {
        response.extensions_mut().insert(ScopeNeeded);
    }
    close_if_unread(error, response)
}

pub(super) fn not_allowed(allow: &'static str) -> Response {
    front_door::not_allowed(allow, refusal)
}
