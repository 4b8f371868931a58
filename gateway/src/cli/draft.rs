//! `weir draft`: looks at a source and prints a contract for it. `weir serve FILE` serves that draft at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use weir_connections::ConnectionConfig;
use weir_contracts::{
    Shape, compile,
    draft::{Draft as Drafted, Input},
    form,
    shape::Type,
};
use weir_plugin_host::{CallContext, CollectionRef, Grant, Query};

use super::{Done, Failure, Settings, block_on, start};
use crate::{app::App, config::Config, gateway::Gateway};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Draft {
    /// A spreadsheet: .csv, .tsv, .xlsx or .ods
    #[arg(conflicts_with_all = ["connection", "url"])]
    file: Option<PathBuf>,
    /// A connection of the configuration
    #[arg(long, value_name = "NAME", requires = "table")]
    connection: Option<String>,
    /// A table or view of that connection
    #[arg(long, value_name = "TABLE", requires = "connection")]
    table: Option<String>,
    /// A JSON endpoint that answers a list of records
    #[arg(long, value_name = "URL", conflicts_with = "connection")]
    url: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

/// A source to look at: which adapter reaches it, and how.
struct Source {
    /// The name of the contract.
    name: String,
    /// The title that the name is made from.
    title: String,
    adapter: &'static str,
    settings: Value,
}

/// The block with an address, so that `weir serve` listens wherever it is started from.
const LISTEN: &str = "[http]\nlisten = \"127.0.0.1:8484\"\n\n";

/// The connection that a file or a URL on the command line becomes.
pub(super) const CONNECTION: &str = "source";
/// Rows looked at for low-cardinality columns.
const ROWS_MAX: usize = 20_000;
const PAGE_ROWS: u32 = 1000;
/// The bound on the values of a choice list.
const CHOICES_MAX: usize = 12;

impl Source {
    fn new(title: &str, adapter: &'static str, settings: Value) -> Self {
        Self { name: weir_contracts::draft::contract_name(title), title: title.to_owned(), adapter, settings }
    }
}

impl Draft {
    pub(super) fn run(self) -> Done {
        let (config, source, snippet) = self.source()?;
        let drafted = block_on(async {
            let started = start::briefly(config, None).await?;
            look(&started.gateway, &source).await
        })??;
        print!("{}", drafted.contract);
        for note in &drafted.notes {
            eprintln!("note: {note}");
        }
        eprintln!("\nSave it in your contracts folder, then serve it with `weir serve`.{snippet}");
        eprintln!("\nConnect a client with `weir connect CLIENT`; `weir connect --help` names them.");
        Ok(ExitCode::SUCCESS)
    }

    fn source(&self) -> Result<(Config, Source, String), Failure> {
        if let Some(file) = &self.file {
            let folder = absolute(file)?.parent().map(Path::to_path_buf).unwrap_or_default();
            let snippet = format!(
                "\nIt needs this in weir.toml:\n\n{LISTEN}[connections.{CONNECTION}]\nkind = \"files\"\npath = {folder:?}\nwrite = true\n\n\
                 [plugins.sheet.grants]\n{CONNECTION} = \"write\"\n",
            );
            return Ok((file_config(file, true, &self.settings)?, file_source(file)?, snippet));
        }
        let mut config = self.settings.config()?;
        if let Some(url) = &self.url {
            let (base, path) = split(url)?;
            config.connections.insert(CONNECTION.into(), connection(json!({ "kind": "http", "base_url": base }))?);
            grant(&mut config, "rest", CONNECTION, Grant::Read);
            let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("records");
            let settings = json!({ "connection": CONNECTION, "sample": true, "list": { "path": path } });
            let snippet = format!(
                "\nIt needs this in weir.toml:\n\n{LISTEN}[connections.{CONNECTION}]\nkind = \"http\"\nbase_url = {base:?}\n\n\
                 [plugins.rest.grants]\n{CONNECTION} = \"read\"\n"
            );
            return Ok((config, Source::new(name, "rest", settings), snippet));
        }
        let (Some(connection), Some(table)) = (&self.connection, &self.table) else {
            return Err(anyhow::anyhow!("name a FILE, a --connection with a --table, or a --url").into());
        };
        if !config.connections.contains_key(connection) {
            let known: Vec<&str> = config.connections.keys().map(String::as_str).collect();
            return Err(
                anyhow::anyhow!("there is no connection `{connection}`; there are [{}]", known.join(", ")).into()
            );
        }
        let settings = json!({ "connection": connection, "table": table });
        Ok((config, Source::new(table, "sql", settings), String::new()))
    }
}

/// Returns a configuration that reaches one spreadsheet and nothing else.
pub(super) fn file_config(file: &Path, write: bool, settings: &Settings) -> Result<Config, Failure> {
    let path = absolute(file)?;
    let folder = path.parent().context("a file lies in a folder")?;
    let mut config = Config::bare(Path::new("."));
    config.folders.state = state_folder();
    settings.over(&mut config);
    config
        .connections
        .insert(CONNECTION.into(), connection(json!({ "kind": "files", "path": folder, "write": write }))?);
    grant(&mut config, "sheet", CONNECTION, if write { Grant::Write } else { Grant::Read });
    Ok(config)
}

/// Drafts the file's contract and serves it; without the right to write it gets no writing tools.
pub(super) async fn serve_file(started: &App, file: &Path) -> Result<(), Failure> {
    let source = file_source(file)?;
    let shape = shape(&started.gateway, &source).await?;
    let mut offered = shape.clone();
    let config = started.gateway.config();
    let sheet = config.plugins.get("sheet");
    if !matches!(sheet.and_then(|plugin| plugin.grants.get(CONNECTION)), Some(Grant::Write)) {
        offered.capabilities.write.clear();
        offered.capabilities.read_only.get_or_insert_with(|| "the file is served without --write".to_owned());
    }
    let drafted = draft(&started.gateway, &source, &offered).await?;
    for note in &drafted.notes {
        tracing::info!("{note}");
    }
    let read = form::read(&file.display().to_string(), &drafted.contract)?;
    let shapes = read.collections.iter().map(|collection| (collection.name.clone(), shape.clone())).collect();
    started.registry.serve(compile::compile(&read, &shapes)?);
    Ok(())
}

async fn look(gateway: &Gateway, source: &Source) -> Result<Drafted, Failure> {
    let mut shape = shape(gateway, source).await?;
    if let Some(why) = read_only(gateway, source).filter(|_| !shape.capabilities.write.is_empty()) {
        shape.capabilities.write.clear();
        shape.capabilities.read_only.get_or_insert(why);
    }
    draft(gateway, source, &shape).await
}

/// Returns why nothing can be written through the connection of a source, if the configuration says so.
fn read_only(gateway: &Gateway, source: &Source) -> Option<String> {
    let name = source.settings["connection"].as_str()?;
    let config = gateway.config();
    if !config.connections.get(name)?.is_writable() {
        return Some(format!("`[connections.{name}] write` is false"));
    }
    let grant = config.plugins.get(source.adapter).and_then(|plugin| plugin.grants.get(name));
    let is_granted = matches!(grant, Some(Grant::Write));
    (!is_granted).then(|| format!("`[plugins.{}.grants] {name}` is not \"write\"", source.adapter))
}

async fn shape(gateway: &Gateway, source: &Source) -> Result<Shape, Failure> {
    let described = gateway.host().describe(source.adapter, &source.settings.to_string()).await;
    let described = described.map_err(|failure| match failure {
        weir_plugin_host::AdapterFailure::Unavailable(adapter) => anyhow::anyhow!(
            "no plugin provides the adapter `{adapter}`: this program carries none, and {} holds none; name a folder of plugins \
             with --plugins",
            gateway.config().folders.plugins.display()
        ),
        failure => match source.settings["path"].as_str() {
            Some(file) => anyhow::anyhow!("{file}: {failure}"),
            None => anyhow::anyhow!("{failure}"),
        },
    })?;
    Ok(Shape::read(&described).map_err(anyhow::Error::msg).context("the adapter answered no shape")?)
}

async fn draft(gateway: &Gateway, source: &Source, shape: &Shape) -> Result<Drafted, Failure> {
    let choices = choices(gateway, source, shape).await;
    let drafted = weir_contracts::draft::draft(&Input {
        name: &source.name,
        title: &source.title,
        adapter: source.adapter,
        settings: &source.settings,
        shape,
        choices: &choices,
    });
    Ok(drafted)
}

/// Returns the values of text columns that hold few; a source that cannot be read has none.
async fn choices(gateway: &Gateway, source: &Source, shape: &Shape) -> BTreeMap<String, Vec<String>> {
    let texts: Vec<String> =
        shape.fields.iter().filter(|field| field.kind == Type::String).map(|field| field.key.clone()).collect();
    let mut seen: BTreeMap<String, BTreeSet<String>> = texts.iter().map(|key| (key.clone(), BTreeSet::new())).collect();
    let collection = CollectionRef {
        key: format!("draft/{}", source.name).into(),
        adapter: source.adapter.into(),
        settings: source.settings.to_string().into(),
        shape: serde_json::to_string(shape).expect("plain data").into(),
    };
    let context = CallContext {
        tenant: Arc::from("local"),
        call_id: Arc::from("draft"),
        deadline: Instant::now() + Duration::from_secs(30),
        cancel: CancellationToken::new(),
        ran_on: Arc::default(),
        events: None,
    };
    let mut query = Query {
        columns: shape.fields.iter().map(|field| field.key.clone()).collect(),
        order: shape.key.clone().into(),
        limit: PAGE_ROWS,
        ..Query::default()
    };
    let mut rows = 0;
    while rows < ROWS_MAX && !seen.is_empty() {
        let page = match gateway.host().read(&context, &collection, &Arc::new(query.clone())).await {
            Ok(page) => page,
            Err(failure) => {
                tracing::debug!(%failure, "no rows to look at");
                break;
            }
        };
        let Ok(records) = serde_json::from_str::<Vec<BTreeMap<String, Value>>>(&page.records) else { break };
        rows += records.len();
        for record in &records {
            seen.retain(|key, values| {
                if let Some(Value::String(value)) = record.get(key) {
                    values.insert(value.clone());
                }
                values.len() <= CHOICES_MAX
            });
        }
        match page.next {
            Some(next) if !records.is_empty() => query.cursor = Some(next),
            _ => break,
        }
    }
    // A list of choices is worth its place only where values repeat. Days and numbers go on beyond those that are there.
    let is_word = |value: &String| !value.starts_with(|first: char| first.is_ascii_digit());
    seen.retain(|_, values| values.len() >= 2 && values.len() * 3 <= rows && values.iter().any(is_word));
    seen.into_iter().map(|(key, values)| (key, values.into_iter().collect())).collect()
}

fn file_source(file: &Path) -> Result<Source, Failure> {
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("records");
    let path = file.file_name().and_then(|name| name.to_str()).context("the file's name is not UTF-8")?;
    let settings = json!({ "connection": CONNECTION, "path": path });
    Ok(Source::new(name, "sheet", settings))
}

fn connection(value: Value) -> anyhow::Result<ConnectionConfig> {
    Ok(serde_json::from_value(value)?)
}

fn grant(config: &mut Config, plugin: &str, connection: &str, grant: Grant) {
    let settings = config.plugins.entry(plugin.to_owned()).or_default();
    settings.grants.insert(connection.to_owned(), grant);
}

fn absolute(file: &Path) -> anyhow::Result<PathBuf> {
    file.canonicalize().with_context(|| format!("{} cannot be opened", file.display()))
}

/// Splits a URL into base address and path. A query is dropped, since it belongs into the contract.
fn split(url: &str) -> anyhow::Result<(String, String)> {
    let parsed = reqwest::Url::parse(url).with_context(|| format!("{url} is not a URL"))?;
    anyhow::ensure!(matches!(parsed.scheme(), "http" | "https"), "{url} is not an http URL");
    anyhow::ensure!(
        parsed.username().is_empty() && parsed.password().is_none(),
        "put credentials into weir.toml, not into the URL"
    );
    Ok((parsed.origin().ascii_serialization(), parsed.path().to_owned()))
}

/// Returns the state folder. It is not in the shared temporary folder, since compiled plugins are native code.
pub(super) fn state_folder() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    cache.or(home).map_or_else(|| PathBuf::from(".weir"), |folder| folder.join("weir").join("state"))
}
