//! Runs statements on either engine. The text of a statement is the same for both: parameters are `$1`, `$2`, and only
//! syntax common to both is used. Rows are read by the names of their columns.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sqlx::{
    AssertSqlSafe, FromRow, PgPool, Postgres, SqlSafeStr as _, SqlStr, Sqlite, Transaction,
    postgres::PgRow, sqlite::SqliteRow,
};

use crate::{
    StateError,
    file_database::{FileDatabase, FileTransaction},
    server,
};

pub(crate) enum StateEngine {
    Sqlite(FileDatabase),
    Postgresql(ServerEngine),
}

/// A database on a server.
pub(crate) struct ServerEngine {
    pub(crate) pool: PgPool,
    /// What is read until the server is reached, if it was unreachable at the start.
    copy: Option<FileDatabase>,
    is_reached: AtomicBool,
}

/// A transaction that has the lock of writers, so that everything read inside remains true until the end. Dropping it
/// rolls it back.
pub(crate) enum StateChange {
    Sqlite(FileTransaction),
    Postgresql(Transaction<'static, Postgres>),
}

/// The connection or transaction of a statement.
pub(crate) enum QueryTarget<'t> {
    File(&'t FileDatabase),
    /// A copy of the data of an unreachable server: nothing can be changed.
    Copy(&'t FileDatabase),
    Server(&'t PgPool),
    Change(&'t mut StateChange),
}

/// A statement with its parameters.
pub(crate) struct StateQuery<'q> {
    text: SqlStr,
    values: Vec<SqlValue<'q>>,
}

#[derive(Clone, Copy)]
pub(crate) enum SqlValue<'q> {
    Integer(Option<i64>),
    Text(Option<&'q str>),
    Bytes(Option<&'q [u8]>),
}

/// A row that both engines can return.
pub(crate) trait StateRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<R> StateRow for R where
    R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl ServerEngine {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            copy: None,
            is_reached: AtomicBool::new(true),
        }
    }

    /// Returns a server that is away, and a copy to read from until it is reached.
    pub(crate) fn with_copy(pool: PgPool, copy: FileDatabase) -> Self {
        Self {
            pool,
            copy: Some(copy),
            is_reached: AtomicBool::new(false),
        }
    }

    /// Returns the copy that is read from instead of the server.
    pub(crate) fn copy(&self) -> Option<&FileDatabase> {
        let is_reached = self.is_reached.load(Relaxed);
        self.copy.as_ref().filter(|_| !is_reached)
    }

    pub(crate) fn end_copy(&self) {
        self.is_reached.store(true, Relaxed);
    }

    /// Returns the connections on which something can be changed.
    fn writable(&self) -> Result<&PgPool, StateError> {
        match self.copy() {
            Some(_) => Err(only_copied()),
            None => Ok(&self.pool),
        }
    }
}

fn only_copied() -> StateError {
    StateError::Unreachable("it could not be reached when this process started".to_owned())
}

impl StateEngine {
    /// Begins a change. Each engine has one writer at a time: SQLite locks its file, and in PostgreSQL the row with the
    /// number of the last change is locked, so that numbers are in the order of the commits.
    pub(crate) async fn begin(&self) -> Result<StateChange, StateError> {
        Ok(match self {
            Self::Sqlite(file) => StateChange::Sqlite(file.begin("BEGIN IMMEDIATE").await?),
            Self::Postgresql(server) => {
                StateChange::Postgresql(server::begin(server.writable()?).await?)
            }
        })
    }
}

impl StateEngine {
    /// Begins a change of counts, which no process waits for: in PostgreSQL it takes only the locks of its rows.
    pub(crate) async fn begin_counts(&self) -> Result<StateChange, StateError> {
        Ok(match self {
            Self::Sqlite(_) => self.begin().await?,
            Self::Postgresql(server) => {
                StateChange::Postgresql(server::in_time(server.writable()?.begin()).await?)
            }
        })
    }

    /// Begins to read a database as it is at one moment.
    pub(crate) async fn begin_reading(&self) -> Result<StateChange, StateError> {
        const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        Ok(match self {
            Self::Sqlite(file) => StateChange::Sqlite(file.begin("BEGIN").await?),
            Self::Postgresql(server) => {
                let begun = server.writable()?.begin_with(READ);
                StateChange::Postgresql(server::in_time(begun).await?)
            }
        })
    }
}

impl StateChange {
    pub(crate) async fn commit(self) -> Result<(), StateError> {
        match self {
            Self::Sqlite(change) => Ok(change.commit().await?),
            Self::Postgresql(change) => server::in_time(change.commit()).await,
        }
    }
}

pub(crate) fn sql<'q>(text: &'static str) -> StateQuery<'q> {
    StateQuery {
        text: SqlStr::from_static(text),
        values: Vec::new(),
    }
}

/// The same for a text built only from this program's own names.
pub(crate) fn sql_made<'q>(text: String) -> StateQuery<'q> {
    StateQuery {
        text: AssertSqlSafe(text).into_sql_str(),
        values: Vec::new(),
    }
}

macro_rules! bound {
    ($query:expr, $values:expr) => {
        $values
            .into_iter()
            .fold($query, |query, value| match value {
                SqlValue::Integer(value) => query.bind(value),
                SqlValue::Text(value) => query.bind(value),
                SqlValue::Bytes(value) => query.bind(value),
            })
    };
}

/// Calls one of sqlx's ways to fetch rows, on either engine.
macro_rules! fetch {
    ($query:ident, $target:ident, $fetch:ident) => {
        match $target.into() {
            QueryTarget::File(file) => Ok(bound!(
                sqlx::query_as::<Sqlite, R>($query.text),
                $query.values
            )
            .$fetch(&mut *file.acquire().await?)
            .await?),
            // What only the server can report is unknown.
            QueryTarget::Copy(file) => {
                bound!(sqlx::query_as::<Sqlite, R>($query.text), $query.values)
                    .$fetch(&mut *file.acquire().await?)
                    .await
                    .map_err(|_| only_copied())
            }
            QueryTarget::Change(StateChange::Sqlite(change)) => Ok(bound!(
                sqlx::query_as::<Sqlite, R>($query.text),
                $query.values
            )
            .$fetch(&mut **change)
            .await?),
            QueryTarget::Server(pool) => {
                server::in_time(
                    bound!(sqlx::query_as::<Postgres, R>($query.text), $query.values).$fetch(pool),
                )
                .await
            }
            QueryTarget::Change(StateChange::Postgresql(change)) => {
                server::in_time(
                    bound!(sqlx::query_as::<Postgres, R>($query.text), $query.values)
                        .$fetch(&mut **change),
                )
                .await
            }
        }
    };
}

impl<'q> StateQuery<'q> {
    pub(crate) fn bind(mut self, value: impl Into<SqlValue<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Refuses a text that PostgreSQL has none of, on either engine.
    fn check(&self) -> Result<(), StateError> {
        let has_nul = self.values.iter().any(|value| match value {
            SqlValue::Text(text) => text.is_some_and(|text| text.contains('\0')),
            SqlValue::Integer(_) | SqlValue::Bytes(_) => false,
        });
        match has_nul {
            true => Err(StateError::NulText),
            false => Ok(()),
        }
    }

    /// Runs a statement that changes rows, and returns how many it changed. Without a transaction of the caller, it runs in
    /// its own.
    pub(crate) async fn execute<'t>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<u64, StateError> {
        self.check()?;
        match target.into() {
            QueryTarget::Copy(_) => Err(only_copied()),
            QueryTarget::File(file) => Ok(bound!(sqlx::query::<Sqlite>(self.text), self.values)
                .execute(&mut *file.acquire().await?)
                .await?
                .rows_affected()),
            QueryTarget::Change(StateChange::Sqlite(change)) => {
                Ok(bound!(sqlx::query::<Sqlite>(self.text), self.values)
                    .execute(&mut **change)
                    .await?
                    .rows_affected())
            }
            QueryTarget::Server(pool) => {
                let mut change = server::begin(pool).await?;
                let run =
                    bound!(sqlx::query::<Postgres>(self.text), self.values).execute(&mut *change);
                let rows = server::in_time(run).await?.rows_affected();
                server::in_time(change.commit()).await?;
                Ok(rows)
            }
            QueryTarget::Change(StateChange::Postgresql(change)) => {
                let run =
                    bound!(sqlx::query::<Postgres>(self.text), self.values).execute(&mut **change);
                Ok(server::in_time(run).await?.rows_affected())
            }
        }
    }

    pub(crate) async fn fetch_all<'t, R: StateRow>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<Vec<R>, StateError> {
        self.check()?;
        fetch!(self, target, fetch_all)
    }

    pub(crate) async fn fetch_optional<'t, R: StateRow>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<Option<R>, StateError> {
        self.check()?;
        fetch!(self, target, fetch_optional)
    }

    pub(crate) async fn fetch_one<'t, R: StateRow>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<R, StateError> {
        self.check()?;
        fetch!(self, target, fetch_one)
    }

    pub(crate) async fn fetch_values<'t, T>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<Vec<T>, StateError>
    where
        (T,): StateRow,
    {
        let rows = self.fetch_all(target).await?;
        Ok(rows.into_iter().map(|(value,)| value).collect())
    }

    pub(crate) async fn find_value<'t, T>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<Option<T>, StateError>
    where
        (T,): StateRow,
    {
        Ok(self.fetch_optional(target).await?.map(|(value,)| value))
    }

    pub(crate) async fn fetch_value<'t, T>(
        self,
        target: impl Into<QueryTarget<'t>>,
    ) -> Result<T, StateError>
    where
        (T,): StateRow,
    {
        let (value,) = self.fetch_one(target).await?;
        Ok(value)
    }
}

impl<'t> From<&'t StateEngine> for QueryTarget<'t> {
    fn from(engine: &'t StateEngine) -> Self {
        match engine {
            StateEngine::Sqlite(file) => Self::File(file),
            StateEngine::Postgresql(server) => match server.copy() {
                Some(copy) => Self::Copy(copy),
                None => Self::Server(&server.pool),
            },
        }
    }
}

impl<'t> From<&'t mut StateChange> for QueryTarget<'t> {
    fn from(change: &'t mut StateChange) -> Self {
        Self::Change(change)
    }
}

impl From<i64> for SqlValue<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for SqlValue<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for SqlValue<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(Some(value.into()))
    }
}

impl<'q> From<&'q str> for SqlValue<'q> {
    fn from(value: &'q str) -> Self {
        Self::Text(Some(value))
    }
}

impl<'q> From<&'q String> for SqlValue<'q> {
    fn from(value: &'q String) -> Self {
        Self::Text(Some(value))
    }
}

impl<'q> From<Option<&'q str>> for SqlValue<'q> {
    fn from(value: Option<&'q str>) -> Self {
        Self::Text(value)
    }
}

impl<'q> From<&'q Option<String>> for SqlValue<'q> {
    fn from(value: &'q Option<String>) -> Self {
        Self::Text(value.as_deref())
    }
}

impl<'q> From<&'q [u8]> for SqlValue<'q> {
    fn from(value: &'q [u8]) -> Self {
        Self::Bytes(Some(value))
    }
}

impl<'q> From<Option<&'q [u8]>> for SqlValue<'q> {
    fn from(value: Option<&'q [u8]>) -> Self {
        Self::Bytes(value)
    }
}

impl<'q> From<&'q Vec<u8>> for SqlValue<'q> {
    fn from(value: &'q Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}
