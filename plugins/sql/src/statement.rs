//! A statement under construction: text, and the values bound to it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use weir_plugin_sdk::serde_json::{self, Value as Json, value::RawValue};
use weir_plugin_sdk::{Error, sql};

use crate::dialect::{SqlDialect, mysql_parts};

pub(crate) struct StatementBuilder {
    pub(crate) dialect: SqlDialect,
    pub(crate) text: String,
    parameters: Vec<Json>,
}

/// A row, its columns by position: they are named `c0`, `c1`, … so that no name of a table is ever a key here, and a
/// connection answers them in the order they were asked for.
pub(crate) struct SelectedRow<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for SelectedRow<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SelectedRowVisitor)
    }
}

impl SelectedRow<'_> {
    pub(crate) fn last(&self) -> Option<&str> {
        self.0.last().map(|cell| cell.get())
    }
}

struct SelectedRowVisitor;

impl<'de> Visitor<'de> for SelectedRowVisitor {
    type Value = SelectedRow<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SelectedRow<'de>, A::Error> {
        let mut cells = Vec::new();
        while let Some((IgnoredAny, cell)) = members.next_entry()? {
            cells.push(cell);
        }
        Ok(SelectedRow(cells))
    }
}

impl StatementBuilder {
    pub(crate) fn new(dialect: SqlDialect) -> Self {
        Self {
            dialect,
            text: String::new(),
            parameters: Vec::new(),
        }
    }

    /// Binds a value and returns its place in the text.
    pub(crate) fn bind(&mut self, value: impl Into<Json>) -> String {
        self.parameters.push(value.into());
        self.dialect.placeholder(self.parameters.len())
    }

    /// Returns the text, and the values in the order of their places.
    pub(crate) fn into_parts(self) -> (String, Vec<Json>) {
        match self.dialect {
            SqlDialect::Mysql => mysql_parts(&self.text, &self.parameters),
            _ => (self.text, self.parameters),
        }
    }

    pub(crate) fn binds(&self) -> bool {
        !self.parameters.is_empty()
    }

    pub(crate) fn finish(
        self,
        connection: &str,
        limit: u32,
        options: Option<&str>,
    ) -> sql::Statement {
        let (text, parameters) = self.into_parts();
        sql::Statement {
            connection: connection.to_owned(),
            text,
            parameters,
            limit,
            options: options.map(str::to_owned),
        }
    }
}

pub(crate) fn rows(records: &str) -> Result<Vec<SelectedRow<'_>>, Error> {
    serde_json::from_str(records)
        .map_err(|_| Error::internal("The rows of the database cannot be read."))
}

pub(crate) fn cell<'a>(row: &SelectedRow<'a>, at: usize) -> Result<&'a RawValue, Error> {
    row.0
        .get(at)
        .copied()
        .ok_or_else(|| Error::internal("A column of the answer is missing."))
}
