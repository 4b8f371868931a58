//! The ledgers that there are.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    memory::MemoryLedger,
    postgresql::PostgresqlLedger,
    request::{LedgerError, LedgerGrant, TokenRequest},
    valkey::ValkeyLedger,
};

/// The place of all nodes' buckets.
#[derive(Clone)]
pub enum LedgerEngine {
    Memory(Arc<Mutex<MemoryLedger>>, Instant),
    Postgresql(PostgresqlLedger),
    Valkey(Box<ValkeyLedger>),
}

impl LedgerEngine {
    /// Returns a ledger for this process only.
    pub fn memory() -> Self {
        Self::Memory(Arc::default(), Instant::now())
    }

    /// Returns the word for it in a configuration.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Memory(..) => "local",
            Self::Postgresql(_) => "postgresql",
            Self::Valkey(_) => "valkey",
        }
    }

    /// Asks for tokens of many buckets with one request. The answers are in the order of the requests.
    pub(crate) async fn apply(
        &self,
        requests: &[TokenRequest],
    ) -> Result<Vec<LedgerGrant>, LedgerError> {
        let grants = match self {
            Self::Memory(ledger, started) => ledger
                .lock()
                .apply(requests, started.elapsed().as_secs_f64()),
            Self::Postgresql(ledger) => ledger.apply(requests).await?,
            Self::Valkey(ledger) => ledger.apply(requests).await?,
        };
        match grants.len() == requests.len() {
            true => Ok(grants),
            false => Err(LedgerError("it answered for other buckets".to_owned())),
        }
    }

    /// Drops the buckets that are full: a new one is the same.
    pub(crate) async fn drop_full(&self) -> Result<(), LedgerError> {
        match self {
            Self::Memory(..) | Self::Valkey(_) => Ok(()),
            Self::Postgresql(ledger) => ledger.drop_full().await,
        }
    }
}
