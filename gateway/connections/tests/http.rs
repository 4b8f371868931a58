//! HTTP connections against a real server that does what servers should not.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use weir_connections::{
    ConnectionConfig, ConnectionError, ConnectionHandle, ConnectionRegistry,
    http::{HttpConnection, HttpRequest, HttpResponse},
};

static WRITTEN: AtomicU32 = AtomicU32::new(0);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_is_reached_under_its_base_only() {
    let address = serve().await;
    let http = open(&format!("http://{address}/v1?key=k"), true);
    let fine = send(&http, "GET", "/echo", 30_000)
        .await
        .expect("an answer");
    let text = String::from_utf8(fine.body).expect("text").to_lowercase();
    assert!(text.starts_with("get /v1/echo?key=k http/1.1"), "{text}");
    assert!(
        text.contains("authorization: bearer hunter2") && !text.contains("gzip"),
        "{text}"
    );
    assert!(!fine.headers.iter().any(|(name, _)| name == "set-cookie"));
    assert_eq!(
        send(&http, "GET", "/here", 30_000)
            .await
            .expect("followed within the base")
            .status,
        200
    );
    for (method, path, code) in [
        ("GET", "/away", "upstream_error"),
        ("GET", "/metadata", "upstream_error"),
        ("GET", "/circle", "upstream_error"),
        ("POST", "/here", "upstream_error"),
        ("GET", "/large", "too_large"),
        ("GET", "/endless", "too_large"),
        ("GET", "/cut", "upstream_error"),
        ("GET", "/coded", "upstream_error"),
        ("GET", "/nonsense", "upstream_error"),
        ("GET", "/../admin", "invalid"),
        ("TRACE", "/echo", "invalid"),
        ("CONNECT", "/echo", "invalid"),
    ] {
        let error = send(&http, method, path, 30_000).await.expect_err(path);
        assert_eq!(error.code.word(), code, "{path}: {error:?}");
        assert!(
            !format!("{error:?}").contains("hunter2") && !error.message.contains("127.0.0.1"),
            "{error:?}"
        );
    }
    for path in ["/silent", "/drip"] {
        let begin = Instant::now();
        assert_eq!(
            send(&http, "GET", path, 200)
                .await
                .expect_err(path)
                .code
                .word(),
            "timeout"
        );
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
    for name in [
        "Authorization",
        "authorization",
        "HOST",
        "Cookie",
        "Transfer-Encoding",
        "X-HTTP-Method-Override",
        "X-Forwarded-For",
    ] {
        let error = with_header(&http, name, "x").await.expect_err(name);
        assert_eq!(error.code.word(), "denied", "{name}");
    }
    assert_eq!(
        with_header(&http, "x-trace", "a\r\nHost: evil")
            .await
            .expect_err("injected")
            .code
            .word(),
        "invalid"
    );
    assert_eq!(
        with_header(&http, "x trace", "a")
            .await
            .expect_err("a name")
            .code
            .word(),
        "invalid"
    );
    with_header(&http, "x-trace", "a").await.expect("a header");
    // The connection's own goes out, and the adapter's guard is no reason to refuse the call.
    let guarded = with_header(&http, "If-Match", "\"v1\"")
        .await
        .expect("guarded")
        .body;
    let guarded = String::from_utf8(guarded).expect("text").to_lowercase();
    assert!(
        guarded.contains("if-match: *\r\n") && !guarded.contains("v1\""),
        "{guarded}"
    );
    let reader = open(&format!("http://{address}/v1"), false);
    assert_eq!(
        send(&reader, "POST", "/echo", 30_000)
            .await
            .expect_err("read-only")
            .code
            .word(),
        "denied"
    );
    // A change outlives its caller, who goes once it has asked.
    tokio::select! {
        biased;
        answer = send(&http, "POST", "/slow", 20_000) => panic!("{answer:?}"),
        () = std::future::ready(()) => {}
    }
    let begin = Instant::now();
    while WRITTEN.load(Ordering::Relaxed) == 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "the change was dropped"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable() {
    for base in ["http://127.0.0.1:1/", "http://no-such-host.invalid/"] {
        let error = send(&open(base, false), "GET", "/x", 30_000)
            .await
            .expect_err(base);
        assert_eq!(error.code.word(), "unavailable", "{error:?}");
        assert!(
            !error.message.contains("host") && !error.message.contains("127"),
            "{error:?}"
        );
    }
}

/// The body of a failure in a coding cannot be read; what its status and headers say can.
#[tokio::test]
async fn a_coding_matters_where_there_is_something_to_read() {
    let http = open(&format!("http://{}/v1", serve().await), false);
    for (path, status, body) in [
        ("/busy", 429, ""),
        ("/identity", 200, "{}"),
        ("/nothing", 200, ""),
    ] {
        let answer = send(&http, "GET", path, 30_000).await.expect(path);
        assert_eq!((answer.status, &answer.body[..]), (status, body.as_bytes()));
    }
    let busy = send(&http, "GET", "/busy", 30_000)
        .await
        .expect("an answer");
    let wait = busy.headers.iter().find(|(name, _)| name == "retry-after");
    assert_eq!(wait.map(|(_, wait)| wait.as_str()), Some("7"));
}

async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    address
}

/// Answers one request a connection.
async fn answer(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_start_matches("/v1");
    let ok = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let to = |location: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
    };
    let text = match path {
        "/echo" => ok(&request),
        "/here" => to("/v1/echo"),
        "/away" => to("/admin"),
        "/metadata" => to("http://169.254.169.254/latest"),
        "/circle" => to("/v1/circle"),
        "/large" => "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n".to_owned(),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n[{\"id\":"
            .to_owned(),
        "/coded" => {
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx".to_owned()
        }
        "/busy" => {
            "HTTP/1.1 429 Busy\r\nContent-Encoding: gzip\r\nRetry-After: 7\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx".to_owned()
        }
        "/identity" => {
            "HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}".to_owned()
        }
        "/nothing" => {
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        "/nonsense" => "SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(),
        "/endless" | "/drip" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            WRITTEN.fetch_add(1, Ordering::Relaxed);
            ok("{}")
        }
        _ => return std::future::pending().await,
    };
    let _ = stream.write_all(text.as_bytes()).await;
    if path == "/endless" {
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while stream.write_all(chunk.as_bytes()).await.is_ok() {}
    }
    while path == "/drip" && stream.write_all(b"1\r\nx\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn send(
    http: &HttpConnection,
    method: &str,
    path: &str,
    within_ms: u64,
) -> Result<HttpResponse, ConnectionError> {
    let request = HttpRequest {
        method: method.into(),
        path: path.into(),
        query: vec![],
        query_encoded: None,
        headers: vec![],
        trace: None,
        body: None,
    };
    http.send(request, Instant::now() + Duration::from_millis(within_ms))
        .await
}

async fn with_header(
    http: &HttpConnection,
    name: &str,
    value: &str,
) -> Result<HttpResponse, ConnectionError> {
    let headers = vec![(name.to_owned(), value.to_owned())];
    let request = HttpRequest {
        method: "GET".into(),
        path: "/echo".into(),
        query: vec![],
        query_encoded: None,
        headers,
        trace: None,
        body: None,
    };
    http.send(request, Instant::now() + Duration::from_secs(30))
        .await
}

fn open(base_url: &str, write: bool) -> Arc<HttpConnection> {
    let config = ConnectionConfig::Http {
        base_url: base_url.to_owned(),
        headers: BTreeMap::from([
            ("Authorization".to_owned(), "Bearer hunter2".to_owned()),
            ("If-Match".to_owned(), "*".to_owned()),
        ]),
        ca: None,
        write,
        timeout_ms: None,
        response_max_bytes: Some(1_000_000),
    };
    match ConnectionRegistry::new(&BTreeMap::from([("h".to_owned(), config)]), Path::new("/"))
        .expect("a service")
        .get("h")
    {
        Some(ConnectionHandle::Http(http)) => http.clone(),
        _ => unreachable!("it is a web service"),
    }
}
