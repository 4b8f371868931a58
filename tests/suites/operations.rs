//! Running Weir: sources that are not there, tables that change, many tools, a file served at once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, Postgres, foreign, place, until, weir, within};

use crate::{sample, upstreams};

const PEOPLE: &str = r#"
contract: people
collections:
  people:
    adapter: sql
    settings: { connection: db, table: people }
    key: [id]
tools:
  - tool: get_person
    description: One person by id.
    verb: lookup
    collection: people
    fields: [{ name: id, type: number, required: true }]
  - tool: list_people
    description: All people.
    verb: list
    collection: people
    fields: []
"#;

fn people(cluster: &Postgres) -> House {
    let house = House::new().config(&format!(
        "[connections.db]\nkind = \"postgresql\"\nurl = \"{}\"\n[plugins.sql.grants]\ndb = \"read\"",
        cluster.url()
    ));
    house.file("contracts/people.yaml", PEOPLE)
}

const TABLE: &str = "CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, born date);
INSERT INTO people VALUES (1, 'Ada', '1815-12-10'), (2, 'Grace', '1906-12-09'), (3, 'Nobody', NULL)";

/// The shape is recorded: a database that is away at the next start changes nothing but the answers, and those
/// recover on their own.
#[tokio::test]
async fn a_start_touches_no_source() {
    let mut cluster = Postgres::start();
    cluster.sql(TABLE);
    let house = people(&cluster);
    let before = {
        let gateway = house.serve();
        let client = Modern::new(gateway.url());
        assert_eq!(
            client.call("get_person", json!({"id": 1})).await["structuredContent"]["name"],
            "Ada"
        );
        listing(&client).await
    };
    cluster.stop();
    let (_gateway, client) = house.serve_client();
    assert_eq!(
        listing(&client).await,
        before,
        "tools/list depends on the weather"
    );
    let away = client.call("get_person", json!({"id": 1})).await;
    assert_eq!(away["structuredContent"]["code"], "unavailable", "{away}");
    cluster.run();
    until("it recovers", async || {
        let result = client.call("get_person", json!({"id": 1})).await;
        result["structuredContent"]["born"] == "1815-12-10"
    })
    .await;
}

/// A column of another type is reported as a difference, and a draft over the source as it is now waits for approval.
#[tokio::test]
async fn a_column_of_another_type_is_mended_by_a_draft() {
    let cluster = Postgres::start();
    cluster.sql(TABLE);
    let house = people(&cluster);
    let (gateway, client) = house.serve_client();
    let describe = ["collections", "describe", "people", "people"];
    assert_eq!(house.run(&describe).0, 0);
    cluster.sql("ALTER TABLE people ALTER COLUMN born TYPE text USING 'long ago'");
    // The first call that meets it finds it out.
    let result = client.call("get_person", json!({"id": 1})).await;
    assert_eq!(
        result["structuredContent"]["code"], "source_changed",
        "{result}"
    );
    gateway.wait_for_log("the source changed");
    assert_eq!(house.run(&describe).0, 3);
    let seen = house.json(&describe);
    let item = &seen["difference"]["items"][0];
    assert_eq!(
        (&item["side"], &seen["edits"]),
        (&json!("output"), &json!([])),
        "{seen}"
    );
    let draft = seen["draft"]
        .as_str()
        .unwrap_or_else(|| panic!("no draft: {seen}"));
    let (_, shown, _) = house.run(&["contracts", "show", "people"]);
    assert!(
        shown.contains(draft) && shown.contains("the source of people has changed"),
        "{shown}"
    );

    let report = house.json(&["contracts", "publish", draft]);
    let fingerprint = report["fingerprint"].as_str().expect("a fingerprint");
    house.succeed(&["contracts", "publish", draft, "--fingerprint", fingerprint]);
    until("the column of another type is served", async || {
        let result = client.call("get_person", json!({"id": 1})).await;
        result["structuredContent"]["born"] == "long ago"
    })
    .await;
    assert_eq!(house.run(&describe).0, 0);
    // An edit of the file by an author who does not know the new type does not bring the old one back.
    house.write(
        "contracts/people.yaml",
        PEOPLE.replace("One person by id.", "Returns the person with an id."),
    );
    until("the change is a cosmetic one", async || {
        house.json(&["contracts", "show", "people"])["versions"]
            .to_string()
            .contains("cosmetic")
    })
    .await;
}

/// The error names the missing column for the person who has to mend the source.
#[tokio::test]
async fn a_gone_sql_column_is_named() {
    let cluster = Postgres::start();
    cluster.sql(TABLE);
    let house = people(&cluster);
    let (_gateway, client) = house.serve_client();
    client.succeed("get_person", json!({"id": 1})).await;
    cluster.sql("ALTER TABLE people DROP COLUMN born");
    let result = client.call("get_person", json!({"id": 1})).await;
    assert_eq!(
        result["structuredContent"]["code"], "source_changed",
        "{result}"
    );
    assert!(
        result["structuredContent"]["message"]
            .as_str()
            .is_some_and(|printed| printed.contains("`born`")),
        "{result}"
    );
}

async fn listing(client: &Modern) -> String {
    client
        .ask("tools/list", json!({}))
        .await
        .result()
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_added_under_load_reaches_nobody() {
    let cluster = Postgres::start();
    cluster.sql(TABLE);
    let house = people(&cluster);
    let (_gateway, client) = house.serve_client();
    let end = Instant::now() + Duration::from_secs(3);
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut calls = 0;
                while Instant::now() < end {
                    let result = client.succeed("list_people", json!({})).await;
                    assert!(!result.to_string().contains("salary"), "{result}");
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(800)).await;
    cluster.sql("ALTER TABLE people ADD COLUMN salary integer DEFAULT 4711");
    for caller in callers {
        assert!(caller.await.expect("no answer contains it") > 0);
    }
}

/// Ten thousand tools are listed in pages, and each is called. How quickly is for `cargo xtask bench`.
#[tokio::test]
async fn ten_thousand_tools() {
    let house = many_tools(10_000);
    let (_gateway, client) = house.serve_client();
    let (tools, pages) = client.list().await;
    assert_eq!(tools.len(), 10_000);
    assert!(pages >= 10, "only {pages} pages");
    for tool in ["lookup_0", "lookup_9999"] {
        client.succeed(tool, json!({"iata": "OSL"})).await;
    }
}

fn many_tools(count: usize) -> House {
    let mut contract = sample::CONTRACT
        .split("tools:")
        .next()
        .expect("a contract")
        .to_owned();
    contract.push_str("tools:\n");
    for number in 0..count {
        writeln!(
            contract,
            "  - {{ tool: lookup_{number}, description: \"Looks up, {number}.\", verb: lookup, collection: airports, \
             fields: [{{ name: iata, type: text, required: true, help: \"IATA code.\" }}] }}"
        )
        .expect("a string grows");
    }
    House::new()
        .sheets()
        .file("contracts/airports.yaml", contract)
        .file("data/airports.csv", sample::DATA)
}

/// Two commands serve an unknown file, and ask it.
#[test]
fn a_csv_file_is_served_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("Spare Parts (2024).csv");
    let mut text = String::from("PartNo;Beschreibung;Price;InStock;OrderedOn;Kind\n");
    for number in 1..=40 {
        let kind = ["bolt", "nut", "washer"][number % 3];
        writeln!(
            text,
            "{number:05};Teil №{number};{number}.50;{};2024-01-{:02};{kind}",
            number % 2 == 0,
            number % 28 + 1
        )
        .expect("a string grows");
    }
    std::fs::write(&file, text).expect("a file in the temporary folder");

    let mut serve = std::process::Command::new(place::binary("weir"));
    serve
        .arg("serve")
        .arg(&file)
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(folder.path());
    serve
        .env("WEIR_PLUGINS", place::plugins())
        .stdout(Stdio::null());
    let gateway = Gateway::start(serve);
    let probe = json!({"url": gateway.url(), "mode": "auto", "calls": []});
    let tools = foreign::report(foreign::node_script("typescript2.mjs"), &probe)["tools"].clone();
    let tools = tools.as_array().expect("a report lists tools");
    let lookup = named(tools, "lookup");
    let list = named(tools, "list");
    let key = lookup["inputSchema"]["required"][0]
        .as_str()
        .expect("a lookup needs its key");
    let plan = json!({"url": gateway.url(), "mode": "auto", "calls": [
        {"tool": lookup["name"], "arguments": {key: "00007"}},
        {"tool": list["name"], "arguments": {"limit": 100}},
    ]});
    let report = foreign::report(foreign::node_script("typescript2.mjs"), &plan);
    let hit = &report["calls"][0];
    assert_eq!(hit["isError"], false, "{hit}");
    assert!(hit["structured"].to_string().contains("Teil №7"), "{hit}");
    assert_eq!(
        report["calls"][1]["structured"]["records"]
            .as_array()
            .map(Vec::len),
        Some(40)
    );
}

/// Finds a tool by its verb, since the draft chooses its own names: a lookup reads and needs its key, a list reads and
/// needs nothing.
fn named<'a>(tools: &'a [Value], verb: &str) -> &'a Value {
    let found = tools.iter().find(|tool| {
        let reads = tool["annotations"]["readOnlyHint"] == true;
        reads && tool["inputSchema"]["required"].is_array() == (verb == "lookup")
    });
    found.unwrap_or_else(|| panic!("the draft has no {verb} tool: {tools:?}"))
}

/// A desktop client that starts Weir in the wrong folder shows why, instead of a server without tools; a command that is
/// typed there leaves no state folder.
#[test]
fn where_nothing_is_to_be_served_a_command_says_so_and_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path().to_string_lossy();
    for (words, advice) in [
        (&["stdio"][..], "prices.csv"),
        (&["call", "lookup_price"], "--url"),
        (&["tools", "llms"], "weir.toml"),
        (&["tools", "openapi", "prices"], "weir.toml"),
        (&["tools", "cost"], "weir.toml"),
        (&["tools", "clients"], "weir.toml"),
        (&["contracts", "lock"], "weir.toml"),
    ] {
        let output = weir(words)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("weir starts");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {printed}");
        for part in ["nothing to serve", "`weir.toml`", "--config", &here, advice] {
            assert!(printed.contains(part), "{words:?}: {part}: {printed}");
        }
        assert_eq!(
            std::fs::read_dir(&folder).expect("a folder").count(),
            0,
            "{words:?} leaves nothing behind"
        );
    }
    let house = House::new();
    house.serve().wait_for_log("no tool is served");
}

/// A reader that has gone ends a command in silence, a disk without room does not.
#[test]
fn output_that_finds_no_room_is_told_in_a_sentence() {
    let house = House::new()
        .file("a.json", "{}")
        .file("b.json", r#"{"type": "string"}"#);
    let run = |to: Stdio| {
        let output = house
            .weir(&["diff", "a.json", "b.json", "--side", "input"])
            .stdout(to)
            .output()
            .expect("weir starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let answer = "weir: the output cannot be written: No space left on device (os error 28)\n";
    assert_eq!(run(full.into()), (Some(1), answer.to_owned()));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(run(writer.into()), (Some(0), String::new()));
}

/// Where nothing reads stderr, a command still ends with its own exit code.
#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    let house = House::new()
        .file("good.csv", "sku,name\nA1,Lamp\n")
        .file("bad.yaml", "contract: bad\ntools: 7\n");
    for (words, code, printed) in [
        (["draft", "good.csv"], 0, "contract: good"),
        (["compile", "bad.yaml"], 1, ""),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = house
            .weir(&words)
            .stderr(writer)
            .output()
            .expect("weir starts");
        let answer = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {answer}");
        assert!(answer.contains(printed), "{words:?}: {answer}");
    }
}

/// A bad configuration is refused at start with every problem and its place.
#[test]
fn a_bad_configuration_is_refused_whole() {
    let house = sample::house().config("[http]\nlisten = \"not an address\"\n[nonsense]\nkey = 1");
    let output = house
        .weir(&["serve", "--listen", "127.0.0.1:0"])
        .output()
        .expect("weir runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("nonsense") && text.contains("listen"),
        "{text}"
    );
}

/// A gateway without callers sleeps until something changes: nothing asks several times a second.
#[test]
fn a_gateway_at_rest_hardly_wakes() {
    let gateway = sample::house().serve();
    // When a thread ends, its count is lost.
    let wakes = || -> BTreeMap<OsString, u64> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", gateway.process_id()));
        let count = |thread: std::fs::DirEntry| {
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            let count = line.and_then(|count| count.trim().parse::<u64>().ok());
            (thread.file_name(), count.unwrap_or(0))
        };
        threads.expect("it runs").flatten().map(count).collect()
    };
    // What a start has changed is followed by looks for a while, which is longer where the machine is busy.
    let (seconds, mut counts) = (3, Vec::new());
    for _ in 0..10 {
        std::thread::sleep(std::time::Duration::from_secs(4));
        let before = wakes();
        std::thread::sleep(std::time::Duration::from_secs(seconds));
        let more = |(thread, count): (OsString, u64)| {
            count.saturating_sub(before.get(&thread).copied().unwrap_or(0))
        };
        let woken: u64 = wakes().into_iter().map(more).sum();
        counts.push(woken / seconds);
        if counts.last().is_some_and(|count| *count <= 40) {
            return;
        }
    }
    panic!("it wakes so often in a second: {counts:?}");
}

/// Parts of the program that only the start needed do not remain in memory.
#[tokio::test]
async fn pages_of_the_start_are_given_back() {
    let house = sample::house();
    let gateway = house.serve();
    let is_given_back = async || gateway.memory_kb() < gateway.peak_memory_kb() * 2 / 3;
    let limit = Duration::from_secs(30);
    within(limit, "a third is given back", is_given_back).await;
    let client = Modern::new(gateway.url());
    client
        .succeed("lookup_airport", json!({ "iata": "OSL" }))
        .await;
}

/// A plugin that is loaded is in the log once at each start; a configuration that is read again without a change adds no line.
#[tokio::test]
async fn a_loaded_plugin_is_in_the_log_once() {
    let house = sample::house().own_plugins(&["sheet", "sql"]);
    let guest = std::fs::read(place::guest("tools-rust")).expect("a guest can be read");
    house.write("plugins/tools-rust.wasm", guest);
    let loaded = |gateway: &Gateway| {
        let mut plugins: Vec<String> = Vec::new();
        for line in gateway.log().lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            if line["message"] == "plugin loaded" {
                plugins.push(line["plugin"].as_str().unwrap_or_default().to_owned());
            }
        }
        plugins.sort();
        plugins
    };
    for start in ["the first start", "a restart"] {
        let (gateway, client) = house.serve_client();
        upstreams::listed(&client, "deploy").await;
        let once = ["sheet", "sql", "weir-guest-tools"];
        // A thread writes the log.
        let all = async || loaded(&gateway).len() >= once.len();
        within(Duration::from_secs(60), "all are in the log", all).await;
        assert_eq!(loaded(&gateway), once, "{start}");
        house.succeed(&["reload"]);
        // Its line comes after the reload's log lines.
        client
            .succeed("lookup_airport", json!({ "iata": "OSL" }))
            .await;
        gateway.wait_for_log("\"tool\":\"lookup_airport\"");
        assert_eq!(loaded(&gateway), once, "{start}, and a reload");
    }
}

/// The log has which contract went to which version.
#[tokio::test]
async fn a_version_that_goes_live_is_in_the_log() {
    let house = sample::house();
    let gateway = house.serve();
    let longer = sample::CONTRACT.replace("with an IATA code.", "with an IATA code, such as OSL.");
    house.write("contracts/airports.yaml", longer);
    gateway.wait_for_log(
        "\"a version is live\",\"contract\":\"airports\",\"version\":\"1.0.1\",\"before\":\"1.0.0\"",
    );
    let other = sample::CONTRACT
        .replace("airports\ndescription", "fields\ndescription")
        .replace("_airport", "_field");
    house.write("contracts/fields.yaml", other);
    gateway.wait_for_log("\"a version is live\",\"contract\":\"fields\",\"version\":\"1.0.0\"");
}
