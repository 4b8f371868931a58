//! Many sources as one contract: the tables of a database, or the sheets of a workbook.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use weir_connections::{
    ConnectionError, ConnectionHandle, ConnectionRegistry,
    browse::{ForeignKey, SourceQuery},
};
use weir_contracts::{
    CollectionShape,
    draft::{
        ColumnSamples, DatabaseDraft, DatabaseInput, DraftInput, LeftOutTable, TableDraft,
        TableReference, contract_name, draft_database,
    },
    shape::ValueType,
};
use weir_plugin_host::AdapterQuery;
use weir_text::shorten;

use super::sources::{DataSource, SourceFailure, read_only, read_records, read_shape, sample};
use crate::serving::ServingGateway;

/// The most tools of one contract that is drafted this way: an agent reads them all.
pub const TOOLS_MAX: usize = 100;
/// The most tables of one database that are considered.
const TABLES_MAX: usize = 5_000;
/// The most records of a table that is served without a key.
const SMALL_ROWS_MAX: u32 = 1_000;
/// Rows of each table that are searched for columns with few values.
const LOOKED_AT_MAX: usize = 5_000;
/// The time that listing the tables may take.
const LISTING_MAX: Duration = Duration::from_secs(30);
/// The most names in one message.
const NAMED_MAX: usize = 60;

/// The tables that are drafted as one contract.
pub struct DatabaseRequest {
    pub title: String,
    /// Its tables, each titled with the name that people use.
    pub sources: Vec<DataSource>,
    /// The foreign keys between them.
    pub references: Vec<TableReference>,
    /// Whether records may also be changed and deleted, if the source supports it.
    pub changes: bool,
    /// Why nothing may be written, in addition to the reasons in the configuration.
    pub read_only: Option<&'static str>,
    /// Names without a table.
    pub left_out: Vec<LeftOutTable>,
}

/// The sheets of a workbook.
#[derive(Default)]
pub struct WorkbookSheets {
    /// Sources with a table; the title of each is its name.
    pub tables: Vec<DataSource>,
    pub left_out: Vec<LeftOutTable>,
}

/// A contract, and the shapes it was made from.
pub struct DraftedDatabase {
    pub contract: String,
    pub writes: bool,
    pub tables: Vec<TableDraft>,
    pub left_out: Vec<LeftOutTable>,
    /// Whether these are sheets.
    pub is_workbook: bool,
    /// By collection.
    pub shapes: BTreeMap<String, CollectionShape>,
}

/// Returns the tables and views of a connection as sources: all, or only the named ones. An unknown name is refused with a list
/// of the known ones.
pub async fn find_tables(
    connections: &ConnectionRegistry,
    name: &str,
    wanted: &[String],
) -> Result<Vec<DataSource>, SourceFailure> {
    let known = list_tables(connections, name).await?;
    let is_known = |table: &&String| !known.contains(*table);
    if let Some(absent) = wanted.iter().find(is_known) {
        return Err(SourceFailure::Absent(format!(
            "there is no table or view `{}`; {}",
            shorten(absent, 64),
            named(&known)
        )));
    }
    let wanted: BTreeSet<&String> = wanted.iter().collect();
    let tables = known
        .iter()
        .filter(|table| wanted.is_empty() || wanted.contains(table));
    let source = |table: &String| {
        DataSource::new(table, "sql", json!({ "connection": name, "table": table }))
    };
    Ok(tables.map(source).collect())
}

/// Returns the sheets of a workbook. A workbook with one sheet has none, nor has a file that is not a workbook.
pub async fn find_sheets(
    gateway: &ServingGateway,
    source: &DataSource,
) -> Result<WorkbookSheets, SourceFailure> {
    let shape = read_shape(gateway, source).await?;
    let mut sheets = WorkbookSheets::default();
    for part in shape.parts {
        match part.left_out {
            Some(why) => sheets.left_out.push(LeftOutTable {
                table: part.name,
                why,
            }),
            None => {
                let mut settings = source.settings.clone();
                settings["sheet"] = json!(part.name);
                let table = DataSource::new(&part.name, source.adapter, settings);
                sheets.tables.push(table);
            }
        }
    }
    Ok(sheets)
}

/// Returns the names of the tables and views that a connection may read.
pub async fn list_tables(
    connections: &ConnectionRegistry,
    name: &str,
) -> Result<Vec<String>, SourceFailure> {
    let Some(connection @ ConnectionHandle::Sql(_)) = connections.get(name) else {
        let why = format!("`{name}` is not an open connection to a database");
        return Err(SourceFailure::Absent(why));
    };
    let deadline = Instant::now() + LISTING_MAX;
    let mut tables: Vec<String> = Vec::new();
    loop {
        let after = tables.last().cloned().unwrap_or_default();
        let query = SourceQuery {
            text: "",
            after: &after,
            deadline,
        };
        let page = connection.sources(query).await?;
        tables.extend(page.sources.into_iter().map(|source| source.name));
        if page.next.is_none() || tables.len() >= TABLES_MAX {
            return Ok(tables);
        }
    }
}

/// Returns the foreign keys of a database: none if they cannot be read.
pub async fn find_references(connections: &ConnectionRegistry, name: &str) -> Vec<TableReference> {
    let Some(connection) = connections.get(name) else {
        return Vec::new();
    };
    let deadline = Instant::now() + LISTING_MAX;
    let keys = connection.foreign_keys(deadline).await;
    let keys = keys.unwrap_or_else(|error| {
        tracing::warn!(connection = name, %error, "the foreign keys are not known: no record is related to another");
        Vec::new()
    });
    let reference = |key: ForeignKey| TableReference {
        table: key.table,
        columns: key.columns,
        other_table: key.other_table,
        other_columns: key.other_columns,
    };
    keys.into_iter().map(reference).collect()
}

/// Lists the tables for a message.
pub fn named(tables: &[String]) -> String {
    if tables.is_empty() {
        return "it has no table or view that may be read".to_owned();
    }
    let names: Vec<String> = tables
        .iter()
        .take(NAMED_MAX)
        .map(|table| format!("`{table}`"))
        .collect();
    let more = match tables.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", names.join(", "))
}

/// Drafts one contract over many sources. Each source that cannot be in it is left out, with the reason.
pub async fn draft_all(
    gateway: &ServingGateway,
    request: DatabaseRequest,
) -> Result<DraftedDatabase, SourceFailure> {
    let mut looked_at = Vec::new();
    let mut left_out = request.left_out;
    for source in request.sources {
        let why = match looked_at.len() < TOOLS_MAX {
            true => match look_at(gateway, &source, request.read_only).await {
                Ok(found) => {
                    looked_at.push((source, found));
                    continue;
                }
                Err(why) => why,
            },
            false => format!("only {TOOLS_MAX} tables are looked at"),
        };
        let table = source.title;
        left_out.push(LeftOutTable { table, why });
    }
    let inputs: Vec<DraftInput<'_>> = looked_at
        .iter()
        .map(|(source, found)| DraftInput {
            name: &source.name,
            title: &source.title,
            adapter: source.adapter,
            settings: &source.settings,
            shape: &found.offered,
            choices: &found.choices,
            samples: &found.samples,
        })
        .collect();
    let drafted = draft_database(&DatabaseInput {
        name: &contract_name(&request.title),
        title: &request.title,
        tables: &inputs,
        references: &request.references,
        changes: request.changes,
        tools_max: TOOLS_MAX,
    });
    drop(inputs);
    let reasons = |left_out: &[LeftOutTable]| match left_out.is_empty() {
        true => vec!["There is no table or view that may be read.".to_owned()],
        false => left_out
            .iter()
            .map(|table| format!("{}: {}.", table.table, table.why.trim_end_matches('.')))
            .collect(),
    };
    let drafted = drafted.map_err(|also| {
        left_out.extend(also);
        SourceFailure::Unservable(reasons(&left_out))
    })?;
    Ok(with_shapes(drafted, left_out, looked_at))
}

fn with_shapes(
    drafted: DatabaseDraft,
    mut left_out: Vec<LeftOutTable>,
    looked_at: Vec<(DataSource, TableLook)>,
) -> DraftedDatabase {
    left_out.extend(drafted.left_out);
    let is_workbook = looked_at
        .iter()
        .any(|(source, _)| source.adapter == "sheet");
    let mut by_table: BTreeMap<String, CollectionShape> = looked_at
        .into_iter()
        .map(|(source, found)| (source.title, found.shape))
        .collect();
    let shape = |table: &TableDraft| {
        let shape = by_table.remove(&table.table)?;
        Some((table.collection.clone(), shape))
    };
    DraftedDatabase {
        shapes: drafted.tables.iter().filter_map(shape).collect(),
        contract: drafted.contract,
        writes: drafted.writes,
        tables: drafted.tables,
        left_out,
        is_workbook,
    }
}

/// One table of a database, as it was found.
struct TableLook {
    /// As the source describes it.
    shape: CollectionShape,
    /// With only the writes that are allowed.
    offered: CollectionShape,
    choices: BTreeMap<String, Vec<String>>,
    samples: ColumnSamples,
}

/// Looks at one table. The error is the reason why it is left out.
async fn look_at(
    gateway: &ServingGateway,
    source: &DataSource,
    why_read_only: Option<&'static str>,
) -> Result<TableLook, String> {
    let shape = read_shape(gateway, source)
        .await
        .map_err(|failure| failure.to_string())?;
    let is_nested = |key: &&String| {
        let field = shape.field(key);
        field.is_some_and(|field| {
            matches!(
                field.kind,
                ValueType::Json | ValueType::Record | ValueType::List
            )
        })
    };
    if let Some(key) = shape.key.iter().find(is_nested) {
        return Err(format!(
            "its key has the column {key:?}, which holds no plain values"
        ));
    }
    let is_sheet = source.adapter == "sheet";
    if shape.key.is_empty() && !is_sheet && is_large(gateway, source, &shape).await? {
        return Err(format!(
            "it has no key, and more than {SMALL_ROWS_MAX} records"
        ));
    }
    let mut offered = shape.clone();
    let why_read_only = why_read_only.map(str::to_owned);
    if let Some(why) = why_read_only.or_else(|| read_only(gateway, source))
        && !offered.capabilities.write.is_empty()
    {
        offered.capabilities.write.clear();
        offered.capabilities.read_only.get_or_insert(why);
    }
    let (choices, samples) = sample(gateway, source, &shape, LOOKED_AT_MAX).await;
    Ok(TableLook {
        shape,
        offered,
        choices,
        samples,
    })
}

/// Returns whether a table has too many records to be served without a key.
async fn is_large(
    gateway: &ServingGateway,
    source: &DataSource,
    shape: &CollectionShape,
) -> Result<bool, String> {
    let columns = shape.fields.iter().map(|field| field.key.clone()).take(1);
    let query = AdapterQuery {
        columns: columns.collect(),
        limit: SMALL_ROWS_MAX,
        ..AdapterQuery::default()
    };
    let page = read_records(gateway, source, shape, &Arc::new(query)).await;
    match page {
        Ok(page) => Ok(page.next.is_some()),
        Err(failure) => Err(failure.to_string()),
    }
}

impl From<ConnectionError> for SourceFailure {
    fn from(error: ConnectionError) -> Self {
        if let Some(details) = &error.details {
            tracing::info!(details, "a connection refused: {}", error.message);
        }
        Self::Connection(error)
    }
}
