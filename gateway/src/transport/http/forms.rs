//! Tools as pages for people: `/forms/<contract>/` lists them, `/forms/<contract>/<tool>` is a form that calls its tool, and
//! `/forms/_assets/` has the script and the style of the form, which hold no secret and need no key.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    http::{Method, header, request::Parts},
    response::{IntoResponse as _, Response},
};

use super::{
    HttpServerState,
    plain::{self, not_allowed, refusal},
    rest,
};
use crate::{
    catalogue::{CatalogueEndpoint, CatalogueViewer},
    identity::CallerIdentity,
    pages,
    transport::front_door::AdmittedCaller,
    web_files::{FileCaching, find_file, protection, serve_file},
};

pub(super) async fn index(
    State(server): State<Arc<HttpServerState>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    let show = |caller: &CallerIdentity| {
        let snapshot = server.gateway.snapshot();
        let endpoint = CatalogueEndpoint::contract(&contract);
        let listing = snapshot
            .catalogue
            .listing(&endpoint, CatalogueViewer::Caller(caller))?;
        let title = listing
            .server
            .title
            .as_deref()
            .unwrap_or(&listing.server.name);
        let tools = listing.tools.entries().iter().map(|tool| &*tool.tool);
        Some(html(pages::index(
            title,
            listing.server.instructions.as_deref(),
            tools,
        )))
    };
    plain::FORMS.page(&server, &contract, request, show).await
}

pub(super) async fn tool(
    State(server): State<Arc<HttpServerState>>,
    Path((contract, tool)): Path<(String, String)>,
    request: Request,
) -> Response {
    let name = contract.clone();
    let enter = async |admitted: AdmittedCaller<'_>, head: &Parts, body| match head.method {
        Method::POST => rest::call(&server, admitted, contract, tool, head, body).await,
        Method::GET | Method::HEAD => {
            if let Err(error) = admitted.within_rate(head.uri.path()).await {
                return refusal(&error);
            }
            let snapshot = server.gateway.snapshot();
            match snapshot.catalogue.tool(
                &CatalogueEndpoint::contract(&contract),
                &tool,
                CatalogueViewer::Caller(admitted.caller()),
            ) {
                Some(tool) => html(pages::tool(&tool.tool)),
                None => rest::unknown_tool(&tool).into_response(),
            }
        }
        _ => not_allowed("GET, HEAD, POST, OPTIONS"),
    };
    plain::FORMS.answer(&server, &name, request, enter).await
}

/// Serves a file of the form.
pub(super) async fn asset(
    State(server): State<Arc<HttpServerState>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let (head, _) = request.into_parts();
    if let Err(error) = server.door.visit(&head, || head.uri.path().to_owned()) {
        return refusal(&error);
    }
    if !plain::is_read(&head.method) {
        return not_allowed("GET, HEAD");
    }
    let is_served = server.gateway.config().http.forms;
    let path = format!("{}/{name}", pages::FORM_FILES);
    match find_file(&path).filter(|_| is_served) {
        Some(file) => {
            let protection = protection(pages::policy());
            serve_file(file, &head.headers, FileCaching::Keep, protection)
        }
        None => {
            rest::problem(404, "not_served", "No such file is served.".to_owned()).into_response()
        }
    }
}

pub(super) fn html(page: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, pages::policy()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page).into_response()
}
