//! Traces of calls: joined to the caller's, passed on to what is called, and never blocking a call.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_tests::{
    Gateway, House, Modern, SERVE, StallMeter, answer_to, client, foreign, http, until,
    upstream::free_port, web,
};

pub(crate) const SECRET: &str = "collector-7d1b9e04";
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "vendor=t61rcWkgMzE,other=00f067aa0ba902b7";
const LINKED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector, and a web service that notes which trace it was called in.
pub(crate) struct TraceCollector {
    base: String,
    got: Arc<CollectedSpans>,
}

struct CollectedSpans {
    folder: TempDir,
    requests: AtomicUsize,
    /// Locked while a request is written: two gateways may send at once.
    writing: Mutex<()>,
    refused: AtomicUsize,
    carried: Mutex<Vec<String>>,
    states: Mutex<Vec<String>>,
}

impl TraceCollector {
    pub(crate) async fn start() -> Self {
        let got = Arc::new(CollectedSpans {
            folder: tempfile::tempdir().expect("a temporary folder"),
            requests: AtomicUsize::new(0),
            writing: Mutex::default(),
            refused: AtomicUsize::new(0),
            carried: Mutex::default(),
            states: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/traces", post(take))
            .route("/items", get(items))
            .with_state(got.clone());
        let base = web::serve(router).await;
        Self { base, got }
    }

    /// Returns what was received so far, byte by byte.
    pub(crate) fn received(&self) -> String {
        let requests = 0..self.got.requests.load(Ordering::SeqCst);
        let bodies =
            requests.map(|number| fs::read(self.got.folder.path().join(number.to_string())));
        bodies
            .map(|body| String::from_utf8_lossy(&body.expect("a file")).into_owned())
            .collect()
    }

    /// Returns all spans so far.
    fn spans(&self) -> Vec<Value> {
        let mut command = foreign::python_script("python-traces", "spans.py");
        for number in 0..self.got.requests.load(Ordering::SeqCst) {
            command.arg(self.got.folder.path().join(number.to_string()));
        }
        let output = foreign::run(command, Duration::from_secs(180));
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Waits for the given number of spans of calls.
    pub(crate) async fn calls(&self, count: usize) -> Vec<Value> {
        let calls = || {
            let spans = self.spans();
            let servers = spans.iter().filter(|span| span["kind"] == SERVER).count();
            (servers >= count).then_some(spans)
        };
        until("spans arrive", async || calls().is_some()).await;
        self.spans()
    }
}

const SERVER: i64 = 2;
const CLIENT: i64 = 3;

async fn take(
    State(got): State<Arc<CollectedSpans>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    if headers.get("x-token").is_none_or(|token| token != SECRET)
        || headers["content-type"] != "application/x-protobuf"
    {
        got.refused.fetch_add(1, Ordering::SeqCst);
        return StatusCode::UNAUTHORIZED;
    }
    let _writing = got.writing.lock();
    let number = got.requests.load(Ordering::SeqCst);
    fs::write(got.folder.path().join(number.to_string()), body).expect("a file");
    got.requests.store(number + 1, Ordering::SeqCst);
    StatusCode::OK
}

async fn items(State(got): State<Arc<CollectedSpans>>, headers: HeaderMap) -> Json<Value> {
    let sent = |name: &str| {
        let text = headers.get(name);
        text.map_or("", |text| text.to_str().expect("ASCII"))
            .to_owned()
    };
    got.carried.lock().push(sent("traceparent"));
    got.states.lock().push(sent("tracestate"));
    Json(json!([{ "id": 1, "name": "first" }]))
}

/// Returns a house that serves the items of the web service at `base`.
fn items_house(base: &str) -> House {
    House::new()
        .config(&format!(
            "[connections.api]\nkind = \"http\"\nbase_url = \"{base}\"\n[plugins.rest.grants]\napi = \"read\""
        ))
        .file(
            "contracts/items.yaml",
            "contract: items
collections:
  items:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: integer, name: string }
      list: { path: /items }
tools:
  - { tool: list_items, description: All of them., verb: list, collection: items, fields: [] }
",
        )
}

/// Has a house send its spans to a collector, whose token is in `COLLECTOR_TOKEN`.
pub(crate) fn traced(house: House, collector: &TraceCollector, more: &str) -> House {
    house.config(&format!(
        "[traces]\nendpoint = \"{}\"\nheaders = {{ X-Token = \"env:COLLECTOR_TOKEN\" }}\n{more}",
        collector.base
    ))
}

fn serve(house: &House, service: &str) -> Gateway {
    let mut command = house.weir(&SERVE);
    command
        .env("COLLECTOR_TOKEN", SECRET)
        .env("OTEL_SERVICE_NAME", service);
    Gateway::start(command)
}

async fn call_in(client: &Modern, tool: &str, parent: &str, link: Option<&str>) -> Value {
    let meta = json!({ "traceparent": parent, "tracestate": STATE });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let mut request = client.request("tools/call", params);
    if let Some(link) = link {
        request = request.header("traceparent", link);
    }
    client::send(request).await.reply().clone()
}

fn server_span<'s>(spans: &'s [Value], service: &str, name: &str) -> &'s Value {
    spans
        .iter()
        .find(|span| {
            span["kind"] == SERVER
                && span["name"] == name
                && span["resource"]["service.name"] == service
        })
        .unwrap_or_else(|| panic!("no span {name} of {service} in {spans:?}"))
}

fn stage<'s>(spans: &'s [Value], server: &Value, name: &str) -> &'s Value {
    spans
        .iter()
        .find(|span| span["parent"] == server["span"] && span["name"] == name)
        .unwrap_or_else(|| panic!("no stage {name} of {server} in {spans:?}"))
}

/// One call goes through two gateways to a web service: one trace, from the client's span to the service.
#[tokio::test(flavor = "multi_thread")]
async fn one_trace_leads_from_the_client_through_servers_and_services() {
    let collector = TraceCollector::start().await;
    let behind_house = traced(items_house(&collector.base), &collector, "");
    let behind = serve(&behind_house, "behind");
    let front_house = House::new().config(&format!(
        "[upstreams.other]\nurl = \"{}\"\nfirst = \"publish\"",
        behind.url()
    ));
    let front_house = traced(front_house, &collector, "");
    let front = serve(&front_house, "front");
    let client = Modern::new(front.url());
    until("the tools of the other server are there", async || {
        !client.list().await.0.is_empty()
    })
    .await;
    let tool = client.list().await.0[0]["name"].clone();
    let tool = tool.as_str().expect("a name");
    let answer = call_in(&client, tool, CALLER, Some(LINKED)).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let spans = collector.calls(2).await;
    let call = server_span(&spans, "front", &format!("tools/call {tool}"));
    assert_eq!(call["trace"], CALLER[3..35], "{call}");
    assert_eq!(call["parent"], CALLER[36..52], "{call}");
    assert_eq!(call["links"], json!([LINKED[3..35]]), "{call}");
    let attributes = &call["attributes"];
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", tool),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", client::MODERN),
        ("weir.agent", "local"),
    ] {
        assert_eq!(attributes[name], value, "{name} in {call}");
    }
    assert!(
        attributes["weir.call_id"]
            .as_str()
            .is_some_and(|id| id.starts_with("c_"))
    );
    let asked = stage(&spans, call, "adapter");
    assert_eq!(asked["kind"], CLIENT, "{asked}");
    let other = server_span(&spans, "behind", "tools/call list_items");
    assert_eq!(other["trace"], call["trace"], "{other}");
    assert_eq!(other["parent"], asked["span"], "{other}");
    assert_eq!(
        other["attributes"]["weir.contract"]
            .as_str()
            .map(|it| &it[..6]),
        Some("items@")
    );
    let adapter = stage(&spans, other, "adapter");
    let carried = collector.got.carried.lock().clone();
    let expected = format!(
        "00-{}-{}-01",
        &CALLER[3..35],
        adapter["span"].as_str().expect("an id")
    );
    assert!(carried.contains(&expected), "{expected} in {carried:?}");
    let states = collector.got.states.lock().clone();
    assert_eq!(states, [STATE], "as it came, through both gateways");
    for span in &spans {
        assert!(span["nanoseconds"].as_i64() >= Some(0), "{span}");
    }
    assert_eq!(collector.got.refused.load(Ordering::SeqCst), 0);
}

/// Names that callers made up, arguments and results are in no span; what callers send to steer the sampling is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn callers_neither_fill_spans_nor_decide_how_many_there_are() {
    let collector = TraceCollector::start().await;
    let more = "ratio = 0.0\ncaller_rate = \"3/day\"";
    let house = traced(items_house(&collector.base), &collector, more);
    let gateway = serve(&house, "one");
    let client = Modern::new(gateway.url());
    for bad in [
        "nonsense",
        "00-0-0-01",
        &CALLER.replace("-01", "-00"),
        &CALLER.to_uppercase(),
    ] {
        call_in(&client, "list_items", bad, None).await;
    }
    client.call("list_items", json!({})).await;
    call_in(&client, "planted-name-31c9", CALLER, None).await;
    let params = json!({ "name": "list_items", "arguments": { "planted-argument-8a10": "planted-value-4471" },
        "_meta": { "traceparent": CALLER } });
    client.ask("tools/call", params).await;
    for _ in 0..20 {
        call_in(&client, "list_items", CALLER, None).await;
    }
    collector.calls(3).await;
    // Further spans would come with the next request.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let spans = collector.spans();
    let calls: Vec<_> = spans.iter().filter(|span| span["kind"] == SERVER).collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    // Callees follow the decision made here, not what the caller asked for.
    let carried = collector.got.carried.lock().clone();
    let of_caller = carried.iter().filter(|it| it.contains(&CALLER[3..35]));
    let (sampled, others): (Vec<_>, Vec<_>) = of_caller.partition(|it| it.ends_with("-01"));
    assert_eq!(sampled.len(), 1, "{carried:?}");
    assert!(others.len() >= 19, "{carried:?}");
    assert!(others.iter().all(|it| it.ends_with("-00")), "{carried:?}");
    let text = format!("{spans:?}");
    assert!(
        !text.contains("planted") && !text.contains("127.0.0.1"),
        "{text}"
    );
    let unknown = server_span(&spans, "one", "tools/call");
    assert_eq!(unknown["failed"], true, "{unknown}");
    assert!(
        unknown["attributes"].get("gen_ai.tool.name").is_none(),
        "{unknown}"
    );
    let invalid = calls
        .iter()
        .find(|call| call["attributes"]["error.type"] == "invalid_arguments");
    assert!(invalid.is_some(), "{calls:?}");
}

/// A vendor state is passed on within a bound, and only together with a well-formed trace.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_goes_on_with_its_trace_alone() {
    let service = TraceCollector::start().await;
    let house = traced(items_house(&service.base), &service, "ratio = 0.0");
    let gateway = serve(&house, "one");
    let client = Modern::new(gateway.url());
    let rest = format!("{}/rest/items/list_items", gateway.base);
    let long = format!("a={}", "x".repeat(511));
    let many = ["a=b"; 33].join(",");
    for (parent, state, expected) in [
        (CALLER, STATE, STATE),
        (CALLER, &*long, ""),
        (CALLER, &*many, ""),
        (CALLER, "a=\n", ""),
        ("nonsense", STATE, ""),
    ] {
        let meta = json!({ "traceparent": parent, "tracestate": state });
        let params = json!({ "name": "list_items", "arguments": {}, "_meta": meta });
        let answer = client.ask("tools/call", params).await;
        assert_eq!(answer.result()["isError"], false, "{}", answer.text);
        let states = service.got.states.lock().clone();
        assert_eq!(states.last().map(String::as_str), Some(expected), "{state}");
    }
    let plain = http().get(&rest).header("traceparent", CALLER);
    let plain = plain
        .header("tracestate", "a=b")
        .header("tracestate", "c=d");
    assert!(answer_to(plain).await.status().is_success());
    let states = service.got.states.lock().clone();
    assert_eq!(states.last().map(String::as_str), Some("a=b,c=d"));
}

/// With an unreachable collector, calls continue, lost spans are counted, and the gateway stops at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_holds_up_nothing() {
    let service = TraceCollector::start().await;
    // It takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_url = format!("http://{}", silent.local_addr().expect("an address"));
    let gone_url = format!("http://127.0.0.1:{}", free_port());
    for (endpoint, fails) in [(gone_url, true), (silent_url, false)] {
        let house =
            items_house(&service.base).config(&format!("[traces]\nendpoint = \"{endpoint}\""));
        let mut gateway = serve(&house, "one");
        let client = Modern::new(gateway.url());
        for _ in 0..300 {
            client.succeed("list_items", json!({})).await;
        }
        if fails {
            gateway.wait_for_log("traces cannot be sent");
            let failed = "weir_traced_calls_total{result=\"failed\"} ";
            let text = gateway.metrics().await;
            let count = text
                .split(failed)
                .nth(1)
                .and_then(|rest| rest.lines().next());
            let count: f64 = count.expect(&text).parse().expect("a number");
            assert!(count > 0.0, "{text}");
        }
        let ending = StallMeter::start();
        gateway.signal("TERM");
        assert!(gateway.left().success());
        let took = ending.running();
        assert!(took < Duration::from_secs(8), "it stops after {took:?}");
    }
}

/// The number of calls whose spans the gateway holds at most: those that wait, and those being sent.
const HELD_MAX: u64 = 2 * 2048;
const ASKING: u64 = 16;

/// A collector that accepts connections and never answers does not cost any call its answer, and the waiting spans are
/// bounded: those of each further call are counted as dropped.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_silent_collector_is_bounded() {
    let service = TraceCollector::start().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let house = items_house(&service.base).config(&format!(
        "[traces]\nendpoint = \"http://{}\"\n[limits]\nagent_rate = \"off\"",
        silent.local_addr().expect("an address")
    ));
    let gateway = serve(&house, "one");
    let each = HELD_MAX / ASKING + 20;
    let asking: Vec<_> = (0..ASKING)
        .map(|_| {
            let client = Modern::new(gateway.url());
            tokio::spawn(async move {
                // A tool that is not there is traced too, and costs the least.
                for _ in 0..each {
                    let refused = client.ask("tools/call", json!({ "name": "nothing" })).await;
                    assert!(refused.reply()["error"].is_object(), "{refused:?}");
                }
                client.succeed("list_items", json!({})).await;
            })
        })
        .collect();
    for one in asking {
        one.await.expect("all were answered");
    }
    let text = gateway.metrics().await;
    let count = |result: &str| -> u64 {
        let row = format!("weir_traced_calls_total{{result=\"{result}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&row));
        line.map_or(0, |count| count.parse().expect("a number"))
    };
    assert_eq!(count("sent"), 0, "{text}");
    let calls = ASKING * (each + 1);
    let held = calls - count("dropped") - count("failed");
    // On a slow machine, sending some spans has failed meanwhile, which made room.
    let lost = count("dropped") + count("failed");
    assert!(lost > 0 && held <= HELD_MAX, "{held} of {calls}");
}
