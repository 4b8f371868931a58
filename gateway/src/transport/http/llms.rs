//! `/llms.txt`, `/mcp/<contract>/llms.txt` and `/mcp/view/<view>/llms.txt`: what the caller may see, as text.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    http::header,
    response::{IntoResponse as _, Response},
};

use super::{HttpServerState, reply};
use crate::{
    identity::AuthenticationError,
    methods::{CatalogueEndpoint, RequestScope},
    transport::front_door::{AdmittedCaller, DoorSurface},
    wire::RpcError,
};

pub(super) async fn all(State(server): State<Arc<HttpServerState>>, request: Request) -> Response {
    answer(&server, CatalogueEndpoint::All, request).await
}

pub(super) async fn contract(
    State(server): State<Arc<HttpServerState>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    answer(&server, CatalogueEndpoint::contract(&contract), request).await
}

/// Answers for a contract called `view`, which is a permitted name.
pub(super) async fn contract_view(
    State(server): State<Arc<HttpServerState>>,
    request: Request,
) -> Response {
    answer(&server, CatalogueEndpoint::Contract("view".into()), request).await
}

pub(super) async fn view(
    State(server): State<Arc<HttpServerState>>,
    Path(view): Path<String>,
    request: Request,
) -> Response {
    answer(&server, CatalogueEndpoint::View(view.into()), request).await
}

/// Answers with the page. Host, Origin and the key are checked by the same rules as at the MCP endpoints.
async fn answer(
    server: &HttpServerState,
    endpoint: CatalogueEndpoint,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let surface = LlmsPage(path, &endpoint);
    let enter = async |admitted: AdmittedCaller<'_>, _| match admitted.within_rate(path).await {
        Ok(()) => page(&admitted.into_scope(endpoint.clone())),
        Err(error) => reply::refusal(&error),
    };
    server.door.answer(&surface, &head, body, enter).await
}

/// A text page at the door, by its path.
struct LlmsPage<'p>(&'p str, &'p CatalogueEndpoint);

impl DoorSurface for LlmsPage<'_> {
    fn place(&self) -> String {
        self.0.to_owned()
    }

    fn endpoint(&self) -> CatalogueEndpoint {
        self.1.clone()
    }

    fn methods(&self) -> Option<&'static str> {
        Some("GET, HEAD, OPTIONS")
    }

    fn refusal(&self, error: &RpcError) -> Response {
        reply::refusal(error)
    }

    fn unauthorized(&self, refused: AuthenticationError, _: Option<&[u8]>) -> Response {
        reply::unauthorized(refused, None)
    }
}

fn page(scope: &RequestScope) -> Response {
    match scope.listing() {
        Ok(listing) => {
            let headers = [
                (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
                // Other callers may see other tools.
                (header::CACHE_CONTROL, "private, no-cache"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, listing.llms().to_owned()).into_response()
        }
        Err(error) => reply::refusal(&error),
    }
}
