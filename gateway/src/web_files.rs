//! Files for browsers that were built into the program: the console, and the script of the pages with forms. They hold no
//! secret, and are served as they were built, each identified by its content.

use std::sync::OnceLock;

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use weir_files::embedded::EmbeddedFile;

/// A file as it was built.
pub struct WebFile {
    /// Below the folder of the build, such as `assets/index-1a2b3c.js`.
    pub path: &'static str,
    /// sha256 of the content, hex.
    pub digest: &'static str,
    pub content: EmbeddedFile,
    /// The content, compressed with brotli; `None` for a file that browsers seldom request.
    pub compressed: Option<&'static [u8]>,
}

/// A file with its content, which the first client without brotli has unpacked. All that were built in are 2 MB together.
pub(crate) struct ServedFile {
    file: &'static WebFile,
    unpacked: OnceLock<Bytes>,
}

/// The time for which a browser keeps a file.
#[derive(Clone, Copy)]
pub(crate) enum FileCaching {
    /// The browser checks each time whether the file is unchanged: a page names its files by their content.
    Revalidate,
    /// The browser keeps a file whose name contains a hash of its content.
    Keep,
}

static FILES: OnceLock<Vec<ServedFile>> = OnceLock::new();

/// Sets the files that were built into the program. A second call changes nothing.
pub fn embed_web_files(files: &'static [WebFile]) {
    FILES.get_or_init(|| files.iter().map(ServedFile::new).collect());
}

/// Returns the file of that path.
pub(crate) fn find_file(path: &str) -> Option<&'static ServedFile> {
    FILES.get()?.iter().find(|served| served.file.path == path)
}

/// Returns the name of the one file in a folder with this suffix; `None` if the program was built without it.
pub(crate) fn find_name(folder: &str, end: &str) -> Option<&'static str> {
    let mut paths = FILES.get()?.iter().map(|served| served.file.path);
    paths.find_map(|path| {
        let name = path.strip_prefix(folder)?.strip_prefix('/')?;
        name.ends_with(end).then_some(name)
    })
}

/// Answers with a file, or that the client already has it.
pub(crate) fn serve_file(
    served: &ServedFile,
    headers: &HeaderMap,
    caching: FileCaching,
    protection: [(HeaderName, HeaderValue); 4],
) -> Response {
    let file = served.file;
    let compressed = file.compressed.filter(|_| takes_brotli(headers));
    let tag = format!(
        "\"{}{}\"",
        &file.digest[..32],
        if compressed.is_some() { "-br" } else { "" }
    );
    let common = [
        (
            header::ETAG,
            HeaderValue::from_str(&tag).expect("hexadecimal"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static(caching.header()),
        ),
        (header::VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, protection, common).into_response();
    }
    let kind = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(file.path)),
    )];
    match compressed {
        Some(compressed) => {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("br"))];
            (protection, common, kind, encoding, compressed).into_response()
        }
        None => (protection, common, kind, served.unpack()).into_response(),
    }
}

impl ServedFile {
    fn new(file: &'static WebFile) -> Self {
        Self {
            file,
            unpacked: OnceLock::new(),
        }
    }

    /// Returns the content, which is unpacked once and not for each request.
    fn unpack(&self) -> Bytes {
        let unpacked = self
            .unpacked
            .get_or_init(|| self.file.content.read().into());
        unpacked.clone()
    }
}

impl FileCaching {
    fn header(self) -> &'static str {
        match self {
            Self::Revalidate => "no-cache",
            Self::Keep => "public, max-age=31536000, immutable",
        }
    }
}

/// Returns the headers that restrict a page, with its content security policy.
pub(crate) fn protection(policy: &'static str) -> [(HeaderName, HeaderValue); 4] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
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
        Some("json") => "application/json",
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
        let weight = weight.trim().to_ascii_lowercase();
        let weight = weight.strip_prefix("q=").unwrap_or("1");
        coding.trim().eq_ignore_ascii_case("br")
            && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

/// Returns `true` if the client already has exactly this file.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    entries(headers, &header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use weir_files::embedded::compress;

    use super::*;

    /// A request without brotli costs no more than one with it.
    #[tokio::test]
    async fn a_file_is_unpacked_once_for_all_requests() {
        let content = b"let field = 1;\n".repeat(1000);
        let packed: &'static [u8] = Box::leak(compress(&content).into_boxed_slice());
        let file: &'static WebFile = Box::leak(Box::new(WebFile {
            path: "assets/form.js",
            digest: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            content: EmbeddedFile::new(content.len(), packed),
            compressed: None,
        }));
        let served = ServedFile::new(file);
        let fetch = async || {
            let headers = HeaderMap::new();
            let response = serve_file(&served, &headers, FileCaching::Keep, protection("p"));
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
            body.expect("a body in memory")
        };
        let (first, second) = (fetch().await, fetch().await);
        assert_eq!(first, content);
        assert_eq!(first.as_ptr(), second.as_ptr(), "the same memory");
    }

    #[test]
    fn brotli_is_sent_to_those_that_take_it() {
        let takes = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            takes_brotli(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
        };
        assert!(takes("br") && takes("gzip, BR;q=0.5"));
        assert!(!takes("br;q=0") && !takes("gzip") && !takes("br;q=x"));
        assert!(!takes("br; Q=0") && takes("br; Q=0.1"));
        assert!(!takes_brotli(&HeaderMap::new()));
    }
}
