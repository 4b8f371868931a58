//! Watching Weir: what is scraped and by whom, dashboards and alerts over a real Prometheus, and no secret anywhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Gateway, House, Legacy, Modern, SERVE, answer_to, client, http, place,
    prometheus::{Prometheus, promtool},
    strangers,
};

use crate::sample;

const SCRAPE: &str = "scrape-9f1c2ab7";

fn dashboards() -> PathBuf {
    place::repository().join("dashboards")
}

/// Every alert has a case in which it fires.
#[test]
fn alert_rules_hold_in_their_cases() {
    let rules = dashboards().join("alerts.yml");
    let cases = dashboards().join("alerts.test.yml");
    for words in [["check", "rules"], ["test", "rules"]] {
        let file = if words[0] == "check" { &rules } else { &cases };
        let output = promtool(&[words[0], words[1], file.to_str().expect("UTF-8")]);
        let printed = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "promtool {words:?}: {printed}");
    }
    let cases = fs::read_to_string(cases).expect("the cases are there");
    for alert in alerts(&fs::read_to_string(rules).expect("the rules are there")) {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels");
        assert!(
            cases.contains(&fires),
            "{alert} has no case in which it fires"
        );
    }
}

fn alerts(rules: &str) -> Vec<&str> {
    rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect()
}

/// Publishes a contract, and a breaking version side by side with it.
fn keep_version(house: &House) {
    let first = sample::CONTRACT
        .replace("contract: airports", "contract: kept")
        .replace("_airport", "_kept")
        .replace("lookup_kept", "kept_airport");
    house.write("kept.yaml", &first);
    house.succeed(&["contracts", "submit", "kept.yaml"]);
    house.write(
        "kept.yaml",
        first.replace("max_length: 80", "max_length: 8"),
    );
    let held = house.json(&["contracts", "submit", "kept.yaml"]);
    let [draft, fingerprint] = ["draft", "fingerprint"].map(|key| held[key].as_str());
    let (draft, fingerprint) = (draft.expect("held"), fingerprint.expect("held"));
    let words = ["contracts", "publish", draft, "--fingerprint", fingerprint];
    let keep = ["--keep", "--sunset", "2099-12-31"];
    house.succeed(&[&words[..], &keep].concat());
}

/// On a loaded gateway with a real Prometheus, every panel and every alert finds the series that it queries.
#[tokio::test(flavor = "multi_thread")]
async fn every_panel_and_alert_finds_its_metrics() {
    let house = sample::house().config("[metrics]\ntoken = \"env:SCRAPE_TOKEN\"");
    let words = strangers::hostile(&["tools"]);
    let house = house.config(&format!(
        "[upstreams.other]\ncommand = {words:?}\nfirst = \"publish\""
    ));
    // A server that is down, since a panel shows why.
    let house = house.config(&format!(
        "[upstreams.gone]\ncommand = {:?}",
        strangers::hostile(&["dead"])
    ));
    // Its trail is copied to a bucket that is away.
    let house = house.config(
        "[audit]\ncopies = \"s3://trail/weir\"\ncopies_endpoint = \"http://127.0.0.1:9\"\ncopies_region = \"eu-central-1\"",
    );
    let gateway = serve(&house);
    let key = house.key(&["--agent", "ann"]);
    keep_version(&house);
    let target = gateway.base.trim_start_matches("http://").to_owned();
    let prometheus = Prometheus::start(&target, SCRAPE, &dashboards().join("alerts.yml")).await;
    let panels = panels();
    assert!(
        panels.len() > 50,
        "the boards hold {} queries",
        panels.len()
    );
    let rules = fs::read_to_string(dashboards().join("alerts.yml")).expect("the rules are there");
    let variables = panels
        .iter()
        .flat_map(|(_, expression)| selectors(&filled(expression)));
    let selectors: BTreeSet<String> = selectors(&rules).into_iter().chain(variables).collect();
    let expressions = panels
        .iter()
        .map(|(place, expression)| (place.clone(), filled(expression)));
    let selectors = selectors.into_iter();
    let mut empty: Vec<_> = expressions
        .chain(selectors.map(|it| (it.clone(), it)))
        .collect();
    // A rate needs two scrapes, and a rule is evaluated after them.
    let began = Instant::now();
    loop {
        load(&gateway, &key).await;
        let kept = Modern::with_key(gateway.contract_url("kept@1"), &key);
        kept.call("kept_airport", json!({"iata": "OSL"})).await;
        let mut still = Vec::new();
        for (place, query) in empty {
            if prometheus.query(&query).await.is_empty() {
                still.push((place, query));
            }
        }
        empty = still;
        if empty.is_empty() {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "nothing is found by\n{empty:#?}\n{}",
            gateway.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes calls of every kind, in both eras, with a key and without.
async fn load(gateway: &Gateway, key: &str) {
    let modern = Modern::with_key(gateway.url(), key);
    let legacy = Legacy::open_as(gateway.url(), "2025-11-25", Some(key)).await;
    modern.list().await;
    for iata in ["OSL", "TRD", "XXX", "not a code"] {
        modern.call("lookup_airport", json!({ "iata": iata })).await;
        legacy.call("lookup_airport", json!({ "iata": iata })).await;
    }
    modern
        .ask("tools/call", json!({"name": "other_echo", "arguments": {}}))
        .await;
    modern
        .call(
            "create_airport",
            json!({"iata": "OSL", "name": "Oslo", "country": "NO"}),
        )
        .await;
    modern
        .ask(
            "tools/call",
            json!({"name": "no_such_tool", "arguments": {}}),
        )
        .await;
    Modern::with_key(gateway.url(), "weir_0_0")
        .ask("tools/list", json!({}))
        .await;
}

/// Returns every query of every board, with its place, and checks what else a panel needs.
fn panels() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut ids = BTreeSet::new();
    for file in fs::read_dir(dashboards())
        .expect("there are dashboards")
        .flatten()
        .map(|entry| entry.path())
    {
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let board: Value =
            serde_json::from_slice(&fs::read(&file).expect("readable")).expect("a board is JSON");
        let name = board["title"].as_str().expect("a title");
        assert!(
            ids.insert(board["uid"].as_str().expect("a uid").to_owned()),
            "{name}: its uid is taken"
        );
        assert!(
            board["schemaVersion"]
                .as_u64()
                .is_some_and(|version| version >= 41),
            "{name}"
        );
        assert_eq!(
            board["templating"]["list"][0]["name"], "datasource",
            "{name}"
        );
        for panel in board["panels"]
            .as_array()
            .expect("panels")
            .iter()
            .filter(|panel| panel["type"] != "row")
        {
            let place = format!("{name} / {}", panel["title"].as_str().expect("a title"));
            assert!(
                panel["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{place}: no description"
            );
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{place}: no unit"
            );
            for target in panel["targets"].as_array().expect("targets") {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{place}");
                found.push((
                    place.clone(),
                    target["expr"].as_str().expect("an expression").to_owned(),
                ));
            }
        }
    }
    found
}

/// Fills in the variables as Grafana does.
fn filled(expression: &str) -> String {
    let intervals = expression
        .replace("$__rate_interval", "1m")
        .replace("$__range", "5m");
    ["$tool", "$contract", "$plugin", "$upstream", "$agent"]
        .iter()
        .fold(intervals, |text, name| text.replace(name, ".*"))
}

/// Returns `name{matchers}` of every metric that is named.
fn selectors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let part = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
    let text: String = text
        .lines()
        .filter(|line| !is_prose(line))
        .collect::<Vec<_>>()
        .join("\n");
    for (at, _) in text
        .char_indices()
        .filter(|(at, _)| !text[..*at].ends_with(part))
    {
        let name: &str = &text[at..at
            + text[at..]
                .find(|char| !part(char))
                .unwrap_or(text.len() - at)];
        let ours = ["weir_", "weir:", "mcp_server_", "process_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name == "up";
        if !ours {
            continue;
        }
        let rest = &text[at + name.len()..];
        let matchers = if rest.starts_with('{') {
            &rest[..rest.find('}').map_or(0, |end| end + 1)]
        } else {
            ""
        };
        found.insert(format!("{name}{matchers}"));
    }
    found
}

/// Returns `true` for a line of the rule file that is for people.
fn is_prose(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "summary:", "description:"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[tokio::test]
async fn metrics_are_for_who_may_scrape_them() {
    let house = sample::house();
    let gateway = house.serve();
    let url = format!("{}/metrics", gateway.base);
    let (status, text) = scrape(&url, None, None).await;
    assert_eq!(status, 200);
    assert!(text.contains("weir_build_info{version="), "{text}");
    assert_eq!(
        scrape(&url, None, Some("rebound.example")).await.0,
        403,
        "a page in a browser is not this machine"
    );
    let admin = fs::read_to_string(house.path().join("state/admin.url"))
        .expect("the admin API has an address");
    assert_eq!(scrape(&format!("{admin}/metrics"), None, None).await.0, 200);
    assert_eq!(
        scrape(&format!("{admin}/metrics"), None, Some("rebound.example"))
            .await
            .0,
        403
    );
    let through_a_proxy =
        answer_to(http().get(&url).header("x-forwarded-for", "203.0.113.9")).await;
    assert_eq!(through_a_proxy.status(), 401);
    drop(gateway);

    let house = sample::house()
        .config("[http]\nhosts = [\"weir.example\"]\n[admin]\nhosts = [\"weir.example\"]");
    let gateway = house.serve();
    let url = format!("{}/metrics", gateway.base);
    let (status, text) = scrape(&url, None, Some("weir.example")).await;
    assert!(
        status == 401 && text.contains("set `token` under [metrics]"),
        "a proxy passes that on: {text}"
    );
    assert_eq!(
        scrape(&url, None, None).await.0,
        401,
        "a proxy may ask under its own name"
    );
    let admin = fs::read_to_string(house.path().join("state/admin.url"))
        .expect("the admin API has an address");
    assert_eq!(scrape(&format!("{admin}/metrics"), None, None).await.0, 200);
    assert_eq!(
        scrape(&format!("{admin}/metrics"), None, Some("weir.example"))
            .await
            .0,
        401
    );
    drop(gateway);

    let house = sample::house().config("[metrics]\ntoken = \"env:SCRAPE_TOKEN\"");
    let gateway = serve(&house);
    let admin = fs::read_to_string(house.path().join("state/admin.url"))
        .expect("the admin API has an address");
    for base in [&gateway.base, &admin] {
        let url = format!("{base}/metrics");
        assert_eq!(scrape(&url, None, None).await.0, 401);
        assert_eq!(scrape(&url, Some("scrape-9f1c2ab"), None).await.0, 401);
        assert_eq!(
            scrape(&url, Some(SCRAPE), Some("weir.example")).await.0,
            200,
            "the token is enough"
        );
    }
    drop(gateway);
    let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && err.contains("/metrics/token") && err.contains("SCRAPE_TOKEN is not set"),
        "{err}"
    );
}

/// A scraper of the admin listener gets the same kind of refusal as its other clients.
#[tokio::test]
async fn the_admin_listener_refuses_a_scrape_by_a_problem_document() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = fs::read_to_string(house.path().join("state/admin.url"))
        .expect("the admin API has an address");
    let url = format!("{admin}/metrics");
    for (request, status) in [
        (http().get(&url).header("host", "rebound.example"), 403),
        (
            http().get(&url).header("origin", "http://evil.example"),
            403,
        ),
        (
            http().get(&url).header("x-forwarded-for", "203.0.113.9"),
            401,
        ),
        (http().post(&url), 405),
    ] {
        let response = answer_to(request).await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
        if status == 401 {
            assert_eq!(
                response.headers()["www-authenticate"],
                "Bearer realm=\"weir metrics\""
            );
        }
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["detail"].is_string(), "{problem}");
    }
    drop(gateway);
}

async fn scrape(url: &str, token: Option<&str>, host: Option<&str>) -> (u16, String) {
    let mut request = http().get(url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(host) = host {
        request = request.header("host", host);
    }
    let response = answer_to(request).await;
    (
        response.status().as_u16(),
        response.text().await.expect("text"),
    )
}

fn serve(house: &House) -> Gateway {
    let mut command = house.weir(&SERVE);
    command
        .env("SCRAPE_TOKEN", SCRAPE)
        .env("AWS_ACCESS_KEY_ID", "weir")
        .env("AWS_SECRET_ACCESS_KEY", "weir-secret");
    Gateway::start(command)
}

/// A key, the admin's key, the scraper's token, a database's password, an API's header and an argument, each of them
/// used and misused: none is in a log, an answer, a metric or the audit trail.
#[tokio::test]
async fn planted_secrets_are_nowhere() {
    const PASSWORD: &str = "pw-5d0e8c31";
    const HEADER: &str = "api-77aa01fe";
    const ARGUMENT: &str = "argument-3e9b";
    let house = sample::house()
        .config("[log]\nfilter = \"debug\"\n[metrics]\ntoken = \"env:SCRAPE_TOKEN\"")
        .config(&format!("[connections.db]\nkind = \"postgresql\"\nurl = \"postgres://weir:{PASSWORD}@127.0.0.1:1/x\""))
        .config(&format!(
            "[connections.api]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:1\"\nheaders = {{ authorization = \"{HEADER}\" }}"
        ))
        .config("[plugins.sql.grants]\ndb = \"read\"\n[plugins.rest.grants]\napi = \"read\"")
        .file("contracts/people.yaml", PEOPLE)
        .file("contracts/items.yaml", ITEMS);
    let gateway = serve(&house);
    let key = house.key(&["--agent", "ann"]);
    let secret = key
        .rsplit('_')
        .next()
        .expect("a key has a secret")
        .to_owned();
    let admin_key =
        fs::read_to_string(house.path().join("state/admin.token")).expect("the first admin key");
    let admin_secret = admin_key
        .trim()
        .rsplit('_')
        .next()
        .expect("a key has a secret")
        .to_owned();
    let admin = fs::read_to_string(house.path().join("state/admin.url"))
        .expect("the admin API has an address");

    let modern = Modern::with_key(gateway.url(), &key);
    let mut answers = String::new();
    for (tool, arguments) in [
        ("lookup_airport", json!({ "iata": ARGUMENT })),
        ("list_airports", json!({ "country": ARGUMENT })),
        ("get_item", json!({ "id": "1" })),
        ("get_person", json!({ "id": 1 })),
    ] {
        answers.push_str(
            &modern
                .ask("tools/call", json!({"name": tool, "arguments": arguments}))
                .await
                .text,
        );
    }
    for wrong in [
        format!("{key}0"),
        admin_key.trim().to_owned(),
        SCRAPE.to_owned(),
    ] {
        answers.push_str(
            &client::send(Modern::with_key(gateway.url(), &wrong).request("tools/list", json!({})))
                .await
                .text,
        );
        answers.push_str(
            &scrape(
                &format!("{admin}/v1/keys"),
                Some(&wrong[..wrong.len() - 1]),
                None,
            )
            .await
            .1,
        );
        answers.push_str(
            &scrape(
                &format!("{admin}/metrics"),
                Some(&format!("{wrong}0")),
                None,
            )
            .await
            .1,
        );
    }
    let (status, metrics) = scrape(&format!("{}/metrics", gateway.base), Some(SCRAPE), None).await;
    assert_eq!(status, 200);
    let mut audit = String::new();
    read_all(&house.path().join("state/audit"), &mut audit);
    assert!(audit.lines().count() > 5, "the trail holds {audit}");
    let log = gateway.log();
    let places = [
        ("the log", &log),
        ("an answer", &answers),
        ("metrics", &metrics),
        ("the audit trail", &audit),
    ];
    for planted in [&*secret, &*admin_secret, SCRAPE, PASSWORD, HEADER, ARGUMENT] {
        for (place, text) in places {
            let line = text.lines().find(|line| line.contains(planted));
            assert!(line.is_none(), "{planted} stands in {place}: {line:?}");
        }
    }
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("the trail is there").flatten() {
        match entry.path().is_dir() {
            true => read_all(&entry.path(), text),
            false => text.push_str(&String::from_utf8_lossy(
                &fs::read(entry.path()).expect("readable"),
            )),
        }
    }
}

const PEOPLE: &str = r#"
contract: people
collections:
  people: { adapter: sql, settings: { connection: db, table: people }, key: [id] }
tools:
  - tool: get_person
    description: One person by id.
    verb: lookup
    collection: people
    fields: [{ name: id, type: number, required: true }]
"#;

const ITEMS: &str = r#"
contract: items
collections:
  items:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: string, name: string }
      list: { path: /items }
      get: { path: "/items/{id}" }
tools:
  - tool: get_item
    description: One item by id.
    verb: lookup
    collection: items
    fields: [{ name: id, type: text, required: true }]
"#;
