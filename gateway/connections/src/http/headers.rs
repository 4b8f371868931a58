//! Decides which headers go out and which come back.

use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, IF_MATCH};

use super::TraceContext;
use crate::{ConnectionError, FailureCode};

const COUNT_MAX: usize = 50;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Headers that name the sender, the receiver, or the end of a message: they belong to the connection, not to a guest.
const RESERVED: [&str; 23] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "accept-encoding",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    // These would turn a permitted GET into something else.
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-real-ip",
];
const RESERVED_PREFIXES: [&str; 3] = ["proxy-", "x-forwarded-", "sec-"];

/// Reads the headers that the operator wrote, secrets among them.
pub(super) fn of_connection(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not a header name"))?;
        if matches!(
            parsed.as_str(),
            "host" | "content-length" | "transfer-encoding" | "connection"
        ) {
            return Err(format!("the header `{name}` cannot be set"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    map.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(map)
}

/// Returns the headers of a request: the connection's, which nothing can replace, and the guest's.
pub(super) fn of_request(
    headers: &[(String, String)],
    own: &HeaderMap,
) -> Result<HeaderMap, ConnectionError> {
    if headers.len() > COUNT_MAX {
        return Err(ConnectionError::new(
            FailureCode::InvalidArguments,
            "there are more than 50 headers",
        )
        .field("headers"));
    }
    let mut map = own.clone();
    for (name, value) in headers {
        let refused =
            |why: &str| ConnectionError::new(FailureCode::InvalidArguments, why).field("headers");
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refused("a header's name is not allowed"))?;
        // An adapter sends the entity tag that it read, even if the connection sets the header.
        if name == IF_MATCH && own.contains_key(&name) {
            continue;
        }
        let reserved = RESERVED.contains(&name.as_str())
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix))
            || own.contains_key(&name);
        if reserved {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                format!("the header {name} is the connection's own"),
            )
            .field("headers"));
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| refused("a header's value contains a character that cannot be sent"))?;
        map.append(name, value);
    }
    Ok(map)
}

/// Adds the trace that a request belongs to, unless it has one already.
pub(super) fn carry(headers: &mut HeaderMap, trace: Option<&TraceContext>) {
    let Some(trace) = trace.filter(|_| !headers.contains_key(TRACEPARENT)) else {
        return;
    };
    if let Ok(parent) = HeaderValue::from_str(&trace.parent) {
        headers.insert(TRACEPARENT, parent);
        // A guest's state of another trace does not belong to this one.
        headers.remove(TRACESTATE);
        let state = trace.state.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(state)) = state {
            headers.insert(TRACESTATE, state);
        }
    }
}

/// Returns the headers that a guest may see: all but cookies.
pub(super) fn of_response(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "set-cookie" | "set-cookie2"))
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

/// Returns the text of a header. Beyond ASCII it is UTF-8, or else ISO 8859-1, in which HTTP had texts before.
pub(super) fn text(value: &HeaderValue) -> String {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The import of documents judges the same list.
    #[test]
    fn headers_are_judged_as_by_the_import() {
        let text = include_str!("../../../../tests/fixtures/header-names.json");
        let names: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let own = HeaderMap::new();
        for (kind, code) in [
            ("reserved", Some(FailureCode::Forbidden)),
            ("free", None),
            ("none", Some(FailureCode::InvalidArguments)),
        ] {
            for name in names[kind].as_array().expect("a list") {
                let name = name.as_str().expect("a text");
                let header = [(name.to_owned(), "x".to_owned())];
                let refused = of_request(&header, &own).err().map(|error| error.code);
                assert_eq!(refused, code, "{name:?}");
            }
        }
    }

    #[test]
    fn a_header_beyond_ascii_is_text() {
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: &[u8]| {
            let value = HeaderValue::from_bytes(value).expect("a value");
            headers.append(HeaderName::from_static(name), value);
        };
        add("link", "</x?q=Zürich&page=2>; rel=\"next\"".as_bytes());
        add("link", b"</x?q=Z\xfcrich&page=2>; rel=\"next\"");
        add("set-cookie", b"a=b");
        let link = "</x?q=Zürich&page=2>; rel=\"next\"";
        let expected = ("link".to_owned(), link.to_owned());
        assert_eq!(of_response(&headers), [expected.clone(), expected]);
    }
}
