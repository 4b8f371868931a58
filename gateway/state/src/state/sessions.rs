//! Sessions of admins, and links that begin one. Secrets are stored as hashes alone.

use super::{State, columns::from_row};
use crate::{SessionKind, SessionRow, StateError};

/// The sessions and links of one admin key. The one that was made first makes room.
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

impl State {
    /// Adds a session or a link, unless its admin key was revoked. Those that have expired are dropped on the way.
    pub async fn add_session(&self, session: &SessionRow) -> Result<(), StateError> {
        let mut change = self.change().await?;
        sqlx::query("DELETE FROM sessions WHERE expires_ms <= ?")
            .bind(session.created_ms)
            .execute(&mut *change)
            .await?;
        let beyond = "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE admin = ? AND kind = ? \
            ORDER BY created_ms DESC LIMIT -1 OFFSET ?)";
        sqlx::query(beyond)
            .bind(&session.admin)
            .bind(session.kind)
            .bind(ROWS_MAX - 1)
            .execute(&mut *change)
            .await?;
        let insert = "INSERT INTO sessions (id, secret_hash, admin, kind, created_ms, expires_ms, used_ms) \
            SELECT ?, ?, id, ?, ?, ?, ? FROM admins WHERE id = ? AND revoked_ms IS NULL";
        let done = sqlx::query(insert)
            .bind(&session.id)
            .bind(&session.secret_hash)
            .bind(session.kind)
            .bind(session.created_ms)
            .bind(session.expires_ms)
            .bind(session.used_ms)
            .bind(&session.admin)
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StateError::Unknown("admin key"));
        }
        change.commit().await?;
        Ok(())
    }

    pub async fn session(
        &self,
        id: &str,
        kind: SessionKind,
    ) -> Result<Option<SessionRow>, StateError> {
        let query = "SELECT * FROM sessions WHERE id = ? AND kind = ?";
        Ok(sqlx::query_as(query)
            .bind(id)
            .bind(kind)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Notes that a session was used. The feed does not move: the time is of interest to the next request alone.
    pub async fn touch_session(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        sqlx::query("UPDATE sessions SET used_ms = max(used_ms, ?) WHERE id = ?")
            .bind(at_ms)
            .bind(id)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Removes a session or a link. Of several processes that remove it at once, one is told `true`.
    pub async fn remove_session(&self, id: &str) -> Result<bool, StateError> {
        let done = sqlx::query("DELETE FROM sessions WHERE id = ?")
            .bind(id)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }
}
