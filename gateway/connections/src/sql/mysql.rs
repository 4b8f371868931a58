//! MySQL and MariaDB: prepared statements (one statement, bound parameters), each call in its own transaction, `READ
//! ONLY` unless it writes, with the server's own timeout where it has one. A read ends in ROLLBACK. A session that was
//! abandoned in the middle of something is ended by KILL over another one, and never used again.
//!
//! A transaction that is READ ONLY may still write files of the server, so words that reach them are refused
//! ([`words`]), and an account that may do so is not used ([`session`]).
//!
//! Neither server answers an UPDATE with rows, and MySQL answers no write with any, so a statement may come with another
//! one that reads the record in the same transaction ([`ReturningRead`](super::ReturningRead)).

mod address;
mod error;
mod pool;
mod session;
mod values;
mod words;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::time::{sleep_until, timeout_at};

use super::{
    PreparedStatement, ReadTime, SqlRows, StatementAccess, StatementOutcome, refused,
    rows::RowHeader,
    session_pool::{HeldSession, SessionPool},
};
use crate::{ConnectionError, FailureCode};
use address::read_address;
use error::SessionFailure;
use session::MysqlSession;

const SESSIONS_MAX: u32 = 10;
/// The time that we wait beyond the deadline for the server's own timeout.
const GRACE: Duration = Duration::from_millis(250);
/// The time that a ROLLBACK, or a COMMIT that is late, may take before the session is dropped.
const CLEANUP_MAX: Duration = Duration::from_secs(2);
/// The bytes of an answer beyond its limit that are read over to keep the session; if there are more, it is ended.
const SURPLUS_MAX_BYTES: usize = 256 * 1024;

pub(super) struct MysqlDatabase {
    pool: Arc<SessionPool<MysqlSession>>,
}

impl MysqlDatabase {
    pub(super) fn new(url: &str, pool_max: Option<u32>) -> Result<Self, String> {
        let address = read_address(url)?;
        let size = pool_max.unwrap_or(SESSIONS_MAX);
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
        let access = match prepared.options.describes_write() {
            true => StatementAccess::Write,
            false => access,
        };
        words::check(&prepared.text, access).map_err(ConnectionError::nothing_changed)?;
        if let Some(returning) = &prepared.options.returning {
            words::check(&returning.text, StatementAccess::Read)
                .map_err(ConnectionError::nothing_changed)?;
            if let Some(clause) = &returning.clause {
                words::check(&format!("{} {clause}", prepared.text), access)
                    .map_err(ConnectionError::nothing_changed)?;
            }
        }
        let turn = self.pool.turn(prepared.deadline).await;
        let held = turn.map_err(ConnectionError::nothing_changed)?;
        let call = MysqlCall {
            pool: self.pool.clone(),
            prepared,
            access,
            is_committing: AtomicBool::new(false),
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

struct MysqlCall {
    pool: Arc<SessionPool<MysqlSession>>,
    prepared: PreparedStatement,
    access: StatementAccess,
    /// COMMIT may have reached the server.
    is_committing: AtomicBool,
}

impl MysqlCall {
    async fn run(
        self,
        mut held: HeldSession<MysqlSession>,
    ) -> Result<StatementOutcome, ConnectionError> {
        let mut is_retried = false;
        loop {
            self.begin(&mut held)
                .await
                .map_err(ConnectionError::nothing_changed)?;
            let result = match self.access {
                StatementAccess::Read => self.read_in_time(&mut held).await,
                StatementAccess::Write => Box::pin(self.write_in_time(&mut held)).await,
            };
            let failure = match result {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            if failure.is_unknown {
                return Err(failure.error);
            }
            // Whatever is not committed is taken back. A server that has refused a statement waits for the next.
            if failure.is_answered {
                held.roll_back().await;
            }
            if failure.is_deadlock && !is_retried {
                is_retried = true;
                self.is_committing.store(false, Relaxed);
                continue;
            }
            return Err(failure.error.nothing_changed());
        }
    }

    /// Takes a session and begins a transaction. A session that was used before may have ended since: then another one is
    /// taken.
    async fn begin(&self, held: &mut HeldSession<MysqlSession>) -> Result<(), ConnectionError> {
        loop {
            let left = self.left()?;
            held.connect(left).await?;
            let late = self.prepared.deadline + GRACE;
            let begun = held.session().begin(self.access, left);
            match timeout_at(late.into(), begun).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failure)) if !failure.is_answered && held.is_reused() => {
                    self.pool.clear();
                    held.let_go();
                }
                Ok(Err(failure)) => {
                    if failure.is_answered {
                        held.roll_back().await;
                    }
                    return Err(failure.error);
                }
                Err(_) => return Err(refused::timed_out()),
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

    /// Runs a read. After the time of the server's own timeout the caller gets an answer, and `held` ends the session.
    async fn read_in_time(
        &self,
        held: &mut HeldSession<MysqlSession>,
    ) -> Result<StatementOutcome, SessionFailure> {
        let late = self.prepared.deadline + GRACE;
        timeout_at(late.into(), self.read(held))
            .await
            .unwrap_or_else(|_| Err(SessionFailure::cut(refused::timed_out())))
    }

    async fn read(
        &self,
        held: &mut HeldSession<MysqlSession>,
    ) -> Result<StatementOutcome, SessionFailure> {
        let PreparedStatement { text, options, .. } = &self.prepared;
        let session = held.session();
        let outcome = if options.describe {
            session.describe(text).await?
        } else {
            let answer = session
                .answer(text, &self.prepared.parameters, self.prepared.limit)
                .await?;
            if !answer.is_whole {
                // The rest is left to `held`.
                return Ok(answer.outcome);
            }
            answer.outcome
        };
        // The rows are whole; if this fails, `held` cleans up.
        let _ = session.end().await;
        Ok(outcome)
    }

    /// Runs a write. A late one is ended over another session, and then its outcome is known, unless its COMMIT was on
    /// its way.
    async fn write_in_time(
        &self,
        held: &mut HeldSession<MysqlSession>,
    ) -> Result<StatementOutcome, SessionFailure> {
        let late = self.prepared.deadline + GRACE;
        let work = self.write(held);
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => return result,
            () = sleep_until(late.into()) => {}
        }
        if !self.is_committing.load(Relaxed) {
            return Err(SessionFailure::cut(refused::timed_out()));
        }
        match tokio::time::timeout(CLEANUP_MAX, work).await {
            Ok(result) => result,
            Err(late) => Err(error::unknown(late)),
        }
    }

    async fn write(
        &self,
        held: &mut HeldSession<MysqlSession>,
    ) -> Result<StatementOutcome, SessionFailure> {
        let PreparedStatement {
            text,
            parameters,
            limit,
            options,
            ..
        } = &self.prepared;
        let session = held.session();
        if options.describe {
            let outcome = session.describe(text).await?;
            let _ = session.end().await;
            return Ok(outcome);
        }
        let mut rows = None;
        if let Some(returning) = options.returning_at(ReadTime::Before) {
            rows = Some(whole(
                session
                    .answer(&returning.text, &returning.parameters()?, *limit)
                    .await?,
            )?);
        }
        let after = options.returning_at(ReadTime::After);
        // MariaDB shows what it has inserted, also where a trigger or a column has changed it.
        let clause = after.and_then(|read| read.clause.as_deref());
        let clause = clause.filter(|_| session.is_mariadb());
        let after = after.filter(|_| clause.is_none());
        let mut is_another = false;
        if let Some(returning) = after.filter(|read| read.is_new) {
            let parameters = returning.parameters()?;
            let read = session.answer(&returning.text, &parameters, *limit);
            is_another = whole(read.await?)?.rows.records != "[]";
        }
        let text = match clause {
            Some(clause) => &format!("{text} {clause}"),
            None => text,
        };
        let mut outcome = whole(session.answer(text, parameters, *limit).await?)?;
        options.check(outcome.changed)?;
        if let Some(returning) = after {
            let parameters = returning.parameters()?;
            let read = session.answer(&returning.text, &parameters, *limit);
            let read = whole(read.await?)?;
            // A trigger has written another key than the one that is read.
            if is_another || read.rows.records == "[]" {
                return Err(ConnectionError::new(
                    FailureCode::UpstreamError,
                    "the database does not show the record that was written, so nothing was changed",
                )
                .into());
            }
            rows = Some(read);
        }
        if let Some(read) = rows {
            outcome.rows = read.rows;
        }
        self.is_committing.store(true, Relaxed);
        session.commit().await?;
        // The write is done; if this fails, `held` cleans up.
        let _ = session.end().await;
        Ok(outcome)
    }
}

/// The rows of a write have to be whole, since only then has the statement ended.
fn whole(answer: session::SessionAnswer) -> Result<StatementOutcome, ConnectionError> {
    match answer.is_whole {
        true => Ok(answer.outcome),
        false => Err(ConnectionError::new(
            FailureCode::TooLarge,
            "the statement answers more rows than were asked for",
        )),
    }
}

fn no_rows() -> SqlRows {
    SqlRows {
        records: "[]".to_owned(),
        truncated: false,
    }
}
