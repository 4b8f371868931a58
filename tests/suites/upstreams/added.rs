//! `weir upstream add`: from a client's configuration, by a URL, and asked on a terminal.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::json;
use weir_tests::{
    Gateway, House, Modern, SERVE, foreign, place, read_output,
    strangers::hostile,
    upstream::{Running, free_port, wait_for_port},
};

use super::{names, text};

/// Parts of an offer without consent yet.
const SHOWN: [&str; 5] = [
    "server      {\"name\": \"hostile\"",
    "  tool bad_count (only reads)\n      The tool count.",
    "lint        warning bad_count: the description has 3 words",
    "        hint: ",
    "fingerprint ",
];

fn configuration(house: &House) -> String {
    fs::read_to_string(house.path().join("weir.toml")).expect("a configuration")
}

/// Returns `weir upstream add` as this house's, with the words that follow.
fn add(house: &House, words: &[&str]) -> Command {
    house.weir_as_it_is(&[&["upstream", "add"], words].concat())
}

fn run(mut command: Command) -> (i32, String, String) {
    read_output(command.stdin(Stdio::null()).output().expect("weir starts"))
}

/// Runs the command on a terminal, where `typed` is the answer. `meanwhile` happens once the question is there. Returns its
/// exit code and the text on the terminal.
pub(super) fn on_a_terminal(
    command: &Command,
    typed: &str,
    meanwhile: impl FnOnce(),
) -> (i32, String) {
    let script =
        "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut terminal = foreign::python("python-current");
    terminal
        .args(["-c", script])
        .arg(command.get_program())
        .args(command.get_args());
    terminal.current_dir(
        command
            .get_current_dir()
            .expect("a house's command has a folder"),
    );
    let mut child = terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the terminal opens");
    let mut screen = child.stdout.take().expect("stdout is piped");
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(b"[y/N] ") && screen.read(&mut byte).expect("the terminal is read") > 0 {
        shown.extend(byte);
    }
    meanwhile();
    let mut keyboard = child.stdin.take().expect("stdin is piped");
    keyboard.write_all(typed.as_bytes()).expect("it is typed");
    screen
        .read_to_end(&mut shown)
        .expect("the terminal is read");
    let (code, _, err) = read_output(child.wait_with_output().expect("it ends"));
    let shown = String::from_utf8(shown).expect("weir prints text");
    (code, format!("{shown}{err}").replace("\r\n", "\n"))
}

/// Files that a server writes next to its own program are kept out of the folder of the gateway's configuration, unless
/// its command needs that.
#[test]
fn a_command_has_a_folder_of_its_own_unless_it_names_a_file_beside_the_configuration() {
    let house = House::new().file(
        "server.py",
        fs::read(place::repository().join("tests/upstreams/hostile.py")).expect("a script"),
    );
    let python = hostile(&["good"])[0].clone();
    let script = house.path().join("server.py").display().to_string();
    for (name, words, folder) in [
        (
            "whole",
            [&*python, &*script, "good"],
            Some("folder = \"upstreams/whole\""),
        ),
        ("beside", [&*python, "server.py", "good"], None),
    ] {
        let (code, out, err) = run(add(&house, &[&[name, "--yes", "--"], &words[..]].concat()));
        assert_eq!(code, 0, "{name}: {out}{err}");
        let written = configuration(&house);
        let entry = written
            .split("[upstreams.")
            .find(|entry| entry.starts_with(name));
        let entry = entry.unwrap_or_else(|| panic!("{name} in {written}"));
        match folder {
            Some(folder) => {
                assert!(entry.contains(folder), "{entry}");
                assert!(house.path().join("upstreams/whole").is_dir());
            }
            None => {
                assert!(!entry.contains("folder"), "{entry}");
                assert!(out.contains("its command names `server.py` there"), "{out}");
            }
        }
    }
}

/// Editors on Windows begin a file with a mark, and end its lines with two characters.
#[test]
fn the_mark_and_the_line_ends_of_a_configuration_stay() {
    let house = House::new();
    drop(house.weir(&[])); // it writes the file
    let before = format!("\u{feff}{}", configuration(&house).replace('\n', "\r\n"));
    house.write("weir.toml", &before);
    let words = hostile(&["good"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, out, err) = run(add(
        &house,
        &[&["good", "--yes", "--"], &words[..]].concat(),
    ));
    assert_eq!(code, 0, "{out}{err}");
    let with = configuration(&house);
    assert!(
        with.starts_with('\u{feff}') && with.contains("[upstreams.good]"),
        "{with:?}"
    );
    assert_eq!(
        with.matches('\n').count(),
        with.matches("\r\n").count(),
        "{with:?}"
    );
    let (code, out, err) = run(house.weir_as_it_is(&["upstream", "remove", "good"]));
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(configuration(&house), before);
}

/// Writes a configuration of Cursor that names the server as `tracker`.
fn cursor(house: &House) {
    let words = hostile(&["tools"]);
    let entry = json!({"command": words[0], "args": words[1..], "env": {"TRACKER_KEY": "hunter2", "REGION": "${REGION_NAME:-eu}"}});
    let config = json!({"mcpServers": {"tracker": entry, "other": {"command": "no-such-program"}}, "theirs": 1});
    house.write(".cursor/mcp.json", config.to_string());
}

#[tokio::test]
async fn a_server_is_added_from_the_configuration_of_a_client() {
    let house = House::new();
    cursor(&house);
    let from = |more: &[&str]| {
        let words = [&["bad", "--from", "cursor", "--named", "tracker"], more].concat();
        let mut command = add(&house, &words);
        command.env("HOME", house.path());
        command
    };
    let (code, out, err) = run(from(&[]));
    assert!(code == 1 && err.contains("--yes"), "{out}{err}");
    for part in SHOWN {
        assert!(out.contains(part), "{part:?} is not in {out}");
    }
    assert!(
        !configuration(&house).contains("upstreams"),
        "nothing is written before someone agrees"
    );
    let (code, out, err) = run(from(&["--yes"]));
    assert!(code == 0 && out.contains("as version 1.0.0"), "{out}{err}");
    // A value in clear was the client's; that it is one now here too is reported.
    assert!(
        err.contains("`TRACKER_KEY` (env) is written into the configuration in clear"),
        "{err}"
    );
    let written = configuration(&house);
    assert!(
        written.contains("[upstreams.bad]") && written.contains("hostile.py"),
        "{written}"
    );
    let gateway = house.serve_as_it_is();
    let client = Modern::new(gateway.url());
    assert!(
        names(&client).await.contains("bad_environment"),
        "what was agreed to is served at once"
    );
    let environment = client.call("bad_environment", json!({})).await;
    assert!(
        text(&environment).contains("\"TRACKER_KEY\": \"hunter2\""),
        "{environment}"
    );
    assert!(
        text(&environment).contains("\"REGION\": \"eu\""),
        "{environment}"
    );

    let (code, _, err) = run(add(&house, &["more", "--from", "no-such-client"]));
    assert!(
        code == 1 && err.contains("name a client (claude-code"),
        "{err}"
    );
}

#[tokio::test]
async fn a_server_is_added_by_its_url_and_its_secret_stays_a_reference() {
    let port = free_port();
    let mut server = foreign::python("python-servers");
    server
        .arg(place::repository().join("tests/upstreams/over_http.py"))
        .arg(port.to_string());
    let _server = Running::silent(&mut server, "the server over HTTP");
    wait_for_port(port, "the server over HTTP");
    let house = House::new().file("key", "upstream-key\n");
    let url = format!("http://127.0.0.1:{port}/mcp");
    let header = "Authorization: Bearer ${file:key}";
    let (code, out, err) = run(add(&house, &["web", &url]));
    assert!(
        code == 1 && err.contains("401"),
        "it asks for a key: {out}{err}"
    );
    let (code, out, err) = run(add(&house, &["web", &url, "--header", header]));
    assert!(code == 1 && err.contains("--yes"), "{out}{err}");
    for part in [
        "server      {\"name\": \"over-http\"",
        "  tool web_count (does not say",
        "lint        ",
        "fingerprint ",
    ] {
        assert!(out.contains(part), "{part:?} is not in {out}");
    }
    assert!(
        !configuration(&house).contains("upstreams"),
        "nothing is written before someone agrees"
    );
    let (code, out, err) = run(add(&house, &["web", &url, "--header", header, "--yes"]));
    assert!(code == 0 && out.contains("as version 1.0.0"), "{out}{err}");
    let written = configuration(&house);
    assert!(
        written.contains("${file:key}") && !written.contains("upstream-key"),
        "{written}"
    );
    let gateway = house.serve_as_it_is();
    let client = Modern::new(gateway.url());
    assert!(names(&client).await.contains("web_headers"));
    assert!(text(&client.call("web_headers", json!({})).await).contains("Bearer ***"));
}

#[tokio::test]
async fn whoever_adds_a_server_on_a_terminal_is_asked_and_only_a_yes_agrees() {
    let house = House::new();
    cursor(&house);
    let command = || {
        let mut command = add(
            &house,
            &["bad", "--from", ".cursor/mcp.json", "--named", "tracker"],
        );
        command.stdin(Stdio::null());
        command
    };
    for (typed, agrees) in [
        ("n\n", false),
        ("\n", false),
        ("yess\n", false),
        ("y\n", true),
    ] {
        let (code, shown) = on_a_terminal(&command(), typed, || {});
        for part in SHOWN {
            assert!(shown.contains(part), "{part:?} is not in {shown}");
        }
        assert!(
            shown.contains("Serve `bad` with these tools, as they are now? [y/N]"),
            "{shown}"
        );
        assert_eq!(
            shown.contains("nothing was written"),
            !agrees,
            "{typed:?}: {shown}"
        );
        assert_eq!(
            configuration(&house).contains("[upstreams.bad]"),
            agrees,
            "{typed:?}: {shown}"
        );
        assert_eq!(code, i32::from(!agrees), "{shown}");
    }
    let gateway = house.serve_as_it_is();
    assert!(
        names(&Modern::new(gateway.url()))
            .await
            .contains("bad_count")
    );
}

/// A client's file may name variables to keep secrets out of files: they do not get into ours either.
#[tokio::test]
async fn variables_that_a_client_names_stay_references() {
    let house = House::new();
    let words = hostile(&["tools"]);
    let environment =
        json!({"TRACKER_KEY": "${env:TRACKER_SECRET}", "HEADER": "Bearer ${TRACKER_SECRET}"});
    let tracker = json!({"command": words[0], "args": words[1..], "env": environment});
    let answer = json!({"command": words[0], "args": [words[1], "${TRACKER_SECRET}"]});
    let config = json!({"mcpServers": {"tracker": tracker, "answered": answer}});
    house.write(".cursor/mcp.json", config.to_string());
    let from = |named: &str| {
        let mut command = add(
            &house,
            &[
                "bad",
                "--from",
                ".cursor/mcp.json",
                "--named",
                named,
                "--yes",
            ],
        );
        command.env("TRACKER_SECRET", "hunter2");
        command
    };
    let (code, out, err) = run(from("answered"));
    assert!(
        code == 1 && err.contains("`TRACKER_SECRET`") && err.contains("--env TRACKER_SECRET"),
        "{out}{err}"
    );
    assert!(
        !format!("{out}{err}").contains("hunter2") && !configuration(&house).contains("upstreams"),
        "{out}{err}"
    );

    let (code, out, err) = run(from("tracker"));
    assert!(
        code == 0
            && err.contains("`TRACKER_KEY` (env) is written into the configuration as a reference"),
        "{out}{err}"
    );
    assert!(!err.contains("in clear"), "{err}");
    let written = configuration(&house);
    assert!(
        written.contains("${env:TRACKER_SECRET}") && !written.contains("hunter2"),
        "{written}"
    );
    let mut serve = house.weir_as_it_is(&SERVE);
    serve.env("TRACKER_SECRET", "hunter2");
    let gateway = Gateway::start(serve);
    let environment = Modern::new(gateway.url())
        .call("bad_environment", json!({}))
        .await;
    assert!(
        text(&environment).contains("\"TRACKER_KEY\": \"hunter2\""),
        "{environment}"
    );
    assert!(
        text(&environment).contains("\"HEADER\": \"Bearer hunter2\""),
        "{environment}"
    );
}

/// The file may hold a key. An existing file keeps its permissions.
#[test]
fn a_new_configuration_is_its_writers_alone() {
    let house = House::new();
    cursor(&house);
    let command = add(
        &house,
        &[
            "bad",
            "--from",
            ".cursor/mcp.json",
            "--named",
            "tracker",
            "--yes",
        ],
    );
    fs::remove_file(house.path().join("weir.toml")).expect("it was there");
    let (code, out, err) = run(command);
    assert_eq!(code, 0, "{out}{err}");
    let about = fs::metadata(house.path().join("weir.toml")).expect("a configuration");
    assert!(
        configuration(&house).contains("hunter2"),
        "the client has it in clear"
    );
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_written_while_someone_is_asked_stays() {
    let house = House::new();
    cursor(&house);
    let command = add(
        &house,
        &["bad", "--from", ".cursor/mcp.json", "--named", "tracker"],
    );
    let jira = "\n[upstreams.jira] # since\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let (code, shown) = on_a_terminal(&command, "y\n", || {
        house.write("weir.toml", configuration(&house) + jira);
        // What was reviewed is written, whatever the client's file holds by now.
        house.write(
            ".cursor/mcp.json",
            json!({"mcpServers": {"tracker": {"command": "no-such-program"}}}).to_string(),
        );
    });
    let written = configuration(&house);
    assert_eq!(code, 0, "{shown}");
    assert!(
        written.contains(jira) && written.contains("[upstreams.bad]"),
        "{written}"
    );
    assert!(
        written.contains("hostile.py") && !written.contains("no-such-program"),
        "{written}"
    );

    // Nor is an entry of the same name replaced.
    let command = add(
        &house,
        &["worse", "--from", ".cursor/mcp.json", "--named", "tracker"],
    );
    cursor(&house);
    let worse = "\n[upstreams.worse]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let (code, shown) = on_a_terminal(&command, "y\n", || {
        house.write("weir.toml", configuration(&house) + worse)
    });
    assert!(
        code == 1 && shown.contains("there is an upstream `worse` already"),
        "{shown}"
    );
    assert!(
        configuration(&house).ends_with(worse),
        "{}",
        configuration(&house)
    );
}
