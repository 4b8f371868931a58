//! Guesses the parameters of a query from the expressions that they are compared with, for a first form that a person
//! reviews.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::shape::Param;
use weir_plugin_sdk::{Error, Field, Type};
use weir_statements::{StatementToken, TokenKind, tokens};

use super::{ask, postgresql, sqlite};
use crate::dialect::SqlDialect;
use crate::mysql;
use crate::parameters::refused;
use crate::settings::SqlSettings;

const SQLITE: &str = "SELECT columns.name, columns.type FROM pragma_table_list AS tables, \
    pragma_table_xinfo(tables.name) AS columns WHERE tables.schema = 'main' AND lower(tables.name) IN \
    (SELECT value FROM json_each(?1))";
const POSTGRESQL: &str = "SELECT columns.attname::text AS name, types.typname::text AS type FROM pg_class AS tables \
    JOIN pg_attribute AS columns ON columns.attrelid = tables.oid JOIN pg_type AS types ON types.oid = columns.atttypid \
    WHERE tables.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(tables.oid) AND columns.attnum > 0 \
    AND NOT columns.attisdropped AND lower(tables.relname) IN (SELECT json_array_elements_text($1::text::json))";
const MYSQL: &str = "SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type FROM information_schema.COLUMNS \
    WHERE TABLE_SCHEMA = DATABASE() AND JSON_CONTAINS(?, JSON_QUOTE(LOWER(TABLE_NAME)))";

/// PostgreSQL's types whose values are compared with texts.
const POSTGRESQL_TEXTS: [&str; 5] = ["text", "varchar", "bpchar", "citext", "name"];

#[derive(Deserialize)]
struct KnownColumn {
    name: String,
    r#type: String,
}

/// Facts about a parameter from the text of a query.
#[derive(Default)]
struct ParameterGuess {
    /// The column it is compared with.
    column: Option<String>,
    kind: Option<Type>,
    is_list: bool,
    may_be_null: bool,
}

/// Returns the parameters of a query in their order, and a note for each whose type could not be seen.
pub(super) fn parameters(
    settings: &SqlSettings,
    query: &str,
    dialect: SqlDialect,
) -> Result<(Vec<Param>, Vec<String>), Error> {
    let all = tokens(query, dialect.syntax()).map_err(|unclosed| refused(&unclosed))?;
    let code: Vec<&StatementToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
    let mut sights: Vec<(&str, ParameterGuess)> = Vec::new();
    for (place, token) in code.iter().enumerate() {
        if token.kind != TokenKind::Parameter {
            continue;
        }
        let name = &token.text[1..];
        let known = sights.iter().position(|(seen, _)| *seen == name);
        let at = known.unwrap_or_else(|| {
            sights.push((name, ParameterGuess::default()));
            sights.len() - 1
        });
        look_around(&code, place, &mut sights[at].1);
    }
    let columns = known_columns(settings, &code, dialect)?;
    let mut notes = Vec::new();
    let params = sights.into_iter().map(|(name, sight)| {
        let of_column = sight
            .column
            .as_ref()
            .and_then(|column| columns.get(&column.to_lowercase()).copied().flatten());
        let kind = sight.kind.or(of_column);
        if kind.is_none() {
            notes.push(format!(
                "The type of the parameter {name:?} is not known from a column it is compared with: it is string. For a column of another type, such as uuid, write the cast."
            ));
        }
        let kind = kind.unwrap_or(Type::String);
        if dialect == SqlDialect::Sqlite && kind == Type::Datetime {
            notes.push(format!(
                "The parameter {name:?} is a datetime: compare it with `weir_datetime(column, 'UTC')`, since SQLite compares the texts of the column as they are written."
            ));
        }
        Param {
            name: name.to_owned(),
            kind: if sight.is_list { Type::List } else { kind },
            required: !sight.may_be_null,
            description: None,
            items: sight.is_list.then(|| Box::new(Field::new("", kind))),
        }
    });
    Ok((params.collect(), notes))
}

/// Reads the tokens around one place of a parameter.
fn look_around(code: &[&StatementToken<'_>], place: usize, sight: &mut ParameterGuess) {
    let word = |at: Option<usize>, words: &[&str]| {
        at.and_then(|at| code.get(at))
            .is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    };
    let back = |steps: usize| place.checked_sub(steps);
    if word(Some(place + 1), &["is"]) {
        sight.may_be_null = true;
        return;
    }
    if word(back(1), &["limit", "offset"]) {
        sight.kind.get_or_insert(Type::Integer);
        return;
    }
    if word(back(1), &["like", "ilike"]) {
        sight.kind.get_or_insert(Type::String);
        return;
    }
    let mut before = back(1);
    if word(before, &["and"]) && word(back(3), &["between"]) {
        before = back(3);
    }
    if before.is_some_and(|at| code[at].is_symbol("(")) && word(back(2), &["in"]) {
        sight.is_list = true;
        before = back(2);
    }
    let is_operator = |token: &StatementToken<'_>| {
        token.kind == TokenKind::Symbol && matches!(token.text, "=" | "<" | ">" | "!")
    };
    let mut is_compared = word(before, &["in", "between"]);
    while let Some(at) = before
        && (is_operator(code[at]) || word(before, &["in", "between", "not"]))
    {
        is_compared = true;
        before = at.checked_sub(1);
    }
    let column = match before.filter(|_| is_compared) {
        Some(at) => name_of(code[at]),
        None => {
            let mut next = place + 1;
            while code.get(next).is_some_and(|token| is_operator(token)) {
                next += 1;
            }
            let is_qualified = code.get(next + 1).is_some_and(|dot| dot.is_symbol("."));
            let at = if is_qualified { next + 2 } else { next };
            (next > place + 1)
                .then(|| code.get(at).and_then(|token| name_of(token)))
                .flatten()
        }
    };
    if sight.column.is_none() {
        sight.column = column;
    }
}

/// Returns the name that a token is, if it is one.
fn name_of(token: &StatementToken<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.to_owned()),
        TokenKind::Quoted if !token.text.starts_with('\'') => {
            token.text.get(1..token.text.len() - 1).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the types of the columns of all tables that a query names; `None` for a name with several.
fn known_columns(
    settings: &SqlSettings,
    code: &[&StatementToken<'_>],
    dialect: SqlDialect,
) -> Result<BTreeMap<String, Option<Type>>, Error> {
    let mut names: Vec<String> = code.iter().filter_map(|token| name_of(token)).collect();
    names
        .iter_mut()
        .for_each(|name| *name = name.to_lowercase());
    names.sort_unstable();
    names.dedup();
    let text = match dialect {
        SqlDialect::Sqlite => SQLITE,
        SqlDialect::Postgresql => POSTGRESQL,
        SqlDialect::Mysql => MYSQL,
    };
    let found: Vec<KnownColumn> = ask(settings, text, vec![json!(names).to_string().into()])?;
    let mut columns: BTreeMap<String, Option<Type>> = BTreeMap::new();
    for column in found {
        let kind = match dialect {
            SqlDialect::Sqlite => Some(sqlite::declared_type(&column.r#type)),
            // A type other than text, such as uuid, is not compared with one.
            SqlDialect::Postgresql => postgresql::declared_type(&column.r#type).filter(|kind| {
                *kind != Type::String || POSTGRESQL_TEXTS.contains(&column.r#type.as_str())
            }),
            SqlDialect::Mysql => mysql::kind(&column.r#type),
        };
        columns
            .entry(column.name.to_lowercase())
            .and_modify(|known| *known = known.filter(|known| Some(*known) == kind))
            .or_insert(kind);
    }
    Ok(columns)
}
