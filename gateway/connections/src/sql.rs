//! SQL databases: SQLite, PostgreSQL, MySQL and MariaDB. Bound parameters only; one statement a call.
//!
//! A connection reaches its one database and nothing else, whatever the statement says: each kind's module lists what
//! ensures that. Reads leave nothing behind; writes need `write = true` and run in their own transaction.

mod datetime;
mod decimal;
mod mysql;
mod postgresql;
mod refused;
mod rows;
mod session_pool;
mod sqlite;

use std::{path::PathBuf, time::Instant};

use serde_json::value::RawValue;

use crate::{ConnectionError, FailureCode};

/// The most bytes of records one statement answers.
pub const RECORDS_MAX_BYTES: usize = 8 * 1024 * 1024;
const TEXT_MAX_BYTES: usize = 256 * 1024;
const PARAMETERS_MAX: usize = 2000;

/// A connection to one database, with its pool.
pub struct SqlConnection {
    kind: SqlBackend,
    writable: bool,
}

enum SqlBackend {
    Sqlite(sqlite::SqliteDatabase),
    Postgresql(postgresql::PostgresqlDatabase),
    Mysql(mysql::MysqlDatabase),
}

/// A statement with its parameters and its bounds.
#[derive(Clone, Copy)]
pub struct SqlStatement<'a> {
    pub text: &'a str,
    /// A JSON array; SQLite and MySQL bind JSON types as they are, PostgreSQL binds every one as text (the statement
    /// casts).
    pub parameters: &'a str,
    /// The maximum number of rows; one more is read to know whether there were more.
    pub limit: u32,
    /// JSON: `{"describe": true}` prepares only and answers one row per column: `{name, type, nullable}`.
    /// `{"expect_rows": 1}`, for writes: rolled back unless exactly as many rows were changed; `not_found` for
    /// none, `conflict` otherwise. `{"returning": {"text", "parameters", "when": "before" | "after"}}`, for writes to
    /// MySQL: a read in the same transaction, whose rows are answered. SQLite takes it with `after` for one row, and answers
    /// the statement's own rows where the read has no row or several. With `"is_new": true` MySQL is asked before the write, too,
    /// which is refused if there is a row already. A `"clause"`, `RETURNING …`, is for an INSERT of MariaDB in place of the read.
    /// `{"rows_max": N}`, for writes: rolled back with a `conflict` if more were changed.
    /// `{"statement": true}`: the text is a contract's own, and is described as a write is.
    pub options: Option<&'a str>,
    pub deadline: Instant,
}

/// The rows that a statement answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlRows {
    /// JSON array of objects.
    pub records: String,
    pub truncated: bool,
}

/// Options as they are written; unknown ones are refused, since they may be a promise we would not keep.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StatementOptions {
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
    parameters: Box<RawValue>,
    when: ReadTime,
    /// MySQL and MariaDB: the read must have no row before the write, since it would be one that was not written.
    #[serde(default)]
    is_new: bool,
    /// A `RETURNING …` that MariaDB takes behind an INSERT, and that is answered in place of the read.
    #[serde(default)]
    clause: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReadTime {
    Before,
    After,
}

/// A statement that owns its parts, to be run on another thread or task.
struct PreparedStatement {
    text: String,
    parameters: Vec<StatementParameter>,
    limit: u32,
    options: StatementOptions,
    deadline: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StatementAccess {
    Read,
    Write,
}

/// The outcome of a statement: the rows it answered, and the number it changed.
struct StatementOutcome {
    rows: SqlRows,
    changed: u64,
}

impl SqlConnection {
    pub(crate) fn sqlite(path: PathBuf, writable: bool) -> Self {
        Self {
            kind: SqlBackend::Sqlite(sqlite::SqliteDatabase::new(path, writable)),
            writable,
        }
    }

    pub(crate) fn postgresql(
        url: &str,
        writable: bool,
        pool_max: Option<u32>,
    ) -> Result<Self, String> {
        Ok(Self {
            kind: SqlBackend::Postgresql(postgresql::PostgresqlDatabase::new(url, pool_max)?),
            writable,
        })
    }

    pub(crate) fn mysql(url: &str, writable: bool, pool_max: Option<u32>) -> Result<Self, String> {
        Ok(Self {
            kind: SqlBackend::Mysql(mysql::MysqlDatabase::new(url, pool_max)?),
            writable,
        })
    }

    /// Returns `sqlite`, `postgresql` or `mysql`, which MariaDB is too.
    pub fn dialect(&self) -> &'static str {
        match self.kind {
            SqlBackend::Sqlite(_) => "sqlite",
            SqlBackend::Postgresql(_) => "postgresql",
            SqlBackend::Mysql(_) => "mysql",
        }
    }

    /// Returns `true` if statements may write.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Runs a read, in a read-only transaction that is rolled back. Dropping the returned future interrupts it.
    pub async fn query(&self, statement: SqlStatement<'_>) -> Result<SqlRows, ConnectionError> {
        Ok(self.run(statement, StatementAccess::Read).await?.rows)
    }

    /// Writes, if the connection has `write = true`, and returns the statement's rows (`RETURNING`). Runs to
    /// its end or its deadline even if the returned future is dropped.
    pub async fn query_write(
        &self,
        statement: SqlStatement<'_>,
    ) -> Result<SqlRows, ConnectionError> {
        Ok(self.run(statement, StatementAccess::Write).await?.rows)
    }

    /// Runs a write and returns the number of rows changed, by the same rules as `query_write`.
    pub async fn execute(&self, statement: SqlStatement<'_>) -> Result<u64, ConnectionError> {
        Ok(self.run(statement, StatementAccess::Write).await?.changed)
    }

    async fn run(
        &self,
        statement: SqlStatement<'_>,
        access: StatementAccess,
    ) -> Result<StatementOutcome, ConnectionError> {
        let prepared =
            PreparedStatement::new(statement).map_err(ConnectionError::nothing_changed)?;
        if (access == StatementAccess::Write || prepared.options.statement) && !self.writable {
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the database connection is read-only",
            ));
        }
        let is_refused = |returning: &ReturningRead| {
            access != StatementAccess::Write
                || match self.kind {
                    SqlBackend::Mysql(_) => false,
                    SqlBackend::Sqlite(_) => returning.when != ReadTime::After,
                    SqlBackend::Postgresql(_) => true,
                }
        };
        let returning = prepared.options.returning.as_ref();
        if returning.is_some_and(is_refused) {
            let message =
                "`returning` is for writes to MySQL and MariaDB, and behind those to SQLite";
            return Err(
                ConnectionError::new(FailureCode::InvalidArguments, message).nothing_changed()
            );
        }
        match &self.kind {
            SqlBackend::Sqlite(sqlite) => sqlite.run(prepared, access).await,
            SqlBackend::Postgresql(postgresql) => postgresql.run(prepared, access).await,
            SqlBackend::Mysql(mysql) => mysql.run(prepared, access).await,
        }
    }
}

impl PreparedStatement {
    fn new(statement: SqlStatement<'_>) -> Result<Self, ConnectionError> {
        if statement.text.len() > TEXT_MAX_BYTES {
            return Err(ConnectionError::new(
                FailureCode::TooLarge,
                "the statement is too long",
            ));
        }
        let options = match statement.options {
            Some(options) => serde_json::from_str(options).map_err(|error| {
                ConnectionError::new(
                    FailureCode::InvalidArguments,
                    "the statement's options are wrong",
                )
                .details(error)
            })?,
            None => StatementOptions::default(),
        };
        Ok(Self {
            text: statement.text.to_owned(),
            parameters: read_parameters(statement.parameters)?,
            limit: statement.limit,
            options,
            deadline: statement.deadline,
        })
    }
}

impl ReturningRead {
    fn parameters(&self) -> Result<Vec<StatementParameter>, ConnectionError> {
        read_parameters(self.parameters.get())
    }
}

impl StatementOptions {
    fn returning_at(&self, when: ReadTime) -> Option<&ReturningRead> {
        self.returning.as_ref().filter(|read| read.when == when)
    }

    /// Returns `true` for a statement that writes and is only prepared.
    fn describes_write(&self) -> bool {
        self.describe && self.statement
    }

    /// Checks that the intended number of rows was changed; otherwise the caller rolls back.
    fn check(&self, changed: u64) -> Result<(), ConnectionError> {
        match self.expect_rows {
            Some(expected) if changed == 0 && expected > 0 => Err(ConnectionError::new(
                FailureCode::NotFound,
                "there is no such record",
            )),
            Some(expected) if changed != expected => Err(ConnectionError::new(
                FailureCode::Conflict,
                "the key fits more than one record, so nothing was changed",
            )),
            _ => match self.rows_max {
                Some(most) if changed > most => Err(ConnectionError::new(
                    FailureCode::Conflict,
                    format!(
                        "the statement would change {changed} rows and may change {most}, so nothing was changed"
                    ),
                )),
                _ => Ok(()),
            },
        }
    }
}

/// One value of the JSON array.
#[derive(Clone, Debug, PartialEq)]
enum StatementParameter {
    Null,
    Boolean(bool),
    Integer(i64),
    /// The double, and the number as it was written.
    Real(f64, String),
    /// A string, or the JSON text of an array or object.
    Text(String),
}

/// Reads the parameters of a statement: a JSON array, bound one by one.
fn read_parameters(json: &str) -> Result<Vec<StatementParameter>, ConnectionError> {
    let wrong = |error: serde_json::Error| {
        ConnectionError::new(
            FailureCode::InvalidArguments,
            "the statement's parameters are not a JSON array",
        )
        .details(error)
    };
    let raw: Vec<&RawValue> = serde_json::from_str(json).map_err(wrong)?;
    if raw.len() > PARAMETERS_MAX {
        return Err(ConnectionError::new(
            FailureCode::TooLarge,
            "a statement takes at most 2,000 parameters",
        ));
    }
    raw.into_iter()
        .map(|value| read_parameter(value.get()).map_err(wrong))
        .collect()
}

fn read_parameter(text: &str) -> Result<StatementParameter, serde_json::Error> {
    Ok(match text.as_bytes().first() {
        Some(b'n') => StatementParameter::Null,
        Some(b't') => StatementParameter::Boolean(true),
        Some(b'f') => StatementParameter::Boolean(false),
        Some(b'"') => StatementParameter::Text(serde_json::from_str(text)?),
        Some(b'[' | b'{') => StatementParameter::Text(text.to_owned()),
        _ => match text.parse() {
            Ok(integer) => StatementParameter::Integer(integer),
            Err(_) => StatementParameter::Real(serde_json::from_str(text)?, text.to_owned()),
        },
    })
}
