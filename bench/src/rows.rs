//! The rows of the table, in order. Losing rows stay.

use std::{fmt, process::Command};

use anyhow::Context;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Value, json};
use weir_bench::ticket;

use crate::{
    contextforge, mariadb,
    place::Place,
    process::Process,
    weir::{self, Backend, Code, House, Transport},
    wire::{Era, Question, REFUSED},
};

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) server: Server,
    pub(crate) way: Way,
    pub(crate) also: &'static [Also],
}

/// The way in which the server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Http(Era),
    /// The legacy protocol over pipes.
    Stdio,
    /// The same tool is called with arguments that are wrong in three ways.
    Refused,
}

/// The further measurements beside the calls themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    /// Memory after a million calls.
    Million,
    /// Processor time without a caller.
    Idle,
    /// One server thread and two are measured, with both cores for the server and the generator together.
    TwoThreads,
    /// `tools/list` and `tools/call` with few and with many tools.
    Lists(&'static [usize]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Floor,
    Weir(Backend),
    Rmcp,
    Toolbox(Database),
    TypeScript,
    Python,
    FastMcp,
    ContextForge,
    /// hyper-mcp with the typed function in Rust as a plugin of Extism.
    HyperMcp,
    /// rmcp's client and server, one behind the other.
    RmcpProxy,
    FastMcpProxy,
    McpProxy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
    Mariadb,
}

const MODERN: Way = Way::Http(Era::Modern);
const STATELESS: Way = Way::Http(Era::Stateless);
const SESSION: Way = Way::Http(Era::Session);

const fn row(name: &'static str, server: Server, way: Way) -> Row {
    Row {
        name,
        server,
        way,
        also: &[],
    }
}

const fn more(name: &'static str, server: Server, way: Way, also: &'static [Also]) -> Row {
    Row {
        name,
        server,
        way,
        also,
    }
}

use Also::{Idle, Lists, Million, TwoThreads};
use Backend::{Function, Mariadb, Noop, Postgres, Sheet, Sqlite, Upstream, WasmCall, WasmTenant};
use Server::{
    ContextForge, FastMcp, FastMcpProxy, Floor, HyperMcp, McpProxy, Python, Rmcp, RmcpProxy,
    Toolbox, TypeScript, Weir,
};

pub(crate) const ROWS: &[Row] = &[
    row("floor", Floor, MODERN),
    more(
        "weir-noop",
        Weir(Noop),
        MODERN,
        &[Million, TwoThreads, Lists(&[10, 100, 10_000])],
    ),
    row("weir-noop-stateless", Weir(Noop), STATELESS),
    row("weir-noop-session", Weir(Noop), SESSION),
    row("weir-noop-refused", Weir(Noop), Way::Refused),
    more("weir-wasm", Weir(WasmTenant), MODERN, &[Million]),
    row("weir-wasm-fresh", Weir(WasmCall), MODERN),
    row("weir-sqlite", Weir(Sqlite), MODERN),
    row("weir-postgresql", Weir(Postgres), MODERN),
    row("weir-mariadb", Weir(Mariadb), MODERN),
    more("weir-sheet", Weir(Sheet), MODERN, &[Idle]),
    row("weir-function", Weir(Function(Code::Kept)), MODERN),
    row(
        "weir-function-stdio",
        Weir(Function(Code::Kept)),
        Way::Stdio,
    ),
    row("weir-function-fresh", Weir(Function(Code::Fresh)), MODERN),
    row("weir-upstream", Weir(Upstream(Transport::Http)), MODERN),
    row(
        "weir-upstream-stdio",
        Weir(Upstream(Transport::Stdio)),
        MODERN,
    ),
    more("rmcp", Rmcp, MODERN, &[Lists(&[100])]),
    row("rmcp-proxy", RmcpProxy, MODERN),
    row("toolbox-sqlite", Toolbox(Database::Sqlite), MODERN),
    row("toolbox-postgresql", Toolbox(Database::Postgres), MODERN),
    row("toolbox-mariadb", Toolbox(Database::Mariadb), MODERN),
    row("typescript-sdk", TypeScript, MODERN),
    row("python-sdk", Python, MODERN),
    row("fastmcp", FastMcp, MODERN),
    row("fastmcp-proxy", FastMcpProxy, STATELESS),
    row("mcp-proxy", McpProxy, STATELESS),
    row("contextforge", ContextForge, STATELESS),
    row("hyper-mcp-function-stdio", HyperMcp, Way::Stdio),
];

/// A server that is ready to be started, and its question.
pub(crate) struct Subject {
    pub(crate) start: Start,
    pub(crate) question: Question,
    pub(crate) house: Option<House>,
    pub(crate) path: &'static str,
    /// The key that the server asks its callers for; a Weir makes its own.
    pub(crate) key: Option<String>,
    /// The server behind it.
    #[expect(dead_code, reason = "it runs for as long as this is kept")]
    pub(crate) upstream: Option<Process>,
}

/// The command, given a port.
pub(crate) type Start = Box<dyn Fn(&Place, u16) -> Command>;

/// A part of a target that is compared with others: it is measured in turns with them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The calls of a row.
    Calls(&'static str),
    /// The same, one after the other.
    OneConnection(&'static str),
    /// The server's lists, with so many tools.
    Lists(&'static str, usize),
}

pub(crate) const COMPARED: &[&[Compared]] = &[
    &[
        Compared::Calls("floor"),
        Compared::Calls("weir-noop"),
        Compared::Calls("weir-noop-stateless"),
        Compared::Calls("weir-wasm"),
        Compared::Calls("weir-wasm-fresh"),
        Compared::Calls("weir-function"),
        Compared::Calls("weir-function-fresh"),
        Compared::Calls("rmcp"),
    ],
    &[
        Compared::Calls("weir-sqlite"),
        Compared::Calls("toolbox-sqlite"),
    ],
    &[
        Compared::Calls("weir-postgresql"),
        Compared::Calls("toolbox-postgresql"),
    ],
    &[
        Compared::Calls("weir-mariadb"),
        Compared::Calls("toolbox-mariadb"),
    ],
    &[
        Compared::Calls("weir-upstream"),
        Compared::Calls("rmcp-proxy"),
        Compared::Calls("fastmcp-proxy"),
        Compared::Calls("mcp-proxy"),
    ],
    &[
        Compared::OneConnection("floor"),
        Compared::OneConnection("weir-wasm"),
    ],
    &[
        Compared::OneConnection("weir-noop-stateless"),
        Compared::OneConnection("weir-noop-session"),
    ],
    &[
        Compared::OneConnection("rmcp"),
        Compared::OneConnection("weir-upstream"),
    ],
    &[
        Compared::Lists("weir-noop", 100),
        Compared::Lists("weir-noop", 10_000),
        Compared::Lists("rmcp", 100),
    ],
];

impl Compared {
    pub(crate) fn row(&self) -> &'static Row {
        let (Self::Calls(name) | Self::OneConnection(name) | Self::Lists(name, _)) = self;
        ROWS.iter()
            .find(|row| row.name == *name)
            .expect("what is compared is a row")
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(row) => formatter.write_str(row),
            Self::OneConnection(row) => write!(formatter, "{row}, one call after the other"),
            Self::Lists(row, tools) => write!(formatter, "{row}, a list with {tools} tools"),
        }
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Compared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = COMPARED
            .iter()
            .flat_map(|group| group.iter())
            .find(|of| of.to_string() == text);
        found.copied().ok_or_else(|| {
            D::Error::custom(format_args!("nothing that is compared is called `{text}`"))
        })
    }
}

impl Row {
    /// Returns the database server that has to run.
    pub(crate) fn database(&self) -> Option<Database> {
        match self.server {
            Weir(Postgres) => Some(Database::Postgres),
            Weir(Mariadb) => Some(Database::Mariadb),
            Toolbox(database) => Some(database),
            _ => None,
        }
    }

    /// Returns the era of its messages.
    pub(crate) fn era(&self) -> Era {
        match self.way {
            Way::Http(era) => era,
            Way::Stdio => Era::Stateless,
            Way::Refused => Era::Modern,
        }
    }

    /// Lays out what the server serves. An error says why the row is left out.
    pub(crate) fn subject(&self, place: &Place, tools: usize) -> anyhow::Result<Subject> {
        let mode = match self.way {
            SESSION => "session",
            Way::Stdio => "stdio",
            _ => "json",
        };
        let house = match self.server {
            Weir(backend) => Some(House::build(place, backend, tools)?),
            _ => None,
        };
        let (mut key, mut upstream, mut tool) = (None, None, ticket::TOOL);
        let start: Start = match self.server {
            Floor => program(place.binary("bench-floor"), &[])?,
            // Built anew for each port by its house.
            Weir(_) => Box::new(|_, _| unreachable!("a Weir is started from its house")),
            Rmcp => program(place.binary("bench-rmcp"), &[mode, &tools.to_string()])?,
            Toolbox(database) => toolbox(place, database)?,
            TypeScript => {
                let script = place.peer("bench-node").join("typescript.mjs");
                interpreted(
                    place.peer("node-runtime").join("bin/node"),
                    script,
                    &[mode, &tools.to_string()],
                )?
            }
            Python => interpreted(
                python(place),
                place.servers().join("python_sdk.py"),
                &[mode, &tools.to_string()],
            )?,
            FastMcp => interpreted(
                python(place),
                place.servers().join("fastmcp_server.py"),
                &[mode, &tools.to_string()],
            )?,
            ContextForge => {
                let ready = contextforge::set_up(place)?;
                (key, upstream, tool) =
                    (Some(ready.token), Some(ready.upstream), contextforge::TOOL);
                ready.start
            }
            HyperMcp => hyper_mcp(place)?,
            RmcpProxy | FastMcpProxy => {
                let (server, url) = weir::serve_upstream(place)?;
                upstream = Some(server);
                match self.server {
                    RmcpProxy => program(place.binary("bench-rmcp-proxy"), &[&url])?,
                    _ => interpreted(
                        python(place),
                        place.servers().join("fastmcp_proxy.py"),
                        &[&url],
                    )?,
                }
            }
            McpProxy => mcp_proxy(place)?,
        };
        let arguments = match self.way {
            Way::Refused => {
                json!({ "ticket_id": "1001", "status": "opne", "asignee": ticket::ASSIGNEE })
            }
            _ => right(),
        };
        let mark = if self.way == Way::Refused {
            REFUSED
        } else {
            ticket::ID
        };
        let question = Question {
            tool: tool.to_owned(),
            ..self.question("tools/call", arguments, mark)
        };
        let path = if matches!(self.server, ContextForge | McpProxy) {
            "/mcp/"
        } else {
            "/mcp"
        };
        Ok(Subject {
            start,
            question,
            house,
            path,
            key,
            upstream,
        })
    }

    /// Returns the accepted question of a row that is refused: the same tool with correct arguments.
    pub(crate) fn accepted(&self) -> Question {
        self.question("tools/call", right(), ticket::ID)
    }

    pub(crate) fn listing(&self) -> Question {
        self.question("tools/list", Value::Null, ticket::TOOL)
    }

    fn question(&self, method: &'static str, arguments: Value, mark: &'static str) -> Question {
        Question {
            era: self.era(),
            method,
            tool: ticket::TOOL.to_owned(),
            arguments,
            mark,
        }
    }
}

fn right() -> Value {
    json!({ "ticket_id": ticket::ID })
}

fn python(place: &Place) -> std::path::PathBuf {
    place.peer("bench-python").join("bin/python")
}

/// Starts `PROGRAM PORT WORDS…`.
fn program(path: std::path::PathBuf, words: &[&str]) -> anyhow::Result<Start> {
    present(&path)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&path);
        command.arg(port.to_string()).args(&words);
        command
    }))
}

/// Starts `INTERPRETER SCRIPT PORT WORDS…`.
fn interpreted(
    interpreter: std::path::PathBuf,
    script: std::path::PathBuf,
    words: &[&str],
) -> anyhow::Result<Start> {
    present(&interpreter)?;
    present(&script)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&interpreter);
        command.arg(&script).arg(port.to_string()).args(&words);
        command
    }))
}

/// Starts mcp-proxy, which has the echo tool in a child of its own.
fn mcp_proxy(place: &Place) -> anyhow::Result<Start> {
    let program = place.peer("bench-mcp-proxy").join("bin/mcp-proxy");
    present(&program)?;
    let echo = place.binary("bench-rmcp");
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&program);
        command.args([
            "--port",
            &port.to_string(),
            "--stateless",
            "--log-level",
            "ERROR",
            "--",
        ]);
        command.arg(&echo).args(["0", "stdio", "1"]);
        command
    }))
}

/// Starts MCP Toolbox, with its table and its statement.
fn toolbox(place: &Place, database: Database) -> anyhow::Result<Start> {
    let program = place
        .peer("bench-node")
        .join("node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox");
    present(&program)?;
    let folder = place.peer_folder("toolbox")?;
    let (kind, source) = match database {
        Database::Sqlite => {
            let file = folder.join("tickets.db");
            let _ = std::fs::remove_file(&file);
            weir::sqlite(&file)?;
            ("sqlite", json!({ "kind": "sqlite", "database": file }))
        }
        Database::Postgres => {
            let port = place.postgres()?.port.to_string();
            let source = json!({ "kind": "postgres", "host": "127.0.0.1", "port": port, "database": "postgres",
                                 "user": "weir", "password": "none" });
            ("postgres", source)
        }
        Database::Mariadb => {
            let port = place.mariadb()?.port.to_string();
            let source = json!({ "kind": "mysql", "host": "127.0.0.1", "port": port, "database": mariadb::DATABASE,
                                 "user": mariadb::USER, "password": mariadb::PASSWORD });
            ("mysql", source)
        }
    };
    let parameter = match database {
        Database::Mariadb => "?",
        Database::Sqlite | Database::Postgres => "$1",
    };
    let statement = format!(
        "SELECT ticket_id, title, status, priority, assignee, tags, description FROM tickets WHERE ticket_id = {parameter}"
    );
    let config = json!({
        "sources": { "tickets": source },
        "tools": { ticket::TOOL: {
            "kind": format!("{kind}-sql"), "source": "tickets", "description": "Look a ticket up by its id",
            "parameters": [{ "name": "ticket_id", "type": "string", "description": "Ticket id, for example T-1001" }],
            "statement": statement,
        } },
    });
    // JSON is YAML.
    let file = folder.join(format!("{kind}.yaml"));
    std::fs::write(&file, config.to_string())?;
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&program);
        command.arg("--config").arg(&file).args([
            "--address",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ]);
        command.args(["--log-level", "error"]);
        command
    }))
}

/// Starts hyper-mcp with the typed function.
fn hyper_mcp(place: &Place) -> anyhow::Result<Start> {
    let program = place.peer("hyper-mcp").join("bin/hyper-mcp");
    present(&program)?;
    let folder = place.peer_folder("hyper-mcp")?;
    let plugin = place.guest("lookup-extism.wasm");
    present(&plugin)?;
    let config = folder
        .join(plugin.file_stem().unwrap_or_default())
        .with_extension("json");
    let url = format!("file://{}", plugin.display());
    std::fs::write(
        &config,
        json!({ "plugins": { "desk": { "url": url } } }).to_string(),
    )?;
    Ok(Box::new(move |_, _| {
        let mut command = Command::new(&program);
        command
            .arg("--config-file")
            .arg(&config)
            .env("HYPER_MCP_LOG_PATH", &folder)
            .env("RUST_LOG", "error");
        command
    }))
}

fn present(path: &std::path::Path) -> anyhow::Result<()> {
    path.exists()
        .then_some(())
        .with_context(|| format!("{} is not installed", path.display()))
}
