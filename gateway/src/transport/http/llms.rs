//! `/llms.txt`, `/mcp/<contract>/llms.txt` and `/mcp/view/<view>/llms.txt`: what the caller may see, in words.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, Request, State},
    http::{HeaderValue, Method, header},
    response::Response,
};
use weir_audit::RefusedWhat;

use super::{Server, access, connections, door, reply};
use crate::{
    identity::Credential,
    methods::{Endpoint, RequestScope},
};

pub(super) async fn all(State(server): State<Arc<Server>>, request: Request) -> Response {
    answer(&server, Endpoint::All, &request)
}

pub(super) async fn contract(
    State(server): State<Arc<Server>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    answer(&server, Endpoint::Contract(contract.into()), &request)
}

/// Answers for the contract `view`, which is a name that a contract may have.
pub(super) async fn contract_view(State(server): State<Arc<Server>>, request: Request) -> Response {
    answer(&server, Endpoint::Contract("view".into()), &request)
}

pub(super) async fn view(
    State(server): State<Arc<Server>>,
    Path(view): Path<String>,
    request: Request,
) -> Response {
    answer(&server, Endpoint::View(view.into()), &request)
}

/// Answers with the page. Host, Origin and the key meet the same rules as where MCP is spoken.
fn answer(server: &Server, endpoint: Endpoint, request: &Request) -> Response {
    let origin = match server.access.check(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(refused) => {
            refuse(server, RefusedWhat::Request, request, None, refused.what);
            return reply::refusal(&refused.error);
        }
    };
    let mut response = match *request.method() {
        Method::OPTIONS => access::preflight(request.headers(), origin.is_some()),
        Method::GET | Method::HEAD => page(server, endpoint, request),
        _ => reply::not_allowed("GET, HEAD, OPTIONS"),
    };
    if let Some(origin) = origin {
        access::expose(response.headers_mut(), origin);
    }
    response
}

fn page(server: &Server, endpoint: Endpoint, request: &Request) -> Response {
    let authorization = request
        .headers()
        .get_all(header::AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes);
    let credential = Credential::of_header(authorization);
    let caller = match server.gateway.identities().resolve(credential) {
        Ok(caller) => caller,
        Err(refused) => {
            refuse(
                server,
                RefusedWhat::Identity,
                request,
                credential.id(),
                &refused.to_string(),
            );
            return reply::unauthorized(refused, None);
        }
    };
    if let Err(error) = door::within_rate(server, &caller, request.uri().path()) {
        return reply::refusal(&error);
    }
    let scope = RequestScope {
        gateway: server.gateway.clone(),
        endpoint: endpoint.of(&caller),
        caller,
        transport: "http",
        client: None,
    };
    match scope.listing() {
        Ok(listing) => {
            let mut response = Response::new(Body::from(listing.llms().to_owned()));
            let headers = response.headers_mut();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            // Another caller may see other tools.
            headers.insert(
                header::CACHE_CONTROL,
                HeaderValue::from_static("private, no-cache"),
            );
            response
        }
        Err(error) => reply::refusal(&error),
    }
}

fn refuse(server: &Server, what: RefusedWhat, request: &Request, id: Option<&str>, reason: &str) {
    let address = connections::peer().map(|peer| peer.ip());
    server
        .gateway
        .audit()
        .refused(what, request.uri().path(), id, address, reason);
}
