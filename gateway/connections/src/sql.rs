//! SQL databases: SQLite and PostgreSQL. Bound parameters only; one statement a call.

use std::time::Instant;

use crate::ConnectionError;

pub struct SqlConnection {}

pub struct Statement<'a> {
    pub text: &'a str,
    /// A JSON array; SQLite binds JSON types as they are, PostgreSQL binds every one as text (the statement casts).
    pub parameters: &'a str,
    /// Rows at most; one more is read to know whether there were more.
    pub limit: u32,
    /// JSON: `{"describe": true}` prepares only and answers one row a column: `{name, type, nullable}`.
    pub options: Option<&'a str>,
    pub deadline: Instant,
}

pub struct Rows {
    /// JSON array of objects.
    pub records: String,
    pub truncated: bool,
}

impl SqlConnection {
    /// `sqlite` or `postgresql`.
    pub fn dialect(&self) -> &'static str {
        "sqlite"
    }

    /// Reads; in a read-only transaction that is rolled back.
    pub async fn query(&self, _statement: Statement<'_>) -> Result<Rows, ConnectionError> {
        Err(ConnectionError::new("unavailable", "not connected"))
    }

    /// Writes, when the connection says `write = true`. Rows (`RETURNING`) of the statement. Runs to its end or
    /// its deadline even when the returned future is dropped.
    pub async fn query_write(&self, _statement: Statement<'_>) -> Result<Rows, ConnectionError> {
        Err(ConnectionError::new("unavailable", "not connected"))
    }

    /// The number of rows changed. Same rules as `query_write`.
    pub async fn execute(&self, _statement: Statement<'_>) -> Result<u64, ConnectionError> {
        Err(ConnectionError::new("unavailable", "not connected"))
    }
}
