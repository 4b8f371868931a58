//! Serves the console: one page and its files, which were built into the program. They require no key; the page gets its data
//! from the routes of this API, with the key of its user.

use axum::{
    Router,
    http::{HeaderMap, StatusCode, Uri},
    response::{Html, IntoResponse as _, Response},
    routing::get,
};

use super::{AdminProblem, problem::PathParams};
use crate::web_files::{FileCaching, find_file, protection, serve_file};

const PAGE: &str = "index.html";
/// Allows only this page's own files and this API: no inline script or style, no other origin, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Weir</title><h1>This program was \
                       built without the console</h1><p>Run <code>cargo xtask console</code> and build the program \
                       again. The admin API is here all the same: <a href=\"/openapi.json\">/openapi.json</a> \
                       describes it.</p></html>";

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(show_page))
        .route("/assets/{file}", get(show_asset))
        .route("/openapi.json", get(show_document))
}

async fn show_page(headers: HeaderMap) -> Response {
    match find_file(PAGE) {
        Some(file) => serve_file(file, &headers, FileCaching::Revalidate, protection(POLICY)),
        None => (StatusCode::NOT_FOUND, protection(POLICY), Html(MISSING)).into_response(),
    }
}

/// Answers with the OpenAPI document of the API, from which the types of the console are also made.
async fn show_document(headers: HeaderMap, uri: Uri) -> Response {
    match find_file("openapi.json") {
        Some(file) => serve_file(file, &headers, FileCaching::Revalidate, protection(POLICY)),
        None => AdminProblem::not_found("file", uri.path()).into_response(),
    }
}

async fn show_asset(
    PathParams(name): PathParams<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match find_file(&format!("assets/{name}")) {
        Some(file) => serve_file(file, &headers, FileCaching::Keep, protection(POLICY)),
        None => AdminProblem::not_found("file", uri.path()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    /// Unit tests embed no files, so this is a program without the console.
    #[tokio::test]
    async fn a_program_without_the_console_says_how_to_make_one() {
        let page = show_page(HeaderMap::new()).await;
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
        assert_eq!(page.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        let body = axum::body::to_bytes(page.into_body(), usize::MAX).await;
        let body = body.expect("a body in memory");
        assert!(String::from_utf8_lossy(&body).contains("cargo xtask console"));
    }
}
