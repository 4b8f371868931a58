//! Tests which hosts and origins are admitted, as data.

use super::*;

fn access(
    hosts: &[&str],
    origins: &[&str],
    public_url: Option<&str>,
    listen: &str,
) -> anyhow::Result<AccessCheck> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let http = crate::config::HttpConfig {
        hosts: owned(hosts),
        origins: owned(origins),
        public_url: public_url.map(str::to_owned),
        ..Default::default()
    };
    AccessCheck::new(&AccessRules::http(&http), listen.parse()?)
}

#[track_caller]
fn check(access: &AccessCheck, headers: &[(&str, &str)], status: Option<u16>) {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            (
                name.parse::<header::HeaderName>().unwrap(),
                value.parse::<HeaderValue>().unwrap(),
            )
        })
        .collect();
    let refused = access
        .check(&Uri::from_static("/mcp"), &headers)
        .err()
        .map(|refused| refused.error);
    assert_eq!(
        refused.as_ref().map(|error| error.status),
        status,
        "{headers:?}: {refused:?}"
    );
    if let Some(error) = refused.filter(|error| error.status == 403) {
        assert!(
            error.message.contains("[http] hosts") || error.message.contains("[http] origins"),
            "{}",
            error.message
        );
    }
}

#[test]
fn hosts() {
    let local = access(&[], &[], None, "127.0.0.1:8080").unwrap();
    for good in [
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.9.9.9",
        "[::1]",
        "[::1]:99",
        "[::ffff:127.0.0.1]:1",
    ] {
        check(&local, &[("host", good)], None);
    }
    for bad in [
        "",
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil@localhost",
        "localhost:8080@evil.example",
        "localhost/",
        "localhost\\evil",
        "localhost:",
        "localhost:x",
        "localhost:99999",
        "localhost:80:80",
        "localhost..",
        ".localhost",
        "a.localhost",
        "0.0.0.0",
        "0.0.0.0:8080",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.0.0.1.evil.example",
        "[::]",
        "[::1",
        "[::1%25lo]:80",
        "::1",
        "[::ffff:10.0.0.1]",
        "10.0.0.1",
        "localhost, evil.example",
        "%6cocalhost",
        "localhost ",
    ] {
        check(&local, &[("host", bad)], Some(403));
    }
    check(&local, &[], Some(400));
    check(
        &local,
        &[("host", "localhost"), ("host", "localhost")],
        Some(400),
    );
}

#[test]
fn origins() {
    let local = access(&[], &[], None, "127.0.0.1:8080").unwrap();
    for good in [
        "http://localhost",
        "http://localhost:3000",
        "https://127.0.0.1:1",
        "http://[::1]:5173",
        "HTTP://LOCALHOST",
    ] {
        check(&local, &[("host", "localhost"), ("origin", good)], None);
    }
    for bad in [
        "",
        "null",
        "http://evil.example",
        "https://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost/",
        "http://localhost/x",
        "localhost",
        "file://",
        "http://",
        "http://0.0.0.0",
        "http://localhost:1 http://evil.example",
        "app://localhost",
        "http://127.1",
        "//localhost",
        "http://user:pass@localhost",
    ] {
        check(&local, &[("host", "localhost"), ("origin", bad)], Some(403));
    }
    check(
        &local,
        &[("host", "evil.example"), ("origin", "http://localhost")],
        Some(403),
    );
    check(
        &local,
        &[
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://localhost"),
        ],
        Some(400),
    );
}

#[test]
fn configured() {
    let open = access(
        &["mcp.example", "fixed.example:8443"],
        &["https://app.example", "null", "vscode-webview://panel"],
        Some("https://public.example:444/mcp"),
        "10.1.2.3:80",
    )
    .unwrap();
    for good in [
        "mcp.example",
        "MCP.example.:9",
        "fixed.example:8443",
        "public.example",
        "public.example:444",
        "10.1.2.3",
    ] {
        check(&open, &[("host", good)], None);
    }
    for bad in [
        "fixed.example",
        "fixed.example:8444",
        "app.example",
        "10.1.2.4",
    ] {
        check(&open, &[("host", bad)], Some(403));
    }
    for good in [
        "https://app.example",
        "https://app.example:443",
        "null",
        "vscode-webview://panel",
        "https://public.example:444",
        "http://mcp.example",
        "http://10.1.2.3",
    ] {
        check(&open, &[("host", "localhost"), ("origin", good)], None);
    }
    for bad in [
        "http://app.example",
        "https://app.example:444",
        "vscode-webview://other",
        "https://fixed.example",
    ] {
        check(&open, &[("host", "localhost"), ("origin", bad)], Some(403));
    }
    check(
        &access(&[], &[], None, "0.0.0.0:80").unwrap(),
        &[("host", "0.0.0.0")],
        Some(403),
    );
    for (hosts, origins, url) in [
        (&["http://a"][..], &[][..], None),
        (&[], &["app.example"], None),
        (&[], &[], Some("mcp.example")),
    ] {
        let refused = access(hosts, origins, url, "127.0.0.1:1")
            .err()
            .unwrap()
            .to_string();
        assert!(refused.starts_with("[http] "), "{refused}");
    }
}

#[test]
fn the_target_counts_too() {
    let local = access(&[], &[], None, "127.0.0.1:8080").unwrap();
    let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
    assert!(
        local
            .check(&Uri::from_static("http://localhost/mcp"), &headers)
            .is_ok()
    );
    assert_eq!(
        local
            .check(&Uri::from_static("http://evil.example/mcp"), &headers)
            .unwrap_err()
            .error
            .status,
        403
    );
}
