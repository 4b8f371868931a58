//! Asks the ledger for all buckets of a node, with one request at a time.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    engine::LedgerEngine,
    level::TokenRate,
    node::{NodeBucket, NodeMode, TakeNow},
    request::{ANSWER_MAX, BucketId, LedgerError, LedgerGrant, TokenRequest},
};

/// The time from one request to the next.
const BATCH_INTERVAL: Duration = Duration::from_millis(10);
/// Buckets of one request. The others go with the next.
const BATCH_MAX: usize = 1000;
/// The interval of checks whether an unreachable ledger is reachable again.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two looks for tokens that are not used.
const RETURN_INTERVAL: Duration = Duration::from_millis(50);
const DROP_INTERVAL: Duration = Duration::from_secs(60);

/// The immediate result of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TakenNow {
    Passed,
    /// Refused; a token comes after this time.
    Refused(Duration),
    /// [`SharedLedger::ask`] decides.
    Asks,
}

/// The buckets of one node, over a ledger that all nodes have.
pub struct SharedLedger {
    engine: LedgerEngine,
    mode: RwLock<NodeMode>,
    queue: Mutex<VecDeque<Arc<SharedBucket>>>,
    /// The buckets with tokens of the ledger that are not used.
    holding: Mutex<Vec<Arc<SharedBucket>>>,
    queued: Notify,
    started: Instant,
    counts: LedgerCounts,
}

/// A bucket of this node, whose tokens come from its own share and from the ledger.
pub struct SharedBucket {
    id: BucketId,
    inner: Mutex<WaitedBucket>,
}

struct WaitedBucket {
    node: NodeBucket,
    waiting: VecDeque<oneshot::Sender<Option<Duration>>>,
    is_queued: bool,
    is_holding: bool,
}

#[derive(Default)]
struct LedgerCounts {
    answered: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    outages: AtomicU64,
}

/// Counts of requests since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LedgerFigures {
    /// Requests to the ledger that were answered, and that were not.
    pub answered: u64,
    pub failed: u64,
    /// The total time of these requests.
    pub seconds: f64,
    /// The results of the waiting requests.
    pub granted: u64,
    pub refused: u64,
    /// The number of times the ledger became unreachable.
    pub outages: u64,
    pub is_away: bool,
    pub nodes: u32,
}

impl SharedLedger {
    /// Creates the ledger of a single node. See [`SharedLedger::set_nodes`].
    pub fn new(engine: LedgerEngine) -> Arc<Self> {
        Arc::new(Self {
            engine,
            mode: RwLock::new(NodeMode::new(1)),
            queue: Mutex::default(),
            holding: Mutex::default(),
            queued: Notify::new(),
            started: Instant::now(),
            counts: LedgerCounts::default(),
        })
    }

    /// Returns the word for the ledger in a configuration.
    pub fn word(&self) -> &'static str {
        self.engine.word()
    }

    /// Returns a bucket as it is before it is used.
    pub fn bucket(&self, id: BucketId, rate: TokenRate) -> Arc<SharedBucket> {
        let node = NodeBucket::new(rate, *self.mode.read(), self.now());
        Arc::new(SharedBucket {
            id,
            inner: Mutex::new(WaitedBucket {
                node,
                waiting: VecDeque::new(),
                is_queued: false,
                is_holding: false,
            }),
        })
    }

    /// Takes a token, if that is known without the ledger.
    pub fn take(&self, bucket: &SharedBucket) -> TakenNow {
        let (mode, now) = (*self.mode.read(), self.now());
        match bucket.inner.lock().node.take(mode, now) {
            TakeNow::Passed => TakenNow::Passed,
            TakeNow::Refused(seconds) => TakenNow::Refused(duration(seconds)),
            TakeNow::Asks => TakenNow::Asks,
        }
    }

    /// Takes a token of the ledger. The error is the time until there is one.
    pub async fn ask(&self, bucket: &Arc<SharedBucket>) -> Result<(), Duration> {
        let answer = {
            let mut inner = bucket.inner.lock();
            let burst = inner.node.rate().burst;
            // More than all that the bucket holds cannot pass.
            if inner.waiting.len() as f64 >= burst {
                self.counts.refused.fetch_add(1, Relaxed);
                return Err(duration(inner.node.rate().wait(0.0)));
            }
            let (answers, answer) = oneshot::channel();
            inner.waiting.push_back(answers);
            if !std::mem::replace(&mut inner.is_queued, true) {
                self.queue.lock().push_back(bucket.clone());
                self.queued.notify_one();
            }
            answer
        };
        // A request whose answer is lost was asked for when the process ends.
        match answer.await.unwrap_or(Some(BATCH_INTERVAL)) {
            None => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Gives a token back that was not needed.
    pub fn give_back(&self, bucket: &Arc<SharedBucket>) {
        let mut inner = bucket.inner.lock();
        inner.node.give_back(self.now());
        self.hold(bucket, &mut inner);
    }

    /// Sets how many nodes share the rates.
    pub fn set_nodes(&self, nodes: u32) {
        let mut mode = self.mode.write();
        if mode.nodes != nodes.max(1) {
            mode.nodes = nodes.max(1);
            mode.number += 1;
            mode.since = self.now();
        }
    }

    /// Returns the counts of requests since the start, and whether the ledger is away.
    pub fn figures(&self) -> LedgerFigures {
        let count = |count: &AtomicU64| count.load(Relaxed);
        let mode = *self.mode.read();
        LedgerFigures {
            answered: count(&self.counts.answered),
            failed: count(&self.counts.failed),
            seconds: count(&self.counts.micros) as f64 / 1e6,
            granted: count(&self.counts.granted),
            refused: count(&self.counts.refused),
            outages: count(&self.counts.outages),
            is_away: mode.is_alone,
            nodes: mode.nodes,
        }
    }

    /// Asks the ledger for the waiting requests, until the process ends.
    pub async fn run(&self) {
        tokio::join!(self.run_batches(), self.drop_full());
    }

    async fn run_batches(&self) {
        // The first request finds a connection.
        self.send(Vec::new()).await;
        loop {
            let begun = Instant::now();
            let is_away = self.mode.read().is_alone;
            let requests = self.collect();
            if !requests.is_empty() || is_away {
                self.send(requests).await;
            }
            let interval = match self.mode.read().is_alone {
                true => PROBE_INTERVAL,
                false => BATCH_INTERVAL,
            };
            sleep_until(begun + interval).await;
            if self.mode.read().is_alone || !self.queue.lock().is_empty() {
                continue;
            }
            let holds = !self.holding.lock().is_empty();
            tokio::select! {
                () = self.queued.notified() => {}
                () = sleep(RETURN_INTERVAL), if holds => {}
            }
        }
    }

    async fn drop_full(&self) {
        loop {
            sleep(DROP_INTERVAL).await;
            if !self.mode.read().is_alone
                && let Err(error) = self.engine.drop_full().await
            {
                tracing::warn!(%error, "buckets of the ledger that are full were not dropped");
            }
        }
    }

    /// Returns the requests to the ledger: for those that wait, and returns for those that did not come.
    fn collect(&self) -> Vec<(Arc<SharedBucket>, TokenRequest, u32)> {
        let (mode, now) = (*self.mode.read(), self.now());
        let mut requests = Vec::new();
        let mut ids = HashSet::new();
        let mut later = VecDeque::new();
        loop {
            let next = self.queue.lock().pop_front();
            let Some(bucket) = next else { break };
            if requests.len() == BATCH_MAX || !ids.insert(bucket.id) {
                later.push_back(bucket);
                continue;
            }
            let mut inner = bucket.inner.lock();
            inner.is_queued = false;
            inner.waiting.retain(|waiting| !waiting.is_closed());
            let waiting = inner.waiting.len() as u32;
            if waiting == 0 {
                continue;
            }
            let wanted = inner.node.wanted(mode, waiting, now);
            let request = request(&bucket, &inner.node, mode, wanted, 0);
            drop(inner);
            requests.push((bucket, request, waiting));
        }
        self.queue.lock().extend(later);
        // A bucket is locked before the list: see `hold`.
        let mut held = std::mem::take(&mut *self.holding.lock());
        held.retain(|bucket| {
            let mut inner = bucket.inner.lock();
            if requests.len() < BATCH_MAX && ids.insert(bucket.id) {
                let unused = inner.node.take_unused(now);
                if unused > 0 {
                    let request = request(bucket, &inner.node, mode, 0, unused);
                    requests.push((bucket.clone(), request, 0));
                }
            }
            inner.is_holding = inner.node.has_leased();
            inner.is_holding
        });
        self.holding.lock().extend(held);
        requests
    }

    async fn send(&self, requests: Vec<(Arc<SharedBucket>, TokenRequest, u32)>) {
        let mut asked: Vec<TokenRequest> = requests.iter().map(|(_, asked, _)| *asked).collect();
        // With the ledger away, this only looks whether it is back; what would be given back is lost.
        if self.mode.read().is_alone {
            requests
                .iter()
                .for_each(|(bucket, ..)| self.decide_alone(bucket));
            asked.clear();
        }
        let begun = Instant::now();
        let answered = timeout(ANSWER_MAX, self.apply(&asked)).await;
        let micros = begun.elapsed().as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.counts.micros.fetch_add(micros, Relaxed);
        let late = || LedgerError(format!("it did not answer within {ANSWER_MAX:?}"));
        match answered.unwrap_or_else(|_| Err(late())) {
            Ok(grants) => {
                self.counts.answered.fetch_add(1, Relaxed);
                self.set_alone(false, None);
                let (mode, now) = (*self.mode.read(), self.now());
                for ((bucket, asked, waiting), grant) in requests.iter().zip(grants) {
                    if asked.wanted > 0 {
                        self.distribute(bucket, *waiting, grant, mode, now);
                    }
                }
            }
            Err(error) => {
                self.counts.failed.fetch_add(1, Relaxed);
                self.set_alone(true, Some(&error));
                requests
                    .iter()
                    .for_each(|(bucket, ..)| self.decide_alone(bucket));
            }
        }
    }

    /// Asks again if a connection was lost since the last request.
    async fn apply(&self, asked: &[TokenRequest]) -> Result<Vec<LedgerGrant>, LedgerError> {
        match self.engine.apply(asked).await {
            Err(_) if !self.mode.read().is_alone => self.engine.apply(asked).await,
            answered => answered,
        }
    }

    fn set_alone(&self, is_alone: bool, error: Option<&LedgerError>) {
        let mut mode = self.mode.write();
        if mode.is_alone == is_alone {
            return;
        }
        (mode.is_alone, mode.since) = (is_alone, self.now());
        mode.number += 1;
        let nodes = mode.nodes;
        drop(mode);
        match error {
            Some(error) => {
                self.counts.outages.fetch_add(1, Relaxed);
                let ledger = self.word();
                tracing::warn!(ledger, nodes, %error, "the ledger of rates cannot be reached: until it can, this node allows its part of each rate");
            }
            None => tracing::info!("the ledger of rates is back"),
        }
    }

    fn distribute(
        &self,
        bucket: &Arc<SharedBucket>,
        waiting: u32,
        grant: LedgerGrant,
        mode: NodeMode,
        now: f64,
    ) {
        let mut inner = bucket.inner.lock();
        let inner = &mut *inner;
        inner.node.grant(mode, waiting, grant, now);
        for _ in 0..waiting {
            let Some(answers) = inner.waiting.pop_front() else {
                break;
            };
            if inner.node.take_leased(now) {
                self.counts.granted.fetch_add(1, Relaxed);
                if answers.send(None).is_err() {
                    inner.node.give_back(now);
                }
                continue;
            }
            self.refuse(
                answers,
                mode.ledger_rate(inner.node.rate()).wait(grant.level),
            );
        }
        self.hold(bucket, inner);
    }

    /// Decides by this node's part of the rate.
    fn decide_alone(&self, bucket: &Arc<SharedBucket>) {
        let (mode, now) = (*self.mode.read(), self.now());
        let mut inner = bucket.inner.lock();
        let inner = &mut *inner;
        while let Some(answers) = inner.waiting.pop_front() {
            match inner.node.take(mode, now) {
                TakeNow::Passed => {
                    if answers.send(None).is_err() {
                        inner.node.give_back(now);
                    }
                }
                TakeNow::Refused(wait) => self.refuse(answers, wait),
                TakeNow::Asks => self.refuse(answers, BATCH_INTERVAL.as_secs_f64()),
            }
        }
        self.hold(bucket, inner);
    }

    fn refuse(&self, answers: oneshot::Sender<Option<Duration>>, wait: f64) {
        self.counts.refused.fetch_add(1, Relaxed);
        let _ = answers.send(Some(duration(wait))); // the client may have gone
    }

    fn hold(&self, bucket: &Arc<SharedBucket>, inner: &mut WaitedBucket) {
        if inner.node.has_leased() && !std::mem::replace(&mut inner.is_holding, true) {
            self.holding.lock().push(bucket.clone());
            self.queued.notify_one();
        }
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

fn request(
    bucket: &SharedBucket,
    node: &NodeBucket,
    mode: NodeMode,
    wanted: u32,
    given_back: u32,
) -> TokenRequest {
    TokenRequest {
        id: bucket.id,
        rate: mode.ledger_rate(node.rate()),
        wanted,
        given_back,
    }
}

/// Returns a time to wait, of a day at most.
fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
}
