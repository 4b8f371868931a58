//! Stores how often keys are used, counted by the hour.

use super::{State, columns::from_row};
use crate::{KeyUsage, KeyUseRow, StateError};

/// Hours back from now that are counted.
const HOURS_KEPT: i64 = 24;
const HOUR_MS: i64 = 3600 * 1000;

from_row!(KeyUsage {
    key,
    last_used_ms,
    calls_24h
});

impl State {
    /// Adds to the counts of keys.
    pub async fn add_key_uses(&self, rows: &[KeyUseRow]) -> Result<(), StateError> {
        let mut change = self.change().await?;
        for row in rows {
            let hour = row.last_ms / HOUR_MS;
            let add = "INSERT INTO key_uses (key, hour, calls, last_ms) VALUES (?, ?, ?, ?) ON CONFLICT (key, hour) \
                       DO UPDATE SET calls = calls + excluded.calls, last_ms = max(last_ms, excluded.last_ms)";
            sqlx::query(add)
                .bind(&row.key)
                .bind(hour)
                .bind(row.calls)
                .bind(row.last_ms)
                .execute(&mut *change)
                .await?;
            sqlx::query("DELETE FROM key_uses WHERE key = ? AND hour < ?")
                .bind(&row.key)
                .bind(hour - HOURS_KEPT)
                .execute(&mut *change)
                .await?;
        }
        change.commit().await?;
        Ok(())
    }

    /// Returns the use of each key that was ever used.
    pub async fn key_usage(&self, now_ms: i64) -> Result<Vec<KeyUsage>, StateError> {
        let query = "SELECT key, max(last_ms) AS last_used_ms, \
                     coalesce(sum(calls) FILTER (WHERE hour > ?), 0) AS calls_24h FROM key_uses GROUP BY key";
        Ok(sqlx::query_as(query)
            .bind(now_ms / HOUR_MS - HOURS_KEPT)
            .fetch_all(&self.pool)
            .await?)
    }
}
