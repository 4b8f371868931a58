//! `weir draft` of a database: one table, or every table and view as one contract.

use std::process::ExitCode;

use weir::{
    app::GatewayApp,
    config::GatewayConfig,
    control::operations::{
        databases::{
            DatabaseRequest, DraftedDatabase, draft_all, find_references, find_tables, list_tables,
            named,
        },
        sources::{DataSource, look},
    },
};
use weir_connections::ConnectionConfig;
use weir_contracts::draft::{ContractDraft as OneDraft, TableDraft as DraftedTable};
use weir_plugin_host::ConnectionGrant;

use super::{
    DraftArgs,
    connection::DraftConnection,
    connection_config, explained, say_next,
    served::{DatabasePlace, NamedSource, database_failure},
    served_report::is_known,
};
use crate::{AppError, Done, block_on, start};

/// A database that is drafted from.
pub(super) struct SourceDatabase {
    pub(super) config: GatewayConfig,
    /// The name of its connection.
    connection: String,
    title: String,
    /// The connection that `weir.toml` may lack.
    lacking: Option<DraftConnection>,
}

impl DraftArgs {
    /// Drafts from a database, if one is named.
    pub(super) fn of_database(&self) -> Option<Done> {
        let database = match (&self.file, &self.connection) {
            (Some(file), _) => match NamedSource::read(file) {
                Ok(NamedSource::Database(place)) => self.named_database(&place),
                Ok(NamedSource::Sheet) => return None,
                Ok(NamedSource::Service(_)) => {
                    Err(anyhow::anyhow!("name the URL of a web service with --url").into())
                }
                Err(error) => Err(error.into()),
            },
            (None, Some(connection)) => self.known_database(connection),
            (None, None) => {
                let needs_one = (self.table.is_some() || self.openapi.all) && self.url.is_none();
                return needs_one.then(|| {
                    Err(
                        anyhow::anyhow!("name the database: a FILE or URL, or a --connection")
                            .into(),
                    )
                });
            }
        };
        Some(database.and_then(|database| self.draft_database(database)))
    }

    /// Returns a database that the command line names.
    fn named_database(&self, place: &DatabasePlace) -> Result<SourceDatabase, AppError> {
        let known = match self.settings.present() {
            true => Some(self.settings.config()?),
            false => None,
        };
        let lacking = DraftConnection::to_database(place, known.as_ref()).beside(&self.written());
        let mut config = match known {
            Some(config) => config,
            None => self.settings.config()?,
        };
        let name = lacking.name.clone();
        if lacking.is_new() {
            let connection = connection_config(place.connection(false))?;
            config.connections.insert(name.clone(), connection);
        }
        let plugin = config.plugins.entry("sql".to_owned()).or_default();
        plugin
            .grants
            .entry(name.clone())
            .or_insert(ConnectionGrant::Read);
        Ok(SourceDatabase {
            config,
            connection: name,
            title: place.title.clone(),
            lacking: Some(lacking),
        })
    }

    /// Returns a database of the configuration.
    pub(super) fn known_database(&self, connection: &str) -> Result<SourceDatabase, AppError> {
        let config = self.settings.config()?;
        let Some(known) = config.connections.get(connection) else {
            let names: Vec<&str> = config.connections.keys().map(String::as_str).collect();
            return Err(anyhow::anyhow!(
                "there is no connection `{connection}`; there are [{}]",
                names.join(", ")
            )
            .into());
        };
        if matches!(
            known,
            ConnectionConfig::Files { .. } | ConnectionConfig::Http { .. }
        ) {
            return Err(anyhow::anyhow!(
                "`{connection}` is not a database: name a FILE of a folder, and a path of a web service with --url"
            )
            .into());
        }
        Ok(SourceDatabase {
            connection: connection.to_owned(),
            title: connection.to_owned(),
            lacking: None,
            config,
        })
    }

    fn draft_database(&self, database: SourceDatabase) -> Done {
        let SourceDatabase {
            config,
            connection,
            title,
            lacking,
        } = database;
        let title = self.name.clone().unwrap_or(title);
        let writes = block_on(async {
            let started = start::briefly(config, None).await?;
            if self.openapi.all {
                let drafted = self.every_table(&started, &connection, &title).await?;
                return Ok::<_, AppError>(print_database(&drafted));
            }
            let drafted = self.one_table(&started, &connection).await?;
            print!("{}", drafted.contract);
            for note in &drafted.notes {
                eprintln!("note: {note}");
            }
            Ok(drafted.writes)
        })??;
        say_next(lacking.as_ref(), writes);
        Ok(ExitCode::SUCCESS)
    }

    async fn every_table(
        &self,
        started: &GatewayApp,
        connection: &str,
        title: &str,
    ) -> Result<DraftedDatabase, AppError> {
        let sources = find_tables(&started.connections, connection, &[]).await;
        let sources = sources.map_err(|failure| database_failure(failure, title))?;
        let request = DatabaseRequest {
            title: title.to_owned(),
            sources,
            references: find_references(&started.connections, connection).await,
            changes: false,
            read_only: None,
            left_out: Vec::new(),
        };
        let drafted = draft_all(&started.gateway, request).await;
        drafted.map_err(|failure| database_failure(failure, title))
    }

    async fn one_table(
        &self,
        started: &GatewayApp,
        connection: &str,
    ) -> Result<OneDraft, AppError> {
        let listed = list_tables(&started.connections, connection).await;
        let table = match (&self.table, listed) {
            (Some(table), Ok(known)) if !is_among(table, &known) => {
                return Err(anyhow::anyhow!(
                    "{connection}: there is no table or view `{table}`; {}",
                    named(&known)
                )
                .into());
            }
            (Some(table), _) => table.clone(),
            (None, Ok(known)) if known.len() == 1 => known[0].clone(),
            (None, Ok(known)) => {
                return Err(anyhow::anyhow!(
                    "{connection}: name a table with --table, or take every one with --all; {}",
                    named(&known)
                )
                .into());
            }
            (None, Err(failure)) => return Err(database_failure(failure, connection)),
        };
        let mut source = DataSource::new(
            &table,
            "sql",
            serde_json::json!({ "connection": connection, "table": table }),
        );
        if let Some(name) = &self.name {
            source = DataSource::new(name, source.adapter, source.settings);
        }
        let gateway = &started.gateway;
        let drafted = look(gateway, &source).await;
        drafted.map_err(|failure| explained(failure, gateway, &source))
    }
}

/// Returns whether a database has a table of this name, in any case or with its schema.
fn is_among(table: &str, known: &[String]) -> bool {
    let bare = table.rsplit_once('.').map_or(table, |(_, bare)| bare);
    let is_same = |known: &String| {
        let names = [known.as_str(), known.rsplit('.').next().unwrap_or_default()];
        names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(table) || *known == bare)
    };
    known.iter().any(is_same)
}

/// Prints the contract of a whole database and its notes. Returns whether it writes.
pub(super) fn print_database(drafted: &DraftedDatabase) -> bool {
    print!("{}", drafted.contract);
    for table in &drafted.tables {
        for note in table.notes.iter().filter(|note| !is_known(note)) {
            eprintln!("note: {}: {note}", table.table);
        }
    }
    for table in &drafted.left_out {
        eprintln!(
            "left out: {}: {}.",
            table.table,
            table.why.trim_end_matches('.')
        );
    }
    let names = |is_meant: &dyn Fn(&DraftedTable) -> bool| {
        let tables = drafted.tables.iter().filter(|table| is_meant(table));
        let names: Vec<&str> = tables.map(|table| table.table.as_str()).collect();
        names.join(", ")
    };
    let has_no_key = |table: &DraftedTable| {
        let shape = drafted.shapes.get(&table.collection);
        shape.is_some_and(|shape| shape.key.is_empty())
    };
    let keyless = names(&has_no_key);
    if !keyless.is_empty() {
        eprintln!(
            "note: no lookup, since there is no key: {keyless}. If a column identifies records, write `key: [column]`."
        );
    }
    let mut shapes = drafted.shapes.values();
    let why = shapes.find_map(|shape| shape.capabilities.read_only.as_deref());
    match (drafted.writes, why) {
        (true, _) => {}
        (false, Some(why)) => eprintln!("note: no tool writes: {why}."),
        (false, None) => {
            eprintln!("note: no tool writes, since neither the connection nor its grant allows it.")
        }
    }
    drafted.writes
}
