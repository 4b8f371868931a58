//! A Weir to measure: its folder, its default configuration, a key, and afterwards the proof of its audit trail.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_bench::ticket;

use crate::{
    place::{BenchPaths, free_port},
    process::{MeasuredProcess, START_MAX},
    wire::BenchEndpoint,
};

/// The server behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeirBackend {
    /// An adapter that is part of the process: only the call path.
    Noop,
    /// The same, with traces for a collector that is gone.
    Traced(TracedShare),
    /// A small guest whose instance is kept for the tenant's next call (the default).
    WasmTenant,
    /// A small guest whose instance is made anew for every call.
    WasmCall,
    Sheet,
    Sqlite,
    Postgres,
    Mariadb,
    /// A typed function that answers at once.
    Function(FunctionReuse),
    /// Another MCP server: rmcp's own with the echo tool.
    Upstream(BenchTransport),
}

/// The calls that are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TracedShare {
    All,
    Hundredth,
}

/// The build and the run of a typed function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionReuse {
    /// A component in Rust, whose instance is kept for the tenant's next call (the default).
    Kept,
    /// The same component, whose instance is made anew for every call.
    Fresh,
}

/// The transport between the gateway and an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchTransport {
    /// The upstream has the generator's core, and its processor time is not counted.
    Http,
    /// The upstream is a child of the gateway, and its processor time is part of the row's.
    Stdio,
}

/// The access of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyBreadth {
    /// The key may see everything.
    Wide,
    /// Single tools that are named.
    Narrow,
}

/// Tools that a narrow key names.
const NARROW_TOOLS: usize = 100;

pub(crate) struct WeirInstance {
    folder: TempDir,
    program: PathBuf,
    upstream: Option<MeasuredProcess>,
}

/// Tools of one contract; a large registry is many contracts.
const CONTRACT_TOOLS: usize = 1_000;
impl WeirInstance {
    /// Folders, connections, grants and the size of a page are configured: all else is as shipped. The page remains at
    /// 100 tools, so that lists of any length are compared with the same page size.
    pub(crate) fn build(
        place: &BenchPaths,
        backend: WeirBackend,
        tools: usize,
    ) -> anyhow::Result<Self> {
        let mut house = Self::empty(
            place,
            match backend {
                WeirBackend::Noop | WeirBackend::Traced(_) => "bench-weir",
                _ => "weir",
            },
        )?;
        if let Some(plugin) = backend.plugin(place) {
            house.plugin(&plugin, backend.name())?;
        }
        let toml = match backend {
            WeirBackend::Upstream(BenchTransport::Http) => {
                let (server, url) = serve_upstream(place)?;
                house.upstream = Some(server);
                format!("[upstreams.desk]\nurl = \"{url}\"\n{UPSTREAM}")
            }
            WeirBackend::Upstream(BenchTransport::Stdio) => {
                let program = place.binary("bench-rmcp");
                format!(
                    "[upstreams.desk]\ncommand = [\"{}\", \"0\", \"stdio\", \"1\"]\n{UPSTREAM}",
                    program.display()
                )
            }
            _ => backend.configure(place, &house.data())?,
        };
        house.config(&format!("[http]\npage_size = 100\n{toml}"))?;
        for (number, contract) in contracts(backend, tools).iter().enumerate() {
            house.contract(&format!("support-{number}.json"), contract)?;
        }
        Ok(house)
    }

    /// Makes a house for one of our programs, with nothing in it.
    pub(crate) fn empty(place: &BenchPaths, program: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(&place.scratch)?;
        for name in ["contracts", "data", "plugins"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let house = Self {
            folder,
            program: place.binary(program),
            upstream: None,
        };
        house.config("")?;
        Ok(house)
    }

    /// Writes the configuration: where the folders are, and `toml`.
    pub(crate) fn config(&self, toml: &str) -> anyhow::Result<()> {
        let folders =
            "[folders]\ncontracts = \"contracts\"\nplugins = \"plugins\"\nstate = \"state\"\n";
        Ok(fs::write(
            self.folder.path().join("weir.toml"),
            format!("{folders}{toml}"),
        )?)
    }

    /// Writes the configuration of a node, whose state is in a database: it reads no contract files.
    pub(crate) fn share_state(&self, url: &str) -> anyhow::Result<()> {
        let text = format!(
            "[folders]\nplugins = \"plugins\"\nstate = \"state\"\n[http]\npage_size = 100\n[state]\nurl = \"{url}\"\n"
        );
        Ok(fs::write(self.folder.path().join("weir.toml"), text)?)
    }

    /// Writes a file next to the configuration.
    pub(crate) fn file(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.folder.path().join(name), text)?)
    }

    pub(crate) fn policies(&self, text: &str) -> anyhow::Result<()> {
        let folder = self.folder.path().join("policies");
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join("bench.cedar"), text)?)
    }

    pub(crate) fn contract(&self, file: &str, contract: &Value) -> anyhow::Result<()> {
        Ok(fs::write(
            self.folder.path().join("contracts").join(file),
            contract.to_string(),
        )?)
    }

    /// Copies a component into the plugins folder.
    pub(crate) fn plugin(&self, component: &Path, name: &str) -> anyhow::Result<()> {
        let target = self
            .folder
            .path()
            .join("plugins")
            .join(format!("{name}.wasm"));
        fs::copy(component, target)
            .map(drop)
            .with_context(|| format!("{} is missing", component.display()))
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Starts the gateway, and returns it once it answers, with its port.
    pub(crate) fn start(
        &self,
        cores: &str,
        longest: Duration,
    ) -> anyhow::Result<(MeasuredProcess, u16)> {
        let port = free_port()?;
        let mut process = MeasuredProcess::start(
            &self.serve(port),
            cores,
            &self.folder.path().join("server.log"),
        )?;
        process.wait(longest, || {
            ureq::get(format!("http://127.0.0.1:{port}/healthz"))
                .call()
                .is_ok()
        })?;
        Ok((process, port))
    }

    pub(crate) fn serve(&self, port: u16) -> Command {
        let mut command = self.command(&["serve"]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command
    }

    pub(crate) fn stdio(&self, key: &str) -> Command {
        let mut command = self.command(&["stdio"]);
        command.env("WEIR_KEY", key);
        command
    }

    /// Makes a key that may make one request a minute.
    pub(crate) fn slow_key(&self, agent: &str) -> anyhow::Result<String> {
        let words = [
            "keys", "create", "--agent", agent, "--tenant", agent, "--rate", "1/min",
        ];
        self.run(&words)
    }

    /// Makes a key of this gateway, which must be running.
    pub(crate) fn key(&self, agent: &str, holder: KeyBreadth) -> anyhow::Result<String> {
        let narrow: Vec<String> = match holder {
            KeyBreadth::Wide => Vec::new(),
            // The tool that is called is among others, as in a list that an operator writes.
            KeyBreadth::Narrow => (0..NARROW_TOOLS).map(tool_name).collect(),
        };
        let mut words = vec![
            "keys",
            "create",
            "--agent",
            agent,
            "--tenant",
            agent,
            "--rate",
            ticket::RATE,
        ];
        words.extend(narrow.iter().flat_map(|tool| ["--tool", tool]));
        self.run(&words)
    }

    /// Returns the way in to this gateway, which must be running, with a key that may use everything.
    pub(crate) fn door(&self, port: u16, agent: &str) -> anyhow::Result<BenchEndpoint> {
        Ok(BenchEndpoint {
            url: format!("http://127.0.0.1:{port}/mcp"),
            key: Some(self.key(agent, KeyBreadth::Wide)?),
        })
    }

    /// Address and key of the admin API of this gateway, which must be running.
    pub(crate) fn admin(&self) -> anyhow::Result<(String, String)> {
        let read = |name: &str| {
            anyhow::Ok(
                fs::read_to_string(self.state().join(name))?
                    .trim()
                    .to_owned(),
            )
        };
        Ok((read("admin.url")?, read("admin.token")?))
    }

    /// Returns how many calls are on record, and how many of them ended as `ok`, after proof that the trail is whole. Those
    /// from before an upstream's tool was published are left out: they only tested whether it answers yet.
    pub(crate) fn verify_audit(&self) -> anyhow::Result<(u64, u64)> {
        self.run(&["audit", "verify"])
            .context("`weir audit verify` found something")?;
        let mut export = self
            .command(&["audit", "export", "--kind", "call"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(export.stdout.take().context("stdout is a pipe")?);
        let (mut recorded, mut ok, mut line) = (0, 0, String::new());
        while lines.read_line(&mut line)? > 0 {
            recorded += u64::from(!line.contains(r#""code":"unknown_tool""#));
            ok += u64::from(line.contains(r#""outcome":"ok""#));
            line.clear();
        }
        if !export.wait()?.success() {
            bail!("`weir audit export` failed");
        }
        Ok((recorded, ok))
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.command(words).output()?;
        if !output.status.success() {
            bail!(
                "weir {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .arg("--config")
            .arg(self.folder.path().join("weir.toml"))
            .current_dir(self.folder.path());
        // These may be set for another Weir on this machine.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
            command.env_remove(name);
        }
        command
    }
}

impl WeirBackend {
    fn name(self) -> &'static str {
        match self {
            Self::Noop | Self::Traced(_) => "noop",
            Self::WasmTenant | Self::WasmCall => "ticket",
            Self::Sheet => "sheet",
            Self::Sqlite | Self::Postgres | Self::Mariadb => "sql",
            Self::Function(_) => "lookup",
            Self::Upstream(_) => "desk",
        }
    }

    /// Returns `true` if contract files define its tools.
    fn is_adapter(self) -> bool {
        !matches!(self, Self::Function(_) | Self::Upstream(_))
    }

    fn settings(self) -> Value {
        match self {
            Self::Sheet => json!({ "connection": "tickets", "path": "tickets.csv" }),
            Self::Sqlite | Self::Postgres | Self::Mariadb => {
                json!({ "connection": "tickets", "table": "tickets" })
            }
            _ => json!({}),
        }
    }

    /// Returns the component that goes into the plugins folder.
    fn plugin(self, place: &BenchPaths) -> Option<PathBuf> {
        let guest = |name| Some(place.guest(name));
        match self {
            Self::Noop | Self::Traced(_) | Self::Upstream(_) => None,
            Self::WasmTenant | Self::WasmCall => guest("ticket.wasm"),
            Self::Function(_) => guest("lookup.wasm"),
            Self::Sheet | Self::Sqlite | Self::Postgres | Self::Mariadb => Some(
                place
                    .repository
                    .join("plugins")
                    .join(format!("{}.wasm", self.name())),
            ),
        }
    }

    /// Lays its data out in `data`, and returns what the configuration has to name.
    fn configure(self, place: &BenchPaths, data: &Path) -> anyhow::Result<String> {
        let connection = match self {
            Self::Noop | Self::WasmTenant | Self::Upstream(_) => return Ok(String::new()),
            Self::Function(code) => return Ok(code.configure()),
            Self::Traced(share) => return Ok(share.configure()),
            Self::WasmCall => return Ok("[plugins.ticket]\nisolation = \"call\"\n".to_owned()),
            Self::Sheet => {
                fs::write(data.join("tickets.csv"), csv())?;
                "kind = \"files\"\npath = \"data\"".to_owned()
            }
            Self::Sqlite => {
                sqlite(&data.join("tickets.db"))?;
                "kind = \"sqlite\"\npath = \"data/tickets.db\"".to_owned()
            }
            Self::Postgres => format!("kind = \"postgresql\"\nurl = \"{}\"", place.postgres_url()?),
            Self::Mariadb => format!("kind = \"mysql\"\nurl = \"{}\"", place.mariadb()?.url()),
        };
        Ok(format!(
            "[connections.tickets]\n{connection}\n[plugins.{}.grants]\ntickets = \"read\"\n",
            self.name()
        ))
    }
}

impl TracedShare {
    /// Returns the section of traces. Nothing listens on the port of the collector.
    pub(crate) fn configure(self) -> String {
        let ratio = match self {
            Self::All => "1.0",
            Self::Hundredth => "0.01",
        };
        format!("[traces]\nendpoint = \"http://127.0.0.1:9\"\nratio = {ratio}\n")
    }
}

impl FunctionReuse {
    fn configure(self) -> String {
        let isolation = match self {
            Self::Kept => "",
            Self::Fresh => "isolation = \"call\"\n",
        };
        format!(
            "[plugins.weir-bench-function]\nlimits = {{ rate = \"{}\", timeout_ms = 2000 }}\n{isolation}",
            ticket::RATE
        )
    }
}

/// The configuration of an upstream: its tool keeps its name, and waits for no consent.
const UPSTREAM: &str = "prefix = \"\"\nfirst = \"publish\"\n";

/// Serves the echo tool on the generator's core, and returns its address.
pub(crate) fn serve_upstream(place: &BenchPaths) -> anyhow::Result<(MeasuredProcess, String)> {
    let port = free_port()?;
    let mut server = Command::new(place.binary("bench-rmcp"));
    server.args([&port.to_string(), "http", "1"]);
    let log = place.peer_folder("upstream")?.join(format!("{port}.log"));
    let mut server = MeasuredProcess::start(&server, &place.load_core, &log)?;
    // A proxy that finds nothing there ends at once.
    server.wait(START_MAX, || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    })?;
    Ok((server, format!("http://127.0.0.1:{port}/mcp")))
}

/// Returns contracts with the tool that is called, and as many more like it as are wanted.
fn contracts(backend: WeirBackend, tools: usize) -> Vec<Value> {
    if !backend.is_adapter() {
        return Vec::new();
    }
    let names: Vec<String> = (0..tools).map(tool_name).collect();
    let contract = |(number, names): (usize, &[String])| {
        ticket::contract(
            &format!("support-{number}"),
            backend.name(),
            &backend.settings(),
            names,
        )
    };
    names
        .chunks(CONTRACT_TOOLS)
        .enumerate()
        .map(contract)
        .collect()
}

fn tool_name(number: usize) -> String {
    match number {
        0 => ticket::TOOL.to_owned(),
        number => format!("{}_{number:05}", ticket::TOOL),
    }
}

/// Rows of the table that every database serves.
pub(crate) const ROWS: usize = 1_000;
pub(crate) const CREATE_TABLE: &str = "CREATE TABLE tickets (ticket_id TEXT PRIMARY KEY, title TEXT NOT NULL, \
    status TEXT NOT NULL, priority TEXT NOT NULL, assignee TEXT NOT NULL, tags TEXT NOT NULL, description TEXT NOT NULL)";

pub(crate) fn insert_rows() -> String {
    let mut statement = "INSERT INTO tickets VALUES ".to_owned();
    for number in 0..ROWS {
        let comma = if number == 0 { "" } else { "," };
        let (id, title, assignee) = (1000 + number, ticket::TITLE, ticket::ASSIGNEE);
        let (tags, description) = (ticket::TAGS, ticket::description());
        let _ = write!(
            statement,
            "{comma}('T-{id}','{title}','open','high','{assignee}','{tags}','{description}')"
        );
    }
    statement
}

pub(crate) fn sqlite(path: &Path) -> anyhow::Result<()> {
    let database = rusqlite::Connection::open(path)?;
    database.execute_batch(&format!("{CREATE_TABLE}; {};", insert_rows()))?;
    Ok(())
}

fn csv() -> String {
    let mut text = "ticket_id,title,status,priority,assignee,tags,description\n".to_owned();
    for number in 0..ROWS {
        let (id, title, assignee) = (1000 + number, ticket::TITLE, ticket::ASSIGNEE);
        let (tags, description) = (ticket::TAGS.replace('"', "\"\""), ticket::description());
        let _ = writeln!(
            text,
            "T-{id},{title},open,high,{assignee},\"{tags}\",{description}"
        );
    }
    text
}
