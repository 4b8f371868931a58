//! Tests what people see of a gateway while it runs: figures, events, and their readers.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream::BoxStream};
use serde_json::{Value, json};
use weir_tests::{Admin, Modern, answer_to, http};

use crate::sample;

/// An event takes at most about a second; the rest is for a busy machine.
const EVENT_MAX: Duration = Duration::from_secs(60);

/// A stream of events, as they arrive.
struct EventStream {
    chunks: BoxStream<'static, Vec<u8>>,
    buffer: String,
}

impl EventStream {
    async fn open(admin: &Admin) -> Self {
        Self::open_at(admin, "/v1/events").await
    }

    async fn open_at(admin: &Admin, path: &str) -> Self {
        let response = answer_to(admin.request("GET", path)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let chunks = response.bytes_stream();
        let chunks = chunks.filter_map(async |chunk| chunk.ok().map(|bytes| bytes.to_vec()));
        Self {
            chunks: chunks.boxed(),
            buffer: String::new(),
        }
    }

    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let event: String = self.buffer.drain(..end + 2).collect();
                let line = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(str::trim)
                };
                let Some(name) = line("event:") else { continue };
                let data = serde_json::from_str(line("data:").expect("data")).expect("JSON");
                return Some((name.to_owned(), data));
            }
            let chunk = tokio::time::timeout(EVENT_MAX, self.chunks.next()).await;
            let chunk = chunk.expect("the stream is not silent")?;
            self.buffer.push_str(&String::from_utf8_lossy(&chunk));
        }
    }

    /// Returns the data of the next event of that name.
    async fn find(&mut self, wanted: &str) -> Value {
        let start = Instant::now();
        while start.elapsed() < EVENT_MAX {
            let (name, data) = self.next().await.expect("the stream goes on");
            if name == wanted {
                return data;
            }
        }
        panic!("there was no event `{wanted}`");
    }
}

async fn make_admin(operator: &Admin, role: &str) -> (Admin, String) {
    let body = json!({"name": role, "role": role}).to_string();
    let (status, made) = operator.ask("POST", "/v1/admins", body).await;
    assert_eq!(status, 201, "{made}");
    let admin = Admin {
        key: made["key"].as_str().expect("a key").to_owned(),
        ..operator.clone()
    };
    (admin, made["id"].as_str().expect("an id").to_owned())
}

#[tokio::test]
async fn figures_are_those_of_the_counters() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    for iata in ["OSL", "ARN", "wrong"] {
        client.call("lookup_airport", json!({"iata": iata})).await;
    }
    let stats = admin.succeed("GET", "/v1/stats?window=60", "").await;
    assert_eq!((&stats["calls"], &stats["errors"]), (&json!(3), &json!(1)));
    assert_eq!(
        stats["codes"],
        json!({"ok": 2, "invalid_arguments": 1}),
        "{stats}"
    );
    assert_eq!(
        stats["tools"],
        json!([{"tool": "lookup_airport", "contract": "airports@1.0.0", "calls": 3, "errors": 1}])
    );
    assert_eq!(stats["agents"], json!([{"agent": "local", "calls": 3}]));
    assert!(
        stats["p99_ms"].as_f64() >= stats["p50_ms"].as_f64() && stats["p50_ms"].is_f64(),
        "{stats}"
    );
    let start = &stats["since_start"];
    assert_eq!(start["codes"], stats["codes"], "{stats}");
    assert_eq!(
        start["tools"],
        json!([{"tool": "lookup_airport", "calls": 3, "errors": 1}]),
        "{stats}"
    );
    let (_, listed) = admin.ask("GET", "/v1/tools?q=lookup_airport", "").await;
    let listed = &listed["tools"][0];
    assert_eq!(listed["calls_24h"], 3, "{listed}");
    assert!(listed["p95_ms"].as_f64() > Some(0.0), "{listed}");
    let (_, unused) = admin.ask("GET", "/v1/tools?q=list_airports", "").await;
    let unused = &unused["tools"][0];
    assert_eq!(
        (&unused["calls_24h"], &unused["p95_ms"]),
        (&json!(0), &Value::Null),
        "{unused}"
    );
    assert_eq!(start["agents"], stats["agents"], "{stats}");
    assert_eq!(
        (&start["served_tools"], &start["is_audit_failing"]),
        (&json!(3), &json!(false)),
        "{stats}"
    );
    assert!(
        start["p99_ms"].as_f64() >= start["p50_ms"].as_f64() && start["p50_ms"].is_f64(),
        "{stats}"
    );
    let points = stats["points"].as_array().expect("points");
    let calls: u64 = points
        .iter()
        .map(|point| point["calls"].as_u64().expect("a count"))
        .sum();
    assert_eq!(calls, 3, "{stats}");
    let exposed = answer_to(http().get(format!("{}/metrics", admin.url))).await;
    let exposed = exposed.text().await.expect("text");
    let counted: f64 = exposed
        .lines()
        .filter(|line| line.starts_with("weir_calls_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    assert_eq!(counted, 3.0, "{exposed}");
    for window in ["0", "901", "x"] {
        let path = format!("/v1/stats?window={window}");
        let (status, refused) = admin.ask("GET", &path, "").await;
        assert!([400, 422].contains(&status), "{window}: {refused}");
    }
    let (viewer, _) = make_admin(&admin, "viewer").await;
    assert_eq!(viewer.ask("GET", "/v1/stats", "").await.0, 200);
}

#[tokio::test]
async fn callers_of_a_contract_are_named_where_calls_are_kept() {
    let house = sample::house().config("[contracts]\nimpact_days = 7\n");
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    for iata in ["OSL", "ARN", "wrong"] {
        client.call("lookup_airport", json!({"iata": iata})).await;
    }
    let callers = async |contract: &str| {
        let path = format!("/v1/contracts/{contract}/callers");
        admin.ask("GET", &path, "").await
    };
    let (status, found) = callers("airports").await;
    assert_eq!((status, &found["days"]), (200, &json!(7)), "{found}");
    let [caller] = &found["callers"].as_array().expect("a list")[..] else {
        panic!("{found}");
    };
    // A call with invalid arguments does not count as a use of the tool.
    assert_eq!(
        (&caller["agent"], &caller["tool"], &caller["calls"]),
        (&json!("local"), &json!("lookup_airport"), &json!(2)),
        "{found}"
    );
    assert!(caller["last_day_ms"].as_i64() > Some(0), "{found}");
    assert_eq!(callers("none").await.0, 404);

    let kept = sample::house();
    let _gateway = kept.serve();
    let (status, found) = Admin::of(&kept)
        .ask("GET", "/v1/contracts/airports/callers", "")
        .await;
    assert_eq!((status, found), (200, json!({"days": 0, "callers": []})));
}

#[tokio::test]
async fn those_who_watch_hear_what_happens() {
    let house = sample::house().own_plugins(&["sheet"]);
    let mut gateway = house.serve();
    let admin = Admin::of(&house);
    let (viewer, id) = make_admin(&admin, "viewer").await;
    let mut operators = EventStream::open(&admin).await;
    let mut events = EventStream::open(&viewer).await;
    events.find("stats").await;

    let client = Modern::new(gateway.url());
    client.call("lookup_airport", json!({"iata": "OSL"})).await;
    let call = events.find("call").await;
    assert_eq!(
        (
            &call["tool"],
            &call["contract"],
            &call["agent"],
            &call["outcome"]
        ),
        (
            &json!("lookup_airport"),
            &json!("airports@1.0.0"),
            &json!("local"),
            &json!("ok")
        ),
        "{call}"
    );
    let (_, records) = admin.ask("GET", "/v1/audit?kind=call&limit=1", "").await;
    assert_eq!(records[0]["call_id"], call["call_id"], "{records}");
    loop {
        let stats = events.find("stats").await;
        if stats["calls"] == 1 {
            assert_eq!(stats["tools"][0]["tool"], "lookup_airport", "{stats}");
            break;
        }
    }

    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace(
            "choices: [NO, SE, IS] }\n      - { name: min",
            "choices: [NO] }\n      - { name: min",
        ),
    );
    assert_eq!(events.find("draft").await, json!({"count": 1}));
    house.key(&["--agent", "ann"]);
    assert_eq!(events.find("key").await, json!({}));
    std::fs::write(house.plugins().join("broken.wasm"), "no plugin").expect("written");
    events.find("plugin").await;
    admin.succeed("POST", "/v1/config/reload", "").await;
    events.find("config").await;

    // Whoever may no longer read receives no more events.
    let path = format!("/v1/admins/{id}");
    assert_eq!(admin.ask("DELETE", &path, "").await.0, 204);
    let end = async { while events.next().await.is_some() {} };
    tokio::time::timeout(EVENT_MAX, end).await.expect("it ends");
    operators.find("stats").await;
    gateway.signal("TERM");
    assert!(gateway.left().success(), "no stream holds the end up");
    while operators.next().await.is_some() {}
}

#[tokio::test]
async fn a_stream_without_calls_has_the_figures_of_the_console() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let mut events = EventStream::open_at(&admin, "/v1/events?calls=false").await;
    events.find("stats").await;
    let client = Modern::new(gateway.url());
    client.call("lookup_airport", json!({"iata": "OSL"})).await;
    loop {
        let (name, data) = events.next().await.expect("the stream goes on");
        assert_ne!(name, "call", "{data}");
        if name == "stats" && data["since_start"]["codes"] == json!({"ok": 1}) {
            assert!(data["at_ms"].is_i64(), "{data}");
            break;
        }
    }
    // What is published at once was no draft that waits.
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace(
            "choices: [NO, SE, IS] }\n      - { name: min",
            "choices: [NO, SE, IS, DK] }\n      - { name: min",
        ),
    );
    events.find("contract").await;
    let (status, refused) = admin.ask("GET", "/v1/events?calls=maybe", "").await;
    assert_eq!(status, 400, "{refused}");
}

#[tokio::test]
async fn streams_of_events_are_bounded() {
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(EventStream::open(&admin).await);
    }
    let (status, refused) = admin.ask("GET", "/v1/events", "").await;
    assert_eq!(status, 503, "{refused}");
    drop(streams.pop());
    let start = Instant::now();
    loop {
        let response = answer_to(admin.request("GET", "/v1/events")).await;
        match response.status().as_u16() {
            200 => break,
            status => assert!(
                status == 503 && start.elapsed() < EVENT_MAX,
                "a place is free again"
            ),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    streams[0].find("stats").await;
}

#[tokio::test]
async fn streams_of_one_admin_give_way_to_those_of_others() {
    let house = sample::house();
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let (viewer, _) = make_admin(&operator, "viewer").await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(EventStream::open(&viewer).await);
    }
    let mut other = EventStream::open(&operator).await;
    other.find("stats").await;
    // The oldest made room.
    while streams[0].next().await.is_some() {}
    streams[1].find("stats").await;
    let (status, refused) = viewer.ask("GET", "/v1/events", "").await;
    assert_eq!(status, 503, "{refused}");
    other.find("stats").await;
}
