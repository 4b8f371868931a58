//! The servers of a configuration, as they are called and looked at while a gateway serves.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Mutex, RwLock};
use serde_json::value::RawValue;
use tokio::{sync::broadcast, time::timeout};
use weir_admission::{
    AttemptOutcome, BackedOff, ConcurrencyLimiter, FailureBackoff, OverloadError,
};
use weir_oauth::SecretText;

use crate::{
    auth::{AccountKeeper, AccountOwner, OauthServer, UpstreamAuthorization},
    config::{UpstreamConfig, UpstreamIsolation},
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, UpstreamRefusal, one_line},
    handshake::DeclaredCapabilities,
    list::UpstreamLists,
    pool::{SessionLease, SessionOwner, SessionUnavailable, UpstreamPool},
    sandbox::KeptFiles,
    session::{self, UpstreamCall},
    settings::{UpstreamSettings, UpstreamTarget},
};

/// The part of its own time that a call waits for a server that is still starting.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks for idle sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// All upstreams by name.
#[derive(Default)]
pub struct UpstreamRegistry {
    by_name: RwLock<BTreeMap<String, Arc<UpstreamServer>>>,
    /// The words that start the guard of children.
    guard: Vec<OsString>,
    /// What keeps the accounts of callers.
    keeper: OnceLock<Arc<dyn AccountKeeper>>,
}

/// An upstream that is about to be served: its secrets were found.
pub struct ResolvedUpstream {
    name: String,
    config: UpstreamConfig,
    target: UpstreamTarget,
}

/// A server of the configuration, with its sessions and the counts of its calls.
pub struct UpstreamServer {
    pub name: Arc<str>,
    config: UpstreamConfig,
    target: UpstreamTarget,
    pool: Arc<UpstreamPool>,
    turns: ConcurrencyLimiter,
    backoff: FailureBackoff,
    authorization: UpstreamAuthorization,
    calls: [AtomicU64; UpstreamOutcome::ALL.len()],
    seen: Mutex<UpstreamFindings>,
}

/// The findings of the last look.
#[derive(Clone, Debug, Default)]
pub struct UpstreamFindings {
    /// The time of the last look; `None` before the first.
    pub at: Option<SystemTime>,
    /// The reason why it could not be looked at, or its lists could not be published.
    pub failure: Option<String>,
    /// The same in a word of [`UpstreamFailureKind::word`](crate::UpstreamFailureKind::word), or `refused` for what could not be published.
    pub reason: Option<&'static str>,
    /// The server's own name and version.
    pub server: String,
    /// The contract that its tools are published as; empty if that is not known.
    pub contract: String,
    /// Tools that can be published.
    pub tools: usize,
    /// The digest of the resources that it listed.
    pub resources: Option<[u8; 32]>,
    /// Items that cannot, and why.
    pub left_out: Vec<String>,
    /// The remarks about the rest.
    pub notes: Vec<String>,
    /// The draft that waits.
    pub draft: Option<String>,
}

/// The outcome of a call, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamOutcome {
    Answered,
    /// The server refused it with an error of the protocol.
    Refused,
    /// The call was not sent: no session, no turn, or a wait after failures.
    Unavailable,
    /// The connection or the server broke, or the message was too large or not an answer.
    Failed,
    Timeout,
    Cancelled,
}

/// The caller of a request, which decides on the session that it is sent in.
#[derive(Clone, Debug)]
pub struct CallOwner {
    pub tenant: Arc<str>,
    pub agent: Arc<str>,
    /// The session of the caller's client, if it has one.
    pub session: Option<u128>,
    /// The token that the caller came with, if it is one of an issuer.
    pub token: Option<SecretText>,
}

/// Why a call has no result.
#[derive(Clone, Debug)]
pub enum CallFailure {
    Overloaded {
        retry_after_ms: u32,
    },
    /// The last calls all failed.
    BackedOff {
        retry_after_ms: u32,
    },
    /// No session exists, and nothing was sent.
    NotThere {
        why: UpstreamFailure,
        retry_after_ms: u32,
    },
    Refused(UpstreamRefusal),
    Failed(UpstreamFailure),
}

impl fmt::Display for CallFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded { .. } => out.write_str("too many calls of it are open"),
            Self::BackedOff { .. } => out.write_str("its last calls all failed"),
            Self::NotThere { why, .. } | Self::Failed(why) => out.write_str(&why.in_one_line()),
            Self::Refused(refusal) => {
                write!(
                    out,
                    "it answers with error {}: {}",
                    refusal.code,
                    one_line(&refusal.message, 200)
                )
            }
        }
    }
}

impl UpstreamRegistry {
    /// Creates an empty set. `guard` is the command line that starts the guard of child processes; if it is empty,
    /// there is no guard.
    pub fn new(guard: Vec<OsString>) -> Self {
        Self {
            by_name: RwLock::default(),
            guard,
            keeper: OnceLock::new(),
        }
    }

    /// Sets what keeps the accounts of callers, before any server is taken.
    pub fn set_keeper(&self, keeper: Arc<dyn AccountKeeper>) {
        let _ = self.keeper.set(keeper); // there is one state in a process
    }

    /// Returns the upstreams with every secret filled in, and the faults of the others. `kept` is kept from commands.
    pub fn resolve(
        &self,
        configs: &BTreeMap<String, UpstreamConfig>,
        base: &Path,
        kept: &KeptFiles,
    ) -> (Vec<ResolvedUpstream>, Vec<(String, String)>) {
        let (mut resolved, mut wrong) = (Vec::new(), Vec::new());
        for (name, config) in configs {
            match config.target(base, &self.guard, kept) {
                Ok(target) => resolved.push(ResolvedUpstream {
                    name: name.clone(),
                    config: config.clone(),
                    target,
                }),
                Err(what) => wrong.push((name.clone(), what)),
            }
        }
        (resolved, wrong)
    }

    /// Serves these from now on. Those that did not change keep their sessions; those that are gone, or others now, end
    /// theirs: calls in flight first run to their end.
    pub fn take(&self, resolved: Vec<ResolvedUpstream>) {
        let mut by_name = self.by_name.write();
        let mut before = std::mem::take(&mut *by_name);
        for new in resolved {
            let same = before
                .remove(&new.name)
                .filter(|old| old.config == new.config && old.target == new.target);
            let upstream =
                same.unwrap_or_else(|| Arc::new(UpstreamServer::new(&new, self.keeper.get())));
            by_name.insert(new.name, upstream);
        }
        for gone in before.into_values() {
            tokio::spawn(async move { gone.pool.drain().await });
        }
    }

    /// Returns the server of that name, if it is served.
    pub fn get(&self, name: &str) -> Option<Arc<UpstreamServer>> {
        self.by_name.read().get(name).cloned()
    }

    /// Returns all servers that are served, in the order of their names.
    pub fn all(&self) -> Vec<Arc<UpstreamServer>> {
        self.by_name.read().values().cloned().collect()
    }

    /// Closes idle sessions, until the task ends.
    pub async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            self.all().iter().for_each(|upstream| upstream.pool.sweep());
        }
    }

    /// Ends every session, and waits until all are gone.
    pub async fn close(&self) {
        let close = |upstream: Arc<UpstreamServer>| {
            tokio::spawn(async move { upstream.pool.close().await })
        };
        let closing: Vec<_> = self.all().into_iter().map(close).collect();
        for closed in closing {
            let _ = closed.await;
        }
    }
}

impl UpstreamServer {
    fn new(resolved: &ResolvedUpstream, keeper: Option<&Arc<dyn AccountKeeper>>) -> Self {
        let ResolvedUpstream {
            name,
            config,
            target,
        } = resolved;
        let idle = Duration::from_secs(config.idle_s);
        let name: Arc<str> = name.as_str().into();
        let settings = UpstreamSettings {
            name: name.clone(),
            ..config.settings()
        };
        let authorization = match target {
            UpstreamTarget::Url(url) => {
                UpstreamAuthorization::new(&name, &url.url, url.auth.as_ref(), keeper)
            }
            UpstreamTarget::Command(_) => UpstreamAuthorization::None,
        };
        let pool = UpstreamPool::new(
            target.clone(),
            settings,
            authorization.clone(),
            config.sessions_max,
            idle,
        );
        Self {
            name,
            pool: Arc::new(pool),
            turns: ConcurrencyLimiter::new(config.in_flight_max, config.in_flight_max.div_ceil(2)),
            backoff: FailureBackoff::default(),
            calls: Default::default(),
            seen: Mutex::default(),
            config: config.clone(),
            target: target.clone(),
            authorization,
        }
    }

    /// Returns the server at which callers have accounts, if they do.
    pub fn oauth(&self) -> Option<&Arc<OauthServer>> {
        match &self.authorization {
            UpstreamAuthorization::Accounts { server, .. } => Some(server),
            _ => None,
        }
    }

    /// Returns whose account a call uses.
    pub fn account_owner(&self, owner: &CallOwner) -> AccountOwner {
        match self.config.isolation {
            UpstreamIsolation::Shared => AccountOwner::Gateway,
            UpstreamIsolation::Tenant => AccountOwner::Tenant(owner.tenant.clone()),
            UpstreamIsolation::Agent | UpstreamIsolation::Session => AccountOwner::Agent {
                tenant: owner.tenant.clone(),
                agent: owner.agent.clone(),
            },
        }
    }

    /// Returns the configuration that it was opened with. Secrets are not resolved in it.
    pub fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Returns the contract that its tools are published as.
    pub fn contract(&self) -> &str {
        self.config.contract(&self.name)
    }

    /// Calls a tool, or asks for what else the server has, and returns the raw result. It is sent once.
    pub async fn call(
        &self,
        owner: &CallOwner,
        call: &UpstreamCall<'_>,
    ) -> Result<Box<RawValue>, CallFailure> {
        let called = self.call_uncounted(owner, call).await;
        self.calls[UpstreamOutcome::from_result(&called) as usize].fetch_add(1, Ordering::Relaxed);
        called
    }

    async fn call_uncounted(
        &self,
        owner: &CallOwner,
        call: &UpstreamCall<'_>,
    ) -> Result<Box<RawValue>, CallFailure> {
        let deadline = Instant::now() + call.timeout;
        let _turn = self.turns.take(&owner.tenant).await?;
        let key = self.key(owner).await.map_err(CallFailure::Failed)?;
        let called = call.asked.called();
        let attempt = self
            .backoff
            .attempt(&owner.tenant, &called, Instant::now())?;
        let mut result = self.call_in(key.clone(), call, deadline).await;
        // A session that had ended before anything could be sent is replaced, once.
        if let Err(CallFailure::Failed(failure)) = &result
            && (failure.kind, failure.is_handed_over) == (UpstreamFailureKind::Closed, false)
        {
            result = self.call_in(key, call, deadline).await;
        }
        let end = match &result {
            Ok(_) | Err(CallFailure::Refused(_)) => AttemptOutcome::Answered,
            // A call that was late because it waited for its turn with the server is no evidence about the tool.
            Err(CallFailure::Failed(failure))
                if failure.kind == UpstreamFailureKind::Timeout && !failure.is_handed_over =>
            {
                AttemptOutcome::Open
            }
            Err(CallFailure::Failed(failure))
                if !(matches!(failure.kind, UpstreamFailureKind::Cancelled | UpstreamFailureKind::NoAccount)
                    // A refusal to one caller is no evidence about the tool.
                    || failure.kind == UpstreamFailureKind::Access && self.authorization.is_personal()) =>
            {
                AttemptOutcome::Failed
            }
            Err(_) => AttemptOutcome::Open,
        };
        attempt.ended(end, Instant::now());
        result
    }

    /// Returns the owner of the session that a call uses. A caller that needs an account and has none gets no session.
    async fn key(&self, caller: &CallOwner) -> Result<SessionOwner, UpstreamFailure> {
        let CallOwner {
            tenant,
            agent,
            session,
            token,
        } = caller;
        if self.authorization.is_personal() {
            let owner = self.account_owner(caller);
            let account = self.authorization.account(&owner, token.as_ref()).await?;
            let session = session.filter(|_| self.config.isolation == UpstreamIsolation::Session);
            return Ok(SessionOwner::Account {
                owner,
                session,
                account,
            });
        }
        Ok(match (self.config.isolation, *session) {
            (UpstreamIsolation::Shared, _) => SessionOwner::Shared,
            (UpstreamIsolation::Tenant, _) => SessionOwner::Tenant(tenant.clone()),
            (UpstreamIsolation::Session, Some(id)) => {
                SessionOwner::Session(tenant.clone(), agent.clone(), id)
            }
            (UpstreamIsolation::Agent | UpstreamIsolation::Session, _) => {
                SessionOwner::Agent(tenant.clone(), agent.clone())
            }
        })
    }

    /// Returns the resources that the server lists to this caller now: in the caller's session, if it has one. Listing does
    /// not start another process; the session that reads the lists exists already, with the same credentials.
    pub async fn resources(
        &self,
        owner: &CallOwner,
        patience: Duration,
    ) -> Result<Vec<Box<RawValue>>, CallFailure> {
        let _turn = self.turns.take(&owner.tenant).await?;
        let called: Arc<str> = "resources/list".into();
        let own = self.key(owner).await.map_err(CallFailure::Failed)?;
        let now = Instant::now();
        let attempt = self.backoff.attempt(&owner.tenant, &called, now)?;
        let listed = timeout(patience, async {
            // The list of another account is not for this caller.
            let is_own = self.authorization.is_personal() || self.pool.has_open(&own);
            let key = if is_own { own } else { self.listening_key() };
            let lease = self
                .pool
                .session(key, patience)
                .await
                .map_err(|unready| self.not_there(unready))?;
            let listed = lease
                .session
                .resources()
                .await
                .map_err(CallFailure::Failed)?;
            lease.answered();
            Ok(listed)
        });
        let listed = listed
            .await
            .unwrap_or_else(|_| Err(CallFailure::Failed(late(patience))));
        attempt.ended(
            if listed.is_ok() {
                AttemptOutcome::Answered
            } else {
                AttemptOutcome::Failed
            },
            Instant::now(),
        );
        listed
    }

    async fn call_in(
        &self,
        key: SessionOwner,
        call: &UpstreamCall<'_>,
        deadline: Instant,
    ) -> Result<Box<RawValue>, CallFailure> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let session = self.pool.session(key, left().min(START_PATIENCE));
        let lease = tokio::select! {
            lease = session => lease.map_err(|unready| self.not_there(unready))?,
            () = call.cancel.cancelled() => {
                let failure = UpstreamFailure::new(UpstreamFailureKind::Cancelled, "the call to run to its end", "its caller cancelled it");
                return Err(CallFailure::Failed(failure.before_sending()));
            }
        };
        let call = UpstreamCall {
            listener: call.listener.clone(),
            timeout: left(),
            ..*call
        };
        let result = lease.session.call(call).await;
        match result {
            Ok(result) => {
                lease.answered();
                let most = self.config.result_max_bytes;
                match result.get().len() > most {
                    true => Err(CallFailure::Failed(too_large(most))),
                    false => Ok(result),
                }
            }
            Err(RequestError::Refused(refusal)) => {
                lease.answered();
                Err(CallFailure::Refused(refusal))
            }
            Err(RequestError::Failed(failure)) => Err(CallFailure::Failed(failure)),
        }
    }

    fn not_there(&self, unready: SessionUnavailable) -> CallFailure {
        if let SessionUnavailable::Failed {
            failure: Some(failure),
            ..
        } = &unready
            && failure.kind == UpstreamFailureKind::NoAccount
        {
            return CallFailure::Failed(UpstreamFailure::clone(failure).before_sending());
        }
        let retry_after = match &unready {
            SessionUnavailable::Failed { retry_after, .. } => *retry_after,
            SessionUnavailable::Starting | SessionUnavailable::Full => Duration::from_secs(1),
            SessionUnavailable::Closed => Duration::from_secs(5),
        };
        let retry_after_ms = u32::try_from(retry_after.as_millis())
            .unwrap_or(u32::MAX)
            .max(100);
        CallFailure::NotThere {
            why: unready.into_failure(&self.name),
            retry_after_ms,
        }
    }

    /// Returns the server's current lists, and its name and version. The session stays open to receive changes.
    pub async fn lists(&self) -> Result<(UpstreamLists, Box<RawValue>), UpstreamFailure> {
        let lease = self.listening().await?;
        let listed = lease.session.lists().await?;
        self.pool.note_declared(&lease.session);
        lease.answered();
        Ok((listed, lease.session.about()))
    }

    /// Waits until the server announces that a list changed, in any session. It never returns once the upstream is
    /// no longer used.
    pub async fn list_changed(&self) {
        self.pool.changed().notified().await;
    }

    /// Returns `true` if the server said that its list of resources changed, since this was asked last.
    pub fn take_resource_news(&self) -> bool {
        self.pool.take_resource_news()
    }

    /// Returns the URIs of resources that the server says have changed, in any session.
    pub fn updated(&self) -> broadcast::Receiver<String> {
        self.pool.updated()
    }

    /// Asks the server to announce changes of its lists and of these resources.
    pub async fn subscribe(&self, uris: &BTreeSet<String>) -> Result<(), UpstreamFailure> {
        let lease = self.listening().await?;
        let subscribed = lease.session.subscribe(uris).await;
        subscribed.map_err(|error| error.into_failure("subscriptions"))
    }

    /// Returns the session in which the lists are looked at.
    async fn listening(&self) -> Result<SessionLease, UpstreamFailure> {
        let patience = Duration::from_secs(self.config.start_s.saturating_add(1));
        self.pool
            .session(self.listening_key(), patience)
            .await
            .map_err(|unready| unready.into_failure(&self.name))
    }

    fn listening_key(&self) -> SessionOwner {
        if self.config.isolation == UpstreamIsolation::Shared && !self.authorization.is_personal() {
            SessionOwner::Shared
        } else {
            SessionOwner::Lookout
        }
    }

    /// Waits until the upstream is no longer used.
    pub async fn ended(&self) {
        self.pool.closing().cancelled().await;
    }

    /// Wakes the tasks that wait for a change of a list, as if the server had reported one.
    pub fn look(&self) {
        self.pool.changed().notify_one();
    }

    /// Returns what the server declared when a session was opened last; `None` before it was reached.
    pub fn declared(&self) -> Option<DeclaredCapabilities> {
        self.pool.declared()
    }

    /// Returns the findings of the last look.
    pub fn seen(&self) -> UpstreamFindings {
        self.seen.lock().clone()
    }

    /// Sets the findings of the last look.
    pub fn note(&self, seen: UpstreamFindings) {
        *self.seen.lock() = seen;
    }

    /// Returns the number of sessions that are open with it.
    pub fn sessions(&self) -> usize {
        self.pool.open_sessions()
    }

    /// Returns how many sessions were opened to replace one that had ended on its own.
    pub fn restarts(&self) -> u64 {
        self.pool.restarts()
    }

    /// Returns how many tools are not called for a while because their last calls all failed, counted per tenant.
    pub fn backing_off(&self) -> usize {
        self.backoff.waiting(Instant::now())
    }

    /// Returns the last output of a child on stderr, without the secrets that it was given.
    pub fn stderr(&self) -> String {
        self.pool.stderr()
    }

    /// Returns how many calls ended like this.
    pub fn calls(&self, called: UpstreamOutcome) -> u64 {
        self.calls[called as usize].load(Ordering::Relaxed)
    }
}

fn too_large(most: usize) -> UpstreamFailure {
    let cause = format!("it has more than {most} bytes");
    UpstreamFailure::new(
        UpstreamFailureKind::TooLarge,
        "the result to be within its bound",
        cause,
    )
    .step("ask for less, or raise `result_max_bytes`")
}

fn late(patience: Duration) -> UpstreamFailure {
    let cause = format!("it did not within {} s", patience.as_secs_f64());
    UpstreamFailure::new(
        UpstreamFailureKind::Timeout,
        "the server to list its resources",
        cause,
    )
}

impl session::UpstreamOperation {
    /// Returns the name by which failures are counted.
    fn called(&self) -> Arc<str> {
        match self {
            Self::Tool { name, .. } => name.clone(),
            Self::Prompt { .. } | Self::Resource { .. } | Self::Completion { .. } => {
                self.method().into()
            }
        }
    }
}

impl UpstreamFindings {
    pub const STATES: [&'static str; 3] = ["up", "down", "unknown"];

    /// Returns `up`, `down`, or `unknown` before the first look.
    pub fn state(&self) -> &'static str {
        match (self.at, &self.failure) {
            (None, _) => "unknown",
            (_, Some(_)) => "down",
            (Some(_), None) => "up",
        }
    }
}

impl UpstreamOutcome {
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Refused,
        Self::Unavailable,
        Self::Failed,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// Returns the word in the metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    fn from_result(result: &Result<Box<RawValue>, CallFailure>) -> Self {
        match result {
            Ok(_) => Self::Answered,
            Err(CallFailure::Refused(_)) => Self::Refused,
            Err(CallFailure::Failed(failure)) => match failure.kind {
                UpstreamFailureKind::Timeout => Self::Timeout,
                UpstreamFailureKind::Cancelled => Self::Cancelled,
                UpstreamFailureKind::NoAccount => Self::Unavailable,
                _ => Self::Failed,
            },
            Err(_) => Self::Unavailable,
        }
    }
}

impl From<OverloadError> for CallFailure {
    fn from(OverloadError { retry_after_ms }: OverloadError) -> Self {
        Self::Overloaded { retry_after_ms }
    }
}

impl From<BackedOff> for CallFailure {
    fn from(BackedOff { retry_after_ms }: BackedOff) -> Self {
        Self::BackedOff { retry_after_ms }
    }
}
