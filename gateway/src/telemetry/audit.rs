//! The audit trail of this process, as the rest of the gateway writes to it: answered means recorded.

mod heads;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use governor::{DefaultDirectRateLimiter, Quota};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use weir_audit::{
    AdminAct, ArgumentsKey, AuditError, AuditEvent, AuditReceipt, AuditTrail, AuditedChange,
    AuditedRefusal, ChainHead, ChainName, FsyncPolicy, RefusedWhat, TrailEntry, TrailSettings,
};

use self::heads::SharedHeads;
use weir_copies::{CopyFigures, CopyStatus};

pub use self::heads::{heads_of_others, read_heads};
use crate::config;

/// Refusals of one kind, see [`REFUSALS`], that are recorded one by one each second; beyond it they are counted together, so that
/// a stranger can neither fill the disk nor hide what others did.
const REFUSALS_PER_SECOND: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// A record waits for those of the other calls that its thread has to answer, to share one write with them. If one waits longer
/// than this, records are written without waiting during [`NO_WAIT`].
const WAIT_MAX: Duration = Duration::from_millis(1);
const NO_WAIT: Duration = Duration::from_millis(100);
/// The time after which a segment ends if machines share a state: the next one names the heads of their chains.
const SHARED_SEGMENT_MAX_AGE: Duration = Duration::from_secs(600);

/// Refusals that are counted separately; those with any other reason count as `other` of their kind.
const REFUSALS: [(RefusedWhat, &str, &str); 12] = [
    (RefusedWhat::Identity, "identity", "missing"),
    (RefusedWhat::Identity, "identity", "malformed"),
    (RefusedWhat::Identity, "identity", "unknown"),
    (RefusedWhat::Identity, "identity", "expired"),
    (RefusedWhat::Identity, "identity", "revoked"),
    (RefusedWhat::Identity, "identity", "admin key"),
    (RefusedWhat::Identity, "identity", OTHER),
    (RefusedWhat::Access, "access", OTHER),
    (RefusedWhat::Rate, "rate", OTHER),
    (RefusedWhat::Request, "request", "host"),
    (RefusedWhat::Request, "request", "origin"),
    (RefusedWhat::Request, "request", OTHER),
];
const OTHER: &str = "other";
const TOO_OFTEN: &str = "it asks too often";
const NOT_HERE: &str = "it may not use this, or it is not there";

/// Writes records to the trail of this process.
pub struct AuditRecorder {
    /// The trail and the key; `None` if nothing is recorded (tests within this process, commands that only look).
    trail: Option<(AuditTrail, ArgumentsKey)>,
    /// Whether an append waits for the disk (`fsync = "each"`).
    waits: bool,
    started: Instant,
    /// Microseconds since the start.
    no_wait_until: AtomicU64,
    /// In the order of [`REFUSALS`].
    refusals: [RefusalCounter; REFUSALS.len()],
    /// Wakes the task that counts unrecorded refusals.
    to_count: Notify,
    /// Set if a state is shared.
    shared: OnceLock<SharedHeads>,
    /// Set if the trail is copied.
    copies: OnceLock<Arc<CopyStatus>>,
}

/// The refusals of one kind.
struct RefusalCounter {
    limit: DefaultDirectRateLimiter,
    counted: AtomicU64,
    /// Refusals that are not recorded yet.
    unrecorded: AtomicU64,
}

/// The trail cannot be written. The cause is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail cannot be written")]
pub struct AuditUnavailable;

/// The trail itself logs once when it can no longer be written; this logs only problems of one record.
fn unrecorded(error: AuditError) -> AuditUnavailable {
    match error {
        AuditError::Write(_) | AuditError::Sync(_) => {}
        error => {
            tracing::error!(target: "weir::audit", %error, "a record cannot be written: its call is refused")
        }
    }
    AuditUnavailable
}

impl AuditRecorder {
    /// Creates an audit that records nothing, for tests and for commands that change nothing.
    pub fn none() -> Self {
        Self::with(None)
    }

    /// Opens `audit/` in the state folder. `process` is what this process does; `elsewhere` are heads of chains on other
    /// machines, if there may be any.
    pub fn open(
        state: &Path,
        key: ArgumentsKey,
        process: &str,
        config: &config::AuditConfig,
        elsewhere: Option<Vec<AuditReceipt>>,
    ) -> anyhow::Result<Self> {
        let settings = TrailSettings {
            process: process.to_owned(),
            fsync: match config.fsync {
                config::FsyncSetting::Each => FsyncPolicy::Each,
                config::FsyncSetting::Off => FsyncPolicy::Off,
                config::FsyncSetting::Interval => {
                    FsyncPolicy::Interval(Duration::from_millis(config.fsync_interval_ms))
                }
            },
            segment_max_bytes: config.segment_max_bytes,
            keep_age: (config.keep_days > 0)
                .then(|| Duration::from_secs(config.keep_days * 24 * 3600)),
            keep_bytes: (config.keep_max_bytes > 0).then_some(config.keep_max_bytes),
            segment_max_age: match elsewhere {
                Some(_) => SHARED_SEGMENT_MAX_AGE,
                None => TrailSettings::default().segment_max_age,
            },
            waits_for_copies: config.copies.is_some(),
            heads_elsewhere: elsewhere.unwrap_or_default(),
        };
        let waits = matches!(settings.fsync, FsyncPolicy::Each);
        let trail = AuditTrail::open(&state.join("audit"), settings)?;
        let mut audit = Self::with(Some((trail, key)));
        audit.waits = waits;
        Ok(audit)
    }

    fn with(trail: Option<(AuditTrail, ArgumentsKey)>) -> Self {
        let refusals = std::array::from_fn(|_| RefusalCounter {
            limit: DefaultDirectRateLimiter::direct(Quota::per_second(REFUSALS_PER_SECOND)),
            counted: AtomicU64::new(0),
            unrecorded: AtomicU64::new(0),
        });
        Self {
            trail,
            waits: false,
            started: Instant::now(),
            no_wait_until: AtomicU64::new(0),
            refusals,
            to_count: Notify::new(),
            shared: OnceLock::new(),
            copies: OnceLock::new(),
        }
    }

    /// Appends an event; `None` if nothing is recorded at all.
    pub fn append(&self, event: &AuditEvent<'_>) -> Result<Option<AuditReceipt>, AuditUnavailable> {
        self.enter(event).and_then(|entry| self.written(entry))
    }

    /// Returns the place of an event in the trail; it is recorded once it is [`Self::written`].
    pub fn enter(
        &self,
        event: &AuditEvent<'_>,
    ) -> Result<Option<TrailEntry<'_>>, AuditUnavailable> {
        let Some((trail, _)) = &self.trail else {
            return Ok(None);
        };
        trail.enter(event).map(Some).map_err(unrecorded)
    }

    /// Writes the entry, together with all that have been entered meanwhile.
    pub fn written(
        &self,
        entry: Option<TrailEntry<'_>>,
    ) -> Result<Option<AuditReceipt>, AuditUnavailable> {
        let Some(entry) = entry else { return Ok(None) };
        let written = match self.waits {
            // The other requests of this thread continue meanwhile.
            true => tokio::task::block_in_place(|| entry.written()),
            false => entry.written(),
        };
        written.map(Some).map_err(unrecorded)
    }

    /// Waits until the calls that this thread could answer meanwhile have also entered their records.
    pub async fn wait_for_others(&self, now: Instant) {
        let since_start = |time: Instant| (time - self.started).as_micros() as u64;
        if self.trail.is_none() || since_start(now) < self.no_wait_until.load(Ordering::Relaxed) {
            return;
        }
        tokio::task::yield_now().await;
        let back = Instant::now();
        if back - now > WAIT_MAX {
            self.no_wait_until
                .store(since_start(back + NO_WAIT), Ordering::Relaxed);
        }
    }

    /// Returns the digest of the arguments as they were sent.
    pub fn digest(&self, arguments: &[u8]) -> Option<String> {
        self.trail.as_ref().map(|(_, key)| key.digest(arguments))
    }

    /// Notes that a request was refused before it became a call: the place, the public id of the key, and the address, as far as
    /// known. This never fails the refusal itself.
    pub fn refused(
        &self,
        what: RefusedWhat,
        place: &str,
        key_id: Option<&str>,
        address: Option<IpAddr>,
        reason: &str,
    ) {
        let address = address.map(|address| address.to_string());
        let refused = AuditedRefusal {
            what,
            place: Some(place),
            key_id,
            agent: None,
            address: address.as_deref(),
            reason: Some(reason),
            count: 1,
        };
        self.note(refused);
    }

    /// Notes that an agent exceeded its rate, other than by a call.
    pub fn refused_rate(&self, place: &str, agent: &str) {
        self.refused_agent(RefusedWhat::Rate, place, agent, TOO_OFTEN);
    }

    /// Notes that an agent sent a request to a place that it may not use, or that does not exist: no answer reveals which.
    pub fn refused_access(&self, place: &str, agent: &str) {
        self.refused_agent(RefusedWhat::Access, place, agent, NOT_HERE);
    }

    fn refused_agent(&self, what: RefusedWhat, place: &str, agent: &str, reason: &str) {
        let (place, agent, reason) = (Some(place), Some(agent), Some(reason));
        self.note(AuditedRefusal {
            what,
            place,
            key_id: None,
            agent,
            address: None,
            reason,
            count: 1,
        });
    }

    fn note(&self, refused: AuditedRefusal<'_>) {
        let (what, reason) = (refused.what, refused.reason.unwrap_or_default());
        let alike = |(kind, _, known): &(RefusedWhat, _, &str)| {
            *kind == what && (*known == reason || *known == OTHER)
        };
        let Some(refusals) = REFUSALS
            .iter()
            .zip(&self.refusals)
            .find(|(kind, _)| alike(kind))
            .map(|(_, all)| all)
        else {
            return;
        };
        refusals.counted.fetch_add(1, Ordering::Relaxed);
        match refusals.limit.check() {
            Ok(()) => drop(self.append(&AuditEvent::Refused(refused))),
            Err(_) => {
                refusals.unrecorded.fetch_add(1, Ordering::Relaxed);
                self.to_count.notify_one();
            }
        }
    }

    /// Waits until there are refusals that were not recorded one by one.
    pub async fn unrecorded_refusals(&self) {
        self.to_count.notified().await;
    }

    /// Records how many refusals there were beyond those that were recorded one by one.
    pub fn count_refusals(&self) {
        for ((what, _, reason), refusals) in REFUSALS.iter().zip(&self.refusals) {
            let count = refusals.unrecorded.swap(0, Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            let (place, key_id, agent, address) = (None, None, None, None);
            let reason = match what {
                RefusedWhat::Rate => TOO_OFTEN,
                RefusedWhat::Access => NOT_HERE,
                _ => reason,
            };
            let (what, reason) = (*what, Some(reason));
            if self
                .append(&AuditEvent::Refused(AuditedRefusal {
                    what,
                    place,
                    key_id,
                    agent,
                    address,
                    reason,
                    count,
                }))
                .is_err()
            {
                refusals.unrecorded.fetch_add(count, Ordering::Relaxed);
                self.to_count.notify_one();
            }
        }
    }

    /// Records an admin's change of what is served or who may use it. A change that cannot be recorded must not be made, so
    /// this comes first.
    pub fn admin(
        &self,
        act: AdminAct,
        subject: &str,
        fingerprint: Option<&str>,
        by: &str,
        detail: Option<&Map<String, Value>>,
    ) -> Result<(), AuditUnavailable> {
        self.append(&AuditEvent::Admin(AuditedChange {
            act,
            subject,
            fingerprint,
            by,
            detail,
        }))
        .map(drop)
    }

    /// Returns the result of a change whose record was written before it was made. If the change failed, a further record of it
    /// has the reason in its detail, under `failed`.
    pub fn note_failure<T, E: std::fmt::Display>(
        &self,
        act: AdminAct,
        subject: &str,
        fingerprint: Option<&str>,
        by: &str,
        done: Result<T, E>,
    ) -> Result<T, E> {
        if let Err(error) = &done {
            let detail = Map::from_iter([("failed".to_owned(), Value::from(error.to_string()))]);
            // An unwritable trail is reported separately; the admin reads why the change failed.
            let _ = self.admin(act, subject, fingerprint, by, Some(&detail));
        }
        done
    }

    /// Returns the refusals with their reasons, both from a closed list, and their number.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let counts = REFUSALS.iter().zip(&self.refusals);
        counts.map(|((_, what, reason), refusals)| {
            (*what, *reason, refusals.counted.load(Ordering::Relaxed))
        })
    }

    /// Sets the copies that are made of the trail.
    pub fn share_copies(&self, status: Arc<CopyStatus>) {
        // It is set once, when the process starts to serve.
        let _ = self.copies.set(status);
    }

    /// Notes the last segment of each chain up to which everything is copied.
    pub fn set_copied(&self, copied: BTreeMap<ChainName, u32>) {
        if let Some(trail) = self.trail() {
            trail.set_copied(copied);
        }
    }

    /// Returns the uncopied part of the trail, if it is copied.
    pub fn copy_figures(&self) -> Option<CopyFigures> {
        self.copies.get().map(|status| status.figures())
    }

    /// Returns the last record of the chain.
    pub fn head(&self) -> Option<ChainHead> {
        let trail = self.trail()?;
        let (head, segment) = (trail.head(), trail.health().segment);
        Some(ChainHead {
            chain: head.chain,
            node: String::new(),
            segment,
            seq: head.seq,
            hash: head.hash,
        })
    }

    /// Syncs all records so far to the disk, so that they survive a crash of the machine.
    pub fn sync(&self) -> Result<(), AuditError> {
        self.trail().map_or(Ok(()), AuditTrail::sync)
    }

    fn trail(&self) -> Option<&AuditTrail> {
        self.trail.as_ref().map(|(trail, _)| trail)
    }

    /// Returns `true` while every call is refused, since it cannot be recorded.
    pub fn is_refusing(&self) -> bool {
        self.trail().is_some_and(AuditTrail::is_refusing)
    }

    /// Returns the health, for metrics.
    pub fn health(&self) -> Option<weir_audit::TrailHealth> {
        self.trail.as_ref().map(|(trail, _)| trail.health())
    }
}

impl Drop for AuditRecorder {
    fn drop(&mut self) {
        self.count_refusals();
    }
}
