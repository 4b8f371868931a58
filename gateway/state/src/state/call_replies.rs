//! The results of writes that came with an idempotency key.

use super::GatewayState;
use crate::{
    BegunCall, CallKey, CallReplyStatus, StateError,
    columns::from_row,
    engine::{StateChange, sql},
};

/// The time for which a repeated call finds the result, in milliseconds.
const KEPT_MS: i64 = 24 * 3600 * 1000;
/// The keys of one caller. The oldest that has ended makes room.
const KEPT_MAX: i64 = 1_000;

struct CallReplyRow {
    request: String,
    status: CallReplyStatus,
    sealed: Option<String>,
    lease_ms: i64,
}

from_row!(CallReplyRow {
    request,
    status,
    sealed,
    lease_ms
});

impl GatewayState {
    /// Begins a write, so that of several with the same key only one runs. One whose process gave no answer until `lease_ms` is
    /// unknown from then on.
    pub async fn begin_call(
        &self,
        key: &CallKey,
        request: &str,
        now_ms: i64,
        lease_ms: i64,
    ) -> Result<BegunCall, StateError> {
        let mut change = self.change().await?;
        forget_replies(&mut change, now_ms).await?;
        let query = "SELECT request, status, sealed, lease_ms FROM call_replies WHERE caller = $1 AND tool = $2 AND key = $3";
        let known: Option<CallReplyRow> = sql(query)
            .bind(&key.caller)
            .bind(&key.tool)
            .bind(&key.key)
            .fetch_optional(&mut change)
            .await?;
        if let Some(known) = known {
            change.commit().await?;
            return Ok(match known.status {
                _ if known.request != request => BegunCall::Other,
                CallReplyStatus::Running if known.lease_ms > now_ms => BegunCall::Running,
                CallReplyStatus::Running | CallReplyStatus::Unknown => BegunCall::Unknown,
                CallReplyStatus::Done => BegunCall::Done(known.sealed),
            });
        }
        let beyond = "DELETE FROM call_replies WHERE caller = $1 AND status = $2 AND created_ms <= (SELECT created_ms FROM \
                      call_replies WHERE caller = $1 AND status = $2 ORDER BY created_ms DESC LIMIT 1 OFFSET $3)";
        sql(beyond)
            .bind(&key.caller)
            .bind(CallReplyStatus::Done)
            .bind(KEPT_MAX - 1)
            .execute(&mut change)
            .await?;
        let unended = "SELECT count(*) FROM call_replies WHERE caller = $1 AND status <> $2";
        let unended: i64 = sql(unended)
            .bind(&key.caller)
            .bind(CallReplyStatus::Done)
            .fetch_value(&mut change)
            .await?;
        if unended >= KEPT_MAX {
            change.commit().await?;
            return Ok(BegunCall::Full);
        }
        let insert = "INSERT INTO call_replies (caller, tool, key, request, status, lease_ms, created_ms) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sql(insert)
            .bind(&key.caller)
            .bind(&key.tool)
            .bind(&key.key)
            .bind(request)
            .bind(CallReplyStatus::Running)
            .bind(lease_ms)
            .bind(now_ms)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(BegunCall::First)
    }

    /// Keeps what became of a write that was begun.
    pub async fn end_call(
        &self,
        key: &CallKey,
        status: CallReplyStatus,
        sealed: Option<&str>,
    ) -> Result<(), StateError> {
        let end = "UPDATE call_replies SET status = $1, sealed = $2 WHERE caller = $3 AND tool = $4 AND key = $5 AND status <> $6";
        sql(end)
            .bind(status)
            .bind(sealed)
            .bind(&key.caller)
            .bind(&key.tool)
            .bind(&key.key)
            .bind(CallReplyStatus::Done)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Forgets a write that was begun with this lease and that changed nothing: the next one with its key runs. A write that was
    /// begun since is kept.
    pub async fn forget_call(&self, key: &CallKey, lease_ms: i64) -> Result<(), StateError> {
        let forget = "DELETE FROM call_replies WHERE caller = $1 AND tool = $2 AND key = $3 AND status = $4 AND lease_ms = $5";
        sql(forget)
            .bind(&key.caller)
            .bind(&key.tool)
            .bind(&key.key)
            .bind(CallReplyStatus::Running)
            .bind(lease_ms)
            .execute(&self.engine)
            .await?;
        Ok(())
    }
}

/// Drops the results that a repeated call no longer finds.
pub(super) async fn forget_replies(
    change: &mut StateChange,
    now_ms: i64,
) -> Result<(), StateError> {
    sql("DELETE FROM call_replies WHERE created_ms <= $1 AND lease_ms <= $2")
        .bind(now_ms - KEPT_MS)
        .bind(now_ms)
        .execute(change)
        .await?;
    Ok(())
}
