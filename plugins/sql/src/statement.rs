//! A statement under construction: text, and the values bound to it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use weir_plugin_sdk::serde_json::{self, Value as Json, value::RawValue};
use weir_plugin_sdk::{Error, sql};

use crate::dialect::Dialect;

/// What is around a place in the text for MySQL, which counts places as they come in the text and not as values are
/// bound. No name and no query holds it.
const MARK: char = '\0';
/// What stands before the number of a list whose values each get a place.
const EACH: char = '*';

/// Returns the place of a bound value in a text for MySQL.
pub(crate) fn mysql_place(number: usize) -> String {
    format!("{MARK}{}{MARK}", number - 1)
}

/// Returns the places of the values of a bound list.
pub(crate) fn mysql_places(number: usize) -> String {
    format!("{MARK}{EACH}{}{MARK}", number - 1)
}

/// Returns the text with `?` for each place, and the values in the order of these. A list in one place is its JSON.
pub(crate) fn mysql_parts(text: &str, bound: &[Json]) -> (String, Vec<Json>) {
    let mut parts = String::with_capacity(text.len());
    let mut values = Vec::with_capacity(bound.len());
    for (at, part) in text.split(MARK).enumerate() {
        let number = part.trim_start_matches(EACH).parse::<usize>().ok();
        let Some(value) = number
            .filter(|_| at % 2 == 1)
            .and_then(|place| bound.get(place))
        else {
            parts.push_str(part);
            continue;
        };
        match value {
            Json::Array(list) if part.starts_with(EACH) => {
                // An empty list is a SELECT of no values.
                match list.len() {
                    0 => parts.push_str("SELECT NULL FROM DUAL WHERE FALSE"),
                    count => parts.push_str(&vec!["?"; count].join(", ")),
                }
                values.extend(list.iter().cloned());
            }
            Json::Array(_) => {
                parts.push('?');
                values.push(value.to_string().into());
            }
            _ => {
                parts.push('?');
                values.push(value.clone());
            }
        }
    }
    (parts, values)
}

pub(crate) struct Builder {
    pub(crate) dialect: Dialect,
    pub(crate) text: String,
    parameters: Vec<Json>,
}

/// A row, its columns by position: they are named `c0`, `c1`, … so that no name of a table is ever a key here, and a
/// connection answers them in the order they were asked for.
pub(crate) struct Row<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Row<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Cells)
    }
}

impl Row<'_> {
    pub(crate) fn last(&self) -> Option<&str> {
        self.0.last().map(|cell| cell.get())
    }
}

struct Cells;

impl<'de> Visitor<'de> for Cells {
    type Value = Row<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Row<'de>, A::Error> {
        let mut cells = Vec::new();
        while let Some((IgnoredAny, cell)) = members.next_entry()? {
            cells.push(cell);
        }
        Ok(Row(cells))
    }
}

impl Builder {
    pub(crate) fn new(dialect: Dialect) -> Self {
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
            Dialect::Mysql => mysql_parts(&self.text, &self.parameters),
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

pub(crate) fn rows(records: &str) -> Result<Vec<Row<'_>>, Error> {
    serde_json::from_str(records)
        .map_err(|_| Error::internal("The rows of the database cannot be read."))
}

pub(crate) fn cell<'a>(row: &Row<'a>, at: usize) -> Result<&'a RawValue, Error> {
    row.0
        .get(at)
        .copied()
        .ok_or_else(|| Error::internal("A column of the answer is missing."))
}
