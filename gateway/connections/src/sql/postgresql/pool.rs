//! Connections to one PostgreSQL server: opened on use, kept while they are good.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions, Executor, Row,
    postgres::{PgConnectOptions, PgConnection},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{super::refused, error};
use crate::ConnectionError;

const CONNECT_MAX: Duration = Duration::from_secs(2);
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// After a server that did not even refuse, callers are answered at once for so long.
const UNREACHABLE_FOR: Duration = Duration::from_millis(500);
const IDLE_MAX: Duration = Duration::from_secs(300);

pub(super) struct Pool {
    options: PgConnectOptions,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<(Lease, Instant)>>,
    unreachable_until: Mutex<Option<Instant>>,
}

pub(super) struct Lease {
    pub(super) connection: PgConnection,
    /// The server's process, by which a statement is cancelled.
    pub(super) process: i32,
    /// It was used before, so the server may have gone since.
    pub(super) reused: bool,
    /// Not to be given back.
    pub(super) broken: bool,
    pub(super) stale_statements: bool,
}

impl Pool {
    pub(super) fn new(options: PgConnectOptions, size: usize) -> Self {
        let options = options.disable_statement_logging();
        Self {
            options,
            turns: Arc::new(Semaphore::new(size)),
            idle: Mutex::default(),
            unreachable_until: Mutex::default(),
        }
    }

    pub(super) async fn turn(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, ConnectionError> {
        let until = deadline.min(Instant::now() + TURN_WAIT_MAX);
        match tokio::time::timeout_at(until.into(), self.turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ if until == deadline => Err(refused::timed_out()),
            _ => Err(ConnectionError::new("unavailable", "all connections to the database are busy")),
        }
    }

    pub(super) async fn lease(&self, left: Duration) -> Result<Lease, ConnectionError> {
        if let Some(lease) = self.idle() {
            return Ok(lease);
        }
        let unreachable_until = *lock(&self.unreachable_until);
        if unreachable_until.is_some_and(|until| Instant::now() < until) {
            return Err(refused::unavailable());
        }
        match tokio::time::timeout(left.min(CONNECT_MAX), self.connect()).await {
            Ok(Ok(lease)) => {
                *lock(&self.unreachable_until) = None;
                Ok(lease)
            }
            Ok(Err(error)) => Err(error::from_connect(error)),
            Err(_) => {
                *lock(&self.unreachable_until) = Some(Instant::now() + UNREACHABLE_FOR);
                Err(refused::unavailable().details("connecting took too long"))
            }
        }
    }

    pub(super) fn give_back(&self, mut lease: Lease) {
        lease.reused = true;
        lease.stale_statements = false;
        lock(&self.idle).push((lease, Instant::now()));
    }

    pub(super) fn clear(&self) {
        lock(&self.idle).clear();
    }

    /// Asks the server to end what that process runs. Best effort: `statement_timeout` is behind it.
    pub(super) async fn cancel(&self, process: i32) {
        let cancelling = async {
            let mut lease = match self.idle() {
                Some(lease) => lease,
                None => self.connect().await?,
            };
            let text = format!("SELECT pg_cancel_backend({process})");
            lease.connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await?;
            self.give_back(lease);
            Ok::<(), sqlx::Error>(())
        };
        match tokio::time::timeout(CONNECT_MAX, cancelling).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a statement could not be cancelled"),
            Err(_) => tracing::debug!("a statement could not be cancelled in time"),
        }
    }

    /// The one used last, so that the others may grow old.
    fn idle(&self) -> Option<Lease> {
        let mut idle = lock(&self.idle);
        idle.retain(|(_, since)| since.elapsed() < IDLE_MAX);
        idle.pop().map(|(lease, _)| lease)
    }

    async fn connect(&self) -> Result<Lease, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        let row = connection.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()")).await?;
        let process: i32 = row.try_get(0)?;
        Ok(Lease { connection, process, reused: false, broken: false, stale_statements: false })
    }
}

impl Lease {
    /// Before the next use of the connection, statements are prepared anew.
    pub(super) fn forget_statements(&mut self) {
        self.stale_statements = true;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
