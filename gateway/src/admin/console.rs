//! Serves the console: one page and its files, which were built into the program. They hold no secret, so they need no
//! key; what the page shows it asks the routes of this API for, with the key of the person who looks.

use std::sync::OnceLock;

use axum::{
    Router,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{Html, IntoResponse as _, Response},
    routing::get,
};

use super::{Refusal, problem::At};

/// A file of the console as it was built.
pub struct ConsoleFile {
    /// Below the folder of the build, such as `assets/index-1a2b3c.js`.
    pub path: &'static str,
    /// sha256 of the content, hex.
    pub digest: &'static str,
    pub content: &'static [u8],
    /// The content, compressed with brotli.
    pub compressed: &'static [u8],
}

const PAGE: &str = "index.html";
/// Nothing but this page's own files and this API: no inline script or style, no other origin, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// The page names its files by their content, so that a browser asks for the page alone again.
const REVALIDATE: &str = "no-cache";
const KEEP: &str = "public, max-age=31536000, immutable";
const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Weir</title><h1>This program was \
                       built without the console</h1><p>Run <code>cargo xtask console</code> and build the program \
                       again. The admin API is here all the same: <a href=\"/openapi.json\">/openapi.json</a> \
                       describes it.</p></html>";

static FILES: OnceLock<&[ConsoleFile]> = OnceLock::new();

/// Takes the files that were built into the program. A second call changes nothing.
pub fn embed_console(files: &'static [ConsoleFile]) {
    FILES.get_or_init(|| files);
}

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(show_page))
        .route("/assets/{file}", get(show_asset))
}

async fn show_page(headers: HeaderMap) -> Response {
    match find(PAGE) {
        Some(file) => answer(file, &headers, REVALIDATE),
        None => (StatusCode::NOT_FOUND, protection(), Html(MISSING)).into_response(),
    }
}

async fn show_asset(At(name): At<String>, uri: Uri, headers: HeaderMap) -> Response {
    match find(&format!("assets/{name}")) {
        Some(file) => answer(file, &headers, KEEP),
        None => Refusal::not_found("file", uri.path()).into_response(),
    }
}

fn find(path: &str) -> Option<&'static ConsoleFile> {
    FILES.get()?.iter().find(|file| file.path == path)
}

fn answer(file: &ConsoleFile, headers: &HeaderMap, caching: &'static str) -> Response {
    let is_compressed = takes_brotli(headers);
    let tag = format!(
        "\"{}{}\"",
        &file.digest[..32],
        if is_compressed { "-br" } else { "" }
    );
    let common = [
        (
            header::ETAG,
            HeaderValue::from_str(&tag).expect("hexadecimal"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, protection(), common).into_response();
    }
    let kind = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(file.path)),
    )];
    match is_compressed {
        true => {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("br"))];
            (protection(), common, kind, encoding, file.compressed).into_response()
        }
        false => (protection(), common, kind, file.content).into_response(),
    }
}

fn protection() -> [(HeaderName, HeaderValue); 4] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ]
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// Returns the entries of a header that is a list, of all its lines.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
}

fn takes_brotli(headers: &HeaderMap) -> bool {
    entries(headers, &header::ACCEPT_ENCODING).any(|entry| {
        let (coding, weight) = entry.split_once(';').unwrap_or((entry, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        coding.trim().eq_ignore_ascii_case("br")
            && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

/// Returns `true` if the client has this very file.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    entries(headers, &header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No unit test embeds files, so that this is a program without the console.
    #[tokio::test]
    async fn a_program_without_the_console_says_how_to_make_one() {
        let page = show_page(HeaderMap::new()).await;
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
        assert_eq!(page.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        let body = axum::body::to_bytes(page.into_body(), usize::MAX).await;
        let body = body.expect("a body in memory");
        assert!(String::from_utf8_lossy(&body).contains("cargo xtask console"));
    }

    #[test]
    fn brotli_is_sent_to_those_that_take_it() {
        let takes = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            takes_brotli(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
        };
        assert!(takes("br") && takes("gzip, BR;q=0.5"));
        assert!(!takes("br;q=0") && !takes("gzip") && !takes("br;q=x"));
        assert!(!takes_brotli(&HeaderMap::new()));
    }
}
