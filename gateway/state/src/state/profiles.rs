//! Stores what calls looked like, counted by day.

use super::{State, columns::from_row};
use crate::{ProfileRow, StateError};

/// Rows in all; calls that look like none of them are not kept then.
const ROWS_MAX: i64 = 200_000;

from_row!(ProfileRow {
    contract,
    tool,
    agent,
    profile,
    calls
});

impl State {
    /// Forgets the days before `oldest` (days since 1970). The lock of writers is taken only where there are any.
    pub async fn forget_profiles(&self, oldest: i64) -> Result<(), StateError> {
        let query = "SELECT EXISTS (SELECT 1 FROM profiles WHERE day < ?)";
        if sqlx::query_scalar(query)
            .bind(oldest)
            .fetch_one(&self.pool)
            .await?
        {
            sqlx::query("DELETE FROM profiles WHERE day < ?")
                .bind(oldest)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    /// Adds to the counts of `day` (days since 1970).
    pub async fn keep_profiles(&self, day: i64, rows: &[ProfileRow]) -> Result<(), StateError> {
        let mut change = self.change().await?;
        let (mut kept,): (i64,) = sqlx::query_as("SELECT count(*) FROM profiles")
            .fetch_one(&mut *change)
            .await?;
        for row in rows {
            let add = "UPDATE profiles SET calls = calls + ? \
                       WHERE day = ? AND contract = ? AND tool = ? AND agent = ? AND profile = ?";
            let insert = "INSERT INTO profiles (calls, day, contract, tool, agent, profile) VALUES (?, ?, ?, ?, ?, ?)";
            for query in [add, insert] {
                if query == insert && kept >= ROWS_MAX {
                    break;
                }
                let done = sqlx::query(query)
                    .bind(row.calls)
                    .bind(day)
                    .bind(&row.contract)
                    .bind(&row.tool)
                    .bind(&row.agent)
                    .bind(&row.profile)
                    .execute(&mut *change)
                    .await?;
                if done.rows_affected() > 0 {
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
        let query = "SELECT contract, tool, agent, profile, sum(calls) AS calls FROM profiles WHERE contract = ? \
                     GROUP BY tool, agent, profile ORDER BY agent, tool, profile";
        Ok(sqlx::query_as(query)
            .bind(contract)
            .fetch_all(&self.pool)
            .await?)
    }
}
