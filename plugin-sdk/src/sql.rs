//! A database, by the name of a connection. Parameters are always bound, never text of the statement.

#[cfg(target_arch = "wasm32")]
use crate::bindings::calls::sql as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::sql as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::sql as imported;

use crate::error::Result;

/// A statement and its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    /// The connection's name.
    pub connection: String,
    /// SQL, in the connection's dialect.
    pub text: String,
    /// Bound in their order.
    pub parameters: Vec<serde_json::Value>,
    /// The largest number of rows to return.
    pub limit: u32,
    /// JSON.
    pub options: Option<String>,
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// A JSON array of objects; numbers as the database wrote them, so read it with `RawValue`.
    pub records: String,
    /// Whether the limit cut rows off.
    pub truncated: bool,
}

/// Returns the dialect: `sqlite`, `postgresql`, …
pub fn dialect(connection: &str) -> Result<String> {
    imported::dialect(connection)
}

/// Runs a query.
pub fn query(statement: &Statement) -> Result<Rows> {
    imported::query(statement)
}

/// Runs them side by side; answers in the order asked.
pub fn query_many(statements: &[Statement]) -> Vec<Result<Rows>> {
    imported::query_many(statements)
}

/// Runs a statement and returns the number of rows changed.
pub fn execute(statement: &Statement) -> Result<u64> {
    imported::execute(statement)
}
