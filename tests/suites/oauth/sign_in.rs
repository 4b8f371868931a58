//! Other people's clients find the issuer on their own, sign in there in each way in which a client may be
//! registered, and call.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_tests::{Gateway, House, foreign, place, upstream::free_port};

use super::{Issuer, house};

/// The metadata document by which the issuer knows a client.
const DOCUMENT: &str = "https://client.test/weir-tests.json";
const SECRET: &str = "machine-secret-of-the-tests";
/// How a person's client is registered at the issuer: by itself, by a document, or by hand.
const WAYS: [&str; 3] = ["registered", "document", "known"];

/// The machine of a person, whose browser signs in without user action.
struct Desktop {
    folder: TempDir,
}

impl Desktop {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let words = Self::browser().map(|word| format!("'{word}'"));
        let opener = folder.path().join("xdg-open");
        fs::write(
            &opener,
            format!("#!/bin/sh\nexec {} \"$1\"\n", words.join(" ")),
        )
        .expect("it can be written");
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("it is ours");
        // That of the tests is a script, which starts the program with another process id than its own; mcpc waits for that one.
        let mut real = foreign::node();
        let real = real.args(["-p", "process.execPath"]).output();
        let real = String::from_utf8(real.expect("node starts").stdout).expect("a path");
        symlink(real.trim(), folder.path().join("node")).expect("it can be written");
        Self { folder }
    }

    /// Returns the command that follows a sign-in to its end.
    fn browser() -> [String; 2] {
        let script = place::repository().join("tests/clients/browser.mjs");
        let node = PathBuf::from(foreign::node().get_program());
        [node, script].map(|path| path.into_os_string().into_string().expect("a text"))
    }

    /// Lets a program find the browser, and nothing of another home.
    fn prepare(&self, command: &mut Command) {
        let own = self.folder.path();
        let before = command.get_envs().find(|(name, _)| *name == "PATH");
        let before = before.and_then(|(_, path)| path).map_or_else(
            || std::env::var_os("PATH").unwrap_or_default(),
            |path| path.to_owned(),
        );
        let folders = std::env::split_paths(&before);
        let folders = std::iter::once(own.to_owned()).chain(folders);
        command
            .env("PATH", std::env::join_paths(folders).expect("folders"))
            .env("HOME", own)
            .env("BROWSER", own.join("xdg-open"))
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
    }

    /// Returns a place for what a program keeps.
    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Checks that the trail has a call by a client that the issuer knows in this way.
fn check_holder(house: &House, way: &str) {
    let trail = house.run(&["audit", "export", "--format", "jsonl"]).1;
    let is_of = |line: &&str| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let client = record["holder"]["client"].as_str().unwrap_or_default();
        let others = ["known", "program", "machine", DOCUMENT, ""];
        record["kind"] == "call"
            && match way {
                "registered" => !others.contains(&client),
                "document" => client == DOCUMENT,
                other => client == other,
            }
    };
    assert!(trail.lines().any(|line| is_of(&line)), "{way}: {trail}");
}

fn start() -> (Issuer, House, Gateway) {
    let issuer = Issuer::start("RS256");
    let house = house(&issuer);
    let gateway = house.serve();
    (issuer, house, gateway)
}

fn lookup() -> Value {
    json!({ "tool": "lookup_airport", "arguments": { "iata": "OSL" } })
}

/// The official clients in both languages, by each way, in one of the eras each.
#[test]
fn the_official_clients_sign_in_and_call() {
    let (issuer, house, gateway) = start();
    let eras = ["modern", "legacy", "modern", "legacy"];
    for (at, way) in WAYS.into_iter().chain(["machine"]).enumerate() {
        for (script, mode) in [
            (foreign::node_script("oauth2.mjs"), eras[at]),
            (
                foreign::python_script("python-current", "oauth2.py"),
                eras[3 - at],
            ),
        ] {
            let plan = json!({
                "way": way, "mode": mode, "url": gateway.contract_url("airports"), "issuer": issuer.url,
                "document": DOCUMENT, "secret": SECRET, "scope": "tools", "browser": Desktop::browser(),
                "calls": [lookup()],
            });
            let report = foreign::report(script, &plan);
            let call = &report["calls"][0];
            assert_eq!(
                call["structured"]["country"], "NO",
                "{way} {mode}: {report}"
            );
            if way == "document" {
                assert_eq!(report["client"], DOCUMENT, "{report}");
            }
        }
        let client = if way == "machine" { "program" } else { way };
        check_holder(&house, client);
    }
}

/// The official client completes the whole sign-in on its own in both eras, and asks for the scope of writes when a
/// call needs it.
#[test]
fn the_official_client_asks_for_more_when_a_call_needs_it() {
    let (_issuer, _house, gateway) = start();
    for (mode, iata) in [("modern", "BOO"), ("legacy", "TOS")] {
        let new = json!({ "iata": iata, "name": "Another", "country": "NO" });
        let create = json!({ "tool": "create_airport", "arguments": new });
        let plan = json!({
            "mode": mode, "url": gateway.contract_url("airports"), "calls": [lookup(), create],
        });
        let report = foreign::report(foreign::node_script("oauth2.mjs"), &plan);
        let calls = &report["calls"];
        assert_eq!(calls[0]["structured"]["country"], "NO", "{report}");
        assert_eq!(calls[1]["isError"], false, "{report}");
        let asked = report["asked"].as_array().expect("a list");
        assert_eq!(asked.len(), 2, "one sign-in, and one for more: {report}");
        let more = asked[1].as_str();
        assert!(more.is_some_and(|scope| scope.contains("tools:write")));
    }
}

#[test]
fn the_inspector_signs_in_and_calls() {
    let (_issuer, house, gateway) = start();
    for way in WAYS {
        let desktop = Desktop::new();
        let mut command = foreign::node();
        command
            .arg(foreign::node_module(".bin/mcp-inspector"))
            .args(["--cli", &gateway.contract_url("airports")])
            .args(["--transport", "http", "--method", "tools/call"])
            .args(["--tool-name", "lookup_airport", "--tool-arg", "iata=OSL"])
            .arg("--callback-url")
            .arg(format!("http://127.0.0.1:{}/oauth/callback", free_port()))
            .args(match way {
                "document" => &["--client-metadata-url", DOCUMENT][..],
                "known" => &["--client-id", "known"],
                _ => &[],
            })
            .env("MCP_AUTO_OPEN_ENABLED", "true")
            .env("MCP_INSPECTOR_SECRET_STORE", "memory");
        desktop.prepare(&mut command);
        let answer = printed(command);
        assert_eq!(
            answer["structuredContent"]["country"], "NO",
            "{way}: {answer}"
        );
        check_holder(&house, way);
    }
}

#[test]
fn mcp_remote_signs_in_for_a_client_that_cannot() {
    let (_issuer, house, gateway) = start();
    let proxy = foreign::node_module_in("node-frameworks", "mcp-remote/dist/proxy.js");
    let node = foreign::node();
    let url = gateway.contract_url("airports");
    let program = json!({ "client_id": "program", "client_secret": SECRET }).to_string();
    let credentials = [
        "--client-credentials",
        "--static-oauth-client-info",
        &*program,
    ];
    for way in WAYS.into_iter().chain(["program"]) {
        let desktop = Desktop::new();
        let port = free_port().to_string();
        let mut words = vec![node.get_program().to_str().expect("a path")];
        words.push(proxy.to_str().expect("a path"));
        words.extend([&*url, &*port, "--host", "127.0.0.1"]);
        words.extend(match way {
            "document" => &["--client-metadata-url", DOCUMENT][..],
            "known" => &["--static-oauth-client-info", "{\"client_id\":\"known\"}"],
            "program" => &credentials,
            _ => &[],
        });
        let mut client = foreign::node_script("typescript2.mjs");
        desktop.prepare(&mut client);
        client.env("MCP_REMOTE_CONFIG_DIR", desktop.place("mcp-remote"));
        let plan = json!({ "command": words, "mode": "legacy", "calls": [lookup()] });
        let report = foreign::report(client, &plan);
        let call = &report["calls"][0];
        assert_eq!(call["structured"]["country"], "NO", "{way}: {report}");
        check_holder(&house, way);
    }
}

/// A session of mcpc has its own process, which ends with this value.
struct McpcSession<'d> {
    desktop: &'d Desktop,
}

impl McpcSession<'_> {
    fn run(&self, words: &[&str]) -> Value {
        printed(self.command(words))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.desktop.place("node"));
        command
            .arg(foreign::node_module_in("identity", "@apify/mcpc/bin/mcpc"))
            .args(words)
            .arg("--json")
            .env("MCPC_HOME_DIR", self.desktop.place("mcpc"));
        self.desktop.prepare(&mut command);
        command
    }
}

impl Drop for McpcSession<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["@desk", "close"]).output(); // there may be none
    }
}

#[tokio::test]
async fn mcpc_signs_in_and_calls() {
    let (issuer, house, gateway) = start();
    let url = &*gateway.contract_url("airports");
    let bearer = issuer.token(url, "tools").await;
    let header = format!("Authorization: Bearer {bearer}");
    for way in WAYS.into_iter().chain(["machine"]) {
        let desktop = Desktop::new();
        let session = McpcSession { desktop: &desktop };
        let client = match way {
            "document" => &["--client-metadata-url", DOCUMENT][..],
            "known" => &["--client-id", "known"],
            _ => &[],
        };
        let more = match way {
            // It does not request a machine's token from an issuer, but accepts one.
            "machine" => &["--header", &*header][..],
            _ => {
                session.run(&[&["login", url], client].concat());
                &[]
            }
        };
        session.run(&[&["connect", url, "@desk"], more].concat());
        let answer = session.run(&["@desk", "tools-call", "lookup_airport", "iata:=OSL"]);
        assert_eq!(
            answer["structuredContent"]["country"], "NO",
            "{way}: {answer}"
        );
        check_holder(&house, way);
    }
}

/// Runs a program to its end, and reads the JSON that it prints.
fn printed(command: Command) -> Value {
    let output = foreign::run(command, Duration::from_secs(180));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let json = stdout.find('{').map_or("", |at| stdout[at..].trim());
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}:\n{stdout}\n{stderr}"))
}
