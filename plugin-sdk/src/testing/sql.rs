//! A database whose answers a test defines.

use std::cell::RefCell;

use crate::error::{Error, Result};
use crate::sql::{Rows, Statement};

/// The answer of a test's database to a statement. A query reads `rows`, an execute `changed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The rows that a query finds.
    pub rows: Rows,
    /// The number of rows that an execute changes.
    pub changed: u64,
}

type Run = Box<dyn FnMut(&Statement) -> Result<Answer>>;

struct Database {
    dialect: String,
    run: Run,
}

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
    static STATEMENTS: RefCell<Vec<Statement>> = const { RefCell::new(Vec::new()) };
}

/// Answers every statement from now on by `run`; without it, statements are `denied`.
pub fn answer(dialect: &str, run: impl FnMut(&Statement) -> Result<Answer> + 'static) {
    DATABASE.set(Some(Database {
        dialect: dialect.to_owned(),
        run: Box::new(run),
    }));
}

/// Returns an answer of rows (a JSON array of objects).
pub fn rows(records: &str) -> Answer {
    Answer {
        rows: Rows {
            records: records.to_owned(),
            truncated: false,
        },
        changed: 0,
    }
}

/// Returns an answer of a number of changed rows.
pub fn changed(changed: u64) -> Answer {
    Answer {
        changed,
        ..Answer::default()
    }
}

/// Returns the statements run so far.
pub fn statements() -> Vec<Statement> {
    STATEMENTS.with_borrow(Clone::clone)
}

/// Answers [`crate::sql::dialect`].
pub fn dialect(connection: &str) -> Result<String> {
    DATABASE.with_borrow(|database| match database {
        Some(database) => Ok(database.dialect.clone()),
        None => Err(denied(connection)),
    })
}

/// Answers [`crate::sql::query`].
pub fn query(statement: &Statement) -> Result<Rows> {
    run(statement).map(|answer| answer.rows)
}

/// Answers [`crate::sql::query_many`].
pub fn query_many(statements: &[Statement]) -> Vec<Result<Rows>> {
    statements.iter().map(query).collect()
}

/// Answers [`crate::sql::execute`].
pub fn execute(statement: &Statement) -> Result<u64> {
    run(statement).map(|answer| answer.changed)
}

fn run(statement: &Statement) -> Result<Answer> {
    STATEMENTS.with_borrow_mut(|statements| statements.push(statement.clone()));
    DATABASE.with_borrow_mut(|database| match database {
        Some(database) => (database.run)(statement),
        None => Err(denied(&statement.connection)),
    })
}

fn denied(connection: &str) -> Error {
    Error::denied(format!("The connection {connection:?} is not granted."))
}

pub(super) fn reset() {
    DATABASE.set(None);
    STATEMENTS.with_borrow_mut(Vec::clear);
}
