//! The rows of the table, in order. Rows in which Weir loses are kept.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::json;
use weir_bench::ticket;

use crate::{
    contextforge, mariadb,
    place::BenchPaths,
    process::MeasuredProcess,
    weir::{self, BenchTransport, FunctionReuse, TracedShare, WeirBackend, WeirInstance},
    wire::{BenchEra, BenchQuestion, REFUSED},
};

#[derive(Clone, Copy)]
pub(crate) struct BenchRow {
    pub(crate) name: &'static str,
    pub(crate) server: BenchServer,
    pub(crate) way: CallMode,
    pub(crate) also: &'static [ExtraMeasurement],
}

/// The way in which the server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMode {
    Http(BenchEra),
    /// The legacy protocol over pipes.
    Stdio,
    /// The same tool is called with arguments that are wrong in three ways.
    Refused,
}

/// The measurements besides the calls themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraMeasurement {
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
pub(crate) enum BenchServer {
    Floor,
    Weir(WeirBackend),
    Rmcp,
    Toolbox(BenchDatabase),
    TypeScript,
    Python,
    FastMcp,
    ContextForge,
    /// hyper-mcp with the typed function in Rust as a plugin of Extism.
    HyperMcp,
    /// rmcp's client and server, one after the other.
    RmcpProxy,
    FastMcpProxy,
    McpProxy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchDatabase {
    Sqlite,
    Postgres,
    Mariadb,
}

const MODERN: CallMode = CallMode::Http(BenchEra::Modern);
const STATELESS: CallMode = CallMode::Http(BenchEra::Stateless);
const SESSION: CallMode = CallMode::Http(BenchEra::Session);

const fn row(name: &'static str, server: BenchServer, way: CallMode) -> BenchRow {
    BenchRow {
        name,
        server,
        way,
        also: &[],
    }
}

const fn more(
    name: &'static str,
    server: BenchServer,
    way: CallMode,
    also: &'static [ExtraMeasurement],
) -> BenchRow {
    BenchRow {
        name,
        server,
        way,
        also,
    }
}

use BenchServer::{
    ContextForge, FastMcp, FastMcpProxy, Floor, HyperMcp, McpProxy, Python, Rmcp, RmcpProxy,
    Toolbox, TypeScript, Weir,
};
use ExtraMeasurement::{Idle, Lists, Million, TwoThreads};
use WeirBackend::{
    Function, Mariadb, Noop, Postgres, Sheet, Sqlite, Traced, Upstream, WasmCall, WasmTenant,
};

pub(crate) const ROWS: &[BenchRow] = &[
    row("floor", Floor, MODERN),
    more(
        "weir-noop",
        Weir(Noop),
        MODERN,
        &[Million, TwoThreads, Lists(&[10, 100, 10_000])],
    ),
    row("weir-noop-stateless", Weir(Noop), STATELESS),
    row("weir-noop-session", Weir(Noop), SESSION),
    row("weir-noop-refused", Weir(Noop), CallMode::Refused),
    row("weir-traced", Weir(Traced(TracedShare::All)), MODERN),
    row("weir-sampled", Weir(Traced(TracedShare::Hundredth)), MODERN),
    more("weir-wasm", Weir(WasmTenant), MODERN, &[Million]),
    row("weir-wasm-fresh", Weir(WasmCall), MODERN),
    row("weir-sqlite", Weir(Sqlite), MODERN),
    row("weir-postgresql", Weir(Postgres), MODERN),
    row("weir-mariadb", Weir(Mariadb), MODERN),
    more("weir-sheet", Weir(Sheet), MODERN, &[Idle]),
    row("weir-function", Weir(Function(FunctionReuse::Kept)), MODERN),
    row(
        "weir-function-stdio",
        Weir(Function(FunctionReuse::Kept)),
        CallMode::Stdio,
    ),
    row(
        "weir-function-fresh",
        Weir(Function(FunctionReuse::Fresh)),
        MODERN,
    ),
    row(
        "weir-upstream",
        Weir(Upstream(BenchTransport::Http)),
        MODERN,
    ),
    row(
        "weir-upstream-stdio",
        Weir(Upstream(BenchTransport::Stdio)),
        MODERN,
    ),
    more("rmcp", Rmcp, MODERN, &[Lists(&[100])]),
    row("rmcp-proxy", RmcpProxy, MODERN),
    row("toolbox-sqlite", Toolbox(BenchDatabase::Sqlite), MODERN),
    row(
        "toolbox-postgresql",
        Toolbox(BenchDatabase::Postgres),
        MODERN,
    ),
    row("toolbox-mariadb", Toolbox(BenchDatabase::Mariadb), MODERN),
    row("typescript-sdk", TypeScript, MODERN),
    row("python-sdk", Python, MODERN),
    row("fastmcp", FastMcp, MODERN),
    row("fastmcp-proxy", FastMcpProxy, STATELESS),
    row("mcp-proxy", McpProxy, STATELESS),
    row("contextforge", ContextForge, STATELESS),
    row("hyper-mcp-function-stdio", HyperMcp, CallMode::Stdio),
];

/// A server that is ready to be started, and its question.
pub(crate) struct BenchSubject {
    pub(crate) start: Start,
    pub(crate) question: BenchQuestion,
    pub(crate) house: Option<WeirInstance>,
    pub(crate) path: &'static str,
    /// The key that the server asks its callers for; a Weir makes its own.
    pub(crate) key: Option<String>,
    /// The server behind it.
    #[expect(dead_code, reason = "it runs for as long as this is kept")]
    pub(crate) upstream: Option<MeasuredProcess>,
}

/// The command, given a port.
pub(crate) type Start = Box<dyn Fn(&BenchPaths, u16) -> Command>;

/// A part of a target that is compared with others: it is measured in turns with them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparedPart {
    /// The calls of a row.
    Calls(&'static str),
    /// The same, one after the other.
    OneConnection(&'static str),
    /// The server's lists, with this many tools.
    Lists(&'static str, usize),
}

pub(crate) const COMPARED: &[&[ComparedPart]] = &[
    &[
        ComparedPart::Calls("floor"),
        ComparedPart::Calls("weir-noop"),
        ComparedPart::Calls("weir-noop-stateless"),
        ComparedPart::Calls("weir-traced"),
        ComparedPart::Calls("weir-sampled"),
        ComparedPart::Calls("weir-wasm"),
        ComparedPart::Calls("weir-wasm-fresh"),
        ComparedPart::Calls("weir-function"),
        ComparedPart::Calls("weir-function-fresh"),
        ComparedPart::Calls("rmcp"),
    ],
    &[
        ComparedPart::Calls("weir-sqlite"),
        ComparedPart::Calls("toolbox-sqlite"),
    ],
    &[
        ComparedPart::Calls("weir-postgresql"),
        ComparedPart::Calls("toolbox-postgresql"),
    ],
    &[
        ComparedPart::Calls("weir-mariadb"),
        ComparedPart::Calls("toolbox-mariadb"),
    ],
    &[
        ComparedPart::Calls("weir-upstream"),
        ComparedPart::Calls("rmcp-proxy"),
        ComparedPart::Calls("fastmcp-proxy"),
        ComparedPart::Calls("mcp-proxy"),
    ],
    &[
        ComparedPart::OneConnection("floor"),
        ComparedPart::OneConnection("weir-wasm"),
    ],
    &[
        ComparedPart::OneConnection("weir-noop-stateless"),
        ComparedPart::OneConnection("weir-noop-session"),
    ],
    &[
        ComparedPart::OneConnection("rmcp"),
        ComparedPart::OneConnection("weir-upstream"),
    ],
    &[
        ComparedPart::Lists("weir-noop", 100),
        ComparedPart::Lists("weir-noop", 10_000),
        ComparedPart::Lists("rmcp", 100),
    ],
];

impl ComparedPart {
    pub(crate) fn row(&self) -> &'static BenchRow {
        let (Self::Calls(name) | Self::OneConnection(name) | Self::Lists(name, _)) = self;
        ROWS.iter()
            .find(|row| row.name == *name)
            .expect("what is compared is a row")
    }
}

impl fmt::Display for ComparedPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(row) => formatter.write_str(row),
            Self::OneConnection(row) => write!(formatter, "{row}, one call after the other"),
            Self::Lists(row, tools) => write!(formatter, "{row}, a list with {tools} tools"),
        }
    }
}

impl Serialize for ComparedPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ComparedPart {
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

impl BenchRow {
    /// Returns the database server that has to run.
    pub(crate) fn database(&self) -> Option<BenchDatabase> {
        match self.server {
            Weir(Postgres) => Some(BenchDatabase::Postgres),
            Weir(Mariadb) => Some(BenchDatabase::Mariadb),
            Toolbox(database) => Some(database),
            _ => None,
        }
    }

    /// Returns the era of its messages.
    pub(crate) fn era(&self) -> BenchEra {
        match self.way {
            CallMode::Http(era) => era,
            CallMode::Stdio => BenchEra::Stateless,
            CallMode::Refused => BenchEra::Modern,
        }
    }

    /// Lays out what the server serves. The error is the reason why the row is left out.
    pub(crate) fn subject(&self, place: &BenchPaths, tools: usize) -> anyhow::Result<BenchSubject> {
        let house = match self.server {
            Weir(backend) => Some(WeirInstance::build(place, backend, tools)?),
            _ => None,
        };
        let (mut key, mut upstream, mut tool) = (None, None, ticket::TOOL);
        let start: Start = match self.server {
            Floor => program(place.binary("bench-floor"), &[])?,
            // Built anew for each port by its house.
            Weir(_) => Box::new(|_, _| unreachable!("a Weir is started from its house")),
            Rmcp => program(place.binary("bench-rmcp"), &["http", &tools.to_string()])?,
            Toolbox(database) => toolbox(place, database)?,
            TypeScript => {
                let script = place.peer("bench-node").join("typescript.mjs");
                interpreted(place.peer("node-runtime").join("bin/node"), script, &[])?
            }
            Python => interpreted(python(place), place.servers().join("python_sdk.py"), &[])?,
            FastMcp => interpreted(
                python(place),
                place.servers().join("fastmcp_server.py"),
                &[],
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
            CallMode::Refused => {
                json!({ "ticket_id": "1001", "status": "opne", "asignee": ticket::ASSIGNEE })
            }
            _ => json!({ "ticket_id": ticket::ID }),
        };
        let mark = if self.way == CallMode::Refused {
            REFUSED
        } else {
            ticket::ID
        };
        let question = BenchQuestion {
            era: self.era(),
            ..BenchQuestion::call(tool, arguments, mark)
        };
        let path = if matches!(self.server, ContextForge | McpProxy) {
            "/mcp/"
        } else {
            "/mcp"
        };
        Ok(BenchSubject {
            start,
            question,
            house,
            path,
            key,
            upstream,
        })
    }

    /// Returns the accepted question of a row that is refused: the same tool with correct arguments.
    pub(crate) fn accepted(&self) -> BenchQuestion {
        BenchQuestion {
            era: self.era(),
            ..BenchQuestion::lookup()
        }
    }

    pub(crate) fn listing(&self) -> BenchQuestion {
        BenchQuestion {
            era: self.era(),
            ..BenchQuestion::listing()
        }
    }
}

fn python(place: &BenchPaths) -> PathBuf {
    place.peer("bench-python").join("bin/python")
}

/// Starts `PROGRAM PORT WORDS…`.
fn program(path: PathBuf, words: &[&str]) -> anyhow::Result<Start> {
    present(&path)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&path);
        command.arg(port.to_string()).args(&words);
        command
    }))
}

/// Starts `INTERPRETER SCRIPT PORT WORDS…`.
fn interpreted(interpreter: PathBuf, script: PathBuf, words: &[&str]) -> anyhow::Result<Start> {
    present(&interpreter)?;
    present(&script)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Box::new(move |_, port| {
        let mut command = Command::new(&interpreter);
        command.arg(&script).arg(port.to_string()).args(&words);
        command
    }))
}

/// Starts mcp-proxy, which has the echo tool in a child process.
fn mcp_proxy(place: &BenchPaths) -> anyhow::Result<Start> {
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
fn toolbox(place: &BenchPaths, database: BenchDatabase) -> anyhow::Result<Start> {
    let program = place
        .peer("bench-node")
        .join("node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox");
    present(&program)?;
    let folder = place.peer_folder("toolbox")?;
    let (kind, source) = match database {
        BenchDatabase::Sqlite => {
            let file = folder.join("tickets.db");
            let _ = std::fs::remove_file(&file);
            weir::sqlite(&file)?;
            ("sqlite", json!({ "kind": "sqlite", "database": file }))
        }
        BenchDatabase::Postgres => {
            let port = place.postgres()?.port.to_string();
            let source = json!({ "kind": "postgres", "host": "127.0.0.1", "port": port, "database": "postgres",
                                 "user": "weir", "password": "none" });
            ("postgres", source)
        }
        BenchDatabase::Mariadb => {
            let port = place.mariadb()?.port.to_string();
            let source = json!({ "kind": "mysql", "host": "127.0.0.1", "port": port, "database": mariadb::DATABASE,
                                 "user": mariadb::USER, "password": mariadb::PASSWORD });
            ("mysql", source)
        }
    };
    let parameter = match database {
        BenchDatabase::Mariadb => "?",
        BenchDatabase::Sqlite | BenchDatabase::Postgres => "$1",
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
        toolbox_command(&program, &file, port)
    }))
}

/// Returns the command that starts MCP Toolbox.
pub(crate) fn toolbox_command(program: &Path, config: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command.arg("--config").arg(config);
    command.args(["--address", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--log-level", "error"]);
    command
}

/// Starts hyper-mcp with the typed function.
fn hyper_mcp(place: &BenchPaths) -> anyhow::Result<Start> {
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

fn present(path: &Path) -> anyhow::Result<()> {
    path.exists()
        .then_some(())
        .with_context(|| format!("{} is not installed", path.display()))
}
