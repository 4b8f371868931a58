//! Quotas: how many calls an agent may make in a day and in a month, UTC. The counts of all processes of a gateway are in the
//! state, no more than a second old.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ahash::RandomState;
use arc_swap::ArcSwap;
use dashmap::DashMap;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use parking_lot::Mutex;
use tokio::sync::Notify;
use weir_state::{AgentCallsRow, AgentTotalsRow, GatewayState, StateError};

use super::{Agent, agent};
use crate::identity::{CallQuota, CallerIdentity, now_ms};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// A quota that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaSpent {
    pub calls: u32,
    /// `day` or `month`.
    pub period: &'static str,
    /// When the next one begins, in milliseconds since the Unix epoch.
    pub resets_ms: i64,
    pub wait_ms: u32,
}

/// The calls of all agents that have a quota.
pub struct AgentQuotas {
    /// `[limits] agent_quota_day` and `agent_quota_month`.
    usual: ArcSwap<CallQuota>,
    counts: DashMap<Agent, Arc<Mutex<AgentCount>>, RandomState>,
    /// The agents with unwritten calls, each once.
    waiting: Mutex<Vec<Agent>>,
    used: Notify,
    passed: AtomicU64,
    refused: AtomicU64,
}

/// The calls of one agent.
#[derive(Debug, Default)]
struct AgentCount {
    day: i64,
    /// The day on which the month began.
    month_start: i64,
    /// The calls of the day and of the month that all processes have written.
    written_day: i64,
    written_month: i64,
    /// The calls of the day that are not yet written.
    unwritten: i64,
    /// Whether the agent is in `waiting`.
    is_waiting: bool,
    /// Unwritten calls of earlier days.
    of_days_before: Vec<(i64, i64)>,
}

impl AgentQuotas {
    /// Creates empty counts. `usual` is the quota of agents whose grant sets none.
    pub fn new(usual: CallQuota) -> Self {
        Self {
            usual: ArcSwap::from_pointee(usual),
            counts: DashMap::default(),
            waiting: Mutex::default(),
            used: Notify::new(),
            passed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Sets the quota of agents whose grant sets none.
    pub fn set_usual(&self, usual: CallQuota) {
        self.usual.store(Arc::new(usual));
    }

    /// Returns how many calls of agents with a quota passed, and how many did not.
    pub fn decisions(&self) -> (u64, u64) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (count(&self.passed), count(&self.refused))
    }

    /// Counts a call. Without keys every caller is `local`, which has no bound.
    pub fn call(&self, caller: &CallerIdentity) -> Result<(), QuotaSpent> {
        let Some(grant) = &caller.grant else {
            return Ok(());
        };
        let (own, usual) = (grant.quota(), self.usual.load());
        let quota = CallQuota {
            day: own.day.or(usual.day),
            month: own.month.or(usual.month),
        };
        if quota.is_none() {
            return Ok(());
        }
        let counted = self.count(&agent(caller), quota, now_ms());
        let decisions = match counted {
            Ok(()) => &self.passed,
            Err(_) => &self.refused,
        };
        decisions.fetch_add(1, Ordering::Relaxed);
        counted
    }

    fn count(&self, agent: &Agent, quota: CallQuota, now_ms: i64) -> Result<(), QuotaSpent> {
        let known = self.counts.get(agent).map(|count| count.clone());
        let count = known.unwrap_or_else(|| self.counts.entry(agent.clone()).or_default().clone());
        let mut count = count.lock();
        count.enter(now_ms.div_euclid(DAY_MS));
        let day = count.written_day + count.unwritten;
        let month = count.month();
        let spent = |most: Option<u32>, calls: i64| most.filter(|most| calls >= i64::from(*most));
        if let Some(calls) = spent(quota.month, month) {
            let resets_ms = next_month(count.day) * DAY_MS;
            return Err(QuotaSpent::new(calls, "month", resets_ms, now_ms));
        }
        if let Some(calls) = spent(quota.day, day) {
            return Err(QuotaSpent::new(
                calls,
                "day",
                (count.day + 1) * DAY_MS,
                now_ms,
            ));
        }
        count.unwritten += 1;
        if !std::mem::replace(&mut count.is_waiting, true) {
            self.waiting.lock().push(agent.clone());
            self.used.notify_one();
        }
        Ok(())
    }

    /// Loads the counts from before this process started.
    pub async fn take_over(&self, state: &GatewayState) -> Result<(), StateError> {
        let (day, month_start) = today(now_ms());
        let totals = state.agent_totals(day, month_start).await?;
        self.note(&totals, day, month_start);
        Ok(())
    }

    /// Waits until there is an unwritten call.
    pub async fn used(&self) {
        self.used.notified().await;
    }

    /// Writes the counts to the state, and reads those of other processes for the same agents.
    pub async fn write(&self, state: &GatewayState) -> Result<(), StateError> {
        let (day, month_start) = today(now_ms());
        let mut rows = Vec::new();
        let mut taken = Vec::new();
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for agent in waiting {
            let Some(count) = self.counts.get(&agent).map(|count| count.clone()) else {
                continue;
            };
            let mut count = count.lock();
            count.is_waiting = false;
            count.enter(day);
            let mut days = std::mem::take(&mut count.of_days_before);
            let calls = std::mem::take(&mut count.unwritten);
            // Until the write ends, the calls count as written.
            count.written_day += calls;
            count.written_month += calls;
            if calls > 0 {
                days.push((day, calls));
            }
            rows.extend(days.iter().map(|(day, calls)| AgentCallsRow {
                tenant: agent.0.to_string(),
                agent: agent.1.to_string(),
                day: *day,
                calls: *calls,
            }));
            drop(count);
            taken.push((agent, days));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let written = state.add_agent_calls(&rows, day, month_start).await;
        match &written {
            Ok(totals) => self.note(totals, day, month_start),
            Err(_) => self.give_back(taken, day),
        }
        written.map(drop)
    }

    fn note(&self, totals: &[AgentTotalsRow], day: i64, month_start: i64) {
        for total in totals {
            let key: Agent = (total.tenant.as_str().into(), total.agent.as_str().into());
            let count = self.counts.entry(key).or_default().clone();
            let mut count = count.lock();
            // A day that began meanwhile has none of these calls.
            if count.day <= day {
                count.enter(day);
                count.month_start = month_start;
                count.written_day = total.calls_day;
                count.written_month = total.calls_month;
            }
        }
    }

    /// Adds back counts that could not be written.
    fn give_back(&self, taken: Vec<(Agent, Vec<(i64, i64)>)>, today: i64) {
        for (agent, days) in taken {
            let Some(count) = self.counts.get(&agent).map(|count| count.clone()) else {
                continue;
            };
            let mut count = count.lock();
            for (day, calls) in days {
                if day == today && count.day == today {
                    count.unwritten += calls;
                    count.written_day -= calls;
                    count.written_month -= calls;
                } else {
                    count.of_days_before.push((day, calls));
                }
            }
            if !std::mem::replace(&mut count.is_waiting, true) {
                self.waiting.lock().push(agent);
            }
        }
        self.used.notify_one();
    }
}

impl AgentCount {
    /// Begins a new day, if it has changed.
    fn enter(&mut self, day: i64) {
        if self.day == day {
            return;
        }
        let month_start = month_start(day);
        if self.unwritten > 0 {
            self.of_days_before.push((self.day, self.unwritten));
        }
        if self.month_start != month_start {
            self.written_month = 0;
        } else {
            self.written_month += self.unwritten;
        }
        self.unwritten = 0;
        self.written_day = 0;
        self.day = day;
        self.month_start = month_start;
    }

    fn month(&self) -> i64 {
        self.written_month + self.unwritten
    }
}

impl QuotaSpent {
    fn new(calls: u32, period: &'static str, resets_ms: i64, now_ms: i64) -> Self {
        Self {
            calls,
            period,
            resets_ms,
            wait_ms: u32::try_from(resets_ms - now_ms).unwrap_or(u32::MAX).max(1),
        }
    }

    /// Returns the sentence for the caller.
    pub fn message(&self) -> String {
        let resets = Timestamp::from_millisecond(self.resets_ms).unwrap_or_default();
        format!(
            "The quota of {} calls a {} is used up; the next one begins at {resets}.",
            self.calls, self.period
        )
    }
}

fn today(now_ms: i64) -> (i64, i64) {
    let day = now_ms.div_euclid(DAY_MS);
    (day, month_start(day))
}

fn date(day: i64) -> Date {
    let time = Timestamp::from_millisecond(day * DAY_MS).unwrap_or_default();
    time.to_zoned(TimeZone::UTC).date()
}

fn day(date: Date) -> i64 {
    let time = date.to_zoned(TimeZone::UTC);
    time.map_or(0, |time| {
        time.timestamp().as_millisecond().div_euclid(DAY_MS)
    })
}

fn month_start(of: i64) -> i64 {
    day(date(of).first_of_month())
}

fn next_month(of: i64) -> i64 {
    day(date(of).last_of_month()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: CallQuota = CallQuota {
        day: Some(2),
        month: Some(3),
    };
    /// 2026-11-29, at noon.
    const NOON: i64 = 20_786 * DAY_MS + DAY_MS / 2;

    fn ask(quotas: &AgentQuotas, now_ms: i64) -> Result<(), (&'static str, i64)> {
        let agent = ("t".into(), "a".into());
        let counted = quotas.count(&agent, QUOTA, now_ms);
        counted.map_err(|spent| (spent.period, spent.resets_ms / DAY_MS - 20_786))
    }

    #[test]
    fn days_and_months_begin_anew_in_utc() {
        assert_eq!(date(20_786).to_string(), "2026-11-29");
        let quotas = AgentQuotas::new(CallQuota::default());
        assert_eq!(ask(&quotas, NOON), Ok(()));
        assert_eq!(ask(&quotas, NOON), Ok(()));
        assert_eq!(ask(&quotas, NOON), Err(("day", 1)));
        assert_eq!(ask(&quotas, NOON + DAY_MS), Ok(()));
        assert_eq!(ask(&quotas, NOON + DAY_MS), Err(("month", 2)));
        assert_eq!(ask(&quotas, NOON + 2 * DAY_MS), Ok(()), "in December");
        assert_eq!(ask(&quotas, NOON + 2 * DAY_MS), Ok(()));
        assert_eq!(ask(&quotas, NOON + 2 * DAY_MS), Err(("day", 3)));
    }

    #[test]
    fn what_others_counted_counts_as_well() {
        let quotas = AgentQuotas::new(CallQuota::default());
        let (day, month_start) = today(NOON);
        let total = AgentTotalsRow {
            tenant: "t".into(),
            agent: "a".into(),
            calls_day: 1,
            calls_month: 2,
        };
        quotas.note(&[total], day, month_start);
        assert_eq!(ask(&quotas, NOON), Ok(()));
        assert_eq!(ask(&quotas, NOON), Err(("month", 2)));
    }
}
