//! The reason why a token is refused, for the log and the trail. The caller reads only that it is invalid, or the fault of
//! its proof.

use std::{
    fmt,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    Malformed,
    Type,
    Critical,
    Algorithm,
    Issuer,
    Key,
    KeysUnavailable,
    Signature,
    Expired,
    NotYet,
    Audience,
    IdToken,
    Claims,
    /// The claim that names the agent is missing, or holds no text.
    AgentClaim,
    /// The same for the claim that names the tenant.
    TenantClaim,
    /// Bound to a key by a method other than DPoP.
    OtherBinding,
    /// Bound to a key, but sent as a bearer token.
    Bound,
    /// Not bound to a key, but sent with the scheme DPoP.
    Unbound,
    BindingNeeded,
    ProofMissing,
    ProofMalformed,
    ProofType,
    ProofAlgorithm,
    ProofKey,
    ProofSignature,
    ProofMethod,
    ProofUrl,
    ProofTime,
    ProofToken,
    ProofReplayed,
    ProofForgotten,
    ProofsFull,
}

impl TokenFault {
    /// Returns the reason. Callers also read those of DPoP.
    pub fn words(self) -> &'static str {
        match self {
            Self::Malformed => "token malformed",
            Self::Type => "token of another type than at+jwt or JWT",
            Self::Critical => "token with critical headers (crit)",
            Self::Algorithm => "token with an algorithm that is not accepted",
            Self::Issuer => "token of an issuer that is not configured",
            Self::Key => "token signed by a key that its issuer does not have",
            Self::KeysUnavailable => "keys of the token's issuer cannot be fetched",
            Self::Signature => "token with a wrong signature",
            Self::Expired => "token expired",
            Self::NotYet => "token not valid yet",
            Self::Audience => "token for another audience",
            Self::IdToken => "ID token, which is for the client alone",
            Self::Claims => "token without a claim that is needed",
            Self::AgentClaim => {
                "token without a text in the claim that names the agent (agent_claim)"
            }
            Self::TenantClaim => {
                "token without a text in the claim that names the tenant (tenant_claim)"
            }
            Self::OtherBinding => "token bound to a key in another way than DPoP (cnf)",
            Self::Bound => "token bound to a key, sent without the scheme DPoP",
            Self::Unbound => "token bound to no key, sent with the scheme DPoP",
            Self::BindingNeeded => "token bound to no key, which is needed here (DPoP)",
            Self::ProofMissing => "no DPoP proof, or more than one",
            Self::ProofMalformed => "DPoP proof malformed, or without a claim that is needed",
            Self::ProofType => "DPoP proof of another type than dpop+jwt",
            Self::ProofAlgorithm => "DPoP proof with an algorithm that is not accepted",
            Self::ProofKey => "DPoP proof with another key than the token's, or one not public",
            Self::ProofSignature => "DPoP proof with a wrong signature",
            Self::ProofMethod => "DPoP proof for another method (htm)",
            Self::ProofUrl => "DPoP proof for another URL (htu)",
            Self::ProofTime => "DPoP proof of another time than now (iat)",
            Self::ProofToken => "DPoP proof for another token (ath)",
            Self::ProofReplayed => "DPoP proof used before (jti)",
            Self::ProofForgotten => "DPoP proof older than those remembered of so many",
            Self::ProofsFull => "DPoP proofs of more keys than are remembered",
        }
    }

    /// Returns `true` for the reasons that are found after the signature was verified.
    pub fn is_of_genuine(self) -> bool {
        self as usize >= Self::Expired as usize
    }

    /// Returns `true` if a token is valid, but its proof is not.
    pub fn is_of_proof(self) -> bool {
        self as usize >= Self::ProofMissing as usize
    }

    /// Returns `true` if the fault concerns the binding of the token, or its proof.
    pub fn is_of_binding(self) -> bool {
        self as usize >= Self::OtherBinding as usize
    }

    /// Returns `true` if the same credential may be valid in a moment, because it could not be checked.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::KeysUnavailable | Self::ProofsFull)
    }
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl std::error::Error for TokenFault {}

/// The reasons, in the order of their declaration.
const FAULTS: usize = TokenFault::ProofsFull as usize + 1;
/// A reason is logged at most once in this time, with its count.
const LOG_INTERVAL_MS: i64 = 1000;

/// Logs refusals by their reason. A flood of invalid tokens does not cause a flood of lines.
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
