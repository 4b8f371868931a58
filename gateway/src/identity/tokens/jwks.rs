//! The public keys of one issuer (JWKS): fetched when a token needs them, by one request at a time, and kept.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use weir_connections::http::FetchedDocument;

use super::{fault::TokenFault, fetch::KeyPlace, signature::ACCEPTED};
use crate::config::IssuerConfig;

/// The shortest and the longest time after which keys are fetched again; in between, their publisher decides.
const KEPT_MIN: Duration = Duration::from_secs(5 * 60);
const KEPT_MAX: Duration = Duration::from_secs(24 * 3600);
const KEPT_USUALLY: Duration = Duration::from_secs(3600);
/// How long keys that cannot be fetched again are still used.
const STALE_MAX: Duration = Duration::from_secs(24 * 3600);
/// The pause between two fetches: once there are keys, and before the first ones.
const REFETCH_PAUSE: Duration = Duration::from_secs(30);
const RETRY_PAUSE: Duration = Duration::from_secs(2);
const KEYS_MAX: usize = 100;

/// The keys of an issuer.
pub(super) struct IssuerKeys {
    issuer: String,
    place: KeyPlace,
    known: ArcSwapOption<KnownKeys>,
    /// Locked by the fetch in progress. Contains the times of the last fetch.
    flight: Arc<Mutex<Option<LastFetch>>>,
}

/// The times of a fetch.
#[derive(Clone, Copy)]
struct LastFetch {
    began: Instant,
    /// While it is in progress, the time at which it began.
    ended: Instant,
}

struct KnownKeys {
    keys: Vec<VerifyingKey>,
    /// All keys of the document, as they were written.
    listed: Vec<Value>,
    fetched: Instant,
    kept_for: Duration,
}

/// What has changed in a file of keys since it was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyFileChange {
    /// Nothing, or the keys are not in a file, or the file cannot be read.
    Unchanged,
    /// All previous keys are unchanged, and there are others.
    Added,
    /// A previous key was removed or changed.
    Removed,
}

/// One key, with the algorithms that its type and its publisher allow.
#[derive(Debug)]
pub(super) struct VerifyingKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Deserialize)]
struct KeyList {
    keys: Vec<Value>,
}

impl IssuerKeys {
    pub(super) fn new(config: &IssuerConfig, base: &Path) -> Arc<Self> {
        Arc::new(Self {
            issuer: config.issuer.clone(),
            place: KeyPlace::new(config, base),
            known: ArcSwapOption::empty(),
            flight: Arc::default(),
        })
    }

    /// Finds the key of a token. Old keys are still used while they are fetched again.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<DecodingKey>, TokenFault> {
        let known = self.usable();
        if let Some(key) = known.as_ref().and_then(|known| known.find(id, algorithm)) {
            if known.is_some_and(|known| known.is_old()) && self.may_fetch() {
                let keys = Arc::clone(self);
                tokio::spawn(async move { keys.refresh().await });
            }
            return Ok(key);
        }
        self.refresh().await;
        let known = self.usable().ok_or(TokenFault::KeysUnavailable)?;
        known.find(id, algorithm).ok_or(TokenFault::Key)
    }

    /// Returns what has changed in the file of the keys, if they are in one.
    pub(super) fn file_change(&self) -> KeyFileChange {
        let now = self.place.read_now();
        let now = now.and_then(|document| KnownKeys::read(&document).ok());
        let (Some(before), Some(now)) = (self.known.load_full(), now) else {
            return KeyFileChange::Unchanged;
        };
        if before.listed == now.listed {
            return KeyFileChange::Unchanged;
        }
        let issuer = &self.issuer;
        tracing::info!(issuer, "the file with the keys of an issuer has changed");
        match before.listed.iter().all(|key| now.listed.contains(key)) {
            true => KeyFileChange::Added,
            false => KeyFileChange::Removed,
        }
    }

    /// Returns the keys, unless they are too old to be trusted.
    fn usable(&self) -> Option<Arc<KnownKeys>> {
        let known = self.known.load_full()?;
        (known.fetched.elapsed() <= known.kept_for + STALE_MAX).then_some(known)
    }

    /// Returns `true` if no fetch is under way and the last one is long enough ago.
    fn may_fetch(&self) -> bool {
        let last = self.flight.try_lock();
        last.is_ok_and(|last| self.is_due(*last))
    }

    fn is_due(&self, last: Option<LastFetch>) -> bool {
        let pause = match self.usable() {
            Some(_) => REFETCH_PAUSE,
            None => RETRY_PAUSE,
        };
        last.is_none_or(|last| last.began.elapsed() >= pause)
    }

    /// Fetches the keys, or waits for the current fetch. The fetch continues when its caller leaves.
    async fn refresh(self: &Arc<Self>) {
        let asked = Instant::now();
        let mut last = self.flight.clone().lock_owned().await;
        // Otherwise, if an issuer does not answer, each request would wait for the fetches of all requests before it, one by one.
        let has_waited = last.is_some_and(|last| last.ended >= asked);
        if has_waited || !self.is_due(*last) {
            return;
        }
        let began = Instant::now();
        *last = Some(LastFetch {
            began,
            ended: began,
        });
        let keys = Arc::clone(self);
        let _ = tokio::spawn(async move { keys.fetch(last).await }).await;
    }

    async fn fetch(&self, mut flight: OwnedMutexGuard<Option<LastFetch>>) {
        let fetched = self.place.fetch().await;
        match fetched.and_then(|fetched| KnownKeys::read(&fetched)) {
            Ok(known) => self.known.store(Some(Arc::new(known))),
            Err(error) => {
                let issuer = &self.issuer;
                tracing::error!(issuer, "the keys of an issuer cannot be fetched: {error}");
            }
        }
        if let Some(last) = flight.as_mut() {
            last.ended = Instant::now();
        }
    }
}

impl KnownKeys {
    /// Reads a JWKS. Keys of other types or for other uses are left out.
    fn read(fetched: &FetchedDocument) -> Result<Self, String> {
        let list: KeyList = serde_json::from_slice(&fetched.text)
            .map_err(|_| "the answer is not a JWKS: it has no list `keys`".to_owned())?;
        let mut listed = list.keys;
        listed.truncate(KEYS_MAX);
        let keys = listed.iter().cloned();
        let keys: Vec<_> = keys.filter_map(VerifyingKey::read).collect();
        if keys.is_empty() {
            return Err("the JWKS has no key for RS256, PS256, ES256 or EdDSA".to_owned());
        }
        let kept_for = fetched.kept_for.unwrap_or(KEPT_USUALLY);
        Ok(Self {
            keys,
            listed,
            fetched: Instant::now(),
            kept_for: kept_for.clamp(KEPT_MIN, KEPT_MAX),
        })
    }

    fn is_old(&self) -> bool {
        self.fetched.elapsed() > self.kept_for
    }

    /// Finds the key with this id. A token without an id may be signed by the only key that fits its algorithm.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let named = |key: &&VerifyingKey| id.is_none() || key.id.as_deref() == id;
        let found = self.keys.iter().filter(named);
        let mut found = found.filter_map(|key| key.used_with(algorithm));
        match (found.next(), found.next()) {
            (Some(key), None) => Some(key),
            _ => None,
        }
    }
}

impl VerifyingKey {
    pub(super) fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_for_signatures = matches!(
            jwk.common.public_key_use,
            None | Some(PublicKeyUse::Signature)
        );
        let of_type: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[Algorithm::RS256, Algorithm::PS256],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                &[Algorithm::ES256]
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            _ => &[],
        };
        let named = jwk.common.key_algorithm;
        let is_named = |algorithm: &Algorithm| {
            named.is_none_or(|named| named.to_string().parse() == Ok(*algorithm))
        };
        let of_type = of_type.iter().copied();
        let algorithms: Vec<_> = of_type
            .filter(|algorithm| ACCEPTED.contains(algorithm) && is_named(algorithm))
            .collect();
        if algorithms.is_empty() || !is_for_signatures {
            return None;
        }
        Some(Self {
            key: Arc::new(DecodingKey::from_jwk(&jwk).ok()?),
            id: jwk.common.key_id,
            algorithms,
        })
    }

    /// Returns the key, if it fits this algorithm.
    pub(super) fn used_with(&self, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let is_used = self.algorithms.contains(&algorithm);
        is_used.then(|| self.key.clone())
    }
}
