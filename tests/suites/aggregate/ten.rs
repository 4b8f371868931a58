//! The ten foreign servers, and a call of each that needs nothing outside this machine.

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_tests::{House, Stdio, strangers::STRANGERS, web::Web};

use crate::upstreams::entry;

/// The number of tools of each server at the version pinned here, without those that need a client which can be asked.
const COUNTS: [(&str, usize); 10] = [
    ("everything", 13),
    ("filesystem", 14),
    ("memory", 9),
    ("sequential-thinking", 1),
    ("github", 26),
    ("playwright", 25),
    ("time", 2),
    ("git", 12),
    ("fetch", 1),
    ("sqlite", 6),
];

/// The data of the servers: a folder that is a repository too, and a web service, which also plays the part of GitHub.
pub(super) struct Ten {
    scratch: TempDir,
    web: Web,
}

/// A call of one server, and a part of its answer.
pub(super) struct Case {
    pub server: &'static str,
    pub tool: &'static str,
    pub arguments: Value,
    pub says: &'static str,
    /// The server answers that it cannot.
    pub is_error: bool,
}

impl Case {
    /// Returns the name that the tool is published under.
    pub(super) fn published(&self) -> String {
        format!("{}_{}", self.server, self.tool)
    }
}

impl Ten {
    pub(super) async fn new() -> Self {
        let ten = Self {
            scratch: tempfile::tempdir().expect("a folder"),
            web: Web::start().await,
        };
        fs::write(ten.path("a.txt"), "a file").expect("written");
        let redirected = format!(
            "const plain = globalThis.fetch;\n\
             globalThis.fetch = (url, more) => plain('{}/items/' + new URL(url).pathname.split('/').pop(), more);\n",
            ten.web.base
        );
        fs::write(ten.path("github.mjs"), redirected).expect("written");
        let git = Command::new("git")
            .args(["init", "--quiet"])
            .arg(ten.scratch.path())
            .status();
        assert!(git.expect("git runs").success());
        ten
    }

    pub(super) fn servers() -> impl Iterator<Item = &'static str> {
        STRANGERS.iter().map(|stranger| stranger.name)
    }

    pub(super) fn count(server: &str) -> usize {
        COUNTS
            .iter()
            .find(|(name, _)| *name == server)
            .expect("one of the ten")
            .1
    }

    /// Puts all servers behind the gateway.
    pub(super) fn behind(&self, house: House) -> House {
        Self::servers().fold(house, |house, server| {
            let env: Vec<String> = self
                .env(server)
                .iter()
                .map(|(name, value)| format!("{name} = {value:?}"))
                .collect();
            let more = format!("first = \"publish\"\nenv = {{ {} }}", env.join(", "));
            house.config(&entry(server, &self.words(server), &more))
        })
    }

    /// Starts one server, with nothing in between.
    pub(super) async fn direct(&self, server: &str) -> Stdio {
        Stdio::server(&self.words(server), &self.env(server)).await
    }

    pub(super) fn calls(&self) -> Vec<Case> {
        let case = |server, tool, arguments, says| Case {
            server,
            tool,
            arguments,
            says,
            is_error: false,
        };
        let thought = json!({"thought": "t", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false});
        let noon =
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let issue = json!({"owner": "acme", "repo": "site", "issue_number": 7});
        vec![
            case(
                "everything",
                "echo",
                json!({"message": "hello"}),
                "Echo: hello",
            ),
            case(
                "everything",
                "get-structured-content",
                json!({"location": "New York"}),
                "Cloudy",
            ),
            case("everything", "get-tiny-image", json!({}), "image"),
            case(
                "filesystem",
                "read_text_file",
                json!({"path": self.path("a.txt")}),
                "a file",
            ),
            case("memory", "read_graph", json!({}), "\"entities\": []"),
            case(
                "sequential-thinking",
                "sequentialthinking",
                thought,
                "\"thoughtNumber\": 1",
            ),
            case("github", "get_issue", issue, "Item 7"),
            // There is no browser, and the server reports that.
            Case {
                is_error: true,
                ..case(
                    "playwright",
                    "browser_tabs",
                    json!({"action": "list"}),
                    "doesn't exist at",
                )
            },
            case("time", "convert_time", noon, "+9.0h"),
            case(
                "git",
                "git_status",
                json!({"repo_path": self.scratch.path()}),
                "a.txt",
            ),
            case(
                "fetch",
                "fetch",
                json!({"url": format!("{}/items/7", self.web.base)}),
                "Item 7",
            ),
            case(
                "sqlite",
                "read_query",
                json!({"query": "SELECT 1 AS one"}),
                "[{'one': 1}]",
            ),
        ]
    }

    fn words(&self, server: &str) -> Vec<String> {
        let stranger = STRANGERS
            .iter()
            .find(|stranger| stranger.name == server)
            .expect("one of the ten");
        let mut words = stranger.command(self.scratch.path());
        match server {
            "fetch" => words.push("--allow-private-ips".to_owned()),
            "playwright" => words.extend(["--executable-path".to_owned(), self.path("no-browser")]),
            _ => {}
        }
        words
    }

    fn env(&self, server: &str) -> Vec<(String, String)> {
        let variable = |name: &str, value: String| vec![(name.to_owned(), value)];
        match server {
            "github" => variable(
                "NODE_OPTIONS",
                format!("--import={}", self.path("github.mjs")),
            ),
            "memory" => variable("MEMORY_FILE_PATH", self.path("memory.json")),
            // It makes a folder below the home, which it may not everywhere.
            "playwright" => variable("XDG_CACHE_HOME", self.path("cache")),
            _ => Vec::new(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.scratch
            .path()
            .join(name)
            .into_os_string()
            .into_string()
            .expect("paths of tests are UTF-8")
    }
}
