//! Writes that wait for a person's decision, and their outcomes.

use super::{GatewayState, call_replies::forget_replies};
use crate::{
    AddedPlan, PlanDecision, PlanRow, PlanScope, PlanStatus, StateError, columns::from_row,
    engine::sql,
};

/// The time for which a plan that has expired is listed.
const KEPT_MS: i64 = 24 * 3600 * 1000;
/// Plans of one caller that wait at once, of all callers of a tenant, and of all.
const CALLER_MAX: i64 = 20;
const TENANT_MAX: i64 = 200;
const ALL_MAX: i64 = 1_000;
/// The reason of an approved plan whose call waits for the answer to its question.
const PLAN_ASKED: &str = "asked";
/// Plans in one list.
const LISTED_MAX: i64 = 2_000;

from_row!(PlanRow {
    id,
    caller,
    agent,
    tenant,
    subject,
    contract,
    tool,
    change,
    fingerprint,
    sealed,
    status,
    created_ms,
    expires_ms,
    decided_ms,
    decided_by,
    reason
});

impl GatewayState {
    /// Adds a plan that waits for a person, unless one of the same change waits already or too many do.
    pub async fn add_plan(&self, plan: &PlanRow) -> Result<AddedPlan, StateError> {
        let mut change = self.change().await?;
        let now_ms = plan.created_ms;
        let known = "SELECT * FROM plans WHERE caller = $1 AND change = $2 AND status = $3 AND expires_ms > $4 LIMIT 1";
        let known: Option<PlanRow> = sql(known)
            .bind(&plan.caller)
            .bind(&plan.change)
            .bind(PlanStatus::Pending)
            .bind(now_ms)
            .fetch_optional(&mut change)
            .await?;
        if let Some(known) = known {
            change.commit().await?;
            return Ok(AddedPlan::Known(Box::new(known)));
        }
        let waiting = "SELECT count(*) FILTER (WHERE caller = $3), count(*) FILTER (WHERE tenant = $4), count(*) FROM plans \
                       WHERE status = $1 AND expires_ms > $2";
        let waiting: (i64, i64, i64) = sql(waiting)
            .bind(PlanStatus::Pending)
            .bind(now_ms)
            .bind(&plan.caller)
            .bind(&plan.tenant)
            .fetch_one(&mut change)
            .await?;
        let full = [
            (waiting.0, CALLER_MAX, PlanScope::Caller),
            (waiting.1, TENANT_MAX, PlanScope::Tenant),
            (waiting.2, ALL_MAX, PlanScope::Gateway),
        ];
        if let Some((_, max, scope)) = full.into_iter().find(|(waiting, max, _)| waiting >= max) {
            change.commit().await?;
            return Ok(AddedPlan::Full { scope, max });
        }
        let insert = "INSERT INTO plans (id, caller, agent, tenant, subject, contract, tool, change, fingerprint, sealed, \
                      status, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        sql(insert)
            .bind(&plan.id)
            .bind(&plan.caller)
            .bind(&plan.agent)
            .bind(&plan.tenant)
            .bind(&plan.subject)
            .bind(&plan.contract)
            .bind(&plan.tool)
            .bind(&plan.change)
            .bind(&plan.fingerprint)
            .bind(&plan.sealed)
            .bind(plan.status)
            .bind(plan.created_ms)
            .bind(plan.expires_ms)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(AddedPlan::Added)
    }

    /// Returns the plan of a caller for a change that has not expired: one that was rejected, one that waits for an answer, or
    /// else the newest, whatever its status.
    pub async fn find_plan(
        &self,
        caller: &str,
        change: &str,
        now_ms: i64,
    ) -> Result<Option<PlanRow>, StateError> {
        let query = "SELECT * FROM plans WHERE caller = $1 AND change = $2 AND expires_ms > $3 \
                     ORDER BY status = 'rejected' DESC, (status = 'approved' AND reason IS NOT NULL) DESC, created_ms DESC, id DESC \
                     LIMIT 1";
        sql(query)
            .bind(caller)
            .bind(change)
            .bind(now_ms)
            .fetch_optional(&self.engine)
            .await
    }

    /// Takes a plan that is approved, still has the reason it was found with, and has not expired: it applies once, whichever
    /// process asks. Its sealed part is returned with the row, and is deleted.
    pub async fn take_plan(
        &self,
        id: &str,
        reason: Option<&str>,
        now_ms: i64,
    ) -> Result<Option<PlanRow>, StateError> {
        let mut change = self.change().await?;
        let take = "UPDATE plans SET status = $1 WHERE id = $2 AND status = $3 AND expires_ms > $4 \
                    AND reason IS NOT DISTINCT FROM $5 RETURNING *";
        let taken: Option<PlanRow> = sql(take)
            .bind(PlanStatus::Applied)
            .bind(id)
            .bind(PlanStatus::Approved)
            .bind(now_ms)
            .bind(reason)
            .fetch_optional(&mut change)
            .await?;
        if taken.is_some() {
            sql("UPDATE plans SET sealed = NULL, reason = NULL WHERE id = $1")
                .bind(id)
                .execute(&mut change)
                .await?;
        }
        change.commit().await?;
        Ok(taken)
    }

    /// Marks a plan that was taken and has not expired as approved again, with its sealed part. If the call asked a
    /// question, a reason records that: only the call with the answer may take it.
    pub async fn give_plan_back(
        &self,
        id: &str,
        sealed: &str,
        has_asked: bool,
        now_ms: i64,
    ) -> Result<(), StateError> {
        let give = "UPDATE plans SET status = $1, sealed = $2, reason = $3 WHERE id = $4 AND status = $5 AND expires_ms > $6";
        sql(give)
            .bind(PlanStatus::Approved)
            .bind(sealed)
            .bind(has_asked.then_some(PLAN_ASKED))
            .bind(id)
            .bind(PlanStatus::Applied)
            .bind(now_ms)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Notes that a plan was taken, and that its record has changed.
    pub async fn set_plan_stale(&self, id: &str) -> Result<(), StateError> {
        sql("UPDATE plans SET status = $1 WHERE id = $2 AND status = $3")
            .bind(PlanStatus::Stale)
            .bind(id)
            .bind(PlanStatus::Applied)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Returns the plans that have not expired long ago: those that wait first, then the newest.
    pub async fn plans(&self, now_ms: i64) -> Result<Vec<PlanRow>, StateError> {
        let query = "SELECT * FROM plans WHERE expires_ms > $3 ORDER BY status = $1 AND expires_ms > $2 DESC, created_ms DESC, id \
                     LIMIT $4";
        sql(query)
            .bind(PlanStatus::Pending)
            .bind(now_ms)
            .bind(now_ms - KEPT_MS)
            .bind(LISTED_MAX)
            .fetch_all(&self.engine)
            .await
    }

    /// Returns a plan that has not expired long ago.
    pub async fn plan(&self, id: &str, now_ms: i64) -> Result<Option<PlanRow>, StateError> {
        let query = "SELECT * FROM plans WHERE id = $1 AND expires_ms > $2";
        sql(query)
            .bind(id)
            .bind(now_ms - KEPT_MS)
            .fetch_optional(&self.engine)
            .await
    }

    /// Writes a decision about a plan that waits and has not expired. Returns `false` if it no longer waits.
    pub async fn decide_plan(
        &self,
        id: &str,
        decision: &PlanDecision<'_>,
    ) -> Result<bool, StateError> {
        let decide = "UPDATE plans SET status = $1, decided_ms = $2, decided_by = $3, reason = $4, \
                      sealed = CASE WHEN $1 = $5 THEN sealed END WHERE id = $6 AND status = $7 AND expires_ms > $2";
        let decided = sql(decide)
            .bind(decision.status)
            .bind(decision.at_ms)
            .bind(decision.by)
            .bind(decision.reason)
            .bind(PlanStatus::Approved)
            .bind(id)
            .bind(PlanStatus::Pending)
            .execute(&self.engine)
            .await?;
        Ok(decided > 0)
    }

    /// Drops the sealed parts of expired plans, plans that expired long ago, and results that repeated calls can no longer
    /// find. Returns when the next plan expires.
    pub async fn forget_ended(&self, now_ms: i64) -> Result<Option<i64>, StateError> {
        let mut change = self.engine.begin_counts().await?;
        sql("DELETE FROM plans WHERE expires_ms <= $1")
            .bind(now_ms - KEPT_MS)
            .execute(&mut change)
            .await?;
        sql("UPDATE plans SET sealed = NULL WHERE expires_ms <= $1 AND sealed IS NOT NULL")
            .bind(now_ms)
            .execute(&mut change)
            .await?;
        forget_replies(&mut change, now_ms).await?;
        let next = "SELECT min(expires_ms) FROM plans WHERE sealed IS NOT NULL";
        let next = sql(next).fetch_value(&mut change).await?;
        change.commit().await?;
        Ok(next)
    }
}
