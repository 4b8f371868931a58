//! Writing: one statement, which answers the record as the database now holds it. For MySQL, whose UPDATE answers no rows and
//! whose INSERT does so in MariaDB alone, and for SQLite, whose RETURNING does not show what triggers do, it comes with another
//! that reads the record in the same transaction. An update or delete names its record by the key and is rolled back unless it
//! is exactly one.

use weir_plugin_sdk::records::record;
use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{Change, Error, Value, Verb, matches, sql};

use crate::SqlAdapter;
use crate::column::SqlColumn;
use crate::condition;
use crate::dialect::SqlDialect;
use crate::operation;
use crate::refusal::FailedWrite;
use crate::settings::SqlSource;
use crate::statement::{StatementBuilder, cell, rows};

pub(crate) fn write(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    change: &Change,
) -> Result<String, Error> {
    if change.verb == Verb::Call {
        return operation::run(collection, dialect, change);
    }
    let SqlSource::Table { .. } = collection.settings.source() else {
        return Err(Error::unsupported("A query is read-only."));
    };
    let writer = SqlWriter {
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

/// A read in the transaction of a write, whose row is the answer.
struct RecordRead {
    text: String,
    parameters: Vec<serde_json::Value>,
    when: &'static str,
    /// No record has the key yet.
    is_new: bool,
}

struct SqlWriter<'a> {
    collection: &'a SqlAdapter,
    dialect: SqlDialect,
}

impl SqlWriter<'_> {
    fn create(&self, change: &Change) -> Result<String, Error> {
        let mut builder = StatementBuilder::new(self.dialect);
        let (names, values) = self.values(change, &mut builder)?;
        let what = match names.len() {
            0 if self.dialect == SqlDialect::Mysql => "() VALUES ()".to_owned(),
            0 => "DEFAULT VALUES".to_owned(),
            _ => format!("({}) VALUES ({})", names.join(", "), values.join(", ")),
        };
        builder.text = format!("INSERT INTO {} {what}", self.table());
        let read = match self.dialect {
            SqlDialect::Mysql | SqlDialect::Sqlite => self.read_created(change)?,
            SqlDialect::Postgresql => None,
        };
        self.run(builder, read, change)
    }

    fn update(&self, change: &Change) -> Result<String, Error> {
        let mut builder = StatementBuilder::new(self.dialect);
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
            "UPDATE {} SET {} WHERE {meant}",
            self.table(),
            set.join(", ")
        );
        let read = match self.dialect {
            SqlDialect::Mysql | SqlDialect::Sqlite => Some(self.read_updated(change)?),
            SqlDialect::Postgresql => None,
        };
        self.run(builder, read, change)
    }

    fn delete(&self, change: &Change) -> Result<String, Error> {
        let mut builder = StatementBuilder::new(self.dialect);
        let meant = self.meant(change, &mut builder)?;
        builder.text = format!("DELETE FROM {} WHERE {meant}", self.table());
        let read = match self.dialect {
            SqlDialect::Mysql => Some(self.read_deleted(change)?),
            _ => None,
        };
        self.run(builder, read, change)
    }

    /// Returns the read of a new record by its key. `None` if the database generates a part of the key other than by
    /// counting, or there is no key: the database then answers the INSERT itself.
    fn read_created(&self, change: &Change) -> Result<Option<RecordRead>, Error> {
        let shape = &self.collection.shape;
        let mut builder = StatementBuilder::new(self.dialect);
        let mut all = Vec::new();
        let mut is_given = true;
        for key in &shape.key {
            let column = SqlColumn::find(shape, self.dialect, key)?;
            let given = change.record.get(key).filter(|given| !given.is_null());
            let native = column.field.native.as_deref().unwrap_or_default();
            all.push(match given {
                Some(argument) => {
                    let value = Value::from_argument(argument, column.field, &self.collection.zone);
                    condition::equals(&column, &value, &mut builder)
                }
                None if native.contains(" auto_increment") => {
                    is_given = false;
                    format!("{} = LAST_INSERT_ID()", column.name())
                }
                None if self.is_row_number(&column) => {
                    format!("{} = last_insert_rowid()", column.name())
                }
                None => return Ok(None),
            });
        }
        Ok((!all.is_empty()).then(|| RecordRead {
            is_new: is_given,
            ..self.read(builder, &all.join(" AND "), "after")
        }))
    }

    /// Returns `true` for a key that SQLite numbers.
    fn is_row_number(&self, column: &SqlColumn<'_>) -> bool {
        let native = column.field.native.as_deref().unwrap_or_default();
        self.dialect == SqlDialect::Sqlite
            && self.collection.shape.key.len() == 1
            && column.field.generated
            && native.eq_ignore_ascii_case("INTEGER")
    }

    /// Returns the read of an updated record by its key, which may be another one now.
    fn read_updated(&self, change: &Change) -> Result<RecordRead, Error> {
        let shape = &self.collection.shape;
        let mut builder = StatementBuilder::new(self.dialect);
        let (mut key, mut is_new) = (change.key.clone(), false);
        for (name, value) in &change.record {
            if let Some(field) = shape.field(name).filter(|_| shape.key.contains(name)) {
                let before = key.insert(name.clone(), value.clone()).unwrap_or_default();
                let [before, after] = [&before, value]
                    .map(|value| Value::from_argument(value, field, &self.collection.zone));
                is_new |= before != after;
            }
        }
        let by_key = self.key(&key, &mut builder)?;
        Ok(RecordRead {
            is_new,
            ..self.read(builder, &by_key, "after")
        })
    }

    /// Returns the read of a record that is about to go, and locks it.
    fn read_deleted(&self, change: &Change) -> Result<RecordRead, Error> {
        let mut builder = StatementBuilder::new(self.dialect);
        let meant = self.meant(change, &mut builder)?;
        Ok(self.read(builder, &format!("{meant} LIMIT 1 FOR UPDATE"), "before"))
    }

    fn read(
        &self,
        mut builder: StatementBuilder,
        condition: &str,
        when: &'static str,
    ) -> RecordRead {
        builder.text = format!(
            "SELECT {} FROM {} WHERE {condition}",
            self.returning(),
            self.table()
        );
        let (text, parameters) = builder.into_parts();
        RecordRead {
            text,
            parameters,
            when,
            is_new: false,
        }
    }

    /// Returns column names and the places of their values.
    fn values(
        &self,
        change: &Change,
        builder: &mut StatementBuilder,
    ) -> Result<(Vec<String>, Vec<String>), Error> {
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (key, argument) in &change.record {
            let column = SqlColumn::find(&self.collection.shape, self.dialect, key)?;
            let value = Value::from_argument(argument, column.field, &self.collection.zone);
            values.push(column.written(&value, builder)?);
            names.push(column.name());
        }
        Ok((names, values))
    }

    /// Returns the condition for the record with this key that meets the conditions.
    fn meant(&self, change: &Change, builder: &mut StatementBuilder) -> Result<String, Error> {
        let mut meant = self.key(&change.key, builder)?;
        for condition in &change.conditions {
            let column = SqlColumn::find(&self.collection.shape, self.dialect, &condition.column)?;
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
    fn key(
        &self,
        given: &serde_json::Map<String, serde_json::Value>,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let shape = &self.collection.shape;
        if shape.key.is_empty() {
            return Err(Error::unsupported(
                "The table has no key, so no record of it can be named.",
            ));
        }
        let mut all = Vec::new();
        for key in &shape.key {
            let column = SqlColumn::find(shape, self.dialect, key)?;
            let argument = given.get(key).unwrap_or(&serde_json::Value::Null);
            if argument.is_null() {
                return Err(Error::invalid(format!("The key {key:?} is missing.")).field(key));
            }
            let value = matches::operand(argument, column.field, &self.collection.zone)?;
            all.push(condition::equals(&column, &value, builder));
        }
        if let Some(other) = given.keys().find(|given| !shape.key.contains(given)) {
            return Err(Error::invalid(format!("{other:?} is not part of the key.")).field(other));
        }
        Ok(all.join(" AND "))
    }

    fn run(
        &self,
        mut builder: StatementBuilder,
        read: Option<RecordRead>,
        change: &Change,
    ) -> Result<String, Error> {
        let shape = &self.collection.shape;
        let connection = &self.collection.settings.connection;
        let mut options = json!({"write": true, "expect_rows": 1});
        if read.is_none() || self.dialect == SqlDialect::Sqlite {
            let returning = format!(" RETURNING {}", self.returning());
            builder.text.push_str(&returning);
        }
        if let Some(read) = read {
            options["returning"] =
                json!({"text": read.text, "parameters": read.parameters, "when": read.when});
            if self.dialect == SqlDialect::Mysql {
                options["returning"]["is_new"] = read.is_new.into();
                if change.verb == Verb::Create {
                    let clause = format!("RETURNING {}", self.returning());
                    options["returning"]["clause"] = clause.into();
                }
            }
        }
        let statement = builder.finish(connection, 1, Some(&options.to_string()));
        let refused = FailedWrite {
            collection: self.collection,
            dialect: self.dialect,
            change,
        };
        let answer = sql::query(&statement).map_err(|error| {
            let error = refused.explain(error);
            match error.is("not_found") && self.is_there(change) {
                true => Error {
                    code: "invalid".into(),
                    message: "The database left the record as it is: a trigger, a rule or a policy of its table suppresses the change.".into(),
                    ..error
                },
                false => error,
            }
        })?;
        let rows = rows(&answer.records)?;
        // A trigger may swallow the row.
        let row = rows
            .first()
            .ok_or_else(|| Error::upstream_error("The database did not answer the record."))?;
        let members = shape.fields.iter().enumerate().map(|(at, field)| {
            let column = SqlColumn::new(shape, self.dialect, field);
            Ok((
                field.key.as_str(),
                column.value(cell(row, at)?, &self.collection.zone),
            ))
        });
        Ok(record(members.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Returns `true` if there is the record that an update or a delete means.
    fn is_there(&self, change: &Change) -> bool {
        let mut builder = StatementBuilder::new(self.dialect);
        let Ok(meant) = self.meant(change, &mut builder) else {
            return false;
        };
        builder.text = format!("SELECT 1 AS c0 FROM {} WHERE {meant}", self.table());
        let statement = builder.finish(&self.collection.settings.connection, 1, None);
        sql::query(&statement).is_ok_and(|answer| answer.records.trim() != "[]")
    }

    fn table(&self) -> String {
        self.collection.settings.source().sql()
    }

    fn returning(&self) -> String {
        let shape = &self.collection.shape;
        let columns = shape
            .fields
            .iter()
            .map(|field| SqlColumn::new(shape, self.dialect, field).read());
        columns
            .enumerate()
            .map(|(at, read)| format!("{read} AS c{at}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
