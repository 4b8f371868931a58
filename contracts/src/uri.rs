//! Gives each resource one name in the whole gateway, and maps it back to the server's own.
//!
//! Two servers may both have `file:///readme`, and a client identifies a resource only by its URI. A resource is
//! therefore published as `<contract>+<uri>`, which is a URI with its own scheme. A page of MCP Apps keeps its scheme,
//! which hosts look at: `ui://weir/<contract>/<its own URI, percent-encoded>`.

use serde_json::{Map, Value};

use crate::json;

const UI: &str = "ui://";
const OUR_UI: &str = "ui://weir/";
/// The longest URI that is made from a template, in bytes.
const MADE_BYTES_MAX: usize = 32 << 10;

/// The URI that clients see. `scope`: the name of the contract, where its URIs may be those of other contracts too.
pub fn published_uri(scope: Option<&str>, own: &str) -> String {
    let Some(contract) = scope else {
        return own.to_owned();
    };
    match own.starts_with(UI) {
        true => format!("{OUR_UI}{contract}/{}", encoded(own)),
        false => format!("{contract}+{own}"),
    }
}

/// Returns the contract that a published URI belongs to, and its server's own URI.
pub fn own_uri(published: &str) -> Option<(&str, String)> {
    if let Some(rest) = published.strip_prefix(OUR_UI) {
        let (contract, own) = rest.split_once('/')?;
        return Some((contract, json::percent_decoded(own)));
    }
    let (contract, own) = published.split_once('+')?;
    crate::name::check_contract(contract)
        .ok()
        .map(|()| (contract, own.to_owned()))
}

/// The template that clients see. The braces of a page's template remain braces, so it has the form of other resources.
pub fn published_template(scope: Option<&str>, own: &str) -> String {
    scope.map_or_else(|| own.to_owned(), |contract| format!("{contract}+{own}"))
}

/// Whether a URI is of a form that this gateway gives to others' resources: a plugin's own may not be.
pub fn is_given(uri: &str) -> bool {
    uri.starts_with("weir:") || uri.starts_with(OUR_UI) || own_uri(uri).is_some()
}

/// Returns the key in a record's URI, `weir://<contract>/<collection>/<key>`; `None` for any other URI. `template` is
/// the published one.
pub fn record_key(template: &str, uri: &str) -> Option<String> {
    let head = template.strip_suffix("{key}")?;
    is_made_of(template, uri).then(|| json::percent_decoded(&uri[head.len()..]))
}

/// Returns `true` if a URI can have been made from a template (RFC 6570): its literal parts occur in order, and the rest can
/// be the values of its expressions. The server judges the values. A URI of more than 32 KiB never matches: a caller may have
/// it compared with many templates.
pub fn is_made_of(template: &str, uri: &str) -> bool {
    if uri.len() > MADE_BYTES_MAX {
        return false;
    }
    let Some((head, mut rest)) = template.split_once('{') else {
        return template == uri;
    };
    let Some(mut left) = uri.strip_prefix(head) else {
        return false;
    };
    loop {
        let Some((expression, after)) = rest.split_once('}') else {
            return false;
        };
        let (literal, next) = match after.split_once('{') {
            Some((literal, next)) => (literal, Some(next)),
            None => (after, None),
        };
        let at = match next {
            None => left.strip_suffix(literal).map(str::len),
            Some(_) => left.find(literal),
        };
        let Some(at) = at.filter(|at| can_stand(expression, &left[..*at])) else {
            return false;
        };
        let Some(next) = next else { return true };
        left = &left[at + literal.len()..];
        rest = next;
    }
}

/// Returns `true` if the value is possible for the expression. A plain variable is at most one segment of a path; one
/// with an operator may be absent.
fn can_stand(expression: &str, value: &str) -> bool {
    match expression.as_bytes().first() {
        Some(b'+' | b'#' | b'/' | b'.' | b';' | b'?' | b'&') => true,
        _ => !value.is_empty() && !value.contains(['/', '?', '#']),
    }
}

/// Rewrites every URI in an item of a list, in a result or in a notification of a server: `uri`, `uriTemplate`, those of
/// content blocks (`resource`, `resource_link`), of read `contents` and of prompt messages, and the page of MCP Apps in
/// `_meta`. Texts and `structuredContent` are the server's own words and are not changed.
pub fn publish_uris(contract: &str, members: &mut Map<String, Value>) {
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("uri", Value::String(uri)) => *uri = published_uri(Some(contract), uri),
            ("uriTemplate", Value::String(template)) => {
                *template = published_template(Some(contract), template)
            }
            ("_meta", Value::Object(meta)) => publish_page(contract, meta),
            ("resource" | "content", Value::Object(inner)) => publish_uris(contract, inner),
            ("contents" | "content" | "messages", Value::Array(items)) => {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    publish_uris(contract, item);
                }
            }
            _ => {}
        }
    }
}

/// Rewrites `_meta.ui.resourceUri`, and the flat member of older hosts.
pub(super) fn publish_page(contract: &str, meta: &mut Map<String, Value>) {
    let nested = meta.get_mut("ui").and_then(|ui| ui.get_mut("resourceUri"));
    if let Some(Value::String(uri)) = nested {
        *uri = published_uri(Some(contract), uri);
    }
    if let Some(Value::String(uri)) = meta.get_mut("ui/resourceUri") {
        *uri = published_uri(Some(contract), uri);
    }
}

/// Removes a link to a page that is not published. Returns `true` if there was one.
pub(super) fn remove_page(meta: &mut Map<String, Value>) -> bool {
    let flat = meta.shift_remove("ui/resourceUri").is_some();
    let Some(Value::Object(ui)) = meta.get_mut("ui") else {
        return flat;
    };
    let nested = ui.shift_remove("resourceUri").is_some();
    if ui.is_empty() {
        meta.shift_remove("ui");
    }
    flat || nested
}

/// Encodes a URI as a single segment of a path.
fn encoded(uri: &str) -> String {
    uri.bytes()
        .fold(String::with_capacity(uri.len()), |mut encoded, byte| {
            match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                true => encoded.push(char::from(byte)),
                false => encoded.push_str(&format!("%{byte:02X}")),
            }
            encoded
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_of_the_template_that_it_can_have_been_made_of() {
        for (template, uri, is) in [
            ("demo://r/{id}", "demo://r/7", true),
            ("demo://r/{id}", "demo://r/", false),
            ("demo://r/{id}", "demo://r/../secret", false),
            ("demo://r/{id}/end", "demo://r/7/end", true),
            ("demo://r/{id}/end", "demo://r/7/begin", false),
            ("file:///{+path}", "file:///a/b", true),
            ("repo://{owner}/{name}", "repo://acme/site", true),
            ("repo://{owner}/{name}", "repo://acme", false),
            ("find://x{?q}", "find://x?q=1", true),
            ("find://x{?q}", "find://x", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://y", false),
            ("broken://{x", "broken://x", false),
        ] {
            assert_eq!(is_made_of(template, uri), is, "{template} {uri}");
        }
        let long = |bytes: usize| format!("file:///{}", "x".repeat(bytes - "file:///".len()));
        assert!(is_made_of("file:///{+path}", &long(MADE_BYTES_MAX)));
        assert!(!is_made_of("file:///{+path}", &long(MADE_BYTES_MAX + 1)));
    }
}
