//! Decides whether this caller may call now, and whether there is room. A caller that would have to wait is refused immediately
//! instead of being queued.

use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use super::CallError;
use crate::{
    catalogue::CatalogueTool,
    codes::FailureCode,
    config::rate_words,
    identity::CallerIdentity,
    limits::{AgentQuotas, InFlightLimit, QuotaSpent, RateBuckets, RateCharge},
    telemetry::metrics::ToolMeter,
};

/// Room for one call; given back when dropped.
pub(super) struct CallPermit(
    #[expect(dead_code, reason = "kept for its drop")] OwnedSemaphorePermit,
);

/// Takes from the caller's overall bucket, even for tools that do not exist, unless the front door already did.
pub(super) async fn admit(
    buckets: &RateBuckets,
    charge: RateCharge,
    caller: &CallerIdentity,
    now: Instant,
) -> Result<(), CallError> {
    buckets
        .settle(charge, caller, now)
        .await
        .map_err(|wait| over_agent_rate(buckets, caller, wait))
}

pub(super) async fn acquire(
    in_flight: &InFlightLimit,
    (buckets, quotas): (&RateBuckets, &AgentQuotas),
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    now: Instant,
) -> Result<CallPermit, CallError> {
    buckets
        .call(caller, &tool.name, tool.tool.limits.rate, now)
        .await
        .map_err(|wait| over_tool_rate(caller, tool, wait))?;
    within_quota(quotas, caller, enter(in_flight)?)
}

/// Takes room for a prompt or a resource, which has no separate rate.
pub(super) async fn acquire_item(
    in_flight: &InFlightLimit,
    (buckets, quotas): (&RateBuckets, &AgentQuotas),
    caller: &CallerIdentity,
    meter: &ToolMeter,
    now: Instant,
) -> Result<CallPermit, CallError> {
    buckets
        .call(caller, &meter.tool, None, now)
        .await
        .map_err(|wait| over_agent_rate(buckets, caller, wait))?;
    within_quota(quotas, caller, enter(in_flight)?)
}

/// Counts a call that has room.
fn within_quota(
    quotas: &AgentQuotas,
    caller: &CallerIdentity,
    slot: CallPermit,
) -> Result<CallPermit, CallError> {
    let spent = |spent: QuotaSpent| {
        let limit = format!("the quota of {} calls a {}", spent.calls, spent.period);
        CallError::new(FailureCode::RateLimited, spent.message())
            .retry_after_ms(spent.wait_ms)
            .limit(limit)
    };
    quotas.call(caller).map(|()| slot).map_err(spent)
}

pub(super) fn enter(in_flight: &InFlightLimit) -> Result<CallPermit, CallError> {
    match in_flight.enter() {
        Some(permit) => Ok(CallPermit(permit)),
        None => Err(CallError::new(
            FailureCode::Overloaded,
            "Too many calls are running at once.",
        )
        .retry_after_ms(100)),
    }
}

fn over_agent_rate(buckets: &RateBuckets, caller: &CallerIdentity, wait_ms: u32) -> CallError {
    let own = caller.grant.as_ref().and_then(|grant| grant.rate());
    let limit = match (own, buckets.rate(caller)) {
        (Some(rate), _) => format!("all requests {} of this key", rate_words(rate)),
        (None, Some(rate)) => format!("all requests {} of `[limits] agent_rate`", rate_words(rate)),
        // The rate was removed meanwhile.
        (None, None) => "all requests".to_owned(),
    };
    CallError::new(FailureCode::RateLimited, "You are asking too often.")
        .retry_after_ms(wait_ms)
        .limit(limit)
}

fn over_tool_rate(caller: &CallerIdentity, tool: &CatalogueTool, wait_ms: u32) -> CallError {
    let (own, name) = (caller.tool_rate(&tool.name), &tool.name);
    let limit = match (own, tool.tool.limits.rate) {
        (Some(rate), _) => format!("{name} {} of this key", rate_words(rate)),
        (None, Some(rate)) => format!("{name} {} of its contract", rate_words(rate)),
        (None, None) => name.to_string(),
    };
    CallError::new(FailureCode::RateLimited, "This tool was called too often.")
        .retry_after_ms(wait_ms)
        .limit(format!("{limit}; calls with wrong arguments count as well"))
}
