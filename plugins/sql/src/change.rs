//! Writing: one statement, which answers the record as the database now holds it. An update or delete names its record
//! by the key and is rolled back unless it is exactly one.

use weir_plugin_sdk::records::record;
use weir_plugin_sdk::serde_json;
use weir_plugin_sdk::{Change, Error, Value, Verb, matches, sql};

use crate::Sql;
use crate::column::Column;
use crate::condition;
use crate::dialect::Dialect;
use crate::operation;
use crate::settings::Source;
use crate::statement::{Builder, cell, rows};

pub(crate) fn write(collection: &Sql, dialect: Dialect, change: &Change) -> Result<String, Error> {
    if change.verb == Verb::Call {
        return operation::run(collection, dialect, change);
    }
    let Source::Table { .. } = collection.settings.source() else {
        return Err(Error::unsupported("A query is read-only."));
    };
    let writer = Writer {
        collection,
        dialect,
    };
    match change.verb {
        Verb::Create => writer.create(change),
        Verb::Update => writer.update(change),
        Verb::Delete => writer.delete(change),
        Verb::Call => Err(Error::unsupported("A table has no operations.")),
    }
}

struct Writer<'a> {
    collection: &'a Sql,
    dialect: Dialect,
}

impl Writer<'_> {
    fn create(&self, change: &Change) -> Result<String, Error> {
        let mut builder = Builder::new(self.dialect);
        let (names, values) = self.values(change, &mut builder)?;
        let what = match names.len() {
            0 => "DEFAULT VALUES".to_owned(),
            _ => format!("({}) VALUES ({})", names.join(", "), values.join(", ")),
        };
        builder.text = format!(
            "INSERT INTO {} {what} RETURNING {}",
            self.table(),
            self.returning()
        );
        self.run(builder)
            .map_err(|error| self.taken(error, "There is a record with this key already."))
    }

    fn update(&self, change: &Change) -> Result<String, Error> {
        let mut builder = Builder::new(self.dialect);
        let (names, values) = self.values(change, &mut builder)?;
        if names.is_empty() {
            return Err(Error::invalid("Nothing is to be changed."));
        }
        let set: Vec<_> = names
            .iter()
            .zip(&values)
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let meant = self.meant(change, &mut builder)?;
        builder.text = format!(
            "UPDATE {} SET {} WHERE {meant} RETURNING {}",
            self.table(),
            set.join(", "),
            self.returning()
        );
        self.run(builder)
            .map_err(|error| self.taken(error, "Another record has this key already."))
    }

    fn delete(&self, change: &Change) -> Result<String, Error> {
        let mut builder = Builder::new(self.dialect);
        let meant = self.meant(change, &mut builder)?;
        builder.text = format!(
            "DELETE FROM {} WHERE {meant} RETURNING {}",
            self.table(),
            self.returning()
        );
        self.run(builder)
    }

    /// Returns column names and the places of their values.
    fn values(
        &self,
        change: &Change,
        builder: &mut Builder,
    ) -> Result<(Vec<String>, Vec<String>), Error> {
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (key, argument) in &change.record {
            let column = Column::find(&self.collection.shape, self.dialect, key)?;
            let value = Value::from_argument(argument, column.field, &self.collection.zone);
            values.push(column.written(&value, builder)?);
            names.push(column.name());
        }
        Ok((names, values))
    }

    /// Returns the condition for the record with this key that meets the conditions.
    fn meant(&self, change: &Change, builder: &mut Builder) -> Result<String, Error> {
        let mut meant = self.key(change, builder)?;
        for condition in &change.conditions {
            let column = Column::find(&self.collection.shape, self.dialect, &condition.column)?;
            meant.push_str(" AND ");
            meant.push_str(&condition::condition(
                condition,
                &column,
                &self.collection.zone,
                builder,
            )?);
        }
        Ok(meant)
    }

    /// Returns the condition for the whole key and nothing but the key.
    fn key(&self, change: &Change, builder: &mut Builder) -> Result<String, Error> {
        let shape = &self.collection.shape;
        if shape.key.is_empty() {
            return Err(Error::unsupported(
                "The table has no key, so no record of it can be named.",
            ));
        }
        let mut all = Vec::new();
        for key in &shape.key {
            let column = Column::find(shape, self.dialect, key)?;
            let argument = change.key.get(key).unwrap_or(&serde_json::Value::Null);
            if argument.is_null() {
                return Err(Error::invalid(format!("The key {key:?} is missing.")).field(key));
            }
            let value = matches::operand(argument, column.field, &self.collection.zone)?;
            all.push(condition::equals(&column, &value, builder));
        }
        if let Some(other) = change.key.keys().find(|given| !shape.key.contains(given)) {
            return Err(Error::invalid(format!("{other:?} is not part of the key.")).field(other));
        }
        Ok(all.join(" AND "))
    }

    fn run(&self, builder: Builder) -> Result<String, Error> {
        let shape = &self.collection.shape;
        let connection = &self.collection.settings.connection;
        let statement = builder.finish(connection, 1, Some(r#"{"write":true,"expect_rows":1}"#));
        let answer = sql::query(&statement).map_err(refused)?;
        let rows = rows(&answer.records)?;
        // A trigger may swallow the row.
        let row = rows
            .first()
            .ok_or_else(|| Error::upstream_error("The database did not answer the record."))?;
        let members = shape.fields.iter().enumerate().map(|(at, field)| {
            let column = Column::new(shape, self.dialect, field);
            Ok((
                field.key.as_str(),
                column.value(cell(row, at)?, &self.collection.zone),
            ))
        });
        Ok(record(members.collect::<Result<Vec<_>, Error>>()?))
    }

    fn table(&self) -> String {
        self.collection.settings.source().sql()
    }

    fn returning(&self) -> String {
        let shape = &self.collection.shape;
        let columns = shape
            .fields
            .iter()
            .map(|field| Column::new(shape, self.dialect, field).read());
        columns
            .enumerate()
            .map(|(at, read)| format!("{read} AS c{at}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Reports a conflict on the key in the words of every adapter.
    fn taken(&self, error: Error, message: &str) -> Error {
        if !error.is("conflict") {
            return error;
        }
        let key = &self.collection.shape.key;
        match &error.field {
            Some(field) if !key.contains(field) => Error {
                message: "There is a record with this value already.".into(),
                ..error
            },
            field => Error {
                message: message.into(),
                field: field.clone().or_else(|| key.first().cloned()),
                ..error
            },
        }
    }
}

/// Says which record was meant, which is known only here.
fn refused(error: Error) -> Error {
    match error.code.as_str() {
        "not_found" => Error {
            message: "There is no record with this key.".into(),
            ..error
        },
        _ => error,
    }
}
