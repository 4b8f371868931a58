//! Plugins while the gateway runs: swapped, broken, removed, hostile. Neighbours and callers must not notice.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, place, until};

use crate::{sample, tasks};

pub(crate) const GUEST_CONTRACT: &str = r#"
contract: guest
collections:
  one: { adapter: misbehaving, settings: {}, columns: [id, behaviour, text, build, calls], key: [id], write: true }
tools:
  - tool: behave
    description: Does what it is told.
    verb: lookup
    collection: one
    limits: { timeout_ms: 60000 }
    fields:
      - { name: behaviour, type: text, required: true, param: behaviour }
      - { name: amount, type: number, min: 0, max: 100000000, step: 1, param: amount }
      - { name: text, type: text, param: text }
"#;

/// Makes a house with the hostile guest next to an honest neighbour.
fn house() -> House {
    let house = sample::house()
        .own_plugins(&["sheet"])
        .file("contracts/guest.yaml", GUEST_CONTRACT);
    house.write("plugins/misbehaving.wasm", build("1"));
    house
}

/// Returns the guest, built as `name`: the marker in the file is overwritten.
pub(crate) fn build(name: &str) -> Vec<u8> {
    const MARKER: &[u8] = b"build=1       ";
    let mut bytes = std::fs::read(place::guest("misbehaving")).expect("a guest can be read");
    let at = bytes
        .windows(MARKER.len())
        .position(|window| window == MARKER)
        .expect("the guest carries its marker");
    let marker = format!("build={name:<8}");
    bytes[at..at + MARKER.len()].copy_from_slice(marker.as_bytes());
    bytes
}

async fn behave(client: &Modern, behaviour: &str) -> Value {
    client.call("behave", json!({"behaviour": behaviour})).await
}

#[tokio::test]
async fn a_misbehaving_guest_fails_alone_and_with_the_right_code() {
    let house = house();
    let (gateway, client) = house.serve_client();
    #[rustfmt::skip]
    let table: &[(&str, &[&str])] = &[
        ("trap", &["plugin_failed"]),
        ("panic", &["plugin_failed"]),
        ("spin", &["plugin_failed", "timeout"]),
        ("allocate", &["plugin_failed"]),
        ("recurse", &["plugin_failed"]),
        ("host-calls", &["plugin_failed"]),
        ("return-64mb", &["plugin_failed"]),
        ("ungranted-sql", &["forbidden"]),
        ("ungranted-files", &["forbidden"]),
        ("ungranted-http", &["forbidden"]),
        ("wrong-type", &["output_mismatch", "source_changed"]),
        ("missing-column", &["source_changed", "output_mismatch"]),
        ("double-key", &["output_mismatch"]),
        ("large-number", &["output_mismatch"]),
        ("lone-surrogate", &["output_mismatch"]),
        ("deep", &["output_mismatch", "plugin_failed"]),
        ("not-json", &["output_mismatch"]),
        ("not-an-array", &["output_mismatch"]),
    ];
    for (behaviour, codes) in table {
        let result = behave(&client, behaviour).await;
        let code = result["structuredContent"]["code"]
            .as_str()
            .unwrap_or("no code");
        assert!(
            result["isError"] == true && codes.contains(&code),
            "{behaviour}: {result}\n{}",
            gateway.log()
        );
        let neighbour = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(
            neighbour["structuredContent"]["country"], "NO",
            "after {behaviour}: {neighbour}"
        );
        let again = behave(&client, "behave").await;
        assert_eq!(again["isError"], false, "after {behaviour}: {again}");
    }
}

/// The status shows whether a plugin fails now; a new build starts afresh.
#[tokio::test]
async fn a_plugin_that_fails_is_seen_to() {
    let house = house();
    let (gateway, client) = house.serve_client();
    let health = || {
        let plugin = house.json(&["plugins", "show", "misbehaving"]);
        (plugin["health"].clone(), plugin["reason"].clone())
    };
    behave(&client, "behave").await;
    behave(&client, "trap").await;
    assert_eq!(health(), (json!("ok"), Value::Null), "once is a stray");
    behave(&client, "trap").await;
    behave(&client, "trap").await;
    let (state, why) = health();
    let why = why.as_str().unwrap_or_default();
    assert_eq!(state, "failing");
    assert!(
        why.starts_with("3 of its last ") && why.ends_with("in a trap, at a bound or in a timeout"),
        "{why}"
    );
    let (_, listed, _) = house.run(&["plugins", "list"]);
    assert!(
        listed.contains(&format!("misbehaving: failing: {why}")),
        "{listed}"
    );
    house.write("plugins/misbehaving.wasm", build("2"));
    let (_, reloaded, err) = house.run(&["plugins", "reload"]);
    let is_there = |line: &str| line.starts_with("misbehaving.wasm: ") && !line.contains("refused");
    assert!(reloaded.lines().any(is_there), "{reloaded} {err}");
    gateway.wait_for_log("\"generation\":2");
    assert_eq!(health(), (json!("ok"), Value::Null));
}

#[tokio::test]
async fn a_tool_that_only_traps_says_when_to_come_back() {
    let house = house();
    let (gateway, client) = house.serve_client();
    for _ in 0..5 {
        assert_eq!(
            behave(&client, "trap").await["structuredContent"]["code"],
            "plugin_failed"
        );
    }
    let answer = behave(&client, "behave").await["structuredContent"].clone();
    assert_eq!(answer["code"], "unavailable", "{answer}");
    assert!(
        (1..=1_000).contains(&answer["retry_after_ms"].as_u64().unwrap_or(0)),
        "{answer}"
    );
    let metrics = gateway.metrics().await;
    for line in [
        r#"weir_plugin_backing_off{plugin="misbehaving"} 1"#,
        r#"weir_plugin_backing_off{plugin="sheet"} 0"#,
        r#"weir_plugin_failures_total{kind="backed_off",plugin="misbehaving"} 1"#,
        r#"weir_plugin_failures_total{kind="failed",plugin="misbehaving"} 5"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    client
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    house.write("plugins/misbehaving.wasm", build("2"));
    until_build(&client, "2").await;
}

#[tokio::test]
async fn a_record_that_pretends_is_only_a_record() {
    let house = house();
    let (gateway, client) = house.serve_client();
    // A record that looks like an error is a record, without the unpublished columns.
    let pretended = behave(&client, "pretend-error").await;
    assert_eq!(pretended["isError"], false, "{pretended}");
    assert_eq!(
        pretended["structuredContent"].get("code"),
        None,
        "{pretended}"
    );
    let leaked = behave(&client, "extra-column").await;
    assert_eq!(leaked["isError"], false, "{leaked}");
    assert!(!leaked.to_string().contains("leak"), "{leaked}");
    // A flood of log lines costs the guest, not the log.
    let flood = behave(&client, "log-flood").await;
    assert!(flood["structuredContent"].is_object(), "{flood}");
    assert!(
        gateway.log().len() < 4 << 20,
        "the log holds {} bytes",
        gateway.log().len()
    );
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_reported() {
    let house = house();
    let (gateway, client) = house.serve_client();
    let whole = build("2");
    let broken: [(&str, Vec<u8>); 5] = [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("text", b"this is not a plugin".to_vec()),
        ("a module, not a component", b"\0asm\x01\0\0\0".to_vec()),
        ("a trap in about", build("trap")),
    ];
    for (what, bytes) in broken {
        let reports = refusals(&gateway);
        house.write("plugins/misbehaving.wasm", bytes);
        until("it is reported", async || refusals(&gateway) != reports).await;
        let result = behave(&client, "behave").await;
        assert_eq!(
            result["structuredContent"]["build"], "1",
            "after {what}: {result}"
        );
    }
    // The new build's shape has lost a column that the contract publishes.
    house.write("plugins/misbehaving.wasm", build("lost"));
    gateway.wait_for_log("text");
    let result = behave(&client, "behave").await;
    assert_eq!(result["structuredContent"]["build"], "1", "{result}");
    // A whole file goes live after all that.
    house.write("plugins/misbehaving.wasm", build("2"));
    until_build(&client, "2").await;
}

fn refusals(gateway: &Gateway) -> usize {
    gateway.log().matches("plugin refused").count()
}

#[tokio::test]
async fn a_removed_plugin_makes_its_tools_unavailable_and_a_new_one_brings_them_back() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    assert_eq!(behave(&client, "behave").await["isError"], false);
    std::fs::remove_file(house.path().join("plugins/misbehaving.wasm"))
        .expect("a file of this test");
    until("the tool is unavailable", async || {
        let result = behave(&client, "behave").await;
        result["structuredContent"]["code"] == "unavailable"
    })
    .await;
    let (tools, _) = client.list().await;
    assert!(
        tools.iter().any(|tool| tool["name"] == "behave"),
        "the tool has vanished"
    );
    house.write("plugins/misbehaving.wasm", build("2"));
    until_build(&client, "2").await;
}

/// A request belongs to one generation until the last byte of its answer.
#[tokio::test]
async fn an_answer_names_the_server_that_ran_the_call_and_not_the_one_published_since() {
    let house = house().config("[plugins.misbehaving]\ncpu_max_ms = 20000");
    let gateway = house.serve();
    let client = Modern::new(gateway.contract_url("guest"));
    let version =
        |result: &Value| result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"].clone();
    for edition in 1..=5 {
        let before = version(client.ask("server/discover", json!({})).await.result());
        let running = tokio::spawn({
            let client = client.clone();
            async move {
                client
                    .call("behave", json!({"behaviour": "slow", "amount": 8000}))
                    .await
            }
        });
        while !tasks::running(&gateway).await {
            assert!(!running.is_finished(), "the call ends at once");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let words = format!("In edition {edition}, does what");
        house.write(
            "contracts/guest.yaml",
            GUEST_CONTRACT.replace("Does what", &words),
        );
        until("the new version is published", async || {
            version(client.ask("server/discover", json!({})).await.result()) != before
        })
        .await;
        // On a machine that stops for seconds the call may be over by then, which shows nothing.
        if running.is_finished() {
            continue;
        }
        let answer = running.await.expect("an answer");
        assert_eq!(answer["isError"], false, "{answer}");
        assert_eq!(version(&answer), before, "{answer}");
        return;
    }
    panic!("no new version is published while a call runs");
}

async fn until_build(client: &Modern, build: &str) {
    until("the build is live", async || {
        let result = behave(client, "behave").await;
        result["structuredContent"]["build"] == build
    })
    .await;
}

/// A build that the gateway holds is an operator's to let in: a command over the same state neither runs nor accepts it.
#[tokio::test]
async fn a_call_from_the_terminal_lets_no_held_build_in() {
    let house = house().config("[plugins.misbehaving.grants]\ndata = \"write\"");
    let (gateway, client) = house.serve_client();
    until_build(&client, "1").await;
    house.write("plugins/misbehaving.wasm", build("2"));
    gateway.wait_for_log("held: `misbehaving` may write");
    let call = || {
        let mut call = house.weir(&["call"]);
        let output = call.args(["behave", "--behaviour", "behave"]).output();
        weir_tests::gateway::read_output(output.expect("weir starts"))
    };
    for _ in 0..2 {
        let (code, out, err) = call();
        assert!(code != 0 && out.is_empty(), "{out}\n{err}");
        assert!(err.contains("held: `misbehaving` may write"), "{err}");
    }
    let listed = house.json(&["plugin", "list"]);
    assert!(listed.to_string().contains("may write"), "{listed}");
    until_build(&client, "1").await;
    let digest = weir_tests::gateway::digest(&house.plugins().join("misbehaving.wasm"));
    let accept = ["plugin", "accept", "misbehaving", "--sha256", &digest];
    house.succeed(&accept);
    until_build(&client, "2").await;
    let (code, out, err) = call();
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"build\":\"2\""), "{out}");
}

/// Two builds take turns under 16 callers whose calls take half a second: no call fails, and each new build answers.
#[tokio::test(flavor = "multi_thread")]
async fn swaps_under_load_fail_no_call() {
    const SWAPS: usize = 20;
    let house = house();
    let (_gateway, client) = house.serve_client();
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (client, stop, answered) = (client.clone(), stop.clone(), answered.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let result = client
                        .succeed("behave", json!({"behaviour": "slow", "amount": 300}))
                        .await;
                    let build = result["structuredContent"]["build"]
                        .as_str()
                        .unwrap_or_default();
                    assert!(["1", "2"].contains(&build), "{result}");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let builds = [build("1"), build("2")];
    for swap in 0..SWAPS {
        house.write("plugins/misbehaving.wasm", &builds[(swap + 1) % 2]);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    stop.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.expect("no call fails");
    }
    assert!(
        answered.load(Ordering::SeqCst) > 16,
        "only {} calls were answered",
        answered.load(Ordering::SeqCst)
    );
    until_build(&client, if SWAPS.is_multiple_of(2) { "1" } else { "2" }).await;
}

/// A swap must free what it leaves behind: memory after 200 swaps is the same as before. A swap is as quick as the
/// file is noticed: it counts once two looks at it agree.
#[tokio::test]
async fn memory_does_not_grow_with_swaps() {
    const WARM_UP: usize = 20;
    const SWAPS: usize = 100;
    let house = house();
    let (gateway, client) = house.serve_client();
    let builds = [("1", build("1")), ("2", build("2"))];
    let mut memory = Vec::new();
    for swap in 1..=WARM_UP + SWAPS {
        let (name, bytes) = &builds[swap % 2];
        house.write("plugins/misbehaving.wasm", bytes);
        until_build(&client, name).await;
        memory.push(gateway.memory_kb());
    }
    let early = memory[WARM_UP - 10..WARM_UP]
        .iter()
        .max()
        .expect("ten samples");
    let late = memory[memory.len() - 10..]
        .iter()
        .min()
        .expect("ten samples");
    assert!(
        late * 100 <= early * 105,
        "{early} KB before {SWAPS} swaps, {late} KB after them: {memory:?}"
    );
}

/// The folder of plugins may hold other things; links and folders are not followed.
#[tokio::test]
async fn only_files_of_the_folder_count() {
    let house = house();
    let elsewhere = house.path().join("elsewhere.wasm");
    std::fs::rename(house.path().join("plugins/misbehaving.wasm"), &elsewhere)
        .expect("a file of this test");
    let link: &Path = &house.path().join("plugins/misbehaving.wasm");
    std::os::unix::fs::symlink(&elsewhere, link).expect("a link");
    house.write("plugins/notes.txt", "not a plugin");
    let (gateway, client) = house.serve_client();
    client
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert!(
        !gateway.log().contains("\"plugin\":\"misbehaving\""),
        "{}",
        gateway.log()
    );
}

/// The interface belongs to no language: the same small adapter in four of them gives the same answers.
#[tokio::test]
async fn an_adapter_may_be_written_in_any_language() {
    const LANGUAGES: [&str; 4] = ["rust", "js", "python", "c"];
    let mut house = House::new().own_plugins(&[]);
    for language in LANGUAGES {
        let file = format!("tiny-{language}.wasm");
        let bytes =
            std::fs::read(place::guest(&format!("tiny-{language}"))).expect("a guest can be read");
        house.write(&format!("plugins/{file}"), bytes);
        house.write(
            &format!("contracts/{language}.yaml"),
            tiny_contract(language),
        );
        if language == "python" {
            house = house.config("[plugins.tiny-python]\nmemory_max_mb = 256");
        }
    }
    let (gateway, client) = house.serve_client();
    for language in LANGUAGES {
        let call = async |tool: &str, arguments: Value| {
            client.call(&format!("{language}_{tool}"), arguments).await["structuredContent"].clone()
        };
        let hit = call("get", json!({"id": 2})).await;
        assert_eq!(
            hit,
            json!({"id": 2, "name": "two", "greeting": "hello"}),
            "{language}\n{}",
            gateway.log()
        );
        assert_eq!(
            call("get", json!({"id": 9})).await["code"],
            "not_found",
            "{language}"
        );
        let first = call("list", json!({"limit": 2})).await;
        assert_eq!(
            first["records"].as_array().map(Vec::len),
            Some(2),
            "{language}: {first}"
        );
        let rest = call("list", json!({"limit": 2, "cursor": first["next"]})).await;
        assert_eq!(rest["records"][0]["name"], "three", "{language}: {rest}");
        assert_eq!(rest["next"], Value::Null, "{language}: {rest}");
    }
    // An adapter may have tools of its own in addition.
    let named = client.call("name_number", json!({"number": 2})).await;
    assert_eq!(
        named["structuredContent"],
        json!({"result": "two"}),
        "{named}"
    );
    let none = client.call("name_number", json!({"number": 4})).await;
    assert_eq!(
        none["structuredContent"]["code"], "invalid_arguments",
        "{none}"
    );
}

pub(crate) fn tiny_contract(language: &str) -> String {
    format!(
        "contract: {language}
prefix: {language}
collections:
  tiny: {{ adapter: tiny-{language}, settings: {{ greeting: hello }} }}
tools:
  - {{ tool: get, description: One., verb: lookup, collection: tiny, fields: [{{ name: id, type: number, required: true }}] }}
  - {{ tool: list, description: All., verb: list, collection: tiny, fields: [] }}
"
    )
}
