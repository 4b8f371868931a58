//! Names the columns at fault where a database refuses what is written: it may name an index, a constraint, an expression or
//! several columns, or nothing at all.

use serde::Deserialize;
use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{Change, Error, Value, Verb, sql};
use weir_statements::{StatementToken, TokenKind, tokens};

use crate::SqlAdapter;
use crate::column::SqlColumn;
use crate::describe::ask;
use crate::dialect::SqlDialect;
use crate::settings::SqlSource;
use crate::statement::StatementBuilder;

/// The messages of a connection about a value that must be unique, a rule, and a value that its column does not take.
const TAKEN: &str = "a record with this value already exists";
const RULE: &str = "a rule of the table refuses the record";
const UNFIT: &str = "a value does not fit its column";

/// The most values that are tried one by one: each is a statement.
const TRIALS_MAX: usize = 32;

/// The rule of a constraint, which may be one of a partition.
const POSTGRESQL_RULE: &str = "SELECT pg_get_constraintdef(c.oid) AS text FROM pg_catalog.pg_constraint c \
    WHERE c.contype = 'c' AND c.conname = $2 AND (c.conrelid = to_regclass($1) \
        OR c.conrelid IN (SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = to_regclass($1))) LIMIT 1";
/// The types with their bounds, and the most characters or bits, which a cast would cut to.
const POSTGRESQL_TYPES: &str = "SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type, \
    CASE WHEN a.atttypmod > 4 AND a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) THEN a.atttypmod - 4 \
         WHEN a.atttypmod > 0 AND a.atttypid IN ('bit'::regtype, 'varbit'::regtype) THEN a.atttypmod END AS most, \
    a.atttypid = 'bit'::regtype AS is_exact \
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";
const MYSQL_INDEX: &str = "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ', ') AS text \
    FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND INDEX_NAME = ?";
const MYSQL_RULE: &str = "SELECT CHECK_CLAUSE AS text FROM information_schema.CHECK_CONSTRAINTS \
    WHERE CONSTRAINT_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND CONSTRAINT_NAME = ? LIMIT 1";

#[derive(Deserialize)]
struct NamedText {
    text: Option<String>,
}

#[derive(Deserialize)]
struct BoundedType {
    name: String,
    r#type: String,
    most: Option<i64>,
    is_exact: bool,
}

/// A write that was refused.
pub(crate) struct FailedWrite<'a> {
    pub(crate) collection: &'a SqlAdapter,
    pub(crate) dialect: SqlDialect,
    pub(crate) change: &'a Change,
}

impl FailedWrite<'_> {
    /// Returns the refusal in the words of every adapter, with the column at fault if that can be found.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match error.code.as_str() {
            "not_found" if self.change.verb == Verb::Create => Error {
                code: "invalid".into(),
                message: "The database left the record out, as a trigger or a rule of its table requires.".into(),
                ..error
            },
            "not_found" => Error {
                message: "There is no record with this key.".into(),
                ..error
            },
            // Another change that came between is a conflict, too.
            "conflict" if error.message == TAKEN => self.explain_taken(error),
            "invalid" => self.explain_invalid(error),
            _ => error,
        }
    }

    fn explain_taken(&self, error: Error) -> Error {
        let key = &self.collection.shape.key;
        let columns = match &error.field {
            // MySQL does not name the index of a primary key.
            None => key.clone(),
            Some(named) => self.find_columns(named, true),
        };
        if !columns.is_empty() && columns.iter().all(|column| key.contains(column)) {
            let message = match self.change.verb {
                Verb::Create => "There is a record with this key already.",
                _ => "Another record has this key already.",
            };
            return Error {
                message: message.into(),
                field: columns.first().cloned(),
                ..error
            };
        }
        Error {
            message: match columns.len() {
                0 | 1 => "There is a record with this value already.".into(),
                _ => format!(
                    "There is a record with these values of {} already.",
                    join_names(&columns)
                ),
            },
            field: self.first_given(&columns),
            ..error
        }
    }

    fn explain_invalid(&self, error: Error) -> Error {
        let is_rule = error.message == RULE;
        let columns = match &error.field {
            None => Vec::new(),
            Some(named) => self.find_columns(named, false),
        };
        if !columns.is_empty() {
            let message = match is_rule {
                true => format!(
                    "A rule of the table refuses what the record has in {}.",
                    join_names(&columns)
                ),
                false => error.message.clone(),
            };
            return Error {
                message,
                field: self.first_given(&columns),
                ..error
            };
        }
        let field = match (&error.field, error.message.as_str()) {
            (None, UNFIT) => self.find_unfit(),
            // A type may have a rule, too.
            (_, RULE) => self.try_values(),
            (field, _) => field.clone(),
        };
        Error { field, ..error }
    }

    /// Returns the columns of the shape that a database means by a name, a list of names, or an expression.
    fn find_columns(&self, named: &str, is_taken: bool) -> Vec<String> {
        let fields = &self.collection.shape.fields;
        let is_column = |name: &str| fields.iter().any(|field| field.key == name);
        let meant = match self.dialect {
            // An index may have the name of its first column.
            SqlDialect::Mysql if is_taken => self.find_text(MYSQL_INDEX, named),
            _ if is_column(named) || is_taken => None,
            SqlDialect::Mysql => self.find_text(MYSQL_RULE, named),
            SqlDialect::Postgresql => self.find_text(POSTGRESQL_RULE, named),
            SqlDialect::Sqlite => None,
        };
        let text = meant.as_deref().unwrap_or(named);
        if is_column(text) {
            return vec![text.to_owned()];
        }
        if text.split(", ").all(is_column) {
            return text.split(", ").map(str::to_owned).collect();
        }
        let all = tokens(text, self.dialect.syntax()).unwrap_or_default();
        let mut found: Vec<String> = Vec::new();
        for token in &all {
            let named = fields.iter().find(|field| is_name(token, &field.key));
            if let Some(field) = named.filter(|field| !found.contains(&field.key)) {
                found.push(field.key.clone());
            }
        }
        found
    }

    /// Asks the catalogue for the columns of an index or the text of a rule, by its name.
    fn find_text(&self, asked: &str, named: &str) -> Option<String> {
        let settings = &self.collection.settings;
        let SqlSource::Table { schema, table } = settings.source() else {
            return None;
        };
        let place = match self.dialect {
            SqlDialect::Mysql => vec![json!(schema), json!(table), json!(named)],
            _ => vec![json!(settings.source().sql()), json!(named)],
        };
        let found: Vec<NamedText> = ask(settings, asked, place).ok()?;
        found.into_iter().next()?.text
    }

    /// Returns the column that the change gives a value which its type does not take. PostgreSQL does not name it.
    fn find_unfit(&self) -> Option<String> {
        let mut given = self
            .change
            .record
            .iter()
            .filter(|(_, value)| !value.is_null());
        match (given.next(), given.next()) {
            (Some((only, _)), None) => Some(only.clone()),
            _ => self.try_values(),
        }
    }

    /// Tries each value of the change separately, and without the table. Returns the first column whose type refuses its value.
    fn try_values(&self) -> Option<String> {
        if self.dialect != SqlDialect::Postgresql {
            return None;
        }
        let settings = &self.collection.settings;
        let place = vec![json!(settings.source().sql())];
        let types: Vec<BoundedType> = ask(settings, POSTGRESQL_TYPES, place).ok()?;
        for (name, argument) in self.change.record.iter().take(TRIALS_MAX) {
            let bounded = types.iter().find(|bounded| bounded.name == *name)?;
            if argument.is_null() {
                continue;
            }
            match sql::query(&self.trial(argument, bounded)?) {
                Ok(rows) if rows.records.contains("\"c1\":true") => return Some(name.clone()),
                Ok(_) => {}
                Err(error) if error.is("invalid") => return Some(name.clone()),
                Err(_) => return None,
            }
        }
        None
    }

    /// Returns the statement that casts a value, and asks whether a cast would cut it.
    fn trial(&self, argument: &serde_json::Value, bounded: &BoundedType) -> Option<sql::Statement> {
        let SqlAdapter {
            shape,
            zone,
            settings,
            ..
        } = self.collection;
        let column = SqlColumn::find(shape, self.dialect, &bounded.name).ok()?;
        let value = Value::from_argument(argument, column.field, zone);
        let mut builder = StatementBuilder::new(self.dialect);
        let written = column.written(&value, &mut builder).ok()?;
        let is_cut = match bounded.most {
            None => "false".to_owned(),
            Some(most) if bounded.is_exact => format!("length({written}) <> {most}"),
            // Blanks at the end are cut when a row is written, too.
            Some(most) => format!("length(rtrim(({written})::text)) > {most}"),
        };
        builder.text = format!(
            "SELECT ({written})::{} IS NULL AS c0, {is_cut} AS c1",
            bounded.r#type
        );
        Some(builder.finish(&settings.connection, 1, None))
    }

    /// Returns the first of some columns that the change gives, or the first.
    fn first_given(&self, columns: &[String]) -> Option<String> {
        let is_given = |column: &&String| self.change.record.contains_key(*column);
        columns.iter().find(is_given).or(columns.first()).cloned()
    }
}

fn is_name(token: &StatementToken<'_>, key: &str) -> bool {
    match token.kind {
        TokenKind::Word => token.text.eq_ignore_ascii_case(key),
        TokenKind::Quoted if !token.text.starts_with('\'') => {
            let inside = token.text.get(1..token.text.len() - 1).unwrap_or_default();
            inside.replace("\"\"", "\"") == key
        }
        _ => false,
    }
}

fn join_names(columns: &[String]) -> String {
    let names: Vec<_> = columns.iter().map(|column| format!("{column:?}")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} and {last}", others.join(", "))
        }
        _ => names.concat(),
    }
}
