//! Bounds how many calls run at once, and how often. A caller that would have to wait is refused immediately instead of being
//! queued.

mod bytes;
mod quotas;
mod shared;

use std::{
    collections::VecDeque,
    hash::Hash,
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ahash::RandomState;
use arc_swap::ArcSwapOption;
use dashmap::DashMap;
use governor::{
    DefaultDirectRateLimiter, Quota,
    clock::{Clock as _, DefaultClock},
};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_ledger::{BucketId, SharedBucket, SharedLedger, TakenNow};

pub use self::bytes::{BudgetFull, ByteBudget, BytesHolder, HeldBytes, UNCOUNTED_MAX_BYTES};
pub use self::quotas::{AgentQuotas, QuotaSpent};
use crate::identity::CallerIdentity;

/// The most permits that a semaphore can have on every platform.
const MOST: u32 = 1 << 28;
/// The number of buckets that are examined for each new one, and dropped if they are full again. It is more than one, so that a
/// table shrinks while agents come and go.
const LOOKED_AT: usize = 2;

/// The bound on concurrent calls, over all tools.
pub struct InFlightLimit {
    room: Arc<Semaphore>,
    most: u32,
    decisions: LimiterDecisions,
}

/// The decisions of one limiter.
#[derive(Default)]
struct LimiterDecisions {
    passed: AtomicU64,
    refused: AtomicU64,
}

/// Calls, and the seconds over which they are counted.
pub type Rate = (u32, u32);

/// The buckets of all agents: one over everything an agent does, one for each of its tools that has a rate. Each rate has its own
/// buckets: an agent with two keys of different rates has what both allow, and does not get a fresh bucket by alternating.
pub struct RateBuckets {
    /// `[limits] agent_rate`.
    agent_rate: ArcSwapOption<Rate>,
    agents: BucketTable<(Agent, Rate)>,
    tools: BucketTable<(Agent, Arc<str>, Rate)>,
    of_agents: LimiterDecisions,
    of_tools: LimiterDecisions,
    clock: DefaultClock,
    started: Instant,
    /// The ledger that counts the rates of several nodes. Without it, this process counts on its own.
    ledger: OnceLock<Arc<SharedLedger>>,
}

/// The charge of a request to its agent's rate, if it was made before the request was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateCharge {
    /// The rate is checked when the request has been read.
    Due,
    /// It was charged at the head of the request.
    Taken,
    /// The agent is over its rate: the milliseconds to wait.
    Over(u32),
}

/// A tenant, and the name of one of its agents.
type Agent = (Arc<str>, Arc<str>);

/// The buckets that are not full, and some that are full again. The cost of a new bucket does not depend on their number: only
/// the oldest few are examined, never all of them.
struct BucketTable<K> {
    buckets: DashMap<K, Arc<RateBucket>, RandomState>,
    /// Every key of `buckets` once, in the order in which they will be examined.
    keys: Mutex<VecDeque<K>>,
}

struct RateBucket {
    rate: Rate,
    counter: RateCounter,
    /// Seconds since the start.
    used: AtomicU64,
    /// Requests that were charged but then cost nothing.
    given_back: AtomicU32,
}

/// The counter of a bucket's requests.
enum RateCounter {
    Own(DefaultDirectRateLimiter),
    /// Counted by all nodes together.
    Shared(Arc<SharedBucket>),
}

/// The decision about a request before the ledger is asked.
enum RateDecision {
    Passed,
    /// The milliseconds to wait.
    Over(u32),
    Asks(Arc<SharedBucket>),
}

impl InFlightLimit {
    /// Creates room for `most` calls at once.
    pub fn new(most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX).min(MOST);
        Self {
            room: Arc::new(Semaphore::new(most as usize)),
            most,
            decisions: LimiterDecisions::default(),
        }
    }

    /// Returns how many calls may run at once.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Returns how many calls were admitted, and how many were refused.
    pub fn decisions(&self) -> (u64, u64) {
        self.decisions.counts()
    }

    /// Takes the room of one call, until the result is dropped.
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.decisions
            .count(self.room.clone().try_acquire_owned())
            .ok()
    }

    /// Returns the number of calls that are running.
    pub fn len(&self) -> usize {
        (self.most as usize).saturating_sub(self.room.available_permits())
    }

    /// Returns `true` if no call is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no call is running any more, not even a write whose caller has gone. For the end of the process, when no new
    /// calls arrive.
    pub async fn drained(&self) {
        let _ = self.room.acquire_many(self.most).await;
    }
}

impl LimiterDecisions {
    fn count<T, E>(&self, decided: Result<T, E>) -> Result<T, E> {
        let count = if decided.is_ok() {
            &self.passed
        } else {
            &self.refused
        };
        count.fetch_add(1, Ordering::Relaxed);
        decided
    }

    fn counts(&self) -> (u64, u64) {
        (
            self.passed.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }
}

impl RateBuckets {
    /// Creates buckets that are full. `None` means that agents have no rate unless their keys set one.
    pub fn new(agent_rate: Option<Rate>) -> Self {
        Self {
            agent_rate: ArcSwapOption::from_pointee(agent_rate),
            agents: BucketTable::default(),
            tools: BucketTable::default(),
            of_agents: LimiterDecisions::default(),
            of_tools: LimiterDecisions::default(),
            clock: DefaultClock::default(),
            started: Instant::now(),
            ledger: OnceLock::new(),
        }
    }

    /// Makes the nodes count together. Called before anything is counted.
    pub fn share(&self, ledger: Arc<SharedLedger>) {
        let _ = self.ledger.set(ledger); // a process is a node once
    }

    /// Returns where several nodes count together.
    pub fn ledger(&self) -> Option<&Arc<SharedLedger>> {
        self.ledger.get()
    }

    /// Sets the rate from the next request on.
    pub fn set_agent_rate(&self, rate: Option<Rate>) {
        self.agent_rate.store(rate.map(Arc::new));
    }

    /// Returns how many requests the overall buckets let pass and refused.
    pub fn agent_decisions(&self) -> (u64, u64) {
        self.of_agents.counts()
    }

    /// Returns how many calls the buckets of single tools let pass and refused.
    pub fn tool_decisions(&self) -> (u64, u64) {
        self.of_tools.counts()
    }

    /// Counts one request of any method. Returns an error with the milliseconds to wait if the agent is over its rate. Without
    /// keys every caller is `local`, which has no bound.
    pub async fn request(&self, caller: &CallerIdentity, now: Instant) -> Result<(), u32> {
        let decided = self.decide_request(caller, now);
        self.of_agents.count(self.complete(decided).await)
    }

    fn decide_request(&self, caller: &CallerIdentity, now: Instant) -> RateDecision {
        match self.rate(caller) {
            None => RateDecision::Passed,
            Some(rate) => {
                let id = || shared::bucket_id(&caller.tenant, &caller.agent, None, rate);
                self.take(&self.agents, (agent(caller), rate), rate, id, now)
            }
        }
    }

    /// Counts one request whose head has arrived.
    pub async fn charge(&self, caller: &CallerIdentity, now: Instant) -> RateCharge {
        match self.request(caller, now).await {
            Ok(()) => RateCharge::Taken,
            Err(wait_ms) => RateCharge::Over(wait_ms),
        }
    }

    /// Counts one of several requests of a message. If this process counts on its own, this is done when the request has been
    /// read.
    pub async fn charge_further(&self, caller: &CallerIdentity, now: Instant) -> RateCharge {
        match self.ledger.get() {
            None => RateCharge::Due,
            Some(_) => self.charge(caller, now).await,
        }
    }

    /// Returns whether a request may run. It is counted here if it was not counted at its head.
    pub async fn settle(
        &self,
        charge: RateCharge,
        caller: &CallerIdentity,
        now: Instant,
    ) -> Result<(), u32> {
        match charge {
            RateCharge::Due => self.request(caller, now).await,
            RateCharge::Taken => Ok(()),
            RateCharge::Over(wait_ms) => Err(wait_ms),
        }
    }

    /// Does the same without waiting, if the request was already counted or this process counts on its own. A node counts
    /// requests over HTTP at their head.
    pub fn settle_at_once(
        &self,
        charge: RateCharge,
        caller: &CallerIdentity,
        now: Instant,
    ) -> Result<(), u32> {
        match charge {
            RateCharge::Due => self
                .of_agents
                .count(match self.decide_request(caller, now) {
                    RateDecision::Passed => Ok(()),
                    RateDecision::Over(wait_ms) => Err(wait_ms),
                    RateDecision::Asks(_) => Err(1),
                }),
            RateCharge::Taken => Ok(()),
            RateCharge::Over(wait_ms) => Err(wait_ms),
        }
    }

    /// Returns the tokens that were taken at the head of a message that costs nothing: a notification, or the answer to a
    /// question.
    pub fn give_back(&self, charge: RateCharge, caller: &CallerIdentity) {
        if charge != RateCharge::Taken {
            return;
        }
        if let Some(rate) = self.rate(caller)
            && let Some(bucket) = self.agents.buckets.get(&(agent(caller), rate))
        {
            if let (RateCounter::Shared(shared), Some(ledger)) =
                (&bucket.counter, self.ledger.get())
            {
                return ledger.give_back(shared);
            }
            // No more than the burst, since the bucket refills meanwhile.
            let more = |left: u32| (left < bucket.rate.0).then_some(left + 1);
            let relaxed = Ordering::Relaxed;
            let _ = bucket.given_back.fetch_update(relaxed, relaxed, more); // none over the burst
        }
    }

    /// Returns the rate over everything that the caller does.
    pub fn rate(&self, caller: &CallerIdentity) -> Option<Rate> {
        let usual = || self.agent_rate.load().as_deref().copied();
        let grant = caller.grant.as_ref()?;
        grant.rate().or_else(usual)
    }

    /// Counts one call of a tool that exists; `rate` is what its contract allows.
    pub async fn call(
        &self,
        caller: &CallerIdentity,
        tool: &Arc<str>,
        rate: Option<Rate>,
        now: Instant,
    ) -> Result<(), u32> {
        let own = caller.tool_rate(tool);
        let decided = match own.or(rate) {
            None => RateDecision::Passed,
            Some(rate) => {
                let key = (agent(caller), tool.clone(), rate);
                let id = || shared::bucket_id(&caller.tenant, &caller.agent, Some(tool), rate);
                self.take(&self.tools, key, rate, id, now)
            }
        };
        self.of_tools.count(self.complete(decided).await)
    }

    /// Asks the ledger if it has to decide.
    async fn complete(&self, decided: RateDecision) -> Result<(), u32> {
        match decided {
            RateDecision::Passed => Ok(()),
            RateDecision::Over(wait_ms) => Err(wait_ms),
            // Boxed, so that decisions without the ledger remain small.
            RateDecision::Asks(bucket) => Box::pin(self.ask(bucket)).await,
        }
    }

    async fn ask(&self, bucket: Arc<SharedBucket>) -> Result<(), u32> {
        match self.ledger.get() {
            None => Ok(()), // there is no shared bucket then
            Some(ledger) => ledger.ask(&bucket).await.map_err(wait_ms),
        }
    }

    fn take<K: Clone + Eq + Hash>(
        &self,
        table: &BucketTable<K>,
        key: K,
        rate: Rate,
        id: impl FnOnce() -> BucketId,
        now: Instant,
    ) -> RateDecision {
        let now = now.saturating_duration_since(self.started).as_secs();
        let bucket = table.bucket(key, now, || self.new_bucket(rate, id, now));
        bucket.used.store(now, Ordering::Relaxed);
        if bucket.take_back() {
            return RateDecision::Passed;
        }
        match &bucket.counter {
            RateCounter::Own(limiter) => match limiter.check() {
                Ok(()) => RateDecision::Passed,
                Err(until) => RateDecision::Over(wait_ms(until.wait_time_from(self.clock.now()))),
            },
            RateCounter::Shared(shared) => self.take_shared(shared),
        }
    }

    fn take_shared(&self, bucket: &Arc<SharedBucket>) -> RateDecision {
        let taken = self.ledger.get().map(|ledger| ledger.take(bucket));
        match taken {
            None | Some(TakenNow::Passed) => RateDecision::Passed,
            Some(TakenNow::Refused(wait)) => RateDecision::Over(wait_ms(wait)),
            Some(TakenNow::Asks) => RateDecision::Asks(bucket.clone()),
        }
    }

    fn new_bucket(&self, rate: Rate, id: impl FnOnce() -> BucketId, now: u64) -> Arc<RateBucket> {
        let counter = match self.ledger.get() {
            None => RateCounter::Own(own_limiter(rate)),
            Some(ledger) => RateCounter::Shared(ledger.bucket(id(), shared::token_rate(rate))),
        };
        Arc::new(RateBucket {
            rate: (rate.0.max(1), rate.1),
            counter,
            used: AtomicU64::new(now),
            given_back: AtomicU32::new(0),
        })
    }
}

/// Returns a time to wait in milliseconds, at least one.
fn wait_ms(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn own_limiter((calls, seconds): Rate) -> DefaultDirectRateLimiter {
    let calls = NonZeroU32::new(calls).unwrap_or(NonZeroU32::MIN);
    let period = Duration::from_secs(seconds.max(1).into()) / calls.get();
    let quota =
        Quota::with_period(period.max(Duration::from_nanos(1))).expect("a period above zero");
    DefaultDirectRateLimiter::direct(quota.allow_burst(calls))
}

fn agent(caller: &CallerIdentity) -> Agent {
    (caller.tenant.clone(), caller.agent.clone())
}

/// Returns the agent for which a caller's bytes count.
pub fn holder(caller: &CallerIdentity) -> BytesHolder {
    caller.grant.as_ref().map(|_| agent(caller))
}

impl<K> Default for BucketTable<K>
where
    K: Eq + Hash,
{
    fn default() -> Self {
        Self {
            buckets: DashMap::default(),
            keys: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> BucketTable<K> {
    fn bucket(&self, key: K, now: u64, make: impl FnOnce() -> Arc<RateBucket>) -> Arc<RateBucket> {
        if let Some(bucket) = self.buckets.get(&key) {
            return bucket.clone();
        }
        let mut is_new = false;
        let entry = self.buckets.entry(key.clone()).or_insert_with(|| {
            is_new = true;
            make()
        });
        let bucket = entry.clone();
        drop(entry); // `sweep` takes other entries
        if is_new {
            self.sweep(key, now);
        }
        bucket
    }

    /// Adds `new`, and examines the buckets that have not been examined for longest.
    fn sweep(&self, new: K, now: u64) {
        let mut keys = self.keys.lock();
        for _ in 0..LOOKED_AT.min(keys.len()) {
            let Some(oldest) = keys.pop_front() else {
                break;
            };
            if self
                .buckets
                .remove_if(&oldest, |_, bucket| bucket.is_full(now))
                .is_none()
            {
                keys.push_back(oldest);
            }
        }
        keys.push_back(new);
    }
}

impl RateBucket {
    /// Takes a token that another request gave back, which is used first: there are never more of these than open requests of the
    /// agent.
    fn take_back(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.given_back.load(Ordering::Relaxed) > 0
            && self
                .given_back
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                .is_ok()
    }

    /// Returns `true` if the bucket was unused for as long as it takes to fill: a new one would be the same.
    fn is_full(&self, now: u64) -> bool {
        now.saturating_sub(self.used.load(Ordering::Relaxed)) > self.rate.1.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(agent: &str, rate: Rate) -> (Agent, Rate) {
        (("t".into(), agent.into()), rate)
    }

    fn take(buckets: &RateBuckets, agent: &str, rate: Rate) -> Result<(), u32> {
        take_at(buckets, agent, rate, Instant::now())
    }

    fn take_at(buckets: &RateBuckets, agent: &str, rate: Rate, now: Instant) -> Result<(), u32> {
        let id = || shared::bucket_id("t", agent, None, rate);
        match buckets.take(&buckets.agents, key(agent, rate), rate, id, now) {
            RateDecision::Passed => Ok(()),
            RateDecision::Over(wait_ms) => Err(wait_ms),
            RateDecision::Asks(_) => panic!("there is no ledger"),
        }
    }

    #[test]
    fn of_a_thousand_at_once_as_many_pass_as_are_left() {
        let (buckets, rate) = (RateBuckets::new(None), (10, 3600));
        let passed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..125 {
                        passed.fetch_add(
                            u64::from(take(&buckets, "a", rate).is_ok()),
                            Ordering::Relaxed,
                        );
                    }
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 10);
        assert_eq!(
            take(&buckets, "b", rate),
            Ok(()),
            "one agent's haste is not another's"
        );
        let wait = take(&buckets, "a", rate).expect_err("empty");
        assert!(
            (300_000..=360_000).contains(&wait),
            "one call every six minutes: {wait} ms"
        );
    }

    /// A notification costs nothing, however many are sent: its returned tokens are used first, and do not accumulate.
    #[test]
    fn what_is_given_back_is_taken_first() {
        let buckets = RateBuckets::new(None);
        let rate = (2, 3600);
        let make = || buckets.new_bucket(rate, || [0; 16], 0);
        let bucket = buckets.agents.bucket(key("a", rate), 0, make);
        for _ in 0..100 {
            assert_eq!(take(&buckets, "a", rate), Ok(()));
            bucket.given_back.fetch_add(1, Ordering::Relaxed);
        }
        let passed = (0..10).filter(|_| take(&buckets, "a", rate).is_ok());
        assert_eq!(passed.count(), 2);
    }

    /// Two keys of one agent may have different rates: an agent that alternates between them has both, and no more.
    #[test]
    fn another_rate_is_no_fresh_bucket() {
        let buckets = RateBuckets::new(None);
        let passed = (0..100)
            .flat_map(|_| [(2, 3600), (3, 3600)])
            .filter(|rate| take(&buckets, "a", *rate).is_ok());
        assert_eq!(passed.count(), 5);
    }

    #[test]
    fn buckets_that_are_full_again_are_dropped_as_others_come() {
        let (buckets, rate) = (RateBuckets::new(None), (1, 3600));
        let later = |seconds| Instant::now() + Duration::from_secs(seconds);
        for agent in 0..1000 {
            let _ = take(&buckets, &agent.to_string(), rate);
        }
        let _ = take_at(&buckets, "7", rate, later(3000));
        for agent in 1000..2000 {
            let _ = take_at(&buckets, &agent.to_string(), rate, later(4000));
        }
        assert_eq!(
            buckets.agents.buckets.len(),
            1001,
            "the first thousand are full again, but for the one used since"
        );
        assert_eq!(
            buckets.agents.keys.lock().len(),
            1001,
            "each is looked at again"
        );
        assert!(
            take(&buckets, "7", rate).is_err(),
            "an empty bucket is not forgotten"
        );
    }

    /// Within one window none of the buckets is full again: going through the table would find nothing to drop.
    #[test]
    fn a_new_agent_costs_the_same_among_a_few_as_among_many() {
        let (buckets, rate) = (RateBuckets::new(None), (1, 86_400));
        for agent in 0..200_000 {
            let _ = take(&buckets, &agent.to_string(), rate);
        }
        let added = |round: u32| {
            let began = Instant::now();
            for agent in 0..1000 {
                let agent = 200_000 + round * 1000 + agent;
                let _ = take(&buckets, &agent.to_string(), rate);
            }
            began.elapsed() / 1000
        };
        // The fastest of several rounds: the test machine may be busy with other work.
        let each = (0..20).map(added).min().expect("a round");
        assert!(each < Duration::from_micros(200), "{each:?} an agent");
    }
}
