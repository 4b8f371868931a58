//! Pools sessions of MySQL. A session whose call was abandoned half-way is ended by KILL over another one, and never used
//! again.

use sqlx::mysql::MySqlConnectOptions;
use tokio::time::timeout;

use super::{
    super::session_pool::{CONNECT_MAX, HeldSession, PooledSession, SessionPool},
    CLEANUP_MAX,
    session::MysqlSession,
};
use crate::ConnectionError;

impl PooledSession for MysqlSession {
    type Address = MySqlConnectOptions;

    async fn open(address: &MySqlConnectOptions) -> Result<Self, ConnectionError> {
        Self::open(address).await
    }

    fn is_at_rest(&self) -> bool {
        self.is_at_rest()
    }

    fn is_usable(&self) -> bool {
        self.is_at_rest()
    }

    /// Asks the server to end the session with its statement. Best effort: the server's own timeout is the fallback.
    async fn end_late(self: Box<Self>, pool: &SessionPool<Self>) -> Option<Box<Self>> {
        let killed = async {
            let mut other = Self::open(&pool.address).await?;
            other.kill(self.id()).await.map_err(|failure| failure.error)
        };
        match timeout(CONNECT_MAX + CLEANUP_MAX, killed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(?error, "a session could not be ended"),
            Err(_) => tracing::debug!("a session could not be ended in time"),
        }
        None
    }
}

impl HeldSession<MysqlSession> {
    /// Ends the transaction of a session that waits for the next statement.
    pub(super) async fn roll_back(&mut self) {
        if let Some(session) = &mut self.session {
            let _ = timeout(CLEANUP_MAX, session.end()).await;
        }
    }
}
