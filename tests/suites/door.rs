//! Tests the cost of one caller for the others before and after its calls: bytes, connections and sessions have bounds, in
//! total and per caller, and the admin listener always has room for an operator.

use std::time::{Duration, Instant};

use reqwest::header::HOST;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use weir_tests::{
    Admin, Events, Gateway, Legacy, Modern, answer_to,
    client::{http, send},
    strangers::hostile,
    within,
};

use crate::{
    sample,
    upstreams::{listed, trusted},
};

const BODY: usize = 4 << 20;
/// In addition to what is counted: the connections themselves, and the memory of a call in progress.
const BESIDE_KB: u64 = 60 << 10;

/// Shorter than silent connections may remain open where there is room for them.
const SOON: Duration = Duration::from_secs(20);

/// Returns the address of a listener, as a socket takes it.
fn address(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Sends the head of a POST with a body of this length. Returns the connection.
async fn announced(gateway: &Gateway, key: &str, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address(&gateway.base))
        .await
        .expect("the gateway listens");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).await; // a refused one is closed
    stream
}

/// Also sends a body except for its last byte, as far as the gateway accepts it. Returns the connection.
async fn unfinished(gateway: &Gateway, key: &str, length: usize) -> TcpStream {
    let mut stream = announced(gateway, key, length).await;
    let body = vec![b' '; length - 1];
    let sent = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&body));
    let _ = sent.await;
    stream
}

async fn all_unfinished(gateway: &Gateway, key: &str) -> Vec<TcpStream> {
    let all = (0..250).map(|_| unfinished(gateway, key, BODY));
    futures::future::join_all(all).await
}

/// Returns as much of the answer on a connection as arrives.
async fn answered(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
    let _ = reading.await; // what came until then counts
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the answers that are 429. A client that is still sending may see a closed connection instead.
async fn refusals(open: &mut [TcpStream]) -> Vec<String> {
    let answers = futures::future::join_all(open.iter_mut().map(answered)).await;
    let refused = answers
        .into_iter()
        .filter(|answer| answer.starts_with("HTTP/1.1 429"));
    refused.collect()
}

async fn finds_a_row(client: &Modern) {
    client
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
}

/// Waits until the memory is given back.
async fn falls_below(gateway: &Gateway, most_kb: u64) {
    let what = format!("memory below {most_kb} KB");
    let limit = Duration::from_secs(30);
    within(limit, &what, async || gateway.own_memory_kb() < most_kb).await;
}

#[tokio::test]
async fn unfinished_bodies_take_little_memory_and_give_it_back() {
    let house = sample::house();
    let gateway = house.serve();
    let slow = house.key(&["--agent", "slow", "--rate", "1/min"]);
    let fast = house.key(&["--agent", "fast"]);
    let other = Modern::with_key(gateway.url(), &house.key(&["--agent", "other"]));
    finds_a_row(&other).await;
    let before = gateway.own_memory_kb();

    let mut open = all_unfinished(&gateway, &slow).await;
    finds_a_row(&other).await;
    let grown = gateway.own_memory_kb().saturating_sub(before);
    assert!(
        grown < BESIDE_KB,
        "over the rate no body is read: {grown} KB"
    );
    let refused = refusals(&mut open).await;
    assert!(
        refused.iter().any(|answer| answer.contains("rate_limited")),
        "{refused:?}"
    );
    drop(open);

    let mut open = all_unfinished(&gateway, &fast).await;
    finds_a_row(&other).await;
    // What a body took before it grew is given back a moment later, and the bodies are kept for 30 s.
    let most_kb = before + (64 << 10) + BESIDE_KB;
    within(
        Duration::from_secs(10),
        "an agent has its share",
        async || gateway.own_memory_kb() < most_kb,
    )
    .await;
    let share = "agent_held_max_bytes";
    // No byte of this body is sent: it is refused by its length.
    let mut announced = announced(&gateway, &fast, BODY).await;
    let answer = answered(&mut announced).await;
    assert!(
        answer.starts_with("HTTP/1.1 429") && answer.contains(share),
        "{answer}"
    );
    let refused = refusals(&mut open).await;
    assert!(
        refused.iter().any(|answer| answer.contains(share)),
        "{refused:?}"
    );
    drop(open);
    falls_below(&gateway, before + BESIDE_KB / 2).await;
    finds_a_row(&Modern::with_key(gateway.url(), &fast)).await;
    gateway.stayed_within_a_gigabyte();
}

/// A call over the rate is refused with a result if its body is small and comes soon, and otherwise by its head.
#[tokio::test]
async fn a_call_over_the_rate_is_refused_as_a_result_or_by_its_head() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "slow", "--rate", "1/hour"]);
    let client = Modern::with_key(gateway.url(), &key);
    finds_a_row(&client).await;
    let refused = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(refused["structuredContent"]["code"], "rate_limited");

    let large = json!({"iata": "O".repeat(100 << 10)});
    let large = json!({"name": "lookup_airport", "arguments": large});
    let response = client.request("tools/call", large).send().await;
    let response = response.expect("it is answered before its body is read");
    assert_eq!(response.status(), 429);
    let wait = response.headers()["retry-after"]
        .to_str()
        .expect("a number");
    assert!(
        (3000..=3600).contains(&wait.parse::<u32>().expect("a number")),
        "{wait}"
    );
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(
        (&answer["id"], &answer["error"]["data"]["code"]),
        (&Value::Null, &json!("rate_limited"))
    );

    let url = format!("{}/rest/airports/lookup_airport", gateway.base);
    for length in [3, 100 << 10] {
        let body = json!({"iata": "O".repeat(length)}).to_string();
        let request = http().post(&url).bearer_auth(&key);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let response = answer_to(request).await;
        assert_eq!(response.status(), 429, "{length}");
        assert!(response.headers().contains_key("retry-after"), "{length}");
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!(problem["code"], "rate_limited", "{length}");
    }

    let began = Instant::now();
    let mut slow = unfinished(&gateway, &key, 1000).await;
    let refused = answered(&mut slow).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it is not waited for as for one within the rate"
    );
    gateway.stayed_within_a_gigabyte();
}

/// Notifications and the question for a stream without a session take nothing from the rate.
#[tokio::test]
async fn notifications_take_nothing_from_the_rate() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--rate", "2/hour"]);
    let client = Modern::with_key(gateway.url(), &key);
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&key)).await;
    for _ in 0..20 {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        let answer = send(session.in_session(note.to_string())).await;
        assert_eq!(answer.status, 202);
    }
    finds_a_row(&client).await;
    let refused = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(refused["structuredContent"]["code"], "rate_limited");
}

/// Sends a call of a large answer and reads nothing of it.
async fn untaken(gateway: &Gateway, key: &str, mib: usize) -> TcpStream {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "bad_big", "arguments": {"mib": mib}}});
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address(&gateway.base))
        .await
        .expect("the gateway listens");
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("it is sent");
    stream
}

#[tokio::test]
async fn untaken_answers_take_little_memory_and_give_it_back() {
    let house = sample::house().config(&trusted("bad", &hostile(&["tools"])));
    let gateway = house.serve();
    let keys = ["lazy", "other"].map(|agent| house.key(&["--agent", agent]));
    let other = Modern::with_key(gateway.url(), &keys[1]);
    listed(&other, "bad_big").await;
    // One that is taken, so that what a call needs once is there.
    assert_eq!(
        other.call("bad_big", json!({"mib": 7})).await["isError"],
        false
    );
    let before = gateway.own_memory_kb();
    let mut open = Vec::new();
    for _ in 0..60 {
        let mut stream = untaken(&gateway, &keys[0], 7).await;
        let mut status = [0; 12];
        stream
            .read_exact(&mut status)
            .await
            .expect("it is answered");
        assert_eq!(&status, b"HTTP/1.1 200");
        open.push(stream);
    }
    let grown = gateway.own_memory_kb().saturating_sub(before);
    assert!(
        grown < (64 << 10) + 2 * BESIDE_KB,
        "an agent has its share: {grown} KB"
    );
    finds_a_row(&other).await;
    // The oldest was closed, and the newest is still open.
    let newest = open.last_mut().expect("60");
    let mut bytes = vec![0; 1 << 20];
    newest.read_exact(&mut bytes).await.expect("it goes on");
    drop(open);
    falls_below(&gateway, before + BESIDE_KB / 2).await;
    gateway.stayed_within_a_gigabyte();
}

/// What is read, checked and written apart from the threads of requests comes whole, and counts.
#[tokio::test]
async fn a_large_answer_comes_whole_by_each_door_and_is_recorded() {
    let house = sample::house().config(&trusted("bad", &hostile(&["tools"])));
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let client = Modern::with_key(gateway.url(), &key);
    listed(&client, "bad_big").await;
    let whole = "x".repeat(3 << 20);
    let answer = client.call("bad_big", json!({"mib": 3})).await;
    let is_whole = answer["content"][0]["text"] == *whole;
    assert!(is_whole, "by MCP");
    let request = http()
        .post(format!("{}/rest/bad/bad_big", gateway.base))
        .bearer_auth(&key)
        .header("content-type", "application/json")
        .body(json!({"mib": 3}).to_string());
    let response = answer_to(request).await;
    assert_eq!(response.status(), 200);
    let answer: Value = response.json().await.expect("JSON");
    let is_whole = answer["content"][0]["text"] == *whole;
    assert!(is_whole, "by plain HTTP");
    let calls = crate::audit::records(&house, &["--kind", "call"]);
    let is_such = |record: &&Value| record["tool"] == "bad_big" && record["outcome"] == "ok";
    assert_eq!(calls.iter().filter(is_such).count(), 2, "{calls:?}");
    gateway.stayed_within_a_gigabyte();
}

/// Opens connections that send nothing.
async fn silent(base: &str, count: usize) -> Vec<TcpStream> {
    let address = address(base);
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(TcpStream::connect(&address).await.expect("it is taken"));
    }
    all
}

#[tokio::test]
async fn an_operator_is_served_whatever_others_hold_open() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let mut open = silent(&admin.url, 200).await;
    // An operator does not wait until they have timed out.
    let served = tokio::time::timeout(SOON, admin.ask("GET", "/v1/keys", "")).await;
    let (status, keys) = served.expect("there is room");
    assert_eq!(status, 200, "{keys}");
    // Connections that request much and read nothing are closed as well.
    for _ in 0..200 {
        let mut stream = TcpStream::connect(address(&admin.url))
            .await
            .expect("it is taken");
        let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
        let _ = stream.write_all(request.as_bytes()).await; // it may have given way
        open.push(stream);
    }
    house.succeed(&["keys", "list"]);
    drop(open);
    gateway.stayed_within_a_gigabyte();
}

/// The limit on open files leaves room for the admin API and the sources, whatever `connections_max` is.
#[tokio::test]
async fn open_files_are_kept_for_operators_and_sources() {
    let house = sample::house();
    let gateway = house.serve_within("-n 300");
    gateway.wait_for_log("the limit on open files");
    let key = house.key(&["--agent", "ann"]);
    let before = Instant::now();
    let open = silent(&gateway.base, 400).await;
    let client = Modern::with_key(gateway.url(), &key);
    finds_a_row(&client).await;
    Admin::of(&house).succeed("GET", "/v1/keys", "").await;
    gateway.wait_for_log("to make room");
    let lines = gateway.log().matches("to make room").count() as u64;
    assert!(
        (1..=before.elapsed().as_secs() + 2).contains(&lines),
        "one line a second at most: {lines}"
    );
    let page = gateway.metrics().await;
    let lost = "weir_connections_lost_total{listener=\"agents\",reason=\"gave_way\"}";
    assert!(page.contains(lost), "{page}");
    drop(open);
    gateway.stayed_within_a_gigabyte();
}

#[tokio::test]
async fn a_silent_connection_is_closed_after_seconds() {
    let house = sample::house();
    let gateway = house.serve();
    let mut open = silent(&gateway.base, 1).await;
    let admin = Admin::of(&house);
    open.extend(silent(&admin.url, 1).await);
    for stream in &mut open {
        let closed = tokio::time::timeout(Duration::from_secs(40), stream.read(&mut [0; 8])).await;
        assert!(closed.expect("it is closed").is_ok_and(|read| read == 0));
    }
    gateway.stayed_within_a_gigabyte();
}

#[tokio::test]
async fn an_agent_that_opens_sessions_leaves_those_of_others() {
    let house = sample::house().config("[http]\nsessions_max = 16\n");
    let gateway = house.serve();
    let [quiet, busy] = ["quiet", "busy"].map(|agent| house.key(&["--agent", agent]));
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&quiet)).await;
    let mut stream = Events::open(session.stream()).await;
    for _ in 0..100 {
        Legacy::open_as(gateway.url(), "2025-11-25", Some(&busy)).await;
    }
    let found = session.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(found["isError"], false, "{found}");
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("by country and elevation", "by country and height"),
    );
    let changed = stream.next(Duration::from_secs(20)).await;
    let changed = changed.expect("its stream is open");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    gateway.stayed_within_a_gigabyte();
}

/// Every route of the admin API refuses hosts and origins that are not its own: a page whose name was made to resolve here
/// must not read anything, whatever it knows.
#[tokio::test]
async fn the_admin_api_checks_host_and_origin_on_every_route() {
    let house = sample::house().config("[admin]\nhosts = [\"weir.internal\"]\n");
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let (_, document) = admin.ask("GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().expect("paths");
    let mut routes: Vec<(String, String)> = Vec::new();
    for (path, item) in paths {
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().expect("methods").keys() {
            routes.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(routes.len() >= 30, "{routes:?}");
    for path in ["/openapi.json", "/healthz", "/readyz", "/nothing"] {
        routes.push(("GET".to_owned(), path.to_owned()));
    }
    for (method, path) in &routes {
        for (name, value) in [
            ("host", "evil.example"),
            ("host", "evil.example:80"),
            ("host", "localhost.evil.example"),
            ("origin", "http://evil.example"),
            ("origin", "https://app.example:8443"),
            ("origin", "null"),
        ] {
            let request = admin.request(method, path).header(name, value);
            let response = answer_to(request).await;
            let shown = format!("{method} {path} {name}: {value}");
            assert_eq!(response.status(), 403, "{shown}");
            let media = response.headers()["content-type"]
                .to_str()
                .expect("text")
                .to_owned();
            assert_eq!(media, "application/problem+json", "{shown}");
            let problem: Value = response.json().await.expect("JSON");
            let detail = problem["detail"].as_str().expect("a text");
            assert!(detail.contains("[admin] hosts"), "{shown}: {detail}");
        }
    }
    for host in [
        "localhost",
        "127.0.0.1:9",
        "[::1]",
        "weir.internal",
        "WEIR.internal:9000",
    ] {
        let request = admin.request("GET", "/v1/keys").header(HOST, host);
        let origin = format!("http://{host}");
        let response = answer_to(request.header("origin", origin)).await;
        assert_eq!(response.status(), 200, "{host}");
    }
    // Probes come by an address.
    for path in ["/healthz", "/readyz"] {
        let request = admin.request("GET", path).header(HOST, "10.0.0.7:9000");
        let response = answer_to(request).await;
        assert_eq!(response.status(), 200, "{path}");
    }
    let refused = crate::audit::records(&house, &["--kind", "refused"]);
    assert!(
        refused.iter().any(|record| record["reason"] == "host"),
        "{refused:?}"
    );
}

/// Opens a connection, and sends the start of a request on it.
async fn connect(url: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address(url))
        .await
        .expect("the gateway listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

/// The admin listener answers some requests before their bodies have come, and closes the connection then. Its answer says so:
/// otherwise a client sends its next request on the same connection, and loses that.
#[tokio::test]
async fn a_connection_that_ends_before_a_body_is_named_as_such() {
    let house = sample::house();
    let _gateway = house.serve();
    let Admin { url, key } = Admin::of(&house);
    let head = "POST /v1/admins HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2";
    let json = "Content-Type: application/json";
    for (given, status) in [
        (json.to_owned(), 401),
        (format!("{json}\r\nAuthorization: Bearer weiradm_0_0"), 401),
        (
            format!("Content-Type: text/plain\r\nAuthorization: Bearer {key}"),
            415,
        ),
    ] {
        let mut stream = connect(&url, &format!("{head}\r\n{given}\r\n\r\n")).await;
        let refusal = answered(&mut stream).await;
        assert!(
            refusal.starts_with(&format!("HTTP/1.1 {status}"))
                && refusal.contains("\r\nconnection: close\r\n"),
            "{refusal}"
        );
    }
    let whole = format!("{head}\r\n{json}\r\nAuthorization: Bearer {key}\r\n\r\n{{}}");
    let mut stream = connect(&url, &whole).await;
    let mut refusal = vec![0; 4096];
    let length = stream.read(&mut refusal).await.expect("an answer");
    let refusal = String::from_utf8_lossy(&refusal[..length]);
    assert!(
        refusal.starts_with("HTTP/1.1 422") && !refusal.contains("connection: close"),
        "{refusal}"
    );
}
