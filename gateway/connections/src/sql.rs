//! SQL databases: SQLite, PostgreSQL, MySQL and MariaDB. Bound parameters only; one statement a call.
//!
//! A connection reaches its one database and nothing else, whatever the statement says: each kind's module lists what
//! keeps it so. Reads leave nothing behind; writes need `write = true` and run in a transaction of their own.

mod datetime;
mod decimal;
mod mysql;
mod parameters;
mod postgresql;
mod refused;
mod rows;
mod session_pool;
mod sqlite;

use std::{path::PathBuf, time::Instant};

use crate::{Code, ConnectionError};

/// The most bytes of records one statement answers.
pub const RECORDS_MAX_BYTES: usize = 8 * 1024 * 1024;
const TEXT_MAX_BYTES: usize = 256 * 1024;

/// A connection to one database, with its pool.
pub struct SqlConnection {
    kind: Kind,
    writable: bool,
}

enum Kind {
    Sqlite(sqlite::Sqlite),
    Postgresql(postgresql::Postgresql),
    Mysql(mysql::Mysql),
}

/// A statement with its parameters and its bounds.
#[derive(Clone, Copy)]
pub struct Statement<'a> {
    pub text: &'a str,
    /// A JSON array; SQLite and MySQL bind JSON types as they are, PostgreSQL binds every one as text (the statement
    /// casts).
    pub parameters: &'a str,
    /// Rows at most; one more is read to know whether there were more.
    pub limit: u32,
    /// JSON: `{"describe": true}` prepares only and answers one row a column: `{name, type, nullable}`.
    /// `{"expect_rows": 1}`, for writes: rolled back unless exactly as many rows were changed; `not_found` for
    /// none, `conflict` otherwise. `{"returning": {"text", "parameters", "when": "before" | "after"}}`, for writes to
    /// MySQL: a read in the same transaction, whose rows are answered.
    /// `{"rows_max": N}`, for writes: rolled back with a `conflict` if more were changed.
    /// `{"statement": true}`: the text is a contract's own, and is described as a write is.
    pub options: Option<&'a str>,
    pub deadline: Instant,
}

/// The rows that a statement answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// JSON array of objects.
    pub records: String,
    pub truncated: bool,
}

/// Options as they are written; unknown ones are refused, since they may be a promise we would not keep.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    describe: bool,
    expect_rows: Option<u64>,
    /// The read that answers a write, where the database's own statement cannot.
    returning: Option<ReturningRead>,
    rows_max: Option<u64>,
    statement: bool,
    /// Whether the statement writes. This is for the plugin host, which then asks `query_write`.
    write: bool,
}

/// A read in the transaction of a write.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReturningRead {
    text: String,
    parameters: Box<serde_json::value::RawValue>,
    when: ReadTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReadTime {
    Before,
    After,
}

/// A statement that owns its parts, to be run on another thread or task.
struct Prepared {
    text: String,
    parameters: Vec<parameters::Parameter>,
    limit: u32,
    options: Options,
    deadline: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The outcome of a statement: the rows it answered, and the number it changed.
struct Outcome {
    rows: Rows,
    changed: u64,
}

impl SqlConnection {
    pub(crate) fn sqlite(path: PathBuf, writable: bool) -> Self {
        Self {
            kind: Kind::Sqlite(sqlite::Sqlite::new(path, writable)),
            writable,
        }
    }

    pub(crate) fn postgresql(
        url: &str,
        writable: bool,
        pool_max: Option<u32>,
    ) -> Result<Self, String> {
        Ok(Self {
            kind: Kind::Postgresql(postgresql::Postgresql::new(url, pool_max)?),
            writable,
        })
    }

    pub(crate) fn mysql(url: &str, writable: bool, pool_max: Option<u32>) -> Result<Self, String> {
        Ok(Self {
            kind: Kind::Mysql(mysql::Mysql::new(url, pool_max)?),
            writable,
        })
    }

    /// Returns `sqlite`, `postgresql` or `mysql`, which MariaDB is too.
    pub fn dialect(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite(_) => "sqlite",
            Kind::Postgresql(_) => "postgresql",
            Kind::Mysql(_) => "mysql",
        }
    }

    /// Returns `true` if statements may write.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Runs a read, in a read-only transaction that is rolled back. Dropping the returned future interrupts it.
    pub async fn query(&self, statement: Statement<'_>) -> Result<Rows, ConnectionError> {
        Ok(self.run(statement, Access::Read).await?.rows)
    }

    /// Writes, when the connection says `write = true`. Rows (`RETURNING`) of the statement. Runs to its end or
    /// its deadline even when the returned future is dropped.
    pub async fn query_write(&self, statement: Statement<'_>) -> Result<Rows, ConnectionError> {
        Ok(self.run(statement, Access::Write).await?.rows)
    }

    /// Runs a write and returns the number of rows changed, by the same rules as `query_write`.
    pub async fn execute(&self, statement: Statement<'_>) -> Result<u64, ConnectionError> {
        Ok(self.run(statement, Access::Write).await?.changed)
    }

    async fn run(
        &self,
        statement: Statement<'_>,
        access: Access,
    ) -> Result<Outcome, ConnectionError> {
        let prepared = Prepared::new(statement).map_err(ConnectionError::nothing_changed)?;
        if (access == Access::Write || prepared.options.statement) && !self.writable {
            return Err(ConnectionError::new(
                Code::Forbidden,
                "the database connection is read-only",
            ));
        }
        if prepared.options.returning.is_some()
            && !(matches!(self.kind, Kind::Mysql(_)) && access == Access::Write)
        {
            let message = "`returning` is for writes to MySQL and MariaDB";
            return Err(ConnectionError::new(Code::InvalidArguments, message).nothing_changed());
        }
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.run(prepared, access).await,
            Kind::Postgresql(postgresql) => postgresql.run(prepared, access).await,
            Kind::Mysql(mysql) => mysql.run(prepared, access).await,
        }
    }
}

impl Prepared {
    fn new(statement: Statement<'_>) -> Result<Self, ConnectionError> {
        if statement.text.len() > TEXT_MAX_BYTES {
            return Err(ConnectionError::new(
                Code::TooLarge,
                "the statement is too long",
            ));
        }
        let options = match statement.options {
            Some(options) => serde_json::from_str(options).map_err(|error| {
                ConnectionError::new(Code::InvalidArguments, "the statement's options are wrong")
                    .details(error)
            })?,
            None => Options::default(),
        };
        Ok(Self {
            text: statement.text.to_owned(),
            parameters: parameters::read(statement.parameters)?,
            limit: statement.limit,
            options,
            deadline: statement.deadline,
        })
    }
}

impl ReturningRead {
    fn parameters(&self) -> Result<Vec<parameters::Parameter>, ConnectionError> {
        parameters::read(self.parameters.get())
    }
}

impl Options {
    fn returning_at(&self, when: ReadTime) -> Option<&ReturningRead> {
        self.returning.as_ref().filter(|read| read.when == when)
    }

    /// Returns `true` for a statement that writes and is only prepared.
    fn describes_write(&self) -> bool {
        self.describe && self.statement
    }

    /// Checks that as many rows were changed as were meant; otherwise the caller rolls back.
    fn check(&self, changed: u64) -> Result<(), ConnectionError> {
        match self.expect_rows {
            Some(expected) if changed == 0 && expected > 0 => Err(ConnectionError::new(
                Code::NotFound,
                "there is no such record",
            )),
            Some(expected) if changed != expected => Err(ConnectionError::new(
                Code::Conflict,
                "the key fits more than one record, so nothing was changed",
            )),
            _ => match self.rows_max {
                Some(most) if changed > most => Err(ConnectionError::new(
                    Code::Conflict,
                    format!(
                        "the statement would change {changed} rows and may change {most}, so nothing was changed"
                    ),
                )),
                _ => Ok(()),
            },
        }
    }
}
