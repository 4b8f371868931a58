//! Real foreign MCP servers, pinned by lock files, and one of ours that behaves badly on request.

use std::path::{Path, PathBuf};

use crate::{foreign, place};

/// The command line that starts a server; `scratch` is the test's own folder, at the same place in each run.
pub struct Stranger {
    pub name: &'static str,
    start: fn(&Path) -> Vec<String>,
}

impl Stranger {
    pub fn command(&self, scratch: &Path) -> Vec<String> {
        (self.start)(scratch)
    }
}

pub const STRANGERS: [Stranger; 10] = [
    Stranger {
        name: "everything",
        start: |_| {
            node(
                "@modelcontextprotocol/server-everything/dist/index.js",
                &["stdio"],
            )
        },
    },
    Stranger {
        name: "filesystem",
        start: |scratch| {
            node(
                "@modelcontextprotocol/server-filesystem/dist/index.js",
                &[&text(scratch)],
            )
        },
    },
    Stranger {
        name: "memory",
        start: |_| node("@modelcontextprotocol/server-memory/dist/index.js", &[]),
    },
    Stranger {
        name: "sequential-thinking",
        start: |_| {
            node(
                "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
                &[],
            )
        },
    },
    Stranger {
        name: "github",
        start: |_| node("@modelcontextprotocol/server-github/dist/index.js", &[]),
    },
    Stranger {
        name: "playwright",
        start: |_| node("@playwright/mcp/cli.js", &["--headless"]),
    },
    Stranger {
        name: "time",
        start: |_| {
            python(
                "python-servers",
                "mcp_server_time",
                &["--local-timezone", "UTC"],
            )
        },
    },
    Stranger {
        name: "git",
        start: |_| python("python-servers", "mcp_server_git", &[]),
    },
    Stranger {
        name: "fetch",
        start: |_| python("python-servers", "mcp_server_fetch", &[]),
    },
    Stranger {
        name: "sqlite",
        start: |scratch| {
            let server = "import sys, asyncio; from mcp_server_sqlite import server; asyncio.run(server.main(sys.argv[1]))";
            let interpreter = text(
                foreign::python("python-servers-mcp1")
                    .get_program()
                    .as_ref(),
            );
            vec![
                interpreter,
                "-c".to_owned(),
                server.to_owned(),
                text(&scratch.join("test.db")),
            ]
        },
    },
];

/// Returns the words that start the server of `tests/upstreams/hostile.py` with its behaviour.
pub fn hostile(words: &[&str]) -> Vec<String> {
    let script = place::repository().join("tests/upstreams/hostile.py");
    let interpreter = text(foreign::python("python-servers").get_program().as_ref());
    let words = words.iter().map(|word| (*word).to_owned());
    [interpreter, text(&script)]
        .into_iter()
        .chain(words)
        .collect()
}

/// Returns the words that start the same server through `npx`, which starts a shell that starts it.
pub fn npx(words: &[String]) -> Vec<String> {
    let program = place::present(foreign::node_bin().join("npx"), foreign::INSTALLED_BY);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    vec![
        text(&program),
        "--offline".to_owned(),
        "-c".to_owned(),
        quoted.join(" "),
    ]
}

/// Returns the words that start a Node server of `tests/clients/servers`.
pub fn node(script: &str, words: &[&str]) -> Vec<String> {
    let script = place::present(
        place::cache()
            .join("clients/servers/node_modules")
            .join(script),
        foreign::INSTALLED_BY,
    );
    let node = text(foreign::node().get_program().as_ref());
    [node, text(&script)]
        .into_iter()
        .chain(words.iter().map(|word| (*word).to_owned()))
        .collect()
}

fn python(environment: &str, module: &str, words: &[&str]) -> Vec<String> {
    let interpreter = text(foreign::python(environment).get_program().as_ref());
    let words = words.iter().map(|word| (*word).to_owned());
    [interpreter, "-m".to_owned(), module.to_owned()]
        .into_iter()
        .chain(words)
        .collect()
}

fn text(path: &Path) -> String {
    PathBuf::from(path)
        .into_os_string()
        .into_string()
        .expect("paths of tests are UTF-8")
}
