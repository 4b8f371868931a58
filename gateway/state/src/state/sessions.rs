//! Sessions of admins, and links that begin one. Secrets are stored only as hashes.

use super::GatewayState;
use crate::{SessionKind, SessionRow, StateError, columns::from_row, engine::sql};

/// The sessions and links of one admin key. The oldest makes room.
const ROWS_MAX: i64 = 1_000;

from_row!(SessionRow {
    id,
    secret_hash,
    admin,
    kind,
    created_ms,
    expires_ms,
    used_ms
});

impl GatewayState {
    /// Adds a session or a link, unless its admin key was revoked. Those that have expired are dropped on the way.
    pub async fn add_session(&self, session: &SessionRow) -> Result<(), StateError> {
        let mut change = self.change().await?;
        // A session that makes room expires: this does not end a right for good.
        let beyond = "UPDATE sessions SET expires_ms = 0 WHERE admin = $1 AND kind = $2 AND id NOT IN (SELECT id FROM sessions \
            WHERE admin = $1 AND kind = $2 AND expires_ms > $4 ORDER BY created_ms DESC LIMIT $3)";
        sql(beyond)
            .bind(&session.admin)
            .bind(session.kind)
            .bind(ROWS_MAX - 1)
            .bind(session.created_ms)
            .execute(&mut change)
            .await?;
        sql("DELETE FROM sessions WHERE expires_ms <= $1")
            .bind(session.created_ms)
            .execute(&mut change)
            .await?;
        let insert = "INSERT INTO sessions (id, secret_hash, admin, kind, created_ms, expires_ms, used_ms) \
            SELECT $1, $2, id, $3, $4, $5, $6 FROM admins WHERE id = $7 AND revoked_ms IS NULL";
        let done = sql(insert)
            .bind(&session.id)
            .bind(&session.secret_hash)
            .bind(session.kind)
            .bind(session.created_ms)
            .bind(session.expires_ms)
            .bind(session.used_ms)
            .bind(&session.admin)
            .execute(&mut change)
            .await?;
        if done == 0 {
            return Err(StateError::Unknown("admin key"));
        }
        change.commit().await?;
        Ok(())
    }

    /// Returns a session or a link by its id, ended ones too.
    pub async fn session(
        &self,
        id: &str,
        kind: SessionKind,
    ) -> Result<Option<SessionRow>, StateError> {
        let query = "SELECT * FROM sessions WHERE id = $1 AND kind = $2";
        sql(query)
            .bind(id)
            .bind(kind)
            .fetch_optional(&self.engine)
            .await
    }

    /// Returns the sessions of all admin keys, the newest first, at most `limit`; links, sessions that have expired and
    /// those that were not used after `used_after_ms` are left out.
    pub async fn sessions(
        &self,
        now_ms: i64,
        used_after_ms: i64,
        limit: i64,
    ) -> Result<Vec<SessionRow>, StateError> {
        let query = "SELECT * FROM sessions WHERE kind = $1 AND expires_ms > $2 AND used_ms > $3 \
            ORDER BY created_ms DESC, id LIMIT $4";
        sql(query)
            .bind(SessionKind::Session)
            .bind(now_ms)
            .bind(used_after_ms)
            .bind(limit)
            .fetch_all(&self.engine)
            .await
    }

    /// Notes that a session was used. The feed does not move: the time matters only to the next request.
    pub async fn touch_session(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        sql("UPDATE sessions SET used_ms = $1 WHERE id = $2 AND used_ms < $1")
            .bind(at_ms)
            .bind(id)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Removes a session or a link. Of several processes that remove it at once, one gets `true`.
    pub async fn remove_session(&self, id: &str) -> Result<bool, StateError> {
        let done = sql("DELETE FROM sessions WHERE id = $1")
            .bind(id)
            .execute(&self.engine)
            .await?;
        Ok(done > 0)
    }
}
