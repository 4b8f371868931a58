//! A statement under construction: text, and the values bound to it.

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::{Error, sql};

use crate::dialect::Dialect;

pub(crate) struct Builder {
    pub(crate) dialect: Dialect,
    pub(crate) text: String,
    parameters: Vec<serde_json::Value>,
}

/// A row, its columns by position: they are named `c0`, `c1`, … so that no name of a table is ever a key here.
pub(crate) type Row<'a> = std::collections::HashMap<&'a str, &'a RawValue>;

impl Builder {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new(), parameters: Vec::new() }
    }

    /// Binds a value and returns its place in the text.
    pub(crate) fn bind(&mut self, value: impl Into<serde_json::Value>) -> String {
        self.parameters.push(value.into());
        match self.dialect {
            Dialect::Sqlite => format!("?{}", self.parameters.len()),
            // PostgreSQL is told that each is a text, and casts.
            Dialect::Postgresql => format!("${}::text", self.parameters.len()),
        }
    }

    pub(crate) fn finish(self, connection: &str, limit: u32, options: Option<&str>) -> sql::Statement {
        sql::Statement {
            connection: connection.to_owned(),
            text: self.text,
            parameters: self.parameters,
            limit,
            options: options.map(str::to_owned),
        }
    }
}

pub(crate) fn rows(records: &str) -> Result<Vec<Row<'_>>, Error> {
    serde_json::from_str(records).map_err(|_| Error::internal("The rows of the database cannot be read."))
}

pub(crate) fn cell<'a>(row: &Row<'a>, at: usize) -> Result<&'a RawValue, Error> {
    row.get(format!("c{at}").as_str()).copied().ok_or_else(|| Error::internal("A column of the answer is missing."))
}
