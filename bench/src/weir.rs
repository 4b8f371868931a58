//! A Weir to measure: its folder, its default configuration, a key, and afterwards the proof of its audit trail.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_bench::ticket;

use crate::place::Place;

/// The adapter that answers behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adapter {
    /// Part of the process: the call path alone.
    Noop,
    /// A small guest whose instance is kept for the tenant's next call (the default).
    WasmTenant,
    /// A small guest whose instance is made anew for every call.
    WasmCall,
    Sheet,
    Sqlite,
    Postgres,
}

/// The access of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The key may see everything.
    Wide,
    /// Single tools that are named.
    Narrow,
}

/// Tools that a narrow key names.
const NARROW_TOOLS: usize = 100;

pub(crate) struct House {
    folder: TempDir,
    program: PathBuf,
}

/// Tools of one contract; a large registry is many contracts.
const CONTRACT_TOOLS: usize = 1_000;
impl House {
    /// Folders, connections, grants and the size of a page are configured: all else is as shipped. The page stays at 100
    /// tools, so that lists of any length are compared by the same page.
    pub(crate) fn build(place: &Place, adapter: Adapter, tools: usize) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(&place.scratch)?;
        for name in ["contracts", "data", "plugins"] {
            fs::create_dir(folder.path().join(name))?;
        }
        if let Some(plugin) = adapter.plugin(place) {
            let name = plugin.file_name().context("a plugin is a file")?;
            fs::copy(&plugin, folder.path().join("plugins").join(name))
                .with_context(|| format!("{} is missing", plugin.display()))?;
        }
        let toml = adapter.configure(place, &folder.path().join("data"))?;
        let folders = "[folders]\ncontracts = \"contracts\"\nplugins = \"plugins\"\nstate = \"state\"\n";
        let page = "[http]\npage_size = 100\n";
        fs::write(folder.path().join("weir.toml"), format!("{folders}{page}{toml}"))?;
        for (number, contract) in contracts(adapter, tools).iter().enumerate() {
            fs::write(folder.path().join(format!("contracts/support-{number}.json")), contract.to_string())?;
        }
        let program = place.binary(if adapter == Adapter::Noop { "bench-weir" } else { "weir" });
        Ok(Self { folder, program })
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

    /// Adds one more plugin, and a contract over it.
    pub(crate) fn add(&self, plugin: &Path, contract: &Value) -> anyhow::Result<()> {
        let name = plugin.file_name().context("a plugin is a file")?;
        fs::copy(plugin, self.folder.path().join("plugins").join(name))
            .with_context(|| format!("{} is missing", plugin.display()))?;
        let file = format!("contracts/{}.json", contract["contract"].as_str().unwrap_or("more"));
        Ok(fs::write(self.folder.path().join(file), contract.to_string())?)
    }

    /// Makes a key of this gateway, which must be running.
    pub(crate) fn key(&self, agent: &str, holder: Holder) -> anyhow::Result<String> {
        let narrow: Vec<String> = match holder {
            Holder::Wide => Vec::new(),
            // The tool that is called stands among others, as in a list that an operator writes.
            Holder::Narrow => (0..NARROW_TOOLS).map(tool_name).collect(),
        };
        let mut words = vec!["keys", "create", "--agent", agent, "--tenant", agent, "--rate", ticket::RATE];
        words.extend(narrow.iter().flat_map(|tool| ["--tool", tool]));
        self.run(&words)
    }

    /// Address and key of the admin API of this gateway, which must be running.
    pub(crate) fn admin(&self) -> anyhow::Result<(String, String)> {
        let read =
            |name: &str| anyhow::Ok(fs::read_to_string(self.folder.path().join("state").join(name))?.trim().to_owned());
        Ok((read("admin.url")?, read("admin.token")?))
    }

    /// Returns how many calls are on record, and how many of them ended as `ok`, after proof that the trail is whole.
    pub(crate) fn verify_audit(&self) -> anyhow::Result<(u64, u64)> {
        self.run(&["audit", "verify"]).context("`weir audit verify` found something")?;
        let mut export = self.command(&["audit", "export", "--kind", "call"]).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(export.stdout.take().context("stdout is a pipe")?);
        let (mut recorded, mut ok, mut line) = (0, 0, String::new());
        while lines.read_line(&mut line)? > 0 {
            recorded += 1;
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
            bail!("weir {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--config").arg(self.folder.path().join("weir.toml")).current_dir(self.folder.path());
        // Whoever measures may have set these for a Weir of their own.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
            command.env_remove(name);
        }
        command
    }
}

impl Adapter {
    fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::WasmTenant | Self::WasmCall => "ticket",
            Self::Sheet => "sheet",
            Self::Sqlite | Self::Postgres => "sql",
        }
    }

    fn settings(self) -> Value {
        match self {
            Self::Noop | Self::WasmTenant | Self::WasmCall => json!({}),
            Self::Sheet => json!({ "connection": "tickets", "path": "tickets.csv" }),
            Self::Sqlite | Self::Postgres => json!({ "connection": "tickets", "table": "tickets" }),
        }
    }

    fn plugin(self, place: &Place) -> Option<PathBuf> {
        match self {
            Self::Noop => None,
            Self::WasmTenant | Self::WasmCall => Some(place.cache.join("test-guests/ticket.wasm")),
            Self::Sheet | Self::Sqlite | Self::Postgres => {
                Some(place.repository.join("plugins").join(format!("{}.wasm", self.name())))
            }
        }
    }

    /// Lays its data out in `data`, and says what the configuration has to name.
    fn configure(self, place: &Place, data: &Path) -> anyhow::Result<String> {
        let connection = match self {
            Self::Noop | Self::WasmTenant => return Ok(String::new()),
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
        };
        Ok(format!("[connections.tickets]\n{connection}\n[plugins.{}.grants]\ntickets = \"read\"\n", self.name()))
    }
}

/// Returns contracts with the tool that is called, and as many more like it as are wanted.
fn contracts(adapter: Adapter, tools: usize) -> Vec<Value> {
    let names: Vec<String> = (0..tools).map(tool_name).collect();
    let contract = |(number, names): (usize, &[String])| {
        ticket::contract(&format!("support-{number}"), adapter.name(), &adapter.settings(), names)
    };
    names.chunks(CONTRACT_TOOLS).enumerate().map(contract).collect()
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
        let _ = write!(statement, "{comma}('T-{id}','{title}','open','high','{assignee}','{tags}','{description}')");
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
        let _ = writeln!(text, "T-{id},{title},open,high,{assignee},\"{tags}\",{description}");
    }
    text
}
