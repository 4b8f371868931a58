//! `weir extract` and `weir connect`: real servers of other people, ours, and a misbehaving one.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Modern, place, stdio,
    strangers::{self, STRANGERS},
    upstream::{Certificate, Datasette, Running, free_port, wait_for_port},
    weir,
};

use crate::{sample, upstreams::costly};

fn run(mut command: Command) -> (i32, String, String) {
    let output = command.stdin(Stdio::null()).output().expect("weir starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("weir prints text");
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Returns what `weir extract OPTIONS -- SERVER` prints.
fn extract(options: &[&str], server: &[String]) -> (i32, String, String) {
    let mut command = weir(&["extract"]);
    command.args(options).arg("--").args(server);
    run(command)
}

fn document(options: &[&str], server: &[String]) -> String {
    let (code, out, err) = extract(options, server);
    assert_eq!(code, 0, "{server:?}: {err}");
    out
}

fn names(document: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(document).expect("a document");
    let items = document["items"]
        .as_array()
        .expect("a document has items")
        .iter();
    items
        .map(|item| {
            item["name"]
                .as_str()
                .expect("an item has a name")
                .to_owned()
        })
        .collect()
}

/// A document is kept and shared.
#[test]
fn what_a_server_repeats_of_its_secrets_is_not_printed() {
    let token = "s3cr3t-of-a-server";
    let variable = format!("TRACKER_TOKEN={token}");
    let printed = document(&["--env", &variable], &strangers::hostile(&["leaks"]));
    assert!(printed.contains("Answers with ***."), "{printed}");
    assert!(!printed.contains(token), "{printed}");
}

#[test]
fn servers_of_other_people_are_extracted_twice_to_equal_bytes() {
    let scratch = Path::new("/tmp/weir-extract");
    fs::create_dir_all(scratch).expect("a folder at the same place in each run");
    let mut differ = Vec::new();
    for stranger in &STRANGERS {
        let command = stranger.command(scratch);
        let first = document(&[], &command);
        assert_eq!(
            document(&[], &command),
            first,
            "{} is extracted twice to other bytes",
            stranger.name
        );
        let golden =
            place::repository().join(format!("tests/fixtures/extracted/{}.json", stranger.name));
        if std::env::var_os("WEIR_BLESS").is_some() {
            fs::create_dir_all(golden.parent().expect("a folder")).expect("a folder of goldens");
            fs::write(&golden, &first).expect("a golden is written");
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(first.as_str()) {
            differ.push(stranger.name);
        }
    }
    assert!(
        differ.is_empty(),
        "not as in tests/fixtures/extracted: {differ:?}; WEIR_BLESS=1 accepts what is there"
    );
}

/// The counts are apart from the goldens, so that no blessing hides a list that is missing.
#[test]
fn nothing_that_other_people_list_is_missing() {
    let counts: BTreeMap<&str, [usize; 4]> = BTreeMap::from([
        ("everything", [13, 7, 2, 4]),
        ("filesystem", [14, 0, 0, 0]),
        ("memory", [9, 1, 0, 0]),
        ("sequential-thinking", [1, 0, 0, 0]),
        ("github", [26, 0, 0, 0]),
        ("playwright", [25, 0, 0, 0]),
        ("time", [2, 0, 0, 0]),
        ("git", [12, 0, 0, 0]),
        ("fetch", [1, 0, 0, 1]),
        ("sqlite", [6, 1, 0, 1]),
    ]);
    for stranger in &STRANGERS {
        let golden =
            place::repository().join(format!("tests/fixtures/extracted/{}.json", stranger.name));
        let document: Value =
            serde_json::from_slice(&fs::read(golden).expect("a golden")).expect("a document");
        let items = document["items"].as_array().expect("items");
        let count = |kind: &str| items.iter().filter(|item| item["type"] == kind).count();
        let found = ["tool", "resource", "resource-template", "prompt"].map(count);
        assert_eq!(found, counts[stranger.name], "{}", stranger.name);
        for item in items {
            for side in ["input", "output"] {
                assert_eq!(
                    item["detail"][side]["error"],
                    Value::Null,
                    "{}: {item}",
                    stranger.name
                );
            }
        }
    }
}

#[test]
fn a_server_lists_more_to_a_client_that_may_be_asked() {
    let command = strangers::node(
        "@modelcontextprotocol/server-everything/dist/index.js",
        &["stdio"],
    );
    let tools = |options: &[&str]| names(&document(options, &command)).len();
    assert_eq!(
        tools(&["--as", "elicitation,sampling,roots"]),
        tools(&[]) + 4
    );
}

/// A server of other people behind a URL; killed when dropped.
struct Served {
    url: String,
    _running: Running,
}

impl Served {
    fn everything(transport: &str, path: &str) -> Self {
        let port = free_port();
        let words = strangers::node(
            "@modelcontextprotocol/server-everything/dist/index.js",
            &[transport],
        );
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("PORT", port.to_string());
        let running = Running::silent(&mut command, "server-everything");
        wait_for_port(port, "server-everything");
        Self {
            url: format!("http://127.0.0.1:{port}/{path}"),
            _running: running,
        }
    }
}

#[test]
fn every_transport_gives_the_same_document() {
    let command = strangers::node(
        "@modelcontextprotocol/server-everything/dist/index.js",
        &["stdio"],
    );
    let over_stdio = document(&[], &command);
    for (transport, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let served = Served::everything(transport, path);
        let (code, out, err) = run(weir(&["extract", &served.url]));
        assert_eq!(code, 0, "{transport}: {err}");
        assert_eq!(names(&out), names(&over_stdio), "{transport}");
        assert_eq!(items(&out), items(&over_stdio), "{transport}");
    }
}

fn items(document: &str) -> Value {
    serde_json::from_str::<Value>(document).expect("a document")["items"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_gateway_extracted_equals_its_own_lists() {
    let house = sample::house().config("[http]\npage_size = 1");
    let gateway = house.serve();
    let (code, over_http, err) = run(weir(&["extract", &gateway.url()]));
    assert_eq!(code, 0, "{err}");
    let legacy = run(weir(&["extract", "--era", "legacy", &gateway.url()])).1;
    assert_eq!(items(&legacy), items(&over_http), "both eras list the same");
    let over_stdio = document(&[], &house.stdio_command());
    assert_eq!(items(&over_stdio), items(&over_http));

    let (listed, pages) = Modern::new(gateway.url()).list().await;
    assert_eq!(pages, 3);
    let extracted = items(&over_http);
    assert_eq!(extracted.as_array().map(Vec::len), Some(listed.len()));
    for (item, tool) in extracted.as_array().expect("items").iter().zip(&listed) {
        assert_eq!(
            (&item["name"], &item["description"]),
            (&tool["name"], &tool["description"])
        );
        assert_eq!(
            item["detail"]["input"],
            json!({ "json": tool["inputSchema"] }),
            "byte for byte, and no error"
        );
        assert_eq!(
            item["detail"]["output"],
            json!({ "json": tool["outputSchema"] })
        );
    }
    let server: Value = serde_json::from_str(&over_http).expect("a document");
    assert_eq!(server["server"]["info"]["name"], "weir");
    assert!(
        server["server"]["capabilities"]["tools"].is_object(),
        "{server}"
    );
}

#[test]
fn a_server_that_behaves_badly_is_told_from_its_own_words_and_in_time() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["dead"],
            "ended with exit code 2.\nIts last words on stderr:\n    the key",
        ),
        (&["silent"], "it did not within 3 s"),
        (&["flood"], "it did not within 3 s"),
        (&["rubbish"], "more than 10000 messages that are not MCP"),
        (&["cursor-loop"], "a cursor a second time"),
        (&["endless"], "more than 1000 pages"),
        (&["many"], "more than 10000 items"),
        (&["huge"], "more than 16777216 bytes"),
        (&["liar"], "has no list `tools`"),
        (&["slow", "30"], "it did not within 3 s"),
        (&["wrong-ids", "only"], "it did not within 3 s"),
    ];
    for (words, expected) in cases {
        let started = Instant::now();
        // A machine that stops also delays servers that answer by three seconds.
        let (seconds, most) = match expected.contains("within 3 s") {
            true => ("3", Duration::from_secs(20)),
            false => ("30", Duration::from_secs(60)),
        };
        let (code, out, err) = extract(&["--timeout", seconds], &strangers::hostile(words));
        assert_eq!((code, out.as_str()), (1, ""), "{words:?}: {err}");
        assert!(
            err.contains(expected),
            "{words:?} does not say {expected:?}: {err}"
        );
        for part in ["Expected ", "\nCause: "] {
            assert!(err.contains(part), "{words:?} misses {part:?}: {err}");
        }
        assert!(
            started.elapsed() < most,
            "{words:?} took {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn a_server_with_odd_manners_is_extracted_all_the_same() {
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&["good"], &["good"], ""),
        (&["legacy"], &["good"], ""),
        (&["mute"], &["good"], ""),
        (&["frail"], &["good"], ""),
        (&["asks"], &["good"], ""),
        (
            &["banner"],
            &["good"],
            "were not MCP messages and were skipped",
        ),
        (
            &["wrong-ids"],
            &["good"],
            "answers were for requests that were not sent",
        ),
        (
            &["pager"],
            &[
                "page_0_0", "page_0_1", "page_1_0", "page_1_1", "page_2_0", "page_2_1",
            ],
            "",
        ),
        (&["changes"], &["early", "late"], ""),
        (
            &["restless"],
            &["good"],
            "announces a change whenever its lists are read",
        ),
        (&["all"], &["good", "r", "p"], ""),
        (
            &["half"],
            &["good"],
            "answers `prompts/list` with error -32603: connect ECONNREFUSED",
        ),
        (
            &["liar-lists"],
            &[],
            "advertises tools and does not know `tools/list`",
        ),
        (&["bad-schema"], &["bad", "good"], ""),
    ];
    for (words, expected, note) in cases {
        let (code, out, err) = extract(&["--timeout", "30"], &strangers::hostile(words));
        assert_eq!(code, 0, "{words:?}: {err}");
        assert_eq!(names(&out), *expected, "{words:?}");
        assert!(
            err.contains(note) && (!note.is_empty() || err.is_empty()),
            "{words:?}: {err}"
        );
    }
}

#[test]
fn a_secret_that_a_child_is_given_is_in_no_error() {
    let (code, _, err) = extract(
        &["--env", "SECRET_KEY=hunter2hunter2"],
        &strangers::hostile(&["dead"]),
    );
    assert_eq!(code, 1);
    assert!(err.contains("the key *** is not accepted"), "{err}");
}

/// Neither the end of its stdin nor TERM ends this server or its child.
#[test]
fn nothing_is_left_of_a_server_however_we_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    for way in ["ended", "killed"] {
        let file = folder.join(way);
        let mut command = weir(&["extract", "--"]);
        command.args(strangers::hostile(&[
            "stubborn",
            &file.display().to_string(),
        ]));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("weir starts");
        let started = Instant::now();
        let ids = loop {
            match fs::read_to_string(&file) {
                Ok(ids) if ids.contains(' ') => break ids,
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "the server does not start"
            );
        };
        if way == "killed" {
            child.kill().expect("kill -9");
        }
        let _ = child.wait();
        let ended = Instant::now();
        while ids
            .split(' ')
            .any(|id| Path::new("/proc").join(id).exists())
        {
            assert!(
                ended.elapsed() < Duration::from_secs(60),
                "{way}: {ids} are left"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn lists_are_composed_without_a_connection() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let lists = folder.join("lists.json");
    fs::write(
        &lists,
        json!({ "tools": [{ "name": "t", "inputSchema": { "type": 1 }, "outputSchema": null }, 7] })
            .to_string(),
    )
    .expect("a file");
    let (code, out, err) = run(weir(&["extract", "--lists", &lists.display().to_string()]));
    assert_eq!((code, names(&out)), (0, vec!["t".to_owned()]));
    assert!(
        items(&out)[0]["detail"]["input"]["error"].is_string(),
        "{out}"
    );
    let document: Value = serde_json::from_str(&out).expect("a document");
    assert_eq!(document["server"], json!({}), "nothing is known of it");
    assert_eq!(items(&out)[0]["detail"].get("output"), None, "{out}");
    assert!(err.contains("/tools/1: the item is left out"), "{err}");
    fs::write(&lists, "[]").expect("a file");
    let (code, _, err) = run(weir(&["extract", "--lists", &lists.display().to_string()]));
    assert!(code == 1 && err.contains("hint: give an object"), "{err}");
}

/// A schema that takes exponentially many steps is refused by name, whether a server or a file has it, and costs the others
/// nothing.
#[test]
fn a_schema_that_explodes_is_refused_in_its_document() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lists = folder.path().join("lists.json");
    let explodes = costly::chain();
    let tools = json!({ "tools": [
        { "name": "input", "inputSchema": explodes },
        { "name": "output", "inputSchema": {}, "outputSchema": explodes },
        { "name": "good", "inputSchema": {} },
    ] });
    fs::write(&lists, tools.to_string()).expect("a file");
    let lists = lists.display().to_string();
    let started = Instant::now();
    for (code, out, err) in [
        run(weir(&["extract", "--lists", &lists])),
        extract(&[], &strangers::hostile(&["lists", &lists])),
    ] {
        assert_eq!((code, names(&out).len()), (0, 3), "{err}");
        let items = items(&out);
        for (at, side) in [(0_usize, "input"), (1, "output")] {
            let error = items[at]["detail"][side]["error"].as_str();
            let error = error.unwrap_or_default();
            assert!(error.contains("at most 200000 are accepted"), "{out}");
        }
        assert_eq!(items[2]["detail"]["input"]["error"], Value::Null, "{out}");
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(60), "it took {took:?}");
}

/// Lists that are already there need no connection: the lists that another client got from a server, in their order, yield
/// the document that `extract` prints.
#[tokio::test(flavor = "multi_thread")]
async fn lists_that_another_client_took_compose_to_what_is_extracted() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    for stranger in &STRANGERS {
        let server = stranger.command(scratch.path());
        let lists = stdio::Stdio::server(&server, &[]).await.lists().await;
        let file = scratch.path().join("lists.json");
        fs::write(&file, lists.to_string()).expect("a file");
        let (code, composed, err) = run(weir(&["extract", "--lists", &file.display().to_string()]));
        assert_eq!((code, err.as_str()), (0, ""), "{}", stranger.name);
        assert_eq!(
            composed,
            document(&["--era", "legacy"], &server),
            "{}",
            stranger.name
        );
        // A result as the protocol has it, with its list inside, is taken as well.
        let mut results = lists.clone();
        for list in ["tools", "resources", "resourceTemplates", "prompts"] {
            if let Some(items) = lists.get(list) {
                results[list] = json!({ list: items });
            }
        }
        fs::write(&file, results.to_string()).expect("a file");
        assert_eq!(
            run(weir(&["extract", "--lists", &file.display().to_string()])).1,
            composed,
            "{}",
            stranger.name
        );
    }
}

#[test]
fn what_is_asked_for_wrongly_is_said_with_its_cause_and_steps() {
    let cases: &[(&[&str], &str)] = &[
        (&["extract", "nothing"], "weir extract -- nothing"),
        (
            &["extract", "http://127.0.0.1:1/mcp"],
            "nothing answers there",
        ),
        (
            &["extract", "http://user:hunter2@127.0.0.1/"],
            "--header 'Authorization: …'",
        ),
        (
            &["extract", "--", "no-such-program-anywhere"],
            "install `no-such-program-anywhere`",
        ),
        (
            &["extract", "time", "--from", "/no/such/file.json"],
            "name a client (claude-code, claude-desktop",
        ),
        (
            &["extract", "--env", "NO_SUCH_VARIABLE", "--", "true"],
            "set it, or write",
        ),
        (&["extract", "--", "true"], "`true` ended with exit code 0"),
    ];
    for (words, expected) in cases {
        let (code, _, err) = run(weir(words));
        assert_eq!(code, 1, "{words:?}");
        assert!(
            err.contains(expected) && err.contains("\nCause: ") && err.contains("\nSteps:"),
            "{words:?}: {err}"
        );
        assert!(!err.contains("hunter2"), "{err}");
    }
}

#[test]
fn a_certificate_that_is_not_accepted_is_named_as_that() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.db");
    let database = rusqlite::Connection::open(&file).expect("a database");
    database
        .execute_batch("CREATE TABLE a (b)")
        .expect("a table");
    let certificate = Certificate::of("127.0.0.1");
    let server = Datasette::start(&file, Some(&certificate));
    let (code, _, err) = run(weir(&["extract", &format!("{}/mcp", server.base)]));
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("it shows a certificate that is not accepted") && err.contains("\nSteps:"),
        "{err}"
    );
}

#[test]
fn servers_are_found_in_the_configurations_of_clients() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let home = home.path();
    let words = strangers::hostile(&["good"]);
    let entry = json!({ "command": words[0], "args": words[1..] });
    let write = |name: &str, text: String| {
        let file = home.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a configuration");
    };
    write(
        ".cursor/mcp.json",
        json!({ "mcpServers": { "bad": entry } }).to_string(),
    );
    write(
        ".config/zed/settings.json",
        format!("// mine\n{{ \"context_servers\": {{ \"bad\": {entry}, }} }}"),
    );
    write(
        ".codex/config.toml",
        format!(
            "[mcp_servers.bad]\ncommand = {:?}\nargs = {:?}\n",
            words[0],
            &words[1..]
        ),
    );
    for client in ["cursor", "zed", "codex"] {
        let mut command = weir(&["extract", "bad", "--from", client]);
        command
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CODEX_HOME")
            .current_dir(home);
        let (code, out, err) = run(command);
        assert_eq!(
            (code, names_or_none(&out)),
            (0, vec!["good".to_owned()]),
            "{client}: {err}"
        );
    }
    let mut command = weir(&["extract", "worse", "--from", "cursor"]);
    command.env("HOME", home).current_dir("/");
    let (code, _, err) = run(command);
    assert!(code == 1 && err.contains("it names bad"), "{err}");
}

fn names_or_none(document: &str) -> Vec<String> {
    if document.is_empty() {
        Vec::new()
    } else {
        names(document)
    }
}

#[test]
fn a_client_is_connected_and_taken_back() {
    let house = sample::house();
    let config = house.stdio_command()[3].clone();
    let home = tempfile::tempdir().expect("a temporary folder");
    let home = home.path();
    let connect = |words: &[&str]| {
        let mut command = weir(&[&["connect"], words].concat());
        if !words.contains(&"--undo") && !words.contains(&"--url") {
            command.args(["--config", &config]);
        }
        command
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CODEX_HOME");
        run(command)
    };
    for client in [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "cline",
        "gemini",
        "windsurf",
        "zed",
    ] {
        let (code, out, err) = connect(&[client]);
        assert_eq!(code, 0, "{client}: {err}");
        let file = out
            .split(" names ")
            .next()
            .expect("the file is named")
            .to_owned();
        // A client starts what was written.
        let mut extract = weir(&["extract", "weir", "--from", client]);
        extract
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CODEX_HOME")
            .current_dir(home);
        let (code, document, err) = run(extract);
        assert_eq!(
            (code, names_or_none(&document).len()),
            (0, 3),
            "{client}: {err}"
        );
        // Where there was no file before, none is left.
        let (code, out, _) = connect(&[client, "--undo"]);
        assert!(
            code == 0 && out.contains("is removed") && !Path::new(&file).exists(),
            "{client}: {out}"
        );
        assert!(
            connect(&[client, "--undo"]).1.contains("does not name"),
            "{client}"
        );
    }
    let settings = home.join(".gemini/settings.json");
    let mine = "{\n  // my own\n  \"theme\": \"dark\"\n}\n";
    fs::write(&settings, mine).expect("settings");
    let (code, out, err) = connect(&[
        "gemini",
        "--url",
        "http://127.0.0.1:8484/mcp",
        "--header",
        "Authorization: Bearer k",
    ]);
    assert_eq!(code, 0, "{err}");
    let backup = out.split(" is what it was").next().expect("it is named");
    assert!(
        Path::new(backup).starts_with(home.join(".local/state")),
        "{out}"
    );
    let written = fs::read_to_string(&settings).expect("settings");
    assert!(
        written.contains("// my own")
            && written.contains("\"httpUrl\": \"http://127.0.0.1:8484/mcp\""),
        "{written}"
    );
    assert_eq!(fs::read_to_string(backup).expect("a backup"), mine);
    assert_eq!(connect(&["gemini", "--undo"]).0, 0);
    assert_eq!(
        fs::read_to_string(&settings).expect("settings"),
        mine,
        "byte for byte"
    );
    let (code, _, err) = connect(&["claude-desktop", "--url", "http://127.0.0.1:8484/mcp"]);
    assert!(code == 1 && err.contains("Connectors"), "{err}");
    for url in ["not a url", "localhost:8494", "ftp://x"] {
        let (code, _, err) = connect(&["gemini", "--url", url]);
        assert!(
            code == 1 && err.contains(url) && err.contains("http://127.0.0.1:8484/mcp"),
            "{url}: {err}"
        );
    }
    assert_eq!(
        fs::read_to_string(&settings).expect("settings"),
        mine,
        "nothing was written"
    );
    let gateway = house.serve();
    let root = gateway.url().replace("/mcp", "");
    for (url, note) in [
        (root.as_str(), "(404)"),
        ("http://127.0.0.1:1/mcp", "does not answer now"),
    ] {
        let (code, out, err) = connect(&["gemini", "--print", "--url", url]);
        assert!(
            code == 0 && out.contains(url) && err.contains(note),
            "{url}: {err}"
        );
    }
}

/// The entry names a variable, in each client's own words: read back, it leads to the view with the key, which is in no file.
#[test]
fn a_client_is_connected_to_a_view_and_finds_its_key_in_the_environment() {
    let house = sample::house().config("[views.reading]\nread_only = true\n[views.more]\n");
    let gateway = house.serve();
    let (config, url) = (house.stdio_command()[3].clone(), gateway.url());
    let home = tempfile::tempdir().expect("a temporary folder");
    let home = home.path();
    let secret = house.key(&["--agent", "ann"]);
    let at_home = |words: &[&str], key: &str| {
        let mut command = weir(words);
        command
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CODEX_HOME")
            .env("ANNS_KEY", key);
        command.current_dir(home);
        run(command)
    };
    let running = ["--url", url.as_str()];
    let started = ["--config", config.as_str()];
    let view = ["--view", "reading", "--key-env", "ANNS_KEY"];
    let reading = ["list_airports", "lookup_airport"];
    let file_of = |out: &str| {
        let line = out.lines().last().expect("a line");
        let file = line
            .split(" names ")
            .next()
            .expect("a file")
            .trim_end_matches(" already");
        fs::read_to_string(file).expect("a configuration")
    };
    for client in [
        "claude-code",
        "cursor",
        "vscode",
        "codex",
        "gemini",
        "windsurf",
    ] {
        for place in [running, started] {
            if client == "codex" && place == started {
                continue;
            }
            let words = [&["connect", client][..], &place, &view].concat();
            let (code, out, err) = at_home(&words, &secret);
            assert_eq!((code, err.as_str()), (0, ""), "{client}");
            assert!(!file_of(&out).contains(&secret), "{client}");
            let (code, document, err) = at_home(&["extract", "weir", "--from", client], &secret);
            let mut found = names_or_none(&document);
            found.sort_unstable();
            assert_eq!(
                (code, found),
                (0, reading.map(str::to_owned).to_vec()),
                "{client}: {err}"
            );
            let (code, _, err) = at_home(&["extract", "weir", "--from", client], "weir_no_key");
            assert_eq!(code, 1, "{client}: {err}");
        }
    }
    // Codex passes only named variables on to a server.
    let (code, _, err) = at_home(
        &[&["connect", "codex"][..], &started, &view].concat(),
        &secret,
    );
    assert!(code == 1 && err.contains("--key-env WEIR_KEY"), "{err}");
    let (code, out, _) = at_home(
        &[&["connect", "codex", "--key-env", "WEIR_KEY"][..], &started].concat(),
        &secret,
    );
    assert!(
        code == 0 && file_of(&out).contains("env_vars = [\"WEIR_KEY\"]"),
        "{out}"
    );

    for client in ["zed", "cline", "claude-desktop"] {
        let (code, _, err) = at_home(
            &[&["connect", client][..], &started, &view].concat(),
            &secret,
        );
        assert!(
            code == 1 && err.contains("takes the values of its configuration literally"),
            "{client}: {err}"
        );
    }
    // A command without a key reports what is missing, but only if a key is needed.
    let cases = [
        ("cursor", running, "--key-env WEIR_KEY"),
        ("cursor", started, "--key-env WEIR_KEY"),
        ("zed", running, "--header 'Authorization: Bearer KEY'"),
        (
            "claude-desktop",
            started,
            "\"env\": {\"WEIR_KEY\": \"KEY\"}",
        ),
    ];
    for (client, place, step) in cases {
        let (code, _, err) = at_home(&[&["connect", client][..], &place].concat(), &secret);
        assert!(
            code == 0 && err.contains("asks for a key") && err.contains(step),
            "{client}: {err}"
        );
    }
    let header = ["--header", "Authorization: Bearer k"];
    assert_eq!(
        at_home(
            &[&["connect", "zed"][..], &running, &header].concat(),
            &secret
        )
        .2,
        ""
    );
    // The entry keeps its key, which is no longer reported as missing.
    assert_eq!(
        at_home(
            &[&["connect", "zed", "--view", "more"][..], &running].concat(),
            &secret
        )
        .2,
        ""
    );
    let (code, _, err) = at_home(
        &[
            &["connect", "cursor", "--key-env", "NOT_SET_HERE"][..],
            &running,
        ]
        .concat(),
        &secret,
    );
    assert!(
        code == 0 && err.contains("`NOT_SET_HERE` is not set here"),
        "{err}"
    );
    for (words, expected) in [
        (
            &["--view", "readign"][..],
            "there is no view `readign`; there are more, reading",
        ),
        (&["--view", "A b", "--url", &url], "no view is called `A b`"),
        (
            &["--view", "reading", "--url", "http://127.0.0.1:1/other"],
            "does not end in /mcp",
        ),
        (
            &["--key-env", &secret],
            "the key itself does not belong here",
        ),
    ] {
        let place: &[&str] = if words.contains(&"--url") {
            &[]
        } else {
            &started
        };
        let (code, _, err) = at_home(
            &[&["connect", "cursor"][..], place, words].concat(),
            &secret,
        );
        assert!(code != 0 && err.contains(expected), "{words:?}: {err}");
    }
}

/// A server with one tool that shows the number as it was received.
const SHOWS_A_NUMBER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  begin="{\"jsonrpc\":\"2.0\",\"id\":$id"
  case $line in
    *server/discover*) echo "$begin,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
    *initialize\"*) echo "$begin,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *tools/call*)
      n=$(printf '%s' "$line" | sed -n 's/.*"n":\([0-9]*\).*/\1/p')
      echo "$begin,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"it is $n\"}]}}" ;;
  esac
done"#;

/// A bound that the server's schema does not have was invented for the call without a gateway.
#[test]
fn a_call_of_a_document_takes_integers_of_64_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let lists = folder.path().join("lists.json");
    let tool = json!({ "name": "show", "inputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    fs::write(&lists, json!({ "tools": [tool] }).to_string()).expect("written");
    let (code, document, err) = run(weir(&["extract", "--lists", &lists.display().to_string()]));
    assert_eq!(code, 0, "{err}");
    let file = folder.path().join("show.json");
    fs::write(&file, document).expect("written");
    let file = file.display().to_string();
    let number = "1234567890123456789";
    let words = [
        "call",
        "--from",
        &file,
        "show",
        "--n",
        number,
        "--",
        "sh",
        "-c",
        SHOWS_A_NUMBER,
    ];
    let (code, out, err) = run(weir(&words));
    assert!(
        code == 0 && out.contains(&format!("it is {number}")),
        "{out} {err}"
    );
}

/// The document alone defines the flags; the server's address has to be given, since a document is passed around.
#[tokio::test]
async fn a_tool_of_a_document_is_called_with_its_flags() {
    let golden = place::repository().join("tests/fixtures/extracted/time.json");
    let golden = golden.to_str().expect("a path");
    let call = |words: &[&str], server: &[String]| {
        let mut command = weir(&["call", "--from", golden]);
        command.args(words).args(server);
        run(command)
    };
    let (code, help, _) = call(&["get_current_time", "--help"], &[]);
    assert!(code == 0 && help.contains("--timezone <STRING>"), "{help}");
    let (code, _, err) = call(&["get_current_time", "--timezone", "Europe/Oslo"], &[]);
    assert!(
        code == 1 && err.contains("-- COMMAND") && err.contains("--url"),
        "{err}"
    );
    let (code, _, err) = call(&["get_time"], &[]);
    assert!(
        code == 1 && err.contains("get_current_time, convert_time"),
        "{err}"
    );

    let stranger = STRANGERS
        .iter()
        .find(|stranger| stranger.name == "time")
        .expect("it is one of them");
    let server = [vec!["--".to_owned()], stranger.command(Path::new("/tmp"))].concat();
    let (code, out, err) = call(&["get_current_time", "--timezone", "Europe/Oslo"], &server);
    assert!(code == 0 && out.contains("Europe/Oslo"), "{out} {err}");
    let (code, out, err) = call(&["get_current_time", "--timezone", "Nowhere/Land"], &server);
    assert!(code == 1 && err.contains("Nowhere"), "{out} {err}");

    let house = sample::house();
    let gateway = house.serve();
    let (code, document, err) = run({
        let mut command = weir(&["extract"]);
        command.arg(gateway.url());
        command
    });
    assert_eq!(code, 0, "{err}");
    house.write("airports.json", document);
    let file = house.path().join("airports.json");
    let words = [
        "call",
        "--from",
        file.to_str().expect("a path"),
        "--url",
        &gateway.url(),
        "lookup_airport",
        "--iata",
        "OSL",
    ];
    let (code, out, err) = run(weir(&words));
    assert!(
        code == 0 && out.contains("Oslo Gardermoen Airport"),
        "{out} {err}"
    );
}
