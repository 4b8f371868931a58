//! One session with the server, with the settings that make values the same everywhere.

use std::{sync::Arc, time::Duration};

use futures::TryStreamExt;
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Either, Executor, Row, SqlSafeStr, Statement,
    mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow},
};

use super::{
    super::{
        StatementParameter, refused,
        rows::{RowsWriter, SqlCell},
    },
    RowHeader, SURPLUS_MAX_BYTES, StatementAccess, StatementOutcome,
    error::{self, SessionFailure},
    no_rows, values,
};
use crate::{ConnectionError, FailureCode};

/// Values that do not fit are refused, double quotes are around names, a backslash is a backslash, times are UTC's, and rows
/// are cut off only by the limits of a call: the server would not report that it left out any.
const SETTINGS: &str = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,\
     PIPES_AS_CONCAT,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00', autocommit = 1, max_sort_length = 1024, \
     sql_select_limit = 18446744073709551615";
/// The rights that an account may not have: files of the server are beyond every transaction.
const RIGHTS_REFUSED: [&str; 3] = ["ALL PRIVILEGES", "FILE", "SUPER"];

pub(super) struct MysqlSession {
    connection: MySqlConnection,
    /// The server's number of it.
    id: u64,
    is_mariadb: bool,
    is_at_rest: bool,
}

/// The rows of a statement, and whether nothing more of the answer is on its way.
pub(super) struct SessionAnswer {
    pub(super) outcome: StatementOutcome,
    pub(super) is_whole: bool,
}

impl MysqlSession {
    pub(super) async fn open(address: &MySqlConnectOptions) -> Result<Self, ConnectionError> {
        let failed = error::while_connecting;
        let mut connection = address.connect().await.map_err(failed)?;
        sqlx::raw_sql(SETTINGS)
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        let row = sqlx::raw_sql("SELECT CAST(CONNECTION_ID() AS CHAR), VERSION()")
            .fetch_one(&mut connection)
            .await
            .map_err(failed)?;
        let id = text_at(&row, 0).and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| refused::unavailable().details("the session has no number"))?;
        let is_mariadb = text_at(&row, 1).is_some_and(|version| version.contains("MariaDB"));
        let grants = sqlx::raw_sql("SHOW GRANTS")
            .fetch_all(&mut connection)
            .await
            .map_err(failed)?;
        for grant in &grants {
            check_rights(&text_at(grant, 0).unwrap_or_default())?;
        }
        Ok(Self {
            connection,
            id,
            is_mariadb,
            is_at_rest: true,
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.is_mariadb
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.is_at_rest
    }

    /// Begins a transaction whose statements may take this long. MySQL bounds only reads.
    pub(super) async fn begin(
        &mut self,
        access: StatementAccess,
        timeout: Duration,
    ) -> Result<(), SessionFailure> {
        self.is_at_rest = false;
        let timeout = timeout.clamp(Duration::from_millis(1), Duration::from_secs(86_400));
        let timeout = match self.is_mariadb {
            true => format!("max_statement_time = {:.3}", timeout.as_secs_f64()),
            false => format!("max_execution_time = {}", timeout.as_millis()),
        };
        let mode = match access {
            StatementAccess::Read => "READ ONLY",
            StatementAccess::Write => "READ WRITE",
        };
        let text = format!("SET SESSION {timeout}, last_insert_id = 0; START TRANSACTION {mode}");
        self.control(text).await?;
        Ok(())
    }

    /// Runs a statement and reads its rows, up to the limits.
    pub(super) async fn answer(
        &mut self,
        text: &str,
        parameters: &[StatementParameter],
        limit: u32,
    ) -> Result<SessionAnswer, SessionFailure> {
        let statement = self.connection.prepare(AssertSqlSafe(text).into_sql_str());
        let statement = statement.await?;
        let takes = match statement.parameters() {
            Some(Either::Right(count)) => count,
            _ => 0,
        };
        if takes != parameters.len() {
            let error = ConnectionError::new(
                FailureCode::InvalidArguments,
                "the statement has a different number of parameters",
            );
            return Err(error.into());
        }
        let query = sqlx::query_with(AssertSqlSafe(text).into_sql_str(), bound(parameters)?);
        let mut results = self.connection.fetch_many(query);
        let mut rows = AnswerRows::default();
        let mut changed = 0;
        while let Some(result) = results.try_next().await? {
            match result {
                Either::Left(done) => changed += done.rows_affected(),
                Either::Right(row) => rows.take(&row, limit).map_err(SessionFailure::cut)?,
            }
            if rows.surplus_bytes > SURPLUS_MAX_BYTES {
                break;
            }
        }
        // What a write with RETURNING changed are its rows: the server then counts none.
        changed = changed.max(rows.count);
        let is_whole = rows.surplus_bytes <= SURPLUS_MAX_BYTES;
        let rows = rows.writer.map_or_else(no_rows, RowsWriter::finish);
        Ok(SessionAnswer {
            outcome: StatementOutcome { rows, changed },
            is_whole,
        })
    }

    /// Returns one row for each column, without running the statement.
    pub(super) async fn describe(
        &mut self,
        text: &str,
    ) -> Result<StatementOutcome, SessionFailure> {
        let statement = self.connection.prepare(AssertSqlSafe(text).into_sql_str());
        let statement = statement.await?;
        let columns = statement.columns();
        let names = ["name", "type", "nullable"].map(str::to_owned).to_vec();
        let mut writer = RowsWriter::new(Arc::new(RowHeader::new(names)?), columns.len() as u32);
        for column in columns {
            writer.begin_row();
            writer.cell(0, SqlCell::Text(column.name()))?;
            writer.cell(1, SqlCell::Text(&values::type_name(column.type_info())))?;
            writer.cell(2, SqlCell::Boolean(true))?;
            writer.end_row()?;
        }
        Ok(StatementOutcome {
            rows: writer.finish(),
            changed: 0,
        })
    }

    pub(super) async fn commit(&mut self) -> Result<(), SessionFailure> {
        let committed = sqlx::raw_sql("COMMIT").execute(&mut self.connection).await;
        committed.map(drop).map_err(error::while_committing)
    }

    /// Ends the transaction, and lets go of the locks that a function took, which outlive it.
    pub(super) async fn end(&mut self) -> Result<(), SessionFailure> {
        self.control("ROLLBACK; DO RELEASE_ALL_LOCKS()".to_owned())
            .await?;
        self.is_at_rest = true;
        Ok(())
    }

    /// Ends another session.
    pub(super) async fn kill(&mut self, id: u64) -> Result<(), SessionFailure> {
        self.control(format!("KILL {id}")).await
    }

    /// Runs statements of our own.
    async fn control(&mut self, text: String) -> Result<(), SessionFailure> {
        let done = sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut self.connection);
        Ok(done.await.map(drop)?)
    }
}

/// Rows as they come, up to the limits.
#[derive(Default)]
struct AnswerRows {
    writer: Option<RowsWriter>,
    count: u64,
    /// The bytes that came beyond the limit.
    surplus_bytes: usize,
}

impl AnswerRows {
    fn take(&mut self, row: &MySqlRow, limit: u32) -> Result<(), ConnectionError> {
        self.count += 1;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let names = row.columns().iter().map(|column| column.name().to_owned());
                let header = RowHeader::new(names.collect())?;
                self.writer.insert(RowsWriter::new(Arc::new(header), limit))
            }
        };
        if self.surplus_bytes > 0 || !writer.begin_row() {
            self.surplus_bytes += values::size(row);
            return Ok(());
        }
        values::write(row, writer)
    }
}

fn bound(parameters: &[StatementParameter]) -> Result<MySqlArguments, ConnectionError> {
    use sqlx::Arguments;
    let mut arguments = MySqlArguments::default();
    for parameter in parameters {
        let added = match parameter {
            StatementParameter::Null => arguments.add(None::<&str>),
            StatementParameter::Boolean(value) => arguments.add(i64::from(*value)),
            StatementParameter::Integer(value) => arguments.add(*value),
            StatementParameter::Real(value, _) => arguments.add(*value),
            StatementParameter::Text(text) => arguments.add(text.as_str()),
        };
        added.map_err(|error| refused::unfit().details(error))?;
    }
    Ok(arguments)
}

/// Refuses an account with rights beyond those on tables: `GRANT SELECT, FILE ON *.* TO …`.
fn check_rights(grant: &str) -> Result<(), ConnectionError> {
    let rights = grant
        .strip_prefix("GRANT ")
        .and_then(|grant| grant.split_once(" ON *.* TO "));
    let Some((rights, _)) = rights else {
        return Ok(());
    };
    match rights
        .split(", ")
        .find(|right| RIGHTS_REFUSED.contains(right))
    {
        None => Ok(()),
        Some(right) => Err(ConnectionError::new(
            FailureCode::Forbidden,
            format!(
                "the account of the database may do too much ({right}): give Weir one that has neither FILE nor SUPER, \
                 only rights on its database"
            ),
        )),
    }
}

fn text_at(row: &MySqlRow, index: usize) -> Option<String> {
    let bytes: Vec<u8> = row.try_get_unchecked(index).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_with_files_are_refused() {
        for grant in [
            "GRANT USAGE ON *.* TO `u`@`%`",
            "GRANT SELECT, PROCESS ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*D8'",
            "GRANT ALL PRIVILEGES ON `shop`.* TO `u`@`%`",
            "GRANT `role` TO `u`@`%`",
        ] {
            assert!(check_rights(grant).is_ok(), "{grant}");
        }
        for grant in [
            "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
            "GRANT FILE ON *.* TO `u`@`%`",
            "GRANT SELECT, SUPER, RELOAD ON *.* TO `u`@`%`",
        ] {
            let refused = check_rights(grant).expect_err(grant);
            assert!(!format!("{refused:?}").contains("TO"), "{refused:?}");
        }
    }
}
