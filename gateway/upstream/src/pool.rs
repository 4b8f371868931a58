//! The sessions with one server: opened when a call needs one, shared by callers that may share one, closed when idle.
//!
//! A start continues even if the call that needed it is abandoned. A server that does not start is started again, later each
//! time. A session that ends before its first answer counts as a failed start, for its owner only. A process that keeps
//! ending soon is started at most twice a second.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, broadcast, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{AccountOwner, UpstreamAuthorization},
    error::{UpstreamFailure, UpstreamFailureKind},
    handshake::DeclaredCapabilities,
    session::UpstreamSession,
    settings::{UpstreamSettings, UpstreamTarget},
};

/// The wait after a first failed start; each further one makes it four times as long, up to [`RESTART_MAX`], since a start
/// takes as much of the machine as hundreds of calls.
const RESTART_MIN: Duration = Duration::from_millis(500);
const RESTART_MAX: Duration = Duration::from_secs(60);
/// A session that ended sooner, and had answered nothing, counts as a failed start to its owner.
const LIVED: Duration = Duration::from_secs(10);
/// The number of consecutive processes, of any owner, that may end sooner even if they answered. After that, two starts are
/// at least [`RESTART_MIN`] apart.
const SHORT_MAX: u32 = 5;
/// The number of owners with a recorded failure. The starts of other owners are bounded only by [`SHORT_MAX`].
const OWNERS_MAX: usize = 256;
/// The delay after which the list changes of a session's start are passed on, as one: many servers report a change while
/// they start.
const SETTLING: Duration = Duration::from_secs(2);

/// The number of resource changes that may wait for a slow reader.
const UPDATED_MAX: usize = 256;

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionOwner {
    Shared,
    /// The gateway, which reads the lists.
    Lookout,
    Tenant(Arc<str>),
    Agent(Arc<str>, Arc<str>),
    /// A session of an agent's client.
    Session(Arc<str>, Arc<str>, u128),
    /// The account of a caller. Only the token of that account is sent in the session.
    Account {
        owner: AccountOwner,
        session: Option<u128>,
        account: i64,
    },
}

pub(crate) struct UpstreamPool {
    target: UpstreamTarget,
    settings: UpstreamSettings,
    authorization: UpstreamAuthorization,
    sessions_max: usize,
    idle: Duration,
    slots: Mutex<HashMap<SessionOwner, Arc<SessionSlot>>>,
    trouble: Mutex<StartFailures>,
    restarts: AtomicU64,
    /// Whether the server kept nothing between requests when a session was opened last, so that all callers share one.
    stateless: AtomicBool,
    /// What the server declared last; `None` before it was reached.
    declared: Mutex<Option<DeclaredCapabilities>>,
    /// The owners whose sessions ended before any answer, which does not delay other owners.
    owners: Mutex<HashMap<SessionOwner, StartFailures>>,
    /// Wakes when the server announces that a list changed.
    changed: Arc<Notify>,
    /// Set when it was the list of resources, until that is asked for.
    resource_news: Arc<AtomicBool>,
    /// The server has reported a change of a single resource, whatever it declares.
    has_updated: Arc<AtomicBool>,
    /// The URIs of changed resources, from every session.
    updated: broadcast::Sender<String>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

struct SessionSlot {
    opening: watch::Receiver<SessionOpening>,
    began: Instant,
    used: Mutex<Instant>,
    /// A request was answered in it.
    answered: AtomicBool,
}

#[derive(Clone)]
enum SessionOpening {
    Starting,
    Ready(Arc<UpstreamSession>),
    Failed(UpstreamFailure),
}

/// Consecutive failed starts, and sessions that ended soon.
#[derive(Default)]
struct StartFailures {
    in_a_row: u32,
    short_in_a_row: u32,
    /// The last start.
    started: Option<Instant>,
    until: Option<Instant>,
    last: Option<UpstreamFailure>,
}

/// A session while a request is made in it.
pub(crate) struct SessionLease {
    slot: Arc<SessionSlot>,
    pub(crate) session: Arc<UpstreamSession>,
}

/// Why there is no session now. Nothing was sent.
#[derive(Clone, Debug)]
pub(crate) enum SessionUnavailable {
    /// The server is still starting.
    Starting,
    /// The server did not start, and is tried again after a while.
    Failed {
        failure: Option<Box<UpstreamFailure>>,
        retry_after: Duration,
    },
    /// The maximum number of sessions is in use.
    Full,
    Closed,
}

impl UpstreamPool {
    pub(crate) fn new(
        target: UpstreamTarget,
        settings: UpstreamSettings,
        authorization: UpstreamAuthorization,
        sessions_max: usize,
        idle: Duration,
    ) -> Self {
        Self {
            target,
            settings,
            authorization,
            sessions_max,
            idle,
            slots: Mutex::default(),
            trouble: Mutex::default(),
            restarts: AtomicU64::new(0),
            stateless: AtomicBool::new(false),
            declared: Mutex::default(),
            owners: Mutex::default(),
            changed: Arc::default(),
            resource_news: Arc::default(),
            has_updated: Arc::default(),
            updated: broadcast::Sender::new(UPDATED_MAX),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns a session for `key`, waiting at most this long.
    pub(crate) async fn session(
        self: &Arc<Self>,
        key: SessionOwner,
        patience: Duration,
    ) -> Result<SessionLease, SessionUnavailable> {
        let is_own = self.authorization.is_personal() || !self.stateless.load(Ordering::Relaxed);
        if key == SessionOwner::Shared || is_own {
            return self.lease(key, patience).await;
        }
        let began = Instant::now();
        let shared = self.lease(SessionOwner::Shared, patience).await?;
        if shared.session.is_modern() {
            return Ok(shared);
        }
        // The server has gone back to an era in which a session keeps something: each owner has one.
        self.close_shared(&shared);
        Box::pin(self.lease(key, patience.saturating_sub(began.elapsed()))).await
    }

    async fn lease(
        self: &Arc<Self>,
        key: SessionOwner,
        patience: Duration,
    ) -> Result<SessionLease, SessionUnavailable> {
        let slot = self.slot(key)?;
        let mut opening = slot.opening.clone();
        let opened = timeout(
            patience,
            opening.wait_for(|opening| !matches!(opening, SessionOpening::Starting)),
        )
        .await;
        let opened = opened
            .map_err(|_| SessionUnavailable::Starting)?
            .map_err(|_| SessionUnavailable::Closed)?
            .clone();
        match opened {
            SessionOpening::Ready(session) => Ok(SessionLease { slot, session }),
            SessionOpening::Failed(failure) => Err(SessionUnavailable::Failed {
                failure: Some(Box::new(failure)),
                retry_after: self.trouble.lock().wait(),
            }),
            SessionOpening::Starting => Err(SessionUnavailable::Starting),
        }
    }

    /// Returns the existing slot, or one that is being opened from now on.
    fn slot(self: &Arc<Self>, key: SessionOwner) -> Result<Arc<SessionSlot>, SessionUnavailable> {
        let mut slots = self.slots.lock();
        if self.closing.is_cancelled() {
            return Err(SessionUnavailable::Closed);
        }
        let is_over = match slots.get(&key) {
            Some(slot) if slot.is_usable() => {
                *slot.used.lock() = Instant::now();
                return Ok(slot.clone());
            }
            over => over.is_some(),
        };
        if is_over && let Some(over) = slots.remove(&key) {
            self.note_end(&key, &over);
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
        self.may_start(&key)?;
        // The lookout's session does not count among those of callers.
        let of_callers = slots
            .keys()
            .filter(|other| **other != SessionOwner::Lookout)
            .count();
        if key != SessionOwner::Lookout && of_callers >= self.sessions_max {
            let idle = slots
                .iter()
                .filter(|(key, slot)| **key != SessionOwner::Lookout && slot.is_idle());
            let longest = idle
                .min_by_key(|(_, slot)| *slot.used.lock())
                .map(|(key, _)| key.clone());
            let evicted = longest
                .and_then(|key| slots.remove(&key))
                .ok_or(SessionUnavailable::Full)?;
            self.close_later(&evicted);
        }
        let slot = self.open(&key);
        slots.insert(key, slot.clone());
        Ok(slot)
    }

    fn open(self: &Arc<Self>, key: &SessionOwner) -> Arc<SessionSlot> {
        let (sender, opening) = watch::channel(SessionOpening::Starting);
        let now = Instant::now();
        self.trouble.lock().started = Some(now);
        let slot = Arc::new(SessionSlot {
            opening,
            began: now,
            used: Mutex::new(now),
            answered: AtomicBool::new(false),
        });
        let pool = self.clone();
        let settings = UpstreamSettings {
            tokens: self.authorization.source(key.account()),
            ..self.settings.clone()
        };
        self.tasks.spawn(async move {
            let opened = tokio::select! {
                opened = UpstreamSession::open(&pool.target, settings) => opened,
                () = pool.closing.cancelled() => return,
            };
            let opening = match opened {
                Ok(session) => {
                    let is_stateless =
                        session.is_modern() && matches!(pool.target, UpstreamTarget::Url(_));
                    pool.stateless.store(is_stateless, Ordering::Relaxed);
                    pool.note_declared(&session);
                    pool.follow(&session);
                    SessionOpening::Ready(Arc::new(session))
                }
                Err(failure) => {
                    // A refusal of one caller's token does not affect the others.
                    let is_personal = pool.authorization.is_personal()
                        && matches!(
                            failure.kind,
                            UpstreamFailureKind::NoAccount | UpstreamFailureKind::Access
                        );
                    if !is_personal {
                        pool.trouble.lock().failed(Some(failure.clone()));
                    }
                    SessionOpening::Failed(failure)
                }
            };
            let _ = sender.send(opening); // the receiver may be gone
        });
        slot
    }

    /// Passes on the server's news of its lists.
    fn follow(&self, session: &UpstreamSession) {
        let (mut news, updated, ended) = (
            session.updated(),
            self.updated.clone(),
            self.closing.clone(),
        );
        let has_updated = self.has_updated.clone();
        tokio::spawn(async move {
            loop {
                let news = tokio::select! {
                    news = news.recv() => news,
                    () = ended.cancelled() => return,
                };
                match news {
                    Ok(uri) => {
                        has_updated.store(true, Ordering::Relaxed);
                        let _ = updated.send(uri); // the receiver may be gone
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        });
        let (mut changes, changed) = (session.changes(), self.changed.clone());
        let closing = self.closing.clone();
        let (heard, resource_news) = (session.resource_news(), self.resource_news.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SETTLING).await;
            loop {
                tokio::select! {
                    more = changes.changed() => if more.is_err() { return },
                    () = closing.cancelled() => return,
                }
                if heard.swap(false, Ordering::Relaxed) {
                    resource_news.store(true, Ordering::Relaxed);
                }
                changed.notify_one();
            }
        });
    }

    /// Notes the end of a session that ended on its own.
    fn note_end(&self, key: &SessionOwner, over: &SessionSlot) {
        let opening = over.opening.borrow();
        let SessionOpening::Ready(session) = &*opening else {
            return;
        };
        if session.over().is_none() {
            return; // the server forgot it, and is there
        }
        let is_short = over.began.elapsed() < LIVED;
        self.trouble.lock().ended(
            session.over(),
            is_short && matches!(self.target, UpstreamTarget::Command(_)),
        );
        let mut owners = self.owners.lock();
        if !is_short || over.answered.load(Ordering::Relaxed) {
            owners.remove(key);
            return;
        }
        if owners.len() >= OWNERS_MAX {
            owners.retain(|other, trouble| other == key || !trouble.wait().is_zero());
        }
        if owners.len() < OWNERS_MAX || owners.contains_key(key) {
            owners
                .entry(key.clone())
                .or_default()
                .failed(session.over());
        }
    }

    /// Refuses a start while the server, or this owner's use of it, must pause.
    fn may_start(&self, key: &SessionOwner) -> Result<(), SessionUnavailable> {
        let (of_all, owners) = (self.trouble.lock(), self.owners.lock());
        for trouble in [Some(&*of_all), owners.get(key)].into_iter().flatten() {
            let retry_after = trouble.wait();
            if !retry_after.is_zero() {
                return Err(SessionUnavailable::Failed {
                    failure: trouble.last.clone().map(Box::new),
                    retry_after,
                });
            }
        }
        Ok(())
    }

    /// Closes sessions that were not used for long.
    pub(crate) fn sweep(&self) {
        let mut slots = self.slots.lock();
        let idle: Vec<SessionOwner> = slots
            .iter()
            // The sessions that all callers share, and the lookout's, are kept.
            .filter(|(key, _)| !matches!(key, SessionOwner::Lookout | SessionOwner::Shared))
            .filter(|(_, slot)| slot.is_idle() && slot.used.lock().elapsed() >= self.idle)
            .map(|(key, _)| key.clone())
            .collect();
        for slot in idle.iter().filter_map(|key| slots.remove(key)) {
            self.close_later(&slot);
        }
    }

    /// Closes the session that all callers would share, if it is still open.
    fn close_shared(&self, lease: &SessionLease) {
        let mut slots = self.slots.lock();
        if slots
            .get(&SessionOwner::Shared)
            .is_some_and(|slot| Arc::ptr_eq(slot, &lease.slot))
        {
            slots.remove(&SessionOwner::Shared);
            self.close_later(&lease.slot);
        }
    }

    fn close_later(&self, slot: &SessionSlot) {
        if let SessionOpening::Ready(session) = &*slot.opening.borrow() {
            let session = session.clone();
            self.tasks.spawn(async move { session.close().await });
        }
    }

    /// Ends all sessions once no request runs in them, or after a minute.
    pub(crate) async fn drain(&self) {
        const CALLS_END: Duration = Duration::from_secs(60);
        let calls_end = async {
            while self.slots.lock().values().any(|slot| slot.is_busy()) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = timeout(CALLS_END, calls_end).await; // those that last longer are cut off
        self.close().await;
    }

    /// Ends all sessions, and waits until they are gone.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let slots: Vec<Arc<SessionSlot>> =
            self.slots.lock().drain().map(|(_, slot)| slot).collect();
        slots.iter().for_each(|slot| self.close_later(slot));
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns `true` if this owner has a session that is open.
    pub(crate) fn has_open(&self, key: &SessionOwner) -> bool {
        self.slots
            .lock()
            .get(key)
            .is_some_and(|slot| slot.is_open())
    }

    pub(crate) fn open_sessions(&self) -> usize {
        self.slots
            .lock()
            .values()
            .filter(|slot| slot.is_open())
            .count()
    }

    /// Notes what the server declares in a session, which may have been opened anew.
    pub(crate) fn note_declared(&self, session: &UpstreamSession) {
        *self.declared.lock() = Some(session.declared());
    }

    /// Returns what the server declared last. Some report changes of resources without declaring it (Python SDK 1.x).
    pub(crate) fn declared(&self) -> Option<DeclaredCapabilities> {
        let declared = *self.declared.lock();
        declared.map(|declared| DeclaredCapabilities {
            subscriptions: declared.subscriptions || self.has_updated.load(Ordering::Relaxed),
            ..declared
        })
    }

    /// Returns `true` if the server said that its list of resources changed, since this was asked last.
    pub(crate) fn take_resource_news(&self) -> bool {
        self.resource_news.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    pub(crate) fn updated(&self) -> broadcast::Receiver<String> {
        self.updated.subscribe()
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    pub(crate) fn stderr(&self) -> String {
        let slots: Vec<Arc<SessionSlot>> = self.slots.lock().values().cloned().collect();
        let mut ready = slots
            .iter()
            .filter_map(|slot| match &*slot.opening.borrow() {
                SessionOpening::Ready(session) => Some(session.stderr()),
                SessionOpening::Starting | SessionOpening::Failed(_) => None,
            });
        ready.rfind(|text| !text.is_empty()).unwrap_or_default()
    }
}

impl SessionOwner {
    fn account(&self) -> Option<(&AccountOwner, i64)> {
        match self {
            Self::Account { owner, account, .. } => Some((owner, *account)),
            _ => None,
        }
    }
}

impl SessionLease {
    /// Notes that the server has answered: whatever happens to the session, it had started well.
    pub(crate) fn answered(&self) {
        self.slot.answered.store(true, Ordering::Relaxed);
        *self.slot.used.lock() = Instant::now();
    }
}

impl SessionSlot {
    fn is_usable(&self) -> bool {
        match &*self.opening.borrow() {
            SessionOpening::Starting => self.opening.has_changed().is_ok(),
            SessionOpening::Ready(session) => session.is_usable(),
            SessionOpening::Failed(_) => false,
        }
    }

    fn is_open(&self) -> bool {
        matches!(&*self.opening.borrow(), SessionOpening::Ready(session) if session.is_usable())
    }

    /// Returns `true` if a request runs in the session.
    fn is_busy(&self) -> bool {
        matches!(&*self.opening.borrow(), SessionOpening::Ready(session) if Arc::strong_count(session) > 1)
    }

    /// Returns `true` if no request runs in the session.
    fn is_idle(&self) -> bool {
        match &*self.opening.borrow() {
            SessionOpening::Ready(session) => Arc::strong_count(session) == 1,
            SessionOpening::Starting | SessionOpening::Failed(_) => false,
        }
    }
}

impl StartFailures {
    /// Notes the end of a session that had started well.
    fn ended(&mut self, failure: Option<UpstreamFailure>, is_short: bool) {
        self.in_a_row = 0;
        self.short_in_a_row = if is_short { self.short_in_a_row + 1 } else { 0 };
        let is_limited = self.short_in_a_row > SHORT_MAX;
        self.until = self
            .started
            .filter(|_| is_limited)
            .map(|started| started + RESTART_MIN);
        self.last = failure.filter(|_| is_limited);
    }

    /// Returns the time until the next start may be tried.
    fn wait(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    fn failed(&mut self, failure: Option<UpstreamFailure>) {
        let wait = RESTART_MIN
            .saturating_mul(1 << (2 * self.in_a_row.min(8)))
            .min(RESTART_MAX);
        self.in_a_row += 1;
        self.until = Some(Instant::now() + jitter(wait));
        self.last = failure;
    }
}

/// Returns between three quarters of the wait and all of it, so that servers that ended together do not start together.
fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) % 256;
    wait.mul_f64(0.75 + random as f64 / 1024.0)
}

impl SessionUnavailable {
    pub(crate) fn into_failure(self, name: &str) -> UpstreamFailure {
        let expected = format!("the server `{name}` to be there");
        match self {
            Self::Failed {
                failure: Some(failure),
                ..
            } => failure.before_sending(),
            Self::Failed { failure: None, .. } => {
                UpstreamFailure::new(UpstreamFailureKind::Closed, expected, "it ended")
                    .before_sending()
            }
            Self::Starting => UpstreamFailure::new(
                UpstreamFailureKind::Timeout,
                expected,
                "it is still starting",
            )
            .before_sending(),
            Self::Full => UpstreamFailure::new(
                UpstreamFailureKind::Start,
                expected,
                "all its sessions are in use",
            )
            .before_sending(),
            Self::Closed => UpstreamFailure::new(
                UpstreamFailureKind::Closed,
                expected,
                "it is no longer used",
            )
            .before_sending(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sessions_in_a_row_keep_two_starts_apart() {
        let started = Instant::now();
        let mut trouble = StartFailures {
            started: Some(started),
            ..StartFailures::default()
        };
        for _ in 0..SHORT_MAX {
            trouble.ended(None, true);
            assert_eq!(trouble.until, None);
        }
        trouble.ended(None, true);
        assert_eq!(trouble.until, Some(started + RESTART_MIN));
        trouble.ended(None, false);
        assert_eq!(
            (trouble.until, trouble.short_in_a_row),
            (None, 0),
            "a long one is forgiven everything"
        );
    }
}
