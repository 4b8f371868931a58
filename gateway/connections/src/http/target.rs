//! Finds the target of a request, which is always under the base URL.

use reqwest::Url;

use crate::{ConnectionError, FailureCode};

const PATH_MAX_BYTES: usize = 4096;
const QUERY_MAX_PAIRS: usize = 200;

/// Reads the base URL as the operator wrote it. A query in it (an API key) goes with every request.
pub(super) fn base(text: &str) -> Result<Url, String> {
    // The parser's own messages do not repeat the text, which may contain a secret.
    let url = Url::parse(text).map_err(|error| format!("`base_url` is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("`base_url` must begin with http:// or https:// and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`base_url` must not hold credentials; use `headers`, for instance Authorization"
                .to_owned(),
        );
    }
    if url.fragment().is_some() {
        return Err("`base_url` must not have a fragment".to_owned());
    }
    Ok(url)
}

pub(super) fn url(
    base: &Url,
    path: &str,
    query: &[(String, String)],
) -> Result<Url, ConnectionError> {
    check(path)?;
    if query.len() > QUERY_MAX_PAIRS {
        return Err(ConnectionError::new(
            FailureCode::InvalidArguments,
            "there are more than 200 query parameters",
        )
        .field("query"));
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    let whole = match path {
        "" => base.path().to_owned(),
        path => format!("{}/{path}", base.path().trim_end_matches('/')),
    };
    let mut url = base.clone();
    url.set_path(&whole);
    // The URL library normalises; had it changed anything, the checks above would have judged another path.
    if url.path() != whole {
        return Err(refused("the path is not in its plain form"));
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

/// Appends a text that is encoded already to the query.
pub(super) fn append_query(url: &mut Url, encoded: &str) -> Result<(), ConnectionError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/?%".contains(&byte);
    if !encoded.bytes().all(allowed) || !decode(encoded.as_bytes()).1 {
        return Err(ConnectionError::new(
            FailureCode::InvalidArguments,
            "the query contains a character that must be percent-encoded",
        )
        .field("query"));
    }
    let query = match url.query() {
        None | Some("") => encoded.to_owned(),
        Some(query) => format!("{query}&{encoded}"),
    };
    url.set_query(Some(&query));
    Ok(())
}

/// Returns the target of a redirect, if requests may go there.
pub(super) fn redirected(base: &Url, from: &Url, location: &str) -> Option<Url> {
    let to = from.join(location).ok()?;
    let folder = format!("{}/", base.path().trim_end_matches('/'));
    let beneath = to.path() == base.path() || to.path().starts_with(&folder);
    let plain = check(to.path()).is_ok() && to.username().is_empty() && to.password().is_none();
    (to.origin() == base.origin() && beneath && plain).then_some(to)
}

/// Checks that a path has segments of allowed characters, none of which is a step elsewhere, or may be read as one by a later
/// server.
fn check(path: &str) -> Result<(), ConnectionError> {
    if path.len() > PATH_MAX_BYTES {
        return Err(refused("the path is too long"));
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(());
    }
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment.is_empty() && segments.peek().is_some() {
            return Err(refused("the path contains an empty segment"));
        }
        check_segment(segment)?;
    }
    Ok(())
}

fn check_segment(segment: &str) -> Result<(), ConnectionError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte);
    if !segment.bytes().all(allowed) {
        return Err(refused(
            "the path contains a character that must be percent-encoded",
        ));
    }
    // Twice, since some servers behind proxies decode twice.
    let (once, is_whole) = decode(segment.as_bytes());
    if !is_whole {
        return Err(refused("the path contains a broken percent-encoding"));
    }
    // Such a server may leave undecoded what it cannot decode, so the rest is still judged.
    let (twice, _) = decode(&once);
    for decoded in [once, twice] {
        if decoded.contains(&0) || decoded.contains(&b'\r') || decoded.contains(&b'\n') {
            return Err(refused("the path contains a control character"));
        }
        let steps = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
        for step in steps {
            let name = step.split(|byte| *byte == b';').next().unwrap_or_default();
            if name == b"." || name == b".." {
                return Err(refused("the path may not hold `.` or `..`"));
            }
        }
    }
    Ok(())
}

/// Decodes `%xx` once, and returns whether every `%` was followed by two digits; any other `%` is kept as it is.
fn decode(text: &[u8]) -> (Vec<u8>, bool) {
    let mut decoded = Vec::with_capacity(text.len());
    let mut is_whole = true;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                is_whole &= *byte != b'%';
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    (decoded, is_whole)
}

fn refused(message: &str) -> ConnectionError {
    ConnectionError::new(FailureCode::InvalidArguments, message).field("path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_under_the_base() {
        let base = base("https://api.example.org:8443/v1/?key=s3cret").expect("a base");
        for (path, expected) in [
            (
                "/posts/7",
                "https://api.example.org:8443/v1/posts/7?key=s3cret",
            ),
            ("posts", "https://api.example.org:8443/v1/posts?key=s3cret"),
            (
                "/posts/",
                "https://api.example.org:8443/v1/posts/?key=s3cret",
            ),
            ("", "https://api.example.org:8443/v1/?key=s3cret"),
            (
                "/posts/a%2Fb%20%C3%A9%3F%23",
                "https://api.example.org:8443/v1/posts/a%2Fb%20%C3%A9%3F%23?key=s3cret",
            ),
            (
                "/posts/...",
                "https://api.example.org:8443/v1/posts/...?key=s3cret",
            ),
            ("/a:b@c", "https://api.example.org:8443/v1/a:b@c?key=s3cret"),
        ] {
            assert_eq!(url(&base, path, &[]).expect(path).as_str(), expected);
        }
        for path in [
            "../admin",
            "/..",
            "/a/../b",
            "/a/./b",
            "/%2e%2e/b",
            "/%2E%2e",
            "/.%2e",
            "/%252e%252e",
            "//evil",
            "/a//b",
            "/..%2fadmin",
            "/a%2f..%2fb",
            "/..%5cadmin",
            "/..;/admin",
            "/..%3Bx",
            "/a?b",
            "/a#b",
            "/a\\b",
            "\\\\evil",
            "/a b",
            "/a\r\nHost: evil",
            "/%0d%0a",
            "/%00",
            "/%zz",
            "/%2",
            "/é",
            "/a\tb",
        ] {
            assert_eq!(
                url(&base, path, &[])
                    .map(String::from)
                    .expect_err(path)
                    .code,
                FailureCode::InvalidArguments,
                "{path}"
            );
        }
        let query = [("q".to_owned(), "a&b=c #é\r\n".to_owned())];
        let with_query = url(&base, "/p", &query).expect("a query is encoded");
        assert_eq!(
            with_query.query(),
            Some("key=s3cret&q=a%26b%3Dc+%23%C3%A9%0D%0A")
        );
        // A colon must not turn a path into a separate URL.
        assert_eq!(
            url(&base, "http://evil", &[])
                .map(String::from)
                .expect_err("empty segment")
                .code,
            FailureCode::InvalidArguments
        );
    }

    /// The rest adapter judges the same list before it fills a path.
    #[test]
    fn steps_are_judged_as_by_the_adapter() {
        let text = include_str!("../../../../tests/fixtures/path-steps.json");
        let steps: serde_json::Value = serde_json::from_str(text).expect("JSON");
        for (kind, stays) in [("stay", true), ("leave", false)] {
            for step in steps[kind].as_array().expect("a list") {
                let step = step.as_str().expect("a text");
                let encoded: String = step.bytes().map(|byte| format!("%{byte:02X}")).collect();
                assert_eq!(
                    check(&format!("/items/{encoded}/parts")).is_ok(),
                    stays,
                    "{step:?}"
                );
            }
        }
    }

    #[test]
    fn redirects_stay_under_the_base() {
        let base = base("http://api.example.org/v1").expect("a base");
        let from = url(&base, "/posts", &[]).expect("a path");
        for location in [
            "/v1/posts/",
            "posts/",
            "http://api.example.org/v1/other?x=1",
            "/v1",
        ] {
            assert!(redirected(&base, &from, location).is_some(), "{location}");
        }
        for location in [
            "https://api.example.org/v1/posts",
            "http://api.example.org:81/v1/x",
            "http://evil/v1/x",
            "//evil/v1/x",
            "/v2",
            "/v1x",
            "/v1/../admin",
            "http://u:p@api.example.org/v1/x",
            "file:///etc/passwd",
            "//",
            "http://169.254.169.254/",
        ] {
            assert!(redirected(&base, &from, location).is_none(), "{location}");
        }
    }

    #[test]
    fn what_is_encoded_already_is_put_behind_the_query() {
        let base = base("https://h/v1?key=s3cret").expect("a base");
        let pairs = [("a".to_owned(), "x,y".to_owned())];
        let mut url = url(&base, "/x", &pairs).expect("a target");
        append_query(&mut url, "ids=a%2Cb,c").expect("encoded");
        assert_eq!(
            url.as_str(),
            "https://h/v1/x?key=s3cret&a=x%2Cy&ids=a%2Cb,c"
        );
        for encoded in ["a=b c", "a=%2", "a=b#c", "a=\n", "a=ü"] {
            assert!(append_query(&mut url, encoded).is_err(), "{encoded}");
        }
    }

    #[test]
    fn base_urls_are_checked_and_not_repeated() {
        for text in [
            "ftp://host/",
            "http://user:hunter2@host/",
            "http://host/#a",
            "hunter2",
            "file:///etc",
            "http://",
        ] {
            let problem = base(text).expect_err(text);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
