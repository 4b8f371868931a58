//! The shape of a table, view or query, from the database's catalogue.

mod guess;
mod mysql;
mod postgresql;
mod sqlite;
mod written;

use std::collections::HashMap;

use weir_plugin_sdk::serde_json;
use weir_plugin_sdk::shape::Summaries;
use weir_plugin_sdk::{Error, Field, Shape, Type, log, matches, sql};

use crate::dialect::SqlDialect;
use crate::settings::{SqlSettings, quoted};

/// Rows in which values are looked for that are shown as null.
const ROWS_SEARCHED: u32 = 10_000;
/// Columns looked at in one statement.
const COLUMNS_A_PASS: usize = 200;

/// A source before it becomes a shape.
#[derive(Default)]
struct SqlDescription {
    fields: Vec<Field>,
    /// Columns of bytes, which have no place in the value table.
    left_out: Vec<String>,
    key: Vec<String>,
    /// A record can be changed by a key that the contract gives: the table's own is left out, since it does not hold for all rows.
    takes_given_key: bool,
    /// Notes for the person who drafts a contract.
    notes: Vec<String>,
    /// Why nothing can be written.
    read_only: Option<&'static str>,
}

impl SqlDescription {
    /// Adds the field of a column after `finish` completed it; a column without a field is left out.
    fn add(&mut self, name: &str, field: Option<Field>, finish: impl FnOnce(&mut Field)) {
        match field {
            Some(mut field) => {
                finish(&mut field);
                self.fields.push(field);
            }
            None => {
                log::info(&format!("The column {name:?} holds bytes and is left out."));
                self.left_out.push(name.to_owned());
            }
        }
    }
}

pub(crate) fn describe(settings: SqlSettings, dialect: SqlDialect) -> Result<Shape, Error> {
    if let Some(statement) = settings.statement(dialect)? {
        return written::describe(&settings, &statement, dialect);
    }
    let (settings, guesses) = match settings.guessed_query() {
        Some(query) => {
            let (params, notes) = guess::parameters(&settings, query, dialect)?;
            (settings.with_params(&params), notes)
        }
        None => (settings, Vec::new()),
    };
    let template = settings.template(dialect)?;
    let settings = match &template {
        Some(template) => settings.with_placeholders(template)?,
        None => settings,
    };
    let described = match dialect {
        SqlDialect::Sqlite => sqlite::describe(&settings)?,
        SqlDialect::Postgresql => postgresql::describe(&settings)?,
        SqlDialect::Mysql => mysql::describe(&settings)?,
    };
    let mut shape = Shape::new(settings.name());
    if let Some(template) = &template {
        shape.capabilities.params = template.params();
    }
    shape.notes = guesses;
    shape.notes.extend(described.notes);
    shape.fields = described.fields;
    shape.left_out = described.left_out;
    shape.key = described.key;
    // A key of bytes cannot identify a record here.
    if shape.key.iter().any(|key| shape.left_out.contains(key)) {
        shape.key.clear();
    }
    for field in &mut shape.fields {
        // A NULL key is refused, also where the database would take one.
        if shape.key.contains(&field.key) {
            field.nullable = false;
        }
    }
    let capabilities = &mut shape.capabilities;
    capabilities.read = true;
    capabilities.summaries = Summaries::All;
    capabilities.read_only = described.read_only.map(str::to_owned);
    if described.read_only.is_none() {
        let verbs: &[&str] = if shape.key.is_empty() && !described.takes_given_key {
            &["create"]
        } else {
            &["create", "update", "delete"]
        };
        capabilities.guarded_write = true;
        capabilities.write = verbs.iter().map(|verb| verb.to_string()).collect();
    }
    for field in &shape.fields {
        let names = matches::comparisons(field.kind)
            .iter()
            .map(|comparison| comparison.name().to_owned());
        capabilities
            .matches
            .insert(field.key.clone(), names.collect());
    }
    capabilities.order = match shape.fields.iter().all(|field| ordered(field.kind)) {
        true => vec!["*".to_owned()],
        false => shape
            .fields
            .iter()
            .filter(|field| ordered(field.kind))
            .map(|field| field.key.clone())
            .collect(),
    };
    Ok(shape)
}

/// Returns `true` for types whose values have an order.
pub(crate) fn ordered(kind: Type) -> bool {
    !matches!(kind, Type::Json | Type::Record | Type::List)
}

#[derive(serde::Deserialize)]
struct QueryColumn {
    name: String,
    r#type: Option<String>,
}

/// Returns the columns of a query: name and type as the database reports when it prepares it. The query is prepared as
/// it is, since then no database renames a second column with the same name, and also as the source it is going to be,
/// where it must remain a single query.
fn columns_of(settings: &SqlSettings, query: &str) -> Result<Vec<(String, Option<String>)>, Error> {
    let columns = prepared(settings, query.to_owned())?;
    check_names(&columns, "query")?;
    prepared(
        settings,
        format!("SELECT * FROM {}", settings.source().sql()),
    )?;
    Ok(columns)
}

/// Refuses two columns of one name. `what` is the setting that they come from.
fn check_names(columns: &[(String, Option<String>)], what: &str) -> Result<(), Error> {
    let mut names: Vec<_> = columns.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Error::invalid(format!(
            "The {what} answers two columns named {:?}; name them with AS.",
            twice[0]
        ))
        .field(what)),
        None => Ok(()),
    }
}

fn prepared(settings: &SqlSettings, text: String) -> Result<Vec<(String, Option<String>)>, Error> {
    prepared_as(settings, text, r#"{"describe":true}"#)
}

fn prepared_as(
    settings: &SqlSettings,
    text: String,
    options: &str,
) -> Result<Vec<(String, Option<String>)>, Error> {
    let is_statement = options.contains("statement");
    let what = if is_statement { "statement" } else { "query" };
    let options = Some(options.to_owned());
    let statement = sql::Statement {
        connection: settings.connection.clone(),
        text,
        options,
        ..sql::Statement::default()
    };
    let rows = sql::query(&statement).map_err(|error| match error.code.as_str() {
        "unavailable" | "timeout" | "cancelled" => error,
        // The grant or the connection does not allow writes.
        "denied" | "forbidden" if is_statement => error,
        // A fault of the operator's own query is not a changed source.
        _ => Error {
            details: error.details,
            ..Error::invalid(format!("The {what} cannot be prepared.")).field(what)
        },
    })?;
    let columns: Vec<QueryColumn> = parsed(&rows)?;
    Ok(columns
        .into_iter()
        .map(|column| (column.name, column.r#type))
        .collect())
}

pub(crate) fn ask<T: serde::de::DeserializeOwned>(
    settings: &SqlSettings,
    text: &str,
    parameters: Vec<serde_json::Value>,
) -> Result<Vec<T>, Error> {
    let statement = sql::Statement {
        connection: settings.connection.clone(),
        text: text.to_owned(),
        parameters,
        limit: 2000,
        options: None,
    };
    parsed(&sql::query(&statement)?)
}

/// Returns the columns that have a value for which their condition holds, in one of the first rows.
fn find_values(settings: &SqlSettings, columns: &[(&str, String)]) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for columns in columns.chunks(COLUMNS_A_PASS) {
        let names: Vec<_> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let list: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(at, (_, condition))| format!("MAX(CASE WHEN {condition} THEN 1 END) AS c{at}"))
            .collect();
        let text = format!(
            "SELECT {} FROM (SELECT {} FROM {} LIMIT {ROWS_SEARCHED}) AS searched",
            list.join(", "),
            names.join(", "),
            settings.source().sql()
        );
        let rows: Vec<HashMap<String, Option<i64>>> = match ask(settings, &text, Vec::new()) {
            Ok(rows) => rows,
            // The account that describes the table may have fewer rights than the one that reads it.
            Err(error) if error.is("denied") => return Ok(found),
            Err(error) => return Err(error),
        };
        let row = rows.into_iter().next().unwrap_or_default();
        let has_value = |at: usize| row.get(&format!("c{at}")).copied().flatten() == Some(1);
        let names = columns.iter().enumerate().filter(|(at, _)| has_value(*at));
        found.extend(names.map(|(_, (name, _))| (*name).to_owned()));
    }
    Ok(found)
}

fn parsed<T: serde::de::DeserializeOwned>(rows: &sql::Rows) -> Result<Vec<T>, Error> {
    serde_json::from_str(&rows.records)
        .map_err(|_| Error::internal("The answer of the database's catalogue cannot be read."))
}

fn no_table(settings: &SqlSettings) -> Error {
    Error::not_found(format!("There is no table or view {:?}.", settings.name())).field("table")
}
