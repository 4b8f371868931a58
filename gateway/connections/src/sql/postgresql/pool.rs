//! Pools sessions of PostgreSQL. A session whose call was abandoned half-way is brought to rest: its turn is free again once
//! the server has ended the call.

use tokio::time::timeout;

use super::{
    super::session_pool::{CONNECT_MAX, HeldSession, PooledSession, SessionPool},
    CLEANUP_MAX,
    address::PostgresqlAddress,
    error, login,
    session::{CancelKey, PostgresqlSession},
};
use crate::ConnectionError;

impl PooledSession for PostgresqlSession {
    type Address = PostgresqlAddress;

    async fn open(address: &PostgresqlAddress) -> Result<Self, ConnectionError> {
        let opened = login::session(address).await;
        opened.map_err(error::while_connecting)
    }

    fn is_at_rest(&self) -> bool {
        self.at_rest()
    }

    fn is_usable(&self) -> bool {
        !self.dead()
    }

    fn is_quiet(&mut self) -> bool {
        self.quiet()
    }

    fn shrink(&mut self) {
        self.shrink();
    }

    async fn end_late(mut self: Box<Self>, pool: &SessionPool<Self>) -> Option<Box<Self>> {
        if self.dead() {
            return None;
        }
        // A function may run on although it was cancelled. Its backend keeps the turn until it has ended, so that there are
        // never more at work than the pool allows; the state of a server that cannot be reached is unknown.
        while let Some(true) = pool.settle(&mut self).await {
            if !pool.is_at_work(self.key).await {
                self.give_up();
                break;
            }
        }
        self.at_rest().then_some(self)
    }
}

impl SessionPool<PostgresqlSession> {
    /// Asks the server to end what that session runs. Best effort: `statement_timeout` is the fallback. Returns `false` if the
    /// server cannot be reached.
    pub(super) async fn cancel(&self, key: CancelKey) -> bool {
        match timeout(CONNECT_MAX, login::cancel(&self.address, key)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => tracing::debug!(%error, "a statement could not be cancelled"),
            Err(_) => tracing::debug!("a statement could not be cancelled in time"),
        }
        false
    }

    /// Brings a session whose call was abandoned half-way to rest: the call is cancelled, its remaining answer skipped, and
    /// the transaction rolled back. Returns `None` if the server is still at work after a while, and otherwise whether the
    /// cancellation could be sent.
    async fn settle(&self, session: &mut PostgresqlSession) -> Option<bool> {
        let is_cancelled = !session.under_way() || self.cancel(session.key).await;
        match timeout(CLEANUP_MAX, session.settle()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => session.give_up(),
            Err(_) => return Some(is_cancelled),
        }
        None
    }

    /// Asks over another session whether the server still runs what that one began; its own answer may be lost.
    async fn is_at_work(&self, key: CancelKey) -> bool {
        let asked = async {
            let mut session = login::session(&self.address).await?;
            session.is_active(key, CLEANUP_MAX).await
        };
        matches!(
            timeout(CLEANUP_MAX, asked).await,
            Ok(Ok(true)) | Ok(Err(_)) | Err(_)
        )
    }
}

impl HeldSession<PostgresqlSession> {
    /// Brings the session to rest. Returns `false` if the server is still at work on it.
    pub(super) async fn settle(&mut self) -> bool {
        match &mut self.session {
            Some(session) => Box::pin(self.pool.settle(session)).await.is_none(),
            None => true,
        }
    }
}
