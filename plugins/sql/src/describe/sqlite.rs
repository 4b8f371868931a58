//! SQLite's catalogue, and a look at the data: a declared type is not enforced there. A column of integers may hold
//! texts, and a DATETIME is whatever was put in. So a column's type is the declared one if all its values agree with
//! it, and otherwise that of its values. The same data always gives the same shape.

use std::collections::HashMap;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{Error, Field, Type};

use super::{SqlDescription, ask, columns_of, no_table};
use crate::settings::{SqlSettings, SqlSource, quoted};
use crate::sqlite;

/// Columns looked at in one pass over the table.
const COLUMNS_A_PASS: usize = 40;
const INTEGER_MAX: i64 = (1 << 53) - 1;

const TABLE: &str = "SELECT name, type, \
    (SELECT sql FROM sqlite_schema AS made WHERE made.type = 'table' AND made.name = listed.name) AS sql \
    FROM pragma_table_list AS listed WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
/// A key that SQLite numbers is the number of the row, which needs no index.
const COLUMNS: &str = "SELECT name, type, \"notnull\" AS required, dflt_value IS NOT NULL AS defaulted, pk, hidden, \
    (SELECT count(*) FROM pragma_index_list(?1) WHERE origin = 'pk') AS key_indexes \
    FROM pragma_table_xinfo(?1) ORDER BY cid";

#[derive(Deserialize)]
struct SqliteTable {
    name: String,
    r#type: String,
    /// The statement that made it.
    sql: Option<String>,
}

impl SqliteTable {
    /// Returns why nothing is written to it.
    fn read_only(&self) -> Option<&'static str> {
        let sql = self.sql.as_deref().unwrap_or_default();
        let words: Vec<_> = sql.split_whitespace().collect();
        match self.r#type.as_str() {
            "view" => Some("A view is read-only."),
            "virtual" => Some("A virtual table is read-only."),
            // A new record would silently replace another one.
            _ if words
                .join(" ")
                .to_uppercase()
                .contains("ON CONFLICT REPLACE") =>
            {
                Some("A table with ON CONFLICT REPLACE is read-only.")
            }
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct SqliteColumnRow {
    name: String,
    r#type: String,
    required: i64,
    defaulted: i64,
    pk: i64,
    hidden: i64,
    key_indexes: i64,
}

pub(super) fn describe(settings: &SqlSettings) -> Result<SqlDescription, Error> {
    let (name, read_only) = match settings.source() {
        SqlSource::Query(text) => return query(settings, text),
        SqlSource::Table {
            schema: Some(schema),
            ..
        } if schema != "main" => return Err(no_table(settings)),
        SqlSource::Table { table, .. } => {
            let tables: Vec<SqliteTable> = ask(settings, TABLE, vec![json!(table)])?;
            let table = tables
                .into_iter()
                .next()
                .ok_or_else(|| no_table(settings))?;
            let read_only = table.read_only();
            (table.name, read_only)
        }
    };
    let listed: Vec<SqliteColumnRow> = ask(settings, COLUMNS, vec![json!(name)])?;
    let listed: Vec<_> = listed
        .into_iter()
        .filter(|column| column.hidden != 1)
        .collect();
    let seen = look(
        settings,
        &listed
            .iter()
            .map(|column| column.name.as_str())
            .collect::<Vec<_>>(),
    )?;
    let mut key: Vec<_> = listed.iter().filter(|column| column.pk > 0).collect();
    key.sort_by_key(|column| column.pk);
    let numbered =
        key.len() == 1 && key[0].key_indexes == 0 && key[0].r#type.eq_ignore_ascii_case("INTEGER");
    let mut key: Vec<_> = key.into_iter().map(|column| column.name.clone()).collect();
    // SQLite takes nulls in a PRIMARY KEY. A row that has one cannot be named.
    let is_null = |name: &String| {
        let mut all = listed.iter().zip(&seen);
        all.any(|(column, seen)| column.name == *name && seen.nulls > 0)
    };
    if key.iter().any(is_null) {
        key.clear();
    }
    let mut described = SqlDescription {
        key,
        read_only,
        ..SqlDescription::default()
    };
    for (column, seen) in listed.into_iter().zip(&seen) {
        let is_number = numbered && column.pk > 0;
        let is_computed = column.hidden > 1;
        described.add(
            &column.name,
            field(&column.name, &column.r#type, seen),
            |field| {
                let may_be_null = column.required == 0 || seen.infinities > 0;
                field.nullable = may_be_null && !is_number;
                field.generated = column.defaulted != 0 || is_number || is_computed;
                field.read_only = is_computed;
            },
        );
    }
    Ok(described)
}

fn query(settings: &SqlSettings, text: &str) -> Result<SqlDescription, Error> {
    let columns = columns_of(settings, text)?;
    let seen = look(
        settings,
        &columns
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
    )?;
    let mut described = SqlDescription {
        read_only: Some("A query is read-only."),
        ..SqlDescription::default()
    };
    for ((name, declared), seen) in columns.iter().zip(&seen) {
        if !settings.examples.is_empty() && declared.is_none() && seen.is_empty() {
            described.notes.push(format!(
                "The type of the column {name:?} is a guess, since no row was seen: give the parameters an `example` under \
                 which the query answers rows, or say the type under `shape:`."
            ));
        }
        let field = field(name, declared.as_deref().unwrap_or_default(), seen);
        described.add(name, field, |field| field.nullable = true);
    }
    Ok(described)
}

/// Adds the fields of the columns that a statement answers. SQLite does not report their types, so a column named like one
/// of the table has that one's type, and any other is text.
pub(super) fn add_returned(
    settings: &SqlSettings,
    table: Option<&str>,
    columns: Vec<(String, Option<String>)>,
    described: &mut SqlDescription,
) -> Result<(), Error> {
    let known = match (table, columns.is_empty()) {
        (Some(table), false) => describe(&settings.with_table(table))?,
        _ => SqlDescription::default(),
    };
    for (name, _) in columns {
        if known.left_out.contains(&name) {
            described.add(&name, None, |_| ());
            continue;
        }
        let found = known.fields.iter().find(|field| field.key == name);
        let field = match found {
            Some(found) => Field {
                generated: false,
                read_only: false,
                ..found.clone()
            },
            None => Field::new(&name, Type::String),
        };
        described.add(&name, Some(field.nullable(true)), |_| ());
    }
    Ok(())
}

/// The numbers of a column's values of each kind.
#[derive(Default)]
struct ColumnCounts {
    integers: i64,
    reals: i64,
    texts: i64,
    blobs: i64,
    nulls: i64,
    /// Those that are shown as null.
    infinities: i64,
    dates: i64,
    datetimes: i64,
    least: i64,
    most: i64,
}

impl ColumnCounts {
    fn is_empty(&self) -> bool {
        self.integers + self.reals + self.texts == 0
    }
}

fn look(settings: &SqlSettings, columns: &[&str]) -> Result<Vec<ColumnCounts>, Error> {
    let mut seen = Vec::new();
    for columns in columns.chunks(COLUMNS_A_PASS) {
        let list: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| counts(at, &quoted(column)))
            .collect();
        let text = format!(
            "SELECT {} FROM {}",
            list.join(", "),
            settings.source().sql()
        );
        let rows: Vec<HashMap<String, Option<serde_json::Number>>> =
            match ask(settings, &text, settings.examples.clone()) {
                Ok(rows) => rows,
                // A null where only a number is possible, as after LIMIT: nothing can be seen then.
                Err(error) if error.is("invalid") && !settings.examples.is_empty() => Vec::new(),
                Err(error)
                    if error.is("invalid") && matches!(settings.source(), SqlSource::Query(_)) =>
                {
                    return Err(error.field("query"));
                }
                Err(error) => return Err(error),
            };
        let row = rows.into_iter().next().unwrap_or_default();
        seen.extend((0..columns.len()).map(|at| {
            let number = |what: &str| {
                row.get(&format!("{what}{at}"))
                    .and_then(Option::as_ref)
                    .and_then(serde_json::Number::as_i64)
                    .unwrap_or(0)
            };
            ColumnCounts {
                integers: number("i"),
                reals: number("r"),
                texts: number("t"),
                blobs: number("b"),
                nulls: number("n"),
                infinities: number("x"),
                dates: number("d"),
                datetimes: number("m"),
                least: number("lo"),
                most: number("hi"),
            }
        }));
    }
    Ok(seen)
}

fn counts(at: usize, column: &str) -> String {
    let of = |storage: &str| format!("sum(typeof({column}) = '{storage}')");
    let date = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";
    format!(
        "{} AS i{at}, {} AS r{at}, {} AS t{at}, {} AS b{at}, {} AS n{at}, \
         sum(typeof({column}) = 'real' AND NOT {}) AS x{at}, \
         sum(typeof({column}) = 'text' AND {column} GLOB '{date}' AND date({column}) = {column}) AS d{at}, \
         sum(weir_datetime({column}, 'UTC') IS NOT NULL) AS m{at}, \
         min(CASE typeof({column}) WHEN 'integer' THEN {column} END) AS lo{at}, \
         max(CASE typeof({column}) WHEN 'integer' THEN {column} END) AS hi{at}",
        of("integer"),
        of("real"),
        of("text"),
        of("blob"),
        of("null"),
        sqlite::is_finite(column),
    )
}

/// Returns the field of a column; `None` for columns of bytes, which have no place in the value table.
fn field(name: &str, declared: &str, seen: &ColumnCounts) -> Option<Field> {
    if seen.blobs > 0
        || (declared.eq_ignore_ascii_case("BLOB") && seen.integers + seen.reals + seen.texts == 0)
    {
        return None;
    }
    let mut field = Field::new(name, kind(&declared.to_ascii_uppercase(), seen));
    field.native = Some(declared.to_owned());
    Some(field)
}

fn kind(declared: &str, seen: &ColumnCounts) -> Type {
    let says = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    let none = seen.is_empty();
    let numbers = seen.texts == 0;
    let whole = numbers && seen.reals == 0;
    if says(&["JSON"]) {
        return Type::Json;
    }
    if says(&["BOOL"]) && whole && (none || (seen.least >= 0 && seen.most <= 1)) {
        return Type::Boolean;
    }
    if says(&["INT"]) && whole {
        return integer(seen);
    }
    if says(&["DATETIME", "TIMESTAMP"])
        && seen.integers + seen.reals == 0
        && seen.datetimes == seen.texts
    {
        return Type::Datetime;
    }
    if declared == "DATE" && seen.integers + seen.reals == 0 && seen.dates == seen.texts {
        return Type::Date;
    }
    if says(&["DEC", "NUMERIC", "MONEY"]) && numbers {
        return Type::Decimal;
    }
    if says(&["REAL", "FLOA", "DOUB"]) && numbers {
        return Type::Number;
    }
    if says(&["CHAR", "CLOB", "TEXT", "UUID", "STRING"]) || none || seen.texts > 0 {
        return Type::String;
    }
    if whole { integer(seen) } else { Type::Number }
}

/// Returns the type that a column is declared with.
pub(super) fn declared_type(declared: &str) -> Type {
    kind(&declared.to_ascii_uppercase(), &ColumnCounts::default())
}

/// Returns `integer` while all values fit into one; a column that already holds larger ones is `decimal`.
fn integer(seen: &ColumnCounts) -> Type {
    if seen.least >= -INTEGER_MAX && seen.most <= INTEGER_MAX {
        Type::Integer
    } else {
        Type::Decimal
    }
}
