//! Identifies the caller: an agent, the holder of one key, which belongs to a tenant. This comes before any tool code.

mod failures;
mod grant;
mod keys;
mod secret;
mod tokens;

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use weir_policy::{PolicyPrincipal, PolicyToken, PrincipalKind};
use weir_state::{GatewayState, KeyRow, SharedClock, StateError};

pub use failures::{ClaimedHolder, IdentityFailure, IdentityFailures, RefusedCredential};
pub use grant::{AccessList, CallQuota, CallerGrant, CatalogueAccess, Rate};
pub use keys::{KeyLimits, UseCount};
pub use secret::{MintedSecret, RequestCredential, SecretKind, admin_matches};
pub use tokens::{
    IdClaims, IdTokenVerifier, PresentedToken, RequestProof, TokenFault, TokenHolder,
    TokenResource, TokenVerifier, WRITE_SCOPE, holder_name,
};

use self::keys::{KeyTable, UsedKeys};
use crate::config;

/// The resolved identity of one request.
#[derive(Clone, Debug)]
pub struct CallerIdentity {
    pub agent: Arc<str>,
    pub tenant: Arc<str>,
    /// The grant of the caller. `None`: everything, since no key is defined and every caller on loopback is the agent
    /// `local`.
    pub grant: Option<Arc<dyn CallerGrant>>,
}

/// The reason why a caller is unknown. The caller reads [`AuthenticationError::message`]; the variant is only for the log and the
/// audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    #[error("missing")]
    Missing,
    #[error("malformed")]
    Malformed,
    #[error("unknown")]
    Unknown,
    #[error("expired")]
    Expired,
    #[error("revoked")]
    Revoked,
    #[error(transparent)]
    Token(TokenFault),
}

/// A refused caller, and the holder that its token names, as far as that can be read.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusedCaller {
    pub refused: AuthenticationError,
    pub holder: Option<Box<ClaimedHolder>>,
}

/// The number of key rows that are read at once.
const PAGE: u32 = if cfg!(test) { 4 } else { 4096 };

/// The current keys. Read by every request; changes are applied one by one, in the order of their numbers.
pub struct IdentityRegistry {
    keys: KeyTable,
    /// The number of the last applied change. Locked while changes are applied, so that a slower reader undoes none.
    seen: Mutex<i64>,
    /// The number of database fail-overs after which all keys were read again.
    fail_overs: AtomicU64,
    /// Locked while keys are read: of two concurrent reads, one would miss in its list what the other has read.
    taking: tokio::sync::Mutex<()>,
    /// Whether `[identity] required` is set, which closes the gateway even before the first key.
    required: AtomicBool,
    /// The verifier for tokens of other issuers, if any are configured.
    tokens: ArcSwapOption<TokenVerifier>,
    used: UsedKeys,
    failures: IdentityFailures,
}

impl CallerIdentity {
    /// Returns the caller of a gateway without keys: it may do everything.
    pub fn local() -> Self {
        Self {
            agent: "local".into(),
            tenant: "local".into(),
            grant: None,
        }
    }

    /// Returns the part of the catalogue that this caller may see and call.
    pub fn access(&self) -> &CatalogueAccess {
        self.grant
            .as_ref()
            .map_or(&CatalogueAccess::EVERYTHING, |grant| grant.access())
    }

    /// Returns the view that this caller is shown when it asks for everything.
    pub fn view(&self) -> Option<&Arc<str>> {
        self.grant.as_ref()?.view()
    }

    /// Returns the rate of one tool, if the caller's grant sets one.
    pub fn tool_rate(&self, tool: &str) -> Option<Rate> {
        self.grant.as_ref()?.tool_rate(tool)
    }

    /// Returns the person to whom the caller's token was issued, if it has one.
    pub fn holder(&self) -> Option<&TokenHolder> {
        self.grant.as_ref()?.holder()
    }

    /// Names the caller among all callers. An agent's name identifies one holder only among keys; two issuers may give the same
    /// name.
    pub fn principal(&self) -> &str {
        self.holder().map_or(&self.agent, TokenHolder::name)
    }

    /// Returns the caller as policies see it: the agent of a key, or the user of an issuer's token.
    pub fn policy_principal(&self) -> PolicyPrincipal {
        let token = self.holder().map(|holder| PolicyToken {
            issuer: holder.issuer.clone(),
            subject: holder.subject.clone(),
            client: holder.client.clone(),
        });
        let groups = self.grant.as_ref().map(|grant| grant.groups());
        PolicyPrincipal {
            kind: match token {
                Some(_) => PrincipalKind::User,
                None => PrincipalKind::Agent,
            },
            name: self.agent.clone(),
            tenant: self.tenant.clone(),
            groups: groups.unwrap_or_default(),
            token,
        }
    }

    /// Returns `true` if the caller may call writing tools, provided that its access covers them.
    pub fn may_write(&self) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.may_write())
    }

    /// Returns a token that is cancelled when the caller's grant ends, so that its open work ends.
    pub fn revoked(&self) -> CancellationToken {
        self.grant
            .as_ref()
            .map_or_else(CancellationToken::new, |grant| grant.revoked())
    }

    /// Waits until the caller's grant has ended, by expiry or by a revocation.
    pub async fn ended(&self) {
        let revoked = self.revoked();
        let Some(expires) = self.grant.as_ref().and_then(|grant| grant.expires_ms()) else {
            return revoked.cancelled().await;
        };
        let left = Duration::from_millis(u64::try_from(expires - now_ms()).unwrap_or(0));
        let _ = tokio::time::timeout(left, revoked.cancelled()).await; // either is the end
    }

    /// Waits until the caller's work must end. A call outlives the token that it came with, since clients renew tokens; the end
    /// of a key ends its calls.
    pub async fn withdrawn(&self) {
        match self.holder() {
            Some(_) => self.revoked().cancelled().await,
            None => self.ended().await,
        }
    }

    fn grant_id(&self) -> Option<&str> {
        self.grant.as_ref().map(|grant| grant.id())
    }
}

/// Two callers are equal if they have the same grant, not merely the same name.
impl PartialEq for CallerIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.agent == other.agent
            && self.tenant == other.tenant
            && self.grant_id() == other.grant_id()
    }
}

impl AuthenticationError {
    /// Returns the message. Unknown, expired and revoked keys get the same message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Missing => {
                "a key is needed: send `Authorization: Bearer weir_…` (on stdio: set WEIR_KEY)"
            }
            Self::Token(TokenFault::KeysUnavailable) => {
                "the token cannot be checked now: the keys of its issuer cannot be fetched"
            }
            Self::Token(fault) if fault.is_of_binding() => fault.words(),
            Self::Token(_) => "the token is not valid",
            Self::Malformed => {
                "the key is not valid: send it whole, as `Authorization: Bearer weir_...` (on stdio: set WEIR_KEY)"
            }
            _ => "the key is not valid: it is unknown, expired or revoked",
        }
    }

    /// Returns the reason for operators.
    pub fn reason(self) -> String {
        match self {
            Self::Missing => "no key and no token was sent".to_owned(),
            Self::Malformed => {
                "what was sent is neither a key nor a token that is accepted here".to_owned()
            }
            Self::Unknown => "the key is unknown, or its secret is wrong".to_owned(),
            Self::Expired => "the key has expired".to_owned(),
            Self::Revoked => "the key is revoked".to_owned(),
            Self::Token(fault) => fault.to_string(),
        }
    }

    /// Returns `true` if the secret of the key, or the signature of the token, was right.
    pub fn is_of_genuine(self) -> bool {
        match self {
            Self::Missing | Self::Malformed | Self::Unknown => false,
            Self::Expired | Self::Revoked => true,
            Self::Token(fault) => fault.is_of_genuine(),
        }
    }

    /// Returns `true` if the same credential may be valid in a moment, because it could not be checked.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Token(fault) if fault.is_temporary())
    }

    /// Returns the challenge of a 401 for `WWW-Authenticate` if no issuer is configured.
    pub fn challenge(self) -> &'static str {
        match self {
            Self::Missing => concat!(
                "Bearer realm=\"weir\", ",
                "error_description=\"A key is needed: send Authorization: Bearer weir_...\""
            ),
            Self::Malformed => concat!(
                "Bearer realm=\"weir\", error=\"invalid_token\", ",
                "error_description=\"The key is not valid: send it whole, as Authorization: Bearer weir_...\""
            ),
            _ => concat!(
                "Bearer realm=\"weir\", error=\"invalid_token\", ",
                "error_description=\"The key is not valid: it is unknown, expired or revoked\""
            ),
        }
    }

    /// Returns the reason phrase for the status 401. Clients in Python show only this.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Missing => "Unauthorized: a key is needed, send Authorization: Bearer weir_...",
            Self::Token(_) => "Unauthorized: the token is not valid",
            Self::Malformed => {
                "Unauthorized: the key is not valid, send it whole, as Authorization: Bearer weir_..."
            }
            _ => "Unauthorized: the key is not valid",
        }
    }
}

impl From<AuthenticationError> for RefusedCaller {
    fn from(refused: AuthenticationError) -> Self {
        Self {
            refused,
            holder: None,
        }
    }
}

impl IdentityRegistry {
    /// Returns identities that are open to everyone: until keys are defined, or for a process without state.
    pub fn open() -> Self {
        Self::new(false)
    }

    /// Creates identities without keys.
    pub fn new(required: bool) -> Self {
        Self {
            keys: KeyTable::default(),
            seen: Mutex::default(),
            fail_overs: AtomicU64::new(0),
            taking: tokio::sync::Mutex::default(),
            required: AtomicBool::new(required),
            tokens: ArcSwapOption::empty(),
            used: UsedKeys::default(),
            failures: IdentityFailures::default(),
        }
    }

    /// Applies what any process changed since the last time. The cost is proportional to the changes. After a fail-over the
    /// database may have less than this process has seen: everything is read again then. Keys whose revocation it lacked have
    /// been revoked there by then.
    pub async fn take_over(&self, state: &GatewayState) -> Result<(), StateError> {
        let _taking = self.taking.lock().await;
        let fail_overs = state.fail_overs();
        let is_other = self.fail_overs.load(Ordering::Relaxed) != fail_overs;
        if is_other || state.last_key_change().await? < self.seen() {
            self.take_over_anew(state).await?;
            self.fail_overs.store(fail_overs, Ordering::Relaxed);
        } else {
            self.take_over_rest(state, &mut |_| ()).await?;
        }
        Ok(())
    }

    async fn take_over_anew(&self, state: &GatewayState) -> Result<(), StateError> {
        *self.seen.lock() = 0;
        let mut there = HashSet::new();
        let note = &mut |row: &KeyRow| {
            there.insert(row.id.clone());
        };
        self.take_over_rest(state, note).await?;
        self.keys.keep_only(&there);
        Ok(())
    }

    async fn take_over_rest(
        &self,
        state: &GatewayState,
        note: &mut (dyn FnMut(&KeyRow) + Send),
    ) -> Result<(), StateError> {
        loop {
            let rows = state.keys_after(self.seen(), PAGE).await?;
            rows.iter().for_each(&mut *note);
            self.apply(&rows);
            if rows.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    /// Applies rows in the order of their changes. Already applied ones are skipped.
    fn apply(&self, rows: &[KeyRow]) {
        let mut seen = self.seen.lock();
        for row in rows.iter().filter(|row| row.change > *seen) {
            self.keys.apply(row);
        }
        *seen = rows.iter().map(|row| row.change).fold(*seen, i64::max);
    }

    /// Counts a call of a caller's key.
    pub fn note_use(&self, caller: &CallerIdentity) {
        if let Some(grant) = &caller.grant {
            self.used.note(grant, now_ms());
        }
    }

    /// Waits until a key was used that was not used since the last [`write_uses`](Self::write_uses).
    pub async fn used(&self) {
        self.used.used().await;
    }

    /// Writes the uses of keys to the state, for all processes. Uses that cannot be written wait for the next time.
    pub async fn write_uses(&self, state: &GatewayState) -> Result<(), StateError> {
        let (grants, rows) = self.used.take();
        if rows.is_empty() {
            return Ok(());
        }
        let written = state.add_key_uses(&rows).await;
        if written.is_err() {
            self.used.give_back(grants, &rows);
        }
        written
    }

    /// Returns the number of the last applied change of a key.
    pub fn last_change(&self) -> i64 {
        self.seen()
    }

    fn seen(&self) -> i64 {
        *self.seen.lock()
    }

    /// Applies the section `[identity]`, from the next request on. Relative paths start from `base`.
    pub fn configure(&self, identity: &config::IdentityConfig, base: &Path) {
        self.required
            .store(identity.needs_credential(), Ordering::Relaxed);
        let before = self.tokens.load();
        self.tokens
            .store(TokenVerifier::renewed(before.as_deref(), identity, base));
    }

    /// Returns the verifier for tokens of other issuers, if any are configured.
    pub fn tokens(&self) -> Guard<Option<Arc<TokenVerifier>>> {
        self.tokens.load()
    }

    /// Returns the recent refusals of callers.
    pub fn failures(&self) -> &IdentityFailures {
        &self.failures
    }

    /// Returns `true` once a key is required. This remains so when the last key is revoked.
    pub fn are_required(&self) -> bool {
        self.required.load(Ordering::Relaxed) || !self.keys.is_empty()
    }

    /// Identifies the caller by its key. If there are no keys and none is required, every caller is [`CallerIdentity::local`].
    ///
    /// Tokens of issuers are validated elsewhere: see [`IdentityRegistry::tokens`].
    pub fn resolve(
        &self,
        credential: RequestCredential<'_>,
    ) -> Result<CallerIdentity, AuthenticationError> {
        let keys = &self.keys;
        if !self.required.load(Ordering::Relaxed) && keys.is_empty() && !credential.is_of_staff() {
            return Ok(CallerIdentity::local());
        }
        let key = keys.find(credential, now_ms)?;
        Ok(CallerIdentity {
            agent: key.agent.clone(),
            tenant: key.tenant.clone(),
            grant: Some(key),
        })
    }

    /// Returns any agent by name, for an operator's trial call.
    pub fn agent(&self, name: &str) -> Option<CallerIdentity> {
        let keys = &self.keys;
        if !self.required.load(Ordering::Relaxed) && keys.is_empty() && name == "local" {
            return Some(CallerIdentity::local());
        }
        let key = keys.of_agent(name, now_ms())?;
        Some(CallerIdentity {
            agent: key.agent.clone(),
            tenant: key.tenant.clone(),
            grant: Some(key),
        })
    }
}

/// The clock of the machines that share a state.
static SHARED_CLOCK: OnceLock<Arc<SharedClock>> = OnceLock::new();

/// Uses the clock of the machines that share a state. Only the first call has an effect.
pub fn share_clock(clock: Arc<SharedClock>) {
    let _ = SHARED_CLOCK.set(clock); // a process has one state
}

/// Returns the milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    if let Some(clock) = SHARED_CLOCK.get() {
        return clock.now_ms();
    }
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
