//! The catalogue of MySQL and MariaDB.

use std::collections::HashMap;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::{Value, json};
use weir_plugin_sdk::{Error, Field, Type};
use weir_statements::write::WrittenTable;

use super::{SqlDescription, ask, columns_of, find_values, no_table};
use crate::mysql::{self, MysqlColumn};
use crate::settings::{SqlSettings, SqlSource, quoted};

const TABLE: &str = "SELECT TABLE_SCHEMA AS \"schema\", TABLE_TYPE AS kind, VERSION() AS version, \
    COALESCE((SELECT e.TRANSACTIONS FROM information_schema.ENGINES AS e WHERE e.ENGINE = t.ENGINE), 'YES') AS transactions \
    FROM information_schema.TABLES AS t \
    WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND CAST(TABLE_NAME AS BINARY) = CAST(? AS BINARY) \
    AND TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED', 'SYSTEM VIEW')";
const COLUMNS: &str = "SELECT COLUMN_NAME AS name, COLUMN_TYPE AS native, CHARACTER_SET_NAME AS charset, \
    IS_NULLABLE AS nullable, COLUMN_DEFAULT AS \"default\", EXTRA AS extra, GENERATION_EXPRESSION AS computed, \
    COLUMN_COMMENT AS description \
    FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
const KEY: &str = "SELECT COLUMN_NAME AS name FROM information_schema.STATISTICS \
    WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX";
/// The checks of MariaDB, whose JSON is a text with one.
const CHECKS: &str = "SELECT CHECK_CLAUSE AS clause FROM information_schema.CHECK_CONSTRAINTS \
    WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ?";

#[derive(Deserialize)]
struct MysqlTable {
    schema: String,
    kind: String,
    version: String,
    transactions: String,
}

#[derive(Deserialize)]
struct MysqlColumnRow {
    name: String,
    native: String,
    charset: Option<String>,
    nullable: String,
    default: Option<String>,
    extra: String,
    computed: Option<String>,
    description: String,
}

#[derive(Deserialize)]
struct KeyColumn {
    name: String,
}

#[derive(Deserialize)]
struct CheckClause {
    clause: String,
}

pub(super) fn describe(settings: &SqlSettings) -> Result<SqlDescription, Error> {
    let (schema, name) = match settings.source() {
        SqlSource::Query(query) => return describe_query(settings, query),
        SqlSource::Table { schema, table } => (schema, table),
    };
    let tables: Vec<MysqlTable> = ask(settings, TABLE, vec![json!(schema), json!(name)])?;
    let table = tables
        .into_iter()
        .next()
        .ok_or_else(|| no_table(settings))?;
    let place: Vec<Value> = vec![json!(table.schema), json!(name)];
    let mut columns: Vec<MysqlColumnRow> = ask(settings, COLUMNS, place.clone())?;
    let key: Vec<KeyColumn> = ask(settings, KEY, place.clone())?;
    let is_mariadb = table.version.contains("MariaDB");
    let is_view = table.kind.ends_with("VIEW");
    if is_mariadb {
        let checks: Vec<CheckClause> = ask(settings, CHECKS, place)?;
        for column in &mut columns {
            if checks
                .iter()
                .any(|check| is_json(&check.clause, &column.name))
            {
                column.native = "json".to_owned();
                column.charset = None;
            }
        }
    }
    // A versioned table's key ends with the time until which a row is valid, which is the same in all that are shown.
    let is_end = |part: &KeyColumn| {
        columns
            .iter()
            .any(|column| column.name == part.name && column.computed.as_deref() == Some("ROW END"))
    };
    let key = key.into_iter().filter(|part| !is_end(part));
    let mut key: Vec<_> = key.map(|part| part.name).collect();
    let zeros = match is_view {
        true => Vec::new(),
        false => find_zeros(settings, &columns)?,
    };
    // A row whose key is shown as null cannot be named.
    if zeros.iter().any(|zero| key.contains(zero)) {
        key.clear();
    }
    let read_only = if is_view {
        Some("A view is read-only.")
    } else if table.transactions != "YES" {
        Some("The table's engine has no transactions, so that a write could not be taken back.")
    } else if key.is_empty() && !is_mariadb {
        Some("MySQL cannot show what was written into a table without a key.")
    } else {
        None
    };
    let mut described = SqlDescription {
        key,
        read_only,
        ..SqlDescription::default()
    };
    let names: Vec<_> = columns
        .iter()
        .map(|column| (column.name.as_str(), column.native.as_str()))
        .collect();
    let odd = find_odd_booleans(settings, &names)?;
    for column in &columns {
        let mut field = field(&column.name, &column.native, &odd);
        let extra = column.extra.to_ascii_lowercase();
        let default = column
            .default
            .as_deref()
            .filter(|default| *default != "NULL");
        let is_numbered = extra.contains("auto_increment");
        if let Some(native) = field.as_mut().and_then(|field| field.native.as_mut()) {
            if is_numbered {
                native.push_str(" auto_increment");
            }
            if column.charset.as_deref() == Some("utf8mb4") {
                native.push_str(" charset utf8mb4");
            }
        }
        described.add(&column.name, field, |field| {
            // A date of zeros is shown as null.
            let is_zero = default.is_some_and(|default| default.contains("0000-00-00"));
            let has_zeros = is_zero || zeros.contains(&column.name);
            field.nullable = column.nullable != "NO" || is_view || has_zeros;
            field.read_only =
                extra.contains("stored generated") || extra.contains("virtual generated");
            field.generated = is_numbered
                || field.read_only
                || default.is_some()
                || extra.contains("default_generated");
            field.description =
                Some(column.description.clone()).filter(|description| !description.is_empty());
        });
    }
    Ok(described)
}

/// Checks that what a statement writes into a table can be rolled back.
pub(super) fn check_written(settings: &SqlSettings, written: &WrittenTable) -> Result<(), Error> {
    let name = &written.name;
    let mut tables: Vec<MysqlTable> =
        ask(settings, TABLE, vec![json!(written.schema), json!(name)])?;
    if tables.is_empty() {
        // Some servers keep all names in lower case. If they do not, the statement cannot be prepared.
        let schema = written.schema.as_ref().map(|schema| schema.to_lowercase());
        let place = vec![json!(schema), json!(name.to_lowercase())];
        tables = ask(settings, TABLE, place)?;
    }
    let message = match tables.first() {
        None => format!("There is no table {name:?}."),
        Some(table) if table.kind.ends_with("VIEW") => {
            format!("{name:?} is a view: write into its table, whose engine is then known.")
        }
        Some(table) if table.transactions != "YES" => {
            format!(
                "The engine of {name:?} has no transactions, so that a write could not be taken back; InnoDB has them."
            )
        }
        Some(_) => return Ok(()),
    };
    Err(Error::invalid(message).field("statement"))
}

fn describe_query(settings: &SqlSettings, query: &str) -> Result<SqlDescription, Error> {
    let columns: Vec<(String, String)> = columns_of(settings, query)?
        .into_iter()
        .map(|(name, native)| (name, native.unwrap_or_default()))
        .collect();
    let names: Vec<_> = columns
        .iter()
        .map(|(name, native)| (name.as_str(), native.as_str()))
        .collect();
    let odd = find_odd_booleans(settings, &names)?;
    let mut described = SqlDescription {
        read_only: Some("A query is read-only."),
        ..SqlDescription::default()
    };
    for (name, native) in &columns {
        described.add(name, field(name, native, &odd), |field| {
            field.nullable = true;
        });
    }
    Ok(described)
}

/// Returns the field of a column; `None` for columns of bytes, which have no place in the value table.
fn field(name: &str, native: &str, odd: &[String]) -> Option<Field> {
    let kind = match mysql::kind(native)? {
        Type::Boolean if odd.iter().any(|odd| odd == name) => Type::Integer,
        kind => kind,
    };
    let mut field = Field::new(name, kind);
    field.native = Some(native.to_owned());
    Some(field)
}

/// Returns the columns that are declared as `tinyint(1)`, as BOOLEAN is, and hold other numbers than 0 and 1.
fn find_odd_booleans(
    settings: &SqlSettings,
    columns: &[(&str, &str)],
) -> Result<Vec<String>, Error> {
    let columns: Vec<&str> = columns
        .iter()
        .filter(|(_, native)| native.starts_with("tinyint(1)"))
        .map(|(name, _)| *name)
        .collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(at, name)| format!("MAX({} NOT IN (0, 1)) AS c{at}", quoted(name)))
        .collect();
    let text = format!(
        "SELECT {} FROM {}",
        list.join(", "),
        settings.source().sql()
    );
    let rows: Vec<HashMap<String, Option<i64>>> = ask(settings, &text, settings.examples.clone())?;
    let row = rows.into_iter().next().unwrap_or_default();
    let is_odd = |at: usize| row.get(&format!("c{at}")).copied().flatten() == Some(1);
    Ok(columns
        .into_iter()
        .enumerate()
        .filter(|(at, _)| is_odd(*at))
        .map(|(_, name)| name.to_owned())
        .collect())
}

/// Returns the columns that may not be null and have a date or time that is shown as null, such as one of zeros, in one of the
/// first rows.
fn find_zeros(settings: &SqlSettings, columns: &[MysqlColumnRow]) -> Result<Vec<String>, Error> {
    let required = columns.iter().filter(|column| column.nullable == "NO");
    let fields: Vec<Field> = required
        .filter_map(|column| field(&column.name, &column.native, &[]))
        .collect();
    let searched: Vec<(&str, String)> = fields
        .iter()
        .filter_map(|field| {
            let finite = MysqlColumn { field, zone: "UTC" }.finite()?;
            Some((field.key.as_str(), format!("NOT ({finite})")))
        })
        .collect();
    find_values(settings, &searched)
}

/// Recognizes ``json_valid(`column`)``, in quotes of either kind.
fn is_json(clause: &str, column: &str) -> bool {
    let inside = clause
        .strip_prefix("json_valid(")
        .and_then(|rest| rest.strip_suffix(')'));
    inside.is_some_and(|name| name.trim_matches(['`', '"']) == column)
}
