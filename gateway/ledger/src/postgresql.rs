//! The ledger in a table of a PostgreSQL database. The clock is the server's.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use tokio::time::timeout;

use crate::request::{ANSWER_MAX, BucketId, LedgerError, LedgerGrant, TokenRequest};

const CONNECTIONS_MAX: u32 = 2;
/// The server's own bounds, in milliseconds.
const BOUNDS: [(&str, &str); 2] = [("statement_timeout", "1000"), ("lock_timeout", "1000")];
/// Buckets that are dropped at once.
const DROPPED_MAX: i64 = 10_000;

/// The level of an existing bucket, before tokens are taken. The request is below zero if tokens are given back.
macro_rules! level {
    () => {
        "LEAST(excluded.burst, b.level + GREATEST(0, excluded.at - b.at) * excluded.per_second - LEAST(excluded.granted, 0))"
    };
}

/// The tokens that are taken from it.
macro_rules! granted {
    () => {
        concat!(
            "GREATEST(0, LEAST(excluded.granted, floor(",
            level!(),
            " + 1e-6)))"
        )
    };
}

/// One statement for a batch. Rows are locked in the order of their ids, so that two batches cannot wait for each other. A
/// clock that went back by more than a moment is another server's: time continues from there.
const APPLY: &str = concat!(
    "INSERT INTO limit_buckets AS b (id, level, at, per_second, burst, granted) \
     SELECT id, burst - LEAST(GREATEST(wanted, 0), floor(burst)), at, per_second, burst, LEAST(wanted, floor(burst)) \
     FROM (SELECT id, per_second, burst, wanted, \
           CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION) AS at \
           FROM unnest($1::bytea[], $2::float8[], $3::float8[], $4::float8[]) \
           AS asked (id, per_second, burst, wanted) ORDER BY id) AS timed \
     ON CONFLICT (id) DO UPDATE SET per_second = excluded.per_second, burst = excluded.burst, level = ",
    level!(),
    " - ",
    granted!(),
    ", granted = ",
    granted!(),
    ", at = CASE WHEN b.at > excluded.at + 1 THEN excluded.at ELSE GREATEST(b.at, excluded.at) END \
     RETURNING id, granted, level"
);

const DROP_FULL: &str = "DELETE FROM limit_buckets WHERE id IN (SELECT id FROM limit_buckets \
     WHERE at + (burst - level) / per_second < extract(epoch FROM clock_timestamp()) - 60 \
     ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)";

/// The ledger in the existing table `limit_buckets`.
#[derive(Clone)]
pub struct PostgresqlLedger(Arc<LedgerServers>);

/// The servers, one of which is the primary, and the connections to the presumed primary.
struct LedgerServers {
    all: Vec<PgConnectOptions>,
    taken: Mutex<(usize, PgPool)>,
}

impl PostgresqlLedger {
    /// Connects when it is first asked. `servers`, at least one, are those that may be the primary.
    pub fn new(servers: Vec<PgConnectOptions>) -> Self {
        let taken = Mutex::new((0, pool(&servers[0])));
        Self(Arc::new(LedgerServers {
            all: servers,
            taken,
        }))
    }

    fn pool(&self) -> PgPool {
        self.0.taken.lock().1.clone()
    }

    /// Moves on to the next server, if there are several: this one is unreachable, or is no longer the primary.
    fn move_on(&self) {
        if self.0.all.len() > 1 {
            let mut taken = self.0.taken.lock();
            let next = (taken.0 + 1) % self.0.all.len();
            *taken = (next, pool(&self.0.all[next]));
        }
    }

    pub(crate) async fn apply(
        &self,
        requests: &[TokenRequest],
    ) -> Result<Vec<LedgerGrant>, LedgerError> {
        let ids: Vec<&[u8]> = requests.iter().map(|request| &request.id[..]).collect();
        let values = |value: fn(&TokenRequest) -> f64| requests.iter().map(value).collect();
        let (rates, bursts): (Vec<f64>, Vec<f64>) = (
            values(|request| request.rate.per_second),
            values(|request| request.rate.burst),
        );
        let wanted: Vec<f64> =
            values(|request| f64::from(request.wanted) - f64::from(request.given_back));
        let pool = self.pool();
        let asked = sqlx::query_as(APPLY)
            .bind(ids)
            .bind(rates)
            .bind(bursts)
            .bind(wanted)
            .fetch_all(&pool);
        // Within the time that the batch has: a server that hangs is left for the next one.
        let asked = timeout(ANSWER_MAX * 4 / 5, asked).await;
        let rows: Vec<(Vec<u8>, f64, f64)> = asked
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
            .inspect_err(|_| self.move_on())
            .map_err(explain)?;
        let grants: HashMap<Vec<u8>, LedgerGrant> = rows
            .into_iter()
            .map(|(id, granted, level)| {
                let granted = granted.max(0.0) as u32;
                (id, LedgerGrant { granted, level })
            })
            .collect();
        let grant = |id: &BucketId| grants.get(&id[..]).copied();
        Ok(requests
            .iter()
            .filter_map(|request| grant(&request.id))
            .collect())
    }

    pub(crate) async fn drop_full(&self) -> Result<(), LedgerError> {
        let dropped = sqlx::query(DROP_FULL).bind(DROPPED_MAX);
        dropped
            .execute(&self.pool())
            .await
            .map(drop)
            .map_err(explain)
    }
}

fn pool(server: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ANSWER_MAX)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(server.clone().options(BOUNDS))
}

fn explain(error: sqlx::Error) -> LedgerError {
    LedgerError(match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::PoolTimedOut => "no connection was made in time".to_owned(),
        sqlx::Error::Io(error) => error.kind().to_string(),
        _ => "the connection failed".to_owned(),
    })
}
