//! The connections to a state in one file.
//!
//! The pool of sqlx takes a connection back in a separate task, some time after the statement has ended, and opens another
//! one for a statement that finds none free. A start would open the maximum number, each at the cost of a thread and a
//! millisecond.
//!
//! Here a connection is free as soon as it is dropped, and another one is opened if a statement waits too long. SQLite
//! runs the statements of a connection one after another, so that one whose caller is gone ends before the next begins.

use std::{
    ops::{Deref, DerefMut},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The time after which another connection is opened for a statement that waits.
const PATIENCE: Duration = Duration::from_millis(5);
/// The time that a statement waits for a connection.
const ACQUIRE_MAX: Duration = Duration::from_secs(30);

/// The database of a state in one file.
#[derive(Clone)]
pub(crate) struct FileDatabase {
    options: SqliteConnectOptions,
    connections_max: usize,
    /// As many as there may be connections now.
    turns: Arc<Semaphore>,
    turns_made: Arc<AtomicUsize>,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
}

/// A connection to the file, which is free again when this is dropped.
pub(crate) struct IdleGuard {
    /// `None` once it is closed.
    connection: Option<SqliteConnection>,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
    _turn: OwnedSemaphorePermit,
}

/// A transaction. Dropping it closes its connection, by which SQLite undoes it: also where SQLite itself has ended it, as on a
/// full disk.
pub(crate) struct FileTransaction {
    connection: IdleGuard,
    is_open: bool,
}

impl FileDatabase {
    /// Opens the first of at most `connections_max` connections.
    pub(crate) async fn open(
        options: SqliteConnectOptions,
        connections_max: usize,
    ) -> Result<Self, sqlx::Error> {
        let database = Self {
            options,
            connections_max,
            turns: Arc::new(Semaphore::new(1)),
            turns_made: Arc::new(AtomicUsize::new(1)),
            idle: Arc::default(),
        };
        drop(database.acquire().await?);
        Ok(database)
    }

    /// Returns a connection that is idle, or another one.
    pub(crate) async fn acquire(&self) -> Result<IdleGuard, sqlx::Error> {
        let mut waiting = pin!(Arc::clone(&self.turns).acquire_owned());
        let turn = match timeout(PATIENCE, &mut waiting).await {
            Ok(turn) => turn,
            Err(_) => {
                self.add_turn();
                let turn = timeout(ACQUIRE_MAX, waiting).await;
                turn.map_err(|_| sqlx::Error::PoolTimedOut)?
            }
        };
        let turn = turn.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        Ok(IdleGuard {
            connection: Some(connection),
            idle: Arc::clone(&self.idle),
            _turn: turn,
        })
    }

    fn add_turn(&self) {
        let next = |made| (made < self.connections_max).then_some(made + 1);
        if self
            .turns_made
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
        {
            self.turns.add_permits(1);
        }
    }

    /// Begins a transaction by a statement.
    pub(crate) async fn begin(
        &self,
        statement: &'static str,
    ) -> Result<FileTransaction, sqlx::Error> {
        let mut change = FileTransaction {
            connection: self.acquire().await?,
            is_open: true,
        };
        sqlx::query(statement).execute(&mut *change).await?;
        Ok(change)
    }

    /// Closes the connections: the content of the write-ahead log goes into the file.
    pub(crate) async fn close(&self) -> Result<(), sqlx::Error> {
        let idle = std::mem::take(&mut *self.idle.lock());
        for connection in idle {
            connection.close().await?;
        }
        Ok(())
    }
}

impl FileTransaction {
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::query("COMMIT").execute(&mut *self).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for IdleGuard {
    fn drop(&mut self) {
        self.idle.lock().extend(self.connection.take());
    }
}

impl Drop for FileTransaction {
    fn drop(&mut self) {
        if self.is_open {
            drop(self.connection.connection.take());
        }
    }
}

impl Deref for IdleGuard {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection.as_ref().expect("it is not closed")
    }
}

impl DerefMut for IdleGuard {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("it is not closed")
    }
}

impl Deref for FileTransaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for FileTransaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
