//! The PostgreSQL server with the state: where it is, how long it may take, and when it has news.
//!
//! Every change locks the row with the number of the last change first: as in SQLite there is one writer at a time, and the
//! number of a change is in the order of the commits. A statement that takes too long fails, so that no request
//! waits for a server that has stopped.

mod address;
pub(crate) mod endings;
pub(crate) mod failure;
mod feed;
mod timeline;

use std::{sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions as _, PgPool, Postgres, Transaction,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::StateError;

pub use address::ServerAddress;
pub(crate) use feed::ServerPace;
pub(crate) use timeline::ServerTimeline;

const CONNECTIONS_MAX: u32 = 8;
/// The bound on the wait for a connection, and on a login.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// The bound on one statement. The server's own bounds, in `address`, are below it.
const STATEMENT_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn open(
    address: &ServerAddress,
    timeline: &Arc<ServerTimeline>,
) -> Result<PgPool, StateError> {
    let primary = find_primary(address).await?;
    let pool = pool_options(timeline).connect_with(primary).await;
    pool.map_err(|error| failure::explain_start(address, &error))
}

/// Returns connections to a server that is away: the first one is made when something is asked.
pub(crate) fn open_later(address: &ServerAddress, timeline: &Arc<ServerTimeline>) -> PgPool {
    let first = address.servers().first().cloned().unwrap_or_default();
    pool_options(timeline).connect_lazy_with(first)
}

fn pool_options(timeline: &Arc<ServerTimeline>) -> PgPoolOptions {
    let timeline = timeline.clone();
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_MAX)
        .after_connect(move |connection, _| {
            let timeline = timeline.clone();
            Box::pin(async move { timeline.check(connection).await })
        })
}

/// Finds the server that can be written to. If there is none, the error is that of the first server.
pub(crate) async fn find_primary(address: &ServerAddress) -> Result<PgConnectOptions, StateError> {
    let mut first = None;
    for server in address.servers() {
        let asked = async {
            let mut connection = server.connect().await?;
            ServerTimeline::read(&mut connection).await
        };
        match timeout(CONNECT_MAX, asked).await {
            Ok(Ok(_)) => return Ok(server.clone()),
            Ok(Err(error)) => first.get_or_insert(error),
            Err(_) => first.get_or_insert(sqlx::Error::PoolTimedOut),
        };
    }
    let error = first.unwrap_or(sqlx::Error::PoolTimedOut);
    Err(failure::explain_start(address, &error))
}

/// Begins a transaction with the lock of writers.
pub(crate) async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, StateError> {
    in_time(async {
        let mut change = pool.begin().await?;
        sqlx::query("SELECT n FROM generation FOR UPDATE")
            .execute(&mut *change)
            .await?;
        Ok(change)
    })
    .await
}

/// Runs a statement under its bound.
pub(crate) async fn in_time<T>(
    run: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StateError> {
    match timeout(STATEMENT_MAX, run).await {
        Ok(done) => done.map_err(failure::explain_statement),
        Err(_) => {
            let seconds = STATEMENT_MAX.as_secs();
            Err(StateError::Unreachable(format!(
                "it did not answer within {seconds} s"
            )))
        }
    }
}
