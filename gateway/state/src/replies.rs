//! Answers kept for retries.

use super::{State, StateError, rows::from_row};

/// How long a retry finds its answer, in milliseconds.
const KEPT_MS: i64 = 24 * 3600 * 1000;

#[derive(Clone, Debug)]
pub struct ReplyRow {
    pub admin: String,
    pub key: String,
    /// Digest of the request: a key that comes with another request is refused.
    pub request: String,
    pub status: i64,
    pub body: String,
    pub created_ms: i64,
}

from_row!(ReplyRow { admin, key, request, status, body, created_ms });

impl State {
    pub async fn reply(&self, admin: &str, key: &str, now_ms: i64) -> Result<Option<ReplyRow>, StateError> {
        let query = "SELECT * FROM replies WHERE admin = ? AND key = ? AND created_ms > ?";
        Ok(sqlx::query_as(query).bind(admin).bind(key).bind(now_ms - KEPT_MS).fetch_optional(&self.pool).await?)
    }

    /// The first answer stays; those out of date are dropped on the way.
    pub async fn keep_reply(&self, reply: &ReplyRow) -> Result<(), StateError> {
        let mut change = self.change().await?;
        let old = "DELETE FROM replies WHERE created_ms <= ?";
        sqlx::query(old).bind(reply.created_ms - KEPT_MS).execute(&mut *change).await?;
        sqlx::query(
            "INSERT INTO replies (admin, key, request, status, body, created_ms) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT DO NOTHING",
        )
        .bind(&reply.admin)
        .bind(&reply.key)
        .bind(&reply.request)
        .bind(reply.status)
        .bind(&reply.body)
        .bind(reply.created_ms)
        .execute(&mut *change)
        .await?;
        change.commit().await?;
        Ok(())
    }
}
