//! Stores the calls of agents that have a quota, counted by the day.

use super::GatewayState;
use crate::{AgentCallsRow, AgentTotalsRow, StateError, columns::from_row, engine::sql};

/// Days that are kept: those of a month, and of the one before.
const DAYS_KEPT: i64 = 62;

from_row!(AgentTotalsRow {
    tenant,
    agent,
    calls_day,
    calls_month
});

impl GatewayState {
    /// Adds to the counts of agents, and returns what all processes have counted of each in the day and the month of `day`, which
    /// began with the day `month_start`.
    pub async fn add_agent_calls(
        &self,
        rows: &[AgentCallsRow],
        day: i64,
        month_start: i64,
    ) -> Result<Vec<AgentTotalsRow>, StateError> {
        let mut change = self.engine.begin_counts().await?;
        let mut totals = Vec::with_capacity(rows.len());
        // Always in the same order: otherwise two nodes could deadlock on each other's rows.
        let mut rows: Vec<&AgentCallsRow> = rows.iter().collect();
        rows.sort_by_key(|row| (&row.tenant, &row.agent, row.day));
        for row in rows {
            let add = "INSERT INTO agent_calls (tenant, agent, day, calls) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (tenant, agent, day) DO UPDATE SET calls = agent_calls.calls + excluded.calls";
            sql(add)
                .bind(&row.tenant)
                .bind(&row.agent)
                .bind(row.day)
                .bind(row.calls)
                .execute(&mut change)
                .await?;
            let sum = "SELECT tenant, agent, CAST(coalesce(sum(calls) FILTER (WHERE day = $1), 0) AS BIGINT) AS calls_day, \
                       CAST(coalesce(sum(calls), 0) AS BIGINT) AS calls_month \
                       FROM agent_calls WHERE tenant = $2 AND agent = $3 AND day >= $4 GROUP BY tenant, agent";
            let total = sql(sum)
                .bind(day)
                .bind(&row.tenant)
                .bind(&row.agent)
                .bind(month_start)
                .fetch_optional(&mut change)
                .await?;
            totals.extend(total);
            sql("DELETE FROM agent_calls WHERE tenant = $1 AND agent = $2 AND day < $3")
                .bind(&row.tenant)
                .bind(&row.agent)
                .bind(day - DAYS_KEPT)
                .execute(&mut change)
                .await?;
        }
        change.commit().await?;
        Ok(totals)
    }

    /// Returns what all processes have counted of each agent in the day and the month of `day`, which began with the day
    /// `month_start`.
    pub async fn agent_totals(
        &self,
        day: i64,
        month_start: i64,
    ) -> Result<Vec<AgentTotalsRow>, StateError> {
        let sum = "SELECT tenant, agent, CAST(coalesce(sum(calls) FILTER (WHERE day = $1), 0) AS BIGINT) AS calls_day, \
                   CAST(sum(calls) AS BIGINT) AS calls_month FROM agent_calls WHERE day >= $2 GROUP BY tenant, agent";
        sql(sum)
            .bind(day)
            .bind(month_start)
            .fetch_all(&self.engine)
            .await
    }
}
