//! PostgreSQL: the extended protocol (one statement, bound parameters), each call in its own transaction, `READ ONLY` unless
//! it writes, with `statement_timeout` from the deadline. A read ends in ROLLBACK, so that no SET survives it, and is
//! cancelled on the server when its caller has gone.
//!
//! A read is one request: BEGIN, the timeout, the statement, the release of advisory locks and ROLLBACK leave in one write
//! and are answered in one. The server skips what follows a failure up to the request's end, so a statement whose BEGIN
//! failed never runs. A write is sent step by step: its BEGIN is answered before the statement is sent. No statement has a
//! name at the server: each is parsed where it runs.
//!
//! Values that a read seldom needs are boxed, so that the future of each call remains small.

mod address;
mod error;
mod login;
mod pool;
mod session;
mod tls;
mod values;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::time::{sleep_until, timeout, timeout_at};

use super::{
    PreparedStatement, SqlRows, StatementAccess, StatementOutcome, refused,
    rows::{RowHeader, RowsWriter, SqlCell},
    session_pool::{HeldSession, SessionPool},
};
use crate::ConnectionError;
use address::PostgresqlAddress;
use error::{PostgresqlFailure, RecoveryStep};
use session::{PostgresqlReply, PostgresqlSession, RowDescription};

const CONNECTIONS_MAX: u32 = 10;
/// The time that we wait beyond the deadline for the server's own timeout, before we cancel.
const GRACE: Duration = Duration::from_millis(250);
/// The time that a cancelled statement, or a ROLLBACK, may take before the connection is dropped.
const CLEANUP_MAX: Duration = Duration::from_secs(2);
/// The bytes of an answer beyond its limit that are read over to keep the connection; if there are more, it is
/// cancelled.
const SURPLUS_MAX_BYTES: usize = 256 * 1024;

pub(super) struct PostgresqlDatabase {
    pool: Arc<SessionPool<PostgresqlSession>>,
}

impl PostgresqlDatabase {
    pub(super) fn new(url: &str, pool_max: Option<u32>) -> Result<Self, String> {
        let address = PostgresqlAddress::parse(url)?;
        let size = pool_max.unwrap_or(CONNECTIONS_MAX);
        if !(1..=100).contains(&size) {
            return Err("`pool_max` must be between 1 and 100".to_owned());
        }
        Ok(Self {
            pool: Arc::new(SessionPool::new(address, size as usize)),
        })
    }

    pub(super) async fn run(
        &self,
        prepared: PreparedStatement,
        access: StatementAccess,
    ) -> Result<StatementOutcome, ConnectionError> {
        let meant = match prepared.options.describes_write() {
            true => StatementAccess::Write,
            false => access,
        };
        check_verb(&prepared.text, meant)?;
        let turn = self.pool.turn(prepared.deadline).await;
        let held = turn.map_err(ConnectionError::nothing_changed)?;
        let call = PostgresqlCall {
            pool: self.pool.clone(),
            prepared,
            access,
            committing: AtomicBool::new(false),
        };
        match access {
            // If this is dropped half-way, `held` cleans up after itself.
            StatementAccess::Read => call.run(held).await,
            // A separate task: a write outlives its caller.
            StatementAccess::Write => tokio::spawn(call.run(held))
                .await
                .unwrap_or_else(|lost| Err(refused::statement().details(lost))),
        }
    }
}

/// Returns the length of the next message, as far as the server has announced it.
fn announced(incoming: &[u8]) -> Option<usize> {
    let length = incoming.get(1..5)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*length) as usize)
}

/// Allows statements that look at or change rows. Everything else (COMMIT, SET, COPY, DO, PREPARE, LISTEN, …) concerns
/// the session, which calls share. The transaction's mode is what protects the data; this protects the session.
fn check_verb(text: &str, access: StatementAccess) -> Result<(), ConnectionError> {
    let word: String = text
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let allowed: &[&str] = match access {
        StatementAccess::Read => &["SELECT", "WITH", "VALUES", "TABLE"],
        StatementAccess::Write => &["INSERT", "UPDATE", "DELETE", "MERGE", "WITH"],
    };
    if allowed
        .iter()
        .any(|allowed| word.eq_ignore_ascii_case(allowed))
    {
        Ok(())
    } else {
        Err(refused::denied())
    }
}

struct PostgresqlCall {
    pool: Arc<SessionPool<PostgresqlSession>>,
    prepared: PreparedStatement,
    access: StatementAccess,
    /// COMMIT may have reached the server.
    committing: AtomicBool,
}

impl PostgresqlCall {
    async fn run(
        self,
        mut held: HeldSession<PostgresqlSession>,
    ) -> Result<StatementOutcome, ConnectionError> {
        let (mut is_retried, mut is_typed) = (false, false);
        loop {
            let left = self.left().map_err(ConnectionError::nothing_changed)?;
            let connected = held.connect(left).await;
            connected.map_err(ConnectionError::nothing_changed)?;
            let result = match self.access {
                StatementAccess::Read => self.read_in_time(&mut held).await,
                StatementAccess::Write => Box::pin(self.write_in_time(&mut held)).await,
            };
            let mut failure = match result {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            // Whatever is not committed is taken back.
            failure.error.nothing_changed |= failure.next != RecoveryStep::Unknown;
            match failure.next {
                // The server has gone since: with it, most likely, every connection that waits.
                RecoveryStep::Elsewhere if held.is_reused() => {
                    self.pool.clear();
                    held.let_go();
                }
                // Nothing was changed, and another try may well succeed.
                ref next @ (RecoveryStep::Again | RecoveryStep::Typed(_))
                    if !(if *next == RecoveryStep::Again {
                        is_retried
                    } else {
                        is_typed
                    }) =>
                {
                    match next {
                        RecoveryStep::Again => is_retried = true,
                        _ => is_typed = true,
                    }
                    if !held.settle().await {
                        return Err(failure.error);
                    }
                    if let RecoveryStep::Typed(oids) = failure.next {
                        let timeout = self.timeout();
                        let timeout = timeout.map_err(ConnectionError::nothing_changed)?;
                        let found = held.session().find_enumerations(oids, timeout);
                        Box::pin(found).await.map_err(|error| {
                            PostgresqlFailure::from(error).error.nothing_changed()
                        })?;
                    }
                }
                _ => return Err(failure.error),
            }
        }
    }

    fn left(&self) -> Result<Duration, ConnectionError> {
        let left = self
            .prepared
            .deadline
            .saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(refused::timed_out())
        } else {
            Ok(left)
        }
    }

    /// Returns the timeout for the server, which counts from the beginning of the statement.
    fn timeout(&self) -> Result<Duration, ConnectionError> {
        Ok(self.left()?.clamp(
            Duration::from_millis(1),
            Duration::from_millis(i32::MAX as u64),
        ))
    }

    /// Runs a read. After the time of the server's own timeout the caller gets an answer, and `held` has the statement
    /// cancelled.
    async fn read_in_time(
        &self,
        held: &mut HeldSession<PostgresqlSession>,
    ) -> Result<StatementOutcome, PostgresqlFailure> {
        let late = self.prepared.deadline + GRACE;
        timeout_at(late.into(), self.read(held.session()))
            .await
            .unwrap_or_else(|_| Err(refused::timed_out().into()))
    }

    /// Runs a write. A late one is cancelled, and then its outcome is asked for.
    async fn write_in_time(
        &self,
        held: &mut HeldSession<PostgresqlSession>,
    ) -> Result<StatementOutcome, PostgresqlFailure> {
        let key = held.session().key;
        let result = {
            let work = self.write(held.session());
            tokio::pin!(work);
            tokio::select! {
                result = &mut work => return result,
                () = sleep_until((self.prepared.deadline + GRACE).into()) => {}
            }
            self.pool.cancel(key).await;
            timeout(CLEANUP_MAX, work).await
        };
        match result {
            // The write ended just in time after all, so this is the true outcome.
            Ok(Ok(outcome)) => Ok(outcome),
            // The write was cancelled when its COMMIT was already on its way, and the error has to say so as well.
            Ok(Err(failure)) if failure.next == RecoveryStep::Unknown => Err(failure),
            Ok(Err(_)) => Err(refused::timed_out().into()),
            // `held` brings the session to its end.
            Err(late) => match self.committing.load(Relaxed) {
                true => Err(error::unknown(late)),
                false => Err(refused::timed_out().into()),
            },
        }
    }

    async fn read(
        &self,
        session: &mut PostgresqlSession,
    ) -> Result<StatementOutcome, PostgresqlFailure> {
        if self.prepared.options.describe {
            return Box::pin(self.described(session)).await;
        }
        session.begin(StatementAccess::Read, self.timeout()?)?;
        session.execute(&self.prepared.text, &self.prepared.parameters)?;
        session.end_of_read()?;
        session.send().await?;
        session.began(StatementAccess::Read).await?;
        let description = session.description().await?;
        let mut rows = PostgresqlRows::default();
        while let PostgresqlReply::Row(row) = session.reply().await? {
            rows.take(&row, &description, self.prepared.limit)?;
            if rows.surplus_bytes > SURPLUS_MAX_BYTES {
                // The rest is left to `held`.
                return Ok(StatementOutcome {
                    rows: rows.finish(),
                    changed: 0,
                });
            }
        }
        // The rows are whole; if this fails, `held` cleans up.
        let _ = session.ended().await;
        Ok(StatementOutcome {
            rows: rows.finish(),
            changed: 0,
        })
    }

    async fn write(
        &self,
        session: &mut PostgresqlSession,
    ) -> Result<StatementOutcome, PostgresqlFailure> {
        if self.prepared.options.describe {
            return Box::pin(self.described(session)).await;
        }
        session.begin(StatementAccess::Write, self.timeout()?)?;
        session.sync();
        session.send().await?;
        session.began(StatementAccess::Write).await?;
        session.ready().await?;
        // From here on the statement may have run.
        let (rows, changed) = self.change(session).await.map_err(error::while_writing)?;
        self.prepared.options.check(changed)?;
        session.commit()?;
        self.committing.store(true, Relaxed);
        session.send().await.map_err(error::while_committing)?;
        match session.reply().await.map_err(error::while_committing)? {
            PostgresqlReply::Done(done) if done.tag() == "COMMIT" => {}
            _ => return Err(refused::statement().details("COMMIT was not made").into()),
        }
        // The write is done; if this fails, `held` cleans up.
        let _ = session.ended().await;
        Ok(StatementOutcome { rows, changed })
    }

    async fn change(
        &self,
        session: &mut PostgresqlSession,
    ) -> Result<(SqlRows, u64), session::PostgresqlError> {
        session.execute(&self.prepared.text, &self.prepared.parameters)?;
        session.sync();
        session.send().await?;
        let description = session.description().await?;
        let mut rows = PostgresqlRows::default();
        let changed = loop {
            match session.reply().await? {
                // Rows have to be read to the end, since only then has the statement ended.
                PostgresqlReply::Row(row) => rows.take(&row, &description, self.prepared.limit)?,
                PostgresqlReply::Done(done) => break done.rows(),
            }
        };
        session.ready().await?;
        Ok((rows.finish(), changed))
    }

    /// Returns one row for each column, without running the statement. The server cannot tell whether an expression may
    /// be null.
    async fn described(
        &self,
        session: &mut PostgresqlSession,
    ) -> Result<StatementOutcome, PostgresqlFailure> {
        let columns = session
            .describe(&self.prepared.text, self.timeout()?)
            .await?;
        let types = session
            .types(
                columns.iter().map(|column| column.type_oid),
                self.timeout()?,
            )
            .await?;
        let names = ["name", "type", "nullable"].map(str::to_owned).to_vec();
        let mut writer = RowsWriter::new(Arc::new(RowHeader::new(names)?), columns.len() as u32);
        for column in &columns {
            let name = types
                .get(&column.type_oid)
                .map_or("?", |found| found.name.as_str());
            writer.begin_row();
            writer.cell(0, SqlCell::Text(&column.name))?;
            writer.cell(1, SqlCell::Text(name))?;
            writer.cell(2, SqlCell::Boolean(true))?;
            writer.end_row()?;
        }
        Ok(StatementOutcome {
            rows: writer.finish(),
            changed: 0,
        })
    }
}

/// Rows as they come, up to the limits.
#[derive(Default)]
struct PostgresqlRows {
    writer: Option<RowsWriter>,
    /// The bytes that came beyond the limit.
    surplus_bytes: usize,
}

impl PostgresqlRows {
    fn take(
        &mut self,
        row: &session::Row,
        description: &RowDescription,
        limit: u32,
    ) -> Result<(), ConnectionError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self
                .writer
                .insert(RowsWriter::new(description.header()?, limit)),
        };
        if self.surplus_bytes > 0 || !writer.begin_row() {
            self.surplus_bytes += row.buffer().len().max(1);
            return Ok(());
        }
        values::write(row, &description.columns, writer)
    }

    fn finish(self) -> SqlRows {
        match self.writer {
            Some(writer) => writer.finish(),
            None => SqlRows {
                records: "[]".to_owned(),
                truncated: false,
            },
        }
    }
}
