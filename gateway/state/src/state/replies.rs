//! Answers kept for retries.

use super::GatewayState;
use crate::{IdempotencyState, ReplyRow, StateError, columns::from_row, engine::sql};

/// The time for which a retry finds its answer, in milliseconds.
const KEPT_MS: i64 = 24 * 3600 * 1000;
/// The answers that are kept for one admin key. The oldest makes room, since its retry is the least likely.
const KEPT_MAX: i64 = 1_000;
/// The status of a request that was begun and has not ended.
const PENDING: i64 = 0;

from_row!(ReplyRow {
    admin,
    key,
    request,
    status,
    body,
    created_ms
});

impl GatewayState {
    /// Begins a request, so that of several with the same key only one runs. Outdated rows are dropped on the way.
    pub async fn begin_reply(
        &self,
        admin: &str,
        key: &str,
        request: &str,
        now_ms: i64,
    ) -> Result<IdempotencyState, StateError> {
        let mut change = self.change().await?;
        let old = "DELETE FROM replies WHERE created_ms <= $1";
        sql(old).bind(now_ms - KEPT_MS).execute(&mut change).await?;
        let query = "SELECT * FROM replies WHERE admin = $1 AND key = $2";
        let known: Option<ReplyRow> = sql(query)
            .bind(admin)
            .bind(key)
            .fetch_optional(&mut change)
            .await?;
        if let Some(known) = known {
            return Ok(match known.status {
                PENDING => IdempotencyState::Pending(known.request),
                _ => IdempotencyState::Answered(known),
            });
        }
        let beyond = "DELETE FROM replies WHERE admin = $1 AND key NOT IN (SELECT key FROM replies WHERE admin = $1 \
            ORDER BY status = $2 DESC, created_ms DESC LIMIT $3)";
        sql(beyond)
            .bind(admin)
            .bind(PENDING)
            .bind(KEPT_MAX - 1)
            .execute(&mut change)
            .await?;
        sql("INSERT INTO replies (admin, key, request, status, body, created_ms) VALUES ($1, $2, $3, $4, '', $5)")
            .bind(admin)
            .bind(key)
            .bind(request)
            .bind(PENDING)
            .bind(now_ms)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(IdempotencyState::First)
    }

    /// Ends a request that was begun at a time: with its status and body for retries, or with none, so that the next one runs
    /// again. A request with the same key that was begun since is kept.
    pub async fn end_reply(
        &self,
        admin: &str,
        key: &str,
        begun_ms: i64,
        answer: Option<(i64, &str)>,
    ) -> Result<(), StateError> {
        let query = match answer {
            Some((status, body)) => {
                let update = "UPDATE replies SET status = $1, body = $2 WHERE admin = $3 AND key = $4 AND status = $5 AND created_ms = $6";
                sql(update).bind(status).bind(body)
            }
            None => sql(
                "DELETE FROM replies WHERE admin = $1 AND key = $2 AND status = $3 AND created_ms = $4",
            ),
        };
        query
            .bind(admin)
            .bind(key)
            .bind(PENDING)
            .bind(begun_ms)
            .execute(&self.engine)
            .await?;
        Ok(())
    }
}
