//! Serves a spreadsheet, a database or a web service named on the command line, without a configuration.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use reqwest::Url;
use serde_json::{Value, json};
use weir::{
    app::GatewayApp,
    config::GatewayConfig,
    control::operations::{
        databases::{DatabaseRequest, DraftedDatabase, draft_all, find_references, find_tables},
        sources::{DataSource, SourceFailure, draft_of, read_shape},
    },
};
use weir_contracts::{compile, form};
use weir_plugin_host::ConnectionGrant;

use super::{
    CONNECTION, checked, connection_config, explained, file_source, folder_of,
    records::with_records,
    served_report::{ServedReport, database_report, sheet_report},
    state_folder, workbook,
};
use crate::{AppError, CliSettings};

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
const SQLITE_ENDINGS: [&str; 4] = ["db", "db3", "sqlite", "sqlite3"];
/// The schemes of the URLs of databases, with the kind of the connection.
const DATABASES: [(&str, &str); 4] = [
    ("postgresql", "postgresql"),
    ("postgres", "postgresql"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
];
const NOT_WRITTEN: &str = "it is served without --write";

/// The part of a source that is served, and its options.
#[derive(Args, Clone, Default)]
pub(crate) struct ServedPart {
    /// Let tools change the source (create, update, delete)
    #[arg(long, requires = "file")]
    pub(crate) write: bool,
    /// Tables and views of a database, with commas between them, instead of all
    #[arg(
        long,
        value_name = "TABLES",
        value_delimiter = ',',
        requires = "file",
        conflicts_with_all = ["sheets", "header_row", "records"]
    )]
    pub(crate) tables: Vec<String>,
    /// A sheet of a workbook, instead of all that have a header; may be repeated
    #[arg(
        long = "sheet",
        value_name = "NAME",
        requires = "file",
        conflicts_with = "records"
    )]
    pub(crate) sheets: Vec<String>,
    /// The row of the header, counted from 1, if titles or notes are above it
    #[arg(
        long,
        value_name = "ROW",
        requires = "file",
        conflicts_with = "records"
    )]
    pub(crate) header_row: Option<u32>,
    /// The name of the records, such as orders; by default the name of the file, database or URL
    #[arg(long, value_name = "WORDS", requires = "file")]
    pub(crate) name: Option<String>,
    /// The JSON Pointer to the records in the answer of a web service, such as /data/results
    #[arg(long, value_name = "POINTER", requires = "file")]
    pub(crate) records: Option<String>,
}

/// A source as the command line names it.
pub(crate) enum NamedSource {
    Sheet,
    Database(DatabasePlace),
    Service(Url),
}

/// A database, and how its connection reaches it.
pub(crate) struct DatabasePlace {
    /// The name of the file or the database, without anything that may be secret.
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    /// The connection's key for its location, with its value.
    pub(crate) place: (&'static str, String),
}

impl NamedSource {
    /// Parses an argument: a file, the URL of a database or a service, or `env:NAME`, a variable with such a URL.
    pub(crate) fn read(word: &Path) -> anyhow::Result<Self> {
        let text = word.to_str().unwrap_or_default();
        if let Some(variable) = text.strip_prefix("env:") {
            let url = std::env::var(variable).map_err(|_| {
                anyhow::anyhow!("the environment variable {variable} is not set, or not Unicode")
            })?;
            let place = DatabasePlace::of_url(&url, text).with_context(|| {
                format!("{variable} does not hold the URL of a database: write postgresql://… or mysql://…")
            })?;
            return Ok(Self::Database(place));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme {
                "http" | "https" => Ok(Self::Service(checked(text)?)),
                _ => DatabasePlace::of_url(text, text).map(Self::Database).with_context(|| {
                    format!(
                        "nothing is known of {scheme}:// addresses; a database is named by postgresql:// or mysql://, a service \
                         by http:// or https://"
                    )
                }),
            };
        }
        match is_sqlite(word)? {
            true => Ok(Self::Database(DatabasePlace::of_file(word)?)),
            false => Ok(Self::Sheet),
        }
    }
}

impl DatabasePlace {
    /// `written` is what the configuration has: the URL, or a reference to it.
    fn of_url(url: &str, written: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (_, kind) = DATABASES.iter().find(|(known, _)| *known == scheme)?;
        Some(Self {
            title: database_name(rest),
            kind,
            place: ("url", written.to_owned()),
        })
    }

    fn of_file(file: &Path) -> anyhow::Result<Self> {
        let path = file
            .canonicalize()
            .with_context(|| format!("{} cannot be opened", file.display()))?;
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        Ok(Self {
            title: stem.unwrap_or("database").to_owned(),
            kind: "sqlite",
            place: (
                "path",
                path.to_str()
                    .context("the file's name is not UTF-8")?
                    .to_owned(),
            ),
        })
    }

    pub(super) fn connection(&self, write: bool) -> Value {
        let (key, place) = &self.place;
        json!({ "kind": self.kind, *key: place, "write": write })
    }
}

/// Returns the name of the database in what follows the scheme of a URL. Nothing before the last `@` is looked at, since it
/// may be a part of the password.
fn database_name(rest: &str) -> String {
    // A password with these signs in it ends the address early.
    if rest
        .split_once(['?', '#'])
        .is_some_and(|(_, more)| more.contains('@'))
    {
        return "database".to_owned();
    }
    let named = rest.split(['?', '#']).next().unwrap_or_default();
    let behind = named.rsplit('@').next().unwrap_or_default();
    match behind.split_once('/') {
        Some((_, name)) if !name.is_empty() => name.to_owned(),
        _ => "database".to_owned(),
    }
}

/// Returns whether a file is a SQLite database: by its first bytes, or by its name if it is empty.
fn is_sqlite(file: &Path) -> anyhow::Result<bool> {
    use std::io::Read as _;
    let unreadable = || format!("{} cannot be opened", file.display());
    let mut head = Vec::new();
    // Before it is opened, which for a pipe waits until a program writes to it.
    let metadata = std::fs::metadata(file).with_context(unreadable)?;
    if metadata.is_dir() {
        anyhow::bail!("{} is a folder: name a file in it", file.display());
    }
    if !metadata.is_file() {
        anyhow::bail!(
            "{} is a pipe or a device: write its content to a file, and name that",
            file.display()
        );
    }
    std::fs::File::open(file)
        .with_context(unreadable)?
        .take(SQLITE_MAGIC.len() as u64)
        .read_to_end(&mut head)
        .with_context(unreadable)?;
    let ending = file.extension().and_then(|ending| ending.to_str());
    let is_named_so = ending.is_some_and(|ending| {
        let ending = ending.to_ascii_lowercase();
        SQLITE_ENDINGS.contains(&ending.as_str())
    });
    Ok(head == SQLITE_MAGIC || (head.is_empty() && is_named_so))
}

/// Returns a configuration that reaches one source and nothing else.
pub(crate) fn served_config(
    word: &Path,
    part: &ServedPart,
    settings: &CliSettings,
) -> Result<GatewayConfig, AppError> {
    let write = part.write;
    let source = NamedSource::read(word)?;
    part.check(&source)?;
    let (adapter, connection) = match source {
        NamedSource::Sheet => (
            "sheet",
            json!({ "kind": "files", "path": folder_of(word)?, "write": write }),
        ),
        NamedSource::Database(place) => ("sql", place.connection(write)),
        NamedSource::Service(url) => {
            let base_url = url.origin().ascii_serialization();
            let connection = json!({ "kind": "http", "base_url": base_url, "write": write });
            ("rest", connection)
        }
    };
    let mut config = GatewayConfig::bare(Path::new("."));
    config.folders.state = state_folder();
    settings.over(&mut config);
    let connection = connection_config(connection)?;
    config.connections.insert(CONNECTION.to_owned(), connection);
    let grant = if write {
        ConnectionGrant::Write
    } else {
        ConnectionGrant::Read
    };
    let plugin = config.plugins.entry(adapter.to_owned()).or_default();
    plugin.grants.insert(CONNECTION.to_owned(), grant);
    Ok(config)
}

/// Drafts a contract over a source and serves it. Returns how the source was understood, and what was left out.
pub(crate) async fn serve_source(
    started: &GatewayApp,
    word: &Path,
    part: &ServedPart,
) -> Result<ServedReport, AppError> {
    let shown = word.file_name().unwrap_or_default().to_string_lossy();
    match NamedSource::read(word)? {
        NamedSource::Database(place) => {
            let title = part.name.clone().unwrap_or(place.title);
            let sources = find_tables(&started.connections, CONNECTION, &part.tables).await;
            let sources = sources.map_err(|failure| database_failure(failure, &title))?;
            let request = DatabaseRequest {
                references: find_references(&started.connections, CONNECTION).await,
                ..part.request(title, sources)
            };
            serve_many(started, request).await
        }
        NamedSource::Sheet => {
            let source = part.sheet_source(word)?;
            let gateway = &started.gateway;
            let sheets = workbook::sheets(gateway, &source, &part.sheets).await;
            let sheets = sheets.map_err(|failure| explained(failure, gateway, &source))?;
            match sheets.several(source) {
                Ok(sheets) => {
                    let request = DatabaseRequest {
                        left_out: sheets.left_out,
                        ..part.request(sheets.title, sheets.sources)
                    };
                    serve_many(started, request).await
                }
                Err(one) => {
                    let (source, left_out) = *one;
                    let report = serve_one(started, &source, &shown, part.write).await?;
                    Ok(report.with_notes(left_out))
                }
            }
        }
        NamedSource::Service(url) => {
            let mut source = service_source(&url, CONNECTION, url.path(), part.records.as_deref());
            if let Some(name) = &part.name {
                source = DataSource::new(name, source.adapter, source.settings);
            }
            let (source, found) = with_records(&started.gateway, source).await;
            let report = serve_one(started, &source, &source.title, part.write).await?;
            Ok(report.with_notes(found.into_iter().collect()))
        }
    }
}

impl ServedPart {
    /// Returns the options of `weir call`: the caller may write a file of theirs, and no database.
    pub(crate) fn of_call(word: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            write: matches!(NamedSource::read(word)?, NamedSource::Sheet),
            ..Self::default()
        })
    }

    /// Refuses what the source does not have.
    fn check(&self, source: &NamedSource) -> anyhow::Result<()> {
        let has_sheets = !self.sheets.is_empty() || self.header_row.is_some();
        match source {
            NamedSource::Sheet if !self.tables.is_empty() => {
                anyhow::bail!("a spreadsheet has no tables: name its sheets with --sheet")
            }
            NamedSource::Database(_) if has_sheets => {
                anyhow::bail!("a database has no sheets: name its tables with --tables")
            }
            NamedSource::Service(_) if has_sheets || !self.tables.is_empty() => {
                anyhow::bail!(
                    "a web service has neither tables nor sheets: name where its records are with --records"
                )
            }
            NamedSource::Sheet | NamedSource::Database(_) if self.records.is_some() => {
                anyhow::bail!("--records is only for a web service")
            }
            _ => Ok(()),
        }
    }

    fn request(&self, title: String, sources: Vec<DataSource>) -> DatabaseRequest {
        DatabaseRequest {
            title,
            sources,
            references: Vec::new(),
            changes: self.write,
            read_only: (!self.write).then_some(NOT_WRITTEN),
            left_out: Vec::new(),
        }
    }

    fn sheet_source(&self, file: &Path) -> Result<DataSource, AppError> {
        let mut source = file_source(file, CONNECTION)?;
        if let Some(name) = &self.name {
            source = DataSource::new(name, source.adapter, source.settings);
        }
        if let Some(row) = self.header_row {
            source.settings["header_row"] = json!(row);
        }
        Ok(source)
    }
}

/// Returns the records at a path of a web service as a source.
pub(super) fn service_source(
    url: &Url,
    connection: &str,
    path: &str,
    records: Option<&str>,
) -> DataSource {
    let parts = url.path().rsplit('/');
    let name = parts.into_iter().find(|part| !part.is_empty());
    let mut settings =
        json!({ "connection": connection, "sample": true, "list": { "path": path } });
    if let Some(records) = records {
        settings["list"]["records"] = json!(records);
    }
    DataSource::new(name.unwrap_or("records"), "rest", settings)
}

/// Says what to do where a database cannot be looked at.
pub(super) fn database_failure(failure: SourceFailure, title: &str) -> AppError {
    match failure {
        SourceFailure::Unservable(why) => {
            anyhow::anyhow!("no part of `{title}` can be served. {}", why.join(" ")).into()
        }
        failure => anyhow::anyhow!("{title}: {failure}").into(),
    }
}

async fn serve_many(
    started: &GatewayApp,
    request: DatabaseRequest,
) -> Result<ServedReport, AppError> {
    let title = request.title.clone();
    let drafted = draft_all(&started.gateway, request).await;
    let drafted = drafted.map_err(|failure| database_failure(failure, &title))?;
    let report = database_report(&title, &drafted);
    let DraftedDatabase {
        contract, shapes, ..
    } = drafted;
    let read = form::read(&title, &contract)?;
    let compiled = compile::compile(&read, &shapes)?;
    started.control.publisher().serve_alone(compiled);
    Ok(report)
}

async fn serve_one(
    started: &GatewayApp,
    source: &DataSource,
    shown: &str,
    write: bool,
) -> Result<ServedReport, AppError> {
    let gateway = &started.gateway;
    let explain = |failure| explained(failure, gateway, source);
    let shape = read_shape(gateway, source).await.map_err(explain)?;
    let mut offered = shape.clone();
    if !write {
        offered.capabilities.write.clear();
        let why = || "the file is served without --write".to_owned();
        offered.capabilities.read_only.get_or_insert_with(why);
    }
    let drafted = draft_of(gateway, source, &offered).await;
    let drafted = drafted.map_err(explain)?;
    let report = sheet_report(&drafted, &shape);
    let read = form::read(shown, &drafted.contract)?;
    let named = read.collections.iter();
    let shapes = named
        .map(|collection| (collection.name.clone(), shape.clone()))
        .collect();
    started
        .control
        .publisher()
        .serve_alone(compile::compile(&read, &shapes)?);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_no_part_of_a_password() {
        for (rest, name) in [
            ("app:secret@db.example/shop", "shop"),
            ("app:se/cr@et@db.example:5432/shop?sslmode=require", "shop"),
            ("app:se?cret@db.example/shop", "database"),
            ("db.example", "database"),
            ("/shop", "shop"),
        ] {
            assert_eq!(database_name(rest), name, "{rest}");
        }
    }
}
