//! `weir draft`: looks at a source and prints a contract for it. `weir serve FILE` serves that draft at once.

mod connection;
mod database;
mod openapi;
mod records;
mod served;
mod served_report;
mod workbook;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use reqwest::Url;
use serde_json::{Value, json};
use weir::{
    config::GatewayConfig,
    control::operations::{
        databases::draft_all,
        sources::{DataSource, SourceFailure, look},
    },
    serving::ServingGateway,
};
use weir_connections::{ConnectionConfig, FailureCode};
use weir_plugin_host::{AdapterFailure, ConnectionGrant};

use self::connection::DraftConnection;
use self::served::database_failure;
pub(super) use self::{
    served::{ServedPart, serve_source, served_config},
    served_report::ServedReport,
};
use super::{AppError, CliSettings, Done, block_on, start};

/// The most characters of a source's own message that are shown.
const SOURCE_WORDS_MAX: usize = 300;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct DraftArgs {
    /// A spreadsheet (.csv, .tsv, .xlsx, .ods), a SQLite database, or the URL of a database, also as env:NAME
    #[arg(conflicts_with_all = ["connection", "url"])]
    file: Option<PathBuf>,
    /// A connection of the configuration
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,
    /// A table or view of the database; --all takes every one
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["url", "all"])]
    table: Option<String>,
    /// A file with a SELECT over that connection; `:name` in it is a parameter
    #[arg(
        long,
        value_name = "FILE.sql",
        requires = "connection",
        conflicts_with_all = ["table", "all"]
    )]
    query: Option<PathBuf>,
    /// A JSON endpoint that returns a list of records
    #[arg(long, value_name = "URL", conflicts_with = "connection")]
    url: Option<String>,
    /// The JSON Pointer to the records in the answer, such as /data/results
    #[arg(long, value_name = "POINTER", requires = "url", conflicts_with_all = ["file", "connection", "document"])]
    records: Option<String>,
    /// A sheet of a workbook, instead of all that have a header; may be repeated
    #[arg(long = "sheet", value_name = "NAME", requires = "file", conflicts_with_all = ["connection", "url", "document"])]
    sheets: Vec<String>,
    /// The row of the header, counted from 1, if titles or notes are above it
    #[arg(long, value_name = "ROW", requires = "file", conflicts_with_all = ["connection", "url", "document"])]
    header_row: Option<u32>,
    /// The name of the records, such as orders; by default the name of the file, table, URL or document
    #[arg(long, value_name = "WORDS")]
    name: Option<String>,
    #[command(flatten)]
    openapi: openapi::DraftOpenapiArgs,
    #[command(flatten)]
    settings: CliSettings,
}

/// The connection of a file that is served without a configuration.
const CONNECTION: &str = "source";
impl DraftArgs {
    pub(super) fn run(self) -> Done {
        let name = self.name.as_ref().map(|name| {
            let is_name = weir_contracts::name::check_contract(name).is_ok();
            match is_name {
                true => name.clone(),
                false => weir_contracts::draft::contract_name(name),
            }
        });
        if let Some(done) = self.openapi.run(name.as_deref()) {
            return done;
        }
        if self.query.is_none()
            && let Some(done) = self.of_database()
        {
            return done;
        }
        let (config, mut source, connection) = self.source()?;
        if let Some(name) = &self.name {
            source = DataSource::new(name, source.adapter, source.settings);
        }
        let writes = block_on(async {
            let started = start::briefly(config, None).await?;
            let gateway = &started.gateway;
            let (source, found) = records::with_records(gateway, source).await;
            let sheets = workbook::sheets(gateway, &source, &self.sheets);
            let sheets = sheets
                .await
                .map_err(|failure| explained(failure, gateway, &source))?;
            let (source, left_out) = match sheets.several(source) {
                Ok(request) => {
                    let title = request.title.clone();
                    let drafted = draft_all(gateway, request).await;
                    let drafted = drafted.map_err(|failure| database_failure(failure, &title))?;
                    return Ok::<_, AppError>(database::print_database(&drafted));
                }
                Err(one) => *one,
            };
            let drafted = look(gateway, &source).await;
            let drafted = drafted.map_err(|failure| explained(failure, gateway, &source))?;
            print!("{}", drafted.contract);
            for note in found.iter().chain(&drafted.notes).chain(&left_out) {
                eprintln!("note: {note}");
            }
            Ok(drafted.writes)
        })??;
        say_next(connection.as_ref(), writes);
        Ok(ExitCode::SUCCESS)
    }

    /// Returns a configuration that reaches the source, and the connection that `weir.toml` may lack.
    fn source(&self) -> Result<(GatewayConfig, DataSource, Option<DraftConnection>), AppError> {
        if let (Some(connection), Some(file)) = (&self.connection, &self.query) {
            return self.of_query(connection, file);
        }
        match (&self.file, &self.url) {
            (Some(_), _) if self.openapi.all => {
                Err(anyhow::anyhow!("--all is for a database or an --openapi document").into())
            }
            (Some(_), _) if self.table.is_some() => {
                Err(anyhow::anyhow!("a spreadsheet has no tables: name a sheet with --sheet").into())
            }
            (Some(file), _) => self.of_file(file),
            (_, Some(url)) => self.of_url(url),
            _ => Err(anyhow::anyhow!(
                "name a FILE, a --connection with a --table, a --query or --all, a --url, or an --openapi document"
            )
            .into()),
        }
    }

    fn of_file(
        &self,
        file: &Path,
    ) -> Result<(GatewayConfig, DataSource, Option<DraftConnection>), AppError> {
        let known = if self.settings.present() {
            Some(self.settings.config()?)
        } else {
            None
        };
        let connection =
            DraftConnection::to_folder(&folder_of(file)?, known.as_ref()).beside(&self.written());
        let (write, grant) = connection.may_write();
        let config = config_of(&connection.name, file, write, grant, &self.settings)?;
        let mut source = file_source(file, &connection.name)?;
        if let Some(row) = self.header_row {
            source.settings["header_row"] = json!(row);
        }
        Ok((config, source, Some(connection)))
    }

    fn of_url(
        &self,
        url: &str,
    ) -> Result<(GatewayConfig, DataSource, Option<DraftConnection>), AppError> {
        let url = checked(url)?;
        let mut config = self.settings.config()?;
        let (connection, path) = DraftConnection::to_host(&url, &config, self.settings.present());
        let connection = connection.beside(&self.written());
        if connection.is_new() {
            let settings =
                json!({ "kind": "http", "base_url": url.origin().ascii_serialization() });
            config
                .connections
                .insert(connection.name.clone(), connection_config(settings)?);
        }
        let grants = &mut config.plugins.entry("rest".to_owned()).or_default().grants;
        grants
            .entry(connection.name.clone())
            .or_insert(ConnectionGrant::Read);
        let source = served::service_source(&url, &connection.name, &path, self.records.as_deref());
        Ok((config, source, Some(connection)))
    }

    /// Returns the text of `weir.toml`; empty if there is none.
    fn written(&self) -> String {
        std::fs::read_to_string(self.settings.file()).unwrap_or_default()
    }

    /// Reads a query from a file. Its parameters are guessed, and written down in the draft.
    fn of_query(
        &self,
        connection: &str,
        file: &Path,
    ) -> Result<(GatewayConfig, DataSource, Option<DraftConnection>), AppError> {
        let config = self.known_database(connection)?.config;
        let query = std::fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let lines: Vec<&str> = query.lines().map(str::trim_end).collect();
        let query = lines.join("\n");
        let query = query.trim().trim_end_matches(';').trim_end();
        let name = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("records");
        let settings = json!({ "connection": connection, "query": query, "parameters": "guess" });
        Ok((config, DataSource::new(name, "sql", settings), None))
    }
}

/// Says how to continue from a draft.
fn say_next(connection: Option<&DraftConnection>, writes: bool) {
    let missing = connection.map(|connection| connection.missing(writes));
    let missing = missing.unwrap_or_default();
    eprintln!("\nSave it in your contracts folder, then serve it with `weir serve`.{missing}");
    eprintln!("\nConnect a client with `weir connect CLIENT`; `weir connect --help` names them.");
}

fn config_of(
    name: &str,
    file: &Path,
    write: bool,
    grant: ConnectionGrant,
    settings: &CliSettings,
) -> Result<GatewayConfig, AppError> {
    let mut config = GatewayConfig::bare(Path::new("."));
    config.folders.state = state_folder();
    settings.over(&mut config);
    let connection =
        connection_config(json!({ "kind": "files", "path": folder_of(file)?, "write": write }))?;
    config.connections.insert(name.to_owned(), connection);
    config
        .plugins
        .entry("sheet".to_owned())
        .or_default()
        .grants
        .insert(name.to_owned(), grant);
    Ok(config)
}

/// Says what to do where a source cannot be looked at from here.
fn explained(failure: SourceFailure, gateway: &ServingGateway, source: &DataSource) -> AppError {
    let why = match failure {
        SourceFailure::Adapter(AdapterFailure::Unavailable(adapter)) => anyhow::anyhow!(
            "no plugin provides the adapter `{adapter}`: this program carries none, and {} holds none; name a folder of plugins \
             with --plugins",
            gateway.config().folders.plugins.display()
        ),
        SourceFailure::Adapter(failure) => {
            let place = source.settings["path"].as_str();
            let place = place.unwrap_or(&source.title);
            anyhow::anyhow!("{place}: {failure}{}", source_words(&failure))
        }
        failure @ (SourceFailure::Shape(_)
        | SourceFailure::Connection(_)
        | SourceFailure::Absent(_)) => failure.into(),
        SourceFailure::Unservable(why) => anyhow::anyhow!(
            "no part of `{}` can be served. {}",
            source.title,
            why.join(" ")
        ),
    };
    why.into()
}

/// Returns the source's own message about a failure, only for the terminal.
fn source_words(failure: &AdapterFailure) -> String {
    let AdapterFailure::Guest(error) = failure else {
        return String::new();
    };
    // For a connection that may not be used, the details add nothing to the message.
    let is_forbidden = FailureCode::of_word(&error.code) == FailureCode::Forbidden;
    let Some(details) = error.details.as_deref().filter(|_| !is_forbidden) else {
        return String::new();
    };
    let words: Vec<&str> = details.split_whitespace().collect();
    let words: String = words.join(" ").chars().take(SOURCE_WORDS_MAX).collect();
    format!(" The source says: {words}")
}

fn file_source(file: &Path, connection: &str) -> Result<DataSource, AppError> {
    let name = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("records");
    let path = file
        .file_name()
        .and_then(|name| name.to_str())
        .context("the file's name is not UTF-8")?;
    let settings = json!({ "connection": connection, "path": path });
    Ok(DataSource::new(name, "sheet", settings))
}

fn connection_config(value: Value) -> anyhow::Result<ConnectionConfig> {
    Ok(serde_json::from_value(value)?)
}

fn folder_of(file: &Path) -> anyhow::Result<PathBuf> {
    let file = file
        .canonicalize()
        .with_context(|| format!("{} cannot be opened", file.display()))?;
    let folder = file.parent().context("a file lies in a folder")?;
    anyhow::ensure!(
        folder.to_str().is_some(),
        "the path {} is not UTF-8, and that of a connection has to be: move the file",
        folder.display()
    );
    Ok(folder.to_owned())
}

/// Reads the URL of an endpoint. A query is dropped, since it belongs into the contract.
fn checked(url: &str) -> anyhow::Result<Url> {
    let parsed = Url::parse(url).context("what is given is not a URL")?;
    anyhow::ensure!(
        matches!(parsed.scheme(), "http" | "https"),
        "{url} is not an http URL"
    );
    anyhow::ensure!(
        parsed.username().is_empty() && parsed.password().is_none(),
        "put credentials into weir.toml, not into the URL"
    );
    Ok(parsed)
}

/// Returns the state folder. It is not in the shared temporary folder, since compiled plugins are native code.
pub(super) fn state_folder() -> PathBuf {
    cache_folder().map_or_else(|| PathBuf::from(".weir"), |folder| folder.join("state"))
}

/// Returns the folder of this program in the user's cache.
pub(super) fn cache_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache"));
    Some(cache.or_else(home)?.join("weir"))
}
