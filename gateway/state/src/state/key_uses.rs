//! Stores how often keys are used, counted by the hour.

use super::GatewayState;
use crate::{KeyUsage, KeyUseRow, StateError, columns::from_row, engine::sql};

/// Hours back from now that are counted.
const HOURS_KEPT: i64 = 24;
const HOUR_MS: i64 = 3600 * 1000;

from_row!(KeyUsage {
    key,
    last_used_ms,
    calls_24h
});

impl GatewayState {
    /// Adds to the counts of keys.
    pub async fn add_key_uses(&self, rows: &[KeyUseRow]) -> Result<(), StateError> {
        let mut change = self.engine.begin_counts().await?;
        // Always in the same order: otherwise two nodes could deadlock on each other's rows.
        let mut rows: Vec<&KeyUseRow> = rows.iter().collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        for row in rows {
            let hour = row.last_ms / HOUR_MS;
            let add = "INSERT INTO key_uses (key, hour, calls, last_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (key, hour) \
                       DO UPDATE SET calls = key_uses.calls + excluded.calls, last_ms = CASE \
                       WHEN key_uses.last_ms > excluded.last_ms THEN key_uses.last_ms ELSE excluded.last_ms END";
            sql(add)
                .bind(&row.key)
                .bind(hour)
                .bind(row.calls)
                .bind(row.last_ms)
                .execute(&mut change)
                .await?;
            sql("DELETE FROM key_uses WHERE key = $1 AND hour < $2")
                .bind(&row.key)
                .bind(hour - HOURS_KEPT)
                .execute(&mut change)
                .await?;
        }
        change.commit().await?;
        Ok(())
    }

    /// Returns the use of each key that was ever used.
    pub async fn key_usage(&self, now_ms: i64) -> Result<Vec<KeyUsage>, StateError> {
        let query = "SELECT key, max(last_ms) AS last_used_ms, \
                     CAST(coalesce(sum(calls) FILTER (WHERE hour > $1), 0) AS BIGINT) AS calls_24h FROM key_uses GROUP BY key";
        sql(query)
            .bind(now_ms / HOUR_MS - HOURS_KEPT)
            .fetch_all(&self.engine)
            .await
    }
}
