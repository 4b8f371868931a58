//! `weir upstream add`: from a client's configuration, by a URL, and asked on a terminal.

use std::{
    fs,
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::json;
use weir_tests::{
    Gateway, House, Modern, foreign, place,
    strangers::hostile,
    upstream::{Running, free_port, wait_for_port},
};

use super::{names, text};

/// What nobody who is asked agreed to yet.
const SHOWN: [&str; 5] = [
    "server      {\"name\": \"hostile\"",
    "  tool bad_count (only reads)\n      The tool count.",
    "lint        warning bad_count: the description has 3 words",
    "        hint: ",
    "fingerprint ",
];

fn serve(house: &House) -> Gateway {
    Gateway::start(house.weir_as_it_is(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]))
}

fn configuration(house: &House) -> String {
    fs::read_to_string(house.path().join("weir.toml")).expect("a configuration")
}

/// Returns `weir upstream add` as this house's, with the words that follow.
fn add(house: &House, words: &[&str]) -> Command {
    house.weir_as_it_is(&[&["upstream", "add"], words].concat())
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("weir prints text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn run(mut command: Command) -> (i32, String, String) {
    ended(command.stdin(Stdio::null()).output().expect("weir starts"))
}

/// Runs the command on a terminal, where `typed` is the answer. Returns its exit code and what stood on the terminal.
fn on_a_terminal(command: &Command, typed: &str) -> (i32, String) {
    let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut terminal = foreign::python("python-current");
    terminal.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    terminal.current_dir(command.get_current_dir().expect("a house's command has a folder"));
    let mut child = terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the terminal opens");
    let mut keyboard = child.stdin.take().expect("stdin is piped");
    keyboard.write_all(typed.as_bytes()).expect("it is typed");
    let (code, out, err) = ended(child.wait_with_output().expect("it ends"));
    (code, format!("{out}{err}").replace("\r\n", "\n"))
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
    assert!(!configuration(&house).contains("upstreams"), "nothing is written before someone agrees");
    let (code, out, err) = run(from(&["--yes"]));
    assert!(code == 0 && out.contains("as version 1.0.0"), "{out}{err}");
    // A value in clear was the client's; that it is one now here too is said.
    assert!(err.contains("`TRACKER_KEY` (env) is written into the configuration in clear"), "{err}");
    let written = configuration(&house);
    assert!(written.contains("[upstreams.bad]") && written.contains("hostile.py"), "{written}");
    let gateway = serve(&house);
    let client = Modern::new(gateway.url());
    assert!(names(&client).await.contains("bad_environment"), "what was agreed to is served at once");
    let environment = client.call("bad_environment", json!({})).await;
    assert!(text(&environment).contains("\"TRACKER_KEY\": \"hunter2\""), "{environment}");
    assert!(text(&environment).contains("\"REGION\": \"eu\""), "{environment}");

    let (code, _, err) = run(add(&house, &["more", "--from", "no-such-client"]));
    assert!(code == 1 && err.contains("name a client (claude-code"), "{err}");
}

#[tokio::test]
async fn a_server_is_added_by_its_url_and_its_secret_stays_a_reference() {
    let port = free_port();
    let mut server = foreign::python("python-servers");
    server.arg(place::repository().join("tests/upstreams/over_http.py")).arg(port.to_string());
    let _server = Running::silent(&mut server, "the server over HTTP");
    wait_for_port(port, "the server over HTTP");
    let house = House::new().file("key", "upstream-key\n");
    let url = format!("http://127.0.0.1:{port}/mcp");
    let header = "Authorization: Bearer ${file:key}";
    let (code, out, err) = run(add(&house, &["web", &url]));
    assert!(code == 1 && err.contains("401"), "it asks for a key: {out}{err}");
    let (code, out, err) = run(add(&house, &["web", &url, "--header", header]));
    assert!(code == 1 && err.contains("--yes"), "{out}{err}");
    for part in
        ["server      {\"name\": \"over-http\"", "  tool web_count (does not say", "lint        ", "fingerprint "]
    {
        assert!(out.contains(part), "{part:?} is not in {out}");
    }
    assert!(!configuration(&house).contains("upstreams"), "nothing is written before someone agrees");
    let (code, out, err) = run(add(&house, &["web", &url, "--header", header, "--yes"]));
    assert!(code == 0 && out.contains("as version 1.0.0"), "{out}{err}");
    let written = configuration(&house);
    assert!(written.contains("${file:key}") && !written.contains("upstream-key"), "{written}");
    let gateway = serve(&house);
    let client = Modern::new(gateway.url());
    assert!(names(&client).await.contains("web_headers"));
    assert!(text(&client.call("web_headers", json!({})).await).contains("Bearer upstream-key"));
}

#[tokio::test]
async fn whoever_adds_a_server_on_a_terminal_is_asked_and_only_a_yes_agrees() {
    let house = House::new();
    cursor(&house);
    let command = || {
        let mut command = add(&house, &["bad", "--from", ".cursor/mcp.json", "--named", "tracker"]);
        command.stdin(Stdio::null());
        command
    };
    for (typed, agrees) in [("n\n", false), ("\n", false), ("yess\n", false), ("y\n", true)] {
        let (code, shown) = on_a_terminal(&command(), typed);
        for part in SHOWN {
            assert!(shown.contains(part), "{part:?} is not in {shown}");
        }
        assert!(shown.contains("Serve `bad` with these tools, as they are now? [y/N]"), "{shown}");
        assert_eq!(shown.contains("nothing was written"), !agrees, "{typed:?}: {shown}");
        assert_eq!(configuration(&house).contains("[upstreams.bad]"), agrees, "{typed:?}: {shown}");
        assert_eq!(code, i32::from(!agrees), "{shown}");
    }
    let gateway = serve(&house);
    assert!(names(&Modern::new(gateway.url())).await.contains("bad_count"));
}
