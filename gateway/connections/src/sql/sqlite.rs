//! SQLite: one file, opened with everything shut that could reach past it.
//!
//! Opened read-only unless writing is granted; no ATTACH (limit 0 and the authorizer), no extensions, no schema
//! changes, no transaction control, only the PRAGMAs that look at the schema, `DEFENSIVE` on, `trusted_schema` off,
//! exactly one statement. With only a `mode=ro` address, `ATTACH` and `VACUUM INTO` could write files.

mod error;
mod guard;
mod words;

use std::{
    cell::RefCell,
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    PreparedStatement, ReadTime, SqlRows, StatementAccess, StatementOptions, StatementOutcome,
    StatementParameter, refused,
    rows::{RowHeader, RowsWriter, SqlCell},
};
use crate::{ConnectionError, FailureCode};
use guard::SqliteGuard;

const CONNECTIONS_MAX: usize = 8;
const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

pub(super) struct SqliteDatabase {
    inner: Arc<SqliteInner>,
    turns: Arc<Semaphore>,
}

struct SqliteInner {
    path: PathBuf,
    writable: bool,
    idle: Mutex<Vec<SqliteSession>>,
}

/// An open database, and which file it was: another one put in its place is noticed.
struct SqliteSession {
    connection: rusqlite::Connection,
    guard: Arc<SqliteGuard>,
    file: FileId,
    /// The header of the last statement with rows: a tool asks for the same one again and again.
    header: RefCell<Option<Arc<RowHeader>>>,
}

/// Device and inode.
type FileId = (u64, u64);

impl SqliteDatabase {
    pub(super) fn new(path: PathBuf, writable: bool) -> Self {
        let inner = Arc::new(SqliteInner {
            path,
            writable,
            idle: Mutex::default(),
        });
        Self {
            inner,
            turns: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        }
    }

    pub(super) async fn run(
        &self,
        prepared: PreparedStatement,
        access: StatementAccess,
    ) -> Result<StatementOutcome, ConnectionError> {
        let turn = self.turn(prepared.deadline).await;
        let turn = turn.map_err(ConnectionError::nothing_changed)?;
        if access == StatementAccess::Read
            && let Some(outcome) = self.inner.run_at_once(&prepared)
        {
            return Ok(outcome);
        }
        let gone = Arc::new(AtomicBool::new(false));
        // A read without a waiting caller is interrupted; a write continues to its end.
        let _interrupt = (access == StatementAccess::Read).then(|| SetOnDrop(gone.clone()));
        let inner = self.inner.clone();
        let work = weir_admission::run_blocking(move || {
            let _turn = turn;
            inner.run(&prepared, access, gone)
        });
        match work.await {
            Ok(result) => result,
            Err(error) => Err(ConnectionError::new(
                FailureCode::UpstreamError,
                "the database access failed",
            )
            .details(error)),
        }
    }

    async fn turn(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, ConnectionError> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(turn);
        }
        match tokio::time::timeout_at(deadline.into(), self.turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(refused::timed_out()),
        }
    }
}

impl SqliteInner {
    fn run(
        &self,
        prepared: &PreparedStatement,
        access: StatementAccess,
        gone: Arc<AtomicBool>,
    ) -> Result<StatementOutcome, ConnectionError> {
        let left = prepared.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(refused::timed_out().nothing_changed());
        }
        let opened = self.take().map_err(ConnectionError::nothing_changed)?;
        opened.guard.watch(prepared.deadline, gone);
        let result = opened
            .connection
            .busy_timeout(left.min(BUSY_WAIT_MAX))
            .map_err(|error| error::from(error, &opened.guard))
            .and_then(|()| opened.run(prepared, access));
        self.put_back(opened);
        result
    }

    /// Runs a read of few steps on the caller's own thread, since handing it to another costs several times the read.
    /// `None` means that it is longer, has to wait for a lock, or fails, and is to run again on a thread where it
    /// may take its time.
    fn run_at_once(&self, prepared: &PreparedStatement) -> Option<StatementOutcome> {
        if prepared.deadline <= Instant::now() {
            return None;
        }
        let opened = self.idle(self.file().ok()?)?;
        opened.guard.at_once();
        let outcome = opened
            .connection
            .busy_timeout(Duration::ZERO)
            .ok()
            .and_then(|()| opened.run(prepared, StatementAccess::Read).ok());
        self.put_back(opened);
        outcome
    }

    fn take(&self) -> Result<SqliteSession, ConnectionError> {
        let unavailable = |error: &dyn std::fmt::Display| {
            ConnectionError::new(FailureCode::Unavailable, "the database cannot be opened")
                .details(error)
        };
        let file = self.file().map_err(|error| unavailable(&error))?;
        if let Some(opened) = self.idle(file) {
            return Ok(opened);
        }
        let (connection, guard) =
            guard::open(&self.path, self.writable).map_err(|error| unavailable(&error))?;
        Ok(SqliteSession {
            connection,
            guard,
            file,
            header: RefCell::default(),
        })
    }

    fn idle(&self, file: FileId) -> Option<SqliteSession> {
        let mut idle = self.idle.lock();
        idle.retain(|opened| opened.file == file);
        idle.pop()
    }

    fn put_back(&self, opened: SqliteSession) {
        opened.guard.rest();
        if opened.connection.is_autocommit() {
            self.idle.lock().push(opened);
        }
    }

    fn file(&self) -> io::Result<FileId> {
        let metadata = fs::metadata(&self.path)?;
        Ok((metadata.dev(), metadata.ino()))
    }
}

impl SqliteSession {
    fn run(
        &self,
        prepared: &PreparedStatement,
        access: StatementAccess,
    ) -> Result<StatementOutcome, ConnectionError> {
        match access {
            StatementAccess::Read => {
                let allowed = match prepared.options.describes_write() {
                    true => guard::SqliteAccess::Writing,
                    false => guard::SqliteAccess::Reading,
                };
                self.guard
                    .allow(allowed, || self.statement(prepared, access))
            }
            StatementAccess::Write => {
                let begun = self.control("BEGIN IMMEDIATE");
                begun.map_err(ConnectionError::nothing_changed)?;
                let result = self
                    .guard
                    .allow(guard::SqliteAccess::Writing, || {
                        self.statement(prepared, access)
                    })
                    .and_then(|outcome| prepared.options.check(outcome.changed).map(|()| outcome))
                    .and_then(|outcome| self.read_again(prepared, outcome))
                    .and_then(|outcome| self.control("COMMIT").map(|()| outcome));
                if result.is_err() && !self.connection.is_autocommit() {
                    // The interrupt must not hit the rollback as well.
                    self.guard.rest();
                    self.control("ROLLBACK")?;
                }
                result.map_err(ConnectionError::nothing_changed)
            }
        }
    }

    /// Returns the record that a write left: RETURNING does not show what triggers do afterwards. One that a trigger has removed
    /// or given another key is answered as it was written.
    fn read_again(
        &self,
        prepared: &PreparedStatement,
        written: StatementOutcome,
    ) -> Result<StatementOutcome, ConnectionError> {
        let Some(returning) = prepared.options.returning_at(ReadTime::After) else {
            return Ok(written);
        };
        let read = PreparedStatement {
            text: returning.text.clone(),
            parameters: returning.parameters()?,
            limit: 1,
            options: StatementOptions::default(),
            deadline: prepared.deadline,
        };
        let read = self.guard.allow(guard::SqliteAccess::Reading, || {
            self.statement(&read, StatementAccess::Read)
        })?;
        let is_one = read.rows.records != "[]" && !read.rows.truncated;
        Ok(match is_one {
            true => StatementOutcome {
                rows: read.rows,
                ..written
            },
            false => written,
        })
    }

    fn control(&self, text: &'static str) -> Result<(), ConnectionError> {
        self.guard
            .allow(guard::SqliteAccess::Everything, || {
                self.connection.prepare_cached(text)?.execute([])
            })
            .map(|_| ())
            .map_err(|error| error::from(error, &self.guard))
    }

    fn statement(
        &self,
        prepared: &PreparedStatement,
        access: StatementAccess,
    ) -> Result<StatementOutcome, ConnectionError> {
        let failed = |error| error::from(error, &self.guard);
        let mut statement = self
            .connection
            .prepare_cached(&prepared.text)
            .map_err(failed)?;
        let is_read = access == StatementAccess::Read && !prepared.options.describes_write();
        if is_read && !statement.readonly() {
            statement.discard();
            return Err(ConnectionError::new(
                FailureCode::Forbidden,
                "the statement would write, and this is a read",
            ));
        }
        if prepared.options.describe {
            return Ok(StatementOutcome {
                rows: described(&statement)?,
                changed: 0,
            });
        }
        if statement.parameter_count() != prepared.parameters.len() {
            return Err(ConnectionError::new(
                FailureCode::InvalidArguments,
                "the statement has a different number of parameters",
            ));
        }
        for (at, parameter) in prepared.parameters.iter().enumerate() {
            statement
                .raw_bind_parameter(at + 1, parameter)
                .map_err(failed)?;
        }
        let header = self.header(&statement)?;
        let columns = header.names().len();
        let mut writer = RowsWriter::new(Arc::clone(&header), prepared.limit);
        let writes = !statement.readonly();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            if !writer.begin_row() {
                break;
            }
            for column in 0..columns {
                match row.get_ref(column).map_err(failed)? {
                    ValueRef::Null => writer.cell(column, SqlCell::Null)?,
                    ValueRef::Integer(value) => writer.cell(column, SqlCell::Integer(value))?,
                    ValueRef::Real(value) => writer.cell(column, SqlCell::Real(value))?,
                    ValueRef::Blob(value) => writer.cell(column, SqlCell::Bytes(value))?,
                    // A text that is not UTF-8 costs its bad bytes, not the answer.
                    ValueRef::Text(value) => {
                        writer.cell(column, SqlCell::Text(&String::from_utf8_lossy(value)))?
                    }
                }
            }
            writer.end_row()?;
        }
        drop(rows);
        let changed = if writes { self.connection.changes() } else { 0 };
        Ok(StatementOutcome {
            rows: writer.finish(),
            changed,
        })
    }
}

impl SqliteSession {
    fn header(
        &self,
        statement: &rusqlite::Statement<'_>,
    ) -> Result<Arc<RowHeader>, ConnectionError> {
        let names = statement.column_names();
        let mut last = self.header.borrow_mut();
        if let Some(header) = &*last
            && header.names() == names
        {
            return Ok(Arc::clone(header));
        }
        let header = Arc::new(RowHeader::new(
            names.into_iter().map(str::to_owned).collect(),
        )?);
        *last = Some(Arc::clone(&header));
        Ok(header)
    }
}

/// Returns one row for each column, without running the statement. SQLite cannot tell whether an expression may be
/// null.
fn described(statement: &rusqlite::Statement<'_>) -> Result<SqlRows, ConnectionError> {
    let columns = statement.columns();
    let names = ["name", "type", "nullable"].map(str::to_owned).to_vec();
    let mut writer = RowsWriter::new(Arc::new(RowHeader::new(names)?), columns.len() as u32);
    for column in &columns {
        writer.begin_row();
        writer.cell(0, SqlCell::Text(column.name()))?;
        writer.cell(1, column.decl_type().map_or(SqlCell::Null, SqlCell::Text))?;
        writer.cell(2, SqlCell::Boolean(true))?;
        writer.end_row()?;
    }
    Ok(writer.finish())
}

impl rusqlite::ToSql for StatementParameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Boolean(value) => ValueRef::Integer(i64::from(*value)),
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value, _) => ValueRef::Real(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
        }))
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
