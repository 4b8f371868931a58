//! Stores what calls looked like, counted by day.

use super::GatewayState;
use crate::{CallerRow, ProfileRow, StateError, columns::from_row, engine::sql};

/// Rows in total; once this is reached, calls with a new profile are not kept.
const ROWS_MAX: i64 = 200_000;

from_row!(ProfileRow {
    contract,
    tool,
    agent,
    profile,
    calls
});
from_row!(CallerRow {
    agent,
    tool,
    calls,
    last_day
});

impl GatewayState {
    /// Forgets the days before `oldest` (days since 1970). The lock of writers is taken only if there are any.
    pub async fn forget_profiles(&self, oldest: i64) -> Result<(), StateError> {
        let query = "SELECT EXISTS (SELECT 1 FROM profiles WHERE day < $1)";
        if sql(query).bind(oldest).fetch_value(&self.engine).await? {
            sql("DELETE FROM profiles WHERE day < $1")
                .bind(oldest)
                .execute(&self.engine)
                .await?;
        }
        Ok(())
    }

    /// Adds to the counts of `day` (days since 1970).
    pub async fn keep_profiles(&self, day: i64, rows: &[ProfileRow]) -> Result<(), StateError> {
        let mut change = self.engine.begin_counts().await?;
        let (mut kept,): (i64,) = sql("SELECT count(*) FROM profiles")
            .fetch_one(&mut change)
            .await?;
        // In one order, so that two processes do not wait for each other.
        let mut rows: Vec<&ProfileRow> = rows.iter().collect();
        rows.sort_by_key(|row| (&row.contract, &row.tool, &row.agent, &row.profile));
        for row in rows {
            let add = "UPDATE profiles SET calls = calls + $1 \
                       WHERE day = $2 AND contract = $3 AND tool = $4 AND agent = $5 AND profile = $6";
            let insert = "INSERT INTO profiles (calls, day, contract, tool, agent, profile) VALUES ($1, $2, $3, $4, $5, $6) \
                          ON CONFLICT (day, contract, tool, agent, profile) DO UPDATE SET calls = profiles.calls + excluded.calls";
            for query in [add, insert] {
                if query == insert && kept >= ROWS_MAX {
                    break;
                }
                let done = sql(query)
                    .bind(row.calls)
                    .bind(day)
                    .bind(&row.contract)
                    .bind(&row.tool)
                    .bind(&row.agent)
                    .bind(&row.profile)
                    .execute(&mut change)
                    .await?;
                if done > 0 {
                    kept += i64::from(query == insert);
                    break;
                }
            }
        }
        change.commit().await?;
        Ok(())
    }

    /// Returns the profiles of one contract, over all days kept.
    pub async fn profiles(&self, contract: &str) -> Result<Vec<ProfileRow>, StateError> {
        let query = "SELECT contract, tool, agent, profile, CAST(sum(calls) AS BIGINT) AS calls FROM profiles WHERE contract = $1 \
                     GROUP BY contract, tool, agent, profile ORDER BY agent, tool, profile";
        sql(query).bind(contract).fetch_all(&self.engine).await
    }

    /// Returns who called the tools of one contract, over all days kept, the most calls first, at most `limit` rows.
    pub async fn callers(&self, contract: &str, limit: i64) -> Result<Vec<CallerRow>, StateError> {
        let query = "SELECT agent, tool, CAST(sum(profiles.calls) AS BIGINT) AS calls, max(day) AS last_day FROM profiles \
                     WHERE contract = $1 GROUP BY agent, tool ORDER BY sum(profiles.calls) DESC, agent, tool LIMIT $2";
        sql(query)
            .bind(contract)
            .bind(limit)
            .fetch_all(&self.engine)
            .await
    }
}
