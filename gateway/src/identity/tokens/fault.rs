//! Why a token is refused: for the log and the trail. The caller reads only that it is not valid.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    #[error("token malformed")]
    Malformed,
    #[error("token of another type than at+jwt or JWT")]
    Type,
    #[error("token with critical headers (crit)")]
    Critical,
    #[error("token with an algorithm that is not accepted")]
    Algorithm,
    #[error("token of an issuer that is not configured")]
    Issuer,
    #[error("token signed by a key that its issuer does not have")]
    Key,
    #[error("keys of the token's issuer cannot be had")]
    KeysUnavailable,
    #[error("token with a wrong signature")]
    Signature,
    #[error("token expired")]
    Expired,
    #[error("token not valid yet")]
    NotYet,
    #[error("token for another audience")]
    Audience,
    #[error("ID token, which is for the client alone")]
    IdToken,
    #[error("token bound to a key (cnf), whose proof is not checked here")]
    Bound,
    #[error("token without a claim that is needed")]
    Claims,
}

impl TokenFault {
    /// Returns `true` for the reasons that are found after the signature was verified.
    pub fn is_of_genuine(self) -> bool {
        match self {
            Self::Expired
            | Self::NotYet
            | Self::Audience
            | Self::IdToken
            | Self::Bound
            | Self::Claims => true,
            Self::Malformed
            | Self::Type
            | Self::Critical
            | Self::Algorithm
            | Self::Issuer
            | Self::Key
            | Self::KeysUnavailable
            | Self::Signature => false,
        }
    }
}

/// The reasons, in the order of their declaration.
const FAULTS: usize = TokenFault::Claims as usize + 1;
/// A reason is logged at most once in this time, with its count.
const LOG_INTERVAL_MS: i64 = 1000;

/// Logs refusals by their reason. A flood of bad tokens makes no flood of lines.
pub(super) struct FaultLog {
    logged_ms: [AtomicI64; FAULTS],
    count: [AtomicU64; FAULTS],
}

impl Default for FaultLog {
    fn default() -> Self {
        Self {
            logged_ms: std::array::from_fn(|_| AtomicI64::new(i64::MIN)),
            count: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl FaultLog {
    pub(super) fn note(&self, fault: TokenFault, issuer: Option<&str>, now_ms: i64) {
        let (at, relaxed) = (fault as usize, Ordering::Relaxed);
        let count = self.count[at].fetch_add(1, relaxed) + 1;
        let logged = self.logged_ms[at].load(relaxed);
        if now_ms < logged.saturating_add(LOG_INTERVAL_MS) {
            return;
        }
        let is_first = self.logged_ms[at].compare_exchange(logged, now_ms, relaxed, relaxed);
        if is_first.is_ok() {
            tracing::warn!(issuer, count, "a token was refused: {fault}");
        }
    }
}
