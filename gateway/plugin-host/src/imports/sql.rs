//! `weir:plugin/sql`: databases, by the name of a connection.

use std::sync::Arc;

use weir_connections::{ConnectionError, ConnectionHandle, FailureCode, sql::SqlConnection};

use super::{
    ARGUMENT_MAX_BYTES, BATCH_MAX, ImportAccess, Running, error, side_by_side, too_large,
    wrong_kind,
};
use crate::{
    bindings::v0_1::weir::plugin::sql::{Error, Host, Rows, Statement},
    guest::GuestState,
};

impl Host for GuestState {
    async fn dialect(&mut self, connection: String) -> wasmtime::Result<Result<String, Error>> {
        self.count_source_calls(1)?;
        Ok(self
            .database(&connection, ImportAccess::Read)
            .map(|database| database.dialect().to_owned()))
    }

    async fn query(&mut self, statement: Statement) -> wasmtime::Result<Result<Rows, Error>> {
        self.count_source_calls(1)?;
        let running = match self.begin_query(statement) {
            Ok(running) => running,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.wait(running).await;
        Ok(self.rows(answer))
    }

    async fn query_many(
        &mut self,
        statements: Vec<Statement>,
    ) -> wasmtime::Result<Vec<Result<Rows, Error>>> {
        self.count_source_calls(statements.len())?;
        if statements.len() > BATCH_MAX {
            return Ok(statements
                .iter()
                .map(|_| Err(too_large("At most 64 statements at once.")))
                .collect());
        }
        let begun: Vec<_> = statements
            .into_iter()
            .map(|statement| self.begin_query(statement))
            .collect();
        let most = self.profile.limits.result_max_bytes;
        let answers = self
            .wait(side_by_side(begun, |rows| rows.records.len(), most))
            .await;
        let rows = |rows: weir_connections::sql::SqlRows| Rows {
            records: rows.records,
            truncated: rows.truncated,
        };
        Ok(answers.into_iter().map(|answer| answer.map(rows)).collect())
    }

    async fn execute(&mut self, statement: Statement) -> wasmtime::Result<Result<u64, Error>> {
        self.count_source_calls(1)?;
        let running = match self.begin_execute(statement) {
            Ok(running) => running,
            Err(error) => return Ok(Err(error)),
        };
        Ok(self.wait(running).await.map_err(Error::from))
    }
}

impl GuestState {
    fn database(
        &self,
        connection: &str,
        access: ImportAccess,
    ) -> Result<Arc<SqlConnection>, Error> {
        match self.connection(connection, access)? {
            ConnectionHandle::Sql(database) => Ok(Arc::clone(database)),
            _ => Err(wrong_kind("not a database", connection)),
        }
    }

    fn begin_query(
        &self,
        statement: Statement,
    ) -> Result<Running<weir_connections::sql::SqlRows>, Error> {
        check_size(&statement)?;
        let deadline = self.call.deadline;
        let purpose = StatementPurpose::read(&statement)?;
        if purpose.statement {
            self.check_statements_granted(&statement.connection)?;
        }
        if !purpose.write {
            let database = self.database(&statement.connection, ImportAccess::Read)?;
            return Ok(Box::pin(async move {
                database.query(borrow(&statement, deadline)).await
            }));
        }
        let database = self.database(&statement.connection, ImportAccess::Write)?;
        let write = async move { database.query_write(borrow(&statement, deadline)).await };
        // A write that answers rows answers one for each row it touched: none, and nothing was changed.
        Ok(Box::pin(self.hand_over(write, |answer| match answer {
            Ok(rows) => rows.records.trim() != "[]",
            Err(error) => !error.nothing_changed,
        })))
    }

    fn begin_execute(&self, statement: Statement) -> Result<Running<u64>, Error> {
        check_size(&statement)?;
        if StatementPurpose::read(&statement)?.statement {
            self.check_statements_granted(&statement.connection)?;
        }
        let deadline = self.call.deadline;
        let database = self.database(&statement.connection, ImportAccess::Write)?;
        let write = async move { database.execute(borrow(&statement, deadline)).await };
        Ok(Box::pin(self.hand_over(write, |answer| match answer {
            Ok(changed) => *changed > 0,
            Err(error) => !error.nothing_changed,
        })))
    }

    fn rows(
        &self,
        answer: Result<weir_connections::sql::SqlRows, ConnectionError>,
    ) -> Result<Rows, Error> {
        let rows = answer?;
        if rows.records.len() > self.profile.limits.result_max_bytes {
            return Err(too_large("The rows are too large; ask for fewer."));
        }
        Ok(Rows {
            records: rows.records,
            truncated: rows.truncated,
        })
    }
}

/// The options of a statement that state its purpose.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct StatementPurpose {
    /// The statement changes rows and answers with them.
    write: bool,
    /// Its text is the contract's own.
    statement: bool,
}

impl StatementPurpose {
    fn read(statement: &Statement) -> Result<Self, Error> {
        let Some(options) = &statement.options else {
            return Ok(Self::default());
        };
        serde_json::from_str(options).map_err(|_| {
            error(
                FailureCode::InvalidArguments,
                "The options of a statement are a JSON object.",
            )
        })
    }
}

fn check_size(statement: &Statement) -> Result<(), Error> {
    let size = statement.text.len()
        + statement.parameters.len()
        + statement.connection.len()
        + statement.options.as_ref().map_or(0, String::len);
    if size > ARGUMENT_MAX_BYTES {
        Err(too_large(
            "A statement and its parameters take at most 1 MB.",
        ))
    } else {
        Ok(())
    }
}

fn borrow(
    statement: &Statement,
    deadline: std::time::Instant,
) -> weir_connections::sql::SqlStatement<'_> {
    weir_connections::sql::SqlStatement {
        text: &statement.text,
        parameters: &statement.parameters,
        limit: statement.limit,
        options: statement.options.as_deref(),
        deadline,
    }
}
