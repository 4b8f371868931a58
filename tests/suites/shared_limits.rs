//! Rates that three gateways over one state count together.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Legacy, Modern, Postgres, Stdio, Valkey, client::send};

use crate::sample;

/// A key with this many requests a second, over three nodes that are sent more requests than a debug build answers.
const RATE: f64 = 40.0;

/// The time for which a rate is exceeded. `cargo xtask cluster` takes a minute.
fn offer_time() -> Duration {
    let seconds = std::env::var("WEIR_OFFER_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// The time for which the ledger is away.
fn outage() -> Duration {
    match std::env::var_os("WEIR_OFFER_SECONDS") {
        Some(_) => Duration::from_secs(10),
        None => Duration::from_secs(4),
    }
}

struct Nodes {
    gateways: Vec<Gateway>,
    admin: Admin,
    _houses: Vec<House>,
}

fn house(server: &Postgres, limits: &str) -> House {
    let house = House::new()
        .sheets()
        .file("data/airports.csv", sample::DATA);
    house.config(&format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\n{limits}\n",
        server.url()
    ))
}

/// What clients got.
#[derive(Default)]
struct Tally {
    passed: usize,
    refused: usize,
    others: Vec<String>,
    /// When each answer came, in seconds.
    answered: Vec<f64>,
    seconds: f64,
}

impl Nodes {
    /// Starts three gateways, with more in the section `[limits]`.
    fn start(server: &Postgres, limits: &str) -> Self {
        let first = house(server, limits);
        let mut gateways = vec![first.serve()];
        let admin = Admin::of(&first);
        let mut houses = vec![first];
        for _ in 0..2 {
            let other = house(server, limits);
            gateways.push(other.serve());
            houses.push(other);
        }
        Self {
            gateways,
            admin,
            _houses: houses,
        }
    }

    async fn key(&self, agent: &str, rate: &str) -> String {
        self.key_with(agent, json!({ "rate": rate })).await
    }

    async fn key_with(&self, agent: &str, limits: Value) -> String {
        let body = json!({"agent": agent, "limits": limits}).to_string();
        let (status, made) = self.admin.ask("POST", "/v1/keys", body).await;
        assert_eq!((status, &made["everywhere"]), (201, &json!(true)), "{made}");
        made["key"].as_str().expect("a key").to_owned()
    }

    /// Waits until each node sees the given number.
    async fn counted(&self, nodes: f64) {
        for gateway in &self.gateways {
            while metric(gateway, "weir_ledger_nodes").await != nodes {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Sends requests to all nodes for the given time, with two clients each.
    async fn offer(&self, key: &str, length: Duration) -> Tally {
        let began = Instant::now();
        let mut callers = Vec::new();
        for gateway in self.gateways.iter().chain(&self.gateways) {
            let client = Modern::with_key(gateway.url(), key);
            callers.push(tokio::spawn(async move {
                let mut tally = Tally::default();
                while began.elapsed() < length {
                    tally.ask(&client).await;
                    tally.answered.push(began.elapsed().as_secs_f64());
                }
                tally
            }));
        }
        let mut all = Tally::default();
        for caller in callers {
            let one = caller.await.expect("a caller ends");
            all.passed += one.passed;
            all.refused += one.refused;
            all.others.extend(one.others);
            all.answered.extend(one.answered);
        }
        all.seconds = began.elapsed().as_secs_f64();
        all
    }

    /// Returns the count while the ledger answers. On a busy machine the ledger may not answer in time, which is another case,
    /// and the machine may not send enough requests, which is `None`: then the count is repeated, with another number.
    async fn count<T>(&self, mut attempt: impl AsyncFnMut(usize) -> Option<T>) -> T {
        for round in 0..10 {
            for gateway in &self.gateways {
                while metric(gateway, "weir_ledger_away").await != 0.0 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            let before = self.outages().await;
            let counted = attempt(round).await;
            if let Some(counted) = counted
                && self.outages().await == before
            {
                return counted;
            }
        }
        panic!("the ledger or the machine was too slow, ten times");
    }

    /// Returns how often the ledger was away, for any node.
    async fn outages(&self) -> f64 {
        let mut outages = 0.0;
        for gateway in &self.gateways {
            outages += metric(gateway, "weir_ledger_outages_total").await;
        }
        outages
    }
}

impl Tally {
    async fn ask(&mut self, client: &Modern) {
        let answer = client.ask("tools/list", json!({})).await;
        match answer.status.as_u16() {
            200 => self.passed += 1,
            429 => {
                self.refused += 1;
                assert!(
                    answer.headers.contains_key("retry-after"),
                    "{}",
                    answer.text
                );
            }
            status => self.others.push(format!("{status}: {}", answer.text)),
        }
    }

    fn offered(&self) -> usize {
        self.passed + self.refused
    }

    /// Returns how many of these requests one process lets through. A machine that has no time for its callers for longer than
    /// a burst sends fewer requests than the rate, and no process makes up for that.
    fn count_for_one_process(&self) -> f64 {
        let mut answered = self.answered.clone();
        answered.sort_by(f64::total_cmp);
        let (mut level, mut at, mut passed) = (RATE, 0.0, 0.0);
        for now in answered {
            level = RATE.min(level + (now - at) * RATE);
            at = now;
            if level >= 1.0 {
                level -= 1.0;
                passed += 1.0;
            }
        }
        passed
    }
}

/// Returns a series without labels.
async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let text = gateway.metrics().await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}:\n{text}"))
        .parse()
        .expect("a number")
}

/// Checks that a small rate is one of all nodes.
async fn check_small_rate(nodes: &Nodes) {
    let asked = nodes.count(async |round| {
        let small = nodes.key(&format!("small-{round}"), "10/min").await;
        Some(ask_in_turn(nodes, &small, 30).await)
    });
    let (passed, most) = asked.await;
    assert!((10..=most).contains(&passed), "{passed} of {most}");
}

/// Asks the nodes in turn, and returns how many of the requests passed, and how many may have. Notifications before cost
/// nothing.
async fn ask_in_turn(nodes: &Nodes, key: &str, count: usize) -> (usize, usize) {
    let began = Instant::now();
    let clients: Vec<Modern> = nodes
        .gateways
        .iter()
        .map(|gateway| Modern::with_key(gateway.url(), key))
        .collect();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    for gateway in nodes.gateways.iter().cycle().take(9) {
        let client = Legacy::bare(gateway.url(), "2025-06-18", Some(key));
        let answer = send(client.raw(note.to_string())).await;
        assert_ne!(answer.status.as_u16(), 429, "{}", answer.text);
    }
    // What they took is the ledger's again.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let mut tally = Tally::default();
    for client in clients.iter().cycle().take(count) {
        tally.ask(client).await;
    }
    assert_eq!(tally.others, Vec::<String>::new());
    (tally.passed, 10 + (began.elapsed().as_secs() / 6) as usize)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_count_a_rate_as_one_and_go_on_without_the_ledger() {
    let server = Postgres::start();
    let nodes = Nodes::start(&server, "");
    nodes.counted(3.0).await;
    check_small_rate(&nodes).await;

    let body = json!({"source": sample::CONTRACT}).to_string();
    nodes.admin.succeed("POST", "/v1/contracts", body).await;
    let limits = json!({"tools": {"lookup_airport": "4/min"}});
    let of_tool = nodes.count(async |round| {
        let agent = format!("of-tool-{round}");
        let key = nodes.key_with(&agent, limits.clone()).await;
        let mut passed = 0;
        for gateway in nodes.gateways.iter().cycle().take(12) {
            let client = Modern::with_key(gateway.url(), &key);
            let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
            passed += usize::from(result["isError"] == false);
        }
        Some(passed)
    });
    assert_eq!(of_tool.await, 4, "the rate of a tool is one of all nodes");

    let tally = nodes.count(async |round| {
        let (agent, rate) = (format!("busy-{round}"), format!("{RATE}/s"));
        let busy = nodes.key(&agent, &rate).await;
        let tally = nodes.offer(&busy, offer_time()).await;
        let is_enough = tally.offered() as f64 > RATE * (tally.seconds + 1.0) * 1.5;
        is_enough.then_some(tally)
    });
    let tally = tally.await;
    assert_eq!(tally.others, Vec::<String>::new());
    let (passed, most) = (tally.passed as f64, RATE * (tally.seconds + 1.0));
    let offered = tally.offered();
    let one = tally.count_for_one_process();
    assert!(
        (one * 0.9..=most * 1.017 + 1.0).contains(&passed),
        "{passed} passed of {offered}, one process lets {one} pass, and {most} at most"
    );

    let held = nodes.key("held", &format!("{RATE}/s")).await;
    server.signal("STOP");
    let began = Instant::now();
    let without = nodes.offer(&held, outage()).await;
    let away = metric(&nodes.gateways[0], "weir_ledger_away").await;
    server.signal("CONT");
    let again = nodes.offer(&held, Duration::from_secs(2)).await;
    assert_eq!(away, 1.0);
    assert_eq!(
        [without.others, again.others].concat(),
        Vec::<String>::new()
    );
    let passed = (without.passed + again.passed) as f64;
    let one = RATE * (began.elapsed().as_secs_f64() + 1.0);
    assert!(
        passed <= one + RATE,
        "{passed} passed, one process lets {one} pass"
    );
    assert!(
        without.passed as f64 >= RATE,
        "each node has its part: {}",
        without.passed
    );
    let outages = metric(&nodes.gateways[0], "weir_ledger_outages_total").await;
    assert!(outages >= 1.0, "{outages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_on_stdio_is_a_node_that_counts_with_the_others() {
    let server = Postgres::start();
    let nodes = Nodes::start(&server, "");
    let asked = nodes.count(async |round| {
        let key = nodes.key(&format!("ann-{round}"), "10/min").await;
        let there = house(&server, "");
        let mut process = Stdio::start_as(&there, &key);
        let began = Instant::now();
        let first = process.ask_modern("tools/list", json!({})).await;
        assert!(first.get("result").is_some(), "{first}");
        nodes.counted(4.0).await;
        let client = Modern::with_key(nodes.gateways[0].url(), &key);
        let mut passed = 1;
        for _ in 0..20 {
            let answer = process.ask_modern("tools/list", json!({})).await;
            passed += usize::from(answer.get("result").is_some());
            let answer = client.ask("tools/list", json!({})).await;
            passed += usize::from(answer.status.as_u16() == 200);
        }
        let most = 10 + (began.elapsed().as_secs() / 6) as usize + 1;
        Some((passed, most))
    });
    let (passed, most) = asked.await;
    assert!((10..=most).contains(&passed), "{passed} of {most}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_are_counted_in_valkey_where_it_is_configured() {
    let (server, mut valkey) = (Postgres::start(), Valkey::start());
    let nodes = Nodes::start(&server, &format!("ledger = \"{}\"", valkey.url()));
    nodes.counted(3.0).await;
    check_small_rate(&nodes).await;
    assert_eq!(
        server.sql("SELECT count(*) FROM limit_buckets"),
        "0",
        "nothing of it is in the database"
    );

    let busy = nodes.key("busy", &format!("{RATE}/s")).await;
    let began = Instant::now();
    let with = nodes.offer(&busy, Duration::from_secs(1)).await;
    valkey.stop();
    let without = nodes.offer(&busy, Duration::from_secs(3)).await;
    valkey.run();
    let mut parts = vec![with, without];
    let mut back = 0;
    // A machine that stops asks for less than the rate.
    for _ in 0..5 {
        let again = nodes.offer(&busy, Duration::from_secs(2)).await;
        back = again.passed;
        parts.push(again);
        if back as f64 >= RATE {
            break;
        }
    }
    let others: Vec<_> = parts.iter().flat_map(|part| &part.others).collect();
    assert!(others.is_empty(), "{others:#?}");
    let passed: usize = parts.iter().map(|part| part.passed).sum();
    let most = RATE * (began.elapsed().as_secs_f64() + 1.0) + RATE;
    assert!(passed as f64 <= most, "{passed} of {most}");
    assert!(back as f64 >= RATE, "it is back: {back}");
}
