//! PostgreSQL, by sqlx: the extended protocol (one statement, bound parameters), each call in a transaction of its
//! own, `READ ONLY` unless it writes, with `statement_timeout` from the deadline. A read ends in ROLLBACK, so that no
//! SET survives it, and is cancelled on the server when nobody waits for it any more.
//!
//! The pool is ours: sqlx's retries an unreachable server until its acquire timeout, where we answer at once, and asks
//! each idle connection whether it is alive, which the BEGIN does anyway.

mod error;
mod pool;
mod values;

use std::{
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use sqlx::{
    Arguments, AssertSqlSafe, Column, Connection, Either, Executor, Row, SqlSafeStr, Statement, TypeInfo,
    postgres::{PgArguments, PgConnectOptions, PgConnection, PgTypeKind},
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    Access, Outcome, Prepared, Rows,
    parameters::Parameter,
    refused,
    rows::{Cell, RowsWriter},
};
use crate::ConnectionError;
use pool::{Lease, Pool};

const CONNECTIONS_MAX: u32 = 10;
/// How long we wait beyond the deadline for the server's own timeout, before we cancel.
const GRACE: Duration = Duration::from_millis(250);
/// How long a cancelled statement, or a ROLLBACK, may take before the connection is given up.
const CLEANUP_MAX: Duration = Duration::from_secs(2);

pub(super) struct Postgresql {
    pool: Arc<Pool>,
}

impl Postgresql {
    pub(super) fn new(url: &str, pool_max: Option<u32>) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("`url` must begin with postgresql://".to_owned());
        }
        // The parser's error may repeat the URL, and that holds a password.
        let options = PgConnectOptions::from_str(url).map_err(|_| "`url` is not a PostgreSQL URL".to_owned())?;
        let options = options.application_name("weir").statement_cache_capacity(100);
        let size = pool_max.unwrap_or(CONNECTIONS_MAX);
        if !(1..=100).contains(&size) {
            return Err("`pool_max` must be between 1 and 100".to_owned());
        }
        Ok(Self { pool: Arc::new(Pool::new(options, size as usize)) })
    }

    pub(super) async fn run(&self, prepared: Prepared, access: Access) -> Result<Outcome, ConnectionError> {
        check_verb(&prepared.text, access)?;
        let turn = self.pool.turn(prepared.deadline).await?;
        let (reply, answer) = oneshot::channel();
        let call = Call { pool: self.pool.clone(), prepared, access };
        // A task of its own: a write outlives its caller, and a read's connection is cleaned up without making the
        // caller wait.
        tokio::spawn(call.run(turn, reply));
        answer.await.unwrap_or_else(|_| Err(refused::statement().details("the task of the statement was lost")))
    }
}

/// Statements that look at or change rows. Everything else (COMMIT, SET, COPY, DO, PREPARE, LISTEN, …) concerns the
/// session, which calls share. The transaction's mode is what protects the data; this protects the session.
fn check_verb(text: &str, access: Access) -> Result<(), ConnectionError> {
    let word: String = text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let allowed: &[&str] = match access {
        Access::Read => &["SELECT", "WITH", "VALUES", "TABLE"],
        Access::Write => &["INSERT", "UPDATE", "DELETE", "MERGE", "WITH"],
    };
    if allowed.iter().any(|allowed| word.eq_ignore_ascii_case(allowed)) { Ok(()) } else { Err(refused::denied()) }
}

struct Call {
    pool: Arc<Pool>,
    prepared: Prepared,
    access: Access,
}

type Reply = oneshot::Sender<Result<Outcome, ConnectionError>>;

impl Call {
    async fn run(self, _turn: OwnedSemaphorePermit, mut reply: Reply) {
        for last in [false, true] {
            let mut lease = match self.begin().await {
                Ok(lease) => lease,
                Err(error) => return drop(reply.send(Err(error))),
            };
            let result = self.watched(&mut lease, &mut reply).await;
            match result {
                // Nothing was changed, and another try may well succeed.
                Err(error) if error.again && !last => {
                    lease.forget_statements();
                    self.end(lease).await;
                }
                result => {
                    let _ = reply.send(result.map_err(|error| error.said));
                    return self.end(lease).await;
                }
            }
        }
    }

    /// A connection inside a fresh transaction. One from the pool may be dead by now: then a new one is tried.
    async fn begin(&self) -> Result<Lease, ConnectionError> {
        loop {
            let left = self.prepared.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(refused::timed_out());
            }
            let mut lease = self.pool.lease(left).await?;
            let mode = if self.access == Access::Read { "READ ONLY" } else { "READ WRITE" };
            let begin = format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED {mode}; SET LOCAL statement_timeout = {}",
                left.as_millis().clamp(1, i32::MAX as u128)
            );
            let begun = tokio::time::timeout(left, lease.connection.execute(sqlx::raw_sql(AssertSqlSafe(begin)))).await;
            match begun {
                Ok(Ok(_)) => return Ok(lease),
                Ok(Err(_)) if lease.reused => self.pool.clear(),
                Ok(Err(error)) => return Err(error::from(error).said),
                Err(_) => return Err(refused::timed_out()),
            }
        }
    }

    /// Runs the statement; once the deadline is past or the reader is gone, has the server cancel it.
    async fn watched(&self, lease: &mut Lease, reply: &mut Reply) -> Result<Outcome, error::Failure> {
        let process = lease.process;
        let interrupted;
        let result;
        {
            let work = self.statement(lease);
            tokio::pin!(work);
            let late = tokio::time::sleep_until((self.prepared.deadline + GRACE).into());
            interrupted = tokio::select! {
                result = &mut work => return result,
                () = late => refused::timed_out(),
                () = reply.closed(), if self.access == Access::Read => refused::cancelled(),
            };
            self.pool.cancel(process).await;
            result = tokio::time::timeout(CLEANUP_MAX, work).await;
        }
        match result {
            // It came just in time after all; for a write that is the truth.
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(interrupted.into()),
            Err(_) => {
                lease.broken = true;
                Err(interrupted.into())
            }
        }
    }

    async fn statement(&self, lease: &mut Lease) -> Result<Outcome, error::Failure> {
        if self.prepared.options.describe {
            return Ok(Outcome { rows: self.describe(&mut lease.connection).await?, changed: 0 });
        }
        let query = sqlx::query_with(AssertSqlSafe(self.prepared.text.clone()), arguments(&self.prepared.parameters)?);
        let mut writer: Option<RowsWriter> = None;
        let mut changed = 0;
        let mut cut = None;
        {
            let mut results = lease.connection.fetch_many(query);
            while let Some(result) = results.try_next().await.map_err(error::from)? {
                let row = match result {
                    Either::Left(done) => {
                        changed += done.rows_affected();
                        continue;
                    }
                    Either::Right(row) => row,
                };
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => {
                        let names = row.columns().iter().map(|column| column.name().to_owned()).collect();
                        writer.insert(RowsWriter::new(names, self.prepared.limit)?)
                    }
                };
                if !writer.begin_row() {
                    cut = Some(Ok(()));
                } else if let Err(error) = values::write(&row, writer) {
                    cut = Some(Err(error));
                }
                // A write has to be read to its end, or it would not have ended.
                if cut.is_some() && self.access == Access::Read {
                    break;
                }
            }
        }
        if let Some(cut) = cut {
            // The rest of the answer is still on its way: not a connection to go on with.
            lease.broken = self.access == Access::Read;
            cut?;
        }
        if self.access == Access::Write {
            self.prepared.options.check(changed)?;
            lease.connection.execute(sqlx::raw_sql("COMMIT")).await.map_err(error::from_commit)?;
        }
        let rows = match writer {
            Some(writer) => writer.finish(),
            None => Rows { records: "[]".to_owned(), truncated: false },
        };
        Ok(Outcome { rows, changed: if self.access == Access::Write { changed } else { 0 } })
    }

    /// One row a column, without running the statement. The server cannot tell whether an expression may be null.
    async fn describe(&self, connection: &mut PgConnection) -> Result<Rows, error::Failure> {
        let text = AssertSqlSafe(self.prepared.text.clone()).into_sql_str();
        let statement = connection.prepare(text).await.map_err(error::from)?;
        let columns = statement.columns();
        let names = ["name", "type", "nullable"].map(str::to_owned).to_vec();
        let mut writer = RowsWriter::new(names, columns.len() as u32)?;
        for column in columns {
            let name = match column.type_info().kind() {
                PgTypeKind::Enum(_) => "enum".to_owned(),
                PgTypeKind::Array(element) => format!("{}[]", element.name().to_lowercase()),
                _ => column.type_info().name().to_lowercase(),
            };
            writer.begin_row();
            writer.cell(0, Cell::Text(column.name()))?;
            writer.cell(1, Cell::Text(&name))?;
            writer.cell(2, Cell::Boolean(true))?;
            writer.end_row();
        }
        Ok(writer.finish())
    }

    /// Leaves the session as it was found. Advisory locks are the one thing ROLLBACK leaves behind.
    async fn end(&self, mut lease: Lease) {
        if lease.broken {
            return;
        }
        let cleanup = async {
            lease.connection.execute(sqlx::raw_sql("ROLLBACK; SELECT pg_advisory_unlock_all()")).await?;
            if lease.stale_statements {
                lease.connection.clear_cached_statements().await?;
            }
            Ok::<(), sqlx::Error>(())
        };
        if let Ok(Ok(())) = tokio::time::timeout(CLEANUP_MAX, cleanup).await {
            self.pool.give_back(lease);
        }
    }
}

/// Every parameter as text: the statement casts, and says so.
fn arguments(parameters: &[Parameter]) -> Result<PgArguments, ConnectionError> {
    let mut arguments = PgArguments::default();
    for parameter in parameters {
        let text = match parameter {
            Parameter::Null => None,
            Parameter::Boolean(value) => Some(value.to_string()),
            Parameter::Integer(value) => Some(value.to_string()),
            Parameter::Real(_, text) | Parameter::Text(text) => Some(text.clone()),
        };
        arguments.add(text).map_err(|error| refused::unfit().details(error))?;
    }
    Ok(arguments)
}
