//! The PostgreSQL server with the state: where it is, how long it may take, and when it has news.
//!
//! Every change locks the row with the number of the last change first: as in SQLite there is one writer at a time, and the
//! number of a change is in the order of the commits. A statement that takes too long fails, so that no request
//! waits for a server that has stopped.

mod address;
pub(crate) mod failure;
mod feed;

use std::time::Duration;

use sqlx::{PgPool, Postgres, Transaction, postgres::PgPoolOptions};
use tokio::time::timeout;

use crate::StateError;

pub use address::ServerAddress;
pub(crate) use feed::ServerPace;

const CONNECTIONS_MAX: u32 = 8;
/// The bound on the wait for a connection, and on a login.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// The bound on one statement. The server's own bounds, in `address`, are below it.
const STATEMENT_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn open(address: &ServerAddress) -> Result<PgPool, StateError> {
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_MAX)
        .connect_with(address.options().clone())
        .await;
    pool.map_err(|error| failure::explain_start(address, &error))
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
